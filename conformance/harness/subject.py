"""Puts a problem to an implementation: resolves open conventions, folds, converts, calls, reads back. Judges nothing."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from conformance.adapter import Compiles, Implementation
from conformance.adapter.limits import fitted, outside_arrays
from conformance.adapter.routes import Route, all_routes, default_route, fold
from conformance.errors import Declined, LeftOut, ProblemError, Unsupported, demand_own, end_if_forked, told
from conformance.features import features
from conformance.harness.given import Given
from conformance.harness.prepared import Copies, PreparedCall, named_arrays, surroundings
from conformance.harness.shape_budget import affordable, shape_of
from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.problem.returned import LSE
from conformance.specification import conventions
from conformance.specification.observing import Observation, Places, of_exception
from conformance.specification.requirement import Convention
from conformance.system.floating_point import FloatingPoint
from conformance.values import materialise

LOG2_E = float(np.log2(np.e))


class Subject:
    """An implementation under test, with the answers to the conventions that decide how it must be asked.

    ``conventions`` holds what is declared; what is not is observed when first needed. ``announce`` is told each problem before
    it is put, with the convention that it is to answer or nothing.
    """

    def __init__(
        self, implementation: Implementation, announce: Callable[[Problem, str], None] = lambda problem, convention: None
    ) -> None:
        self.implementation = implementation
        self.announce = announce
        self.conventions: dict[str, str] = dict(implementation.support.conventions)
        self._observations: dict[tuple[str, Places], Observation | None] = {}
        self.declined: Counter[str] = Counter()  # calls of questions about conventions
        self.calls = 0
        self.floating_point = FloatingPoint()
        self.compiled: int | None = None  # calls of code that was compiled as a whole; None where nothing is known of it
        self._given_up = 0

    def resolve(self, problem: Problem) -> Problem:
        """``problem`` with what was left to the implementation filled in, such as the arrangement of a sinusoidal encoding."""
        return operation_of(problem).resolved(problem, self.convention)

    def call(self, prepared: PreparedCall) -> Any:
        """Runs the call, and counts it where it may be compiled or not. A process that the implementation forks ends here."""
        try:
            with self.floating_point:
                return self._call(prepared)
        finally:
            end_if_forked()

    def _call(self, prepared: PreparedCall) -> Any:
        framework = self.implementation.framework
        if not self.implementation.support.compiles or not isinstance(framework, Compiles):
            return prepared.run()
        compiled, given_up = framework.compilations()
        self.calls += 1
        try:
            output = prepared.run()
        except BaseException:  # of the implementation, which is judged elsewhere
            self.calls -= 1
            self._given_up = 0
            framework.forget_compiled()
            raise
        now = framework.compilations()
        self._given_up += now[1] - given_up
        if now[0] > compiled or self._given_up:
            self.compiled = self.compiled or 0
        if self.compiled is not None and not self._given_up:
            self.compiled += 1
        return output

    @cached_property
    def _shapes(self) -> frozenset[Hashable]:
        return affordable(self.implementation, self._within_limits)

    def demand_affordable(self, problem: Problem) -> None:
        """Raises LeftOut where the problem is beyond the declared budget of shapes, Unsupported where something lacks anyway."""
        number = self.implementation.support.shapes
        if number is None:
            return
        self.route(self.resolve(problem))
        if shape_of(materialise(problem)) not in self._shapes:
            raise LeftOut(f"beyond its budget of {number} shapes")

    def fitted(self, problem: Problem, turn: int = 0) -> Problem:
        """The nearest problem within the declared limits of shapes, ``problem`` itself where it is; see ``limits.fitted``.

        Raises LeftOut where there is none.
        """
        return self._within_limits(problem, turn)

    def _within_limits(self, problem: Problem, turn: int = 0) -> Problem:
        support = self.implementation.support
        if support.causal != "always" or not problem.attends or support.square:
            return fitted(problem, support, turn=turn)
        return fitted(problem, support, alignment=self.convention("CON-ALIGNMENT"), turn=turn)

    def convention(self, identifier: str) -> str:
        """The declared answer, or the observed one, by which it is asked and judged; "unsupported" where it cannot be observed.

        One place is enough to know it, but for the alignment: a triangle that does not lie the same everywhere is not used.
        """
        if identifier not in self.conventions:
            everywhere = identifier.endswith("-ALIGNMENT")
            observed = self.observation(identifier, "all" if everywhere else "first")
            answer = observed and (observed.answer if everywhere else observed.first)
            self.conventions[identifier] = answer or "unsupported"
        return self.conventions[identifier]

    def observe(self, identifier: str) -> str:
        """The answer that the implementation's outputs give in all places, whatever is declared; or "unsupported"."""
        observed = self.observation(identifier)
        return "unsupported" if observed is None else observed.answer

    def observation(self, identifier: str, places: Places = "all") -> Observation | None:
        """What the implementation's outputs answer; None where it lacks a feature that the question needs.

        Where each place costs a compilation, a few of them stand for all.
        """
        if places == "all" and self.implementation.support.compiles:
            places = "few"
        key = identifier, places
        if key not in self._observations:
            self._observations[key] = self._observe(identifier, places)
        return self._observations[key]

    def unit_of(self, output: str) -> float:
        """By what the values that the oracle gives for an output are to be multiplied: log₂ e of a log-sum-exp to the base 2."""
        return LOG2_E if output == LSE and self.convention("CON-LSE-BASE") == "base-2" else 1.0

    def _observe(self, identifier: str, places: Places) -> Observation | None:
        question, operation = conventions()[identifier], self.implementation.operation
        if not question.is_asked_of(operation, self.implementation.support.returns):
            return None
        of_features = {name for feature in features(operation) for name in feature.readings}
        known = {} if identifier in of_features else self._readings(self.implementation.features)
        try:
            return question.observe(Asking(self, question, known), operation, places=places)
        except Unsupported:
            return None
        except BaseException as error:
            demand_own(error)
            return of_exception(error)

    def route(self, problem: Problem) -> Route:
        """The way in which ``problem`` is put; raises Unsupported, with what is lacking."""
        return default_route(problem, self.implementation, self._known(problem))

    def routes(self, problem: Problem) -> list[Route]:
        return list(all_routes(problem, self.implementation, self._known(problem)))

    def _known(self, problem: Problem) -> dict[str, str]:
        """The conventions, those observed that decide on the route of ``problem``."""
        for identifier in operation_of(problem).decided_by(problem, self.implementation):
            self.convention(identifier)
        for feature in features(problem.operation):
            if feature.name in problem.features & self.implementation.features:
                for identifier in feature.decided_by(problem, self.implementation):
                    self.convention(identifier)
        return self.conventions

    def prepare(self, inputs: Inputs, route: Route) -> PreparedCall:
        """The call for ``inputs`` put in the way ``route``. Raises what the framework's conversion or the binding raises."""
        given = set(route.ways.values())
        given |= {feature.name for feature in features(inputs.operation) if feature.readings and feature.is_asked(inputs)}
        return self._bind(inputs, route, self._readings(given))

    def _ask(self, question: Convention, problem: Problem, known: Mapping[str, str]) -> np.ndarray:
        """The output for a problem of a convention, the alignment, arrangement and frequencies left open."""
        problem = self.takeable(problem, question.id)
        routes = all_routes(problem, self.implementation, self.conventions)
        route = next((route for route in routes if not question.by or question.by in route.ways.values()), None)
        if route is None:
            raise Unsupported(f"{question.by} by a parameter of its own")
        if question.native and route.ways:
            raise Unsupported(f"{' and '.join(sorted(route.ways))} by a parameter of its own")
        try:
            inputs = materialise(problem)
        except ProblemError as error:
            raise Unsupported(str(error)) from None
        self.announce(problem, question.id)
        try:
            prepared = self._bind(inputs, route, known)
            return prepared.read_as(question.output, prepared.parts(self.call(prepared))[question.output])
        except self.implementation.support.declines as error:
            if "refused" in question.legitimate:
                raise
            self.declined[question.id] += 1
            raise Declined(f"declined: {told(error)}") from None

    def takeable(self, problem: Problem, identifier: str) -> Problem:
        """A convention's problem with one memory for key and value where the implementation takes no two, within its limits."""
        if "separate-values" in problem.features - self.implementation.features:
            problem = problem.but(source="memory")
        if identifier == "CON-ALIGNMENT":
            problem = problem.but(causal="default")
            return fitted(problem, self.implementation.support)
        return self.fitted(problem)

    def _readings(self, given: Collection[str]) -> dict[str, str]:
        """What the parameters of the features that are ``given`` mean, by convention."""
        offered = self.implementation.features.intersection(given)
        asked = [feature for feature in features(self.implementation.operation) if feature.name in offered]
        return {identifier: self.convention(identifier) for feature in asked for identifier in feature.readings}

    def _bind(self, inputs: Inputs, route: Route, known: Mapping[str, str]) -> PreparedCall:
        framework = self.implementation.framework
        around = surroundings(framework, inputs)
        if around is not None:
            with around():
                return self._bound(inputs, route, known, around)
        return self._bound(inputs, route, known, None)

    def _bound(
        self,
        inputs: Inputs,
        route: Route,
        known: Mapping[str, str],
        around: Callable[[], AbstractContextManager[None]] | None,
    ) -> PreparedCall:
        support, framework = self.implementation.support, self.implementation.framework
        folded = fold(inputs, route, support.mask_forms)
        beyond = outside_arrays(folded, support)
        if beyond:
            raise LeftOut(beyond)

        given: list[Given] = []
        copies = Copies()

        def to(array: np.ndarray) -> Any:
            copy = copies.of(array)
            given.append(Given(framework.from_numpy(copy, support.device), array, copy))
            return given[-1].array

        operation = operation_of(folded)
        positional, named = operation.arguments(folded, self.implementation, to, self._asked(folded, to, known))
        unbound = partial(self.implementation.function, *positional, **self.implementation.spelled(named))
        call = self._made(unbound) if support.binds else unbound
        arrays = named_arrays(operation.name, positional, named)
        swap = support.axes == "blhd" and operation.orders_axes
        return PreparedCall(framework, call, arrays, swap, unbound, around, tuple(given), support.returns)

    def _made(self, unbound: Callable[[], Any]) -> Any:
        """The computation that a function which binds returns."""
        try:
            with self.floating_point:
                return unbound()
        finally:
            end_if_forked()

    def _asked(self, inputs: Inputs, to: Callable[[np.ndarray], Any], known: Mapping[str, str]) -> dict[str, Any]:
        """The arguments of features, by the suite's names."""
        named: dict[str, Any] = {}
        for feature in features(inputs.operation):
            if feature.is_asked(inputs):
                inverted = feature.polarity and known.get(feature.polarity) == "true-ignores"
                turned = (lambda array: to(~array)) if inverted else to
                named |= feature.passed(inputs, self.implementation, turned, known)
        return named


@dataclass(frozen=True)
class Asking:
    """How a convention asks: called with a problem it gives the output, ``fitted`` says which problem will be put for one."""

    subject: Subject
    question: Convention
    known: Mapping[str, str]

    def __call__(self, problem: Problem) -> np.ndarray:
        return self.subject._ask(self.question, problem, self.known)

    def fitted(self, problem: Problem) -> Problem:
        return self.subject.takeable(problem, self.question.id)
