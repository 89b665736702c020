"""Expectations: strict in both directions, refused with a sentence where wrong, brought up to date without losing a word."""

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.expectations import (
    Expectation,
    ImplementationExpectations,
    builtin_expectations,
    file_stem,
    is_skipped,
    judge_timed,
    load,
    load_skips,
    no_expectations,
)
from conformance.expectations.update import update
from conformance.judging.verdict import Outcome
from conformance.records import Environment
from conformance.specification import requirements
from conformance.timing import TIMED
from tests.support import runs
from tests.support.expecting import ERROR, KNOWN, NONFINITE, NUM, OUT, PASS, WRONG, A, B, C, entry

ROOT = Path(__file__).parent.parent
Expect = Callable[..., ImplementationExpectations]


@pytest.fixture
def expect(tmp_path: Path) -> Expect:
    """The expectations of an implementation whose file has the given entries."""

    def made(*entries: str, environment: Environment = runs.LINUX) -> ImplementationExpectations:
        (tmp_path / "flawed.toml").write_text("\n".join(entries), encoding="utf-8")
        return load(tmp_path, KNOWN, environment).for_("flawed")

    return made


def refusal(text: str, tmp_path: Path) -> str:
    (tmp_path / "flawed.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        load(tmp_path, KNOWN, runs.LINUX)
    return str(refused.value)


# What is expected


def test_without_an_expectation_only_failures_are_unexpected(expect: Expect) -> None:
    for judged in (expect(), no_expectations().for_("flawed")):
        assert judged.judge(OUT, "designed", A, "float32", PASS).expected
        assert judged.judge(OUT, "designed", A, "float32", Outcome.UNSUPPORTED).expected
        assert not judged.judge(OUT, "designed", A, "float32", WRONG).expected
        assert not judged.judge(OUT, "random", A, "float32", WRONG).expected


@pytest.mark.parametrize("stratum", ["golden", "designed"])
def test_a_selected_case_must_fail_so(expect: Expect, stratum: str) -> None:
    judged = expect(entry())
    known = judged.judge(OUT, stratum, A, "float32", WRONG)
    assert (known.expected, known.reason, known.word) == (True, "a reason", "expected")
    passed = judged.judge(OUT, stratum, B, "float32", PASS)
    assert (passed.expected, passed.word) == (False, "unexpected")
    assert "remove entry 1" in passed.reason and "flawed.toml" in passed.reason
    assert "NONFINITE, where WRONG_VALUE is expected" in judged.judge(OUT, stratum, C, "float32", NONFINITE).reason
    assert not judged.judge(OUT, stratum, C, "float32", NONFINITE).expected
    assert judged.judge(OUT, stratum, A, "float32", Outcome.UNSUPPORTED).expected
    assert not judged.judge(NUM, stratum, A, "float32", WRONG).expected


def test_random_cases_may_fail(expect: Expect) -> None:
    judged = expect(entry(), entry('dtypes = ["float16"]\nrandom = false', NUM))
    assert judged.judge(OUT, "random", A, "float32", WRONG).expected
    assert judged.judge(OUT, "random", A, "float32", NONFINITE).expected
    assert judged.judge(OUT, "random", A, "float32", PASS).expected
    assert not judged.judge(OUT, "random", A, "float32", ERROR).expected
    assert not judged.judge(NUM, "random", A, "float16", WRONG).expected


def test_cases_and_dtypes_narrow(expect: Expect) -> None:
    judged = expect(entry(f'cases = ["{A}"]\ndtypes = ["float32"]'))
    assert judged.judge(OUT, "designed", A, "float32", WRONG).expected
    assert not judged.judge(OUT, "designed", B, "float32", WRONG).expected
    assert judged.judge(OUT, "designed", B, "float32", PASS).expected
    assert not judged.judge(OUT, "random", C, "float16", WRONG).expected


def test_a_named_case_goes_before_all(expect: Expect) -> None:
    judged = expect(entry(), entry(f'cases = ["{A}"]', outcome="ERROR", reason="raises"))
    assert judged.judge(OUT, "designed", A, "float32", ERROR).reason == "raises"
    assert not judged.judge(OUT, "designed", A, "float32", WRONG).expected
    assert judged.judge(OUT, "designed", B, "float32", WRONG).expected


def test_whole_items(expect: Expect) -> None:
    judged = expect(entry(outcome="CRASH"))
    assert judged.judge_item(OUT, Outcome.CRASH).expected
    assert not judged.judge_item(OUT, Outcome.TIMEOUT).expected
    assert judged.judge_item(NUM, Outcome.SKIPPED).expected
    assert not judged.judge_item(NUM, Outcome.CRASH).expected


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ('{platform = "linux", machine = "x86_64"}', True),
        ('{platform = "darwin"}', False),
        ('{instruction_set = ["amx", "avx512"]}', True),
        ('{instruction_set = "amx"}', False),
        ('{torch = ">=2.5,<3"}', True),
        ('{torch = "<2.13"}', False),
        ('{torch = ">=2.5", platform = "darwin"}', False),
        ('{jax = ">=0.4"}', False),
        ('{python = ">=3.11"}', True),
    ],
)
def test_conditions(expect: Expect, when: str, holds: bool) -> None:
    status = expect(entry(f"when = {when}")).judge(OUT, "designed", A, "float32", WRONG)
    assert status.expected is holds


