"""The types of what a ``Support`` declares: a list is made what is due, and what cannot be is told in one sentence, with an
example."""

import types
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Union, get_args, get_origin, get_type_hints

from conformance.adapter import Support
from conformance.errors import UsageError

SHOWN = 60  # characters of what was given
_EITHER = (Union, types.UnionType)
_NAMES = "names in a set"
_SIZES = "a dictionary of names of sizes and whole numbers"

# What each field takes, in words, and an example of it.
EXAMPLES: dict[str, tuple[str, str]] = {
    "operation": ("the name of an operation", '"attention"'),
    "features": (f"{_NAMES}, or None", '{"mask", "causal"}'),
    "lacks": (_NAMES, '{"mask", "causal"}'),
    "parameters": ("a dictionary of the suite's names of parameters and the function's own", '{"mask": "visible"}'),
    "dtypes": ("names in a tuple", '("float32", "float16")'),
    "layouts": ("names in a tuple", '("contiguous", "transposed")'),
    "mask_forms": ("names in a tuple", '("qk", "bhqk")'),
    "axes": ("an order of axes", '"blhd"'),
    "routes": ("a dictionary of features and tuples of ways", '{"causal": ("native", "bias")}'),
    "exclusive": (_NAMES, '{"mask", "causal"}'),
    "profile": (
        "the name of a profile, a dictionary of dtypes and profiles, or None",
        '{"float32": "strict", "float16": "fused"}',
    ),
    "conventions": ("a dictionary of conventions and answers", '{"CON-EMPTY-ROW": "zeros"}'),
    "binds": ("True or False", "True"),
    "framework": ("the name of a framework, or None", '"torch"'),
    "widths": ("whole numbers in a tuple", "(64, 128)"),
    "multiples": (_SIZES, '{"query_length": 128}'),
    "at_most": (_SIZES, '{"key_length": 4096}'),
    "square": ("True or False", "True"),
    "causal": ("one word", '"always"'),
    "declines": ("types of exceptions in a tuple", "(NotImplementedError,)"),
    "scale_dtype": ("the name of a dtype, or None", '"float32"'),
    "lengths_dtype": ("the name of a dtype", '"int32"'),
    "distribution": ("the name of an installed distribution, or None", '"flax"'),
    "device": ("the name of a device", '"cuda"'),
    "compiles": ("True or False", "True"),
    "shapes": ("a whole number, or None", "8"),
}


def of_due_types(spec: str, support: Support) -> Support:
    """The declaration of ``spec``, with lists and sets made what is due. Raises UsageError where a field is of another type."""
    hints = get_type_hints(Support)
    due: dict[str, Any] = {}
    for name, value in vars(support).items():
        try:
            due[name] = _made(value, hints[name])
        except _OfAnotherType as wrong:
            raise UsageError(_sentence(spec, name, value, wrong.part)) from None
    return replace(support, **due)


class _OfAnotherType(Exception):
    """``part`` is what is not of the due type: the whole value, or something in it."""

    def __init__(self, part: object) -> None:
        super().__init__(part)
        self.part = part


def _sentence(spec: str, name: str, value: object, part: object) -> str:
    words, example = EXAMPLES[name]
    within = "" if part is value else f", with {_shown(part)} in it"
    example, comma = _alone(value, get_type_hints(Support)[name]) or (example, "")
    return f"Support.{name} of {spec} is {_shown(value)}{within}: it takes {words}, such as {name}={example}{comma}."


def _alone(value: object, hint: Any) -> tuple[str, str] | None:
    """Where ``value`` would do as an element: a tuple or a set of it, as it is to be written."""
    for one in get_args(hint) if get_origin(hint) in _EITHER else (hint,):
        if get_origin(one) in (tuple, frozenset) and _does(value, get_args(one)[0]):
            written = value.__name__ if isinstance(value, type) else repr(value)
            return (f"({written},)", ", with the comma") if get_origin(one) is tuple else (f"{{{written}}}", "")
    return None


def _does(value: object, hint: Any) -> bool:
    try:
        _made(value, hint)
    except _OfAnotherType:
        return False
    return True


def _shown(value: object) -> str:
    """What was given, as it is written in Python, shortened."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever an object answers
        text = f"of the type {type(value).__name__}"
    return f"the text {text}" if isinstance(value, str) else text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def _made(value: Any, hint: Any) -> Any:
    """``value`` as ``hint`` wants it. Raises _OfAnotherType where that cannot be."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in _EITHER:
        return _made_one_of(value, inner)
    if origin is tuple:
        return tuple(_made(one, inner[0]) for one in _listed(value))
    if origin is frozenset:
        return frozenset(_made(one, inner[0]) for one in _listed(value))
    if origin is type:
        if not (isinstance(value, type) and issubclass(value, inner[0])):
            raise _OfAnotherType(value)
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _OfAnotherType(value)
        return {_made(key, inner[0]): _made(one, inner[1]) for key, one in value.items()}
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise _OfAnotherType(value)
    return value


def _made_one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    """By the first of ``hints`` that does; where none does, what is wrong by the one that comes nearest."""
    wrongs = []
    for hint in hints:
        try:
            return _made(value, hint)
        except _OfAnotherType as wrong:
            wrongs.append(wrong)
    raise next((wrong for wrong in wrongs if wrong.part is not value), wrongs[0])


def _listed(value: Any) -> list[Any]:
    """The elements of a tuple, list or set; of a set in order, so that every process has the same."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if not isinstance(value, tuple | list):
        raise _OfAnotherType(value)
    return list(value)
