"""What the suite itself costs, as a table."""

from tabulate import tabulate

from conformance.reports.format import short
from conformance.timing.cost import DTYPE, EARLY, IMPLEMENTATION, HarnessCost

TARGET_MILLISECONDS = 0.8  # of harness cost per problem, on two cores


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


def _mebibytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:.1f} MiB"
