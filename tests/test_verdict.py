"""The verdict: one definition of every number, and the common part of many failures before its consequences."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance import reports
from conformance.judging.verdict import Outcome
from conformance.page import make_page
from conformance.records import Counts, Item, Line, Run, read_records
from conformance.reports.causes import causes, unexplained
from conformance.system.exit_codes import ExitCode
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
            *runs.accuracy(1e6, dtype="float64", profile="unfused"),
            *runs.accuracy(largest, dtype="float64", profile="soft32"),
        )
        first = next(place for place, line in enumerate(lines) if isinstance(line, Item))
        changed = msgspec.structs.replace(lines[first], accuracy=accuracy)
        run = made(tmp_path, *lines[:first], changed, *lines[first + 1 :])
        assert reports.lines(run)[1].endswith(f": {told}")


def test_another_dtype_that_is_returned_is_named(tmp_path: Path) -> None:
    message = "The output is float32, expected bfloat16."
    run = made(tmp_path, *failing_where(lambda r, dtype, t: dtype == "bfloat16", "WRONG_DTYPE", message=message))
    assert reports.lines(run)[1] == (
        "All 12 unexpected failures are in bfloat16 alone: float32 is returned, bfloat16 is expected: convert the output, or "
        "declare dtypes without bfloat16."
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
    run = made(tmp_path, *failing_where(lambda r, dtype, t: dtype == "float64"), names=("fine", "flawed"), selection="a part")
    assert reports.lines(run)[1].startswith("flawed: all 12 unexpected failures")


WIDE = runs.implementation("fine", dtypes=DTYPES)
PART = "Of what was run (1 of 2 requirements), "
UNSUPPORTED = {"outcome": Outcome.UNSUPPORTED, "reason": "causal"}


@pytest.mark.parametrize(
    ("lines", "code", "told"),
    [
        ([runs.item()], 0, f"{PART}every result is as expected: 1 judged."),
        (
            [runs.item(), runs.item("fine", "ATT-OUT-002", **UNSUPPORTED)],
            0,
            "Every result is as expected: 1 judged, 1 not (unsupported).",
        ),
        (
            [runs.item(**UNSUPPORTED), runs.item("fine", "ATT-OUT-002", **UNSUPPORTED)],
            3,
            "Nothing was judged: all 2 results are unsupported.",
        ),
        ([runs.item(**UNSUPPORTED)], 3, f"{PART}nothing was judged: the one result is unsupported."),
        (
            [runs.convention()],
            3,
            PART.replace("1 of", "0 of") + "nothing was judged: no requirement was run, 1 convention was asked.",
        ),
        ([runs.item()], 3, "Interrupted, of what was run so far (1 of 2 requirements), every result is as expected: 1 judged."),
        (
            [runs.item()],
            1,
            f"A check ended without a result, see its message; besides, {PART.lower()}every result is as expected: 1 judged.",
        ),
        (
            [runs.item(), runs.timing(**runs.FAILS), runs.timing(shape="prefill", **runs.FAILS)],
            1,
            f"{PART}2 timed outputs are wrong: 1 judged.",
        ),
        ([runs.timing()], 0, "Timings alone: no requirement was run."),
        ([runs.timing(**runs.FAILS)], 1, "Timings alone: 1 timed output is wrong of 1."),
    ],
)
def test_the_first_sentence_says_what_was_judged(tmp_path: Path, lines: list[Line], code: int, told: str) -> None:
    header = runs.header([WIDE], ["ATT-OUT-001", "ATT-OUT-002"], selection="a part")
    run = runs.run(tmp_path, header, *lines, exit_code=ExitCode(code))
    assert reports.verdict(run) == told
    assert told in reports.terminal_summary(run)


def test_what_of_a_signature_is_not_read_stands_behind_the_result_in_every_output(tmp_path: Path) -> None:
    told = "Not read: dropout and window keep their defaults; what *args and **kwargs may hold is not asked for."
    entry = runs.implementation("fine", dtypes=DTYPES, unread=("dropout", "window", "*args", "**kwargs"))
    run = runs.run(tmp_path, runs.header([entry]), runs.item())
    assert reports.lines(run) == ["Every result is as expected: 1 judged.", told]
    assert reports.terminal_summary(run).splitlines()[-2:] == reports.lines(run)
    assert "as expected: 1 judged.**\n\nNot read: dropout and window" in reports.summary_markdown(run)
    assert reports.summary(run)["verdict"] == reports.lines(run)
    assert f'<p class="cause">{told}</p>' in make_page(run)
    timed = runs.run(tmp_path, runs.header([entry]), runs.timing())
    assert reports.lines(timed)[1] == told


@pytest.mark.parametrize(("identifier", "word"), [("CON-POLARITY", "mask"), ("CON-PADDING-POLARITY", "key padding mask")])
def test_masks_that_were_taken_for_their_opposite_are_told_in_every_output(tmp_path: Path, identifier: str, word: str) -> None:
    asked = {"declared": None, "observed": "true-ignores", "agrees": None}
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item(), runs.convention("fine", identifier, **asked))
    told = (
        f"fine was seen to ignore keys where its {word} is True, and was judged so: if that is no accident, declare {identifier}"
    )
    assert reports.lines(run)[1].startswith(told)
    assert told in reports.terminal_summary(run)
    assert told in reports.summary_markdown(run)
    assert told in make_page(run)
    declared = runs.convention("fine", identifier, **{**asked, "declared": "true-ignores", "agrees": True})
    assert len(reports.lines(runs.run(tmp_path, runs.header(["fine"]), runs.item(), declared))) == 1


def test_many_parameters_that_are_not_read_are_a_line_and_all_of_them_in_the_table(tmp_path: Path) -> None:
    names = tuple(f"parameter_{number}" for number in range(20))
    many = [runs.implementation(f"number-{number}", unread=names) for number in range(5)]
    run = runs.run(tmp_path, runs.header(many), *(runs.item(entry.name) for entry in many))
    lines = reports.lines(run)[1:]
    told = "parameter_0, parameter_1, parameter_2, parameter_3 and 16 more keep their defaults."
    assert lines == [
        *(f"Not read: of number-{number}, {told}" for number in range(3)),
        "Not read: parameters of 2 more implementations, in the table Not asked.",
    ]
    assert reports.left_table(run).rows[4][-2] == ", ".join(names)


def test_what_was_not_asked_is_the_same_table_in_every_output(tmp_path: Path) -> None:
    less = {"counts": Counts(designed=2, unsupported=3), "lacking": {"layout reversed": 2, "dtype float64": 1}}
    run = runs.run(tmp_path, runs.header(), runs.item("flawed", counts=Counts(designed=5)), runs.item(**less))
    (row,) = reports.left_table(run).rows
    assert row == ("fine", "2", "0", "3", "0", "100 %", "layout reversed (2), dtype float64 (1)", "–", "–")
    for output, title in (
        (reports.terminal_summary(run), "\nNot asked\n"),
        (reports.summary_markdown(run), "\n## Not asked\n"),
        (make_page(run), "<summary>Not asked</summary>"),
    ):
        assert title in output
        assert row[-3] in output
    everything = runs.run(tmp_path, runs.header(), runs.item(counts=Counts(designed=5)))
    for output in (reports.terminal_summary(everything), reports.summary_markdown(everything), make_page(everything)):
        assert "Not asked" not in output


def test_dtypes_to_which_the_judgement_is_narrowed_are_a_series(tmp_path: Path) -> None:
    entry = runs.implementation("fine", dtypes=("float32", "float16", "bfloat16"))
    run = runs.run(tmp_path, runs.header([entry]), runs.item())
    assert reports.verdict(run) == "Every result is as expected: 1 judged in float32, float16 and bfloat16 alone."


def test_what_is_offered_is_no_oversight_where_something_else_is_declared_as_lacking(tmp_path: Path) -> None:
    less = {"outcome": Outcome.UNSUPPORTED, "without": ("causal", "grouped-heads")}
    told = []
    for lacks in ((), ("grouped-heads",)):
        entry = runs.implementation("fine", features=("causal",), lacks=lacks)
        run = runs.run(
            tmp_path,
            runs.header([entry], ("ATT-OUT-001", "ATT-HEAD-005")),
            runs.item(),
            runs.item("fine", "ATT-HEAD-005", **less),
        )
        told.append([one.features for one in run.undeclared])
    assert told == [[("grouped-heads",)], []]


def test_a_part_of_a_run_is_told_beside_a_tier_that_leaves_cases_out(tmp_path: Path) -> None:
    header = runs.header([WIDE], ["ATT-OUT-001", "ATT-OUT-002"], tier="quick")
    run = runs.run(tmp_path, header, runs.item(**runs.FAILS), exit_code=ExitCode.UNEXPECTED)
    told = "The tier quick leaves cases out. Only 1 of 2 pairs of requirement and implementation were run."
    assert reports.terminal_summary(run).endswith(f"NOT A CONFORMANCE RESULT. {told}")


def test_a_truncated_run_is_judged_so_far(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header([WIDE]), runs.item(), exit_code=None)
    assert reports.verdict(read_records(path, partial=True)) == "Unfinished, so far every result is as expected: 1 judged."
