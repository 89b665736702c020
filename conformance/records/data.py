"""Data that travels as JSON or TOML: immutable, typed, refused with unknown fields.

Numbers may be infinite or NaN, which JSON cannot say: they are written as the strings "inf", "-inf" and "nan".
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from conformance.system.user_files import LONGEST_NAME

if TYPE_CHECKING:  # in Python a number is a float, whatever it was in the file
    Number = float
else:
    Number = float | Literal["nan", "inf", "-inf"]

# Bounds and patterns: what a file may hold. JSON knows whole numbers of any length, also those of which no float can be made. A
# Word is safe as a part of a file's name; a Name or a Text is a line of characters that are seen, as path/to/a file.py:function.
# `$(?!\n)`: Python's $ alone would let a newline follow, and JSON Schema knows no \Z.
LARGEST = 2**63 - 1
_SEEN = r"^[^\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
Integer = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Identifier = Annotated[str, Meta(pattern=r"^[A-Z0-9]+(-[A-Z0-9]+)*$(?!\n)", max_length=100)]
Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$(?!\n)", max_length=100)]
Name = Annotated[str, Meta(pattern=rf"{_SEEN}+$(?!\n)", max_length=LONGEST_NAME)]
Text = Annotated[str, Meta(pattern=rf"{_SEEN}*$(?!\n)", max_length=LONGEST_NAME)]


class Data(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what is read from files. NUMBERS names the fields that turn from "inf" and the like into floats."""

    NUMBERS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.NUMBERS:
            value: Any = getattr(self, name)
            if isinstance(value, str):
                msgspec.structs.force_setattr(self, name, float(value))
