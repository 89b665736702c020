"""Makes the tables of sizes beside this file, by ``python -m conformance.specification.covering``: ``sizes.csv``, ``layers.csv``.

They are covering arrays: each class of each dimension meets each class of each other one, and each argument, in some row, as far
as such a row is affordable. Generators of covering arrays that are published for Python know no cost of a row, and stop early
where pairs are ruled out; here a row is built around the dearest pair that is still open, and filled with what closes most
others at the least cost. That a table covers is tested, how it came about is not: it is stored, and not made when it is needed.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations, product

from conformance.specification.size_classes import CLASSES, class_of, relations_of
from conformance.specification.size_space import ARGUMENT, FEW, FOLDER, SPACES, TIER, Sizes, Space

# Of the quick tier.
COARSE = ("1", "small", "odd", "under a low tile", "a low tile", "a middle tile", "over a middle tile")
Row = dict[str, str]
Pair = tuple[str, str, str, str]
Line = dict[str, str | int]


@dataclass
class _Design:
    """The columns with what may stand in them, and the pairs that no row has yet."""

    space: Space
    columns: Mapping[str, tuple[str, ...]]
    open: set[Pair] = field(default_factory=set)

    def __post_init__(self) -> None:
        for (one, first), (other, second) in combinations(self.columns.items(), 2):
            for a, b in product(first, second):
                if self.space.affordable(_least({one: a, other: b})):
                    self.open.add((one, a, other, b))

    def pairs(self, row: Row) -> Iterator[Pair]:
        yield from ((one, row[one], other, row[other]) for one, other in combinations([c for c in self.columns if c in row], 2))

    def next_row(self) -> Row:
        """A row around the dearest open pair, which is closed with all others that it holds."""
        one, a, other, b = max(self.open, key=lambda pair: (self._work({pair[0]: pair[1], pair[2]: pair[3]}), pair))
        row = {one: a, other: b}
        while len(row) < len(self.columns):
            choices = ((name, word) for name in self.columns if name not in row for word in self.columns[name])
            name, word = max(choices, key=lambda choice: self._worth(row, *choice))
            row[name] = word
        self.open.difference_update(self.pairs(row))
        return row

    def _work(self, row: Row) -> int:
        return self.space.work(self.space.whole(_least(row)))

    def _worth(self, row: Row, name: str, word: str) -> tuple[int, int, str, str]:
        """How many open pairs the word would close, then what it costs."""
        if not self.space.affordable(_least({**row, name: word})):
            return -1, 0, name, word
        closed = sum(self._pair(name, word, other, row[other]) in self.open for other in row)
        return closed, -self._work({**row, name: word}), name, word

    def _pair(self, one: str, a: str, other: str, b: str) -> Pair:
        names = list(self.columns)
        return (one, a, other, b) if names.index(one) < names.index(other) else (other, b, one, a)


def _least(row: Row) -> Sizes:
    return {name: CLASSES[word][0] for name, word in row.items() if name != ARGUMENT}


class _Sizes:
    """Chooses a size of each class in turn, so that each size is asked in each dimension."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._used: dict[tuple[str, int], int] = {}

    def of(self, row: Row) -> Sizes:
        sizes = _least(row)
        for name in sizes:
            options = [size for size in CLASSES[row[name]] if self._space.affordable({**sizes, name: size})]
            sizes[name] = min(options, key=lambda size: (self._used.get((name, size), 0), size))
            self._used[name, sizes[name]] = self._used.get((name, sizes[name]), 0) + 1
        return self._space.whole(sizes)


def make(space: Space) -> list[Line]:
    """The rows: tier, whether it is one of the few for those to whom shapes are dear, argument, sizes."""
    chosen, lines, seen = _Sizes(space), list[Line](), set[Pair]()

    def cover(tier: str, classes: tuple[str, ...], arguments: tuple[str, ...], *others: str) -> None:
        columns = {name: classes for name in space.dimensions if name not in space.derived or name in others}
        design = _Design(space, columns if others else {**columns, ARGUMENT: arguments})
        design.open -= seen
        while design.open:
            row = design.next_row()
            seen.update(design.pairs(row))
            lines.append({TIER: tier, FEW: "", ARGUMENT: row.get(ARGUMENT, "plain"), **chosen.of(row)})

    for number, (sizes, argument) in enumerate(product(space.together, space.few_arguments)):
        few = "few" if number < len(space.few_arguments) else ""
        lines.append({TIER: "quick", FEW: few, ARGUMENT: argument, **space.whole(sizes)})
    cover("quick", COARSE, space.few_arguments)
    cover("full", tuple(CLASSES), space.arguments)
    for name in space.derived:
        cover("full", tuple(CLASSES), (), name)
    if len(space.derived) > 1:
        cover("full", tuple(CLASSES), (), *space.derived)
    lines += _edges(space, lines)
    lines += _relations(space, lines)
    _mark_few(space, [line for line in lines if line[TIER] == "quick"], class_of)
    _mark_few(space, lines, lambda size: size)
    return lines


def _edges(space: Space, lines: Iterable[Line]) -> Iterator[Line]:
    """A row for each size of a dimension that no other has."""
    found = {(name, size) for line in lines for name, size in _sizes(space, line).items()}
    for name, word in product(space.dimensions, CLASSES):
        for size in CLASSES[word]:
            if (name, size) not in found:
                yield {TIER: "full", FEW: "", ARGUMENT: "plain", **space.whole({name: size})}


def _relations(space: Space, lines: Iterable[Line]) -> Iterator[Line]:
    """A row for each relation of two dimensions that no other has."""
    found = {relation for line in lines for relation in relations_of(_sizes(space, line))}
    plain = dict(zip(space.dimensions, (3, 2, 5, 7, 4, 6, 10), strict=True))
    wanted = [(one, "equal to", other, 11, 11) for one, other in combinations(space.dimensions, 2)]
    wanted += [(one, "much larger than", other, 37, 2) for one, other in permutations(space.dimensions, 2)]
    for one, how, other, size, other_size in wanted:
        if (one, how, other) not in found:
            yield {TIER: "full", FEW: "", ARGUMENT: "plain", **plain, one: size, other: other_size}


def _sizes(space: Space, line: Line) -> Sizes:
    return {name: int(line[name]) for name in space.dimensions}


def _mark_few(space: Space, lines: list[Line], word: Callable[[int], str | int | None]) -> None:
    """Marks rows that have each ``word`` of a size that any row has in a dimension, and each argument; cheap ones first."""

    def parts(line: Line) -> set[tuple[str, str | int | None]]:
        return {(ARGUMENT, line[ARGUMENT]), *((name, word(size)) for name, size in _sizes(space, line).items())}

    open_ = {part for line in lines for part in parts(line)}
    for line in lines:
        if line[FEW]:
            open_ -= parts(line)
    while True:
        best = max(lines, key=lambda line: (len(parts(line) & open_), -space.work(_sizes(space, line))))
        if not parts(best) & open_:
            return
        open_ -= parts(best)
        best[FEW] = "few"


def main() -> None:
    for space in SPACES:
        with (FOLDER / space.file).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, (TIER, FEW, ARGUMENT, *space.dimensions), lineterminator="\n")
            writer.writeheader()
            writer.writerows(make(space))


if __name__ == "__main__":
    main()
