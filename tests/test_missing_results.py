"""What was expected and has no result: every output says so, and nothing calls such a run as expected."""

import json
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from conformance import reports
from conformance.ci import annotations, badges
from conformance.page import make_page
from conformance.records import Header, Line, Run, encode, read_records
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke, run_command

REQUIREMENTS = tuple(f"ATT-OUT-{number:03}" for number in range(1, 6))
QUESTIONS = {"CON-EMPTY-ROW": ("attention",), "CON-POLARITY": ("attention",)}


def items(name: str, *, without: Iterable[str] = ()) -> list[Line]:
    return [runs.item(name, identifier) for identifier in REQUIREMENTS if identifier not in without]


def claims(path: Path, header: Header, *lines: Line) -> Path:
    """A file whose footer says that all is well, as an earlier version of the suite would have written it."""
    kept = runs.write(path, header, *lines, exit_code=ExitCode.AS_EXPECTED)
    written = kept.read_text().splitlines()
    footer = {**json.loads(written[-1]), "exit_code": 0}
    footer.pop("interrupted")
    kept.write_text("\n".join([*written[:-1], json.dumps(footer)]) + "\n")
    return kept


def claimed(tmp_path: Path, header: Header, *lines: Line) -> Run:
    return read_records(claims(tmp_path / "records.jsonl", header, *lines))


def test_missing_results_are_told_of_each_implementation_in_every_output(tmp_path: Path) -> None:
    header = runs.header(["fine", "other"], REQUIREMENTS, conventions=QUESTIONS)
    asked = [runs.convention(name, identifier) for name in ("fine", "other") for identifier in QUESTIONS]
    lost = ("ATT-OUT-002", "ATT-OUT-004")
    run = claimed(tmp_path, header, *items("fine", without=lost), *items("other"), *asked[1:])
    first, *more = reports.lines(run)
    assert first.startswith("2 of 10 requirements and 1 of 4 conventions of fine have no result, so that the run proves nothing")
    assert "what was recorded is as expected: 8 judged" in first
    assert more[0] == "No result of fine: ATT-OUT-002, ATT-OUT-004, CON-EMPTY-ROW."
    assert run.exit_code == ExitCode.INCONCLUSIVE
    for output in (reports.terminal_summary(run), reports.summary_markdown(run), make_page(run)):
        assert "every result is as expected" not in output.lower()
        assert "have no result" in output
    assert reports.summary(run)["missing_results"] == {"fine": [*lost, "CON-EMPTY-ROW"]}
    assert badges(run) == {}
    suites = ElementTree.fromstring(reports.junit_xml(run))
    assert [case.get("name") for case in suites.iter("testcase") if case.find("error") is not None] == [*lost, "CON-EMPTY-ROW"]
    (told,) = annotations(run, tmp_path, tmp_path)
    assert told.startswith("::error") and "3 results of fine missing" in told


def test_a_surplus_of_one_implementation_hides_nothing_of_another(tmp_path: Path) -> None:
    # a convention that nobody had to answer, in place of one that was expected
    header = runs.header(["fine", "other"], REQUIREMENTS, conventions={"CON-EMPTY-ROW": ("attention",)})
    answers = runs.convention("fine"), runs.convention("fine", "CON-POLARITY")
    run = claimed(tmp_path, header, *items("fine"), *items("other"), *answers)
    assert run.missing == {"other": ("CON-EMPTY-ROW",)}
    assert "Only 1 of 2 of convention and implementation were run." in run.partial
    assert run.exit_code == ExitCode.INCONCLUSIVE


def test_what_cannot_run_here_is_asked_no_convention(tmp_path: Path) -> None:
    entry = runs.implementation("away", missing="No device.")
    header = runs.header(["fine", entry], REQUIREMENTS, conventions=QUESTIONS)
    skipped = [runs.item("away", identifier, outcome="SKIPPED") for identifier in REQUIREMENTS]
    run = claimed(tmp_path, header, *items("fine"), *skipped, *(runs.convention("fine", name) for name in QUESTIONS))
    assert run.missing == {}
    assert run.exit_code == ExitCode.AS_EXPECTED


@pytest.mark.parametrize("part", [{"selection": "ATT-OUT"}, {"shard": "1/3"}])
def test_of_a_part_of_a_run_what_was_selected_is_expected(tmp_path: Path, part: dict[str, str]) -> None:
    header = runs.header(["fine"], REQUIREMENTS, expected={"fine": REQUIREMENTS[:3]}, conventions=QUESTIONS, **part)
    whole = claimed(tmp_path, header, *(runs.item("fine", identifier) for identifier in REQUIREMENTS[:3]))
    assert whole.missing == {}
    assert whole.exit_code == ExitCode.AS_EXPECTED
    less = claimed(tmp_path, header, runs.item("fine", "ATT-OUT-001"), runs.item("fine", "ATT-OUT-003"))
    assert less.missing == {"fine": ("ATT-OUT-002",)}
    assert reports.verdict(less).startswith("1 of 3 requirements of fine have no result")
    unknown = claimed(tmp_path, msgspec.structs.replace(header, expected=None), runs.item("fine", "ATT-OUT-001"))
    assert unknown.missing == {}, "an older version did not say what was selected"


