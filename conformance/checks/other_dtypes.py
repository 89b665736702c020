"""Arguments in another dtype than the inputs: taken and right, or refused.

Libraries differ on what they take, and an exception says so. What is taken must count: a bias read as if it had the dtype of
the inputs, or int32 lengths read as int64, give an output that nobody asked for. What is declared to be declined is not asked.
"""

from copy import copy
from dataclasses import replace

import numpy as np

from conformance.errors import Unsupported
from conformance.features.bias import FEATURE as BIAS
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, Judgement, expected_of
from conformance.judging.verdict import Outcome, Verdict, judge
from conformance.numerics.dtypes import round_to
from conformance.problem import Problem

WIDE = "float32"


def check_bias_dtype(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The bias in float32 beside 16-bit inputs.

    PyTorch and JAX add it as it is, ONNX rounds it to the dtype of the inputs first: both are right. So is an output in float32,
    which array libraries promote to.
    """
    route, profile = subject.route(problem), judging.profile(subject, problem)
    own, support = judging.inputs(problem), subject.implementation.support
    inputs = own.but(bias=BIAS.given(problem.but(dtype=WIDE)))
    try:
        run = judging.run_prepared(judging.prepare(subject, problem, route, inputs), subject)
    except Failed as failure:
        return [_refused(failure, problem, str(route), profile)]
    output = run.output
    if output.dtype == np.dtype(WIDE):
        output = round_to(output, problem.dtype)
    verdict = judge(output, expected_of(inputs, profile, support))
    if verdict.outcome.is_failure:
        rounded = judge(output, judging.expected(problem, profile, support))
        verdict = verdict if rounded.outcome.is_failure else rounded
    return [Judgement(problem, str(route), verdict, profile, run.seconds, output=run.output)]


def check_lengths_dtype(judging: Judge, subject: Subject, problem: Problem) -> list[Judgement]:
    """The key lengths in int32 where int64 is declared, or the reverse. Raises Unsupported where they travel in a mask."""
    if "key-lengths" in subject.route(problem).ways:
        raise Unsupported("key lengths by a parameter of its own", "key-lengths")
    support = subject.implementation.support
    other = copy(subject)
    dtype = "int64" if support.lengths_dtype == "int32" else "int32"
    other.implementation = replace(subject.implementation, support=replace(support, lengths_dtype=dtype))
    judgement = judging.values(other, problem)
    if judgement.verdict.outcome is Outcome.ERROR:
        return [replace(judgement, verdict=Verdict(Outcome.PASS, f"Refused: {judgement.verdict.message}"))]
    return [judgement]


def _refused(failure: Failed, problem: Problem, route: str, profile: str) -> Judgement:
    """A pass, if the call raised an exception of its own; what is no array, or no memory, is what it is elsewhere."""
    if failure.verdict.outcome is not Outcome.ERROR:
        return Judgement(problem, route, failure.verdict, profile)
    return Judgement(problem, route, Verdict(Outcome.PASS, f"Refused: {failure.verdict.message}"), profile)
