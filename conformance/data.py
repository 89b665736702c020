"""Data that travels as JSON or TOML: immutable, typed, refused with unknown fields.

Numbers may be infinite or NaN, which JSON cannot say: they are written as the strings "inf", "-inf" and "nan".
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

if TYPE_CHECKING:  # in Python a number is a float, whatever it was in the file
    Number = float
else:
    Number = float | Literal["nan", "inf", "-inf"]

Count = Annotated[int, Meta(ge=0)]


class Data(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what is read from files. NUMBERS names the fields that turn from "inf" and the like into floats."""

    NUMBERS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.NUMBERS:
            value: Any = getattr(self, name)
            if isinstance(value, str):
                msgspec.structs.force_setattr(self, name, float(value))
