"""The verdict: one definition of every number, and the common part of many failures before its consequences."""

from pathlib import Path
from typing import Any

import pytest

from conformance import reports
from conformance.exit_codes import ExitCode
from conformance.records import Item, Line, Run, read_records
from conformance.reports.causes import causes, unexplained
from conformance.verdict import Outcome
from tests.support import runs

DTYPES = ("float64", "float32", "float16", "bfloat16")
REQUIREMENTS = tuple(f"ATT-OUT-{number:03}" for number in range(1, 13))


def text(number: int, dtype: str, more: str = "", heads: str = "4") -> str:
    return f"attention batch=1 heads={heads} length=5 width={number + 1} dtype={dtype} values=gaussian.1#1{more}"


def failing_where(wrong: Any, outcome: str = "WRONG_VALUE", **changes: Any) -> list[Line]:
    """Twelve requirements with a plain problem and three others in each dtype; those that are ``wrong`` fail."""
    lines: list[Line] = []
    for number, requirement in enumerate(REQUIREMENTS):
        found: dict[str, str] = {}
        for place, dtype in enumerate(DTYPES):
            for more, heads in (("", "4"), ("", "4/2"), (" mask=random.1:qk#1", "4"), (" layout=transposed", "4")):
                problem = text(number, dtype, more, heads)
                fails = wrong(requirement, dtype, problem)
                found[dtype] = outcome if fails else found.get(dtype, "PASS")
                fields = changes if fails else {"r": 0.1}
                lines.append(
                    runs.case(
                        100 * number + place,
                        "flawed",
                        requirement,
                        outcome if fails else "PASS",
                        dtype=dtype,
                        text=problem,
                        **fields,
                    )
                )
        bad = any(value != "PASS" for value in found.values())
        lines.append(runs.item("flawed", requirement, dtypes=runs.in_dtypes(**found), **(runs.FAILS if bad else {})))
    return lines


def made(tmp_path: Path, *lines: Line, names: tuple[str, ...] = ("flawed",), **header: Any) -> Run:
    entries = [runs.implementation(name, dtypes=DTYPES, profile={}) for name in names]
    return runs.run(tmp_path, runs.header(entries, REQUIREMENTS, **header), *lines, exit_code=ExitCode.UNEXPECTED)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            lambda r, dtype, t: dtype == "float64",
            "All 12 unexpected failures are in float64 alone: declare dtypes without float64.",
        ),
        (
            lambda r, dtype, t: dtype == "float64" or (r, dtype) == ("ATT-OUT-003", "float32"),
            "All but 1 of 12 unexpected failures are in float64 alone: declare dtypes without float64.",
        ),
        (
            lambda r, dtype, t: dtype in ("float16", "bfloat16"),
            "All 12 unexpected failures are in float16 and bfloat16: declare dtypes without float16 and bfloat16.",
        ),
        (
            lambda r, dtype, t: "heads=4/2" in t,
            "All 12 unexpected failures need grouped-heads.",
        ),
        (lambda r, dtype, t: "mask" in t and r < "ATT-OUT-006", "All 5 unexpected failures need mask"),
        (
            lambda r, dtype, t: "transposed" in t,
            "All 12 unexpected failures have inputs that are transposed in memory.",
        ),
    ],
)
def test_the_common_part_is_named_first(tmp_path: Path, wrong: Any, told: str) -> None:
    run = made(tmp_path, *failing_where(wrong))
    assert reports.lines(run)[1].startswith(told)
    for output in (reports.terminal_summary(run), reports.summary(run)["verdict"][1]):
        assert told in output


def test_a_profile_is_named_only_where_it_would_pass(tmp_path: Path) -> None:
    lines = failing_where(lambda r, dtype, t: dtype == "float64", r=1e6)
    for largest, told in (
        (0.5, "declare dtypes without float64, or the profile soft32."),
        (1.5, "declare dtypes without float64."),
    ):
        accuracy = (
            *runs.accuracy(1e6, dtype="float64", profile="eager"),
            *runs.accuracy(largest, dtype="float64", profile="soft32"),
        )
        first = next(place for place, line in enumerate(lines) if isinstance(line, Item))
        changed = [runs.item("flawed", REQUIREMENTS[0], dtypes=lines[first].dtypes, accuracy=accuracy, **runs.FAILS)]  # type: ignore[union-attr]
        run = made(tmp_path, *lines[:first], *changed, *lines[first + 1 :])
        assert reports.lines(run)[1].endswith(f": {told}")


