"""The small part of timing that a conformance run shows: ``cpu-small`` forward, in the process that asks."""

from collections.abc import Iterator, Sequence

from conformance import registry
from conformance.adapter import Implementation
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.records import Timing
from conformance.timing.contest import Shape, contest
from conformance.timing.rates import Rates
from conformance.timing.shapes import TIMED

BASELINES: dict[str, str] = {
    "attention": "numpy-direct",
    "multi_head_attention": "numpy-multi-head",
    "sinusoidal_encoding": "numpy-sinusoidal",
}


def measure(implementations: Sequence[Implementation], *, seed: int) -> Iterator[Timing]:
    """A timing for each implementation at each shape of its operation, as they come; ``seed`` makes the values.

    The operation's baseline is measured whether or not it is among ``implementations``, and recorded if it is.
    """
    rates = Rates()
    for operation, shapes in TIMED.items():
        subjects = {i.name: Subject(i) for i in implementations if i.operation == operation}
        if not subjects:
            continue
        wanted = tuple(subjects)
        baseline = BASELINES[operation]
        if baseline not in subjects:
            subjects[baseline] = Subject(registry.builtin()[baseline])
        for name, problem in shapes.items():
            shape = Shape("cpu-small", name, problem)
            lines = contest(shape, list(subjects.values()), baseline, judge=Judge(), rates=rates, seed=seed)
            yield from (line for line in lines if isinstance(line, Timing) and line.implementation in wanted)
