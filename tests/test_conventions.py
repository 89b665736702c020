"""Conventions: each question gets the answer that an implementation's outputs give, of attention and of multi-head attention
alike, and what is answered decides how the implementation is asked."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct
from conformance.implementations.numpy_ import multi_head as numpy_multi_head

from conformance.adapter import Implementation, Support
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.oracle import expect
from conformance.problem import AttentionProblem, Problem, parse
from conformance.specification import conventions
from conformance.values import materialise

BOTH = ("attention", "multi_head_attention")
BEHIND = ("CON-NAN-BEHIND-MASK-K", "CON-NAN-BEHIND-MASK-V", "CON-INF-BEHIND-MASK-V")
Function = Callable[[Problem], np.ndarray]


def answer(identifier: str, function: Function, operation: str = "") -> str:
    question = conventions()[identifier]
    return question.observe(function, operation or question.operations[0]).answer


def oracle(problem: Problem, **changes) -> np.ndarray:
    """The right output, or that of a changed problem; rows without a key are 0."""
    expected = expect(materialise(problem.but(**changes)), "strict")
    return expected.output.astype(np.float32)


def refusing(problem: Problem) -> np.ndarray:
    raise ValueError("no")


def lacking(problem: Problem) -> np.ndarray:
    raise Unsupported("mask")


def every_question() -> list[tuple[str, str]]:
    return [(identifier, operation) for identifier, question in conventions().items() for operation in question.operations]


def test_points_of_masking_are_asked_of_both_operations():
    masking = ("CON-EMPTY-ROW", *BEHIND, "CON-ALIGNMENT", "CON-POLARITY")
    assert all(conventions()[identifier].operations == BOTH for identifier in masking)


@pytest.mark.parametrize(("identifier", "operation"), every_question())
def test_features_that_lack_are_passed_on(identifier, operation):
    with pytest.raises(Unsupported):
        answer(identifier, lacking, operation)


# ---- fully masked rows


def uniform(problem: Problem) -> np.ndarray:
    """What each row gives where every key has the same weight, and what an output projection makes of it."""
    if isinstance(problem, AttentionProblem):
        return materialise(problem).value.repeat(problem.heads // problem.kv_heads, axis=1).mean(axis=2, keepdims=True)
    keys = [replace(problem.mask, name="one-key", argument=float(number)) for number in range(problem.key_length)]
    return np.mean([oracle(problem, mask=mask, causal="none") for mask in keys], axis=0)


@pytest.mark.parametrize("operation", BOTH)
@pytest.mark.parametrize(
    ("fill", "expected"),
    [(0.0, "zeros"), (np.nan, "nan"), (7.0, "other"), (uniform, "mean")],
    ids=["zeros", "nan", "other", "mean"],
)
def test_fully_masked_rows(fill, expected, operation):
    def implementation(problem):
        output = oracle(problem)
        if problem.mask.name == "empty-rows":
            output[..., ::3, :] = (uniform(problem) + 0 * output)[..., ::3, :] if callable(fill) else fill
        return output

    assert answer("CON-EMPTY-ROW", implementation, operation) == expected


def test_zeros_of_the_heads_are_the_bias_of_the_output_projection():
    def implementation(problem):
        if problem.output != "bias":
            raise Unsupported("no-output-bias")
        output = oracle(problem)
        if problem.mask.name == "empty-rows":
            output[:, ::3] = materialise(problem).weights.output_bias
        return output

    assert answer("CON-EMPTY-ROW", implementation, "multi_head_attention") == "zeros"


@pytest.mark.parametrize("operation", BOTH)
def test_a_mask_that_is_ignored_gives_no_mean(operation):
    assert answer("CON-EMPTY-ROW", lambda problem: oracle(problem, mask=None), operation) == "other"


# ---- behind the mask


@pytest.mark.parametrize("operation", BOTH)
@pytest.mark.parametrize("identifier", BEHIND)
def test_behind_the_mask(identifier, operation):
    def leaks(problem):
        inputs = materialise(problem)
        bad = not (np.isfinite(inputs.key).all() and np.isfinite(inputs.value).all())
        return np.where(bad, np.float32(np.nan), oracle(problem, transformations=()))

    assert answer(identifier, lambda problem: oracle(problem, transformations=()), operation) == "contained"
    assert answer(identifier, leaks, operation) == "leaks"


@pytest.mark.parametrize("form", ["b11k", "b1qk", "qk", "1hqk", "bhqk"])
@pytest.mark.parametrize("operation", BOTH)
@pytest.mark.parametrize("identifier", BEHIND)
def test_something_lies_behind_the_mask_of_each_form(identifier, operation, form):
    """Whoever takes one form only is asked by it, and there is a hidden key in it."""

    def implementation(problem):
        if problem.mask.form != form:
            raise Unsupported("mask form")
        inputs = materialise(problem)
        poisoned = inputs.key if identifier.endswith("K") else inputs.value
        assert np.isfinite(poisoned).all() == (not problem.transformations)
        return oracle(problem, transformations=())

    assert answer(identifier, implementation, operation) == "contained"


# ---- alignment


@pytest.mark.parametrize("operation", BOTH)
def test_alignment(operation):
    def found(function):
        return answer("CON-ALIGNMENT", function, operation)

    assert found(lambda problem: oracle(problem, causal="top-left")) == "top-left"
    assert found(lambda problem: oracle(problem, causal="bottom-right")) == "bottom-right"
    assert found(lambda problem: oracle(problem, causal="none")) == "mixed"  # to one query it looks like bottom-right
    assert found(lambda problem: oracle(problem, causal="top-left") * np.float32(np.nan)) == "nan"
    assert found(refusing) == "refused"


# ---- polarity


def inverted(problem: Problem, **changes) -> np.ndarray:
    name = {"one-key": "all-but-one", "all-but-one": "one-key"}[problem.mask.name]
    return oracle(problem, mask=replace(problem.mask, name=name), **changes)


@pytest.mark.parametrize("operation", BOTH)
def test_polarity(operation):
    assert answer("CON-POLARITY", oracle, operation) == "true-attends"
    assert answer("CON-POLARITY", inverted, operation) == "true-ignores"
    assert answer("CON-POLARITY", lambda problem: oracle(problem, mask=None), operation) == "other"
    assert answer("CON-POLARITY", lambda problem: oracle(problem, mask=None) * np.float32(np.nan), operation) == "other"
    assert answer("CON-POLARITY", refusing, operation) == "raises"


@pytest.mark.parametrize("form", ["b11k", "b1qk", "qk", "1hqk", "bhqk"])
@pytest.mark.parametrize("operation", BOTH)
def test_polarity_by_one_form_of_mask(operation, form):
    def only(function):
        def implementation(problem):
            if problem.mask.form != form:
                raise Unsupported("another form, please")
            return function(problem)

        return implementation

    assert answer("CON-POLARITY", only(oracle), operation) == "true-attends"
    assert answer("CON-POLARITY", only(inverted), operation) == "true-ignores"


@pytest.mark.parametrize("lack", ["full-weights", "projection-bias", "no-projection-bias", "no-output-projection", "output-bias"])
def test_multi_head_attention_is_asked_by_what_it_does_not_lack(lack):
    def implementation(problem):
        if lack in problem.features:
            raise Unsupported(lack)
        return oracle(problem)

    assert answer("CON-POLARITY", implementation, "multi_head_attention") == "true-attends"
    assert answer("CON-WIDTH-REFUSED", lambda p: lacking(p) if lack in p.features else refusing(p)) == "refused"


# ---- scale, refusals, sinusoids


@pytest.mark.parametrize("identifier", ["CON-ZERO-SCALE", "CON-NEGATIVE-SCALE"])
def test_scales(identifier):
    assert answer(identifier, oracle) == "ordinary"
    assert answer(identifier, lambda problem: oracle(problem, scale=None)) == "default"
    assert answer(identifier, lambda problem: oracle(problem) * np.float32(np.nan)) == "nan"
    assert answer(identifier, lambda problem: oracle(problem, scale=3.0)) == "other"
    assert answer(identifier, refusing) == "refused"


@pytest.mark.parametrize("identifier", ["CON-GROUPS-REFUSED", "CON-WIDTH-REFUSED"])
def test_refusals(identifier):
    assert answer(identifier, refusing) == "refused"
    assert answer(identifier, lambda problem: np.zeros(1)) == "accepted"


def test_widths_that_heads_do_not_divide_have_inputs_all_the_same():
    shapes = set()

    def implementation(problem):
        inputs = materialise(problem)
        shapes.add((inputs.weights.query.shape, inputs.weights.value.shape, inputs.weights.query.shape[1] % problem.heads > 0))
        raise Unsupported("anything")

    with pytest.raises(Unsupported):
        answer("CON-WIDTH-REFUSED", implementation)
    assert shapes == {((15, 15), (15, 15), True)}


def test_sinusoids():
    def arranged(name):
        return lambda problem: oracle(problem, arrangement=name)

    for name in ("interleaved", "concatenated"):
        assert answer("CON-SINUSOID-ARRANGEMENT", arranged(name)) == name
        assert answer("CON-ODD-WIDTH", arranged(name)) == "extra-sine"
        assert answer("CON-BEYOND-MAX-LEN", arranged(name)) == "extends"
    assert answer("CON-SINUSOID-ARRANGEMENT", lambda problem: 2 * oracle(problem)) == "other"
    assert answer("CON-BEYOND-MAX-LEN", lambda problem: oracle(problem)[:5000]) == "other"
    assert answer("CON-BEYOND-MAX-LEN", refusing) == "refused"
    assert answer("CON-ODD-WIDTH", refusing) == "refused"

    def padded(problem):
        even = oracle(problem, width=problem.width - 1)
        return np.pad(even, ((0, 0), (0, 1)))

    assert answer("CON-ODD-WIDTH", padded) == "zero-padded"
    assert answer("CON-ODD-WIDTH", lambda problem: oracle(problem, width=problem.width - 1)) == "other"


# ---- what is observed decides how an implementation is asked


def plain(function: Callable, **declared) -> Subject:
    """A user's function that declares nothing on conventions."""
    return Subject(Implementation(function.__name__, function, Support(**declared), FRAMEWORK))