def test_another_dtype_that_is_returned_is_named(tmp_path: Path) -> None:
    message = "The output is float32, due is bfloat16."
    run = made(tmp_path, *failing_where(lambda r, dtype, t: dtype == "bfloat16", "WRONG_DTYPE", message=message))
    assert reports.lines(run)[1] == (
        "All 12 unexpected failures are in bfloat16 alone: float32 is returned, bfloat16 is due: convert the output, or declare "
        "dtypes without bfloat16."
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda r, dtype, t: True,  # nothing passes, so nothing tells failures from passes
        lambda r, dtype, t: r < "ATT-OUT-003" and dtype == "float64",  # two
        lambda r, dtype, t: r in ("ATT-OUT-001", "ATT-OUT-002", "ATT-OUT-003"),  # in all of these and no other
    ],
)
def test_nothing_is_named_where_nothing_tells(tmp_path: Path, wrong: Any) -> None:
    run = made(tmp_path, *failing_where(wrong))
    assert len(reports.lines(run)) == 1
    assert unexplained(run, causes(run)) == run.unexpected


def test_failures_that_end_in_one_way_are_said_to(tmp_path: Path) -> None:
    run = made(tmp_path, *failing_where(lambda r, dtype, t: True, "ERROR", message="RuntimeError: no kernel"))
    assert reports.lines(run)[1] == "All 12 unexpected failures are ERROR, most often: RuntimeError: no kernel"


def test_consequences_are_folded_under_the_fault_that_explains_them(tmp_path: Path) -> None:
    found = runs.explanation(requirements=REQUIREMENTS[:9])
    lines = failing_where(lambda r, dtype, t: "mask" not in t and r < "ATT-OUT-011")
    run = made(tmp_path, *lines, runs.diagnosis(explanations=(found,)))
    assert "The fault scale-missing explains 9 of 10 unexpected failures: ATT-OUT-001, " in reports.lines(run)[-1]
    terminal, page = reports.terminal_summary(run), reports.summary_markdown(run)
    assert "UNEXPECTED on flawed, explained by scale-missing: ATT-OUT-001, " in terminal
    assert "UNEXPECTED WRONG_VALUE on flawed: ATT-OUT-010" in terminal
    assert f"### flawed, explained by scale-missing: {', '.join(REQUIREMENTS[:9])}" in page
    assert "### ATT-OUT-010 on flawed" in page and "### ATT-OUT-002 on flawed" not in page


def test_several_implementations_are_told_apart(tmp_path: Path) -> None:
    run = made(tmp_path, *failing_where(lambda r, dtype, t: dtype == "float64"), names=("fine", "flawed"))
    assert reports.lines(run)[1].startswith("flawed: all 12 unexpected failures")


WIDE = runs.implementation("fine", dtypes=DTYPES)
UNSUPPORTED = {"outcome": Outcome.UNSUPPORTED, "reason": "causal"}


@pytest.mark.parametrize(
    ("lines", "code", "told"),
    [
        ([runs.item()], 0, "Every result is as expected: 1 judged."),
        (
            [runs.item(), runs.item("fine", "ATT-OUT-002", **UNSUPPORTED)],
            0,
            "Every result is as expected: 1 judged, 1 not (unsupported).",
        ),
        ([runs.item(**UNSUPPORTED)], 3, "Nothing was judged: the one result is unsupported."),
        ([runs.convention()], 3, "Nothing was judged: no requirement was run, 1 convention was asked."),
        ([runs.item()], 3, "Interrupted, so far every result is as expected: 1 judged."),
        (
            [runs.item()],
            1,
            "A check ended without a result, see its message; besides, every result is as expected: 1 judged.",
        ),
        (
            [runs.item(), runs.timing(**runs.FAILS), runs.timing(shape="prefill", **runs.FAILS)],
            1,
            "2 timed outputs are wrong: 1 judged.",
        ),
        ([runs.timing()], 0, "Timings alone: no requirement was run."),
        ([runs.timing(**runs.FAILS)], 1, "Timings alone: 1 timed output is wrong of 1."),
    ],
)
def test_the_first_sentence_says_what_was_judged(tmp_path: Path, lines: list[Line], code: int, told: str) -> None:
    header = runs.header([WIDE], ["ATT-OUT-001", "ATT-OUT-002"])
    run = runs.run(tmp_path, header, *lines, exit_code=ExitCode(code))
    assert reports.verdict(run) == told
    assert told in reports.terminal_summary(run)


def test_a_truncated_run_is_judged_so_far(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header([WIDE]), runs.item(), exit_code=None)
    assert reports.verdict(read_records(path, partial=True)) == "Unfinished, so far every result is as expected: 1 judged."
