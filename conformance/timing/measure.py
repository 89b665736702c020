"""The small part of timing that a conformance run shows: ``cpu-small`` forward, in a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from conformance.adapter.known import Known
from conformance.expectations import Expectations
from conformance.records import SelfComparison, Timing
from conformance.timing.campaign import Baselines, Plan, hold
from conformance.timing.contest import SMALL
from conformance.timing.shapes import SUITES
from conformance.timing.worker import Roster, Worker

SUITE = "cpu-small"
TIME_LIMIT = 60.0  # seconds for which an implementation may give no sign of life


def measure(
    timed: Sequence[Known],
    roster: Roster,
    expectations: Expectations,
    *,
    seed: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Timing | SelfComparison]:
    """A timing for each implementation at each shape of its operation, as they come, and the baseline against itself.

    ``roster`` is how another process finds them; ``expectations`` know which outputs fail. One that ends or hangs the process
    costs its own row. The operation's baseline is measured whether or not it is among them, and recorded if it is. ``seed`` makes
    the values.
    """
    names = {one.name for one in timed}
    plan = Plan(implementations=timed, known=Baselines(timed), suites={SUITE: SUITES[SUITE]}, growth=False, effort=SMALL)
    if not timed:
        return
    with Worker(roster, threads=1, seed=seed, time_limit=TIME_LIMIT) as worker:
        for line in hold([replace(task, memory=False) for task in plan.tasks()], worker, expectations, stopped=stopped):
            if isinstance(line, Timing | SelfComparison) and line.implementation in names:
                yield line
