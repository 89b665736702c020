"""The tutorials' systems are wrong in the ways that they are known for."""

import numpy as np
import pytest

from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.problem.inputs import Weights
from tests.support.builtin import ALL, call, identity_weights, judge_all, tokens, usable


def random_weights(seed: int = 0) -> tuple[np.ndarray, Weights]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(1, 5, 4))
    blocks = [np.kron(np.eye(2), generator.normal(size=(2, 2))) for _ in range(3)]
    return x, Weights(query=blocks[0], key=blocks[1], value=blocks[2], output=generator.normal(size=(4, 4)))


def test_document_001_divides_by_the_root_of_the_embedding():
    x, weights = random_weights()
    theirs = call(usable("document-001-attention"), x, x, x, weights, num_heads=2)
    halved = Weights(**weights.arrays() | {"query": weights.query / np.sqrt(2.0)})  # √2 becomes √4
    np.testing.assert_allclose(theirs, call(ALL["numpy-multi-head"], x, x, x, halved, num_heads=2), rtol=1e-10)
    assert not np.allclose(theirs, call(ALL["numpy-multi-head"], x, x, x, weights, num_heads=2), rtol=1e-3)


def test_document_001_as_printed_does_not_apply_its_projections():
    x, weights = random_weights()
    others = Weights(**weights.arrays() | {"query": -weights.query, "value": 3.0 * weights.value})
    implementation = usable("document-001-as-printed")
    outputs = [call(implementation, x, x, x, given, num_heads=2) for given in (weights, others)]
    assert np.array_equal(*outputs)


def test_document_003_numpy_overflows_and_widens():
    implementation = usable("document-003-numpy")
    large = call(implementation, tokens() * 40.0, tokens(), tokens(), identity_weights(False), num_heads=1)
    assert np.isnan(large[0, 0]).any()
    narrow = tokens(np.float32)
    widened = call(implementation, narrow, narrow, narrow, identity_weights(False, np.float32), num_heads=1)
    assert widened.dtype == np.float64
    with pytest.raises(ValueError, match="one head"):
        call(implementation, tokens(), tokens(), tokens(), identity_weights(False), num_heads=2)


def test_document_000_takes_its_root_in_float32():
    """1/√2 is off by 2⁻²⁶ or so: far beyond float64, unseen in float32. Document 003's is right in both."""
    text = (
        "multi_head_attention batch=2 heads=2 length=5 model=4 inner=4 dtype={} values=gaussian.1#1 source=self projection=bias "
        "output=bias"
    )
    subject, judge = Subject(usable("document-000-multi-head")), Judge()
    assert judge.values(subject, parse(text.format("float64"))).verdict.r > 1e3
    assert judge.values(subject, parse(text.format("float32"))).verdict.outcome is Outcome.PASS
    assert judge_all("document-003-multi-head", [text.format("float64"), text.format("float32")])


@pytest.mark.parametrize("name", ["document-000-multi-head", "document-001-attention", "document-003-multi-head"])
def test_the_tutorials_finite_fill_averages_fully_masked_rows_and_does_not_fit_float16(name):
    implementation = usable(name)
    x, mask = tokens(), np.array([[False, False], [True, True]])
    output = call(implementation, x, x, x, identity_weights(True), num_heads=1, mask=mask)
    np.testing.assert_allclose(output[0, 0], x[0].mean(axis=0))
    half = tokens(np.float16)
    with pytest.raises(RuntimeError, match="overflow"):
        call(implementation, half, half, half, identity_weights(True, np.float16), num_heads=1, mask=mask)


@pytest.mark.parametrize(("length", "width"), [(4, 5), (5001, 4)])
def test_document_000_has_no_odd_width_and_no_position_beyond_its_table(length, width):
    implementation = usable("document-000-positional")
    with pytest.raises(RuntimeError):
        call(implementation, length, width, dtype=implementation.framework.dtype_of("float32"))
