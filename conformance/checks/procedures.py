"""How each kind of requirement is checked on one problem. A procedure returns judgements, of which the worst counts
(``judging.worst``).

``PROCEDURES`` maps the names of ``specification.model.CHECKS`` to functions of (judge, subject, problem). Each raises
Unsupported where the implementation does not offer what the problem needs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from conformance.adapter.limits import largest_score
from conformance.adapter.routes import Route
from conformance.checks.fully_masked_rows import judge_fully_masked_rows
from conformance.checks.other_dtypes import check_bias_dtype, check_lengths_dtype
from conformance.checks.several_calls import check_sequence, check_stale
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import CompletedCall, Failed, Judge, Judgement, agree
from conformance.judging.systematic_error import biases
from conformance.judging.verdict import Outcome, Verdict, judge, judge_form
from conformance.numerics.dtypes import float_type
from conformance.numerics.profiles import roundoffs
from conformance.problem import Problem
from conformance.problem.inputs import AttentionInputs
from conformance.problem.returned import LSE, OUTPUT, WEIGHTS

REPETITIONS = 3
Procedure = Callable[[Judge, Subject, Problem], list[Judgement]]


def check_values(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    return [judging.values(subject, problem)]


def check_exact(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The output is the number that is expected, to the last bit; problems of this check have such answers, and profiles hold
    them."""
    judgement = judging.values(subject, problem)
    if judgement.output is None or judgement.verdict.outcome is not Outcome.PASS:
        return [judgement]
    expected = judging.expected(judgement.problem, judgement.profile, subject.implementation.support)
    kind = float_type(expected.dtype)
    half_apart = 0.5 * (kind.unit_roundoff * np.abs(expected.output).astype(np.float64) + kind.subnormal)
    verdict = judge(judgement.output, replace(expected, budget=half_apart))
    if verdict.outcome is not Outcome.PASS:
        judgement = replace(judgement, verdict=replace(verdict, message=f"{verdict.message} It is known to the last bit."))
    return [judgement]


