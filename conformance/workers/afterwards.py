"""What comes after the checks, each in a process of its own: the diagnosis of failures, and the lines that no problem reaches."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from conformance.known import Known
from conformance.records import Diagnosis, Unrun
from conformance.workers.apart import run_apart
from conformance.workers.asking import Request

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


def ask(request: Request, spec: str, given: Mapping[str, str | None], limit: float = LIMIT) -> Diagnosis:
    """The diagnosis; one with a remark alone where the process gave none, or none within ``limit`` seconds. ``spec`` and
    ``given`` are how the user named the implementation."""
    task = DiagnosisTask(request=request, spec=spec, given=dict(given))
    found = run_apart("conformance.workers.diagnosis_process", msgspec.json.encode(task), limit)
    if isinstance(found.record, Diagnosis):
        return found.record
    ending = (
        "the implementation ended the process in which its failures were run again"
        if found.in_time
        else f"it took more than {limit:g} s"
    )
    return Diagnosis(implementation=request.implementation, remarks=(f"There is no diagnosis: {ending}.",))


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
    found = run_apart("conformance.workers.unrun_process", msgspec.json.encode(task), seconds + LIMIT)
    if isinstance(found.record, Unrun):
        return found.record
    ending = "the implementation ended the process" if found.in_time else f"it took more than {seconds + LIMIT:g} s"
    return replace(nothing, remark=f"What never ran is not known: {ending}.")
