"""The side of a run on which implementations run: one item, its records."""

import traceback
from collections.abc import Callable

from msgspec.structs import replace

from conformance.adapter import Implementation
from conformance.checks.conventions import observe_convention
from conformance.checks.items import ItemRun
from conformance.errors import told
from conformance.expectations import ImplementationExpectations, is_skipped
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.soundness import Soundness, of_the_first_calls, soundness
from conformance.judging.verdict import Outcome
from conformance.problem import Problem
from conformance.records import ConventionResult, Line, encode
from conformance.run.workers.asking import Reply, WorkerTask
from conformance.run.workers.kept import kept
from conformance.run.workers.unasked import FAILED_HERE, not_run, skipped, unanswered
from conformance.specification import conventions, requirements
from conformance.system.floating_point import FloatingPoint
from conformance.system.resources import shown

LISTED = "listed in the skips file"


class Answering:
    """Runs items on the implementations that are loaded in this process. ``announce`` is told each problem before it is put;
    ``floating_point`` has what was set when they were loaded, which is that of the implementation where it is a single one."""

    def __init__(
        self,
        implementations: dict[str, Implementation],
        task: WorkerTask,
        announce: Callable[[Problem, str], None],
        floating_point: FloatingPoint,
    ) -> None:
        self._floating_point = floating_point if len(implementations) == 1 else None
        self._implementations = implementations
        self._task = task
        self._announce = announce
        self._judge = Judge()
        self._subjects: dict[str, Subject] = {}
        self._soundness: dict[str, Soundness] = {}

    def answer(self, identifier: str, name: str) -> Reply:
        """The records of the item; whatever is raised here and is nobody's answer is one of the suite's own."""
        implementation = self._implementations[name]
        unsound, lines = "", []
        try:
            with kept(implementation.framework):
                unsound = "" if self._skip_reason(identifier, implementation) else self._unsound(implementation)
                lines = self._records(identifier, implementation, unsound)
            return Reply(tuple(encode(line).decode() for line in lines), unsound)
        except BaseException as error:
            told_here = f"{FAILED_HERE}: {told(error)}{_place(error)}"
            line = _failed_convention(identifier, name, told_here) if identifier in conventions() else None
            return Reply((encode(line or not_run(identifier, name, Outcome.ERROR, told_here)).decode(),))

    def _records(self, identifier: str, implementation: Implementation, unsound: str) -> list[Line]:
        expectations = self._task.expectations.for_(implementation.name)
        if identifier in conventions():
            return self._of_convention(identifier, implementation, unsound, expectations)
        reason = self._skip_reason(identifier, implementation)
        if reason:
            return [not_run(identifier, implementation.name, Outcome.SKIPPED, reason)]
        if unsound:
            return [not_run(identifier, implementation.name, Outcome.ERROR, unsound)]
        subject = self._subject(implementation)
        result = ItemRun(requirements()[identifier], subject, self._judge, expectations, self._task.effort).run()
        item = result.item
        if item.outcome is Outcome.PASS and (first := self._of_the_first_calls(implementation)):
            item = replace(item, outcome=Outcome.NONDETERMINISTIC, status="unexpected", reason=first)
        return [item, *result.cases]

    def _of_convention(
        self, identifier: str, implementation: Implementation, unsound: str, expectations: ImplementationExpectations
    ) -> list[Line]:
        if is_skipped(identifier, self._task.skips):
            return [skipped(identifier, implementation.name, implementation.support.conventions.get(identifier), LISTED)]
        if implementation.missing():
            return []
        if unsound:
            return [unanswered(identifier, implementation.name, implementation.support.conventions.get(identifier), unsound)]
        subject = self._subject(implementation)
        record = observe_convention(subject, identifier, expectations)
        return [replace(record, declined=subject.declined[identifier])]

    def _skip_reason(self, identifier: str, implementation: Implementation) -> str | None:
        return LISTED if is_skipped(identifier, self._task.skips) else implementation.missing()

    def _unsound(self, implementation: Implementation) -> str:
        """Why the adapter cannot be judged; found once, by its first item here, before anything else is asked of it."""
        name = implementation.name
        if name not in self._soundness:
            self._soundness[name] = soundness(self._subject(implementation), self._judge)
        return self._soundness[name].unsound

    def _of_the_first_calls(self, implementation: Implementation) -> str:
        """What was wrong in them alone, said once: by the first item that passes later."""
        found = self._soundness[implementation.name]
        sentence = of_the_first_calls(found, self._subject(implementation), self._judge)
        if sentence:
            self._soundness[implementation.name] = Soundness()
        return sentence

    def _subject(self, implementation: Implementation) -> Subject:
        if implementation.name not in self._subjects:
            self._subjects[implementation.name] = subject = Subject(implementation, self._announce)
            subject.floating_point = self._floating_point or subject.floating_point
        return self._subjects[implementation.name]


def _failed_convention(identifier: str, implementation: str, told_here: str) -> ConventionResult:
    message = f"{told_here[0].upper()}{told_here[1:]}"
    return replace(unanswered(identifier, implementation, None, message), status="unexpected")


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({shown(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
