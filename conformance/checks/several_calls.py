"""How requirements that speak of several calls are checked: whether an output belongs to its own inputs, whatever was asked
before, and stays so, whatever is asked afterwards."""

from dataclasses import replace

from conformance.checks.company import company, difference
from conformance.checks.one_changed import one_changed
from conformance.errors import ProblemError, Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge, Judgement
from conformance.judging.verdict import Outcome, Verdict
from conformance.problem import Problem


def check_stale(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The problem; another one of the same shapes; the problem with one element changed in one argument after the other, in the
    same memory; the problem again: each output must belong to its own inputs, and stay so.

    It is held against the truth: of an output that belongs to no inputs that the suite has, nothing else can be told.
    """
    first = judging.values(subject, problem)
    other = problem.but(values=replace(problem.values, seed=problem.values.seed + 1))
    second = _named_stale(judging, subject, first.problem, judging.values(subject, other), "which had other values")
    judgements = [first, second, *_afterwards(judging, subject, first)]
    for what, changed in one_changed(first.problem, judging.inputs(first.problem)):
        judgement = judging.values(subject, changed, in_memory_of=first.prepared)
        judgements.append(_named_stale(judging, subject, first.problem, judgement, f"from which {what} differs"))
    return [*judgements, judging.values(subject, problem, in_memory_of=first.prepared)]


def check_sequence(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The problem, another one, the problem, yet another one, the problem …: in other shapes and dtypes, with other arguments.

    Each output must be that of its own inputs when it comes, and still at the end; inputs of earlier calls must stay as they
    were. After the first failure there is no more to see: what follows may only be its consequence.
    """
    calls = [judging.values(subject, problem)]
    for other in company(calls[0].problem):
        if calls[-1].verdict.outcome is not Outcome.PASS:
            return calls
        judgement = _asked(judging, subject, other)
        if judgement is None:
            continue
        calls.append(_told(judgement, _first_asked(judging, subject, judgement, problem)))
        if judgement.verdict.outcome is Outcome.PASS:
            again = judging.values(subject, problem)
            calls.append(_told(again, f"It was right before the call with {difference(judgement.problem, problem)}."))
    late = (found for call in calls for found in (*_afterwards(judging, subject, call), *_inputs_afterwards(call)))
    return [*calls, *late]


def _asked(judging: Judge, subject: Subject, problem: Problem) -> Judgement | None:
    """What becomes of ``problem``, or of the nearest within limits; None where it is not offered."""
    try:
        put = subject.fitted(problem)
        subject.demand_affordable(put)
        return judging.values(subject, put)
    except (Unsupported, ProblemError):
        return None


def _first_asked(judging: Judge, subject: Subject, judgement: Judgement, before: Problem) -> str:
    """What can be said of a failure in company: what came before, and whether it stays. Asked alone it can be in a process of its
    own only."""
    if judgement.verdict.outcome is Outcome.PASS:
        return ""
    again = judging.values(subject, judgement.problem).verdict.outcome
    stays = "is right" if again is Outcome.PASS else f"is {again} too"
    return (
        f"It was asked with {difference(judgement.problem, before)}, after a call without that; asked again at once it {stays}. "
        f"Whether it is right alone, `reproduce` tells: '{judgement.problem.text}'."
    )


def _told(judgement: Judgement, more: str) -> Judgement:
    """``judgement`` with ``more`` said where it is a failure."""
    if judgement.verdict.outcome is Outcome.PASS:
        return judgement
    return replace(judgement, verdict=replace(judgement.verdict, message=f"{judgement.verdict.message} {more}".strip()))


def _afterwards(judging: Judge, subject: Subject, earlier: Judgement) -> list[Judgement]:
    """The output of an earlier call, judged again if it was right: it may lie in memory that a later call has written to."""
    if earlier.output is None or earlier.verdict.outcome is not Outcome.PASS:
        return []
    verdict = judging.verdict(earlier.outputs, subject, earlier.problem, earlier.profile)
    if verdict.outcome is Outcome.PASS:
        return []
    return [_told(replace(earlier, verdict=verdict), "A later call changed this output, which was right.")]


def _inputs_afterwards(earlier: Judgement) -> list[Judgement]:
    """A failure where the inputs of an earlier call, which left them alone, were changed by a later one."""
    if earlier.prepared is None or earlier.verdict.outcome is not Outcome.PASS or not (changed := earlier.prepared.changed()):
        return []
    message = f"A later call reached the inputs of this one. {changed}"
    return [replace(earlier, verdict=Verdict(Outcome.MUTATED_INPUT, message))]


def _named_stale(judging: Judge, subject: Subject, earlier: Problem, judgement: Judgement, how: str) -> Judgement:
    """Says so where a wrong output is the right one for a call before, which differed ``how``."""
    if judgement.verdict.outcome is not Outcome.WRONG_VALUE or judgement.output is None:
        return judgement
    name = judgement.verdict.output
    before = judging.verdict_of(name, judgement.outputs[name], subject, earlier, judgement.profile)
    return _told(judgement, f"It is the {name} of the call before, {how}.") if before.outcome is Outcome.PASS else judgement
