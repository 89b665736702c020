"""The soak test draws the same problems however it is run, passes what is correct and reports what is not."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.adapter import Implementation, Support, registry
from conformance.checks.run_options import LARGEST_SEED
from conformance.features import every_feature
from conformance.problem import parse
from conformance.soak import Extreme, Soaked, judge_numbers, render, slack, soak
from conformance.soak.__main__ import main
from conformance.soak.draw import LONGEST, draw
from conformance.system.exit_codes import ExitCode
from conformance.values import materialise

NUMPY = ("numpy-direct", "numpy-blocked", "numpy-einsum", "numpy-multi-head", "numpy-sinusoidal")
UNSCALED = f"{Path(__file__).parent / 'fakes.py'}:unscaled"


def of(*names):
    return [registry.resolve(name) for name in names]


def test_problems_are_rebuilt_from_their_text_and_cover_what_there_is():
    problems = [draw(1, number) for number in range(400)]
    assert problems == [parse(problem.text) for problem in problems]
    assert {problem.operation for problem in problems} == {"attention", "multi_head_attention", "sinusoidal_encoding"}
    assert {problem.dtype for problem in problems} == {"float64", "float32", "float16", "bfloat16"}
    attention = [problem for problem in problems if problem.operation == "attention"]
    lengths = {length for problem in attention for length in (problem.query_length, problem.key_length)}
    assert min(lengths) == 1 and 200 < max(lengths) <= LONGEST
    features = frozenset().union(*(problem.features for problem in attention))
    asked = {feature.name for feature in every_feature() if feature.field is not None and "attention" in feature.operations}
    assert features == asked | {"grouped-heads", "value-width", "cross-length"}


def test_every_problem_can_be_made():
    for number in range(300):
        materialise(draw(2, number))


def test_another_seed_draws_other_problems():
    assert {draw(1, number) for number in range(50)}.isdisjoint(draw(2, number) for number in range(50))


def test_correct_implementations_stay_within_their_budgets():
    soaked = judge_numbers(of(*NUMPY), range(150), seed=3)
    assert soaked.problems == 150
    assert not soaked.beyond
    assert {name for name, _, _ in soaked.extremes} == set(NUMPY)
    counted = {name: sum(e.distribution.count for key, e in soaked.extremes.items() if key[0] == name) for name in NUMPY}
    assert counted["numpy-blocked"] == sum(draw(3, number).operation == "attention" for number in range(150))
    assert "every r is within 1" in render(soaked)


def test_a_incorrect_implementation_is_reported_with_the_problem():
    soaked = judge_numbers(of("numpy-direct", UNSCALED), range(200), seed=3)
    assert {name for name, _, _ in soaked.beyond} == {UNSCALED}
    worst = max(soaked.beyond.values(), key=lambda extreme: extreme.distribution.max)
    alone = judge_numbers(of(UNSCALED), [n for n in range(200) if draw(3, n).text == worst.problem], seed=3)
    assert [extreme.distribution.max for extreme in alone.extremes.values()] == [worst.distribution.max]
    assert worst.problem in render(soaked)
    assert "beyond the budget" in render(soaked)


def test_an_implementation_that_raises_is_beyond_its_budget():
    def raising(query, key, value):
        raise RuntimeError("no kernel")

    soaked = judge_numbers([Implementation("raising", raising, Support(), of(NUMPY[0])[0].framework)], range(30), seed=3)
    assert soaked.extremes == soaked.beyond != {}
    assert "no kernel" in render(soaked)


def test_what_cannot_run_here_is_named():
    elsewhere = Implementation("elsewhere", materialise, Support(device="cuda"), of(NUMPY[0])[0].framework)
    soaked = judge_numbers([elsewhere], range(5), seed=3)
    assert not soaked.extremes
    assert "elsewhere did not run" in render(soaked)


def test_the_number_of_processes_changes_nothing(monkeypatch):
    monkeypatch.setattr("conformance.soak.run.CHUNK", 20)
    done = []
    apart = soak(60, seed=4, processes=2, names=NUMPY[:3], progress=done.append)
    together = judge_numbers(of(*NUMPY[:3]), range(60), seed=4)
    assert done == [20, 20, 20]
    assert {key: extreme.distribution for key, extreme in apart.extremes.items()} == {
        key: extreme.distribution for key, extreme in together.extremes.items()
    }


@pytest.mark.parametrize(("largest", "warnings"), [(0.04, 1), (0.06, 0)])
def test_a_budget_that_nothing_comes_near_is_suspected(largest, warnings):
    soaked = Soaked(2)
    for name, r in (("one", 0.01), ("other", largest)):
        extreme = soaked.extremes.setdefault((name, "float32", "strict"), Extreme())
        extreme.add(r, "some problem", "")
    assert len(slack(soaked)) == warnings
    assert ("slack" in render(soaked)) == bool(warnings)


@pytest.mark.parametrize(
    ("name", "code"),
    [(NUMPY[0], ExitCode.AS_EXPECTED), (UNSCALED, ExitCode.UNEXPECTED), ("torch-cuda-sdpa-flash", ExitCode.INCONCLUSIVE)],
)
def test_exit_code_tells_whether_all_stayed_within(name, code):
    if code is ExitCode.INCONCLUSIVE and registry.resolve(name).missing() is None:
        pytest.skip("There is a CUDA device, so that it can be judged.")
    result = CliRunner().invoke(main, ["--problems=200", "--processes=1", f"--implementation={name}"])
    assert result.exit_code == code
    assert name in result.output


def test_an_unknown_implementation_is_one_sentence():
    result = CliRunner().invoke(main, ["--problems=20", "--implementation=numpy-indirect"])
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "did you mean numpy-direct" in result.output
    assert "Traceback" not in result.output


def test_a_seed_that_is_too_large_is_one_sentence():
    result = CliRunner().invoke(main, ["--problems=20", f"--implementation={NUMPY[0]}", f"--seed={2**64}"])
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "--seed" in result.output and "is not in the range" in result.output
    assert "Traceback" not in result.output
    draw(LARGEST_SEED, 0)


def test_an_implementation_that_ends_its_process_is_one_sentence_with_the_problems(tmp_path, monkeypatch):
    source = tmp_path / "dying.py"
    source.write_text("import os\ndef attention(query, key, value):\n    os._exit(11)\n")
    monkeypatch.setattr("conformance.soak.run.CHUNK", 10)
    result = CliRunner().invoke(main, ["--problems=40", "--processes=1", f"--implementation={source}:attention"])
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert re.search(r"^A process ended before its work was done, .*: problems [0-3]0 to [0-3]9\.$", result.output, re.MULTILINE)
    assert "Traceback" not in result.output
