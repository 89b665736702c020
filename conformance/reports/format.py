"""Numbers and headings as reports show them."""

import math
from collections.abc import Sequence

from conformance.numerics.dtypes import DTYPES
from conformance.records import Environment, Run

NONE = "–"  # in a table, where there is nothing to show


def short(value: float) -> str:
    """Three significant digits."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:.3g}"


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def ratio(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.2g}×" if value < 0.095 else f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def size(count: int) -> str:
    """Bytes."""
    return f"{count / 2**20:.3g} MiB" if count >= 2**20 else f"{count / 2**10:.3g} KiB"


def percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %"


def sized(dtype: str) -> tuple[int, str]:
    """Sorts dtypes as the suite lists them, others after them."""
    return (DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)), dtype


def stamp(run: Run) -> str:
    """What stands on every output of a run that may not be cited; empty otherwise."""
    return f"NOT A CONFORMANCE RESULT. {run.not_conformance}" if run.not_conformance else ""


def provenance(run: Run) -> list[str]:
    """Which suite ran what, where and when, a line each."""
    header = run.header
    lines = [
        f"attention-conformance {header.suite}, specification {header.specification}, tier {header.tier}, seed {header.seed}",
        f"started {header.started:%Y-%m-%d %H:%M:%S} UTC{_lasted(run)}",
    ]
    lines += dict.fromkeys(_place(shard.environment) for shard in run.headers)
    lines += [
        f"{entry.name}: {entry.distribution} {entry.distribution_version}"
        for entry in run.implementations.values()
        if entry.distribution
    ]
    return lines + [f"command: {shard.command}" for shard in run.headers]


def _lasted(run: Run) -> str:
    if not run.is_complete:
        return ", not finished"
    seconds = [
        (footer.finished - header.started).total_seconds() for header, footer in zip(run.headers, run.footers, strict=True)
    ]
    return f", {max(seconds):.0f} s" + (f", {len(seconds)} shards" if len(seconds) > 1 else "")


def _place(environment: Environment) -> str:
    memory = "" if environment.memory is None else f", {environment.memory / 2**30:.0f} GiB"
    instructions = f", {environment.instruction_set}" if environment.instruction_set else ""
    packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    return (
        f"{environment.cpu} ({environment.machine}{instructions}), {environment.cores} cores{memory}, {environment.platform}, "
        f"Python {environment.python}, {packages}"
    )
