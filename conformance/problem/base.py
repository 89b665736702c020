"""A problem: values of described fields, unchangeable, equal to another where the texts are."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import cache, cached_property
from typing import Any, ClassVar, Self

from conformance.errors import ProblemError, cut, quoted
from conformance.problem.fields import NEEDED, Field, demand
from conformance.problem.recipe import Recipe

LARGEST_ARRAY = 2**36  # elements; an array of float32 then has 256 GiB


class Problem:
    """Made with the values of its fields by name; those left out have their defaults. Raises ProblemError for values that
    describe no problem.

    An operation's own class has besides, from its sizes: ``work``, B·H·Lq·Lk·d or as many numbers as there are; ``cost``, the
    products of one call, roughly; ``longest``, its largest length; ``head_widths()``, those of a head by name, or whatever
    limits of widths are about; ``shapes()``, of those arrays, the output among them, that sizes alone give; ``in_words()``."""

    operation: ClassVar[str]
    attends: ClassVar[bool] = False  # whether queries attend to keys
    sizes: ClassVar[tuple[str, ...]]  # its fields that are sizes
    BEFORE: ClassVar[tuple[Field, ...]]  # the operation's own fields, in the order of the text, before those of features
    BEHIND: ClassVar[tuple[Field, ...]] = ()  # and behind the first ones of them

    layout: str = "contiguous"  # where there is no choice
    transformations: tuple[Recipe, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """The field of a feature that the operation has not, which nobody asks for: no mask, no key lengths."""
        from conformance.features import unasked

        return unasked(name, of_problem=True)

    @classmethod
    def has(cls, name: str) -> bool:
        """Whether the attribute ``name`` is one of its fields."""
        return name in cls._owners()

    @property
    def is_drawn(self) -> bool:
        """Whether other seeds give it other numbers."""
        return self.values.name != "golden"

    @classmethod
    @cache
    def fields(cls) -> tuple[Field, ...]:
        """All fields, those of features included, in the order of the text."""
        from conformance.features import is_first

        found = [(feature.field, is_first(feature)) for feature in _features(cls.operation) if feature.field is not None]
        first = [field for field, early in found if early]
        return (*cls.BEFORE, *first, *cls.BEHIND, *(field for field, early in found if not early))

    def __init__(self, **given: Any) -> None:
        owners = self._owners()
        defaults = {name: field.defaults[field.names.index(name)] for name, field in owners.items()}
        lacking = [name for name, default in defaults.items() if default is NEEDED and name not in given]
        if lacking:
            raise TypeError(f"{type(self).__name__} needs {lacking[0]}.")
        self._take(defaults, given)

    def _take(self, values: dict[str, Any], changes: dict[str, Any]) -> None:
        """Has ``values`` with ``changes``, which are checked."""
        owners = self._owners()
        unknown = [name for name in changes if name not in owners]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {unknown[0]}.")
        self.__dict__.update(values)
        self.__dict__.update(changes)
        for field in {owners[name]: None for name in changes}:
            field.kind.check(field.values(self), field.names)
        self.check()
        for feature, field in self._of_features():
            if field.values(self) != field.defaults:
                feature.check(self)

    @classmethod
    @cache
    def _of_features(cls) -> tuple[tuple[Any, Field], ...]:
        return tuple((feature, feature.field) for feature in _features(cls.operation) if feature.field is not None)

    @classmethod
    @cache
    def _owners(cls) -> dict[str, Field]:
        """The field of each attribute."""
        return {name: field for field in cls.fields() for name in field.names}

    def check(self) -> None:
        """Raises ProblemError where fields do not go together."""

    @cached_property
    def text(self) -> str:
        """The text form, from which ``parse`` makes an equal problem."""
        said = [f"{field.key}={field.kind.write(field.values(self))}" for field in self.fields() if field.is_said(self)]
        return " ".join([self.operation, *said])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The problem that ``text`` describes. Raises ProblemError, with what is wrong, for one that describes none."""
        words = _split(text, [field.key for field in cls.fields()])
        values: dict[str, Any] = {}
        for field in cls.fields():
            if field.key in words:
                values |= zip(field.names, field.kind.read(words[field.key], field.key), strict=True)
            elif field.required:
                raise ProblemError(f"The problem text lacks {field.key}=….")
        return cls(**values)

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the text (of SHA-256)."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @cached_property
    def features(self) -> frozenset[str]:
        """What an implementation must offer beyond the plain operation to be asked this."""
        return frozenset([name for name, asked in self._asks() if asked(self)])

    @classmethod
    @cache
    def _asks(cls) -> tuple[tuple[str, Callable[[Any], bool]], ...]:
        return tuple(asked for field in cls.fields() for asked in field.asks.items())

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """What golden cases list beside the arrays that they hold."""
        listed = (field for field in self.fields() if field.parameter and (field.frozen or field.values(self) != field.defaults))
        return {name: getattr(self, name) for field in listed for name in field.names}

    def but(self, **changes: Any) -> Self:
        """The same problem with some fields changed."""
        other = object.__new__(type(self))
        other._take({name: self.__dict__[name] for name in self._owners()}, changes)
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"A problem cannot be changed: use but({name}=…).")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError("A problem cannot be changed.")


def _features(operation: str) -> tuple[Any, ...]:
    from conformance.features import features  # which are looked for when there is a problem, and not before

    return features(operation)


def demand_size(*sizes: int) -> None:
    """Raises ProblemError for an array that is larger than any machine can be asked to hold."""
    count = math.prod(sizes)
    demand(
        count <= LARGEST_ARRAY, f"An array of {' × '.join(map(str, sizes))} elements is too large: {LARGEST_ARRAY} are the most."
    )


class KeyProblem(Problem):
    """A problem in which queries attend to keys. A class has besides: ``head_width``, of queries and keys; ``is_whole``, whether
    heads divide what they share; ``sizes_of_heads()``, what each head, or each key head, has of the sizes."""

    attends = True
    batch: int
    heads: int
    query_length: int
    key_length: int

    def check(self) -> None:
        """Also where there is not a key length from 0 to that of the keys for each batch row, or none at all."""
        lengths = self.key_lengths
        demand(
            lengths is None or (len(lengths) == self.batch and all(0 <= n <= self.key_length for n in lengths)),
            f"lengths={cut(str(lengths))} must be {self.batch} numbers from 0 to the key length {self.key_length}.",
        )

    @property
    def work(self) -> Any:
        return self.batch * self.heads * self.query_length * self.key_length * self.head_width

    @property
    def longest(self) -> int:
        return max(self.query_length, self.key_length)

    def in_words(self) -> str:
        heads = f"{self.heads} head{'' if self.heads == 1 else 's'}"
        return f"{heads} with {self.query_length} queries and {self.key_length} keys in {self.dtype}"


def _split(text: str, known: list[str]) -> dict[str, str]:
    """The words of a problem's text by key, the leading operation left out."""
    words: dict[str, str] = {}
    for word in text.split()[1:]:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise ProblemError(f"{quoted(word)} in the problem text is not of the form name=value.")
        demand(key in known, f"The problem text has an unknown field {quoted(key)}: known are {', '.join(known)}.")
        demand(key not in words, f"The problem text gives {quoted(key)} twice.")
        words[key] = value
    return words
