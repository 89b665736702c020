"""Which sizes the problems of the specification have, and what met what: the coverage table of ``attention-conformance faults``.

``python -m conformance.specification.coverage`` writes it to docs/sizes.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations, product
from pathlib import Path

from tabulate import tabulate

from conformance.problem import Problem
from conformance.specification import requirements
from conformance.specification.requirement import Facts
from conformance.specification.size_classes import (
    CLASSES,
    DIMENSIONS,
    TILES,
    arguments_of,
    class_of,
    relations_of,
    sizes_of,
)
from conformance.specification.size_space import SPACES, Space
from conformance.system import files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "sizes.md"
_EVERYTHING = Facts(sizes=(), features=frozenset(), dtypes=(), dear=False, thorough=True)
Cell = tuple[str, str]  # a dimension, and a class or a size
EDGES = tuple(tile + by for tile in TILES for by in (-1, 0, 1))


@dataclass
class SizeCoverage:
    """How many problems have each class, each edge of a tile, each pair of classes, each class beside an argument, and each
    relation of two dimensions."""

    space: Space
    problems: int = 0
    classes: Counter[Cell] = field(default_factory=Counter)
    edges: Counter[tuple[str, int]] = field(default_factory=Counter)
    pairs: Counter[tuple[Cell, Cell]] = field(default_factory=Counter)
    arguments: Counter[tuple[Cell, str]] = field(default_factory=Counter)
    relations: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, problem: Problem) -> None:
        sizes = sizes_of(problem)
        cells = [(name, found) for name, size in sizes.items() if (found := class_of(size)) is not None]
        self.problems += 1
        self.classes.update(cells)
        self.edges.update((name, size) for name, size in sizes.items() if size in EDGES)
        self.pairs.update(combinations(cells, 2))
        self.arguments.update(product(cells, arguments_of(problem)))
        self.relations.update(set(relations_of(sizes)))

    @property
    def dimensions(self) -> dict[str, str]:
        return DIMENSIONS[self.space.operation]

    @property
    def asked(self) -> tuple[str, ...]:
        """The arguments one by one."""
        return tuple(dict.fromkeys(word for words in self.space.arguments for word in words.split(" + ")))

    def affordable_pairs(self) -> Iterator[tuple[Cell, Cell]]:
        """Pairs of classes of two dimensions that a problem of bounded size can have."""
        for one, other in combinations(self.dimensions, 2):
            for first, second in product(CLASSES, CLASSES):
                if self.space.affordable({one: CLASSES[first][0], other: CLASSES[second][0]}):
                    yield (one, first), (other, second)

    def affordable_arguments(self) -> Iterator[tuple[Cell, str]]:
        """Classes of a dimension beside arguments; a dimension that follows from others is asked beside none."""
        for name, word, argument in product(self.dimensions, CLASSES, self.asked):
            if self.space.affordable({name: CLASSES[word][0]}) and name not in self.space.derived:
                yield (name, word), argument

    def missing(self) -> list[str]:
        """What no problem has, a phrase each; empty where the table is full."""
        names = self.dimensions
        lacking = [f"{names[d]} {word}" for d, word in product(names, CLASSES) if not self.classes[d, word]]
        lacking += [f"{names[d]} of {size}" for d, size in product(names, EDGES) if not self.edges[d, size]]
        for pair in self.affordable_pairs():
            if not self.pairs[pair]:
                lacking.append(" with ".join(f"{names[name]} {word}" for name, word in pair))
        for (name, word), argument in self.affordable_arguments():
            if not self.arguments[(name, word), argument]:
                lacking.append(f"{names[name]} {word} beside {argument}")
        wanted = [(one, "equal to", other) for one, other in combinations(names, 2)]
        wanted += [(one, "much larger than", other) for one, other in permutations(names, 2)]
        lacking += [f"{names[a]} {how} {names[b]}" for a, how, b in wanted if not self.relations[a, how, b]]
        return lacking


@cache
def coverage() -> dict[str, SizeCoverage]:
    """Of all designed problems of the full tier whose heads divide, and whose sizes no transformation changes, by operation."""
    found = {space.operation: SizeCoverage(space) for space in SPACES}
    for problem in _problems():
        if problem.operation in found and not problem.transformations and problem.is_whole:
            found[problem.operation].add(problem)
    return found


def _problems() -> Iterator[Problem]:
    for requirement in requirements().values():
        if requirement.judges_values:
            adapted = requirement.adapted(_EVERYTHING) if requirement.adapted else ()
            yield from dict.fromkeys([*requirement.designed(), *adapted])


def table(operation: str, style: str = "simple") -> str:
    """How many problems have each class of size in each dimension."""
    found = coverage()[operation]
    rows = [(word, _sizes_in_words(word), *(found.classes[name, word] for name in found.dimensions)) for word in CLASSES]
    return tabulate(rows, ("class", "sizes", *found.dimensions.values()), tablefmt=style, disable_numparse=True)


def _sizes_in_words(word: str) -> str:
    sizes = CLASSES[word]
    return ", ".join(map(str, sizes)) if len(sizes) < 5 else f"{sizes[0]} … {sizes[-1]}"


def argument_table(operation: str, style: str = "simple") -> str:
    """How many problems have each argument at each class, the least over the dimensions in which it is asked."""
    found = coverage()[operation]
    expected = dict.fromkeys(found.affordable_arguments())
    rows = []
    for argument in found.asked:
        cells = []
        for word in CLASSES:
            counts = [found.arguments[cell, argument] for cell, asked in expected if asked == argument and cell[1] == word]
            cells.append(min(counts) if counts else "–")
        rows.append((argument, *cells))
    return tabulate(rows, ("argument", *CLASSES), tablefmt=style, disable_numparse=True)


def sentences(operation: str) -> Iterator[str]:
    """What is full, and what is missing."""
    found = coverage()[operation]
    pairs, arguments = list(found.affordable_pairs()), list(found.affordable_arguments())
    met = sum(found.pairs[pair] > 0 for pair in pairs), sum(found.arguments[pair] > 0 for pair in arguments)
    yield (
        f"{found.problems:,} designed problems of {operation}; {met[0]:,} of {len(pairs):,} pairs of classes of two dimensions "
        f"met, {met[1]:,} of {len(arguments):,} pairs of a class and an argument."
    )
    missing = found.missing()
    yield f"Missing: {'; '.join(missing[:10])}{' …' if len(missing) > 10 else ''}." if missing else "Nothing is missing."


def render() -> str:
    """The document."""
    parts = ["# Sizes that are asked", _INTRODUCTION]
    for operation in coverage():
        parts += [f"## {operation}", " ".join(sentences(operation)), table(operation, "github")]
        parts += [_OF_ARGUMENTS, argument_table(operation, "github")]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """How many designed problems of the full tier have a size of each class in each dimension. Made by
`python -m conformance.specification.coverage`; `attention-conformance faults` prints it too, and a test keeps it full.

Each class of a dimension meets each class of every other one and each argument, as far as such a problem has at most 140,000
elements in an array (multi-head attention: 70,000; twice as many around sizes beyond 2¹⁶) and 2,000,000 products (4,000,000).
Each edge of a tile, one less and one more than 8, 16 … 1024, is asked in each dimension; each dimension is equal to each other
one in some problem, and much larger than it in another. Which rows do that stands in `conformance/specification/sizes.csv` and
`layers.csv`. The quick tier asks the classes up to a middle tile; implementations that compile each shape are asked few rows:
each size in each dimension, and each argument."""
_OF_ARGUMENTS = """How often each argument is asked at each class: the least over the dimensions."""


def stale() -> bool:
    """Whether ``docs/sizes.md`` is missing or differs from what the problems have now."""
    return not DOCUMENT.is_file() or DOCUMENT.read_text(encoding="utf-8") != render()


if __name__ == "__main__":
    files.write(DOCUMENT, render())
