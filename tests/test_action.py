"""The GitHub Action: its file, its inputs, and what its command does."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.checks.run_options import RUN_OPTIONS
from conformance.ci.action import SUMMARY_LIMIT, act
from conformance.ci.inputs import OPTIONS, PREFIX, Inputs
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import read_records
from conformance.system.exit_codes import ExitCode
from tests.support import runs

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)

# The action's file


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else [str(value)]


def test_every_input_is_used_and_every_used_input_exists() -> None:
    used = {name for text in texts(STEPS) for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert used == set(ACTION["inputs"])


def test_no_script_holds_an_expression() -> None:
    """An expression in a script is replaced before the shell reads it: whatever it stands for would be code."""
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) >= 2
    for script in scripts:
        assert not EXPRESSION.search(script), script


def test_scripts_quote_the_variables_that_their_steps_set() -> None:
    for step in STEPS:
        if "run" in step:
            for name in re.findall(r"\$\{?(\w+)", step["run"]):
                assert name in step["env"], name
            outside = re.sub(r'"[^"]*"', "", step["run"])
            assert "$" not in outside, f"unquoted in {step['run']}"
            assert step["shell"] == "bash"


def test_the_step_hands_each_input_to_the_command_under_its_name() -> None:
    environment = next(step["env"] for step in STEPS if step.get("id") == "suite")
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    for name, value in given.items():
        assert value == f"${{{{ inputs.{name.removeprefix(PREFIX).lower()} }}}}"
    understood = {*OPTIONS, "implementation", "select", "timing", "reports", "baseline", "merge"}
    assert {name.removeprefix(PREFIX).lower() for name in given} == understood


def test_inputs_and_outputs_are_described_and_typed_as_github_wants() -> None:
    for name, entry in (ACTION["inputs"] | ACTION["outputs"]).items():
        assert len(entry["description"]) > 10, name
        assert isinstance(entry.get("default", ""), str), f"{name}: a default that is no text"
    for name, entry in ACTION["outputs"].items():
        assert entry["value"] == f"${{{{ steps.suite.outputs.{name} }}}}"


def test_actions_are_pinned_to_commits() -> None:
    workflows = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")]
    steps = [*STEPS, *(step for workflow in workflows for job in workflow["jobs"].values() for step in job["steps"])]
    used = [step["uses"] for step in steps if "uses" in step]
    assert "./" in used, "a workflow uses the action itself"
    for name in used:
        assert name == "./" or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name), name


# The inputs


def test_options_of_the_action_are_those_of_a_run() -> None:
    flags = {option.flag for option in RUN_OPTIONS}
    assert {f"--{name}" for name in OPTIONS} <= flags


def inputs(**given: str) -> Inputs:
    return Inputs.of({PREFIX + name.upper(): value for name, value in given.items()})


def test_inputs_become_words() -> None:
    made = inputs(implementation="a.b:c\n  d.py:e\n", tier="quick", shard="1/2", select="MASK and not x", baseline="old.jsonl")
    assert made.words == (
        "--implementation=a.b:c", "--implementation=d.py:e", "--tier=quick", "--shard=1/2", "--no-timing", "-kMASK and not x",
        "--reports=reports",
    )  # fmt: skip
    assert made.baseline == Path("old.jsonl")
    assert inputs(timing="true").words == ("--timing", "--reports=reports")


def test_an_input_cannot_pass_for_an_option() -> None:
    assert inputs(tier="quick --reports=/etc", implementation="--help").words[:2] == (
        "--implementation=--help",
        "--tier=quick --reports=/etc",
    )


@pytest.mark.parametrize(("given", "told"), [({"timing": "yes"}, "timing is 'yes'"), ({"reports": "a\nb=c"}, "has 2 lines")])
def test_inputs_that_make_no_sense(given: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        inputs(**given)


# What the command does


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment as a runner makes it; the repository is ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\n\ndef attention(query, key, value):\n"
        "    print('::error title=spoof::printed by the implementation')\n"
        "    return np.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)\n"
    )
    return {
        "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "CONFORMANCE_IMPLEMENTATION": "mine.py:attention",
        "CONFORMANCE_TIER": "quick", "CONFORMANCE_SELECT": "ATT-OUT-004 or ATT-SCALE-001",
    }  # fmt: skip


def outputs(github: dict[str, str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in Path(github["GITHUB_OUTPUT"]).read_text().splitlines())


def test_a_run_shows_itself_in_all_places(github: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert act(github) == ExitCode.UNEXPECTED
    assert outputs(github) == {"exit-code": "1", "records": "reports/records.jsonl", "reports": "reports", "worse": ""}
    assert "# Conformance of attention implementations" in Path(github["GITHUB_STEP_SUMMARY"]).read_text()
    printed = capfd.readouterr().out
    stopped, resumed = re.search(r"^::stop-commands::(\w+)$", printed, re.MULTILINE), printed.splitlines()
    assert stopped
    assert f"::{stopped[1]}::" in resumed
    after = printed.split(f"::{stopped[1]}::")[1]
    assert re.search(r"^::error file=mine\.py,line=4,title=ATT-\S+ on mine\.py%3Aattention%3A WRONG_VALUE::", after, re.MULTILINE)
    assert "spoof" not in after
    assert not Path("reports/badges").exists(), "a part of a run has no badge"
    assert Path("reports/junit.xml").exists()


def merged(github: dict[str, str], before: dict[str, Any], after: dict[str, Any], code: ExitCode) -> ExitCode:
    """What the action makes of records, as from a single shard, beside a baseline."""
    header = runs.header(["fine"], ["ATT-OUT-001", "ATT-OUT-002"], shard="1/1")
    same = runs.item("fine", "ATT-OUT-002")
    runs.write(Path("base.jsonl"), header, runs.item("fine", **before), same)
    runs.write(Path("shard.jsonl"), header, runs.item("fine", **after), same, exit_code=code)
    return act(github | {"CONFORMANCE_MERGE": "shard.jsonl", "CONFORMANCE_BASELINE": "base.jsonl"})


def test_what_is_worse_than_the_baseline_is_shown(github: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert merged(github, {}, runs.FAILS, ExitCode.UNEXPECTED) == ExitCode.UNEXPECTED
    assert outputs(github)["worse"] == "1"
    assert "::error title=Worse than the baseline::newly failing: ATT-OUT-001" in capfd.readouterr().out
    assert "# Comparison with the baseline" in Path(github["GITHUB_STEP_SUMMARY"]).read_text()
    assert json.loads(Path("reports/comparison.json").read_text())["worse"] == 1


@pytest.mark.parametrize(
    ("before", "after", "code", "worse", "ends"),
    [
        (runs.FAILS, runs.FAILS, ExitCode.UNEXPECTED, "0", ExitCode.UNEXPECTED),
        ({}, {**runs.FAILS, "status": "expected"}, ExitCode.AS_EXPECTED, "0", ExitCode.AS_EXPECTED),
        ({}, {"outcome": Outcome.SKIPPED}, ExitCode.AS_EXPECTED, "1", ExitCode.UNEXPECTED),
        ({}, {"outcome": Outcome.SKIPPED}, ExitCode.INCONCLUSIVE, "1", ExitCode.INCONCLUSIVE),
    ],
    ids=["as bad before", "stated as known", "worse though as expected", "interrupted"],
)
def test_the_step_fails_for_what_is_unexpected_or_worse(
    github: dict[str, str], before: dict[str, Any], after: dict[str, Any], code: ExitCode, worse: str, ends: ExitCode
) -> None:
    assert merged(github, before, after, code) == ends
    assert (outputs(github)["worse"], outputs(github)["exit-code"]) == (worse, str(int(ends)))


def test_an_unfinished_run_is_shown_and_not_compared(
    github: dict[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write(Path("base.jsonl"), runs.header(["fine"]), runs.item())
    runs.write(Path("reports/records.jsonl"), runs.header(["fine"]), runs.item(**runs.FAILS), exit_code=ExitCode.UNEXPECTED)

    def died(inputs: Inputs, records: Path) -> ExitCode:
        runs.write(records, runs.header(["fine"]), runs.item(), exit_code=None)
        return ExitCode.INCONCLUSIVE

    monkeypatch.setattr("conformance.ci.action._run", died)
    assert act(github | {"CONFORMANCE_BASELINE": "base.jsonl"}) == ExitCode.INCONCLUSIVE
    assert outputs(github) == {"exit-code": "3", "records": "reports/records.jsonl", "reports": "reports", "worse": ""}
    assert "::error title=attention-conformance::The run did not come to its end, so" in capfd.readouterr().out
    assert not Path("reports/comparison.json").exists()


def test_an_earlier_run_is_not_shown_in_place_of_one_that_recorded_nothing(
    github: dict[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write(Path("reports/records.jsonl"), runs.header(["fine"]), runs.item())
    monkeypatch.setattr("sys.executable", shutil.which("false"))  # a run that dies at once
    assert act(github) == ExitCode.INCONCLUSIVE
    assert outputs(github) == {"exit-code": "3"}
    assert "The run ended before it recorded anything." in capfd.readouterr().out
    assert not Path("reports/records.jsonl").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"CONFORMANCE_MERGE": "shards/*/records.jsonl"}, "no records to merge"),
        ({"CONFORMANCE_TIER": "halfway"}, "'halfway' is not one of"),
        ({"CONFORMANCE_TIMING": "perhaps"}, "make it true or false"),
    ],
)
def test_a_mistake_is_annotated(
    github: dict[str, str], capfd: pytest.CaptureFixture[str], given: dict[str, str], told: str
) -> None:
    assert act(github | given) == ExitCode.USAGE_ERROR
    assert re.search(rf"^::error title=attention-conformance::.*{told}", capfd.readouterr().out, re.MULTILINE)
    assert outputs(github) == {"exit-code": "2"}


@pytest.mark.parametrize("baseline", ["no_such.jsonl", "others.jsonl"], ids=["unreadable", "of other implementations"])
@pytest.mark.parametrize(
    ("code", "ends"),
    [
        (ExitCode.AS_EXPECTED, ExitCode.USAGE_ERROR),
        (ExitCode.UNEXPECTED, ExitCode.UNEXPECTED),
        (ExitCode.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
    ],
)
def test_an_unusable_baseline_leaves_the_run_its_verdict(
    github: dict[str, str], capfd: pytest.CaptureFixture[str], baseline: str, code: ExitCode, ends: ExitCode
) -> None:
    runs.write(Path("others.jsonl"), runs.header(["other"]), runs.item("other"))
    runs.write(Path("shard.jsonl"), runs.header(["fine"], shard="1/1"), runs.item("fine"), exit_code=code)
    assert act(github | {"CONFORMANCE_MERGE": "shard.jsonl", "CONFORMANCE_BASELINE": baseline}) == ends
    assert outputs(github) == {
        "exit-code": str(int(ends)), "records": "reports/records.jsonl", "reports": "reports", "worse": "",
    }  # fmt: skip
    told = capfd.readouterr().out
    assert "::error title=attention-conformance::The run is not compared with the baseline. " in told
    assert "# Conformance of attention implementations" in Path(github["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_run_of_nothing_proves_nothing_whatever_the_baseline(github: dict[str, str]) -> None:
    runs.write(Path("base.jsonl"), runs.header(["fine"]), runs.item("fine"))
    chosen = {"CONFORMANCE_SELECT": "nothing_is_called_so", "CONFORMANCE_BASELINE": "base.jsonl"}
    assert act(github | chosen) == ExitCode.INCONCLUSIVE
    assert outputs(github)["exit-code"] == "3"


def test_shards_are_merged_and_shown(github: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        made = runs.header(["fine"], [f"ATT-OUT-{n:03}" for n in (1, 2)], shard=f"{number}/2")
        runs.write(Path(f"shards/{number}/records.jsonl"), made, runs.item("fine", f"ATT-OUT-{number:03}"))
    github["CONFORMANCE_MERGE"] = "shards/*/records.jsonl"
    assert act(github) == ExitCode.AS_EXPECTED
    assert len(read_records(Path("reports/records.jsonl")).items) == 2
    assert Path("reports/summary.md").exists()
    Path("shards/2/records.jsonl").unlink()
    assert act(github) == ExitCode.USAGE_ERROR
    assert "2/2 is missing" in capfd.readouterr().out


def test_a_summary_keeps_within_what_github_takes(github: dict[str, str]) -> None:
    identifiers = [f"ATT-OUT-{number:03}" for number in range(900)]
    sentence = "x" * 2000
    for number in (1, 2):
        made = runs.header(["fine"], identifiers, shard=f"{number}/2")
        items = [runs.item("fine", r, reason=sentence, **runs.FAILS) for r in identifiers[number::2]]
        runs.write(Path(f"shards/{number}/records.jsonl"), made, *items, exit_code=ExitCode.UNEXPECTED)
    assert act(github | {"CONFORMANCE_MERGE": "shards/*/records.jsonl"}) == ExitCode.UNEXPECTED
    summary = Path(github["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert SUMMARY_LIMIT * 0.9 < len(summary) <= SUMMARY_LIMIT + 1
    assert b"The page was cut here" in summary


# The documentation

EXAMPLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_documented_workflows_use_inputs_that_exist(number: int) -> None:
    jobs = yaml.safe_load(EXAMPLES[number])["jobs"].values()
    used = [step.get("with", {}) for job in jobs for step in job["steps"] if "OWNER/" in step.get("uses", "")]
    assert used
    for given in used:
        assert set(given) <= set(ACTION["inputs"])


def test_the_first_example_is_as_short_as_promised() -> None:
    assert len(EXAMPLES[0].splitlines()) <= 11
    documented = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    assert not [name for name in ACTION["inputs"] if f"`{name}`" not in documented]
