"""Every number that a run prints or writes has one definition: all outputs of one run say the same."""

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance import reports
from conformance.ci.badge import badge
from conformance.errors import UsageError
from conformance.records import Run, read_records
from conformance.reports import tallies
from tests import fakes
from tests.support.commands import PATIENCE, run_command

NAME = fakes.named("boasts")
SPEC = ["--implementation", NAME, "--tier", "quick", "--no-diagnosis"]
PLAIN = ["-q", "-p", "no:cacheprovider", "-n", "0", "--pyargs", "conformance.checks"]


@dataclass
class Numbers:
    """The numbers of a run, by what they count."""

    results: int
    judged: int
    unexpected: int
    conventions: int
    not_as_declared: int
    wrong_timings: int


def of_records(run: Run) -> Numbers:
    return Numbers(
        len(run.items), sum(item.outcome.was_run for item in run.items), len(run.unexpected), len(run.conventions),
        len(run.unexpected_conventions), len(run.wrong_timings),
    )  # fmt: skip


def demand_agreement(run: Run, folder: Path, printed: str) -> None:
    """The reports in ``folder`` and what was ``printed`` say what the records say."""
    expected, verdict = of_records(run), reports.verdict(run)
    assert verdict in printed.splitlines()
    assert verdict in _said((folder / "report.html").read_text(encoding="utf-8"))
    assert verdict in (folder / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["verdict"][0] == verdict
    told = re.search(r"(\d+) judged", verdict)
    assert told is None or int(told[1]) == expected.judged
    not_judged = re.search(r"judged(?: \([^)]*\))?, (\d+) not", verdict)
    assert not_judged is None or int(not_judged[1]) == expected.results - expected.judged
    assert not_judged is not None or expected.judged in (0, expected.results)
    surprising = re.search(r"(\d+) of (\d+) results (?:is|are) unexpected", verdict)
    assert (int(surprising[1]) if surprising else 0) == expected.unexpected
    assert surprising is None or int(surprising[2]) == expected.results
    assert [footer.unexpected for footer in run.footers] == [run.surprises] or len(run.footers) != 1
    areas = [counts for name in summary["implementations"].values() for counts in name["areas"].values()]
    assert sum(sum(counts.values()) for counts in areas) == expected.results
    assert sum(counts.get(tallies.UNEXPECTED, 0) for counts in areas) == expected.unexpected == len(summary["unexpected"])
    rows = list(csv.DictReader(io.StringIO((folder / "results.csv").read_text(encoding="utf-8"))))
    assert len(rows) == expected.results and sum(row["status"] == "unexpected" for row in rows) == expected.unexpected
    root = ElementTree.parse(folder / "junit.xml").getroot()
    assert int(root.attrib["tests"]) == expected.results + expected.conventions + len(run.timed) + len(run.undeclared)
    assert int(root.attrib["failures"]) + int(root.attrib["errors"]) == run.surprises
    for item in run.items:
        for name in ("golden", "designed", "random", "unsupported", "failed"):
            assert getattr(item.counts, name) == sum(getattr(result.counts, name) for result in item.dtypes.values())


def _said(page: str) -> str:
    texts: list[str] = []

    class Text(HTMLParser):
        def handle_data(self, data: str) -> None:
            texts.append(data)

    Text().feed(page)
    return "".join(texts)


def demand_progress(run: Run, printed: str) -> None:
    """The last line of the progress counts results and conventions, and what is unexpected among them."""
    done, total, unexpected = map(int, re.findall(r"(\d+) of (\d+) results and conventions, (\d+) unexpected", printed)[-1])
    assert done == total == len(run.items) + len(run.conventions)
    assert unexpected == run.surprises - len(run.wrong_timings) - len(run.undeclared)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_agrees_with_itself(tmp_path: Path, workers: str) -> None:
    done = run_command("run", *SPEC, "--no-timing", "-k", "ATT-OUT-0 or CON or ATT-MASK-007", "-n", workers, folder=tmp_path)
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert done.returncode == run.exit_code == 1
    demand_agreement(run, tmp_path / "reports", done.stdout)
    demand_progress(run, done.stderr)
    assert not re.search(r"\d+ (passed|failed|skipped).* in [\d.]+s", done.stdout), "pytest's own count is of something else"
    with pytest.raises(UsageError, match="no badge of a part of a run"):
        badge(run, NAME)


def test_a_whole_run_agrees_with_its_badge(tmp_path: Path) -> None:
    done = run_command("run", *SPEC, "--no-timing", "--max-examples", "0", "-n", "0", folder=tmp_path)
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert done.returncode == run.exit_code == 1
    demand_agreement(run, tmp_path / "reports", done.stdout)
    demand_progress(run, done.stderr)
    judged = of_records(run).judged
    assert badge(run, NAME)["message"].startswith(f"{judged - len(run.unexpected)}/{judged} ")


def test_pytests_count_is_of_results_and_conventions(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", *PLAIN, *SPEC, "--reports", "reports", "-k", "ATT-OUT-00 or CON"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    run = read_records(tmp_path / "reports" / "records.jsonl")
    demand_agreement(run, tmp_path / "reports", done.stdout)
    counted = {word: int(number) for number, word in re.findall(r"(\d+) (failed|passed|skipped|xfailed)", done.stdout)}
    assert counted["failed"] == run.surprises
    assert sum(counted.values()) == len(run.items) + len(run.conventions)


def test_what_nothing_supports_is_said_not_to_be_judged(tmp_path: Path) -> None:
    done = run_command("run", *SPEC, "--no-timing", "-k", "ATT-MASK-007 or ATT-MASK-008", "-n", "0", folder=tmp_path)
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert done.returncode == run.exit_code == 3
    assert "as expected" not in done.stdout
    assert "), nothing was judged: all 2 results are unsupported." in done.stdout
    demand_agreement(run, tmp_path / "reports", done.stdout)


def test_shards_agree_with_the_whole(tmp_path: Path) -> None:
    for number in (1, 2):
        words = ("--shard", f"{number}/2", "--reports", f"r{number}", "-k", "ATT-OUT-00 or CON-EMPTY", "-n", "0", "--no-timing")
        done = run_command("run", *SPEC, *words, folder=tmp_path)
        demand_agreement(read_records(tmp_path / f"r{number}" / "records.jsonl"), tmp_path / f"r{number}", done.stdout)
    merged = run_command("merge", "r1/records.jsonl", "r2/records.jsonl", "--out", "all/records.jsonl", folder=tmp_path)
    run = read_records(tmp_path / "all" / "records.jsonl")
    assert sum(footer.unexpected for footer in run.footers) == run.surprises
    again = run_command("report", "all/records.jsonl", "--out", "all", folder=tmp_path)
    assert merged.returncode == run.exit_code
    demand_agreement(run, tmp_path / "all", merged.stdout)
    assert again.returncode == 0 and reports.verdict(run) in again.stdout


def test_a_wrong_output_counts_though_only_the_timing_asked_for_it(tmp_path: Path) -> None:
    name = fakes.named("zeros_when_large")
    words = ("--implementation", name, "--tier", "quick", "-k", "ATT-OUT-001 or ATT-OUT-002", "-n", "0", "--timing")
    done = run_command("run", *words, folder=tmp_path)
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert {item.outcome.value for item in run.items} == {"PASS"}
    wrong = [timing for timing in run.timings if timing.status == "unexpected"]
    assert {timing.outcome.value for timing in wrong} == {"WRONG_VALUE"} and len(wrong) >= 2
    assert done.returncode == run.exit_code == 1
    assert f"{len(wrong)} timed outputs are wrong: 2 judged." in done.stdout
    demand_agreement(run, tmp_path / "reports", done.stdout)