def check_beyond(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """As values; but where numbers are beyond what algorithms hold, what is not finite, and rows of zeros, are the business of a
    convention. Where infinity is expected, that alone is."""
    judgement = judging.values(subject, problem)
    verdict = judgement.verdict
    wrong = verdict.outcome in (Outcome.NONFINITE, Outcome.WRONG_VALUE)
    if judgement.output is None or not wrong or verdict.output != OUTPUT:
        return [judgement]
    inputs = judging.inputs(judgement.problem)
    expected = judging.expected(judgement.problem, judgement.profile, subject.implementation.support)
    got, infinite = expected.rows_of(judgement.output).astype(np.float64), ~np.isfinite(expected.output)
    lost = infinite if infinite.any() else np.full(got.shape, inputs.plain is not None and is_beyond(inputs.plain))
    lost = lost & (~np.isfinite(got) | (got == 0).all(-1, keepdims=True))
    verdict = judge(judgement.output, replace(expected, judged=expected.judged & ~lost))
    if verdict.outcome is Outcome.PASS:
        verdict = replace(verdict, message=f"{int(lost.sum())} elements are NaN, infinite or 0, which a convention is about.")
        judgement = replace(judgement, verdict=verdict)
    return [judgement]


def check_routes(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The problem by every route that there is; where one fails, its name stands in the judgement."""
    return [judging.values(subject, problem, route) for route in subject.routes(subject.resolve(problem))]


def check_form(judging: Judge, subject: Subject, problem: Problem, shape: bool = True, dtype: bool = True) -> list[Judgement]:
    """The output's ``shape`` and ``dtype``, as asked for; its values are the business of others."""
    problem, route, profile = _settle(judging, subject, problem)
    try:
        run = judging.run(subject, problem, route)
    except Failed as failure:
        return [Judgement(problem, str(route), failure.verdict, profile)]
    verdict = run.settled(judge_form(run.output, judging.expected(problem, profile), shape=shape, dtype=dtype))
    return [Judgement(problem, str(route), verdict, profile, run.seconds)]


def check_output(judging: Judge, subject: Subject, problem: Problem, output: str) -> list[Judgement]:
    """The output of that name alone, with what is judged of it. Raises Unsupported where it is not returned."""
    if output not in subject.implementation.support.returns:
        raise Unsupported(f"an output called {output}")
    problem, route, profile = _settle(judging, subject, problem)
    try:
        run = judging.run(subject, problem, route)
    except Failed as failure:
        return [Judgement(problem, str(route), failure.verdict, profile)]
    verdict = run.settled(judging.verdict_of(output, run.others[output], subject, problem, profile))
    return [Judgement(problem, str(route), verdict, profile, run.seconds, others={output: run.others[output]})]


def check_repeat(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The same prepared call several times, and once prepared anew: beyond twice the budget apart is NONDETERMINISTIC. Outputs
    that are wrong in the same way each time are repeatable."""
    problem, route, profile = _settle(judging, subject, problem)
    try:
        first = judging.run(subject, problem, route)
        kept = _copied(first)
        verdict = _unless_wrong(judging.verdict(kept, subject, problem, profile))
        if first.changed:  # then there is no such thing as the same call again
            return [Judgement(problem, str(route), first.settled(verdict), profile, first.seconds)]
        again = [_copied(judging.run_prepared(first.prepared, subject)) for _ in range(REPETITIONS - 1)]
        again.append(_copied(judging.run(subject, problem, route)))
    except Failed as failure:
        return [Judgement(problem, str(route), failure.verdict, profile)]
    bitwise = all(
        array.tobytes() == other[name].tobytes()
        for name, array in kept.items()
        for other in again
        if other[name].shape == array.shape
    )
    for name, array in kept.items():
        expected = judging.expected_output(name, array.dtype.name, subject, problem, profile)
        if not all(agree(array, other[name], expected) for other in again):
            message = f"The same call gave {'outputs' if name == OUTPUT else name} that do not agree."
            verdict = replace(verdict, outcome=Outcome.NONDETERMINISTIC, message=message, output=name)
            break
    return [Judgement(problem, str(route), verdict, profile, first.seconds, bitwise)]


def check_untouched(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The inputs, read back after the call, have the bits that they had before, as after every call; whatever the output is."""
    problem, route, profile = _settle(judging, subject, problem)
    try:
        run = judging.run(subject, problem, route)
    except Failed as failure:
        return [Judgement(problem, str(route), failure.verdict, profile)]
    verdict = _unless_wrong(judging.verdict(run.outputs, subject, problem, profile))
    return [Judgement(problem, str(route), run.settled(verdict), profile, run.seconds)]


def check_unaliased(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The output shares no memory with an input."""
    problem, route, profile = _settle(judging, subject, problem)
    try:
        run = judging.run(subject, problem, route)
    except Failed as failure:
        return [Judgement(problem, str(route), failure.verdict, profile)]
    if run.prepared.aliases(run.raw):
        verdict = Verdict(Outcome.MUTATED_INPUT, "The output shares memory with an input: writing to one changes the other.")
    else:
        verdict = run.settled(_unless_wrong(judging.verdict(run.outputs, subject, problem, profile)))
    return [Judgement(problem, str(route), verdict, profile, run.seconds)]


def check_unbiased(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """Values within the budget, and no systematic part of the errors; where the budget is too wide to show one, values alone."""
    judgement = judging.values(subject, problem)
    if judgement.output is None or judgement.verdict.outcome is not Outcome.PASS:
        return [judgement]
    expected = judging.expected(judgement.problem, judgement.profile, subject.implementation.support)
    tried = judging.directions(judgement.problem, judgement.profile, subject.implementation.support)
    systematic = [found for found in biases(judgement.output, expected, tried) if found.excess > 1.0]
    if systematic:
        sentence = max(systematic, key=lambda found: found.certainty).sentence
        judgement = replace(judgement, verdict=Verdict(Outcome.WRONG_VALUE, sentence, r=judgement.verdict.r))
    return [judgement]


def check_fully_masked_rows(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """What fully masked rows give, where the other rows are right; else those may be wrong for the same reason."""
    judgement = judging.values(subject, problem)
    if judgement.output is None:
        return [judgement]
    verdict = _unless_wrong(judgement.verdict)
    if judgement.verdict.outcome is Outcome.PASS:
        by_lse = bool(roundoffs(judgement.profile, judgement.problem.dtype).log_sum_exp)
        verdict = judge_fully_masked_rows(judgement.output, judging.inputs(judgement.problem), by_lse)
    return [replace(judgement, verdict=verdict)]


def _unless_wrong(verdict: Verdict) -> Verdict:
    """The verdict of a right output, with its r, also where the call changed an input; of a wrong one a pass that says so: other
    requirements judge outputs."""
    if verdict.outcome in (Outcome.PASS, Outcome.MUTATED_INPUT):
        return verdict
    itself = "themselves are" if verdict.output == WEIGHTS else "itself is"
    return Verdict(Outcome.PASS, f"The {verdict.output} {itself} {verdict.outcome}, which other requirements judge.")


def _copied(run: CompletedCall) -> dict[str, np.ndarray]:
    """Its outputs, in memory of their own."""
    return {name: array.copy() for name, array in run.outputs.items()}


def _settle(judging: Judge, subject: Subject, problem: Problem) -> tuple[Problem, Route, str]:
    problem = subject.resolve(problem)
    return problem, subject.route(problem), judging.profile(subject, problem)


PROCEDURES: dict[str, Procedure] = {
    "values": check_values,
    "beyond": check_beyond,
    "exact": check_exact,
    "shape": partial(check_form, dtype=False),
    "dtype": partial(check_form, shape=False),
    "form": check_form,
    "routes": check_routes,
    "repeat": check_repeat,
    "stale": check_stale,
    "sequence": check_sequence,
    "untouched": check_untouched,
    "unaliased": check_unaliased,
    "unbiased": check_unbiased,
    "empty-rows": check_fully_masked_rows,
    "bias-dtype": check_bias_dtype,
    "lengths-dtype": check_lengths_dtype,
    LSE: partial(check_output, output=LSE),
    WEIGHTS: partial(check_output, output=WEIGHTS),
}


_SHARES = 2.0**9  # an online sum that rescales lazily holds up to so many times the mean
_LOG2_E = 1.4426950408889634


def is_beyond(inputs: AttentionInputs) -> bool:
    """Whether V is so near the largest number that sums of it overflow; or scores s so large that 2^(s·c − m·c), c = log₂ e, does
    where the product m·c was rounded: |m|·c times the unit roundoff is then more than the largest exponent."""
    dtype = inputs.query.dtype.name
    work = float_type(dtype if dtype == "float64" else "float32")
    if float(np.abs(inputs.value.astype(np.float64)).max(initial=0.0)) > work.largest / _SHARES:
        return True
    scale = 1.0 / np.sqrt(inputs.query.shape[-1]) if inputs.scale is None else abs(inputs.scale)
    return bool(largest_score(inputs) * scale * _LOG2_E * work.unit_roundoff > np.log2(work.largest))
