"""The text form of problems: ``operation key=value key=value …`` in a fixed order, defaults left out."""

import hashlib
from collections.abc import Iterable, Mapping

from conformance.errors import ProblemError
from conformance.problem.recipe import Recipe

LONGEST_NUMBER = 18  # digits, so that it fits into 64 bits


def split_fields(text: str, known: Iterable[str]) -> dict[str, str]:
    """The fields of a problem's text by name, the leading operation left out."""
    known = tuple(known)
    fields: dict[str, str] = {}
    for word in text.split()[1:]:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise ProblemError(f"{word!r} in the problem text is not of the form name=value.")
        if name not in known:
            raise ProblemError(f"The problem text has an unknown field {name!r}: known are {', '.join(known)}.")
        if name in fields:
            raise ProblemError(f"The problem text gives {name!r} twice.")
        fields[name] = value
    return fields


def required(fields: Mapping[str, str], name: str) -> str:
    try:
        return fields[name]
    except KeyError:
        raise ProblemError(f"The problem text lacks {name}=….") from None


def integer(fields: Mapping[str, str], name: str) -> int:
    return integers(fields, name, "/", 1)[0]


def integers(fields: Mapping[str, str], name: str, separator: str, count: int | None = None) -> tuple[int, ...]:
    """A field of whole numbers, such as ``length=5/7``; one number stands for all ``count`` of them."""
    parts = required(fields, name).split(separator)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ProblemError(f"{name}={fields[name]!r} is not made of whole numbers separated by {separator!r}.")
    if count is not None and len(parts) == 1:
        parts *= count
    if count is not None and len(parts) != count:
        raise ProblemError(f"{name}={fields[name]!r} has {len(parts)} numbers where {count} are due.")
    if max(map(len, parts)) > LONGEST_NUMBER:
        raise ProblemError(f"{name}={fields[name][:40]}… is a number of more than {LONGEST_NUMBER} digits.")
    return tuple(map(int, parts))


def number(fields: Mapping[str, str], name: str) -> float | None:
    if name not in fields:
        return None
    try:
        return float(fields[name])
    except ValueError:
        raise ProblemError(f"{name}={fields[name]!r} is not a number.") from None


def recipes(fields: Mapping[str, str], name: str) -> tuple[Recipe, ...]:
    """The recipes that a field lists, none where it is left out."""
    return tuple(Recipe.parse(word, name) for word in fields[name].split(",")) if name in fields else ()


def recipe(fields: Mapping[str, str], name: str) -> Recipe | None:
    return Recipe.parse(fields[name], name) if name in fields else None


def pair(first: int, second: int) -> str:
    return str(first) if first == second else f"{first}/{second}"


def demand(condition: bool, message: str) -> None:
    if not condition:
        raise ProblemError(message)


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise ProblemError(f"{name}={value!r} is not one of {', '.join(allowed)}.")


def positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ProblemError(f"{name}={size} must be at least 1.")


def fitting(lengths: tuple[int, ...] | None, batch: int, key_length: int) -> None:
    """Raises ProblemError unless there is a key length from 0 to ``key_length`` for each batch row, or none at all."""
    demand(
        lengths is None or (len(lengths) == batch and all(0 <= n <= key_length for n in lengths)),
        f"lengths={lengths} must be {batch} numbers from 0 to the key length {key_length}.",
    )


def digest(text: str) -> str:
    """Twelve hexadecimal digits that identify a problem's text (of SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
