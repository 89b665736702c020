"""The random cases of a requirement, the same for every implementation and process, and the shrinking of those that fail."""

from collections.abc import Callable
from functools import lru_cache
from unittest.mock import patch
from zlib import crc32

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider

from conformance.cases.strategies import Example
from conformance.cases.strategies import examples as strategy
from conformance.problem import Problem
from conformance.specification.requirement import Requirement

FREE_SHARE = 4  # one example in free shapes for so many of the palette


# Hypothesis also draws numbers that stand in the source of whatever modules happen to be loaded: other examples in every process.
WITHOUT_CONSTANTS = patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None, create=True)


class _Failing(Exception):
    """Raised in a test that Hypothesis runs, for it to shrink what raised it."""


class _Enough(BaseException):
    """Ends a run of Hypothesis, which lets everything through that is no Exception."""


@lru_cache(maxsize=16)
def corpus(requirement: Requirement, *, examples: int, seed: int, free: bool) -> tuple[Example, ...]:
    """``examples`` examples in shapes of the palette and, if ``free``, a quarter as many in free shapes behind them.

    Which they are depends on the requirement's draw, the seed and the version of Hypothesis, on nothing else. Empty for a
    requirement without a draw.
    """
    if requirement.random is None or examples < 1:
        return ()
    own_seed = _own_seed(requirement, seed)
    drawn = _drawn(strategy(requirement.random, free=False), examples, own_seed)
    if not free:
        return drawn
    return drawn + _drawn(strategy(requirement.random, free=True), -(-examples // FREE_SHARE), own_seed)


def _own_seed(requirement: Requirement, seed: int) -> int:
    """Requirements with equal draws get other examples."""
    return (seed << 32) + crc32(requirement.id.encode())


def _drawn(source: st.SearchStrategy[Example], examples: int, seed: int) -> tuple[Example, ...]:
    """The first different examples. Hypothesis begins with the simplest there is, alike for all requirements: it is left out."""
    found: dict[Example, None] = {}
    _run(lambda example: found.setdefault(example), source, examples + 1, seed, (Phase.generate,))
    return tuple(found)[1:] if len(found) > examples else tuple(found)


def _run(
    test: Callable[[Example], object], source: st.SearchStrategy[Example], examples: int, seed: int, phases: tuple[Phase, ...]
) -> None:
    @seeded(seed)
    @settings(
        max_examples=examples,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(source)
    def body(example: Example) -> None:
        test(example)

    with WITHOUT_CONSTANTS:
        body()


def shrink(
    requirement: Requirement, fails: Callable[[Problem], bool], *, seed: int, examples: int, free: bool, limit: int
) -> Problem | None:
    """The smallest problem found for which ``fails`` is true, after at most ``limit`` calls of it; None if there is none.

    Draws what ``corpus`` drew until one fails, free shapes first since they get smaller, then lets Hypothesis make its
    description simpler.
    """
    if requirement.random is None:
        return None
    search, own_seed = _Search(fails, limit), _own_seed(requirement, seed)
    for in_free_shapes in (True, False) if free else (False,):
        count = -(-examples // FREE_SHARE) if in_free_shapes else examples
        try:
            _run(search, strategy(requirement.random, in_free_shapes), count + 1, own_seed, (Phase.generate, Phase.shrink))
        except (_Failing, _Enough):
            break
    return search.smallest


class _Search:
    """A test for Hypothesis that remembers the last problem that failed: while it shrinks, Hypothesis tries simpler ones only."""

    def __init__(self, fails: Callable[[Problem], bool], limit: int) -> None:
        self.smallest: Problem | None = None
        self._fails = fails
        self._left = limit
        self._known: dict[Problem, bool] = {}
        self._variant: int | None = None  # once one has failed, the others of a description are left alone

    def __call__(self, example: Example) -> None:
        for number, problem in enumerate(example.problems):
            if self._variant in (None, number) and self._test(problem):
                self._variant, self.smallest = number, problem
                raise _Failing

    def _test(self, problem: Problem) -> bool:
        if problem not in self._known:
            if self._left == 0:
                raise _Enough
            self._left -= 1
            self._known[problem] = self._fails(problem)
        return self._known[problem]
