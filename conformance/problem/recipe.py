"""Recipes: the one-word descriptions from which masks, biases and values are made again, bit for bit.

gaussian.1#42            distribution ``gaussian``, version 1, seed 42
random.1:b1qk#7          mask kind ``random`` in broadcast form (B, 1, Lq, Lk)
offset.1*100000.0#3      with an argument
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conformance.errors import ProblemError, quoted

LARGEST_SEED = 2**64 - 1
_PATTERN = re.compile(
    r"(?P<name>[a-z][a-z0-9-]*)\.(?P<version>[0-9]{1,9})(?::(?P<form>[a-z0-9]+))?(?:\*(?P<argument>[-+.0-9a-z]+))?(?:#(?P<seed>[0-9]{1,20}))?"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named, versioned way to make something."""

    name: str
    seed: int = 0
    form: str = ""
    argument: float | None = None
    version: int = 1

    def __post_init__(self) -> None:
        if self.argument is not None and self.argument != self.argument:
            object.__setattr__(self, "argument", math.nan)  # one NaN object, so that equal recipes compare equal

    def __str__(self) -> str:
        form = f":{self.form}" if self.form else ""
        argument = "" if self.argument is None else f"*{float(self.argument)!r}"
        return f"{self.name}.{self.version}{form}{argument}#{self.seed}"

    @classmethod
    def parse(cls, text: str, field: str) -> "Recipe":
        match = _PATTERN.fullmatch(text)
        if not match:
            raise ProblemError(
                f"{field}={quoted(text)} is not of the form name.version[:form][*argument]#seed, such as gaussian.1#42."
            )
        argument = match["argument"]
        try:
            number = None if argument is None else float(argument)
        except ValueError:
            raise ProblemError(f"The argument {quoted(argument)} of {field}={quoted(text)} is not a number.") from None
        seed = int(match["seed"] or 0)
        if seed > LARGEST_SEED:
            raise ProblemError(f"The seed of {field}={quoted(text)} has more than 64 bits.")
        return cls(match["name"], seed, match["form"] or "", number, int(match["version"]))


class Cookbook:
    """The recipes of one field (value distributions, masks, biases, transformations): each is one decorated function."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._entries: dict[str, tuple[int, Callable[..., Any]]] = {}

    def entry(self, name: str, version: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            assert name not in self._entries, name
            self._entries[name] = (version, function)
            return function

        return register

    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def describe(self, name: str) -> str:
        return (self._entries[name][1].__doc__ or "").strip()

    def find(self, recipe: Recipe) -> Callable[..., Any]:
        """The function that makes ``recipe``; raises ProblemError for an unknown name or another version."""
        if recipe.name not in self._entries:
            raise ProblemError(f"Unknown {self.field} {quoted(recipe.name)}: there are {', '.join(self._entries)}.")
        version, function = self._entries[recipe.name]
        if recipe.version != version:
            raise ProblemError(
                f"This suite has version {version} of {self.field} {quoted(recipe.name)}, the text asks for version "
                f"{recipe.version}: use the suite version that wrote it."
            )
        return function
