"""One diagnosis, in a process of its own: it runs the implementation, which may end or hang it, or change what it likes."""

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from conformance.adapter import Implementation
from conformance.adapter.loading import chosen
from conformance.diagnosis import Diagnosis as Result
from conformance.diagnosis import Finding, diagnose
from conformance.diagnosis.beside import explained_beside
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import Problem, parse
from conformance.records import DiagnosisRecord, ExplanationRecord, encode
from conformance.run.workers.afterwards import DiagnosisTask
from conformance.run.workers.asking import Request
from conformance.system.children import channel


def main() -> None:
    """The process."""
    line = channel()
    task = msgspec.json.decode(line.receive(), type=DiagnosisTask)
    line.send(encode(_diagnosis(task)))
    os._exit(0)  # without waiting for threads of the implementation


def _diagnosis(task: DiagnosisTask) -> DiagnosisRecord:
    request = task.request
    try:
        implementation = chosen([task.spec], **task.given)[0]
        passing = [parse(text) for text in request.passing]
        beside = tuple(_beside(implementation, request, passing))
        if not request.failing:
            return DiagnosisRecord(implementation=request.implementation, explanations=beside)
        failing = {parse(text): kind for text, kind in request.failing.items()}
        found = record_of(diagnose(Subject(implementation), Judge(), failing, passing), request)
        return msgspec.structs.replace(found, explanations=(*found.explanations, *beside))
    except BaseException as error:  # an implementation may raise anything at all
        remark = f"There is no diagnosis: it failed with {type(error).__name__}: {' '.join(str(error).split())}"
        return DiagnosisRecord(implementation=request.implementation, remarks=(remark,))


def _beside(implementation: Implementation, request: Request, passing: Sequence[Problem]) -> Iterator[ExplanationRecord]:
    """What explains further outputs that are wrong alone."""
    for output, (texts, requirements) in request.beside.items():
        found = explained_beside(Subject(implementation), Judge(), output, [parse(text) for text in texts], passing)
        if found is not None:
            yield ExplanationRecord(
                symptom="values",
                faults=(found.faults[0].id,),
                explained=found.explained,
                failing=found.failing,
                passing=found.passing,
                fresh=0,
                alike=tuple(fault.id for fault in found.faults[1:]),
                sentence=found.sentence,
                requirements=requirements,
            )


def record_of(found: Result, request: Request) -> DiagnosisRecord:
    """The diagnosis as it is recorded, of what was requested."""
    return DiagnosisRecord(
        implementation=found.implementation,
        explanations=tuple(_explanation(finding, request, found.less_accurate) for finding in found.findings),
        remarks=found.remarks,
        failing=found.failing,
        passing=found.passing,
        vanished=found.vanished,
        seconds=found.seconds,
    )


def _explanation(finding: Finding, request: Request, less_accurate: frozenset[str]) -> ExplanationRecord:
    """What fails in a dtype that is less accurate besides is no riddle, though the fault may have no part in it; of a requirement
    that the finding explains it has one."""
    seen = {problem.text for problem in finding.problems}
    kinds = _kinds(finding, {request.failing[text] for text in seen if text in request.failing})
    return ExplanationRecord(
        symptom=finding.symptom,
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
    return seen | {str(Outcome.WRONG_VALUE), str(Outcome.NONFINITE)} if finding.symptom == "values" else seen
