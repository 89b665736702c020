"""The suite leaves no trace in the library's world: what a function sees in a run is what it sees in a plain program, in this
process or in another, and what it changes there is undone."""

import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.declarations import unknown_words
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import parse
from conformance.run.workers.kept import kept
from conformance.system.world import given_arguments, outside
from tests.support.commands import run_command

LOOKING = """
import json, os, sys, warnings
from pathlib import Path
import numpy as np

def seen():
    ours = ("PYTEST_", "ATTENTION_", "PYTHON", "OMP_")
    return {
        "arguments": len(sys.argv[1:]),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(ours)},
        "filters": [[action, str(category.__name__)] for action, _, category, *_ in warnings.filters],
        "errors": np.geterr(),
    }

HERE = Path(__file__).parent
AT_IMPORT = seen()

def attention(query, key, value):
    (HERE / "seen.json").write_text(json.dumps([AT_IMPORT, seen()]))
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ value).astype(query.dtype)
"""
WORDS = ("--tier", "quick", "--no-timing", "--no-diagnosis", "-k", "ATT-OUT-001")
PROBLEM = parse("attention batch=2 heads=3 length=7/13 width=8 dtype=float64 values=spread.1#1")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch):
    """What a user may have set beside: it is seen too, and obeyed by nobody of ours."""
    for name in [
        name
        for name in os.environ
        if name.startswith(("PYTEST_", "ATTENTION_", "PYTHON", "OMP_")) and name != "PYTEST_CURRENT_TEST"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--maxfail=1")
    return dict(os.environ)


def test_a_library_sees_a_plain_program_whatever_the_processes(tmp_path: Path, environment):
    (tmp_path / "mine.py").write_text(LOOKING)
    program = "import mine, numpy as np; mine.attention(*[np.ones((1, 1, 2, 2))] * 3)"
    environment.pop("PYTEST_CURRENT_TEST", None)
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=environment)
    plain = json.loads((tmp_path / "seen.json").read_text())
    for workers in ("0", "1"):
        run_command("run", "--implementation", "mine.py:attention", "-n", workers, *WORDS, folder=tmp_path)
        found = json.loads((tmp_path / "seen.json").read_text())
        for then, now in zip(plain, found, strict=True):
            added = [one for one in now.pop("filters") if one not in then["filters"]]
            assert not [one for one in added if one[0] in ("error", "always")], "modules that are loaded may hide warnings"
            assert now == {name: value for name, value in then.items() if name != "filters"}, f"-n {workers}"
        (tmp_path / "seen.json").unlink()


@pytest.mark.parametrize(
    "words",
    [
        ("smoke", "mine.py:attention"),
        ("describe", "mine.py:attention"),
        ("reproduce", PROBLEM.text, "--implementation", "mine.py:attention"),
        ("bench", "--implementation", "mine.py:attention", "--suite", "cpu-small", "--passes", "forward", "--no-growth"),
    ],
    ids=lambda words: words[0],
)
def test_a_library_that_reads_flags_passes_in_other_commands(words: tuple[str, ...], tmp_path: Path):
    reading = LOOKING.replace("AT_IMPORT = seen()", "AT_IMPORT = seen()\nassert not sys.argv[1:], sys.argv")
    (tmp_path / "mine.py").write_text(reading.replace("    (HERE", "    assert not sys.argv[1:], sys.argv\n    (HERE"))
    result = run_command(*words, folder=tmp_path)
    assert json.loads((tmp_path / "seen.json").read_text())[1]["arguments"] == 0
    assert "AssertionError" not in result.stdout + result.stderr


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_library_that_reads_flags_passes(workers: str, tmp_path: Path):
    reading = LOOKING.replace("    (HERE", "    if sys.argv[1:]: raise ValueError(f'unknown flags {sys.argv[1:]}')\n    (HERE")
    (tmp_path / "mine.py").write_text(reading.replace("AT_IMPORT = seen()", "AT_IMPORT = seen()\nassert not sys.argv[1:]"))
    result = run_command("run", "--implementation", "mine.py:attention", "-n", workers, *WORDS, folder=tmp_path)
    assert result.returncode == 0, result.stdout[-1500:]
    header = json.loads((tmp_path / "reports" / "records.jsonl").read_text().splitlines()[0])
    assert "--implementation mine.py:attention" in header["command"], "records keep what the user typed"


