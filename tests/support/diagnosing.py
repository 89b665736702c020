"""Diagnoses of functions, in this process and at the end of a run."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from conformance.adapter import Implementation, Support, registry
from conformance.diagnosis import Diagnosis, diagnose
from conformance.diagnosis.choice import varied
from conformance.faults import catalogue
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import Problem
from conformance.specification import requirements
from tests.support.commands import run_command

JUDGE = Judge()
ENOUGH = 600.0  # seconds: what is found must not depend on what else the machine does
PROFILE = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}
# Enough of the catalogue to be mistaken in, and little enough to be quick.
SOME = (
    "scale-missing", "scale-by-width", "scale-inverted", "scale-by-value-width", "scale-by-heads", "scale-ignored",
    "mask-ignored", "mask-inverted", "causal-ignored", "causal-one-key-late", "fill-minus-1e4", "fill-minus-1e9",
    "fill-minus-1e20", "fill-0", "softmax-over-queries", "softmax-off-by-one", "heads-tiled", "maximum-not-subtracted",
    "stale-by-shape", "answer-of-previous-call", "returns-internal-buffer", "every-second-call-wrong", "random-noise",
    "changes-query", "changes-key", "writes-over-query", "returns-float64", "returns-float32", "returns-tuple", "returns-nothing",
)  # fmt: skip


SOME_OF_HEADS = tuple(
    f"multi-head-{name}"
    for name in (
        "scale-missing", "scale-by-model-width", "scale-by-heads", "scale-in-float32", "fill-minus-1e4", "fill-minus-1e9",
        "fill-minus-1e20", "fill-0", "mask-ignored", "mask-inverted", "maximum-not-subtracted", "softmax-over-queries",
        "nothing-projected", "query-not-projected", "value-not-projected", "query-transposed", "merge-reversed",
        "returns-float64",
    )
)  # fmt: skip


@cache
def problems() -> tuple[Problem, ...]:
    """Some designed problems of attention, as different as they come, and all those with very low scores."""
    plain = [r for r in requirements().values() if r.operation == "attention" and r.judges_values]
    designed = [problem for requirement in plain for problem in requirement.designed()]
    low = [
        problem
        for problem in designed
        if problem.mask and any(transformation.name == "low-visible" for transformation in problem.transformations)
    ]
    return tuple(dict.fromkeys([*varied(designed, 150), *low]))


def implementation(function: Callable) -> Implementation:
    return Implementation(function.__name__, function, Support(profile=PROFILE), registry.frameworks()["numpy"])


def unsorted(failing: Sequence[Problem]) -> dict[Problem, str]:
    """Failing problems of which nobody knows how they fail."""
    return dict.fromkeys(failing, "")


def diagnosis_of(function: Callable, faults: Sequence[str] = SOME) -> Diagnosis:
    subject = Subject(implementation(function))
    split: dict[bool, list[Problem]] = {False: [], True: []}
    for problem in problems():
        if problem.features <= subject.implementation.features:
            split[JUDGE.values(subject, problem).verdict.outcome.is_failure].append(problem)
    return diagnose(
        Subject(implementation(function)),
        JUDGE,
        unsorted(split[True]),
        split[False],
        [catalogue()[name] for name in faults],
        ENOUGH,
    )


def run(folder: Path, function: str, *options: str) -> Path:
    ended = run_command(
        *("run", "--tier", "quick", "--no-timing", "--implementation", function, "--reports", str(folder), *options)
    )
    assert ended.returncode == 1, ended.stderr
    return folder
