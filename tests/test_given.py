"""After every call the inputs are compared with what they were: whoever changes one on one path only is caught on that path."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge, Judgement
from conformance.judging.verdict import Outcome
from conformance.problem import AttentionProblem
from conformance.specification.build import attention, multi_head
from conformance.values import materialise

NUMPY = registry.frameworks()["numpy"]
DIRECT = registry.resolve("numpy-direct")
DTYPES = ("float32", "float16")
TORCH_DTYPES = ("float32", "bfloat16")
ALL_LAYOUTS = ("contiguous", "transposed", "strided", "expanded", "reversed", "mixed")


def changing(change: Callable[..., None], framework: str = "numpy", of: str = "numpy-direct") -> Implementation:
    """The attention ``of``, after which ``change`` is called with the same arguments."""
    correct = registry.resolve(of)

    def function(query, key, value, *, mask=None, bias=None, causal=False, alignment="top-left", scale=None, key_lengths=None):
        named = {"mask": mask, "bias": bias, "causal": causal, "scale": scale, "key_lengths": key_lengths}
        given = {name: argument for name, argument in named.items() if argument is not None and argument is not False}
        if causal and correct.has("alignment"):
            given["alignment"] = alignment
        output = correct.function(query, key, value, **correct.spelled(given))
        change(query, key, value, **named)
        return output

    return Implementation(f"changing-{framework}", function, Support(layouts=ALL_LAYOUTS), registry.frameworks()[framework])


def judged(implementation: Implementation, problem: AttentionProblem) -> Judgement:
    return Judge().values(Subject(implementation), problem)


def mask_where_causal(query, key, value, *, mask, causal, **others):
    if causal and mask is not None:
        mask &= np.tri(*mask.shape[-2:], dtype=bool)


def query_in_float16(query, key, value, **others):
    if query.dtype == np.float16:
        query *= np.float16(0.5)


def bias_beside_a_mask(query, key, value, *, mask, bias, **others):
    if mask is not None and bias is not None:
        bias += bias.dtype.type(1)


def lengths_clipped(query, key, value, *, key_lengths, **others):
    if key_lengths is not None:
        np.minimum(key_lengths, 8, out=key_lengths)


def key_and_value(query, key, value, **others):
    key[...] = value[...] = 0


@pytest.mark.parametrize(
    ("change", "asked", "names"),
    [
        (mask_where_causal, {"mask": "random.1:b1qk#1", "causal": "top-left"}, "mask"),
        (bias_beside_a_mask, {"mask": "random.1:b1qk#1", "bias": "gaussian.1:qk#1"}, "bias"),
        (lengths_clipped, {"key_lengths": (5, 11)}, "key_lengths"),
        (key_and_value, {}, "key and value"),
        (key_and_value, {"transformations": ("one-tensor.1#0",)}, "query, key and value"),
    ],
)
def test_a_change_on_one_path_is_caught_there_and_named(change, asked, names):
    shape = "square" if "transformations" in asked or "causal" in asked else "wide"
    plain, problem = attention(shape)[0], attention(shape, **asked)[0]
    judgement = judged(changing(change), problem)
    assert judgement.verdict.outcome is Outcome.MUTATED_INPUT
    assert judgement.verdict.message == f"The call changed its input {names}."
    assert judgement.verdict.r is not None, "the output is right, and how near it comes counts all the same"
    if asked and change is not key_and_value:
        assert judged(changing(change), plain).verdict.outcome is Outcome.PASS


def test_a_change_in_one_dtype_is_caught_there():
    outcomes = {
        problem.dtype: judged(changing(query_in_float16), problem).verdict.outcome for problem in attention("wide", DTYPES)
    }
    assert outcomes == {"float32": Outcome.PASS, "float16": Outcome.MUTATED_INPUT}


def test_a_wrong_output_stays_what_it_is():
    def wrong(query, key, value):
        query[...] = 0
        return np.zeros((*query.shape[:3], value.shape[3]), query.dtype)

    implementation = Implementation("wrong", wrong, Support(), NUMPY)
    assert judged(implementation, attention("wide")[0]).verdict.outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("layout", ["strided", "expanded"])
def test_what_lies_between_the_elements_is_the_callers_too(layout):
    def gaps(query, key, value, **others):
        key.base[...] = np.where(np.isnan(key.base), 0, key.base)

    judgement = judged(changing(gaps), attention("square", layout=layout)[0])
    assert judgement.verdict.message == "The call wrote between the elements of its input key."
    assert judgement.verdict.outcome is Outcome.MUTATED_INPUT


@pytest.mark.parametrize("layout", ALL_LAYOUTS)
def test_correct_code_is_left_alone_in_every_layout_and_dtype(layout):
    for problem in attention("square", ("float32", "bfloat16"), layout=layout, values="gaussian.1#3"):
        assert judged(DIRECT, problem).verdict.outcome is Outcome.PASS


def test_nan_compares_by_its_bits():
    def other_nan(query, key, value, **others):
        bits = value.view(np.uint32)
        bits[np.isnan(value)] ^= 1

    problem = attention("wide", transformations=("put-value.1#0",))[0]
    assert judged(DIRECT, problem).verdict.outcome is Outcome.PASS
    assert judged(changing(other_nan), problem).verdict.outcome is Outcome.MUTATED_INPUT


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_torch_tensors_that_share_memory_spoil_nothing_that_the_suite_keeps(dtype):
    pytest.importorskip("torch", reason="PyTorch is an extra")
    (problem,) = attention("wide", (dtype,), values="gaussian.1#4", mask="random.1:b1qk#1")

    def all_of_them(query, key, value, *, mask, **others):
        for array in (query, key, value, mask):
            array.zero_()

    judge = Judge()
    judgement = judge.values(Subject(changing(all_of_them, "torch", "torch-direct")), problem)
    assert judgement.verdict.message == "The call changed its input query, key, value and mask."
    kept, made = judge.inputs(problem), materialise(problem)
    assert all(array.tobytes() == made.arrays()[name].tobytes() for name, array in kept.arrays().items())
    assert (kept.mask == made.mask).all()


def test_what_numpy_code_writes_spoils_nothing_that_the_suite_keeps():
    (problem,) = attention("wide", ("bfloat16",), values="gaussian.1#5", layout="strided")
    judge = Judge()
    assert judge.values(Subject(changing(key_and_value)), problem).verdict.outcome is Outcome.MUTATED_INPUT
    assert judge.values(Subject(DIRECT), problem).verdict.outcome is Outcome.PASS
    assert judge.inputs(problem).key.dtype == ml_dtypes.bfloat16 and judge.inputs(problem).key.any()


def test_jax_arrays_that_were_given_away_are_gone():
    jax = pytest.importorskip("jax", reason="JAX is an extra")
    given_away = jax.jit(lambda query, key, value: query + 0 * key.sum() * value.sum(), donate_argnums=0)

    def donating(query, key, value):
        output = registry.resolve("jax-einsum").function(query, key, value)
        given_away(query, key, value)
        return output

    problem = attention("square", values="gaussian.1#6")[0]
    judgement = judged(Implementation("donating", donating, Support(), registry.frameworks()["jax"]), problem)
    assert judgement.verdict.message == "The call took away the memory of its input query."


def test_weights_and_key_lengths_count_too():
    def scaling_weights(query, key, value, weights, *, num_heads, key_lengths=None):
        output = registry.resolve("numpy-multi-head").function(
            query, key, value, weights, num_heads=num_heads, key_lengths=key_lengths
        )
        weights.key[...] *= 2
        return output

    support = Support(operation="multi_head_attention", lacks=frozenset({"mask", "causal"}))
    problem = multi_head("square", key_lengths=(3, 7))[0]
    judgement = Judge().values(Subject(Implementation("scaling-weights", scaling_weights, support, NUMPY)), problem)
    assert judgement.verdict.message == "The call changed its input weights.key."
