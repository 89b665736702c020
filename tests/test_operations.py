"""Operations are registered in one place: another one is one module, and nothing else tells them by their classes."""

import ast
from pathlib import Path

import numpy as np
import pytest

import conformance.operations
from conformance import judge, specification
from conformance.adapter import Implementation, Support
from conformance.adapter.declarations import known_features, unknown_words
from conformance.adapter.registry import frameworks
from conformance.checks.items import Effort
from conformance.commands.smoke import FAIL, smoke
from conformance.faults.functions import function_of, implementation_of
from conformance.faults.of_features import made
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of, operations
from conformance.oracle import truth_of
from conformance.problem import parse
from conformance.values import materialise
from tests.support.items import run_item

PACKAGE = Path(conformance.operations.__file__).parents[1]
MADE_UP = Path(__file__).parent / "support" / "operations"
SUPPORT = Support(operation="rotary_embedding", dtypes=("float32", "float64"))
TEXT = "rotary_embedding batch=2 length=5 width=8 dtype=float32 values=gaussian.1#3"
# How often, with the reason: a problem is compared with whatever it may be, which is no problem perhaps.
TOLD_BY_CLASS = {"problem/base.py": 1}


@pytest.fixture
def made_up(monkeypatch):
    """The operations of the suite and the made-up one."""
    monkeypatch.setattr(conformance.operations, "__path__", [*conformance.operations.__path__, str(MADE_UP)])
    _forget()
    yield operations()["rotary_embedding"]
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for kept in (operations, specification.requirements, specification.conventions):
        kept.cache_clear()


def rotate(x):
    """In the dtype of x."""
    rates = (10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])).astype(x.dtype)
    angles = np.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def implementation(function) -> Implementation:
    return Implementation("mine", function, SUPPORT, frameworks()["numpy"])


def test_an_operation_is_one_module_and_is_judged_by_requirement_and_by_problem(made_up):
    assert parse(TEXT).text == TEXT
    assert [one.verdict.outcome for one in judge(rotate, "ATT-POS-901", support=SUPPORT)] == [Outcome.PASS] * 4
    (judged,) = judge(lambda x: rotate(x[..., ::-1])[..., ::-1], TEXT, support=SUPPORT)
    assert judged.verdict.outcome is Outcome.WRONG_VALUE


def test_its_random_problems_are_judged_and_its_adapter_is_looked_at(made_up):
    item = run_item("ATT-POS-901", implementation(rotate), effort=Effort(examples=4, free=True, seed=1)).item
    assert item.outcome is Outcome.PASS and item.counts.random > 0
    assert not [finding for finding in smoke(implementation(rotate)) if finding.state == FAIL]
    assert not unknown_words(SUPPORT) and known_features("rotary_embedding") == ()


def test_its_faults_are_those_of_the_catalogue_and_are_caught(made_up):
    (fault,) = (fault for fault in made() if fault.operation == "rotary_embedding")
    for dtype in fault.dtypes:
        problem = parse(TEXT).but(dtype=dtype)
        verdict = Judge().values(Subject(implementation_of(fault)), problem).verdict
        assert verdict.outcome is Outcome.WRONG_VALUE
        assert np.array_equal(function_of(fault)(materialise(problem).x), fault.output(materialise(problem)))


def test_its_exact_twin_agrees_and_its_null_models_are_told_apart(made_up):
    from conformance.cases.admissible import indistinguishable

    inputs = materialise(parse(TEXT))
    assert made_up.exactly(inputs)["output"] == pytest.approx(truth_of(inputs).output.astype(float), rel=1e-15, abs=1e-16)
    assert indistinguishable(parse(TEXT)) == ()


def test_what_it_has_not_reads_as_where_nobody_asks(made_up):
    problem, inputs = parse(TEXT), materialise(parse(TEXT))
    assert (problem.mask, problem.causal, problem.key_lengths, problem.transformations) == (None, "none", None, ())
    assert (inputs.mask, inputs.causal, inputs.plain) == (None, "none", None)
    with pytest.raises(AttributeError, match="'masc'"):
        _ = problem.masc


@pytest.mark.parametrize("name", operations())
def test_each_operation_says_what_is_needed_to_judge_it(name):
    operation = operation_of(name)
    for dtype in ("float64", "bfloat16"):
        problem = operation.simplest(dtype, ("contiguous",))
        inputs = operation.materialise(problem)
        assert isinstance(problem, operation.problem) and isinstance(inputs, operation.inputs)
        assert operation_of(problem) is operation_of(inputs) is operation
        shape = problem.shapes()["output"]
        assert operation.truth(inputs).output.shape == operation.exactly(inputs)["output"].shape == shape
        assert operation.compute(inputs).shape == shape
        called = Implementation("plain", operation.function(operation.compute), Support(operation=name), frameworks()["numpy"])
        arguments, named = operation.arguments(inputs, called, np.copy, {})
        assert called.function(*arguments, **named).shape == shape


def test_nothing_tells_problems_or_inputs_by_their_classes():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        told = [call for call in calls if getattr(call.func, "id", "") == "isinstance" and _of_an_operation(call.args[1])]
        if told:
            found[path.relative_to(PACKAGE).as_posix()] = len(told)
    assert found == TOLD_BY_CLASS


def _of_an_operation(kinds: ast.expr) -> bool:
    """Whether a class of problems or inputs is among them."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(kinds)}
    return any(name.endswith(("Problem", "Inputs", "Draw", "Arguments")) for name in names)
