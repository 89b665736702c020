"""Reading and writing the files of ``golden/``: tensors in safetensors, each with its sha256, and JSON text."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from conformance.errors import UsageError, cut
from conformance.numerics.dtypes import FLOAT_TYPES
from conformance.system.user_files import reason

Tensors = dict[str, np.ndarray]

# The names that safetensors gives to dtypes. Its own NumPy reader has none for bfloat16.
_DTYPES: dict[str, np.dtype] = {
    "F64": FLOAT_TYPES["float64"].numpy,
    "F32": FLOAT_TYPES["float32"].numpy,
    "F16": FLOAT_TYPES["float16"].numpy,
    "BF16": FLOAT_TYPES["bfloat16"].numpy,
    "BOOL": np.dtype(np.bool_),
}


def describe(array: np.ndarray) -> dict[str, Any]:
    """What the JSON says of a tensor."""
    return {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": _sha256(array)}


def _sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def tensors_to_bytes(tensors: Tensors) -> bytes:
    """A safetensors file without metadata, whose order would differ from process to process."""
    return save({name: np.ascontiguousarray(array) for name, array in tensors.items()})


def json_to_bytes(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; raises UsageError where there is none."""
    try:
        document = json.loads(_read(path).decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The golden file {path} is damaged, it is no JSON text ({cut(str(error))}): restore it.") from None
    if not isinstance(document, dict) or document.get("format") != "attention-golden-1":
        raise UsageError(f'{path} is no golden file, it lacks "format": "attention-golden-1": remove or restore it.')
    if not isinstance(document.get("cases"), list):
        raise UsageError(f"The golden file {path} is damaged, it has no list of cases: restore it.")
    return document


@lru_cache(maxsize=32)
def kept_tensors(path: Path) -> Tensors:
    """``read_tensors``, once per file."""
    return read_tensors(path)


def read_tensors(path: Path) -> Tensors:
    """All tensors of a safetensors file, read-only; raises UsageError where it is missing, cut short or foreign."""
    try:
        entries = deserialize(_read(path))
        return {
            name: np.frombuffer(entry["data"], dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"]) for name, entry in entries
        }
    except (SafetensorError, ValueError, TypeError) as error:  # the last two: a shape that is not the one of the data
        told = cut(str(error))
        raise UsageError(f"The golden file {path} is damaged, it is no safetensors file ({told}): restore it.") from None
    except KeyError as error:
        raise UsageError(f"The golden file {path} is foreign, it holds a tensor of dtype {error}: restore it.") from None


def checked_tensor(path: Path, name: str, description: dict[str, Any]) -> np.ndarray:
    """The tensor called ``name`` as a fresh array; raises UsageError where it is not what its description says."""
    tensors = kept_tensors(path)
    if name not in tensors:
        raise UsageError(f"The golden file {path} lacks the tensor {name}: restore it.")
    found = describe(tensors[name])
    for key in ("dtype", "shape", "sha256"):
        if found[key] != description[key]:
            raise UsageError(
                f"The golden file {path} is damaged: the {key} of the tensor {name} is {found[key]}, expected "
                f"{cut(str(description[key]))}; restore it."
            )
    return tensors[name].copy()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"The golden file {path} cannot be read ({reason(error)}): restore it.") from None
