"""A run whose every free text was written to do harm, and damaged copies of a run."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import msgspec

from conformance.judging.verdict import Outcome
from conformance.records import Growth, Line, RequirementEntry, Unrun
from tests.support import runs

# What a terminal obeys, what reorders or hides text, what CIs take for commands, what markup and spreadsheets read.
TEXT = (
    "\x1b[31mred\x1b]0;title\x07 \x9b2J \x00\x08 \u202eesrever\u2066 \u200b\ufeff\U000e0041 \u2028\n::error::told by nobody\n"
    "  ::set-env name=A::b\n##[error]so\r::warning::more\n##vso[task.setvariable]x | <script>alert(1)</script> "
    "](http://a.example) `code` ``` ~~~ *bold* ![i](j) & &lt; www.a.example"
)


def hostile_run(name: str = "flawed", text: str = TEXT) -> tuple[Line, ...]:
    """Records that are read, for nothing in them is an identifier but what looks like one."""
    shown = {"outcome": Outcome.ERROR, "status": "unexpected", "reason": text}
    return (
        runs.header(
            [runs.implementation(name, missing=text, unread=(text,), limits=text), "fine"],
            [RequirementEntry(id="ATT-OUT-001", area="OUT", operation="attention", sentence=text)],
            command=text,
            selection=text,
            environment=msgspec.structs.replace(runs.LINUX, cpu=text),
        ),
        runs.item(name, lacking={text: 3}, observations={text: text}, **shown),
        runs.item("fine", reason=text),
        runs.case(1, name, outcome="ERROR", message=text, reason=text, repro=text),
        runs.convention(name, agrees=False, message=text, where={"zeros": (text,)}, reason=text),
        runs.timing(name, outcome=Outcome.WRONG_VALUE, status="unexpected", message=text, reason=text, median_seconds=None),
        Growth(implementation=name, operation="attention", dtype="float32", outcome=Outcome.ERROR, lengths=(), message=text),
        runs.diagnosis(name, explanations=(runs.explanation(sentence=text),), remarks=(text,)),
        Unrun(implementation=name, files=(text,), remark=text),
    )


_NUMBERS: tuple[Any, ...] = (0, -1, 2**63, 10**400, 5e-324, 1e308, 1e12, "inf", "nan", -0.0, 0.5)
_WORDS = ("", "\x00", "../../victim", "a/b", "\x1b[31m", "::error::x", "\u202e", "=1+1", "x" * 3000, "a\n", "|", "<b>", "fine")
_OTHERS: tuple[Any, ...] = (None, True, [], {}, [None], {"a": 1}, ["x"])


def damaged(file: Path, dice: random.Random) -> str:
    """The text of a record file with one or two values of others kinds, left out, or doubled; its footer counts what is there."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    lines = copy.deepcopy(lines)
    for _ in range(dice.choice((1, 1, 2))):
        record = dice.choice(lines)
        parent, key = dice.choice([place for place in _places(record) if place[1] != "kind"])
        _damage(parent, key, dice)
    return "\n".join(json.dumps(line) for line in lines) + "\n"


def _damage(parent: Any, key: Any, dice: random.Random) -> None:
    value, turn = parent[key], dice.random()
    if turn < 0.1:
        parent.pop(key)
    elif isinstance(value, list) and value and turn < 0.5:
        value.append(copy.deepcopy(value[0]))
    elif turn < 0.15:
        parent[key] = dice.choice(_OTHERS)
    else:
        parent[key] = dice.choice(_WORDS if isinstance(value, str) else _NUMBERS)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, entry in inner for place in ((value, key), *_places(entry))]
