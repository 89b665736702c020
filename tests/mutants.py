"""Mutants of the central modules: ``nox -s mutants -- verdict oracle/budget`` makes those of some and runs the quick tests.

mutmut (pyproject.toml) changes one thing at a time in a copy of the code and runs the tests that reach it. A mutant that no test
kills must stand in mutants.toml, with a reason; one that stands there and is killed must not. ``--update`` writes those that are
new into that file, without a reason, and takes out those that are killed.
"""

import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[1]
KNOWN = Path(__file__).with_name("mutants.toml")
LEAST = 0.9  # of the mutants of a module must be killed
ALL = "*"  # of a function, in place of changes


@dataclass(frozen=True)
class Mutant:
    """``change`` is what a diff shows of it, ``killed`` whether a test failed or did not end."""

    module: str
    function: str
    change: str
    killed: bool


def main(words: list[str]) -> int:
    update, names = "--update" in words, [word for word in words if word != "--update"]
    modules = [name for name in mutated() if not names or name.removeprefix("conformance/").removesuffix(".py") in names]
    if names and len(modules) != len(names):
        print(f"Name some of {', '.join(name.removeprefix('conformance/').removesuffix('.py') for name in mutated())}.")
        return 2
    patterns = [f"{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}.x*" for name in modules]
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", "2", *patterns], cwd=ROOT, check=True)
    found = [mutant for module in modules for mutant in mutants_of(module)]
    complaints = list(judged(found, known()))
    for sentence in complaints:
        print(sentence)
    for module in modules:
        print(figures(module, found))
    if update:
        write(found)
    return bool(complaints)


def mutated() -> list[str]:
    """The files that are mutated, as pyproject.toml lists them."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]["only_mutate"]


def mutants_of(module: str) -> Iterator[Mutant]:
    """Those of which the last run has a result."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    data = SourceFileMutationData(path=module)
    data.load()
    for key, code in data.exit_code_by_key.items():
        status = status_by_exit_code[code]
        if status != "not checked":
            killed = status in ("killed", "timeout", "segfault")
            change = "" if killed else _change(get_diff_for_mutant(key, path=module))
            yield Mutant(module, _function(key), change, killed)


def _function(key: str) -> str:
    """``module.function`` or ``module.Class.method`` of a key such as a.b.xǁClassǁmethod__mutmut_3."""
    module, _, mangled = key.rpartition(".")
    name = mangled.rpartition("__mutmut_")[0]
    return f"{module}.{name.removeprefix('x_') if 'ǁ' not in name else name.removeprefix('xǁ').replace('ǁ', '.')}"


def _change(diff: str) -> str:
    lines = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]
    return "  ".join(f"{line[0]} {' '.join(line[1:].split())}" for line in lines)


def known() -> dict[str, dict[str, str]]:
    """The reason by function and change."""
    entries: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in tomllib.loads(KNOWN.read_text(encoding="utf-8")).get("survivors", []):
        for change in entry["changes"]:
            entries[entry["function"]][change] = entry["why"]
    return entries


def judged(found: Iterable[Mutant], entries: dict[str, dict[str, str]]) -> Iterator[str]:
    """What is not as mutants.toml says, in sentences."""
    found = list(found)
    alive = {(mutant.function, mutant.change) for mutant in found if not mutant.killed}
    for function, change in sorted(alive):
        reasons = entries.get(function, {})
        if not reasons.get(change, reasons.get(ALL)):
            yield f"SURVIVES, and mutants.toml has no reason: {function}: {change}"
    reached = {mutant.function for mutant in found}
    for function in sorted(reached & set(entries)):
        for change in entries[function]:
            if change != ALL and (function, change) not in alive:
                yield f"KILLED, or gone: take it out of mutants.toml: {function}: {change}"
    for module in sorted({mutant.module for mutant in found}):
        share = killed_share(module, found)
        if share < LEAST:
            yield f"{module}: {share:.0%} of the mutants are killed, {LEAST:.0%} must be."


def killed_share(module: str, found: Iterable[Mutant]) -> float:
    results = [mutant.killed for mutant in found if mutant.module == module]
    return sum(results) / len(results)


def figures(module: str, found: Iterable[Mutant]) -> str:
    found = [mutant for mutant in found if mutant.module == module]
    return f"{module}: {sum(mutant.killed for mutant in found)} of {len(found)} killed ({killed_share(module, found):.1%})"


def write(found: Iterable[Mutant]) -> None:
    """Entries as they are now, one for each function and reason, those of functions that were not looked at as they were."""
    found, entries = list(found), known()
    reached = {mutant.function for mutant in found}
    rows: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for function, reasons in entries.items():
        for change, why in reasons.items():
            if function not in reached or change == ALL:
                rows[function, why][change] = None
    for mutant in found:
        reasons = entries.get(mutant.function, {})
        if not mutant.killed and ALL not in reasons:
            rows[mutant.function, reasons.get(mutant.change, "")][mutant.change] = None
    document = tomlkit.document()
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        document.add(tomlkit.comment(line.removeprefix("# ")))
    tables = tomlkit.aot()
    for (function, why), changes in sorted(rows.items()):
        table = tomlkit.table()
        table["function"], table["why"] = function, why
        table["changes"] = tomlkit.array().multiline(len(changes) > 1)
        table["changes"].extend(sorted(changes))
        tables.append(table)
    document["survivors"] = tables
    KNOWN.write_text(tomlkit.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