def test_what_is_changed_is_undone():
    name = "ATTENTION_UNHEARD_OF"

    def state():
        drawn = np.random.get_state()[1].tolist()  # noqa: NPY002 – what libraries draw from
        return list(sys.argv), dict(os.environ), warnings.filters[:], drawn

    before = state()
    with kept(FRAMEWORK):
        sys.argv.append("--flag")
        sys.argv = ["other"]
        os.environ[name] = "1"
        os.environ.pop("PATH", None)
        warnings.simplefilter("error")
        np.random.seed(1)  # noqa: NPY002 – as a library does
    assert state() == before


def test_arguments_remain_known_to_the_suite():
    before = list(sys.argv)
    with outside(), outside():
        assert len(sys.argv) == 1
        assert given_arguments() == before
    assert sys.argv == before


def test_the_state_of_torch_is_kept():
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    framework = registry.frameworks()["torch"]

    def state():
        return (
            torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(), torch.initial_seed(),
            torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(),
            torch.random.get_rng_state().tolist(),
        )  # fmt: skip

    before = state()
    with kept(framework):
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(3)
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("medium")
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(9)
    assert state() == before


def test_64_bit_types_of_jax_are_there_for_float64_alone():
    jax = pytest.importorskip("jax", reason="JAX is an extra")
    framework = registry.frameworks()["jax"]
    seen = []

    def attention(query, key, value, *, key_lengths=None):
        seen.append((bool(jax.config.jax_enable_x64), str(query.dtype), key_lengths is not None and str(key_lengths.dtype)))
        return jax.nn.dot_product_attention(
            *(array.swapaxes(1, 2) for array in (query, key, value)), key_value_seq_lengths=key_lengths
        ).swapaxes(1, 2)

    subject = Subject(Implementation("mine", attention, Support(lengths_dtype="int32"), framework))
    for dtype in ("float64", "float32", "float64"):
        problem = PROBLEM.but(dtype=dtype, key_lengths=(4, 13))
        judgement = Judge().values(subject, problem)
        assert not judgement.verdict.outcome.is_failure or dtype == "float64", judgement.verdict
        assert judgement.output is not None and judgement.output.dtype == dtype
    assert seen == [(True, "float64", "int32"), (False, "float32", "int32"), (True, "float64", "int32")]
    assert not jax.config.jax_enable_x64


def test_the_state_of_jax_is_kept():
    jax = pytest.importorskip("jax", reason="JAX is an extra")
    before = dict(jax.config.values)
    with kept(registry.frameworks()["jax"]):
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
    assert dict(jax.config.values) == before


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_lengths_come_in_the_dtype_that_is_declared(name: str, dtype: str):
    framework = registry.frameworks()[name]
    if framework.missing("cpu"):
        pytest.skip(framework.missing("cpu"))
    seen = []

    def attention(query, key, value, *, key_lengths=None):
        seen.append(framework.to_numpy(key_lengths).dtype.name)
        return query

    subject = Subject(Implementation("mine", attention, Support(lengths_dtype=dtype), framework))
    problem = PROBLEM.but(key_lengths=(4, 13))
    subject.prepare(Judge().inputs(problem), subject.route(problem)).run()
    assert seen == [dtype]


def test_lengths_of_no_such_dtype_are_refused():
    implementation = Implementation("mine", direct, Support(), FRAMEWORK)
    support = replace(implementation.support, lengths_dtype="int16")
    assert any("Support.lengths_dtype names 'int16'" in sentence for sentence in unknown_words(support))
