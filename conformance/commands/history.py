"""What ``attention-conformance history`` does."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from conformance.errors import UsageError, cut
from conformance.history.plot import write_plot
from conformance.history.rendering import FORMATS
from conformance.history.trend import trends
from conformance.records import read_records


def history(runs: Sequence[Path], form: str, patterns: Sequence[str], plot: Path | None) -> str:
    """The tables; the plot is written, where one is asked for. Raises UsageError for bad files, and where nothing is left."""
    found = trends(read_records(file) for file in runs)
    chosen = [trend for trend in found if not patterns or any(fnmatchcase(trend.implementation, p) for p in patterns)]
    if not chosen:
        names = ", ".join(trend.implementation for trend in found) or "none"
        raise UsageError(f"No implementation of these runs is meant by {cut(', '.join(patterns)) or 'them'}: there are {names}.")
    if plot is not None:
        write_plot(chosen, plot, runs)
    return FORMATS[form](chosen)