def ignores(query, key, value, weights, *, num_heads, mask=None, causal=False):
    """Multi-head attention whose masks are True where a key is to be ignored, as in torch.nn.MultiheadAttention."""
    mask = None if mask is None else ~mask
    return numpy_multi_head(query, key, value, weights, num_heads=num_heads, mask=mask, causal=causal)


def ignores_and_scales_by_the_model(query, key, value, weights, *, num_heads, mask=None):
    """As ``ignores``, and divides by the root of the model width."""
    smaller = replace(weights, query=weights.query / weights.query.dtype.type(np.sqrt(num_heads)))
    return ignores(query, key, value, smaller, num_heads=num_heads, mask=mask)


def aligns_to_the_end(query, key, value, weights, *, num_heads, causal=False):
    return numpy_multi_head(query, key, value, weights, num_heads=num_heads, causal=causal, alignment="bottom-right")


MASKED = (
    "multi_head_attention batch=2 heads=3 length=7 model=15 inner=15 dtype=float32 values=gaussian.1#5 source=self "
    "projection=plain output=plain mask=random.1:{}#5"
)
CROSS = (
    "multi_head_attention batch=2 heads=3 length=5/7 model=15 inner=15 dtype=float32 values=gaussian.1#5 source=cross "
    "projection=plain output=plain "
)


