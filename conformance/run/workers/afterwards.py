"""What comes after the checks, each in a process of its own: the diagnosis of failures, and the lines that no problem reaches."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from conformance.adapter.known import Known
from conformance.errors import UsageError
from conformance.records import DiagnosisRecord, Line, Unrun, decode
from conformance.run.workers.asking import Request
from conformance.system.children import Child
from conformance.system.threads import VARIABLES

LIMIT = 60.0  # seconds: several times what a diagnosis takes, and time enough to import a framework
QUICK, FULL = 3.0, 30.0  # seconds, beside LIMIT, in which problems are put to see which lines they reach


class DiagnosisTask(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and how the user named the implementation."""

    request: Request
    spec: str
    given: dict[str, str | None]


class UnrunTask(msgspec.Struct, frozen=True, kw_only=True):
    """The implementation, how the user named it, its files, and how long problems are put."""

    implementation: str
    spec: str
    given: dict[str, str | None]
    files: tuple[str, ...]
    seconds: float
    seed: int


def ask(request: Request, spec: str, given: Mapping[str, str | None], limit: float = LIMIT) -> DiagnosisRecord:
    """The diagnosis; one with a remark alone where the process gave none, or none within ``limit`` seconds. ``spec`` and
    ``given`` are how the user named the implementation."""
    task = DiagnosisTask(request=request, spec=spec, given=dict(given))
    found = run_apart("conformance.run.workers.diagnosis_process", msgspec.json.encode(task), limit)
    if isinstance(found.record, DiagnosisRecord):
        return found.record
    ending = (
        "the implementation ended the process in which its failures were run again"
        if found.in_time
        else f"it took more than {limit:g} s"
    )
    return DiagnosisRecord(implementation=request.implementation, remarks=(f"There is no diagnosis: {ending}.",))


def is_wanted(implementation: Known, when: str, selection: str) -> bool:
    """Whether what never ran is to be listed, as ``when`` says; auto: where it is cheap and the code is the user's own, and there
    is no ``selection``."""
    if when != "auto":
        return when == "always"
    return ":" in implementation.spec and not implementation.dear and not selection


def unrun(implementation: Known, given: Mapping[str, str | None], seconds: float, seed: int) -> Unrun:
    """What never ran; one with a remark alone where that cannot be known."""
    nothing = Unrun(implementation=implementation.name)
    if not implementation.files:
        return replace(nothing, remark="What never ran cannot be measured: there is no Python source of it that can be read.")
    task = UnrunTask(
        implementation=implementation.name, spec=implementation.spec, given=dict(given), files=implementation.files,
        seconds=seconds, seed=seed,
    )  # fmt: skip
    found = run_apart("conformance.run.workers.unrun_process", msgspec.json.encode(task), seconds + LIMIT)
    if isinstance(found.record, Unrun):
        return found.record
    ending = "the implementation ended the process" if found.in_time else f"it took more than {seconds + LIMIT:g} s"
    return replace(nothing, remark=f"What never ran is not known: {ending}.")


@dataclass(frozen=True)
class Apart:
    """What came of it: the last record that the process has sent, None where there is none, and whether it ended ``in_time``,
    in whatever way."""

    record: Line | None
    in_time: bool


def run_apart(module: str, task: bytes, limit: float) -> Apart:
    """Runs ``main`` of ``module`` with ``task`` to its end, or for ``limit`` seconds, in one thread."""
    child = Child(module, variables=dict.fromkeys(VARIABLES, "1"))
    last, until = b"", time.monotonic() + limit
    try:
        child.send(task)
        while (message := child.next(until - time.monotonic())) is not None:
            last = message
    except TimeoutError:
        return Apart(_understood(last), in_time=False)
    finally:
        child.end()
    return Apart(_understood(last), in_time=True)


def _understood(message: bytes) -> Line | None:
    try:
        return decode(message)
    except UsageError:
        return None
