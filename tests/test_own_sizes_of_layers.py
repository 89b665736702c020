"""ATT-HEAD-036 and ATT-POS-022: layers and encodings are asked at the numbers in their own source, too."""

import pytest

from conformance.adapter import registry
from conformance.adapter.parameters import parameter_features
from conformance.cases.admissible import indistinguishable
from conformance.checks.items import Effort
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of
from conformance.specification import requirements
from conformance.specification.requirement import Facts
from tests.support.items import run_item

QUICK = Effort(examples=1, free=False, seed=1)
LAYER = """
import numpy as np
MOST = {"sizes": 40}
def attention(query, key, value, weights, *, num_heads):
    def split(x, w, b):
        y = x.astype(float) @ w.astype(float) + (0 if b is None else b)
        return y.reshape(*y.shape[:2], num_heads, -1).swapaxes(1, 2)
    q = split(query, weights.query, weights.query_bias)
    k = split(key, weights.key, weights.key_bias)
    v = split(value, weights.value, weights.value_bias)
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    output = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(1, 2)
    output = output.reshape(*output.shape[:2], -1)
    if weights.output is not None:
        output = output @ weights.output + (0 if weights.output_bias is None else weights.output_bias)
    return output.astype(query.dtype) * (not WRONG)
"""
TABLE = """
import numpy as np
MOST = 5000
def encoding(length, d_model):
    position, column = np.arange(length)[:, None], np.arange(d_model)
    angle = position / 10000 ** (column // 2 * 2 / d_model)
    table = np.where(column % 2, np.cos(angle), np.sin(angle))
    return (table * (position < MOST if LIMITED else 1)).astype(np.float32)
"""


def layer(tmp_path, wrong: str):
    file = tmp_path / "mine.py"
    file.write_text(LAYER.replace("WRONG", wrong))
    lacks = "mask,causal,key-lengths"
    return registry.resolve(f"{file}:attention", operation="multi_head_attention", dtypes="float32", lacks=lacks)


def table(tmp_path, limited: bool):
    file = tmp_path / "mine.py"
    file.write_text(TABLE.replace("LIMITED", str(limited)))
    return registry.resolve(f"{file}:encoding", operation="sinusoidal_encoding", dtypes="float32")


@pytest.mark.parametrize(
    "wrong",
    [
        'query.shape[1] > MOST["sizes"]',
        'key.shape[1] > MOST["sizes"]',
        'query.shape[0] > MOST["sizes"]',
        'num_heads > MOST["sizes"]',
        'query.shape[2] > MOST["sizes"]',
        'q.shape[3] > MOST["sizes"]',
    ],
)
def test_a_layer_that_gives_zeros_beyond_a_number_of_its_own_is_caught(tmp_path, wrong):
    assert run_item("ATT-HEAD-036", layer(tmp_path, wrong), QUICK).item.outcome is Outcome.WRONG_VALUE


def test_a_table_that_ends_is_caught(tmp_path):
    assert run_item("ATT-POS-022", table(tmp_path, limited=True), QUICK).item.outcome is Outcome.WRONG_VALUE


def test_what_is_right_passes(tmp_path):
    (tmp_path / "table").mkdir()
    right = {"ATT-HEAD-036": layer(tmp_path, "False"), "ATT-POS-022": table(tmp_path / "table", limited=False)}
    for identifier, implementation in right.items():
        found = run_item(identifier, implementation, QUICK).item
        assert found.outcome is Outcome.PASS and found.counts.designed > 5


def adapted(identifier: str, *sizes: int, lacks: frozenset[str] = frozenset()):
    requirement = requirements()[identifier]
    offered = operation_of(requirement.operation).implied | set(parameter_features(requirement.operation).values())
    facts = Facts(sizes=sizes, features=offered - lacks, dtypes=("float32",), dear=False, thorough=True)
    return list(requirement.adapted(facts))


@pytest.mark.parametrize("identifier", ["ATT-HEAD-036", "ATT-POS-022"])
def test_null_models_are_told_from_the_truth(identifier):
    for number in (3, 8, 100):
        for problem in adapted(identifier, number)[::5]:
            assert not indistinguishable(problem), problem.text


def test_a_layer_that_always_has_biases_is_asked_with_them():
    found = adapted("ATT-HEAD-036", 30, lacks=frozenset({"no-projection-bias", "no-output-bias", "separate-biases"}))
    assert found and all(problem.projection_bias and problem.output == "bias" for problem in found)
