"""The command line: what each command prints, and the code it ends with."""

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import Result

from conformance.cli import main
from conformance.exit_codes import ExitCode
from conformance.records import read_records
from conformance.verdict import Outcome
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke, run_command

TEXT = "attention batch=1 heads=2 length=3/4 width=4 dtype=float32 values=spread.1#42"
QUICK = ("--no-timing", "--max-examples", "1", "-k", "ATT-SCALE-001 or ATT-OUT-004")


def lines_of(result: Result, state: str) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.startswith(state)]


# Mistakes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["smoke", "numpy-dirct"], "numpy-direct"),
        (["smoke", "no_such_file.py:attention"], "no_such_file.py"),
        (["smoke", named("no_such_function")], "no_such_function"),
        (["smoke", named("honest"), "--framework", "tensorflow"], "tensorflow"),
        (["smoke", named("honest"), "--axes", "hbld"], "hbld"),
        (["describe", "no_such_module:attention"], "no_such_module"),
        (["explain", "ATT-MASK-999"], "ATT-MASK-0"),
        (["explain", "nonsense"], "list"),
        (["explain", "GOLD-0"], "from GOLD-0001"),
        (["repro", "GOLD-x", "--implementation", "numpy-direct"], "from GOLD-0001"),
        (["repro", TEXT.replace("batch=1", "batch=one"), "--implementation", "numpy-direct"], "batch='one'"),
        (["repro", "", "--implementation", "numpy-direct"], "begins with"),
        (["repro", TEXT, "--implementation", "numpy-sinusoidal"], "sinusoidal_encoding"),
        (["repro", TEXT, "--implementation", "numpy-direct", "--check", "luck"], "values, repeat"),
        (["repro", f"{TEXT} bias=gaussian.1:qk#1", "--implementation", named("zeros")], "does not offer bias"),
        (["repro", TEXT], "--implementation"),
        (["report", "no_such_records.jsonl"], "no_such_records.jsonl"),
        (["run", "--tier", "halfway"], "quick"),
        (["run", "--implementation", named("misspelt")], "gruoped-heads"),
        (["run", "--max-examples", "many"], "many"),
        (["run", "-n", "some"], "-n some"),
        (["run", "-k", "MASK and not 'x y'"], "cannot be read as names with and, or, not"),
        (["golden", "add", TEXT], "--requirement"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_a_mistake_is_told_in_one_line_with_exit_code_2(words: list[str], told: str) -> None:
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert result.stdout == ""
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


# smoke


def test_smoke_finds_an_honest_adapter_sound_and_says_what_it_tried() -> None:
    result = invoke("smoke", "numpy-direct")
    assert result.exit_code == 0
    assert not lines_of(result, "FAIL")
    for tried in (
        "float64, float32, float16, bfloat16",
        "bias, causal, cross-length, grouped-heads, key-lengths, mask, scale",
        "bhq1",
    ):
        assert tried in result.stdout


@pytest.mark.parametrize("name", ["numpy-multi-head", "numpy-sinusoidal"])
def test_smoke_reaches_every_feature_of_the_other_operations(name: str) -> None:
    declared = re.search(r"^features +(.+(?:\n +.+)*)", invoke("describe", name).stdout, re.MULTILINE)
    tried = re.search(r"^ok +features: (.+)$", invoke("smoke", name).stdout, re.MULTILINE)
    assert declared
    assert tried
    assert sorted(re.split(r",\s+", declared[1].strip())) == tried[1].split(", ")


@pytest.mark.parametrize(
    ("fake", "told"),
    [
        ("length_first", "looks transposed, and is right if all arrays are (batch, length, heads, width): say --axes blhd"),
        ("returns_length_first", "transposed, (batch, length, heads, width): swap the two axes"),
        ("merges_heads", "heads look merged"),
        ("doubles", "The output is float64, due is float32"),
        ("with_weights", "tuple"),
        ("no_groups", "feature grouped-heads: ValueError: as many key heads as query heads, please"),
        ("no_half", "dtype float16: TypeError: no float16 here"),
        ("misspelt", "'gruoped-heads', which the suite does not know: it knows bias, causal, cross-length, grouped-heads"),
    ],
)
def test_smoke_names_what_is_unsound(fake: str, told: str) -> None:
    result = invoke("smoke", named(fake))
    assert result.exit_code == 1
    assert told in "\n".join(lines_of(result, "FAIL"))


def test_smoke_says_each_thing_that_raises_and_goes_on() -> None:
    result = invoke("smoke", named("no_groups"))
    assert len(lines_of(result, "FAIL")) == 1
    assert "mask, value-width" in result.stdout


@pytest.mark.parametrize(
    ("fake", "told"),
    [
        ("zeros", "which `run` judges"),
        ("one_buffer", "two calls return the same memory"),
        ("other_names", "attn_mask: never passed"),
    ],
)
def test_smoke_notes_what_is_no_fault_of_the_adapter(fake: str, told: str) -> None:
    result = invoke("smoke", named(fake))
    assert result.exit_code == 0
    assert told in "\n".join(lines_of(result, "note"))


def test_the_options_that_smoke_suggests_mend_the_layout() -> None:
    assert invoke("smoke", named("length_first"), "--axes", "blhd").exit_code == 0


# describe, explain, list


def test_describe_shows_declarations_and_observations() -> None:
    shown = invoke("describe", named("honest")).stdout
    assert re.search(r"^operation +attention$", shown, re.MULTILINE)
    assert re.search(r"^features +causal, cross-length, grouped-heads, mask, scale, value-width$", shown, re.MULTILINE)
    assert re.search(r"^composed +key-lengths \(by mask\)$", shown, re.MULTILINE)
    assert re.search(r"^lacks +bias$", shown, re.MULTILINE)
    assert re.search(r"^CON-EMPTY-ROW +– +nan", shown, re.MULTILINE)


def test_describe_lists_what_cannot_be_asked_for_as_lacking(tmp_path: Path) -> None:
    file = tmp_path / "narrow.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def attention(query, key, value, *, mask=None): ...\n"
        "attention.conformance = Support(lacks=frozenset({'grouped-heads'}), conventions={'CON-POLARITY': 'true-attends'})\n"
    )
    shown = invoke("describe", f"{file}:attention").stdout
    assert re.search(r"^lacks +bias, grouped-heads, scale$", shown, re.MULTILINE)
    assert re.search(r"^composed +causal \(by mask\), key-lengths \(by mask\)$", shown, re.MULTILINE)


