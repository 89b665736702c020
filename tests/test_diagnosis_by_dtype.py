"""A dtype that fails for a reason of its own does not hide what is wrong with the others."""

import numpy as np
import pytest

from conformance.diagnosis.measure import name_less_accurate
from conformance.faults import catalogue
from conformance.judging.judge import Judge
from conformance.records import read_records
from tests import fakes
from tests.support.diagnosing import diagnosis_of, run
from tests.test_shown_cases import FLAWED

SOFT32 = (
    "float64 is less accurate besides: outputs are within the budget of the profile soft32 (float64 inputs, softmax in float32)"
)


def in_float32(query, key, value, **arguments):
    """Casts float64 to float32."""
    work = [array.astype(np.float32) if array.dtype == np.float64 else array for array in (query, key, value)]
    return fakes.correct(*work, **arguments).astype(query.dtype)


def by_width(query, key, value, *, mask=None, causal=False, scale=None):
    scale = 1.0 / query.shape[-1] if scale is None else scale
    return in_float32(query, key, value, mask=mask, causal=causal, scale=scale)


def without_mask(query, key, value, *, mask=None, causal=False, scale=None):
    return in_float32(query, key, value, causal=causal, scale=scale)


def without_mask_in_float16(query, key, value, *, mask=None, causal=False, scale=None):
    mask = None if query.dtype == np.float16 else mask
    return in_float32(query, key, value, mask=mask, causal=causal, scale=scale)


def unlike(query, key, value, *, mask=None, causal=False, scale=None):
    """Without a mask in float16, without a scale in bfloat16."""
    mask = None if query.dtype == np.float16 else mask
    scale = 1.0 if scale is None and query.dtype.name == "bfloat16" else scale
    return fakes.correct(query, key, value, mask=mask, causal=causal, scale=scale)


def wrong_in_float64(query, key, value, *, mask=None, causal=False, scale=None):
    """Without a mask, and in float64 with something unheard of besides."""
    output = fakes.correct(query, key, value, causal=causal, scale=scale)
    return output + np.cos(output) / 8 if query.dtype == np.float64 else output


def test_a_fault_is_named_once_where_float64_is_less_accurate_besides():
    for function, name in ((by_width, "scale-by-width"), (without_mask, "mask-ignored")):
        found = diagnosis_of(function)
        (line,) = found.lines
        assert found.named == (name,)
        assert line.endswith(f"; {SOFT32}.")
        assert " only" not in line
        assert found.findings[0].explained == found.findings[0].failing


def test_a_fault_of_one_dtype_is_named_where_float64_is_less_accurate():
    found = diagnosis_of(without_mask_in_float16)
    fault, accuracy = found.lines
    assert found.named == ("mask-ignored",)
    assert ", in float16 only" in fault
    assert "in float64 (of " in accuracy or "cases in float64 with" in accuracy
    assert "outputs are within the budget of the profile soft32" in accuracy


def test_faults_of_different_dtypes_are_named_for_each():
    found = diagnosis_of(unlike)
    limits = {finding.faults[0].id: finding.candidate.only for finding in found.findings}
    assert limits == {"mask-ignored": ("float16",), "scale-missing": ("bfloat16",)}
    assert not found.unexplained


def test_what_one_dtype_has_besides_is_not_explained_and_does_not_hide_the_fault_of_the_others():
    found = diagnosis_of(wrong_in_float64)
    fault, rest = found.lines
    assert found.named == ("mask-ignored",)
    assert "leaves the mask out, in float32, float16 and bfloat16; " in fault
    assert rest.startswith("no known fault explains ") and " in float64 with wrong values" in rest


@pytest.mark.parametrize("only", ["", "float16"])
def test_the_measurement_asks_for_faults_beside_lower_accuracy(only):
    fault = catalogue()["multi-head-causal-one-key-late"]
    assert name_less_accurate(fault, only, Judge()).verdict == "first"


def test_a_run_lists_under_the_fault_what_fails_in_float64_too(tmp_path):
    source = tmp_path / "flawed.py"
    source.write_text(FLAWED)
    folder = run(tmp_path, f"{source}:attention", "-k", "ATT-MASK-009 or ATT-OUT-003 or ATT-OUT-007", "-n", "0")
    recorded = read_records(folder / "records.jsonl")
    (diagnosis,) = recorded.diagnoses
    assert [explanation.faults for explanation in diagnosis.explanations] == [("causal-one-key-late",)]
    assert diagnosis.explanations[0].requirements == ("ATT-MASK-009",)
    failing = {item.requirement: {d for d, result in item.dtypes.items() if result.outcome.is_failure} for item in recorded.items}
    assert failing["ATT-MASK-009"] == {"float64", "float16"}
    assert failing["ATT-OUT-003"] == {"float64"}
