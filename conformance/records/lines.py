"""One record and its line of JSON."""

import re

import msgspec

from conformance.errors import UsageError
from conformance.records.record_types import SCHEMA_VERSION, Line
from conformance.records.repair import FIXES, fixed, in_place_of, plain


class NewerSchemaError(UsageError):
    """The line is a header of a later version of the suite, and nothing is wrong with it."""


_OF_PATTERNS = re.compile(r"`str` matching regex '.*'(?= - at|$)")  # which are not for reading
_DECODER = msgspec.json.Decoder(Line)


def encode(record: Line) -> bytes:
    """The record as one line of JSON, without its end of line; ``decode`` gives an equal record.

    Each line is one that ``decode`` reads: what cannot be read as it is, is fixed, or gives way to a record that says so. Raises
    UsageError for a header or footer that cannot be fixed.
    """
    try:
        return _readable(record)
    except Exception as error:  # whatever is in a record, it must not cost the run
        return _readable(in_place_of(record, error))


def _readable(record: Line) -> bytes:
    """Raises whatever msgspec raises of a record that cannot be fixed."""
    content = plain(record)
    for _ in range(FIXES):
        line = msgspec.json.encode(content)
        try:
            _DECODER.decode(line)
        except msgspec.ValidationError as error:
            if not fixed(content, error):
                raise
        else:
            return line
    raise ValueError("too much of it cannot be read")


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
