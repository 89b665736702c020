"""A diagnosis names the fault that an implementation has, from its outputs alone, and names none that it has not."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from conformance.adapter import registry
from conformance.cli import main
from conformance.diagnosis import diagnose
from conformance.diagnosis.measure import diagnose_all, failures, jobs_for, name_fault, report
from conformance.faults import catalogue
from conformance.faults.functions import implementation_of
from conformance.harness.subject import Subject
from conformance.problem import parse
from conformance.system.exit_codes import ExitCode
from tests import fakes, hostile
from tests.support.diagnosing import ENOUGH, JUDGE, SOME, SOME_OF_HEADS, diagnosis_of, implementation, problems, unsorted

# Implementations with arithmetic of their own: nothing of the catalogue is in them.


def without_scale(query, key, value, *, mask=None, causal=False, scale=None):
    return fakes.correct(query, key, value, mask=mask, causal=causal, scale=1.0 if scale is None else scale)


def without_mask(query, key, value, *, mask=None, causal=False, scale=None):
    return fakes.correct(query, key, value, causal=causal, scale=scale)


def without_scale_and_mask(query, key, value, *, mask=None, causal=False, scale=None):
    return without_scale(query, key, value, causal=causal, scale=scale)


def filled(query, key, value, *, mask=None):
    """Hidden scores are −1e9."""
    work = np.promote_types(query.dtype, np.float32)
    query_, key_, value_ = (array.astype(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]
    scores = query_ @ key_.repeat(shared, 1).swapaxes(-1, -2) * work.type(query.shape[-1] ** -0.5)
    if mask is not None:
        scores = np.where(mask, scores, work.type(-1e9))
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ value_.repeat(shared, 1)).astype(query.dtype)


def without_scale_in_float16(query, key, value, *, mask=None, scale=None):
    if query.dtype == np.float16 and scale is None:
        scale = 1.0
    return fakes.correct(query, key, value, mask=mask, scale=scale)


def more_in_the_last_head(query, key, value, *, mask=None):
    """Adds 4 in the last head where there is a mask: no known fault."""
    output = fakes.correct(query, key, value, mask=mask)
    if mask is not None and output.shape[1] > 1:
        output[:, -1] += output.dtype.type(4)
    return output


def slightly_off(query, key, value):
    """As accurate as float32 where float64 is expected."""
    return fakes.correct(*(array.astype(np.float32) for array in (query, key, value))).astype(query.dtype)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (without_scale, "scale-missing"),
        (without_mask, "mask-ignored"),
        (hostile.scaling_by_width, "scale-by-width"),
        (filled, "fill-minus-1e9"),
    ],
)
def test_a_fault_is_named_whoever_computes_it(function, name):
    found = diagnosis_of(function)
    (finding,) = found.findings
    assert [fault.id for fault in finding.faults] == [name]
    assert finding.explained == finding.failing > 0
    assert finding.passing > 0
    assert finding.r is not None and finding.r <= 1
    assert not found.unexplained


def test_it_is_named_among_all_that_are_known():
    assert diagnosis_of(without_scale, tuple(catalogue())).named == ("scale-missing",)


def test_the_sentence_says_what_was_found_and_on_what_it_rests():
    finding = diagnosis_of(without_mask).findings[0]
    assert str(finding).startswith(
        f"matches fault mask-ignored on {finding.explained} of {finding.failing} failing and 0 contradicting cases of "
        f"{finding.passing} that pass, r ≤ "
    )
    assert catalogue()["mask-ignored"].sentence in str(finding)
    assert catalogue()["mask-ignored"].sources[0] in str(finding)


def test_two_faults_at_once_are_named_together_and_tried_on_other_numbers():
    (finding,) = diagnosis_of(without_scale_and_mask).findings
    assert {fault.id for fault in finding.faults} == {"scale-missing", "mask-ignored"}
    assert finding.explained == finding.failing
    assert finding.fresh > 0


def test_a_fault_of_one_dtype_is_named_for_that_dtype():
    (finding,) = diagnosis_of(without_scale_in_float16).findings
    assert [fault.id for fault in finding.faults] == ["scale-missing"]
    assert finding.candidate.only == ("float16",)
    assert "in float16 only" in str(finding)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (hostile.double, "returns-float64"),
        (fakes.with_weights, "returns-tuple"),
    ],
)
def test_another_form_of_the_output_is_named(function, name):
    assert diagnosis_of(function).named[0] == name


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (hostile.from_a_cache, "stale-by-shape"),
        (hostile.mutating, "changes-query"),
        (hostile.aliasing, "writes-over-query"),
        (fakes.one_buffer, "returns-internal-buffer"),
    ],
)
def test_what_shows_over_several_calls_is_named(function, name):
    """Values are right at first, so that only requirements on several calls fail."""
    hostile._CACHE.clear()
    failing = [problem for problem in problems() if not problem.features and problem.dtype == "float32"][:3]
    found = diagnose(
        Subject(implementation(function)), JUDGE, unsorted(failing), [], [catalogue()[name] for name in SOME], ENOUGH
    )
    assert found.named == (name,)


def test_what_wanders_in_a_way_of_its_own_is_described():
    failing = [problem for problem in problems() if not problem.features][:2]
    found = diagnose(
        Subject(implementation(hostile.nondeterministic)),
        JUDGE,
        unsorted(failing),
        [],
        [catalogue()[name] for name in SOME],
        ENOUGH,
    )
    assert not found.named
    assert found.unexplained[0].symptom == "repeat"
    assert found.unexplained[0].observations[0].startswith("a multiple, right, a multiple, right")


def test_each_kind_of_exception_is_told_with_what_its_cases_have_in_common():
    def attention(query, key, value, *, causal=False):
        if causal:
            raise NotImplementedError("no causal limit yet")
        if query.shape[1] != key.shape[1]:
            raise ValueError(f"{query.shape[1]} heads on {key.shape[1]}")
        return fakes.correct(query, key, value)

    texts = (
        "heads=2 length=7",
        "heads=4/2 length=5",
        "heads=6/3 length=5",
        "heads=2 length=5 causal=top-left",
        "heads=3 length=7 causal=top-left",
    )
    plain, *failing = (parse(f"attention batch=1 width=4 dtype=float32 values=gaussian.1#0 {text}") for text in texts)
    found = diagnose(Subject(implementation(attention)), JUDGE, unsorted(failing), [plain], seconds=ENOUGH)
    assert not found.findings
    grouped, causal = sorted(found.lines, key=lambda line: "causal" in line)
    assert "2 failing cases with an exception: ValueError: 4 heads on 2" in grouped and "only with grouped heads" in grouped
    assert "2 failing cases with an exception: NotImplementedError: no causal limit yet" in causal
    assert "only with a causal limit" in causal


def test_where_nothing_fits_it_says_where_and_how_outputs_are_wrong():
    found = diagnosis_of(more_in_the_last_head)
    assert not found.named
    (unexplained,) = found.unexplained
    assert unexplained.observations[0].startswith("only with a mask")
    assert any(words.startswith("the first wrong element is at (0, ") for words in unexplained.observations)
    assert any("only the last head" in words for words in unexplained.observations)
    assert any(words.startswith("outputs are 4 more than what is expected") for words in unexplained.observations)
    assert found.lines[0].startswith("no known fault explains")


def test_an_accuracy_that_is_not_what_is_declared_is_told():
    (unexplained,) = diagnosis_of(slightly_off).unexplained
    assert any("profile soft32" in words for words in unexplained.observations)
    assert any("float64" in words for words in unexplained.observations)


def test_a_fault_that_would_fail_what_passes_is_not_named():
    """Without a scale where the width is 8 only: elsewhere the scale is right."""

    def sometimes(query, key, value, *, mask=None):
        return fakes.correct(query, key, value, mask=mask, scale=1.0 if query.shape[-1] == 8 else None)

    assert not diagnosis_of(sometimes).named


def test_a_fault_that_is_not_in_the_catalogue_gets_no_other_name():
    assert not diagnosis_of(without_scale, [name for name in SOME if name != "scale-missing"]).named


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_fill_that_would_hide_nothing_on_what_passes_is_not_named(dtype):
    """It fills with −1e20. Scores of −1e9 have a wide budget beside scores of −1e10, and yet would not give what is right."""
    own, other = (catalogue()[name] for name in ("fill-minus-1e20", "fill-minus-1e9"))
    low, lower = (
        parse(
            f"attention batch=2 heads=3 length=7/13 width=8 dtype={dtype} values=spread.1#85 mask=right-padding.1:b11k#47 "
            f"edits=low-visible.1*-{size}#0,hidden-value.1#0"
        )
        for size in ("1e+10", "1e+22")
    )
    for known, named in ((own, (own.id,)), (other, ())):
        found = diagnose(Subject(implementation_of(own)), JUDGE, unsorted([lower]), [low], [known], seconds=ENOUGH)
        assert found.named == named


def test_nothing_is_named_for_an_implementation_that_is_right():
    plain = [problem for problem in problems() if not problem.features]
    found = diagnose(Subject(implementation(fakes.correct)), JUDGE, unsorted(plain[:8]), plain[8:], seconds=ENOUGH)
    assert (found.named, found.unexplained, found.vanished) == ((), (), 8)
    assert found.lines == ("8 failing cases did not fail when run again.",)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("document-000-multi-head", {"multi-head-scale-in-float32", "multi-head-fill-minus-1e9"}),
        ("document-001-attention", {"multi-head-scale-by-model-width", "multi-head-fill-minus-1e20"}),
        ("document-001-as-printed", {"multi-head-scale-by-model-width", "multi-head-nothing-projected"}),
        ("document-003-multi-head", {"multi-head-fill-minus-1e9"}),
        ("document-003-numpy", {"multi-head-maximum-not-subtracted", "multi-head-returns-float64"}),
    ],
)
def test_the_faults_of_the_documents_are_named(name, faults):
    subject = registry.resolve(name)
    if subject.missing():
        pytest.skip(subject.missing())
    known = [catalogue()[fault] for fault in SOME_OF_HEADS]
    assert set(diagnose(Subject(subject), JUDGE, *failures(subject, JUDGE), known, ENOUGH).named) == faults


def test_a_width_that_is_refused_is_told():
    """Document 000's table has no odd widths, and here does not say so."""
    subject = registry.resolve("document-000-positional")
    if subject.missing():
        pytest.skip(subject.missing())
    subject = replace(subject, support=replace(subject.support, lacks=subject.support.lacks - {"odd-width"}))
    odd, even = (
        [parse(f"sinusoidal_encoding length=9 width={width} dtype=float32") for width in widths] for widths in ((5, 7), (4, 8))
    )
    (unexplained,) = diagnose(Subject(subject), JUDGE, unsorted(odd), even, seconds=ENOUGH).unexplained
    assert unexplained.symptom == "raises"
    assert "only at odd widths" in unexplained.observations


# Measuring it


@pytest.mark.parametrize("name", ["multi-head-causal-one-key-late", "sinusoid-frequencies-ignored"])
def test_a_fault_of_the_catalogue_is_named_and_not_replaced_when_it_is_left_out(name):
    fault = catalogue()[name]
    named = name_fault(fault, JUDGE)
    assert (named.verdict, named.named) == ("first", (fault.id,))
    assert name_fault(fault, JUDGE, left_out=True).verdict == "nothing"


def test_the_measurement_tells_totals():
    measured = diagnose_all(jobs_for([catalogue()["sinusoid-not-added"], catalogue()["sinusoid-subtracted"]]), processes=1)
    assert measured.in_order
    assert "2 faults: 2 named first" in report(measured)
    assert "Named: 100.0%" in report(measured)


def test_the_command_says_how_good_it_is_and_writes_it(tmp_path):
    words = ["faults", "--diagnose", "--only", "sinusoid-not-added", "--processes", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == ExitCode.AS_EXPECTED, result.output
    assert "1 faults: 1 named first" in (tmp_path / "diagnosed.md").read_text(encoding="utf-8")
