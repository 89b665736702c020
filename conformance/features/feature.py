"""What a variant of attention is: its argument, its field of a problem, what it hides, how functions are asked for it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from jaxtyping import Bool

from conformance.errors import Unsupported
from conformance.problem.fields import Field
from conformance.problem.recipe import Recipe

Array = np.ndarray
OF_BOTH = ("attention", "multi_head_attention")
Conversion = Callable[[np.ndarray], Any]  # of an array of ours into one of a framework


class ScoreIndex(NamedTuple):
    """Which score: the numbers of its batch row, query head, query and key."""

    batch: int
    head: int
    query: int
    key: int


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A way to get a feature wrong, of which conformance/faults makes a fault of each operation in ``requirements``.

    Either ``rewrite``, of the inputs of attention into others, or ``chain``, of the stages of conformance/oracle/stages.py into
    others. ``needs``: what a problem must have beside the feature. In multi-head attention it is done to the heads, and its id
    begins with ``multi-head-``.
    """

    id: str
    sentence: str
    requirements: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    dtypes: tuple[str, ...] = ()  # all of them
    rewrite: Callable[[Any], Any] | None = None
    chain: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None


class Feature:
    """A variant of attention, one module of this folder; CONTRIBUTING.md says how one is added.

    ``name`` is its word, with hyphens, where implementations say what they offer and features name others; ``argument``, with
    underscores, how inputs name it, with ``default`` where it is not asked for; ``parameter`` the suite's name of it where a
    function is called, which released libraries call by the ``aliases``; ``ways`` those in which it is asked for, by preference,
    where an implementation does not say otherwise (conformance/adapter/routes.py). ``polarity``: the convention that says whether
    True means the opposite of what the suite means. ``field`` is None for what no problem asks for itself. ``condition``: as in
    "with a mask". ``positional``: it counts tokens, so that no transformation may change how many there are.

    ``of_scores`` is a stage of the computation (conformance/oracle/stages.py), ``of_logits`` one behind all of these, before the
    softmax. Either comes before those of the features that it ``precedes``, and after those that it ``follows``, by name; both
    oracles ask features in that order.

    What it brings for later rooms (requirements, conventions, faults) is made when they ask for it. ``example``: a value of its
    field for any sizes, which calls between and before others ask for (conformance/checks/company.py, ATT-OUT-027, ATT-HEAD-028).
    ``words`` name it in sentences, as in "leaves the window out". ``alone`` has the requirements that speak of it, by operation,
    ``beside`` those that speak of it together with another feature, by operation and the other's name: faults that leave it out,
    alone and beside others, are made from these (conformance/faults/of_features.py), in the dtypes of the designed problems that
    ask for both. ``meant``: what the suite means where interfaces differ, by convention, which plain functions of its own
    declare."""

    name: ClassVar[str]
    argument: ClassVar[str]
    default: ClassVar[Any] = None
    operations: ClassVar[tuple[str, ...]] = OF_BOTH
    field: ClassVar[Field | None] = None
    parameter: ClassVar[str] = ""  # the argument's name where nothing is said
    aliases: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[tuple[str, ...]] = ("native",)
    polarity: ClassVar[str] = ""
    condition: ClassVar[str] = ""
    positional: ClassVar[bool] = False
    of_scores: ClassVar[Any] = None
    of_logits: ClassVar[Any] = None
    precedes: ClassVar[tuple[str, ...]] = ()
    follows: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Any] = None
    words: ClassVar[str] = ""
    meant: ClassVar[Mapping[str, str]] = {}
    alone: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    beside: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}

    def __init_subclass__(cls) -> None:
        cls.parameter = cls.parameter or cls.argument

    @property
    def readings(self) -> tuple[str, ...]:
        """The conventions on what its parameter means."""
        return (self.polarity,) if self.polarity else ()

    @property
    def is_stored(self) -> bool:
        """Whether golden cases hold its arrays."""
        return self.field is not None and not self.field.parameter

    def given(self, problem: Any) -> Any:
        """The argument that ``problem`` asks for; its field, unless it is made into something else."""
        return self.default if self.field is None else getattr(problem, self.argument)

    @property
    def hides(self) -> bool:
        """Whether it is about which keys a query sees."""
        return type(self).visible is not Feature.visible

    def is_asked(self, inputs: Any) -> bool:
        """Whether ``inputs`` ask for it."""
        value = getattr(inputs, self.argument)
        return isinstance(value, np.ndarray) or value != self.default

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "#b #hq #rows #lk"] | None:
        """Which keys the query rows ``start`` … ``stop`` − 1 may attend to as far as it is concerned; None for all."""
        return None

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        """The exact twin of ``visible``, written apart from it: hides in place what it hides."""

    def check(self, problem: Any) -> None:
        """Raises ProblemError where its field does not go with others of ``problem``, which asks for it."""

    def stored(self, problem: Any, inputs: Any, stands_for: Recipe) -> Any:
        """The field of the golden problem that holds the arrays of ``inputs``, made by ``problem``; ``stands_for`` is its recipe
        for what is stored."""
        value = getattr(problem, self.argument)
        return replace(stands_for, form=value.form) if self.is_stored and value is not None else value

    def along(self, value: Any, axis: int, index: Array) -> Any:
        """The argument for those alone, in that order, of which ``index`` holds the numbers: batch rows (axis −4), query heads
        (−3), queries (−2) or keys (−1)."""
        return value

    def compiled_as(self, inputs: Any) -> Hashable:
        """What of an argument that is no array a compiler sees."""
        return cast(Hashable, getattr(inputs, self.argument))

    def drawn(self, problem: Any, between: Callable[[int, int], int]) -> Any:
        """A value of its field for ``problem``, where many random problems are made; ``between`` draws whole numbers."""
        return self.default

    def score_exactly(self, mp: Any, score: Any, inputs: Any, place: ScoreIndex) -> Any:
        """The exact twin of ``of_scores``, in numbers of mpmath: what is made of a scaled product, or of what the features before
        have made of it, where nothing hides it."""
        return score

    def added_keys(self, inputs: Any) -> int:
        """How many keys there are beside those of the inputs, each with V = 0, whose logits ``of_logits`` sets."""
        return 0

    def added_exactly(self, mp: Any, inputs: Any, head: int) -> list[Any]:
        """The exact twin: their logits, for a query head."""
        return []

    def requirements(self) -> Iterable[Any]:
        """Its own requirements (conformance/specification)."""
        return ()

    def conventions(self) -> Iterable[Any]:
        """Its own conventions."""
        return ()

    def passed(self, inputs: Any, implementation: Any, to: Conversion, known: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        """The arguments of a call by the suite's names, where it is asked for; ``known``: answers of conventions."""
        value = getattr(inputs, self.argument)
        yield self.parameter, to(value) if isinstance(value, np.ndarray) else value

    def plain(self) -> dict[str, Any]:
        """The parameters by which a plain function is asked for it, with their defaults."""
        return {self.parameter: self.default}

    def read(self, named: Mapping[str, Any]) -> Any:
        """The argument that a call of such a function asks for, ``named`` its parameters: what ``passed`` has made of it."""
        return named[self.parameter]

    def faults(self) -> tuple[Wrong, ...]:
        """Ways to get it wrong beyond leaving it out; made when they are asked for."""
        return ()

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Whether the implementation, which offers what ``way`` needs, can be asked for what ``problem`` says in that way."""
        return True

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        """What is raised where there is no way."""
        return Unsupported(self.name, self.name)

    def decided_by(self, problem: Any, implementation: Any) -> tuple[str, ...]:
        """The conventions that must be known to say how it is asked for."""
        return ()