@pytest.mark.parametrize("text", [*(MASKED.format(form) for form in ("qk", "b11k", "bhqk")), f"{CROSS} lengths=3,6"])
def test_a_plain_multi_head_function_with_the_other_polarity_is_observed_and_asked_so(text):
    subject = plain(ignores, operation="multi_head_attention")
    assert Judge().values(subject, parse(text)).verdict.outcome is Outcome.PASS
    assert subject.convention("CON-POLARITY") == "true-ignores"
    assert subject.convention("CON-EMPTY-ROW") == "zeros"


def test_a_wrong_scale_does_not_hide_the_polarity():
    subject = plain(ignores_and_scales_by_the_model, operation="multi_head_attention")
    assert subject.convention("CON-POLARITY") == "true-ignores"
    assert Judge().values(subject, parse(MASKED.format("b1qk"))).verdict.outcome is Outcome.WRONG_VALUE


def test_a_triangle_of_multi_head_attention_is_used_where_it_lies_as_asked():
    subject, judge = plain(aligns_to_the_end, operation="multi_head_attention"), Judge()
    assert judge.values(subject, parse(f"{CROSS} causal=bottom-right")).verdict.outcome is Outcome.PASS
    assert subject.convention("CON-ALIGNMENT") == "bottom-right"
    with pytest.raises(Unsupported, match="causal top-left"):
        judge.values(subject, parse(f"{CROSS} causal=top-left"))


def test_the_polarity_of_a_mask_is_not_read_off_a_bias():
    def biased(query, key, value, *, bias=None):
        return direct(query, key, value, bias=bias)

    subject = plain(biased)
    assert subject.observe("CON-POLARITY") == "unsupported"
    assert subject.observe("CON-EMPTY-ROW") == "zeros"  # −inf in the bias hides keys all the same


def test_questions_of_another_operation_are_unsupported():
    subject = plain(ignores, operation="multi_head_attention")
    assert subject.observe("CON-GROUPS-REFUSED") == "unsupported"
    assert subject.observe("CON-ODD-WIDTH") == "unsupported"


def test_what_raises_on_every_form_of_a_question_is_said_to_raise():
    def no_masks(query, key, value, weights, *, num_heads, mask=None):
        if mask is not None:
            raise ValueError("no masks today")
        return numpy_multi_head(query, key, value, weights, num_heads=num_heads)

    assert plain(no_masks, operation="multi_head_attention").observe("CON-POLARITY") == "raises"
