"""The Python interface: one function judged on one requirement or one problem, in this process, with verdicts as objects."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.adapter import Implementation, Support
from conformance.adapter.declarations import demand_sense
from conformance.adapter.registry import DEFAULT_FRAMEWORK, builtin, frameworks
from conformance.checks.procedures import PROCEDURES
from conformance.errors import Unsupported, UsageError, quoted
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome, Verdict
from conformance.problem import Problem, parse
from conformance.specification import requirements
from conformance.values.golden import case_of, load_cases


@dataclass(frozen=True)
class Judged:
    """What became of a problem: its text, the route by which it was put, the verdict. Of what the function cannot be asked the
    outcome is UNSUPPORTED, and the message says what is lacking."""

    problem: str
    route: str
    verdict: Verdict

    @property
    def passes(self) -> bool:
        return self.verdict.outcome is Outcome.PASS


def judge(function: Callable[..., Any] | str, asked: str, *, support: Support | None = None) -> tuple[Judged, ...]:
    """``function``, or the name of a built-in implementation, judged on what is ``asked``: the id of a requirement (its golden
    and designed problems), of a golden case, or the text of a problem.

    ``support``: what the function declares; else its attribute ``conformance``, or nothing. It runs in this process: one that
    hangs or ends it does so here, other than in ``attention-conformance run``. Raises UsageError for what is unknown, for a
    declaration that makes no sense, and where the framework cannot be used here.
    """
    subject, judging = Subject(_implementation(function, support)), Judge()
    missing = subject.implementation.missing()
    if missing:
        raise UsageError(f"{subject.implementation.name} cannot run here: {missing}")
    return tuple(judged for problem, check in _asked(asked) for judged in _judged(subject, judging, problem, check))


def _implementation(function: Callable[..., Any] | str, support: Support | None) -> Implementation:
    if isinstance(function, str):
        if function not in builtin():
            raise UsageError(f"There is no built-in implementation {quoted(function)}: there are {', '.join(builtin())}.")
        return builtin()[function]
    declared = support or getattr(function, "conformance", None) or Support()
    known = frameworks()
    framework = declared.framework or DEFAULT_FRAMEWORK
    if framework not in known:
        raise UsageError(f"There is no framework {quoted(framework)}: there are {', '.join(known)}.")
    name = getattr(function, "__name__", type(function).__name__)
    implementation = Implementation(name, function, declared, known[framework])
    demand_sense(implementation)
    return implementation


def _asked(asked: str) -> Iterator[tuple[Problem, str]]:
    """The problems, each with the name of the procedure by which it is checked."""
    word = asked.strip()
    if " " in word:
        yield parse(word), "values"
    elif word.upper().startswith("GOLD-"):
        case = case_of(word)
        yield case.problem, requirements()[case.requirement].check
    elif word.upper() in requirements():
        requirement = requirements()[word.upper()]
        frozen = [case.problem for case in load_cases() if case.requirement == requirement.id]
        for problem in (*frozen, *requirement.designed()):
            yield problem, requirement.check
    else:
        raise UsageError(f"{quoted(word)} is no id of a requirement or golden case, and no problem's text.")


def _judged(subject: Subject, judging: Judge, problem: Problem, check: str) -> Iterator[Judged]:
    try:
        put = subject.fitted(problem) if problem.values.name != "golden" else problem
        for judgement in PROCEDURES[check](judging, subject, put):
            yield Judged(judgement.problem.text, judgement.route, judgement.verdict)
    except Unsupported as lacking:
        yield Judged(problem.text, "", Verdict(Outcome.UNSUPPORTED, f"It cannot be asked: {lacking} is not offered."))
