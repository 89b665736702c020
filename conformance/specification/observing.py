"""How a convention is observed: in one place after the other, and what the answers amount to.

A place is a problem: another dtype, another number of heads, one array for query, key and value. Where all places that the
implementation offers give one answer, that is its answer; else it is mixed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from conformance.errors import Unsupported, told
from conformance.problem import Problem

Ask = Callable[[Problem], np.ndarray]
Places = Literal["all", "few", "first"]  # few: for an implementation that compiles each of them; first: the first alone

MIXED, RAISES, CRASHES, TIMES_OUT = "mixed", "raises", "crashes", "times-out"
ANYWHERE = {
    MIXED: "not the same everywhere",
    RAISES: "an exception is raised",
    CRASHES: "the process ends",
    TIMES_OUT: "there is no answer within the time limit",
}  # answers that any question may have, none of them legitimate
ASKED_FIRST = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Place:
    """Where a question is asked too: ``change`` makes its problem of the first one. ``few``: also where places are dear."""

    words: str
    change: Callable[[Any], Problem]
    few: bool = False


@dataclass(frozen=True, kw_only=True)
class Observation:
    """``answer`` is that of all places, or mixed; ``first`` that of the first place. By answer, ``where`` holds the places,
    ``texts`` the text of a problem that was answered so, ``raised`` what was raised there."""

    answer: str
    first: str
    where: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str]
    raised: Mapping[str, str]

    @property
    def places(self) -> str:
        """Where which answer was seen, in words: the commonest is that of the other places."""
        *rarer, (commonest, places) = sorted(self.where.items(), key=lambda part: len(part[1]))
        told = [f"{answer!r} for {', for '.join(words)}" for answer, words in rarer]
        rest = f"in the other {len(places)} places" if len(places) > 1 else f"for {places[0]}"
        return "; ".join([*told, f"{commonest!r} {rest}"])


@dataclass(frozen=True, kw_only=True)
class Question:
    """How a convention is asked of one operation.

    ``problems`` are forms of the question, of which the first that is answered counts, in the first of ASKED_FIRST that is
    offered: what lacks one form (of a mask, of weights) is asked in another. ``read`` gets the answer to a problem with ``ask``,
    which runs the implementation and returns its output; it raises ``Unsupported`` where a feature is lacking, and lets
    exceptions through. ``places`` come after that.
    """

    problems: Callable[[], Iterable[Problem]]
    read: Callable[[Ask, Any], str]
    places: tuple[Place, ...] = ()

    def observe(self, ask: Ask, *, raising: str, places: Places) -> Observation:
        """The answer in all places, or in a few or the first alone; ``raising`` is that of a place where an exception is raised.

        Raises Unsupported where no form of the question can be asked.
        """
        seen = _SeenAnswers(raising)
        with np.errstate(all="ignore"):  # outputs may hold anything
            base, put = self._first(ask, seen)
            for place in self.places:
                if places == "all" or (places == "few" and place.few):
                    try:
                        problem = as_it_is_put(ask, place.change(base))
                    except Unsupported:
                        continue
                    if problem != put:
                        seen.put(place.words, problem, partial(self.read, ask, problem))
        return seen.observation()

    def _first(self, ask: Ask, seen: "_SeenAnswers") -> tuple[Problem, Problem]:
        """The problem that was answered first, and the same as it was put; where none is, because the implementation raises, the
        first that it does not lack."""
        for dtype in ASKED_FIRST:
            failed: tuple[Problem, Problem, Exception] | None = None
            for form in self.problems():
                problem: Problem = form.but(dtype=dtype)
                try:
                    put = as_it_is_put(ask, problem)
                except Unsupported:
                    continue
                try:
                    seen.note(put.in_words(), put, self.read(ask, put))
                    return problem, put
                except Unsupported:
                    continue
                except Exception as error:  # an implementation may raise anything
                    failed = failed or (problem, put, error)
            if failed:
                seen.note_failure(failed[1].in_words(), *failed[1:])
                return failed[:2]
        raise Unsupported("any form of the question")


def as_it_is_put(ask: Ask, problem: Problem) -> Problem:
    """The problem within the limits of shapes of whoever is asked, since answers are read by its sizes. Raises Unsupported."""
    fitted: Callable[[Problem], Problem] = getattr(ask, "fitted", lambda problem: problem)
    return fitted(problem)


class _SeenAnswers:
    """Answers, place by place."""

    def __init__(self, raising: str) -> None:
        self._raising = raising
        self._where: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}
        self._raised: dict[str, str] = {}

    def put(self, words: str, problem: Problem, read: Callable[[], str]) -> None:
        """Notes the answer that ``read`` gives; nothing where the implementation lacks what the place needs."""
        try:
            self.note(words, problem, read())
        except Unsupported:
            return
        except Exception as error:  # an implementation may raise anything
            self.note_failure(words, problem, error)

    def note(self, words: str, problem: Problem, answer: str) -> None:
        self._where.setdefault(answer, []).append(words)
        self._texts.setdefault(answer, problem.text)

    def note_failure(self, words: str, problem: Problem, error: Exception) -> None:
        self.note(words, problem, self._raising)
        self._raised.setdefault(self._raising, told(error))

    def observation(self) -> Observation:
        first = next(iter(self._where))
        return Observation(
            answer=first if len(self._where) == 1 else MIXED,
            first=first,
            where={answer: tuple(places) for answer, places in self._where.items()},
            texts=self._texts,
            raised=self._raised,
        )


def of_exception(error: BaseException) -> Observation:
    """Nothing but that it raises: what is no Exception, such as SystemExit, ends the asking."""
    return Observation(answer=RAISES, first=RAISES, where={}, texts={}, raised={RAISES: told(error)})
