"""Reports: every table says what the records say, and a run that may not be cited says so in every output."""

import csv
import io
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance import reports
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Counts, Line, Run, read_records
from conformance.reports import Table
from conformance.run.report_files import write_reports
from conformance.system.exit_codes import ExitCode
from tests.support import runs

REQUIREMENTS = ("ATT-OUT-001", "ATT-OUT-002", "ATT-MASK-001", "ATT-MASK-002", "ATT-MASK-003")
VERDICT = (
    "2 of 15 results are unexpected, 1 convention is not as expected, and 1 timed output is wrong: "
    "8 judged (1 known failure), 7 not (6 skipped, 1 unsupported)."
)
STAMP = "NOT A CONFORMANCE RESULT"
NASTY = "a|b <c> *d*\x00\nsecond line"


def records(**header: object) -> tuple[Line, ...]:
    absent = runs.implementation("absent", missing="PyTorch is not installed: pip install torch.", framework_version=None)
    entries = ("fine", "flawed", absent)
    wrong, known = (
        {"outcome": Outcome.WRONG_VALUE, "status": "unexpected"},
        {"outcome": Outcome.ERROR, "reason": "raises | always"},
    )
    return (
        runs.header(entries, REQUIREMENTS, **header),
        *(runs.item("fine", r, counts=Counts(golden=1, designed=2, random=10), seconds=0.5) for r in REQUIREMENTS[1:]),
        runs.item(
            "fine",
            counts=Counts(designed=3),
            accuracy=(*runs.accuracy(0.1, 0.2, 0.9), *runs.accuracy(0.5, dtype="float16", profile="unfused")),
        ),
        runs.item("flawed", counts=Counts(designed=4, failed=3), reason=NASTY, accuracy=runs.accuracy(7.0), **wrong),
        runs.case(
            1,
            "flawed",
            outcome="WRONG_VALUE",
            r=7.0,
            message="At (0,): got 1.0, expected 2.0.",
            repro="attention-conformance reproduce",
        ),
        runs.case(2, "flawed", outcome="WRONG_VALUE", route="causal=mask", r=math.inf),
        runs.case(3, "flawed", route="causal=mask", r=0.5),
        runs.case(4, "flawed", outcome="WRONG_VALUE", stratum="random", r=2.0),
        runs.item("flawed", "ATT-OUT-002", status="unexpected", reason="Passed, where ERROR is expected."),
        runs.item("flawed", "ATT-MASK-001", **known),
        runs.item("flawed", "ATT-MASK-002", outcome=Outcome.UNSUPPORTED, reason="causal bottom-right"),
        runs.item("flawed", "ATT-MASK-003", outcome=Outcome.SKIPPED, reason="listed in the skips file"),
        *(runs.item("absent", r, outcome=Outcome.SKIPPED, reason="PyTorch is not installed") for r in REQUIREMENTS),
        runs.convention(),
        runs.convention("fine", "CON-ALIGNMENT", declared=None, observed="top-left", agrees=None),
        runs.convention("flawed", declared="zeros", observed="nan", agrees=False, message="It declares zeros."),
        runs.convention("flawed", "CON-ALIGNMENT", declared="top-left", observed=None, agrees=None),
        runs.timing(),
        runs.timing("flawed", ratio=2.5, median_seconds=0.005, percent_of_matmul=None),
        runs.timing(
            "flawed", "prefill", outcome=Outcome.WRONG_VALUE, median_seconds=None, ratio=None, r=3.0, status="unexpected"
        ),
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return runs.run(tmp_path, *records(), exit_code=ExitCode.UNEXPECTED)


def cell(table: Table, column: str, *row: str) -> str:
    found = [cells for cells in table.rows if cells[: len(row)] == row]
    assert len(found) == 1, table.rows
    return found[0][table.columns.index(column)]


# Tables


def test_conformance_counts_each_kind_apart(run: Run) -> None:
    table = reports.conformance_table(run)
    assert table.columns == ("implementation", "OUT", "MASK", "all")
    assert cell(table, "OUT", "fine") == "2"
    assert cell(table, "OUT", "flawed") == "2!"
    assert cell(table, "MASK", "flawed") == "1k 1u 1s"
    assert cell(table, "all", "flawed") == "1k 2! 1u 1s"
    assert cell(table, "all", "absent") == "5s"


def test_conventions_show_declared_and_observed(run: Run) -> None:
    (table,) = reports.conventions_tables(run)
    assert cell(table, "CON-EMPTY-ROW", "fine") == "zeros"
    assert cell(table, "CON-ALIGNMENT", "fine") == "(top-left)"
    assert cell(table, "CON-EMPTY-ROW", "flawed") == "zeros ≠ nan!"
    assert cell(table, "CON-ALIGNMENT", "flawed") == "top-left?"
    assert all(row[0] != "absent" for row in table.rows)


def test_answers_show_who_gives_them(run: Run) -> None:
    assert reports.answers_table(run).rows == (
        ("CON-ALIGNMENT", "top-left", "fine"),
        ("CON-EMPTY-ROW", "nan", "flawed"),
        ("CON-EMPTY-ROW", "zeros", "fine"),
    )


def test_operations_have_tables_of_their_own(tmp_path: Path) -> None:
    table_maker = runs.implementation("sines", operation="sinusoidal_encoding")
    run = runs.run(
        tmp_path,
        runs.header(
            ["fine", table_maker], [runs.requirement("ATT-OUT-001"), runs.requirement("ATT-POS-001", "sinusoidal_encoding")]
        ),
        runs.item(),
        runs.item("sines", "ATT-POS-001"),
        runs.convention(),
        runs.convention("sines", "CON-ODD-WIDTH", observed="refused", declared=None, agrees=None),
        runs.timing(),
        runs.timing("sines", operation="sinusoidal_encoding", baseline="sines"),
    )
    assert [table.columns[1:] for table in reports.conventions_tables(run)] == [("CON-EMPTY-ROW",), ("CON-ODD-WIDTH",)]
    assert [[row[0] for row in table.rows] for table in reports.speed_tables(run)] == [["fine"], ["sines"]]
    assert cell(reports.conformance_table(run), "OUT", "sines") == "–"
    assert run.not_conformance == ""


def test_accuracy_shows_median_maximum_and_profile(run: Run) -> None:
    table = reports.accuracy_table(run)
    assert table.columns == ("implementation", "float32", "float16")
    median, largest = cell(table, "float32", "fine").removesuffix(" strict").split(" / ")
    assert float(median) == pytest.approx(0.2, rel=0.05)
    assert float(largest) == 0.9
    assert cell(table, "float16", "fine").endswith("unfused")
    assert cell(table, "float16", "flawed") == "–"


def test_speed_is_shown_only_for_what_passed(run: Run) -> None:
    (table,) = reports.speed_tables(run)
    assert table.title == "Speed: attention in float32, relative to fine"
    assert cell(table, "decode", "fine") == "1.00× (2 ms, 12 %)"
    assert cell(table, "decode", "flawed") == "2.50× (5 ms)"
    assert cell(table, "prefill", "flawed") == "WRONG_VALUE"
    assert cell(table, "prefill", "fine") == "–"


def test_failures_show_the_unexpected_first(run: Run) -> None:
    table = reports.failures_table(run)
    assert [row[:3] for row in table.rows] == [
        ("UNEXPECTED", "ATT-OUT-001", "flawed"),
        ("UNEXPECTED", "ATT-OUT-002", "flawed"),
        ("known", "ATT-MASK-001", "flawed"),
    ]
    first = ("UNEXPECTED", "ATT-OUT-001")
    assert cell(table, "failed", *first) == "3 of 4"
    assert (cell(table, "native", *first), cell(table, "emulated", *first)) == ("2", "1")
    assert cell(table, "largest r", *first) == "inf"
    assert cell(table, "outcome", "UNEXPECTED", "ATT-OUT-002") == "PASS"


def test_routes_tell_native_from_emulated(run: Run) -> None:
    table = reports.routes_table(run)
    assert table.rows == (("flawed", "1 of 1", "1 of 2", "causal=mask 2"),)


def test_missing_implementations_are_named(run: Run) -> None:
    assert reports.missing_table(run).rows == (("absent", "PyTorch is not installed: pip install torch."),)


# Files


def test_all_reports_are_written(run: Run, tmp_path: Path) -> None:
    paths = write_reports(run, tmp_path / "reports")
    assert [path.name for path in paths] == [
        "summary.md",
        "report.html",
        "summary.json",
        "junit.xml",
        "results.csv",
        "timings.csv",
    ]
    assert all(path.stat().st_size for path in paths)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports(run, tmp_path / "file")


def test_page_shows_what_is_unexpected_and_how_to_see_it_again(run: Run) -> None:
    page = reports.summary_markdown(run)
    assert f"**{VERDICT}**" in page
    assert "### ATT-OUT-001 on flawed: WRONG_VALUE" in page
    assert "The sentence of ATT-OUT-001." in page
    assert "At (0,): got 1.0, expected 2.0.\nattention-conformance reproduce\n```" in page
    assert "### CON-EMPTY-ROW on flawed: declared zeros, observed nan\n\nIt declares zeros." in page
    for title in ("Conformance", "Failures", "Conventions: attention", "Accuracy", "Speed: attention", "Routes", "Not run here"):
        assert f"\n## {title}" in page


def test_every_row_of_a_page_has_all_its_cells(run: Run) -> None:
    rows = [line for line in reports.summary_markdown(run).replace("\\|", "").splitlines() if line.startswith("|")]
    blocks = {line.count("|") for line in rows if "UNEXPECTED" in line or "known" in line}
    assert blocks == {11}


def test_junit_counts_only_the_unexpected_as_failures(run: Run) -> None:
    root = ElementTree.fromstring(reports.junit_xml(run))
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert {name: (s.get("tests"), s.get("failures"), s.get("skipped")) for name, s in suites.items()} == {
        "fine": ("8", "0", "0"),
        "flawed": ("9", "4", "3"),
        "absent": ("5", "0", "5"),
    }
    failure = suites["flawed"].find("testcase[@name='ATT-OUT-001']/failure")
    assert failure is not None and failure.get("type") == "WRONG_VALUE"
    assert "attention-conformance reproduce" in (failure.text or "")
    known = suites["flawed"].find("testcase[@name='ATT-MASK-001']/skipped")
    assert known is not None and known.get("message") == "known failure, ERROR: raises | always"


def test_csv_has_a_row_per_result_and_timing(run: Run) -> None:
    results = list(csv.DictReader(io.StringIO(reports.results_csv(run))))
    assert len(results) == 15
    flawed = next(row for row in results if (row["implementation"], row["requirement"]) == ("flawed", "ATT-OUT-001"))
    assert (flawed["area"], flawed["outcome"], flawed["failed"], flawed["largest_r"]) == ("OUT", "WRONG_VALUE", "3", "7.0")
    assert {row["conformance_result"] for row in results} == {"yes"}
    timings = list(csv.DictReader(io.StringIO(reports.timings_csv(run))))
    assert [(row["implementation"], row["median_seconds"]) for row in timings] == [
        ("fine", "0.002"),
        ("flawed", "0.005"),
        ("flawed", ""),
    ]


def test_summary_is_small_plain_json(run: Run) -> None:
    made = json.loads(json.dumps(reports.summary(run), allow_nan=False))
    assert made["conformance_result"] is True
    fine, flawed = made["implementations"]["fine"], made["implementations"]["flawed"]
    assert fine["areas"] == {"OUT": {"passed": 2}, "MASK": {"passed": 3}}
    assert fine["problems"] == {
        "golden": 4,
        "designed": 11,
        "random": 40,
        "unsupported": 0,
        "failed": 0,
        "left_out": 0,
        "fitted": 0,
    }
    assert fine["accuracy"][1]["dtype"] == "float32" and fine["accuracy"][1]["max"] == 0.9
    assert flawed["conventions"] == {"CON-EMPTY-ROW": "nan", "CON-ALIGNMENT": None}
    assert [speed["shape"] for speed in flawed["speed"]] == ["decode"]
    assert {"requirement": "ATT-OUT-002", "implementation": "flawed", "outcome": "PASS", "dtypes": []} in made["unexpected"]


# Whether it may be cited


def outputs(run: Run) -> dict[str, str]:
    return {
        "page": reports.summary_markdown(run),
        "terminal": reports.terminal_summary(run),
        "junit": reports.junit_xml(run),
        "results": reports.results_csv(run),
        "timings": reports.timings_csv(run),
        "summary": json.dumps(reports.summary(run)),
    }


def test_a_conformance_result_bears_no_stamp(run: Run) -> None:
    for name, text in outputs(run).items():
        assert STAMP not in text, name


@pytest.mark.parametrize("tier", ["quick", "custom"])
def test_other_tiers_are_stamped_everywhere(tmp_path: Path, tier: str) -> None:
    for name, text in outputs(runs.run(tmp_path, *records(tier=tier))).items():
        assert STAMP in text or '"conformance_result": false' in text, name
        assert f"tier {tier} leaves cases out" in text, name


def test_a_truncated_run_is_stamped_and_reported(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", *records()[:9], exit_code=None)
    for name, text in outputs(read_records(path, partial=True)).items():
        assert "did not come to its end" in text or name == "timings", name


def test_terminal_ends_with_the_verdict(run: Run, tmp_path: Path) -> None:
    text = reports.terminal_summary(run)
    assert text.splitlines()[-1] == VERDICT
    assert "UNEXPECTED WRONG_VALUE on flawed: ATT-OUT-001" in text
    assert "UNEXPECTED CON-EMPTY-ROW on flawed: declared zeros, observed nan" in text
    calm = runs.run(tmp_path, runs.header(["fine"]), runs.item())
    assert (
        reports.terminal_summary(calm).splitlines()[-1] == "Every result is as expected: 1 judged in float32 and float16 alone."
    )


def test_an_empty_run_is_reported(tmp_path: Path) -> None:
    empty = runs.run(tmp_path, runs.header())
    assert all("Only 0 of 2" in text for name, text in outputs(empty).items() if name not in ("results", "timings"))
    assert write_reports(empty, tmp_path / "reports")
