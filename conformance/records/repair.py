"""What becomes of a record that cannot be read again as it is: it is fixed, or gives way to one that says so.

No result of a run is worth less than a record that is not quite as it should be, and no record is worth the run.
"""

import hashlib
import math
import re
from typing import Any

import msgspec

from conformance.errors import UsageError, cut, told
from conformance.judging.verdict import Outcome
from conformance.records.data import Identifier, Name, Word
from conformance.records.record_types import (
    Case,
    ConventionResult,
    DiagnosisRecord,
    Growth,
    Item,
    Line,
    SelfComparison,
    Timing,
)
from conformance.records.unrun import Unrun

LONGEST_TEXT = 20_000  # characters of what is recorded; a message may be of any length
FIXES = 20  # places of one record that are fixed, before it is given up
_PLACE = re.compile(r" - at `\$\.(?P<field>\w+)(?P<rest>[^`]*)`$")
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]|(?P<each>\[\.\.\.\])")


def plain(record: Line) -> Any:
    """The record as dicts, lists, numbers and text that JSON in UTF-8 can hold, infinities and NaN as text."""
    return _speakable(msgspec.to_builtins(record, enc_hook=_as_number_or_text))


def fixed(content: dict[str, Any], error: msgspec.ValidationError) -> bool:
    """Whether ``content``, changed in place, is without what the error tells of: a time or a count below zero, which becomes 0,
    or a number that is not finite, where the field need not be given."""
    place = _PLACE.search(str(error))
    if place is None:
        return False
    field, steps = place["field"], [*_STEP.finditer(place["rest"])]
    if ">= 0" in str(error):
        content[field] = _not_negative(content[field], steps)
        return True
    if not steps and content.get(field) in ("inf", "-inf", "nan") and "got `str`" in str(error):
        del content[field]
        return True
    return False


def in_place_of(record: Line, error: Exception) -> Line:
    """What is recorded where the record cannot be. Raises UsageError for a header or footer, without which there is no run."""
    why = f"the suite failed here: its record could not be written: {told(error)}"
    name = _form(getattr(record, "implementation", ""), Name)
    match record:
        case Item():
            return Item(
                requirement=_form(record.requirement, Identifier),
                implementation=name,
                outcome=Outcome.ERROR,
                status="unexpected",
                reason=why,
            )
        case Case():
            return _case(record, name, why)
        case ConventionResult():
            return ConventionResult(
                id=_form(record.id, Identifier),
                implementation=name,
                declared=None,
                observed=None,
                agrees=None,
                status="unexpected",
                message=why,
            )
        case Timing():
            return Timing(
                implementation=name,
                operation=_form(record.operation, Word),
                suite=_form(record.suite, Word),
                shape=_form(record.shape, Word),
                dtype=_form(record.dtype, Word),
                outcome=Outcome.ERROR,
                calls=0,
                flops=0,
                baseline=_form(record.baseline, Word),
                status="unexpected",
                message=why,
            )
        case Growth():
            return Growth(
                implementation=name,
                operation=_form(record.operation, Word),
                dtype=_form(record.dtype, Word),
                outcome=Outcome.ERROR,
                lengths=(),
                status="unexpected",
                message=why,
            )
        case SelfComparison():  # not sound, so that the ratios are not trusted
            return SelfComparison(
                implementation=name,
                operation=_form(record.operation, Word),
                suite=_form(record.suite, Word),
                shape=_form(record.shape, Word),
                dtype=_form(record.dtype, Word),
                ratio=0.0,
                ratio_low=0.0,
                ratio_high=0.0,
                tolerance=0.0,
            )
        case DiagnosisRecord():
            return DiagnosisRecord(implementation=name, remarks=(f"{why}.",))
        case Unrun():
            return Unrun(implementation=name, remark=f"{why}.")
    raise UsageError(f"The records cannot be written, since their first or last line cannot be: {told(error)}.")


def _case(record: Case, implementation: str, why: str) -> Case:
    """The item's own outcome counts this case: it keeps what it had."""
    requirement = _form(record.requirement, Identifier)
    known = isinstance(record.outcome, Outcome) and record.status in ("expected", "unexpected")
    return Case(
        id=f"{requirement}/{hashlib.sha256(why.encode()).hexdigest()[:12]}",
        requirement=requirement,
        implementation=implementation,
        stratum=record.stratum if record.stratum in ("golden", "designed", "random") else "random",
        dtype=_form(record.dtype, Word),
        text=_text(record.text),
        outcome=record.outcome if known else Outcome.ERROR,
        message=why,
        status=record.status if known else "unexpected",
    )


def _not_negative(value: Any, steps: list[re.Match[str]]) -> Any:
    """The value with the numbers at the end of the steps no longer below zero; where a step is to each entry, all of them."""
    if not steps:
        return max(0, value) if isinstance(value, int | float) else value
    step, *rest = steps
    if step["each"]:
        return {key: _not_negative(entry, rest) for key, entry in value.items()}
    key = step["field"] or int(step["index"])
    value[key] = _not_negative(value[key], rest)
    return value


def _as_number_or_text(value: Any) -> Any:
    """What is no type of ours: a scalar of NumPy's as Python's, else as text."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else _text(value)


def _form(value: Any, kind: Any) -> str:
    """The value where it has the form of the ``kind``, else a word that has."""
    try:
        return msgspec.convert(_text(value), kind)
    except msgspec.ValidationError:
        return "UNREADABLE"


def _text(value: Any) -> str:
    try:
        text = str(value)
    except Exception as error:
        text = told(error)
    return cut(text, LONGEST_TEXT).encode("utf-8", "backslashreplace").decode("utf-8")


def _speakable(value: Any) -> Any:
    """Infinities and NaN as strings, in strings what UTF-8 lacks as escapes, endless ones cut, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if value.isascii() and len(value) <= LONGEST_TEXT else _text(value)
    if isinstance(value, dict):
        return {_speakable(key): _speakable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_speakable(entry) for entry in value]
    return value
