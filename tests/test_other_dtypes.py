"""A bias in float32 beside 16-bit inputs, and key lengths in int32: taken and right, or refused; nothing else."""

import ml_dtypes
import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, blocked

from conformance.adapter import Implementation, Support
from conformance.checks.items import Effort
from conformance.commands.reproduce import reproduce
from conformance.judging.verdict import Outcome
from conformance.specification import requirements
from tests.support.items import run_item

QUICK = Effort(examples=1, free=False, seed=1)
FUSED = {"float16": "fused", "bfloat16": "fused"}
HALF = Support(dtypes=("float16", "bfloat16"), profile=FUSED)


def made(function, support=HALF):
    return Implementation("made", function, support, FRAMEWORK)


def keeps(query, key, value, *, bias=None, causal=False):
    return blocked(query, key, value, bias=bias, causal=causal)


def rounds(query, key, value, *, bias=None, causal=False):
    return blocked(query, key, value, bias=None if bias is None else bias.astype(query.dtype), causal=causal)


def promotes(query, key, value, *, bias=None, causal=False):
    wide = (array.astype(np.float32) for array in (query, key, value))
    output = blocked(*wide, bias=bias, causal=causal)
    return output if bias is not None and bias.dtype == np.float32 else output.astype(query.dtype)


def refuses(query, key, value, *, bias=None, causal=False):
    if bias is not None and bias.dtype != query.dtype:
        raise TypeError("one dtype, please")
    return keeps(query, key, value, bias=bias, causal=causal)


def drops(query, key, value, *, bias=None, causal=False):
    return keeps(query, key, value, bias=bias if bias is None or bias.dtype == query.dtype else None, causal=causal)


def shortens(query, key, value, *, bias=None, causal=False):
    """Rounds the bias to fewer digits than the inputs have."""
    return keeps(
        query, key, value, bias=None if bias is None else (bias.astype(np.float32) // 1).astype(bias.dtype), causal=causal
    )


@pytest.mark.parametrize("function", [keeps, rounds, promotes, refuses])
def test_a_bias_in_float32_may_be_kept_rounded_promote_or_be_refused(function):
    result = run_item("ATT-MASK-051", made(function), QUICK)
    assert result.item.outcome is Outcome.PASS, result.unexpected[:1]
    assert result.item.counts.designed == len(list(requirements()["ATT-MASK-051"].designed()))
    refused = [case.message.startswith("Refused: TypeError: one dtype") for case in result.cases]
    assert all(refused) if function is refuses else not any(refused)


@pytest.mark.parametrize("function", [drops, shortens])
def test_a_bias_in_float32_may_not_be_another(function):
    result = run_item("ATT-MASK-051", made(function), QUICK)
    assert result.item.outcome is Outcome.WRONG_VALUE
    assert "--check bias-dtype" in result.cases[0].repro


def test_the_bias_comes_in_float32_beside_16_bit_inputs():
    seen = set()

    def look(query, key, value, *, bias=None, causal=False):
        seen.add((query.dtype, bias.dtype))
        return keeps(query, key, value, bias=bias, causal=causal)

    run_item("ATT-MASK-051", made(look), QUICK)
    float16, bfloat16, wide = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
    assert seen == {(float16, wide), (bfloat16, wide)}


def lengths(query, key, value, *, causal=False, key_lengths=None):
    return blocked(query, key, value, causal=causal, key_lengths=key_lengths)


def only_int64(query, key, value, *, causal=False, key_lengths=None):
    if key_lengths is not None and key_lengths.dtype != np.int64:
        raise TypeError("int64, please")
    return lengths(query, key, value, causal=causal, key_lengths=key_lengths)


def one_for_two(query, key, value, *, causal=False, key_lengths=None):
    if key_lengths is not None and key_lengths.dtype == np.int32:
        key_lengths = np.append(key_lengths, np.zeros_like(key_lengths)).view(np.int64)[: key_lengths.size]
    return lengths(query, key, value, causal=causal, key_lengths=key_lengths)


@pytest.mark.parametrize(
    ("function", "outcome"), [(lengths, Outcome.PASS), (only_int64, Outcome.PASS), (one_for_two, Outcome.WRONG_VALUE)]
)
def test_key_lengths_in_int32_are_right_or_refused(function, outcome):
    result = run_item("ATT-MASK-052", made(function, Support(dtypes=("float32",))), QUICK)
    assert result.item.outcome is outcome
    if function is only_int64:
        assert all(case.message.startswith("Refused: TypeError: int64") for case in result.cases)


def test_who_declares_int32_is_asked_in_int64():
    seen = set()

    def look(query, key, value, *, causal=False, key_lengths=None):
        seen.add(str(key_lengths.dtype))
        return lengths(query, key, value, causal=causal, key_lengths=key_lengths)

    run_item("ATT-MASK-052", made(look, Support(dtypes=("float32",), lengths_dtype="int32")), QUICK)
    assert seen == {"int64"}


def test_lengths_that_travel_in_a_mask_have_no_dtype_to_ask_for():
    def masks(query, key, value, *, mask=None, causal=False):
        return blocked(query, key, value, mask=mask, causal=causal)

    assert run_item("ATT-MASK-052", made(masks, Support(dtypes=("float32",))), QUICK).item.outcome is Outcome.UNSUPPORTED


def test_a_failure_can_be_shown_again():
    text = next(problem.text for problem in requirements()["ATT-MASK-052"].designed() if problem.dtype == "float32")
    again = reproduce(text, made(one_for_two, Support(dtypes=("float32",))), "lengths-dtype")
    assert again.judgement.verdict.outcome is Outcome.WRONG_VALUE
    assert "lengths-dtype" in again.report
