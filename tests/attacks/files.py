"""Damaged files by the thousand through everything that reads them: ``python -m tests.attacks.files [NUMBER [FOLDER]]``.

The same files each time. What was found is counted and printed: how many of each kind, how each command ended, and what was
wrong; the folder gets a file that shows each fault.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from conformance.cases.random import WITHOUT_CONSTANTS
from conformance.expectations import load, load_skips
from conformance.specification import conventions, requirements
from conformance.values import golden
from tests.attacks.documents import damaged_golden, damaged_skips, damaged_toml, golden_halves
from tests.attacks.records import Damaged, damaged_records, first_shard, undamaged, whole
from tests.attacks.sandbox import OUT, Ending, Sandbox

EXPECTED = 24_000  # of which more than 20,000 are different
FILE, OTHER = "records.jsonl", "other.jsonl"
# Commands on a damaged record file; those that are read in whole for all, those that draw for one in FEW.
COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", FILE),
    "report --partial": ("report", FILE, "--partial"),
    "diff": ("diff", OTHER, FILE),
    "diff, the base": ("diff", FILE, OTHER, "--format", "json"),
    "diff in markdown": ("diff", OTHER, FILE, "--format", "markdown"),
    "history": ("history", OTHER, FILE),
    "annotate": ("annotate", FILE),
    "badge": ("badge", FILE, "--out", OUT),
    "badge, one": ("badge", FILE, "--out", f"{OUT}/one.json", "--implementation", "fine"),
    "merge": ("merge", "first.jsonl", "second.jsonl", "--out", f"{OUT}/merged.jsonl"),
    "expectations update": ("expectations", "update", FILE, "--to", OUT),
}
DRAWING: dict[str, tuple[str, ...]] = {
    "report --out": ("report", FILE, "--out", OUT),
    "page": ("page", FILE, "--out", f"{OUT}/report.html"),
    "action that merges": ("action",),
    "history --plot": ("history", OTHER, FILE, "--plot", f"{OUT}/history.svg"),
}
FEW = 16
SHARES = {"records": 75, "expectations": 10, "skips": 5, "golden": 10}  # percent
PARTS = 4  # of each, which processes share
ACTION = {
    "CONFORMANCE_MERGE": "first.jsonl\nsecond.jsonl", "CONFORMANCE_REPORTS": OUT, "CONFORMANCE_BASELINE": OTHER,
    "GITHUB_STEP_SUMMARY": f"{OUT}/step.md", "GITHUB_OUTPUT": f"{OUT}/output",
}  # fmt: skip


@dataclass
class Found:
    """What came of the files: how many of each kind, the endings of each command, the faults with their first file."""

    kinds: Counter[str] = field(default_factory=Counter)
    endings: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: dict[tuple[str, str], Damaged] = field(default_factory=dict)
    distinct: set[bytes] = field(default_factory=set)

    def note(self, command: str, damaged: Damaged, ending: Ending, faults: list[str]) -> None:
        self.endings[command, "raised" if ending.code is None else str(ending.code)] += 1
        if ending.code is not None and ending.code not in damaged.expected:
            faults = [*faults, f"code {ending.code}, where {sorted(damaged.expected)} is expected: {_family(damaged.kind)}"]
        for fault in dict.fromkeys(faults):
            self.faults[command, fault] += 1
            self.samples.setdefault((command, fault), damaged)

    def count(self, damaged: Damaged) -> None:
        self.kinds[_family(damaged.kind)] += 1
        self.distinct.add(sha256(damaged.content).digest())

    def add(self, other: "Found") -> None:
        self.kinds += other.kinds
        self.endings += other.endings
        self.faults += other.faults
        self.samples = other.samples | self.samples
        self.distinct |= other.distinct

    def lines(self) -> Iterator[str]:
        """All of it, for a reader."""
        yield f"{sum(self.kinds.values())} files, {len(self.distinct)} of them different"
        yield from (f"  {number:6}  {kind}" for kind, number in self.kinds.most_common())
        yield f"{sum(self.endings.values())} readings"
        for command in dict.fromkeys(command for command, _ in self.endings):
            codes = ((code, number) for (name, code), number in sorted(self.endings.items()) if name == command)
            yield f"  {command}: {', '.join(f'{number} × {code}' for code, number in codes)}"
        yield f"{len(self.faults)} faults" if self.faults else "nothing is wrong"
        for (command, fault), number in sorted(self.faults.items()):
            yield f"  {number:6}  {command}: {fault} (as: {self.samples[command, fault].kind})"


def _family(kind: str) -> str:
    """Without the field."""
    return kind.split(" of ")[0] if kind.startswith("type of ") else kind


def attack(number: int, processes: int = 1) -> Found:
    """Makes and reads about ``number`` files, three quarters of them records, always the same ones."""
    sizes = {kind: number * share // 100 for kind, share in SHARES.items()}
    parts = [(kind, one, len(range(one, size, PARTS))) for kind, size in sizes.items() for one in range(min(size, PARTS))]
    found = Found()
    if processes == 1:
        for part in parts:
            found.add(_part(part))
    else:
        with ProcessPoolExecutor(processes) as pool:
            for one in pool.map(_part, parts):
                found.add(one)
    return found


def _part(part: tuple[str, int, int]) -> Found:
    """So many files of a kind, drawn with a seed. What is wrong is counted, so that nothing ends it early."""
    kind, own_seed, number = part
    found = Found()
    with TemporaryDirectory() as folder:
        files, reader = READERS[kind]
        read = reader(Sandbox(Path(folder).resolve()), found)

        @seed(own_seed)
        @settings(max_examples=number, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(files())
        def body(file: Any) -> None:
            read(file)

        with WITHOUT_CONSTANTS:
            body()
    return found


class _Records:
    def __init__(self, sandbox: Sandbox, found: Found) -> None:
        self.sandbox, self.found, self.number, self.drawn = sandbox, found, 0, 0
        sandbox.put(OTHER, whole(undamaged()))

    def __call__(self, damaged: Damaged) -> None:
        self.found.count(damaged)
        self.sandbox.put(FILE, damaged.content)
        for name, content in zip(("first.jsonl", "second.jsonl"), first_shard(damaged.content), strict=True):
            self.sandbox.put(name, content)
        ending, faults = self._run("report", damaged)
        if ending.code == 2 and not faults:  # it is read by the same function everywhere: one more sees that it says so
            self._run(list(COMMANDS)[1 + self.number % (len(COMMANDS) - 1)], damaged)
        else:
            for command in [*COMMANDS][1:]:
                self._run(command, damaged)
            if self.number % (FEW // 8 if "text" in damaged.kind else FEW) == 0:
                self._run(list(DRAWING)[self.drawn % len(DRAWING)], damaged)
                self.drawn += 1
        self.number += 1

    def _run(self, command: str, damaged: Damaged) -> tuple[Ending, list[str]]:
        ending, faults = self.sandbox.run((COMMANDS | DRAWING)[command], ACTION)
        whole_read = "--partial" not in command and command not in ("merge", "action that merges", "badge, one")
        expected = damaged if whole_read else Damaged(damaged.kind, damaged.content)
        self.found.note(command, expected, ending, faults)
        return ending, faults


class _Expectations:
    def __init__(self, sandbox: Sandbox, found: Found) -> None:
        self.sandbox, self.found = sandbox, found
        sandbox.put(OTHER, whole(undamaged()))

    def __call__(self, damaged: Damaged) -> None:
        self.found.count(damaged)
        path = self.sandbox.put("known.toml", damaged.content)
        known = list(requirements())
        self.found.note("run --expectations", damaged, *self.sandbox.call(lambda: load(path, known)))
        (self.sandbox.out / "flawed.toml").write_bytes(damaged.content)
        words = ("expectations", "update", OTHER, "--to", OUT)
        self.found.note("expectations update, on a file", damaged, *self.sandbox.run(words))


class _Skips:
    def __init__(self, sandbox: Sandbox, found: Found) -> None:
        self.sandbox, self.found = sandbox, found

    def __call__(self, damaged: Damaged) -> None:
        self.found.count(damaged)
        path = self.sandbox.put("skips.txt", damaged.content)
        known = {*requirements(), *conventions()}
        self.found.note("run --skips", damaged, *self.sandbox.call(lambda: load_skips(path, known)))


class _Golden:
    def __init__(self, sandbox: Sandbox, found: Found) -> None:
        self.sandbox, self.found = sandbox, found
        golden_halves()

    def __call__(self, halves: Any) -> None:
        self.found.count(halves.damaged)
        folder = self.sandbox.put("golden/output.json", halves.damaged.content).parent
        self.sandbox.put("golden/output.safetensors", halves.tensors)
        golden.forget()
        self.found.note("golden cases", halves.damaged, *self.sandbox.call(lambda: _all_of(folder)))


def _all_of(folder: Path) -> None:
    for case in golden.load_cases(folder):
        golden.case_inputs(case)
        golden.golden_expected(case)


def keep(found: Found, folder: Path) -> None:
    """Writes the first file of each fault, and an index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, ((command, fault), damaged) in enumerate(sorted(found.samples.items())):
        (folder / f"{number:03}").write_bytes(damaged.content)
        index.append(f"{number:03}  {command}: {fault} (as: {damaged.kind})\n")
    (folder / "index.txt").write_text("".join(index), encoding="utf-8")


READERS: dict[str, tuple[Callable[[], st.SearchStrategy[Any]], Callable[[Sandbox, Found], Callable[[Any], None]]]] = {
    "records": (damaged_records, _Records),
    "expectations": (damaged_toml, _Expectations),
    "skips": (damaged_skips, _Skips),
    "golden": (damaged_golden, _Golden),
}


if __name__ == "__main__":
    result = attack(int(sys.argv[1]) if sys.argv[1:] else EXPECTED, os.cpu_count() or 1)
    print(*result.lines(), sep="\n")
    if sys.argv[2:]:
        keep(result, Path(sys.argv[2]))
    sys.exit(bool(result.faults))
