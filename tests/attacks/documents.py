"""Damaged expectations, skips files and golden files, drawn by Hypothesis."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.values import golden
from conformance.values.golden_files import json_to_bytes, read_json, read_tensors, tensors_to_bytes
from tests.attacks.records import ANY, REFUSED, Damaged
from tests.attacks.texts import TEXTS

Draw = Callable[[st.SearchStrategy[Any]], Any]

# Expectations

EXPECTED = """# Known failures.

[[expected]]
requirement = "ATT-OUT-001"
outcome = "WRONG_VALUE"
reason = "a reason"
cases = ["{digest}"]

# of the other kind
[[expected]]
requirement = "ATT-OUT-002"
outcome = "ERROR"
reason = "raises"
dtypes = ["float32"]
when = {{ numpy = ">=2", platform = "linux" }}

[[expected]]
convention = "CON-EMPTY-ROW"
answer = "nan"
reason = "a reason"
""".format(digest="0" * 12)
_VALUES = (
    '""', '"x"', "1", "-1", "1.5", "nan", "inf", "true", "[]", '["x"]', "[1]", "[[]]", "{}", "{ a = 1 }", "1979-05-27",
    "1" * 10_000, "0x" + "f" * 5_000, "1e999", "[" * 5_000 + "]" * 5_000, "{a=" * 5_000 + "1" + "}" * 5_000, "'''\n'''", "",
    '"\\u0000"', '"\\ud800"', '"all"', '"ATT-OUT-001"', '"PASS"', '"SKIPPED"', '["float32"]', '["float8"]', '">="',
    "07:32:00", "[", '"',
)  # fmt: skip
_LINES = (
    "x = 1", "[expected]", "[[expected]]", "[[expected.when]]", "[other]", "expected = []", "expected = 1", "[[ expected ]]",
    "routes = []", "reason = 'x'", "a." * 5_000 + "a = 1", "= 1", "\x00", "\x1b[31m", "\u202e", "# \x07", "[[expected]] # x",
    "cases = []", "when = { numpy = '>=99' }", "when = { x = '>=1' }", "'' = 1", '"\\u202e" = 1', "[" + "a." * 3_000 + "a]",
)  # fmt: skip


def _quoted(text: str) -> str:
    """As a TOML string, or nearly so where there is none."""
    return json.dumps(text, ensure_ascii=True)


@st.composite
def damaged_toml(draw: Draw) -> Damaged:
    lines = EXPECTED.splitlines()
    how = draw(st.sampled_from(("value", "text", "line", "lost", "doubled", "swapped", "bytes", "cut", "encoding")))
    place = draw(st.integers(0, len(lines) - 1))
    if how in ("value", "text"):
        place = draw(st.sampled_from([number for number, line in enumerate(lines) if "=" in line]))
        value = draw(st.sampled_from(_VALUES)) if how == "value" else _quoted(draw(st.sampled_from(TEXTS)))
        lines[place] = f"{lines[place].partition('=')[0]}= {value}"
    elif how == "line":
        lines.insert(place, draw(st.sampled_from(_LINES)))
    elif how == "lost":
        del lines[place]
    elif how == "doubled":
        lines.insert(draw(st.integers(0, len(lines))), lines[place])
    elif how == "swapped":
        other = draw(st.integers(0, len(lines) - 1))
        lines[place], lines[other] = lines[other], lines[place]
    content = "\n".join(lines).encode() + b"\n"
    if how == "cut":
        content = content[: draw(st.integers(0, len(content)))]
    if how == "bytes":
        position = draw(st.integers(0, len(content) - 1))
        content = content[:position] + draw(st.binary(min_size=1, max_size=4)) + content[position + draw(st.integers(0, 3)) :]
    if how == "encoding":
        content = content.decode().encode(draw(st.sampled_from(("utf-16", "utf-8-sig", "utf-32"))))
    return Damaged(f"expectations: {how}", content)


# Skips

_PATTERNS = (
    "ATT-OUT-*", "ATT-MASK-001", "*", "CON-*", "[", "[!", "[]", "**" * 50, "?" * 300, "ATT-[A-Z]*-00?", "[" * 1_000, "*a" * 40
)  # fmt: skip


@st.composite
def damaged_skips(draw: Draw) -> Damaged:
    lines = draw(st.lists(st.sampled_from((*_PATTERNS, *TEXTS)), max_size=4))
    content = "\n".join(lines).encode(errors="surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        content += draw(st.binary(max_size=20))
    return Damaged("skips", content)


# Golden files


@dataclass(frozen=True)
class GoldenFolder:
    """The content of a golden file's two halves."""

    damaged: Damaged
    tensors: bytes


@cache
def golden_halves() -> tuple[dict[str, Any], bytes]:
    """Two small cases of the suite's own, with their tensors."""
    case = min(golden.load_cases(), key=lambda case: (case.file.name, case.number))
    document = read_json(case.file.with_suffix(".json"))
    entries = document["cases"][:2]
    ids = tuple(f"{entry['id']}/" for entry in entries)
    tensors = {name: array for name, array in read_tensors(case.file).items() if name.startswith(ids)}
    return {**document, "cases": entries}, tensors_to_bytes(tensors)


_JSON = (None, True, 0, -1, 1.5, "", "x", [], {}, [[]], {"x": 1}, 10**400, "GOLD-0", "GOLD-" + "9" * 5_000, "0" * 64)


@st.composite
def damaged_golden(draw: Draw) -> GoldenFolder:
    document, tensors = golden_halves()
    content = json_to_bytes(document)
    half = draw(st.sampled_from(("field", "text", "json", "json", "tensors", "tensors", "header", "deep")))
    expected = ANY
    if half in ("field", "text", "deep"):
        document = json.loads(content)
        inner: Any = document
        while True:
            step = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
            if not isinstance(inner[step], dict | list) or not inner[step] or draw(st.integers(0, 3)) == 0:
                break
            inner = inner[step]
        inner[step] = "@deep@" if half == "deep" else draw(st.sampled_from(_JSON if half == "field" else TEXTS))
        depth = draw(st.sampled_from((100, 5_000, 200_000)))
        content = json.dumps(document).replace('"@deep@"', "[" * depth + "]" * depth).encode()
    elif half == "json":
        content = _changed(draw, content)
    elif half == "tensors":
        tensors = _changed(draw, tensors)
    else:
        size = draw(st.sampled_from((0, 1, 2**31, 2**63 - 1, 2**64 - 1, len(tensors), 100)))
        tensors, expected = size.to_bytes(8, "little") + tensors[8:], REFUSED
    return GoldenFolder(Damaged(f"golden: {half}", content, expected), tensors)


def _changed(draw: Draw, content: bytes) -> bytes:
    place = draw(st.integers(0, len(content) - 1))
    how = draw(st.sampled_from(("cut", "put", "over", "drop")))
    if how == "cut":
        return content[:place]
    put = draw(st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from((b"[" * 100_000, b"1" * 10_000, b"\0", b"NaN"))))
    return content[:place] + (b"" if how == "drop" else put) + content[place + (0 if how == "put" else len(put)) :]
