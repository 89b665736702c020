"""A whole benchmark: which contests are held, and what becomes of those that an implementation ends."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from conformance.adapter import registry
from conformance.adapter.known import Known, known
from conformance.errors import UsageError
from conformance.expectations import Expectations, judge_timed
from conformance.judging.verdict import Outcome
from conformance.operations import operations
from conformance.records import Line, Passes, SelfComparison, Timing
from conformance.timing.contest import StoppingRule, TimedProblem
from conformance.timing.gradients import lacking
from conformance.timing.growth import GROWTH, growths
from conformance.timing.shapes import LADDER, Suite, rung, with_feature
from conformance.timing.worker import ContestTask, Died, Worker

FULL = StoppingRule()
OF_REPETITION = 60  # rounds of a comparison with itself that failed at first
OF_GROWTH = StoppingRule(least=5, most=5, seconds=0.0)
# What ratios are relative to where nothing is said, the first that is there: by operation, passes and device.
_DEFAULTS: dict[tuple[str, str, str], tuple[str, ...]] = {
    (name, *key): baselines for name, operation in operations().items() for key, baselines in operation.baselines.items()
}


class Baselines(Mapping[str, Known]):
    """What may be a baseline, by name: the ``others``, and all that is built in, of which one is looked at when it is asked for:
    that imports its framework."""

    def __init__(self, others: Iterable[Known]) -> None:
        self._known = {one.name: one for one in others}

    def __getitem__(self, name: str) -> Known:
        if name not in self._known:
            self._known[name] = known(registry.builtin()[name])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **registry.builtin()})

    def __len__(self) -> int:
        return len({**self._known, **registry.builtin()})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be measured. ``known`` has those by name of which one may be the baseline."""

    implementations: Sequence[Known]
    known: Mapping[str, Known]
    suites: dict[str, Suite]
    passes: tuple[Passes, ...] = ("forward",)
    dtypes: tuple[str, ...] = ("float32",)
    features: tuple[str, ...] = ("listed",)
    baseline: str | None = None
    growth: bool = True
    effort: StoppingRule = FULL

    def tasks(self) -> list[ContestTask]:
        """The contests in order; the first in which there is a baseline has it compared with itself.

        Raises UsageError where there is none.
        """
        tasks = [task for shape in self._shapes() for task in self._of(shape)]
        tasks += [task for shape in self._rungs() for task in self._of(shape)]
        if not tasks:
            raise UsageError("There is nothing to measure: none of the suites has a shape for what was named that can run here.")
        first = next((place for place, task in enumerate(tasks) if task.baseline and task.shape.suite != GROWTH), None)
        if first is not None:
            tasks[first] = replace(tasks[first], twin=True)
        return tasks

    def _shapes(self) -> Iterator[TimedProblem]:
        for passes in self.passes:
            for name, suite in self.suites.items():
                if passes == "forward" or suite.trains:
                    yield from self._of_suite(name, suite, passes)

    def _of_suite(self, name: str, suite: Suite, passes: Passes) -> Iterator[TimedProblem]:
        for dtype in self.dtypes:
            for feature in self.features:
                for shapes in suite.shapes.values():
                    for shape, problem in shapes.items():
                        variant = with_feature(shape, problem, feature)
                        if variant is not None:
                            yield TimedProblem(name, variant[0], variant[1].but(dtype=dtype), passes)

    def _rungs(self) -> Iterator[TimedProblem]:
        for passes in self.passes if self.growth else ():
            yield from (TimedProblem(GROWTH, f"L{n}", rung(n).but(dtype=self.dtypes[0]), passes) for n in LADDER)

    def _of(self, shape: TimedProblem) -> Iterator[ContestTask]:
        """A contest for each device on which there is somebody to take part."""
        able = [i for i in self.implementations if i.operation == shape.problem.operation and i.missing is None]
        if shape.passes == "forward+backward":
            able = [i for i in able if not lacking(i)]
        for device in dict.fromkeys(i.entry.device for i in able):
            names = [i.name for i in able if i.entry.device == device]
            growing = shape.suite == GROWTH
            baseline = None if growing else self._baseline(shape, device)
            if baseline is not None and baseline not in names:
                names.append(baseline)
            yield ContestTask(shape, tuple(names), baseline, OF_GROWTH if growing else self.effort)

    def _baseline(self, shape: TimedProblem, device: str) -> str | None:
        operation = shape.problem.operation
        given = (self.baseline,) if self.baseline else ()
        for name in (*given, *_DEFAULTS.get((operation, shape.passes, device), ())):
            candidate = self.known[name]
            fits = candidate.operation == operation and candidate.entry.device == device and candidate.missing is None
            if fits and (shape.passes == "forward" or not lacking(candidate)):
                return name
        return None

    def taking_part(self) -> list[Known]:
        """Those named and the baselines."""
        baselines = {task.baseline for task in self.tasks() if task.baseline}
        named = [i.name for i in self.implementations]
        return [*self.implementations, *(self.known[name] for name in sorted(baselines - set(named)))]


