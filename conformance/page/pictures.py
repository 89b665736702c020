"""A failure's picture as attributes of an element, which the script turns into heat maps."""

import math
from dataclasses import dataclass

from conformance.page.text import figure
from conformance.problem.returned import OUTPUT
from conformance.records import Picture
from conformance.records.picture import Cells


@dataclass(frozen=True)
class PackedPicture:
    """``attributes``: numbers between spaces, rows between semicolons; ``description``: what the picture shows, in words."""

    attributes: dict[str, str]
    description: str

    @property
    def length(self) -> int:
        return sum(len(value) + 16 for value in self.attributes.values())


def packed(picture: Picture, output: str = OUTPUT) -> PackedPicture:
    """The picture of the output called ``output``."""
    attributes = {
        "head": " ".join(str(i) for i in picture.head),
        "size": " ".join(str(length) for length in picture.size),
        "rows": " ".join(str(row) for row in picture.rows),
        "columns": " ".join(str(column) for column in picture.columns),
        "keys": " ".join(str(key) for key in picture.keys),
        "visible": ";".join(picture.visible),
        "got": _numbers(picture.got),
        "want": _numbers(picture.want),
        "r": _numbers(picture.r),
    }
    return PackedPicture(attributes, describe(picture, output))


def describe(picture: Picture, output: str = OUTPUT) -> str:
    """Where the picture lies, how many elements are beyond their budget, and which is the worst."""
    ranked = [
        (r, picture.rows[i], picture.columns[j])
        for i, row in enumerate(picture.r)
        for j, r in enumerate(row)
        if not math.isnan(r)
    ]
    beyond = sum(r > 1 for r, *_ in ranked)
    name = output.capitalize() if output == OUTPUT else output
    where = f"{name}[{', '.join(str(i) for i in picture.head)}]" if picture.head else f"The {output}"
    drawn = (len(picture.rows), len(picture.columns))
    blocks = "" if drawn == picture.size else f", drawn as {drawn[0]} × {drawn[1]} blocks, each by its worst element"
    text = f"{where}, {picture.size[0]} × {picture.size[1]}{blocks}: {beyond} of {len(ranked)} beyond the budget"
    if not beyond:
        return f"{text}."
    r, row, column = max(ranked, key=lambda entry: entry[0])
    return f"{text}; the worst, r = {figure(r)}, in row {row}, column {column}."


def _numbers(cells: Cells) -> str:
    return ";".join(" ".join(_number(value) for value in row) for row in cells)


def _number(value: float) -> str:
    return f"{value:.3g}"
