"""Renders the catalogue to ``docs/faults.md``: ``python -m conformance.evaluation.render [faults.json]`` writes it anew.

The first part says what the catalogue says, and a test keeps it fresh. The second was measured: it comes from the ``faults.json``
that ``attention-conformance faults --out`` wrote, and stays as it is where none is given.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from conformance.evaluation.kill_tables import judged_trials
from conformance.evaluation.kills import FaultTrial, Kill, margins
from conformance.faults import kinds
from conformance.faults.fault import Fault
from conformance.numerics.dtypes import DTYPES
from conformance.system import files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
MEASURED = "## First detection"

_HEAD = """# Faults

Made from `conformance/faults/` by `python -m conformance.evaluation.render`: do not edit.

Each fault is a known way to get attention wrong, as a small executable variant. `attention-conformance faults` runs all of them
as implementations through the real checks: each must be caught in the quick tier, in every dtype in which it can be seen, by a
requirement that speaks of it. The first requirement named is the one that is expected to catch it. `attention-conformance faults
--thin` lists the pairs of fault and dtype that one single golden or designed case catches: none was left
when this was written.
"""


def render() -> str:
    """The part that the catalogue decides."""
    count = sum(len(faults) for faults in kinds().values())
    body = [line for kind, faults in kinds().items() for line in _kind(kind, faults)]
    return "\n".join([_HEAD, f"{count} faults of {len(kinds())} kinds.", "", *body]) + "\n"


def _kind(kind: str, faults: Iterable[Fault]) -> Iterator[str]:
    text = (import_module(f"conformance.faults.{kind}").__doc__ or "").strip()
    yield from (f"## {kind.replace('_', ' ').capitalize()}", "", text, "")
    yield from ("| fault | what it does | requirements | dtypes | sources |", "|---|---|---|---|---|")
    for fault in faults:
        cells = (f"`{fault.id}`", fault.sentence, _requirements(fault), _dtypes(fault), ", ".join(map(_source, fault.sources)))
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""
    for fault in faults:
        if fault.alike:
            yield f"- `{fault.id}` cannot be told from {', '.join(f'`{other}`' for other in fault.alike)}."
        if fault.equivalent:
            yield f"- `{fault.id}` cannot be seen: {fault.equivalent}"
    if any(fault.alike or fault.equivalent for fault in faults):
        yield ""


def _requirements(fault: Fault) -> str:
    return "none: equivalent" if fault.equivalent else ", ".join(fault.requirements)


def _dtypes(fault: Fault) -> str:
    return "all" if set(fault.dtypes) == set(DTYPES) else ", ".join(fault.dtypes)


def _source(source: str) -> str:
    """``project: https://…/123`` as a link, anything else as it is."""
    match = re.fullmatch(r"([^:]+): (https?://\S+?/([^/\s]+))", source)
    return source if match is None else f"[{match[1]} {match[3]}]({match[2]})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def measured(trials: Sequence[FaultTrial]) -> str:
    """The part that a run decides, from trials of faults that must be caught: by fault, the first kill of its slowest dtype."""
    slowest: dict[str, Kill] = {}
    for trial in trials:
        kill = trial.kill
        if kill is not None and (trial.fault not in slowest or kill.seconds > slowest[trial.fault].seconds):
            slowest[trial.fault] = kill
    smallest = margins(trials)
    lines = [MEASURED, "", "Measured in the quick tier: the requirement that caught it and when, in the dtype in which that took"]
    lines += ["longest; and the smallest r of its kills over dtypes.", ""]
    lines += ["| fault | requirement | seconds | smallest r |", "|---|---|---|---|"]
    for fault, kill in slowest.items():
        margin = f"{smallest[fault]:.2g}" if fault in smallest else kill.outcome
        lines.append(f"| `{fault}` | {kill.requirement} | {kill.seconds:.3f} | {margin} |")
    return "\n".join(lines) + "\n"


def stale() -> bool:
    """Whether ``docs/faults.md`` is missing, or says something else than the catalogue in its first part."""
    return not DOCUMENT.is_file() or DOCUMENT.read_text(encoding="utf-8").partition(MEASURED)[0].rstrip() != render().rstrip()


def main(arguments: list[str]) -> None:
    if arguments:
        second = measured(judged_trials(Path(arguments[0]).read_text(encoding="utf-8")))
    else:
        old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
        second = "".join(old.partition(MEASURED)[1:])
    files.write(DOCUMENT, render() + ("\n" + second if second else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
