"""One record and its line of JSON."""

import math
import re
from typing import Any

import msgspec

from conformance.errors import UsageError, cut
from conformance.records.model import SCHEMA_VERSION, Line


class NewerSchemaError(UsageError):
    """The line is a header of a later version of the suite, and nothing is wrong with it."""


LONGEST_TEXT = 20_000  # characters of what is recorded; a message may be of any length
_OF_PATTERNS = re.compile(r"`str` matching regex '.*'(?= - at|$)")  # which are not for reading
_DECODER = msgspec.json.Decoder(Line)


def encode(record: Line) -> bytes:
    """The record as one line of JSON, without its end of line; ``decode`` gives an equal record."""
    return msgspec.json.encode(_speakable(msgspec.to_builtins(record)))


def decode(line: bytes | str) -> Line:
    """The record that a line holds. Raises UsageError, without saying where the line is, for a line that is none."""
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        newer = _newer_schema(line)
        if newer is not None:
            raise NewerSchemaError(
                f"it has records schema {newer}, and this version reads {SCHEMA_VERSION}: upgrade attention-conformance"
            ) from None
        raise UsageError(_OF_PATTERNS.sub("`str` of another form", str(error)).rstrip(".")) from None


def _newer_schema(line: bytes | str) -> int | None:
    """The schema version that a header claims, where it is later than ours."""
    try:
        content = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("kind") != "header":
        return None
    version = content.get("schema", SCHEMA_VERSION)
    return version if type(version) is int and version > SCHEMA_VERSION else None


def _speakable(value: Any) -> Any:
    """What JSON can say, at any depth: infinities and NaN as strings, halves of surrogate pairs replaced, endless texts cut."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if value.isascii() and len(value) <= LONGEST_TEXT else _text(value)
    if isinstance(value, dict):
        return {_speakable(key): _speakable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_speakable(entry) for entry in value]
    return value


def _text(text: str) -> str:
    return cut(text, LONGEST_TEXT).encode("utf-8", "replace").decode()
