"""The picture of a wrong output in its record."""

from typing import Annotated

import msgspec
from msgspec import Meta

from conformance.records.data import Count, Data, Number

Cells = tuple[tuple[Number, ...], ...]


class Picture(Data, frozen=True, kw_only=True):
    """The worst head of a wrong output, small enough to be drawn: ``got``, ``want`` and ``r`` = error / budget as rows ×
    columns, at most 24 × 24, with four significant digits. A larger matrix is cut into blocks, each shown by its entry of the
    largest r; ``rows`` and ``columns`` are the first positions of the blocks, ``size`` the numbers of judged rows and of columns,
    ``head`` the matrix's place in the output. r is NaN where nothing is judged, infinite where one of got and want is not finite
    and the other differs. For attention with hidden pairs, ``visible`` says for each row which of the blocks of keys that begin
    at ``keys`` its queries may attend to: # all, + some, . none."""

    head: tuple[Count, ...]
    size: tuple[Count, Count]
    rows: tuple[Count, ...]
    columns: tuple[Count, ...]
    got: Cells
    want: Cells
    r: Cells
    keys: tuple[Count, ...] = ()
    visible: tuple[Annotated[str, Meta(pattern=r"^[#+.]+$(?!\n)")], ...] = ()

    def __post_init__(self) -> None:
        for name in ("got", "want", "r"):
            cells = tuple(tuple(float(entry) for entry in row) for row in getattr(self, name))
            if [len(row) for row in cells] != [len(self.columns)] * len(self.rows):
                raise ValueError(f"{name} of a picture is not of its rows and columns")
            msgspec.structs.force_setattr(self, name, cells)
        if self.visible and [len(row) for row in self.visible] != [len(self.keys)] * len(self.rows):
            raise ValueError("visible of a picture is not of its rows and keys")
