"""The command line: what each command prints, and the code it ends with."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from conformance.cli import main
from conformance.judging.verdict import Outcome
from conformance.system.exit_codes import ExitCode
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
        (["smoke", named("correct"), "--framework", "tensorflow"], "tensorflow"),
        (["smoke", named("correct"), "--axes", "hbld"], "hbld"),
        (["describe", "no_such_module:attention"], "no_such_module"),
        (["explain", "ATT-MASK-999"], "ATT-MASK-0"),
        (["explain", "zzzz"], "list"),
        (["explain", "GOLD-0"], "from GOLD-0001"),
        (["reproduce", "GOLD-x", "--implementation", "numpy-direct"], "from GOLD-0001"),
        (["reproduce", TEXT.replace("batch=1", "batch=one"), "--implementation", "numpy-direct"], "batch='one'"),
        (["reproduce", "", "--implementation", "numpy-direct"], "begins with"),
        (["reproduce", TEXT, "--implementation", "numpy-sinusoidal"], "sinusoidal_encoding"),
        (
            ["reproduce", TEXT, "--implementation", "numpy-direct", "--check", "luck"],
            "values, beyond, exact, shape, dtype, form, repeat",
        ),
        (["reproduce", f"{TEXT} bias=gaussian.1:qk#1", "--implementation", named("zeros")], "does not offer bias"),
        (["reproduce", TEXT], "--implementation"),
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


# describe, explain, list


def test_describe_shows_declarations_and_observations() -> None:
    shown = invoke("describe", named("correct")).stdout
    assert re.search(r"^operation +attention$", shown, re.MULTILINE)
    assert re.search(r"^features +causal, cross-length, grouped-heads, mask, scale, value-width$", shown, re.MULTILINE)
    assert re.search(r"^emulated +key-lengths \(by mask\), window \(by mask\)$", shown, re.MULTILINE)
    assert re.search(r"^lacks +bias, (.*, )?softcap", shown, re.MULTILINE)
    assert re.search(r"^CON-EMPTY-ROW +– +nan", shown, re.MULTILINE)


def test_describe_lists_what_cannot_be_asked_for_as_lacking(tmp_path: Path) -> None:
    file = tmp_path / "narrow.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def attention(query, key, value, *, mask=None): ...\n"
        "attention.conformance = Support(lacks=frozenset({'grouped-heads'}), conventions={'CON-POLARITY': 'true-attends'})\n"
    )
    shown = invoke("describe", f"{file}:attention").stdout
    assert re.search(r"^lacks +bias, grouped-heads, (.*, )?scale, (.*, )?softcap", shown, re.MULTILINE)
    assert re.search(r"^emulated +causal \(by mask\), key-lengths \(by mask\), window \(by mask\)$", shown, re.MULTILINE)


def test_describe_shows_where_declaration_and_observation_differ() -> None:
    shown = invoke("describe", named("boasts")).stdout
    assert re.search(r"^CON-EMPTY-ROW +zeros +nan +they differ$", shown, re.MULTILINE)


def test_explain_shows_a_requirement_with_its_cases() -> None:
    shown = invoke("explain", "ATT-MASK-003").stdout
    assert "(B, 1, Lq, Lk)" in shown
    assert re.search(r"^designed +\d+ problems$", shown, re.MULTILINE)
    texts = [line.strip() for line in shown.splitlines() if line.startswith("  attention ")]
    assert texts
    assert invoke("reproduce", texts[0], "--implementation", "numpy-direct").exit_code == 0


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
    result = invoke("reproduce", TEXT, "--implementation", "numpy-direct")
    assert result.exit_code == 0
    assert re.search(r"^outcome +PASS$", result.stdout, re.MULTILINE)
    assert len(re.findall(r"^ +\d +-?\d", result.stdout, re.MULTILINE)) == 4  # as many as the value is wide


def test_repro_of_a_failure_shows_the_element_that_the_verdict_names() -> None:
    result = invoke("reproduce", TEXT, "--implementation", named("unscaled"))
    assert result.exit_code == 1
    assert re.search(r"^outcome +WRONG_VALUE$", result.stdout, re.MULTILINE)
    got, want = (float(*re.findall(rf"^{name} +(\S+)$", result.stdout, re.MULTILINE)) for name in ("got", "expected"))
    marked = next(line.split() for line in result.stdout.splitlines() if line.endswith("←"))
    assert (float(marked[1]), float(marked[2])) == (pytest.approx(got), pytest.approx(want))


def test_repro_judges_by_another_check() -> None:
    result = invoke("reproduce", TEXT, "--implementation", named("doubles"), "--check", "dtype")
    assert result.exit_code == 1
    assert "WRONG_DTYPE" in result.stdout
    assert invoke("reproduce", TEXT, "--implementation", named("doubles"), "--check", "shape").exit_code == 0


def test_repro_shows_a_changed_input_by_any_check() -> None:
    for check in ("values", "untouched"):
        result = invoke("reproduce", TEXT, "--implementation", named("writes_on_query"), "--check", check)
        assert result.exit_code == 1
        assert "MUTATED_INPUT" in result.stdout


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


# The command itself


def test_help_comes_at_once_since_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, conformance.cli; print([m for m in ('numpy', 'pytest', 'hypothesis', 'torch', 'jax') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_command_has_a_help_text() -> None:
    for name, command in main.commands.items():
        assert command.get_short_help_str(), name


def test_a_fault_that_a_diagnosis_names_is_explained() -> None:
    explained = invoke("explain", "scale-missing")
    assert explained.exit_code == ExitCode.AS_EXPECTED
    assert "ATT-SCALE-001" in explained.stdout


def test_a_forgotten_framework_is_guessed_from_what_the_file_imports(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is an extra")
    (tmp_path / "mine.py").write_text("import torch\n\ndef attention(q, k, v):\n    return torch.softmax(q, -1)\n")
    done = run_command("smoke", "mine.py:attention", folder=tmp_path)
    assert done.returncode == ExitCode.UNEXPECTED
    assert "say --framework torch" in done.stdout
    run = run_command(
        "run", "--implementation", "mine.py:attention", "--tier", "quick", "-n", "0", "-k", "ATT-OUT-00", "--no-diagnosis",
        folder=tmp_path,
    )  # fmt: skip
    assert run.returncode == ExitCode.USAGE_ERROR
    assert "mine.py:attention cannot be judged, since its adapter is not sound." in run.stderr
    assert "say --framework torch" in run.stderr
