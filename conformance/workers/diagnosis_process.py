"""One diagnosis in a process of its own: it runs the implementation, which may end the process, hang, or change what it likes. It
is ended when it has had no answer for ``LIMIT`` seconds.
"""

import os
from collections.abc import Mapping

import msgspec

from conformance.children import channel
from conformance.diagnosis import Diagnosis as Result
from conformance.diagnosis import Finding, diagnose
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.loading import chosen
from conformance.problem import parse
from conformance.records import Diagnosis, Explanation, encode
from conformance.verdict import Outcome
from conformance.workers.apart import run_apart

LIMIT = 60.0  # seconds: several times what a diagnosis takes, and time enough to import a framework


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of problems that ``implementation`` failed, with their kinds, and of those that it passed; ``requirements`` that
    failed, with the kinds of the first of their failing problems."""

    implementation: str
    failing: dict[str, str]
    passing: tuple[str, ...]
    requirements: dict[str, dict[str, str]] = {}


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and how the implementation was asked for."""

    request: Request
    names: tuple[str, ...]
    given: dict[str, str | None]


def ask(request: Request, names: tuple[str, ...], given: Mapping[str, str | None], limit: float = LIMIT) -> Diagnosis:
    """The diagnosis; one with a remark alone where the process gave none. ``names`` and ``given`` are the options of the run that
    say what is tested."""
    task = _Task(request=request, names=names, given=dict(given))
    found = run_apart(__name__, msgspec.json.encode(task), limit)
    if isinstance(found.record, Diagnosis):
        return found.record
    ending = (
        "the implementation ended the process in which its failures were run again"
        if found.in_time
        else f"it took more than {limit:g} s"
    )
    return Diagnosis(implementation=request.implementation, remarks=(f"There is no diagnosis: {ending}.",))


def main() -> None:
    """The process."""
    line = channel()
    task = msgspec.json.decode(line.receive(), type=_Task)
    line.send(encode(_diagnosis(task)))
    os._exit(0)  # without waiting for threads of the implementation


def _diagnosis(task: _Task) -> Diagnosis:
    request = task.request
    try:
        implementation = next(one for one in chosen(task.names, **task.given) if one.name == request.implementation)
        failing = {parse(text): kind for text, kind in request.failing.items()}
        found = diagnose(Subject(implementation), Judge(), failing, [parse(text) for text in request.passing])
        return record_of(found, request)
    except BaseException as error:  # an implementation may raise anything at all
        remark = f"There is no diagnosis: it failed with {type(error).__name__}: {' '.join(str(error).split())}"
        return Diagnosis(implementation=request.implementation, remarks=(remark,))


def record_of(found: Result, request: Request) -> Diagnosis:
    """The diagnosis as it is recorded, of what was requested."""
    return Diagnosis(
        implementation=found.implementation,
        explanations=tuple(_explanation(finding, request, found.less_accurate) for finding in found.findings),
        remarks=found.remarks,
        failing=found.failing,
        passing=found.passing,
        vanished=found.vanished,
        seconds=found.seconds,
    )


def _explanation(finding: Finding, request: Request, less_accurate: frozenset[str]) -> Explanation:
    """What fails in a dtype that is less accurate besides is no riddle, though the fault may have no part in it; of a requirement
    that the finding explains it has one."""
    seen = {problem.text for problem in finding.problems}
    kinds = _kinds(finding, {request.failing[text] for text in seen if text in request.failing})
    return Explanation(
        sign=finding.sign,
        faults=tuple(fault.id for fault in finding.faults),
        explained=finding.explained,
        failing=finding.failing,
        passing=finding.passing,
        fresh=finding.fresh,
        r=finding.r,
        alike=tuple(fault.id for fault in finding.alike),
        sentence=str(finding),
        requirements=tuple(
            name for name, problems in request.requirements.items() if _explains(finding, seen, kinds, problems, less_accurate)
        ),
    )


def _explains(
    finding: Finding, seen: set[str], kinds: set[str], problems: Mapping[str, str], less_accurate: frozenset[str]
) -> bool:
    """Whether all failing problems of a requirement, with their kinds, are explained, some of them by the fault."""
    shows = {text: text in seen or (kind in kinds and finding.may_show(parse(text))) for text, kind in problems.items()}
    rest = {text: kind for text, kind in problems.items() if not shows[text]}
    return len(rest) < len(problems) and all(
        kind == Outcome.WRONG_VALUE and parse(text).dtype in less_accurate for text, kind in rest.items()
    )


def _kinds(finding: Finding, seen: set[str]) -> set[str]:
    """The kinds of failures that the finding explains also where they were not looked at again: those that were ``seen``, where
    it explains nearly all."""
    if not finding.explains_nearly_all:
        return set()
    return seen | {str(Outcome.WRONG_VALUE), str(Outcome.NONFINITE)} if finding.sign == "values" else seen
