"""The figures of each implementation in each of many runs, in the order of time."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from conformance.judging.verdict import Outcome
from conformance.records import Run, Timing
from conformance.reports import tallies

Shape = tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """An implementation in one run: ``counts`` of results by tallies.KINDS, ``accuracy`` as median and largest r by dtype, and
    ``speed``, the geometric mean of its time relative to the baseline over ``shapes``, those that every run of the trend has."""

    started: datetime
    suite: str
    specification: str
    tier: str
    machine: str
    framework_version: str | None
    counts: Counter[str]
    accuracy: dict[str, tuple[float, float]]
    speed: float | None
    shapes: int

    @property
    def judged(self) -> int:
        return sum(self.counts[kind] for kind in (tallies.PASSED, tallies.KNOWN, tallies.UNEXPECTED))

    @property
    def share(self) -> float | None:
        """Passed of judged requirements; None where none was."""
        return self.counts[tallies.PASSED] / self.judged if self.judged else None


@dataclass(frozen=True)
class Trend:
    """The points of an implementation, oldest first."""

    implementation: str
    framework: str
    points: tuple[Point, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dtype for point in self.points for dtype in point.accuracy))

    @property
    def asked_alike(self) -> bool:
        """Whether all points are of one specification and tier, so that their counts count the same."""
        return len({(point.specification, point.tier) for point in self.points}) == 1

    @property
    def on_one_machine(self) -> bool:
        """Whether the points that have a speed have it from one kind of machine."""
        return len({point.machine for point in self.points if point.speed is not None}) <= 1


def trends(runs: Iterable[Run]) -> tuple[Trend, ...]:
    """A trend for each implementation that was judged or timed in any of the runs; a run that is given twice counts once."""
    ordered: list[Run] = []
    for run in sorted(runs, key=lambda run: run.header.started):
        if not any(run.headers == other.headers for other in ordered):
            ordered.append(run)
    names = dict.fromkeys(name for run in ordered for name in run.implementations)
    found = (_trend(name, [run for run in ordered if name in run.implementations]) for name in names)
    return tuple(trend for trend in found if trend.points)


def _trend(name: str, runs: Sequence[Run]) -> Trend:
    judged = [run for run in runs if _says_something(run, name)]
    ratios = [_ratios(run, name) for run in judged]
    timed = [some for some in ratios if some]
    shapes = set.intersection(*(set(some) for some in timed)) if timed else set()
    points = tuple(_point(run, name, some, shapes) for run, some in zip(judged, ratios, strict=True))
    return Trend(name, runs[-1].implementations[name].framework, points)


def _says_something(run: Run, name: str) -> bool:
    """Whether the implementation was judged or timed, and not merely listed."""
    judged = any(item.implementation == name and item.outcome.was_run for item in run.items)
    return judged or any(timing.implementation == name and timing.outcome.was_run for timing in run.timings)


def _point(run: Run, name: str, ratios: dict[Shape, float], shapes: set[Shape]) -> Point:
    entry = run.implementations[name]
    shared = [ratios[shape] for shape in sorted(shapes) if shape in ratios]
    return Point(
        started=run.header.started,
        suite=run.header.suite,
        specification=run.header.specification,
        tier=run.header.tier,
        machine=f"{run.environment.cpu}, {run.environment.cores} cores, {run.environment.platform}",
        framework_version=entry.framework_version,
        counts=Counter(tallies.kind_of(item) for item in run.items if item.implementation == name),
        accuracy={dtype: (d.median, d.max) for dtype, d in tallies.judged(run, name).items()},
        speed=math.exp(sum(map(math.log, shared)) / len(shared)) if shared else None,
        shapes=len(shared),
    )


def _ratios(run: Run, name: str) -> dict[Shape, float]:
    """Times relative to the baseline, by all that says what was timed; the baseline itself has none."""
    return {
        _shape(timing): timing.ratio
        for timing in run.timings
        if timing.implementation == name and timing.outcome is Outcome.PASS and timing.ratio and timing.baseline != name
    }


def _shape(timing: Timing) -> Shape:
    return timing.suite, timing.shape, timing.dtype, timing.passes, timing.device, timing.baseline, str(timing.flops)