def test_any_package_may_be_named(tmp_path: Path) -> None:
    entries = [entry('when = {msgspec = ">=0.1"}'), entry('when = {msgspec = "<0.1"}', NUM)]
    (tmp_path / "flawed.toml").write_text("\n".join(entries), encoding="utf-8")
    loaded = load(tmp_path, KNOWN)
    assert loaded.for_("flawed").judge(OUT, "designed", A, "float32", WRONG).expected
    assert not loaded.for_("flawed").judge(NUM, "designed", A, "float32", WRONG).expected
    assert loaded.environment.packages["msgspec"] == version("msgspec")


def test_a_failure_that_is_expected_elsewhere_says_where(expect: Expect) -> None:
    conditions = ('{torhc = ">=2.5"}', '{torch = "<2.13"}', '{platform = ["darwin", "win32"]}')
    told = (
        "torhc >=2.5, which here is not installed",
        f"torch <2.13, which here is {runs.LINUX.packages['torch']}",
        "platform darwin or win32, which here is linux",
    )
    for when, words in zip(conditions, told, strict=True):
        judged = expect(entry(f"when = {when}"))
        for stratum in ("designed", "random"):
            status = judged.judge(OUT, stratum, A, "float32", WRONG)
            assert not status.expected
            assert "Entry 1 of" in status.reason and words in status.reason
        assert judged.judge(OUT, "designed", A, "float32", ERROR).reason == ""
        assert judged.judge(NUM, "designed", A, "float32", WRONG).reason == ""
        assert judged.judge(OUT, "designed", A, "float32", PASS).expected


def test_what_matches_nothing_is_told(expect: Expect) -> None:
    judged = expect(entry(f'cases = ["{A}", "{B}"]'), entry('dtypes = ["float16"]'), entry(requirement=NUM))
    assert judged.unmatched() == []
    judged.judge(OUT, "designed", A, "float32", WRONG)
    told = judged.unmatched(OUT)
    assert len(told) == 2
    assert "entry 1" in told[0] and B in told[0] and OUT in told[0] and "flawed.toml" in told[0]
    assert "entry 2" in told[1]
    assert judged.unmatched(NUM) == [], "no case of it was judged"
    judged.judge(OUT, "designed", B, "float32", WRONG)
    judged.judge(OUT, "designed", C, "float16", WRONG)
    assert judged.unmatched() == []


def test_random_only_expectations_match_nothing_by_intention(expect: Expect) -> None:
    judged = expect(entry('cases = "none"'))
    assert judged.judge(OUT, "designed", A, "float32", PASS).expected
    assert judged.judge(OUT, "random", B, "float32", WRONG).expected
    assert judged.unmatched() == []


# Files