def test_describe_shows_where_declaration_and_observation_differ() -> None:
    shown = invoke("describe", named("boasts")).stdout
    assert re.search(r"^CON-EMPTY-ROW +zeros +nan +they differ$", shown, re.MULTILINE)


def test_explain_shows_a_requirement_with_its_cases() -> None:
    shown = invoke("explain", "ATT-MASK-003").stdout
    assert "(B, 1, Lq, Lk)" in shown
    assert re.search(r"^designed +\d+ problems$", shown, re.MULTILINE)
    texts = [line.strip() for line in shown.splitlines() if line.startswith("  attention ")]
    assert texts
    assert invoke("repro", texts[0], "--implementation", "numpy-direct").exit_code == 0


def test_explain_shows_the_answers_of_a_convention() -> None:
    shown = invoke("explain", "con-empty-row").stdout
    assert [line.split()[0] for line in shown.partition("answers\n")[2].splitlines()] == [
        "zeros",
        "mean",
        "nan",
        "unstable",
        "other",
    ]


def test_list_shows_implementations_areas_and_conventions() -> None:
    shown = invoke("list").stdout
    assert re.search(r"^numpy-direct +attention +numpy +yes$", shown, re.MULTILINE)
    assert re.search(r"^ATT-MASK +Masking +\d+$", shown, re.MULTILINE)
    assert "CON-ALIGNMENT" in shown


# repro


def test_repro_of_a_pass_ends_with_0_and_shows_the_worst_row() -> None:
    result = invoke("repro", TEXT, "--implementation", "numpy-direct")
    assert result.exit_code == 0
    assert re.search(r"^outcome +PASS$", result.stdout, re.MULTILINE)
    assert len(re.findall(r"^ +\d +-?\d", result.stdout, re.MULTILINE)) == 4  # as many as the value is wide


def test_repro_of_a_failure_shows_the_element_that_the_verdict_names() -> None:
    result = invoke("repro", TEXT, "--implementation", named("unscaled"))
    assert result.exit_code == 1
    assert re.search(r"^outcome +WRONG_VALUE$", result.stdout, re.MULTILINE)
    got, want = (float(re.search(rf"^{name} +(\S+)$", result.stdout, re.MULTILINE)[1]) for name in ("got", "want"))  # type: ignore[index]
    marked = next(line.split() for line in result.stdout.splitlines() if line.endswith("←"))
    assert (float(marked[1]), float(marked[2])) == (pytest.approx(got), pytest.approx(want))


def test_repro_judges_by_another_check() -> None:
    result = invoke("repro", TEXT, "--implementation", named("writes_on_query"), "--check", "untouched")
    assert result.exit_code == 1
    assert "MUTATED_INPUT" in result.stdout
    assert invoke("repro", TEXT, "--implementation", named("writes_on_query")).exit_code == 0


