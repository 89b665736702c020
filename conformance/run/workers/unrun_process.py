"""What of an implementation's own code never runs: an extra pass over the problems, in a process of its own, in which outputs are
not judged and time is not taken.

Coverage.py watches the files. The pass ends where all has been run, or time is up; what has been found until then is kept, should
the implementation end the process.
"""

import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import coverage
import msgspec
from msgspec.structs import replace

from conformance.adapter import Implementation
from conformance.adapter.loading import chosen
from conformance.adapter.own_code import codes, facts_of, own_code
from conformance.cases.random import corpus
from conformance.errors import ProblemError, Unsupported, told
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge
from conformance.problem import Problem
from conformance.records import Unrun, encode
from conformance.records.unrun import Function
from conformance.run.workers.afterwards import UnrunTask
from conformance.run.workers.unreached import Unreached, unreached
from conformance.specification import conventions, requirements
from conformance.system.children import Channel, channel
from conformance.system.resources import shown
from conformance.values.golden import load_cases

FIRST_LOOK = 64  # problems, and twice as many each time after
RANDOM = 1  # examples of each requirement


def main() -> None:
    """The process. It sends what it has found again and again: the last says it all."""
    line = channel()
    task = msgspec.json.decode(line.receive(), type=UnrunTask)
    try:
        _Pass(task, line).run()
    except BaseException as error:  # the implementation may raise anything at all when it is loaded
        remark = f"What never ran is not known: {told(error)}."
        line.send(encode(Unrun(implementation=task.implementation, remark=remark)))
    os._exit(0)  # without waiting for threads of the implementation


class _Pass:
    """Puts the problems, and looks now and then what has not been run yet."""

    def __init__(self, task: UnrunTask, line: Channel) -> None:
        self.task = task
        self.line = line
        self.judge = Judge()
        self.measure = coverage.Coverage(
            data_file=None, branch=True, include=[_pattern(file) for file in task.files], config_file=False, messages=False
        )
        self.measure.clear_exclude()  # what is excluded from a user's own reports may be wrong all the same
        self.done = 0
        self._own: set[tuple[str, int]] = set()  # where its functions begin,
        self._compiled: set[tuple[str, int]] = set()  # and those of them that never run as they are

    def run(self) -> None:
        self.measure.start()  # before the files are loaded: decorators run then
        subject = Subject(self._implementation())
        own = own_code(subject.implementation)
        self._own, self._compiled = _places(own.functions), _places(own.compiled)
        self._put(subject, list(_problems(subject, self.task.seed)))

    def _implementation(self) -> Implementation:
        return chosen([self.task.spec], **self.task.given)[0]

    def _put(self, subject: Subject, problems: list[Problem]) -> None:
        expected, look, start = len(problems), FIRST_LOOK, time.monotonic()
        for problem in problems:
            if time.monotonic() - start > self.task.seconds:
                self._write(expected, f"Time was up after {self.done} of {expected} problems.")
                return
            self._try(subject, problem)
            self.done += 1
            if self.done == look:
                look *= 2
                so_far = f"after {self.done} of {expected} problems or a few more"
                if self._write(expected, f"The implementation ended the process, or gave no answer, {so_far}."):
                    return
            if self.done == FIRST_LOOK:
                self._ask(subject)
        self._write(expected)

    def _try(self, subject: Subject, problem: Problem) -> None:
        with suppress(Unsupported, ProblemError, Failed):
            put = subject.fitted(problem)
            subject.demand_affordable(put)
            put = subject.resolve(put)
            self.judge.run(subject, put, subject.route(put))

    def _ask(self, subject: Subject) -> None:
        for convention in conventions().values():
            if convention.is_asked_of(subject.implementation.operation, subject.implementation.support.returns):
                subject.observation(convention.id)

    def _write(self, expected: int, remark: str = "") -> bool:
        """Whether all has been run; sends what has not."""
        self.measure.stop()
        found = {shown(file): self._of(file) for file in self.task.files}
        record = Unrun(
            implementation=self.task.implementation,
            files=tuple(found),
            blocks=tuple(block for one in found.values() for block in one.blocks),
            branches=tuple(branch for one in found.values() for branch in one.branches),
            functions=tuple(function for file in self.task.files for function in self._named(file, found[shown(file)].functions)),
            problems=self.done,
            expected=expected,
        )
        all_ran = not (record.blocks or record.branches or record.functions)
        self.line.send(encode(record if all_ran else replace(record, remark=remark)))
        self.measure.start()
        return all_ran

    def _named(self, file: str, functions: Iterable[Function]) -> Iterator[Function]:
        """Of the file of what is called all functions, of others those that it names."""
        for one in functions:
            if (file, one.first) in self._compiled:
                yield replace(one, compiled=True)
            elif file == self.task.files[0] or (file, one.first) in self._own:
                yield one

    def _of(self, file: str) -> Unreached:
        with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
            try:
                self.measure.json_report(morfs=[file], outfile=report.name)
            except coverage.exceptions.CoverageException:  # nothing of it was run
                return Unreached()
            found: dict[str, Any] = next(iter(json.load(report)["files"].values()))
        missing, arcs = found["missing_lines"], [(first, second) for first, second in found["missing_branches"]]
        executable = {*missing, *found["executed_lines"]}
        return unreached(Path(file).read_text(encoding="utf-8"), shown(file), executable, missing, arcs)


def _pattern(file: str) -> str:
    """A pattern of coverage.py that matches the file, and hardly another: it cannot spell all characters."""
    return re.sub(r"[\[\]*?+@!]", "?", file)


def _places(functions: Iterable[FunctionType]) -> set[tuple[str, int]]:
    """The files and lines in which they and the functions within them begin."""
    return {(code.co_filename, code.co_firstlineno) for function in functions for code in codes(function.__code__)}


def _problems(subject: Subject, seed: int) -> Iterator[Problem]:
    """All problems of the operation's requirements, each once: first one of each kind."""
    implementation = subject.implementation
    facts = facts_of(implementation, thorough=True)
    found: dict[Problem, None] = {}
    for requirement in requirements().values():
        if requirement.is_asked_of(implementation.operation, implementation.support.returns):
            found |= dict.fromkeys(requirement.designed())
            found |= dict.fromkeys(requirement.adapted(facts) if requirement.adapted else ())
            for example in corpus(requirement, examples=RANDOM, seed=seed, free=not facts.dear):
                found |= dict.fromkeys(example.problems)
            found |= dict.fromkeys(case.problem for case in load_cases() if case.requirement == requirement.id)
    kinds: dict[Any, Problem] = {}
    for problem in found:
        kinds.setdefault(_kind(problem), problem)
    yield from dict.fromkeys((*kinds.values(), *found))


def _kind(problem: Problem) -> tuple[Any, ...]:
    """Problems of one kind mostly run the same lines."""
    words = (getattr(problem, name) for name in ("layout", "arrangement", "frequencies") if problem.has(name))
    return (
        problem.features,
        problem.dtype,
        problem.causal,
        tuple(transformation.name for transformation in problem.transformations),
        *words,
    )
