"""The fields of a problem, described once: from the description come its word in the text form, how that is read and checked, the
features that it asks for, and whether golden cases hold it.

A problem's text is ``operation key=value key=value …``, in the order of the fields, most of them left out where they say nothing.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol

from conformance.errors import ProblemError, cut, quoted
from conformance.numerics.dtypes import float_type
from conformance.problem.recipe import Recipe

LONGEST_NUMBER = 18  # digits, so that it fits into 64 bits
LARGEST_ARGUMENT = 1e38  # nearly the largest number of float32


NEEDED: Any = object()  # the default of an attribute that has none


class FieldKind(Protocol):
    """What values of a field are, of one attribute or of several, and how they are written."""

    def read(self, text: str, key: str) -> tuple[Any, ...]:
        """The values that ``text`` writes, one for each attribute. Raises ProblemError where it writes none."""

    def write(self, values: tuple[Any, ...]) -> str:
        """The text that ``read`` reads so."""

    def check(self, values: tuple[Any, ...], names: Sequence[str]) -> None:
        """Raises ProblemError for values that no problem has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """``key``: its word in the text. ``names``: the attributes that it holds, ``defaults`` their values where nothing is said,
    NEEDED for those that must be given.

    ``required``: the text must say it; ``always``: it is written also where it says no more than the default, or ``said``
    decides. ``asks``: the features that it asks for, with when. ``parameter``: golden cases list it where it is not the default,
    or is ``frozen``, one of those of the first days; what describes arrays is none, since those are stored.
    """

    key: str
    kind: FieldKind
    names: tuple[str, ...]
    defaults: tuple[Any, ...]
    required: bool = False
    always: bool = False
    said: Callable[[Any], bool] | None = None
    asks: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)
    parameter: bool = True
    frozen: bool = False

    @cached_property
    def values(self) -> Callable[[Any], tuple[Any, ...]]:
        """Gives the values that a problem has, one for each name; asked a hundred thousand times in a run."""
        if len(self.names) > 1:
            return attrgetter(*self.names)
        value = attrgetter(self.names[0])
        return lambda problem: (value(problem),)

    def is_said(self, problem: Any) -> bool:
        """Whether the text of ``problem`` has it."""
        if self.said is not None:
            return self.said(problem)
        return self.always or self.values(problem) != self.defaults


@dataclass(frozen=True)
class Sizes:
    """``count`` whole numbers from ``least`` on, such as ``5/7``; one stands for all of them."""

    count: int = 1
    least: int = 1

    def read(self, text: str, key: str) -> tuple[int, ...]:
        found = _integers(text, key, "/")
        found = found * self.count if len(found) == 1 else found
        demand(len(found) == self.count, f"{key}={quoted(text)} has {len(found)} numbers where {self.count} are expected.")
        return found

    def write(self, values: tuple[int, ...]) -> str:
        return str(values[0]) if len(set(values)) == 1 else "/".join(map(str, values))

    def check(self, values: tuple[int, ...], names: Sequence[str]) -> None:
        for name, size in zip(names, values, strict=True):
            demand(size >= self.least, f"{name}={size} must be at least {self.least}.")


@dataclass(frozen=True)
class _One:
    """One value, in one attribute."""

    def read(self, text: str, key: str) -> tuple[Any, ...]:
        return (self.reads(text, key),)

    def write(self, values: tuple[Any, ...]) -> str:
        return self.writes(values[0])

    def check(self, values: tuple[Any, ...], names: Sequence[str]) -> None:
        self.checks(values[0], names[0])

    def reads(self, text: str, key: str) -> Any:
        return text

    def writes(self, value: Any) -> str:
        return str(value)

    def checks(self, value: Any, name: str) -> None:
        return None


@dataclass(frozen=True)
class Word(_One):
    """One of ``words``, of which each may stand for another value."""

    words: Sequence[str] | Mapping[str, Any]

    def reads(self, text: str, key: str) -> Any:
        if isinstance(self.words, Mapping):
            demand(text in self.words, _no_choice(key, text, self.words))
            return self.words[text]
        return text

    def writes(self, value: Any) -> str:
        if isinstance(self.words, Mapping):
            return next(word for word, stands_for in self.words.items() if stands_for == value)
        return str(value)

    def checks(self, value: Any, name: str) -> None:
        allowed = self.words.values() if isinstance(self.words, Mapping) else self.words
        demand(value in allowed, _no_choice(name, str(value), self.words))


@dataclass(frozen=True)
class Dtype(_One):
    def checks(self, value: str, name: str) -> None:
        float_type(value)


@dataclass(frozen=True)
class IntegerTuple(_One):
    """Whole numbers with commas, in a tuple."""

    def reads(self, text: str, key: str) -> tuple[int, ...]:
        return _integers(text, key, ",")

    def writes(self, value: tuple[int, ...]) -> str:
        return ",".join(map(str, value))


@dataclass(frozen=True)
class Number(_One):
    """A finite number."""

    def reads(self, text: str, key: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ProblemError(f"{key}={quoted(text)} is not a number.") from None
        demand(math.isfinite(number), f"{key}={cut(text)} must be a finite number.")
        return number

    def writes(self, value: float) -> str:
        return repr(float(value))


@dataclass(frozen=True)
class OneRecipe(_One):
    """A recipe; one of a mask or a bias has one of ``forms``. Its argument is an ordinary number, since an output of NaN would be
    expected otherwise, which many a wrong implementation gives (transformations put such numbers where they are asked for), and
    no 0 unless the recipe is one that ``may_be_zero``."""

    forms: tuple[str, ...] = ()
    may_be_zero: tuple[str, ...] | None = None

    def reads(self, text: str, key: str) -> Recipe:
        return Recipe.parse(text, key)

    def checks(self, value: Recipe | None, name: str) -> None:
        if value is None:
            return
        if self.forms:
            demand(value.form in self.forms, _no_choice(f"the form of {name}", value.form, self.forms))
        if value.argument is None:
            return
        ordinary = abs(value.argument) <= LARGEST_ARGUMENT  # false for NaN
        demand(ordinary, f"{name}={value} must have a finite argument, not beyond {LARGEST_ARGUMENT:g}.")
        zero = self.may_be_zero is not None and value.argument == 0 and value.name not in self.may_be_zero
        demand(not zero, f"{name}={value} makes nothing of its distribution: give another argument than 0, or none.")


@dataclass(frozen=True)
class Recipes(_One):
    """Recipes with commas."""

    def reads(self, text: str, key: str) -> tuple[Recipe, ...]:
        return tuple(Recipe.parse(word, key) for word in text.split(","))

    def writes(self, value: tuple[Recipe, ...]) -> str:
        return ",".join(map(str, value))


def demand(condition: bool, message: str) -> None:
    """Raises ProblemError with ``message`` unless it is so."""
    if not condition:
        raise ProblemError(message)


def _no_choice(name: str, value: str, words: Iterable[str]) -> str:
    return f"{name}={quoted(value)} is not one of {', '.join(words)}."


def _integers(text: str, key: str, separator: str) -> tuple[int, ...]:
    parts = text.split(separator)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ProblemError(f"{key}={quoted(text)} is not made of whole numbers separated by {quoted(separator)}.")
    if max(map(len, parts)) > LONGEST_NUMBER:
        raise ProblemError(f"{key}={cut(text, 40)} is a number of more than {LONGEST_NUMBER} digits.")
    return tuple(map(int, parts))