# new


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_new_writes_a_file_whose_adapter_is_sound(framework: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    file = tmp_path / f"my_{framework}.py"
    result = invoke("new", str(file), "--framework", framework)
    assert result.exit_code == 0
    *_, command = result.stdout.strip().partition("Next: ")
    smoked = invoke(*shlex.split(command)[1:])
    assert smoked.exit_code == 0, smoked.output
    assert not lines_of(smoked, "FAIL") + lines_of(smoked, "note")


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("precious")
    result = invoke("new", str(file))
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "exists already" in result.stderr
    assert file.read_text() == "precious"


def test_new_refuses_a_name_that_would_stand_in_the_way_of_a_framework(tmp_path: Path) -> None:
    assert invoke("new", str(tmp_path / "torch.py")).exit_code == ExitCode.USAGE_ERROR
    assert not list(tmp_path.iterdir())


# report, expectations


def test_report_prints_the_tables_and_writes_them(tmp_path: Path) -> None:
    records = runs.write(tmp_path / "records.jsonl", runs.header(), runs.item(), runs.case(1))
    result = invoke("report", str(records), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert "Conformance" in result.stdout
    assert (tmp_path / "out" / "summary.md").exists()


def test_expectations_update_writes_what_a_run_found(tmp_path: Path) -> None:
    failure = {"outcome": Outcome.WRONG_VALUE, "status": "unexpected"}
    lines = (runs.header(), runs.item("flawed", **failure), runs.case(1, "flawed", **failure))
    records = runs.write(tmp_path / "records.jsonl", *lines, exit_code=ExitCode.UNEXPECTED)
    result = invoke("expectations", "update", str(records), "--to", str(tmp_path / "known"))
    assert result.exit_code == 0
    assert [path.name for path in (tmp_path / "known").iterdir()] == ["flawed.toml"]
    assert "flawed.toml" in result.stdout


# run


def test_run_ignores_the_set_up_of_the_users_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('loaded')\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option-either")
    done = run_command("run", "--implementation", named("honest"), *QUICK, "-n", "1", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert {item.requirement for item in run.items} == {"ATT-SCALE-001", "ATT-OUT-004"}
    assert run.exit_code == 0


def test_a_failure_comes_with_a_command_that_shows_it_again(tmp_path: Path) -> None:
    done = run_command("run", "--implementation", named("unscaled"), *QUICK, "-n", "0", folder=tmp_path)
    assert done.returncode == 1
    command = re.search(r"again: attention-conformance (repro .+)$", done.stdout, re.MULTILINE)
    assert command, done.stdout
    again = invoke(*shlex.split(command[1]))
    assert again.exit_code == 1
    assert "WRONG_VALUE" in again.stdout


def test_run_works_without_xdist(tmp_path: Path) -> None:
    done = run_command("run", "--implementation", named("honest"), *QUICK, "--", "-p", "no:xdist", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_in_which_nothing_was_judged_is_no_success(tmp_path: Path) -> None:
    only_a_bias = ("run", "--implementation", named("honest"), "-k", "ATT-MASK-007", "--tier", "quick", "--no-timing", "-n", "0")
    assert run_command(*only_a_bias, folder=tmp_path).returncode == ExitCode.INCONCLUSIVE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--implementation", "no_such_file.py:attention"], "no_such_file.py"),
        (["--implementation", named("elsewhere")], "NumPy has no device 'cuda'"),
        (["--seed", "seven"], "'seven'"),
        (["--skips", "no_such_skips"], "no_such_skips"),
        (["--records", "reports/records.jsonl/deeper.jsonl"], "cannot be written"),
        (["-n", "1", "--", "--dist", "each"], "each would be counted several times"),
        (["--", "--no-such-option"], "--no-such-option"),
    ],
)
def test_a_mistake_in_a_run_is_one_sentence_and_costs_no_earlier_records(words: list[str], told: str, tmp_path: Path) -> None:
    kept = tmp_path / "reports" / "records.jsonl"
    kept.parent.mkdir()
    kept.write_text("of an earlier run")
    done = run_command("run", "-n", "0", *words, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stdout
    assert kept.read_text() == "of an earlier run"


def test_a_golden_case_is_explained_and_judged_by_its_id() -> None:
    explained = invoke("explain", "gold-2").stdout
    assert "she likes coffee" in explained
    text = explained.splitlines()[-1].strip()
    by_id, by_text = (invoke("repro", words, "--implementation", "numpy-multi-head") for words in ("GOLD-0002", text))
    assert by_id.exit_code == by_text.exit_code == ExitCode.AS_EXPECTED
    assert by_id.stdout == by_text.stdout


def test_a_run_that_selects_nothing_is_inconclusive_and_says_so(tmp_path: Path) -> None:
    done = run_command("run", "--implementation", "numpy-direct", "-n", "0", "-k", "nothing-is-called-so", folder=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "Nothing was run" in done.stderr


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize(
    "words", [("-k", "nothing-is-called-so"), ("-k", "ATT-SCALE-001", "--", "--collect-only")], ids=["nothing", "collect-only"]
)
def test_a_run_without_items_leaves_earlier_records_alone(words: tuple[str, ...], workers: str, tmp_path: Path) -> None:
    kept = tmp_path / "reports" / "records.jsonl"
    kept.parent.mkdir()
    kept.write_text("of an earlier run")
    run_command("run", "--implementation", "numpy-direct", "-n", workers, *words, folder=tmp_path)
    assert kept.read_text() == "of an earlier run"
    assert [path.name for path in kept.parent.iterdir()] == ["records.jsonl"]


def test_output_of_an_implementation_is_cut(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import numpy as np\n\n\ndef attention(query, key, value):\n"
        "    print('chatter' * 10_000)\n    return np.zeros(query.shape, query.dtype)\n"
    )
    done = run_command("run", "--implementation", "loud.py:attention", "--no-diagnosis", *QUICK, "-n", "0", folder=tmp_path)
    assert done.returncode == ExitCode.UNEXPECTED
    assert "chatter" in done.stdout and "more characters are left out" in done.stdout
    assert done.stdout.count("chatter") < 700


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupted_run_keeps_its_records(tmp_path: Path) -> None:
    # a process started in the background by a shell is given SIGINT as ignored, and passes that on
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from conformance.cli import main; main()"
    command = [sys.executable, "-c", heeding, "run", "--implementation", "numpy-direct", "--no-timing", "-n", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        records = tmp_path / "reports" / "records.jsonl"
        _wait(lambda: records.exists() and records.read_bytes().count(b'"kind":"item"') >= 2)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=120)
    assert process.returncode == ExitCode.INCONCLUSIVE, printed + told
    assert "Interrupted" in told
    run = read_records(records)
    assert run.exit_code == ExitCode.INCONCLUSIVE
    assert len(run.items) >= 2


def _wait(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The command itself


def test_help_comes_at_once_since_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, conformance.cli; print([m for m in ('numpy', 'pytest', 'hypothesis', 'torch', 'jax') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_command_has_a_help_text() -> None:
    for name, command in main.commands.items():
        assert command.get_short_help_str(), name


def test_a_run_leaves_the_environment_of_its_process_as_it_was(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--of-the-users-own")
    before = dict(os.environ)
    invoke("run", "--implementation", "numpy-direct", "-n", "0", "-k", "nothing-is-called-so", "--reports", str(tmp_path))
    assert dict(os.environ) == before


def test_a_fault_that_a_diagnosis_names_is_explained() -> None:
    explained = invoke("explain", "scale-missing")
    assert explained.exit_code == ExitCode.AS_EXPECTED
    assert "ATT-SCALE-001" in explained.stdout


def test_a_forgotten_framework_is_guessed_from_what_the_file_imports(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text("import torch\n\ndef attention(q, k, v):\n    return torch.softmax(q, -1)\n")
    done = run_command("smoke", "mine.py:attention", folder=tmp_path)
    assert done.returncode == ExitCode.UNEXPECTED
    assert "say --framework torch" in done.stdout
    run = run_command(
        "run", "--implementation", "mine.py:attention", "--tier", "quick", "-n", "0", "-k", "ATT-OUT-00", "--no-diagnosis",
        folder=tmp_path,
    )  # fmt: skip
    assert "`attention-conformance smoke mine.py:attention`" in run.stdout
    assert "Speed" not in run.stdout, "who asks for some requirements has not asked for speed"


def test_a_process_that_ends_after_its_result_leaves_one_item(tmp_path: Path) -> None:
    (tmp_path / "killer.py").write_text(
        "import os\n\n\ndef pytest_runtest_teardown():\n    if 'PYTEST_XDIST_WORKER' in os.environ:\n        os._exit(7)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "killer", "-p", "no:cacheprovider", "-q", "--pyargs", "conformance.checks"]
    words = ["--implementation", "numpy-direct", "--tier", "quick", "-k", "ATT-SCALE-001", "-n", "1", "--records", "r.jsonl"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == ExitCode.UNEXPECTED, done.stdout + done.stderr
    assert "CRASH after its result" in done.stdout
    assert [item.outcome for item in read_records(tmp_path / "r.jsonl").items] == [Outcome.PASS]
