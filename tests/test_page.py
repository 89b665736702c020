"""The report page as a text: complete, self-contained, and safe whatever the records say."""

import math
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.page import MISSING, make_page, plots, write_page
from conformance.records import Counts, Growth, Line, Picture, Run, read_records
from conformance.system.exit_codes import ExitCode
from tests.support import runs
from tests.support.commands import run_command
from tests.support.large_runs import large_run

REQUIREMENTS = ("ATT-OUT-001", "ATT-MASK-001", "ATT-MASK-002", "ATT-MASK-003")
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)> \"'&\x00\x1b {{ 7*7 }}"
PICTURE = Picture(
    head=(0, 1), size=(2, 3), rows=(0, 1), columns=(0, 1, 2), got=((1.0, float("nan"), 3.0), (4.0, 5.0, 6.0)),
    want=((1.0, 2.0, 3.0), (4.0, 5.0, 7.0)), r=((0.0, float("inf"), 0.0), (0.0, 0.5, 9.0)), keys=(0, 1), visible=("#.", "##"),
)  # fmt: skip
GROWTH = {"operation": "attention", "dtype": "float32", "outcome": Outcome.PASS, "lengths": (256, 512, 1024)}


def records(name: str = "flawed", told: str = "TypeError: no booleans") -> tuple[Line, ...]:
    wrong = {"outcome": Outcome.WRONG_VALUE, "status": "unexpected", "counts": Counts(designed=5, failed=2)}
    again = f"attention-conformance reproduce 'attention …' --implementation {name}"
    return (
        runs.header(("fine", name), REQUIREMENTS),
        *(runs.item("fine", requirement) for requirement in REQUIREMENTS[1:]),
        runs.item("fine", "ATT-OUT-001", accuracy=runs.accuracy(0.1, 0.25, 0.5)),
        runs.item(name, "ATT-OUT-001", accuracy=runs.accuracy(0.0, 0.2, math.inf), **wrong),
        runs.case(1, name, outcome="WRONG_VALUE", r=9.0, message="At (0, 1, 1, 2): got 6.0.", repro=again, picture=PICTURE),
        runs.item(name, "ATT-MASK-001", outcome=Outcome.ERROR, reason="raises for booleans"),
        runs.case(2, name, "ATT-MASK-001", outcome="ERROR", status="expected", message=told),
        runs.item(name, "ATT-MASK-002", outcome=Outcome.UNSUPPORTED, reason="lacks bias"),
        runs.item(name, "ATT-MASK-003", outcome=Outcome.SKIPPED, reason="listed in the skips file"),
        runs.convention(),
        runs.convention(name, declared="zeros", observed="nan", agrees=False, message=f"It declares zeros. {told}"),
        runs.timing(ratio_low=0.98, ratio_high=1.02),
        runs.timing(name, ratio=2.5, ratio_low=2.25, ratio_high=2.75, median_seconds=0.005),
        runs.timing(name, "prefill", outcome=Outcome.WRONG_VALUE, median_seconds=None, ratio=None),
        Growth(implementation=name, seconds=(0.001, 0.004, 0.016), peak_bytes=(1000, 2000, 4000), time_exponent=2.0,
               memory_exponent=1.0, **GROWTH),
        runs.self_comparison(1.01),
        runs.diagnosis(name),
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return runs.run(tmp_path, *records(), exit_code=ExitCode.UNEXPECTED)


class Parsed(HTMLParser):
    """Elements of a page: (name, attributes), and what each element with an id says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str, **having: str) -> list[dict[str, str]]:
        wanted = {name.rstrip("_"): value for name, value in having.items()}
        return [attrs for name, attrs in self.elements if name == tag and wanted.items() <= attrs.items()]

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())


def test_a_page_loads_nothing_and_its_links_lead_somewhere(run: Run) -> None:
    page = Parsed(make_page(run))
    identifiers = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    links = [attrs["href"] for _, attrs in page.elements if "href" in attrs]
    assert len(links) > 10
    assert [link for link in links if link != "data:," and link.removeprefix("#") not in identifiers] == []
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert policy.startswith("default-src 'none'")


def test_the_matrix_counts_what_the_records_say(run: Run) -> None:
    labels = [attrs["aria-label"] for attrs in Parsed(make_page(run)).all("a", class_="cell")]
    assert labels == ["OUT: 1 passed", "MASK: 3 passed", "OUT: 1 unexpected", "MASK: 1 known failure, 1 unsupported, 1 skipped"]


def test_a_failure_is_told_in_full(run: Run) -> None:
    said = Parsed(make_page(run)).said
    for part in (
        "The sentence of ATT-OUT-001.",
        "unexpected: 2 of 5 problems failed.",
        "attention batch=1 heads=1 length=2 width=4 dtype=float32 values=gaussian.1#1",
        "At (0, 1, 1, 2): got 6.0.",
        "attention-conformance reproduce 'attention …' --implementation flawed",
        "Matches fault scale-missing",
        "Output[0, 1], 2 × 3: 2 of 6 beyond the budget; the worst, r = ∞, in row 0, column 1.",
        "1 more failing problem counted",
        "raises for booleans",
        "lacks bias",
        "listed in the skips file",
    ):
        assert part in said, part


def test_a_picture_is_there_for_the_script(run: Run) -> None:
    (picture,) = Parsed(make_page(run)).all("div", class_="picture")
    assert (picture["data-head"], picture["data-size"], picture["data-visible"]) == ("0 1", "2 3", "#.;##")
    assert picture["data-got"] == "1 nan 3;4 5 6"
    assert picture["data-r"] == "0 inf 0;0 0.5 9"


def test_conventions_accuracy_speed_and_growth_have_their_place(run: Run) -> None:
    text = make_page(run)
    said = Parsed(text).said
    for part in ("zeros ≠ nan", "2.50× (2.25–2.75)", "WRONG_VALUE", "flawed L^2.00", "flawed L^1.00"):
        assert part in said, part
    assert "fine cpu-small decode float32 1.010 0.990 … 1.030 within 3 %" in said


def test_times_without_a_baseline_are_a_table_alone(tmp_path: Path) -> None:
    page = Parsed(make_page(runs.run(tmp_path, runs.header(), runs.timing(baseline="", ratio=None))))
    assert "Speed: attention in float32, without a baseline" in page.said and "2 ms" in page.said
    assert page.all("svg") == [] and "relative to" not in page.said


def test_plots_say_in_words_what_they_show(run: Run) -> None:
    page = Parsed(make_page(run))
    drawings = page.all("svg", role="graphics-document")
    assert len(drawings) == 6, "accuracy, two shapes, speed against accuracy, time and memory"
    assert all(drawing["aria-label"] for drawing in drawings)
    labels = " ".join(attrs.get("aria-label", "") for _, attrs in page.elements)
    labels = " ".join(labels.split())
    assert "fine: median r 0.261" in labels and "largest r is ∞" in labels
    assert "flawed: 2.50× 5 ms, 95 % interval 2.25 to 2.75" in labels


@pytest.mark.parametrize(("ratios", "told"), [((1.2,), "✗ A/A check"), ((1.2, 1.0), "✓ A/A check")])
def test_the_last_self_comparison_says_whether_ratios_can_be_trusted(
    tmp_path: Path, ratios: tuple[float, ...], told: str
) -> None:
    made = runs.run(tmp_path, runs.header(), runs.timing(), *map(runs.self_comparison, ratios))
    said = Parsed(make_page(made)).said
    assert told in said and ("held again" in said) == (len(ratios) > 1)
    assert ("not to be trusted" in said) != ("can be trusted" in said)


def test_without_the_library_of_plots_the_page_has_tables_and_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    page = Parsed(make_page(run))
    assert page.all("svg") == []
    assert MISSING in page.said and "pip install" in MISSING
    assert page.all("details", class_="numbers", open=""), "the tables are open"


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    name = f"{HOSTILE.translate({0: None, 27: None})} {'long ' * 900}"
    plain = Parsed(make_page(runs.run(tmp_path, *records(), exit_code=ExitCode.UNEXPECTED)))
    text = make_page(runs.run(tmp_path, *records(name, f"{HOSTILE}\u202e {'long ' * 20_000}"), exit_code=ExitCode.UNEXPECTED))
    page = Parsed(text)
    assert len(page.all("script")) == len(plain.all("script")) and page.all("img") == []
    assert not set(text) & {"\x00", "\x1b", "\u202e"}
    assert "{{ 7*7 }}" in page.said
    assert len(text) < 400_000


def test_a_large_run_where_all_fails_still_makes_a_page_that_can_be_sent(tmp_path: Path) -> None:
    made = make_page(runs.run(tmp_path, *large_run(records=12_000, failing=1.0), exit_code=ExitCode.UNEXPECTED))
    assert len(made.encode()) < 3_000_000
    assert made.count('class="item') == 25 * 150


def test_the_same_records_make_the_same_page(run: Run) -> None:
    assert make_page(run) == make_page(run)


def test_a_failure_says_in_which_dtypes_it_fails(tmp_path: Path) -> None:
    dtypes = runs.in_dtypes(float64="WRONG_VALUE", float32="PASS")
    everywhere = runs.in_dtypes(float64="WRONG_VALUE", float32="WRONG_VALUE")
    found = zip(REQUIREMENTS[:2], (dtypes, everywhere), strict=True)
    items = [runs.item("fine", requirement, dtypes=results, **runs.FAILS) for requirement, results in found]
    page = Parsed(make_page(runs.run(tmp_path, runs.header(["fine"], REQUIREMENTS), *items, runs.item("fine", REQUIREMENTS[2]))))
    assert [tag for tag in page.all("li") if tag.get("data-dtypes") == "float64"]
    assert [tag for tag in page.all("li") if tag.get("data-dtypes") == "float64 float32"]
    assert "all dtypes" in page.said and len(page.all("select", id="dtype")) == 1


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    assert "Nothing was run." in Parsed(make_page(runs.run(tmp_path, runs.header()))).said


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = runs.write(tmp_path / "records.jsonl", *records(), exit_code=ExitCode.UNEXPECTED)
    done = run_command("page", str(file), "--out", "deep/page.html", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "wrote deep/page.html")
    assert (tmp_path / "deep" / "page.html").read_text(encoding="utf-8") == make_page(read_records(file))


def test_a_truncated_file_needs_to_be_accepted_and_is_marked(tmp_path: Path) -> None:
    file = runs.write(tmp_path / "records.jsonl", *records(), exit_code=None)
    refused = run_command("page", str(file), folder=tmp_path)
    assert refused.returncode == ExitCode.USAGE_ERROR and "truncated" in refused.stderr
    assert not (tmp_path / "report.html").exists()
    assert run_command("page", str(file), "--partial", folder=tmp_path).returncode == 0
    page = Parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.all("p", class_="banner warning") and "The run did not come to its end" in page.said


@pytest.mark.parametrize("content", ['{"kind": "header", "schema": 99}\n', "<html>\n\n", ""])
def test_foreign_newer_and_empty_files_are_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "records.jsonl").write_text(content, encoding="utf-8")
    done = run_command("page", "records.jsonl", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1


def test_a_place_that_cannot_be_written_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(run, tmp_path / "file" / "report.html")
