"""What is shown of many failures is what the others do not tell: cases beside the common cause, and one of each dtype."""

import re
from pathlib import Path

from conformance import reports
from conformance.ci.annotations import annotations
from conformance.page.results import rows
from conformance.records import Run
from tests.support import runs
from tests.support.commands import run_command
from tests.test_verdict import REQUIREMENTS, failing_where, made

FLAWED = '''
import numpy as np

def attention(query, key, value, *, causal=False):
    """Computes float64 in float32; in float16, each query sees one key beyond its own."""
    work = np.float32 if query.dtype == np.float64 else np.float64
    q, k, v = (array.astype(work) for array in (query, key, value))
    scores = q @ k.repeat(q.shape[1] // k.shape[1], 1).swapaxes(-1, -2) * work(q.shape[-1] ** -0.5)
    if causal:
        late = int(query.dtype == np.float16)
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool), late), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v.repeat(q.shape[1] // v.shape[1], 1)).astype(query.dtype)
'''


def float64_and_one_more(tmp_path: Path) -> Run:
    """All fail in float64, ATT-OUT-003 in float32 as well, in its last problem."""

    def wrong(requirement: str, dtype: str, text: str) -> bool:
        return dtype == "float64" or ((requirement, dtype) == ("ATT-OUT-003", "float32") and "transposed" in text)

    return made(tmp_path, *failing_where(wrong))


def first_dtype(text: str) -> str:
    found = re.search(r"dtype=(\w+)", text)
    assert found is not None
    return found[1]


def test_the_case_beside_the_common_cause_is_shown_first(tmp_path: Path) -> None:
    run = float64_and_one_more(tmp_path)
    assert reports.lines(run)[1].startswith("All but 1 of 12 unexpected failures are in float64 alone")
    section = reports.summary_markdown(run).partition("### ATT-OUT-003 on flawed")[2]
    assert first_dtype(section) == "float32"
    junit = reports.junit_xml(run).partition('name="ATT-OUT-003"')[2]
    assert first_dtype(junit) == "float32"
    (row,) = rows(run)
    (entry,) = (entry for entry in row.unexplained if entry.item.requirement == "ATT-OUT-003")
    assert entry.cases[0].case.dtype == "float32"
    assert {shown.case.dtype for shown in entry.cases} == {"float32", "float64"}


def test_annotations_begin_with_what_is_beside_the_common_cause(tmp_path: Path) -> None:
    errors = annotations(float64_and_one_more(tmp_path), tmp_path, tmp_path)
    assert "ATT-OUT-003 on flawed" in errors[0]
    assert first_dtype(errors[0]) == "float32"


def test_one_case_of_each_dtype_is_shown(tmp_path: Path) -> None:
    run = made(tmp_path, *failing_where(lambda requirement, dtype, text: True))
    section = reports.summary_markdown(run).partition("### ATT-OUT-003 on flawed")[2].partition("### ATT")[0]
    assert {*re.findall(r"dtype=(\w+)", section)} == {"float64", "float32", "float16", "bfloat16"}


def test_what_those_failures_have_in_common_that_no_fault_explains_is_told(tmp_path: Path) -> None:
    def wrong(requirement: str, dtype: str, text: str) -> bool:
        return dtype == "float64" or requirement < "ATT-OUT-005"

    found = runs.explanation(requirements=REQUIREMENTS[:4])
    run = made(tmp_path, *failing_where(wrong), runs.diagnosis(explanations=(found,)))
    told = reports.lines(run)
    assert told[1].startswith("The fault scale-missing explains 4 of 12 unexpected failures")
    assert told[2] == "All 8 other unexpected failures are in float64 alone: declare dtypes without float64."
    assert "UNEXPECTED on flawed, those that are in float64 alone: ATT-OUT-005, " in reports.terminal_summary(run)


def test_a_short_line_names_the_failure_that_it_is_like(tmp_path: Path) -> None:
    (tmp_path / "flawed.py").write_text(FLAWED)
    done = run_command(
        "run", "--implementation", "flawed.py:attention", "--tier", "quick", "--no-timing", "--no-diagnosis", "-n", "0",
        "-k", "ATT-HEAD or ATT-MASK or ATT-OUT", folder=tmp_path,
    )  # fmt: skip
    short = re.findall(r"^(ATT-\S+) on \S+: WRONG_VALUE, (.+) above\.$", done.stdout, re.MULTILINE)
    full = re.findall(r"^(ATT-\S+) on \S+: WRONG_VALUE$", done.stdout, re.MULTILINE)
    assert short
    for _, alike in short:
        for dtype, requirement in re.findall(r"in (\w+)(?: and \w+)* as (ATT-[A-Z]+-\d+)", alike):
            assert requirement in full
            shown = done.stdout.partition(f"\n{requirement} on ")[2].partition("\n___")[0]
            assert f"dtype={dtype}" in shown
    causal = done.stdout.partition("\nATT-MASK-009 on ")[2].partition("\n___")[0]
    assert "dtype=float16" in causal, "the first failures in float16 are shown, however many were in float64"
    assert "as others" not in done.stdout


def test_the_page_tells_of_a_requirement_what_concerns_it(tmp_path: Path) -> None:
    found = runs.explanation(requirements=REQUIREMENTS[:4], sentence="matches fault scale-missing.")
    rest = "no known fault explains 8 failing cases in float64."
    lines = failing_where(lambda requirement, dtype, text: dtype == "float64" or requirement < "ATT-OUT-005")
    (row,) = rows(made(tmp_path, *lines, runs.diagnosis(explanations=(found,), remarks=(rest,))))
    assert row.diagnosis_of("ATT-OUT-001") == "Matches fault scale-missing."
    assert row.diagnosis_of("ATT-OUT-009") == "No known fault explains 8 failing cases in float64."
    (row,) = rows(made(tmp_path, *lines, runs.diagnosis(explanations=(found,), remarks=())))
    assert row.diagnosis_of("ATT-OUT-009") == "Matches fault scale-missing."
