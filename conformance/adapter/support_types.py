"""The types of what a ``Support`` declares: a list is made what is expected, and what cannot be is told in one sentence, with an
example."""

from dataclasses import replace
from typing import Any, get_type_hints

import msgspec

from conformance.adapter import Support
from conformance.errors import UsageError

HINTS = get_type_hints(Support)
SHOWN = 60  # characters of what was given
_NAMES = "names in a set"
_SIZES = "a dictionary of names of sizes and whole numbers"

# What each field takes, in words, and an example of it.
EXAMPLES: dict[str, tuple[str, str]] = {
    "operation": ("the name of an operation", '"attention"'),
    "features": (f"{_NAMES}, or None", '{"mask", "causal"}'),
    "lacks": (_NAMES, '{"mask", "causal"}'),
    "returns": ("names in a tuple", '("output", "lse")'),
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
    "flushes": ("names of dtypes in a tuple", '("float16",)'),
    "scale_dtype": ("the name of a dtype, or None", '"float32"'),
    "lengths_dtype": ("the name of a dtype", '"int32"'),
    "distribution": ("the name of an installed distribution, or None", '"flax"'),
    "device": ("the name of a device", '"cuda"'),
    "compiles": ("True or False", "True"),
    "shapes": ("a whole number, or None", "8"),
    "sizes": ("whole numbers in a tuple", "(128, 4096)"),
}


def of_expected_types(spec: str, support: Support) -> Support:
    """The declaration of ``spec``, with lists and sets made what is expected. Raises UsageError where a field is of another
    type."""
    expected: dict[str, Any] = {}
    for name, value in vars(support).items():
        try:
            expected[name] = _made(value, HINTS[name])
        except msgspec.ValidationError:
            raise UsageError(_sentence(spec, name, value, HINTS[name])) from None
    return replace(support, **expected)


def _made(value: Any, hint: Any) -> Any:
    """``value`` as ``hint`` wants it; a set has one order in every process. Raises msgspec.ValidationError."""
    made = msgspec.convert(sorted(value, key=str) if isinstance(value, set | frozenset) else value, hint)
    if hint == HINTS["declines"] and not all(issubclass(one, Exception) for one in made):
        raise msgspec.ValidationError("no exception")
    return made


def _sentence(spec: str, name: str, value: object, hint: Any) -> str:
    words, example = EXAMPLES[name]
    example, comma = _alone(value, hint) or (example, "")
    return f"Support.{name} of {spec} is {_shown(value)}: it takes {words}, such as {name}={example}{comma}."


def _alone(value: object, hint: Any) -> tuple[str, str] | None:
    """Where ``value`` would do as an element: a tuple or a set of it, as it is to be written."""
    try:
        made = _made([value], hint)
    except msgspec.ValidationError:
        return None
    written = value.__name__ if isinstance(value, type) else repr(value)
    return (f"({written},)", ", with the comma") if isinstance(made, tuple) else (f"{{{written}}}", "")


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
