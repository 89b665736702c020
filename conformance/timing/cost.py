"""What the suite itself costs: wall time per verified problem less the time inside the implementation, and memory over many."""

import cProfile
import io
import pstats
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from statistics import median

from conformance.adapter import registry
from conformance.checks.items import ItemRun
from conformance.checks.run_options import TIERS, Effort
from conformance.expectations import no_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.specification import requirements
from conformance.specification.requirement import Requirement, nothing

IMPLEMENTATION, OPERATION = "numpy-direct", "attention"
DTYPE = "float32"
EXAMPLES = TIERS["full"]  # per requirement and round
EARLY, LATE = 2_000, 20_000  # problems after which memory is compared
PROFILED = 2_000
CACHE_BYTES = 4 << 20  # less than a run has: full before EARLY problems, so that its filling does not pass for growth


@dataclass(frozen=True)
class HarnessCost:
    """``seconds`` of wall time, ``inside`` of them in the implementation; ``per_item`` has the milliseconds per problem of each
    item. Resident memory in bytes after EARLY problems and at the end, None where the system does not say."""

    problems: int
    seconds: float
    inside: float
    per_item: tuple[float, ...]
    early_memory: int | None
    late_memory: int | None

    @property
    def milliseconds(self) -> float:
        """Per problem, oracle, budget and verdict included, the implementation not."""
        return 1e3 * (self.seconds - self.inside) / self.problems

    @property
    def median_milliseconds(self) -> float:
        """The same, of the item in the middle: what else the machine does shows less in it."""
        return median(self.per_item)

    @property
    def problems_per_second(self) -> float:
        return self.problems / self.seconds

    @property
    def growth(self) -> int | None:
        """Bytes that came on top after EARLY problems."""
        if self.early_memory is None or self.late_memory is None:
            return None
        return self.late_memory - self.early_memory


def harness_cost(*, seed: int, problems: int = LATE) -> HarnessCost:
    """Runs items as a conformance run does, in float32 at palette shapes on numpy-direct, for at least ``problems`` problems."""
    done, seconds, inside, early = 0, 0.0, 0.0, None
    per_item = []
    for item in _items(seed):
        start = time.perf_counter()
        result = item.run().item
        elapsed = time.perf_counter() - start
        done += result.counts.random
        seconds += elapsed
        inside += result.implementation_seconds
        per_item.append(1e3 * (elapsed - result.implementation_seconds) / result.counts.random)
        if early is None and done >= EARLY:
            early = resident_memory()
        if done >= problems:
            break
    return HarnessCost(done, seconds, inside, tuple(per_item), early, resident_memory())


def profile(*, seed: int, entries: int = 30, problems: int = PROFILED) -> str:
    """The functions in which the harness spends most time of its own, by cProfile, which makes everything slower."""
    profiler = cProfile.Profile()
    profiler.runcall(harness_cost, seed=seed, problems=problems)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(entries)
    return text.getvalue()


def _items(seed: int) -> Iterator[ItemRun]:
    """Items without end: one for each requirement that has random cases, then again with the next seed."""
    chosen = [_in_one_dtype(requirement) for requirement in requirements().values() if _is_typical(requirement)]
    judge, subject = Judge(CACHE_BYTES), Subject(registry.builtin()[IMPLEMENTATION])
    for round_number in count():
        effort = Effort(EXAMPLES, free=False, seed=seed + round_number)
        for requirement in chosen:
            yield ItemRun(requirement, subject, judge, no_expectations().for_(IMPLEMENTATION), effort)


def _is_typical(requirement: Requirement) -> bool:
    """Whether its problems are put once each, to be judged by value."""
    asked = requirement.operation == OPERATION and requirement.check == "values"
    return asked and requirement.random is not None and DTYPE in requirement.random.dtypes


def _in_one_dtype(requirement: Requirement) -> Requirement:
    """``requirement`` with its random cases alone, under an id to which no golden case belongs."""
    assert requirement.random is not None
    draw = replace(requirement.random, dtypes=(DTYPE,))
    return replace(requirement, id=f"ATT-{requirement.area}-000", designed=nothing, random=draw)


def resident_memory() -> int | None:
    """Bytes of this process in memory: now on Linux, at most so far on other systems that count it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return _peak_memory()
    import resource

    return pages * resource.getpagesize()


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