def test_a_file_holds_for_every_implementation(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(entry())
    expectations = load(tmp_path / "mine.toml", KNOWN, runs.LINUX)
    for name in ("one", "my_module:other"):
        assert expectations.for_(name).judge(OUT, "designed", A, "float32", WRONG).expected


def test_a_folder_is_by_implementation(tmp_path: Path) -> None:
    (tmp_path / "my_module-mine.toml").write_text(entry())
    expectations = load(tmp_path, KNOWN, runs.LINUX)
    assert expectations.for_("my_module:mine").judge(OUT, "designed", A, "float32", WRONG).expected
    assert not expectations.for_("other").judge(OUT, "designed", A, "float32", WRONG).expected
    assert expectations.for_("other") is expectations.for_("other")


def test_the_file_of_a_long_name_is_found_again_and_is_its_own(tmp_path: Path) -> None:
    first, second = ("long" * 100 + end for end in "ab")
    run = runs.run(tmp_path, runs.header([first, second], KNOWN), runs.item(first, OUT), runs.item(second, OUT))
    assert not update(run, tmp_path)
    (tmp_path / f"{file_stem(first)}.toml").write_text(entry())
    expectations = load(tmp_path, KNOWN, runs.LINUX)
    assert expectations.for_(first).judge(OUT, "designed", A, "float32", WRONG).expected
    assert not expectations.for_(second).judge(OUT, "designed", A, "float32", WRONG).expected
    assert len(file_stem(first)) == 100


def test_built_in_expectations_are_valid() -> None:
    assert builtin_expectations(requirements().keys()).for_("no such implementation").unmatched() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[expected", "not valid TOML"),
        ("[[known]]\n", "unknown key 'known'"),
        ("[expected]\n", "two brackets"),
        (entry() + entry("resaon = 1"), "entry 2: the entry contains unknown field `resaon`"),
        (entry(outcome="BROKEN"), "entry 1: Invalid enum value 'BROKEN'"),
        (entry(outcome="PASS"), "entry 1: PASS is no failure"),
        (entry(reason=""), "entry 1"),
        ('[[expected]]\nrequirement = "ATT-OUT-001"\noutcome = "ERROR"\n', "missing required field `reason`"),
        (entry(requirement="ATT-OUT-999"), "entry 1: there is no requirement 'ATT-OUT-999'"),
        (entry('cases = ["xyz"]'), "entry 1"),
        (entry('cases = "some"'), "entry 1"),
        (entry('dtypes = ["float8"]'), "unknown dtype 'float8'"),
        (entry('when = {platfrom = "linux"}'), "when.platfrom"),
        (entry('when = {torch = ["2"]}'), "when.torch"),
        (entry() + entry(outcome="ERROR"), "entries 1 and 2 expect different outcomes"),
        (entry(f'cases = ["{A}"]') + entry(f'cases = ["{B}", "{A}"]', outcome="ERROR"), "entries 1 and 2"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, told: str) -> None:
    message = refusal(text, tmp_path)
    assert told in message
    assert "flawed.toml" in message


def test_entries_that_never_hold_together_may_differ(expect: Expect) -> None:
    judged = expect(entry('when = {platform = "linux"}'), entry('when = {platform = "darwin"}', outcome="ERROR"))
    assert judged.judge(OUT, "designed", A, "float32", WRONG).expected


def test_missing_and_undecodable_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml cannot be read"):
        load(tmp_path / "nowhere.toml", KNOWN)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        load(tmp_path / "latin.toml", KNOWN)


def test_skips(tmp_path: Path) -> None:
    (tmp_path / "skips.txt").write_text("# too slow\nATT-OUT-*   # all of them\n\n")
    patterns = load_skips(tmp_path / "skips.txt", KNOWN)
    assert patterns == ("ATT-OUT-*",)
    assert is_skipped(OUT, patterns) and not is_skipped(NUM, patterns)
    (tmp_path / "skips.txt").write_text("ATT-OUT-*\nATT-OTU-001\n")
    with pytest.raises(UsageError, match="line 2: 'ATT-OTU-001' matches no requirement"):
        load_skips(tmp_path / "skips.txt", KNOWN)
    with pytest.raises(UsageError, match="cannot be read"):
        load_skips(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("requirement", "more", "timed", "known"),
    [
        ("ATT-OUT-004", "", "short", True),
        ("ATT-OUT-004", 'dtypes = ["float16"]\n', "short", False),  # timed in float32
        ("ATT-MASK-001", "", "short", False),  # what fails with a mask says nothing of a call without one
        ("ATT-MASK-009", "", "prefill", True),  # causal, as the call is
        ("ATT-MASK-009", "", "short", False),
        ("ATT-NUM-001", "", "short", False),  # a NaN in the query
        ("ATT-HEAD-001", "", "grouped", True),
        ("ATT-HEAD-001", "", "prefill", False),
    ],
)
def test_a_timed_failure_is_known_where_a_plainer_case_is(
    tmp_path: Path, requirement: str, more: str, timed: str, known: bool
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(f'[[expected]]\nrequirement = "{requirement}"\noutcome = "WRONG_VALUE"\nreason = "known"\n{more}')
    expectations = load(file, requirements()).for_("mine")
    problem = TIMED["attention"][timed]
    assert judge_timed(expectations, problem, Outcome.WRONG_VALUE).expected is known
    assert judge_timed(expectations, problem, Outcome.NONFINITE).expected is known, "wrong values, too"
    assert not judge_timed(expectations, problem, Outcome.CRASH).expected
    assert judge_timed(expectations, problem, Outcome.PASS).expected


def test_a_folder_of_others_alone_is_remarked(tmp_path: Path) -> None:
    (tmp_path / "my_attention.toml").write_text(entry())
    loaded = load(tmp_path, KNOWN, runs.LINUX)
    told = loaded.inapplicable(["dir/my_attention.py:attention"])
    assert told == (
        "No expectation is of dir/my_attention.py:attention, which would stand in dir-my_attention.py-attention.toml; "
        "what is there is my_attention.toml."
    )
    assert loaded.inapplicable(["my_attention", "other"]) == "" == loaded.inapplicable([])
    assert load(tmp_path / "my_attention.toml", KNOWN, runs.LINUX).inapplicable(["x"]) == ""
    assert no_expectations().inapplicable(["x"]) == ""


def test_documents_say_what_an_entry_may_hold(tmp_path: Path) -> None:
    """Every example is read, and the README names every key that there is and no other."""
    examples = [
        text
        for document in ("README.md", "docs/adapters.md")
        for text in re.findall(r"```toml\n(\[\[expected.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(examples) == 2
    for text in examples:
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        load(tmp_path, requirements().keys(), runs.LINUX)
    optional = re.search(r"# optional, as are ([a-z, ]+)\n", examples[0])
    assert optional is not None
    written = set(re.findall(r"^([a-z]+) = ", examples[0], re.MULTILINE))
    assert written | set(optional[1].split(", ")) == set(Expectation.__struct_fields__)


@pytest.mark.parametrize("key", ["routes", "route", "case", "Requirement"])
def test_a_key_that_no_document_names_is_refused(tmp_path: Path, key: str) -> None:
    assert f"unknown field `{key}`" in refusal(entry(f'{key} = ["native"]'), tmp_path)
