"""What an operation is: its problem, its arrays, how functions are called for it, and what it brings for each later room."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from conformance.numerics.dtypes import round_to
from conformance.problem.base import Problem
from conformance.problem.inputs import Arguments
from conformance.problem.recipe import Recipe
from conformance.problem.returned import OUTPUT

Array = np.ndarray
Conversion = Callable[[np.ndarray], Any]  # of an array of ours into one of a framework
Named = dict[str, Any]


class Operation(ABC):
    """One module of this folder.

    What is a fact of ``problem`` or ``inputs`` alone is said there (sizes, widths, whether queries attend to keys); what rooms
    further up need of the operation is a method here, which imports from them when it is called. ``materialise`` to
    ``simplest`` are needed to judge anything; what else has no default is asked of those alone that draw, soak or are frozen."""

    problem: ClassVar[type[Problem]]  # its problems as data
    inputs: ClassVar[type[Arguments]]  # the arrays of one
    words: ClassVar[str]

    # How functions are called for it. A feature is one of conformance/features, or follows from sizes and has no module.
    positional: ClassVar[tuple[str, ...]]  # parameters by position
    always_passed: ClassVar[tuple[str, ...]] = ()  # by name, to functions that have them;
    demanded: ClassVar[tuple[str, ...]] = ()  # of these, what functions must have
    sometimes_passed: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[Mapping[str, str]] = {}  # that stand for features without a module
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # other names of parameters
    implied: ClassVar[frozenset[str]] = frozenset()  # features that need no parameter
    returns: ClassVar[tuple[str, ...]] = (OUTPUT,)  # what may be returned (conformance/problem/returned.py)
    ways: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # to ask for features without a module, by preference (routes.py)
    zeros: ClassVar[Mapping[str, frozenset[str]]] = {}  # what must be offered for the way of that name
    orders_axes: ClassVar[bool] = False  # interfaces differ in the order of axes

    # How failures are told.
    conditions: ClassVar[Mapping[str, str]] = {}  # features without a module, as in "with grouped heads",
    absent: ClassVar[Mapping[str, str]] = {}  # and where they are not
    of_sizes: ClassVar[Mapping[str, str]] = {}  # words for sizes that are called otherwise elsewhere
    by_profile: ClassVar[bool] = True  # budgets follow a numerics profile; else the argument ``dtype`` alone

    # Faults of calls are made where there are requirements on repeated calls, stale answers, inputs, memory and form.
    prefix: ClassVar[str] = ""  # of the ids of its faults
    repeat: ClassVar[str] = ""
    stale: ClassVar[str] = ""
    untouched: ClassVar[str] = ""
    unaliased: ClassVar[str] = ""
    form: ClassVar[str] = ""

    # By passes and device, the built-in implementations to which times are relative, of which the first that is there is taken.
    baselines: ClassVar[Mapping[tuple[str, str], tuple[str, ...]]] = {}
    soak_share: ClassVar[int] = 0  # how many in a hundred or so problems of the soak test

    @property
    def name(self) -> str:
        return self.problem.operation

    # What is to be judged.

    @abstractmethod
    def materialise(self, problem: Any) -> Arguments:
        """The inputs that ``problem`` describes, bit for bit; see conformance/values/materialise.py."""

    @abstractmethod
    def truth(self, inputs: Any) -> Any:
        """What it must give (conformance/oracle/expected.py), with the budget of each element."""

    @abstractmethod
    def exactly(self, inputs: Any) -> dict[str, Array]:
        """The exact twin: ``output``, and intermediates by name, in mpmath, written apart from ``truth``."""

    @abstractmethod
    def arguments(self, inputs: Any, implementation: Any, to: Conversion, asked: Named) -> tuple[list[Any], Named]:
        """Of a call: those by position, and those by the suite's names; ``asked`` are those of features."""

    @abstractmethod
    def function(self, on: Callable[[Any], Any]) -> Callable[..., Any]:
        """``on``, of inputs, as a plain function with the parameters of the operation and of all features."""

    @abstractmethod
    def simplest(self, dtype: str, layouts: tuple[str, ...]) -> Problem:
        """The plainest problem, in a shape that the requirements have too."""

    def compute(self, inputs: Any, **own: Callable[..., Array]) -> Array:
        """The right output in the inputs' dtype, with steps of one's ``own`` where it has such (conformance/faults/steps.py):
        what faults are a difference from. The truth, rounded, unless said otherwise."""
        truth = self.truth(inputs)
        return round_to(truth.output, truth.dtype)

    # What is asked.

    def variants(self, base: Any, form: str | None) -> Iterator[Problem]:
        """``base`` with one feature more each; masks in the form ``form``, none without."""
        return iter(())

    def nulls(self, inputs: Any) -> dict[str, Array]:
        """Null models (``NULLS`` in conformance/specification/requirement.py) and what they give, in float64."""
        return {}

    def requirements(self) -> Iterable[Any]:
        """Its requirements (conformance/specification), those apart that stand in modules of their area."""
        return ()

    def conventions(self) -> Iterable[Any]:
        """Its conventions, likewise."""
        return ()

    def faults(self) -> Iterable[Any]:
        """Its faults (conformance/faults), likewise."""
        return ()

    def examples(self, draw: Any, free: bool) -> Any:
        """A strategy of examples of what ``draw`` allows (conformance/specification/draw.py, conformance/cases/strategies.py),
        in palette shapes or in free ones."""
        raise NotImplementedError  # asked only of what is drawn, soaked or frozen

    def soaked(self, dice: Any, number: int) -> Problem:
        """A random problem of the soak test, ``number`` from 1 to ``soak_share``."""
        raise NotImplementedError  # asked only of what is drawn, soaked or frozen

    def company(self, problem: Any) -> Iterable[Problem]:
        """Problems that differ from ``problem`` in one respect each, for calls between two of it."""
        return ()

    def ordinary(self) -> Iterable[Problem]:
        """What a test without a plan would try, each with one feature."""
        return ()

    def timed(self) -> Mapping[str, Problem]:
        """Problems at which calls are timed, by name."""
        return {}

    # How it is asked.

    def resolved(self, problem: Any, convention: Callable[[str], str]) -> Problem:
        """``problem`` with what it leaves to the implementation filled in by the answers of conventions."""
        return problem

    def decided_by(self, problem: Any, implementation: Any) -> Iterable[str]:
        """The conventions that must be known to say how ``problem`` is asked, beside those of features."""
        return ()

    def demand(self, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> None:
        """Raises Unsupported where ``problem`` cannot be asked, whatever its features."""
        return None

    def can(self, feature: str, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Whether what offers ``feature`` can be asked for it in that way."""
        return True

    def routes(self, problem: Any, implementation: Any, combined: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        """All routes of ``problem``, the best first; ``combined`` gives those that settle feature by feature."""
        return combined(problem)

    # What is said of failures.

    def element(self, place: tuple[int, ...], inputs: Any) -> object:
        """An element of the output, in words or by its index."""
        return place

    def pattern(self, wrong: Array, inputs: Any, rows: Array) -> str:
        """The narrowest pattern that holds all ``wrong`` elements (batch rows, rows, columns), ``rows`` those that are judged;
        empty where that of rows, columns and heads will do."""
        return ""

    # Where sizes are limited (conformance/adapter/limits.py).

    def few_sizes(self, problem: Any) -> Problem:
        """``problem`` in one of a few sizes, what is equal equal and what differs different."""
        return problem

    def fitted(self, problem: Any, fit: Any) -> Problem:
        """The nearest problem within the limits of ``fit``."""
        return problem

    # What it costs.

    def flops(self, inputs: Any) -> int:
        """Those of matrix products; 0 where there are none."""
        return 0

    def products(self, inputs: Any) -> int:
        """How many the exact twin computes."""
        return 0

    # Golden cases.

    def stored(self, problem: Any, arrays: Mapping[str, Array], asked: Named) -> Arguments:
        """The inputs of ``problem`` that these arrays amount to; ``asked`` are the arguments of features."""
        raise NotImplementedError  # asked only of what is drawn, soaked or frozen

    def frozen(self, problem: Any, inputs: Any, golden: Recipe) -> Named:
        """The fields of the problem of a golden case that are to be what the arrays are; ``golden`` stands for stored ones."""
        return {}
