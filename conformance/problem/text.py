"""The text form of problems: ``operation key=value key=value …`` in a fixed order, defaults left out."""

import hashlib
import math
from collections.abc import Iterable, Mapping

from conformance.errors import ProblemError, cut, quoted
from conformance.problem.recipe import Recipe

LONGEST_NUMBER = 18  # digits, so that it fits into 64 bits
LARGEST_ARRAY = 2**36  # elements; an array of float32 then has 256 GiB
LARGEST_ARGUMENT = 1e38  # nearly the largest number of float32
MAY_BE_ZERO = ("few-bits",)  # value laws that are about V, for which a query of zeros is as good as any


def split_fields(text: str, known: Iterable[str]) -> dict[str, str]:
    """The fields of a problem's text by name, the leading operation left out."""
    known = tuple(known)
    fields: dict[str, str] = {}
    for word in text.split()[1:]:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise ProblemError(f"{quoted(word)} in the problem text is not of the form name=value.")
        if name not in known:
            raise ProblemError(f"The problem text has an unknown field {quoted(name)}: known are {', '.join(known)}.")
        if name in fields:
            raise ProblemError(f"The problem text gives {quoted(name)} twice.")
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
        raise ProblemError(f"{name}={quoted(fields[name])} is not made of whole numbers separated by {quoted(separator)}.")
    if count is not None and len(parts) == 1:
        parts *= count
    if count is not None and len(parts) != count:
        raise ProblemError(f"{name}={quoted(fields[name])} has {len(parts)} numbers where {count} are due.")
    if max(map(len, parts)) > LONGEST_NUMBER:
        raise ProblemError(f"{name}={cut(fields[name], 40)} is a number of more than {LONGEST_NUMBER} digits.")
    return tuple(map(int, parts))


def number(fields: Mapping[str, str], name: str) -> float | None:
    if name not in fields:
        return None
    try:
        value = float(fields[name])
    except ValueError:
        raise ProblemError(f"{name}={quoted(fields[name])} is not a number.") from None
    demand(math.isfinite(value), f"{name}={cut(fields[name])} must be a finite number.")
    return value


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
        raise ProblemError(f"{name}={quoted(value)} is not one of {', '.join(allowed)}.")


def positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ProblemError(f"{name}={size} must be at least 1.")


def amplitudes(**recipes: Recipe | None) -> None:
    """Raises ProblemError where the argument of a value law, a mask or a bias is no ordinary number: an output of NaN would be
    due, which many a wrong implementation gives. (Edits put such numbers where they are asked for.)"""
    for name, recipe in recipes.items():
        if recipe is None or recipe.argument is None:
            continue
        ordinary = abs(recipe.argument) <= LARGEST_ARGUMENT  # false for NaN
        demand(ordinary, f"{name}={recipe} must have a finite argument, not beyond {LARGEST_ARGUMENT:g}.")
        zero = name == "values" and recipe.argument == 0 and recipe.name not in MAY_BE_ZERO
        demand(not zero, f"{name}={recipe} makes nothing of its law: give another argument than 0, or none.")


def size(*sizes: int) -> None:
    """Raises ProblemError for an array that is larger than any machine can be asked to hold."""
    count = math.prod(sizes)
    demand(
        count <= LARGEST_ARRAY, f"An array of {' × '.join(map(str, sizes))} elements is too large: {LARGEST_ARRAY} are the most."
    )


def fitting(lengths: tuple[int, ...] | None, batch: int, key_length: int) -> None:
    """Raises ProblemError unless there is a key length from 0 to ``key_length`` for each batch row, or none at all."""
    demand(
        lengths is None or (len(lengths) == batch and all(0 <= n <= key_length for n in lengths)),
        f"lengths={cut(str(lengths))} must be {batch} numbers from 0 to the key length {key_length}.",
    )


def digest(text: str) -> str:
    """Twelve hexadecimal digits that identify a problem's text (of SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