def hold(
    tasks: Sequence[ContestTask],
    worker: Worker,
    expectations: Expectations,
    *,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[ContestTask], None] = lambda task: None,
) -> Iterator[Line]:
    """The records of the tasks, as they come, those of growth at the end of each ladder. ``stopped`` is asked between tasks.

    A failure of a timed output that ``expectations`` do not know is unexpected. An implementation that ends or hangs the process
    has that as the outcome of its row, takes part no more, and costs the others nothing but the repetition of that contest.
    """
    dead: dict[str, Died] = {}
    ladder: list[Timing] = []
    for task in tasks:
        if stopped():
            break
        lines = [_judged(line, task, expectations) for line in _held(task, worker, dead, stopped)]
        if any(isinstance(line, SelfComparison) and not line.is_sound for line in lines):
            lines += [line for line in _held(_once_more(task), worker, dead, stopped) if isinstance(line, SelfComparison)]
        if task.shape.suite == GROWTH:
            ladder += [line for line in lines if isinstance(line, Timing)]
        else:
            yield from lines
        progress(task)
    yield from growths(ladder)


def _judged(line: Line, task: ContestTask, expectations: Expectations) -> Line:
    """A timing with its status."""
    if not isinstance(line, Timing) or not line.outcome.is_failure:
        return line
    if task.shape.suite == GROWTH and line.outcome is Outcome.OUT_OF_MEMORY:
        return structs.replace(line, reason="A ladder of lengths is climbed until memory ends.")
    status = judge_timed(expectations.for_(line.implementation), task.shape.problem, line.outcome)
    return structs.replace(line, status=status.word, reason=status.reason)


def _once_more(task: ContestTask) -> ContestTask:
    """The baseline against itself alone, in as many rounds as there may be: one 95 % interval in twenty misses by chance."""
    assert task.baseline is not None
    effort = replace(task.effort, least=OF_REPETITION, most=OF_REPETITION)
    return replace(task, names=(task.baseline,), effort=effort, memory=False)


def _held(task: ContestTask, worker: Worker, dead: dict[str, Died], stopped: Callable[[], bool]) -> list[Line]:
    """The task without the dead, again after each death; the dead have rows without times. Nobody is to blame for a death after
    an interruption."""
    lost: list[Line] = [
        _row(task, name, Outcome.SKIPPED, f"It takes part no more: {dead[name]}") for name in task.names if name in dead
    ]
    while names := tuple(name for name in task.names if name not in dead):
        try:
            return [*worker.run(replace(task, names=names)), *lost]
        except Died as death:
            if stopped():
                break
            dead[death.name] = death
            lost.append(_row(task, death.name, death.outcome, str(death)))
    return lost


def _row(task: ContestTask, name: str, outcome: Outcome, message: str) -> Timing:
    shape = task.shape
    return Timing(
        implementation=name, operation=shape.problem.operation, suite=shape.suite, shape=shape.name, dtype=shape.problem.dtype,
        passes=shape.passes, outcome=outcome, calls=0, flops=0, baseline=task.baseline or "", message=message,
    )  # fmt: skip