def test_merge_ends_with_3_where_results_are_missing(tmp_path: Path) -> None:
    paths = []
    for number, lines in ((1, items("fine", without=REQUIREMENTS[2:])), (2, [runs.item("fine", "ATT-OUT-004")])):
        header = runs.header(["fine"], REQUIREMENTS, shard=f"{number}/2")
        paths.append(claims(tmp_path / f"{number}.jsonl", header, *lines))
    result = invoke("merge", *paths, "--out", tmp_path / "merged.jsonl")
    assert result.exit_code == ExitCode.INCONCLUSIVE
    assert "2 of 5 requirements of fine have no result" in result.stdout
    assert "No result of fine: ATT-OUT-003, ATT-OUT-005." in result.stdout


def test_the_writer_ends_no_run_as_expected_of_which_results_are_missing(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header(["fine"], REQUIREMENTS), *items("fine")[1:])
    run = read_records(path)
    assert run.footers[0].exit_code == ExitCode.INCONCLUSIVE
    assert run.missing == {"fine": ("ATT-OUT-001",)}
    assert "nterrupted" not in reports.verdict(run)


def test_nobody_misses_what_an_interruption_left_undone(tmp_path: Path) -> None:
    lines = runs.header(["fine"], REQUIREMENTS), runs.item("fine")
    run = read_records(runs.write(tmp_path / "records.jsonl", *lines, exit_code=ExitCode.INCONCLUSIVE))
    assert run.missing == {}
    assert reports.verdict(run).startswith("Interrupted, of what was run so far (1 of 5 requirements)")


def test_a_run_says_what_was_selected(tmp_path: Path) -> None:
    words = (
        "--implementation",
        named("correct"),
        "--tier",
        "quick",
        "--no-timing",
        "-n",
        "0",
        "-k",
        "ATT-OUT-004 or CON-POLARITY",
    )
    done = run_command("run", *words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert run.header.expected == {named("correct"): ("ATT-OUT-004", "CON-POLARITY")}
    assert (run.footers[0].interrupted, run.missing) == (False, {})


def test_a_doctored_footer_is_refused(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header(["fine"]), runs.item(**runs.FAILS), exit_code=ExitCode.UNEXPECTED)
    lines = path.read_text().splitlines()
    for changes, told in (
        ({"exit_code": 0}, "the footer says exit code 0, and from the lines follows 1"),
        ({"exit_code": 2}, "the footer says exit code 2"),
        ({"unexpected": 0}, "the footer counts 0 unexpected results, but the file holds 1"),
        ({"unexpected": 9}, "the footer counts 9 unexpected results"),
        ({"outcomes": {"PASS": 1}}, "the footer's outcomes are not those of the items"),
    ):
        path.write_text("\n".join([*lines[:-1], json.dumps({**json.loads(lines[-1]), **changes})]))
        for command in (("report", path), ("report", "--partial", path), ("page", path)):
            result = invoke(*command)
            assert result.exit_code == ExitCode.USAGE_ERROR
            assert told in result.stderr
            assert len(result.stderr.splitlines()) == 1


def test_a_footer_may_say_that_nothing_was_judged_and_nothing_better(tmp_path: Path) -> None:
    header, skipped = runs.header(["fine"]), runs.item(outcome="SKIPPED")
    path = runs.write(tmp_path / "records.jsonl", header, skipped)
    assert read_records(path).exit_code == ExitCode.INCONCLUSIVE
    path.write_bytes(path.read_bytes().replace(b'"exit_code":3', b'"exit_code":0'))
    assert "from the lines follows 3" in invoke("report", path).stderr


def test_areas_that_nobody_declared_may_be_counted_and_cannot_be_denied(tmp_path: Path) -> None:
    less = {"outcome": "UNSUPPORTED", "without": ("causal",)}
    entry = runs.implementation("fine", features=("causal",))
    lines = runs.header([entry], ("ATT-OUT-001", "ATT-MASK-005")), runs.item(), runs.item("fine", "ATT-MASK-005", **less)
    path = tmp_path / "records.jsonl"
    path.write_bytes(runs.write(path, *lines).read_bytes())
    run = read_records(path)
    assert len(run.undeclared) == 1
    assert run.footers[0].exit_code == ExitCode.AS_EXPECTED, "whoever wrote it did not look"
    assert run.exit_code == ExitCode.UNEXPECTED
    path.write_bytes(path.read_bytes().replace(b'"unexpected":0,"exit_code":0', b'"unexpected":1,"exit_code":1'))
    assert read_records(path).exit_code == ExitCode.UNEXPECTED


def test_footers_of_each_part_of_a_joined_file_are_held_against_their_own_lines(tmp_path: Path) -> None:
    one = runs.write(
        tmp_path / "1.jsonl", runs.header(["fine"], shard="1/2"), runs.item(**runs.FAILS), exit_code=ExitCode.UNEXPECTED
    )
    two = runs.write(tmp_path / "2.jsonl", runs.header(["fine"], shard="2/2"), runs.convention())
    joined = tmp_path / "joined.jsonl"
    doctored = one.read_bytes().replace(b'"exit_code":1', b'"exit_code":0')
    joined.write_bytes(doctored + two.read_bytes())
    assert "from the lines follows 1" in invoke("report", joined).stderr
    joined.write_bytes(one.read_bytes() + two.read_bytes())
    assert read_records(joined).exit_code == ExitCode.UNEXPECTED


@pytest.mark.parametrize("expected", [{"fine": ("ATT-OUT-009",)}, {"stranger": ("ATT-OUT-001",)}, {"fine": ("CON-EMPTY-ROW",)}])
def test_nothing_is_expected_that_the_header_does_not_list(tmp_path: Path, expected: dict[str, tuple[str, ...]]) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode(runs.header(["fine"], expected=expected)))
    result = invoke("report", "--partial", path)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "line 1 is no record" in result.stderr and "is not listed as asked of it" in result.stderr
