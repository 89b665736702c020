"""``nox -s bench``: the suite's own cost, then the speed of implementations."""

from collections.abc import Sequence

from rich.console import Console
from tabulate import tabulate

from conformance import registry
from conformance.adapter import Implementation
from conformance.records.model import Timing
from conformance.reports.format import milliseconds, percent, ratio, short
from conformance.run_options import DEFAULT_SEED
from conformance.timing.cost import DTYPE, EARLY, IMPLEMENTATION, HarnessCost, harness_cost, profile
from conformance.timing.machine import is_busy, load, threads
from conformance.timing.measure import measure

TARGET_MILLISECONDS = 0.8  # of harness cost per problem, on two cores


def run_bench(
    console: Console,
    *,
    implementations: Sequence[Implementation] | None = None,
    seed: int = DEFAULT_SEED,
    profiled: bool = False,
) -> None:
    """Prints both tables; the speed of all built-in implementations unless some are given. ``profiled`` shows where the harness
    spends its time in place of the tables."""
    if profiled:
        _say(console, profile(seed=seed))
        return
    if is_busy():
        _say(console, f"Warning: the machine has, or just had, other work (load average {load()}), which spoils times.")
    _say(console, cost_table(harness_cost(seed=seed)))
    chosen = list(registry.builtin().values()) if implementations is None else implementations
    timings: list[Timing] = []
    with console.status("timing"):
        timings.extend(measure(chosen, seed=seed))
    _say(console, "\n" + speed_table(timings) + f"\n\nThreads: {threads()}. Load average: {load()}.")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def cost_table(cost: HarnessCost) -> str:
    rows = [
        ("harness, ms per problem", short(cost.milliseconds), f"oracle, budget, verdict included; target {TARGET_MILLISECONDS}"),
        ("the same, median of items", short(cost.median_milliseconds), "less disturbed by other work of the machine"),
        ("implementation, ms per problem", short(1e3 * cost.inside / cost.problems), ""),
        ("problems per second", short(cost.problems_per_second), "everything included"),
        (f"memory after {EARLY:,} problems", _mebibytes(cost.early_memory), ""),
        (f"memory after {cost.problems:,} problems", _mebibytes(cost.late_memory), f"growth {_mebibytes(cost.growth)}"),
    ]
    title = f"Cost of the suite: {cost.problems:,} problems, {IMPLEMENTATION}, {DTYPE}, palette shapes"
    return f"{title}\n" + tabulate(rows, disable_numparse=True, colalign=("left", "right", "left"))


def speed_table(timings: Sequence[Timing]) -> str:
    """A row for each implementation at each shape; those that did not pass have the reason in place of times."""
    columns = ("operation", "shape", "implementation", "median", "quartiles", "ratio", "of matmul", "calls", "r", "")
    table = tabulate([_row(timing) for timing in timings], columns, disable_numparse=True, maxcolwidths=[None] * 9 + [60])
    return f"Speed of forward calls, as a ratio to the NumPy baseline\n{table}"


def _row(timing: Timing) -> tuple[str, ...]:
    head = (timing.operation, timing.shape, timing.implementation)
    r = "" if timing.r is None else short(timing.r)
    low, middle, high = timing.low_quartile_seconds, timing.median_seconds, timing.high_quartile_seconds
    if low is None or middle is None or high is None:
        return (*head, "", "", "", "", "", r, f"{timing.outcome}: {timing.message}")
    share = "" if timing.percent_of_matmul is None else percent(timing.percent_of_matmul)
    quartiles = f"{milliseconds(low)} – {milliseconds(high)}"
    circumstances = timing.message.partition("; threads")[0]
    return (*head, milliseconds(middle), quartiles, ratio(timing.ratio), share, str(timing.calls), r, circumstances)


def _mebibytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:.1f} MiB"
