"""The kill matrix as tables, for the terminal and for files."""

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import msgspec
from tabulate import tabulate

from conformance.evaluation.kills import FaultTrial, Kill, KillMatrix
from conformance.numerics.dtypes import DTYPES
from conformance.specification import requirements

WEAKEST = 10  # faults whose margins are shown


def render(matrix: KillMatrix, style: str = "simple") -> str:
    """Fault × dtype, then what there is to say of it; ``style`` is a table format of tabulate."""
    parts = [fault_table(matrix, style), *notes(matrix, style)]
    if matrix.complete:
        parts += [requirement_table(matrix, style), *requirement_notes(matrix)]
    return "\n\n".join([*parts, *summary(matrix)])


def fault_table(matrix: KillMatrix, style: str) -> str:
    """For each fault and dtype the requirement that kills it, and r."""
    cells: dict[str, dict[str, str]] = {}
    for trial in matrix.judged:
        cells.setdefault(trial.fault, {})[trial.dtype] = _cell(trial)
    rows = [(fault, *(by_dtype.get(dtype, "") for dtype in DTYPES)) for fault, by_dtype in cells.items()]
    return tabulate(rows, ("fault", *DTYPES), tablefmt=style, disable_numparse=True)


def _cell(trial: FaultTrial) -> str:
    if trial.survived:
        return "SURVIVES"
    kill = trial.kill
    return _killed(kill) if kill is not None else f"ELSEWHERE: {_killed(trial.kills[0])}"


def _killed(kill: Kill) -> str:
    margin = kill.outcome if kill.r is None else f"r={kill.r:.2g}"
    return f"{kill.requirement} {margin}{' random' if kill.random else ''}"


def notes(matrix: KillMatrix, style: str) -> Iterator[str]:
    """The weakest margins, what hangs by a thread, and the faults that no output can show."""
    margins = list(matrix.margins().items())[:WEAKEST]
    if margins:
        yield "Weakest margins (smallest r over the dtypes of a fault):\n" + tabulate(
            [(fault, f"{r:.3g}") for fault, r in margins], ("fault", "r"), tablefmt=style, disable_numparse=True
        )
    if matrix.thin:
        rows = [(trial.fault, trial.dtype, trial.only) for trial in matrix.thin]
        yield "Thin, and the case on which each hangs:\n" + tabulate(
            rows, ("fault", "dtype", "case"), tablefmt=style, disable_numparse=True
        )
    equivalent = {name: fault.equivalent for name, fault in matrix.faults.items() if fault.equivalent}
    if equivalent:
        lines = [f"- {name}: {argument}" for name, argument in equivalent.items()]
        yield "\n".join(["Equivalent, that is, not to be seen from outputs:", "", *lines])


def requirement_table(matrix: KillMatrix, style: str) -> str:
    """How many faults each requirement kills, and how many of those name it."""
    rows = []
    for identifier, faults in matrix.victims().items():
        named = sum(identifier in matrix.faults[fault].requirements for fault in faults)
        rows.append((identifier, len(faults), named))
    return tabulate(rows, ("requirement", "faults killed", "of which name it"), tablefmt=style)


def requirement_notes(matrix: KillMatrix) -> Iterator[str]:
    """Requirements without which the catalogue would be caught just as well."""
    idle = matrix.idle()
    yield f"Requirements that kill no fault: {', '.join(idle) or 'none'}."
    named = {identifier for fault in matrix.faults.values() for identifier in fault.requirements}
    unnamed = [identifier for identifier in requirements() if identifier not in named]
    yield f"Requirements that no fault names: {', '.join(unnamed) or 'none'}."


def summary(matrix: KillMatrix) -> Iterator[str]:
    """In sentences: how many were caught, how soon, and what was not."""
    judged, killed = matrix.judged, [trial.kill for trial in matrix.judged if trial.kill is not None]
    faults = len({trial.fault for trial in judged})
    equivalent = len(matrix.faults) - faults
    random = sum(kill.random for kill in killed)
    by_random = f", {random} of them by random cases only" if random else ""
    yield (
        f"{faults} faults in {len(judged)} pairs of fault and dtype: {len(killed)} killed in the quick tier by a requirement "
        f"that they name{by_random}; {equivalent} equivalent."
    )
    if matrix.complete or matrix.counted:
        yield f"Thin, that is, caught by a single case: {len(matrix.thin)} of the pairs."
    if killed:
        first = [kill.seconds for kill in killed]
        yield f"Time to the first detection: median {statistics.median(first):.3f} s, longest {max(first):.3f} s."
    for trials, what in (
        (matrix.elsewhere, "Caught only by requirements that the fault does not name"),
        (matrix.survivors, "Survivors"),
        (matrix.unlike, "Said to be equivalent, and caught all the same"),
    ):
        if trials:
            yield "\n".join([f"{what} ({len(trials)}):", *_by_fault(trials)])


def _by_fault(trials: Iterable[FaultTrial]) -> Iterator[str]:
    dtypes: dict[str, list[str]] = {}
    for trial in trials:
        dtypes.setdefault(trial.fault, []).append(trial.dtype)
    return (f"- {fault}: {', '.join(names)}" for fault, names in dtypes.items())


def as_json(matrix: KillMatrix) -> str:
    """The trials as data, one a line."""
    trials = (json.dumps({**asdict(trial), "equivalent": bool(matrix.faults[trial.fault].equivalent)}) for trial in matrix.trials)
    return f'{{"complete": {json.dumps(matrix.complete)}, "trials": [\n' + ",\n".join(trials) + "\n]}\n"


def judged_trials(text: str) -> list[FaultTrial]:
    """Of what ``as_json`` wrote, the trials of faults that must be caught."""
    return [msgspec.convert(trial, FaultTrial) for trial in json.loads(text)["trials"] if not trial["equivalent"]]
