"""The specification as data: ids, problems, the rendered document, and the questions that show conventions."""

import re
from collections import Counter

import numpy as np
import pytest

from conformance.inputs import AttentionInputs, SinusoidalInputs
from conformance.oracle import expect
from conformance.problem import MultiHeadProblem, Problem, parse
from conformance.specification import conventions, render, requirements
from conformance.specification.model import CHECKS, Unsupported
from conformance.values import materialise
from conformance.values.edits import EDITS
from conformance.values.laws import LAWS
from conformance.values.masks import BIASES, MASKS
from conformance.values.multihead import MULTI_HEAD_EDITS

DESIGNED = [
    (requirement, problem) for requirement in requirements().values() for problem in requirement.designed()
]  # fmt: skip
VALID = [(requirement, problem) for requirement, problem in DESIGNED if requirement.check != "refuses"]


def test_ids_are_permanent_in_form_and_unbroken_in_each_area():
    numbers: dict[str, list[int]] = {}
    for identifier in requirements():
        match = re.fullmatch(r"ATT-(OUT|SCALE|MASK|HEAD|NUM|POS)-(\d{3})", identifier)
        assert match, identifier
        numbers.setdefault(match[1], []).append(int(match[2]))
    assert len(numbers) == 6
    for area, given in numbers.items():
        assert sorted(given) == list(range(1, len(given) + 1)), area


def test_sentences_are_sentences_and_different():
    sentences = [requirement.sentence for requirement in requirements().values()]
    assert max(Counter((r.operation, r.sentence) for r in requirements().values()).values()) == 1
    assert all(sentence.endswith(".") and (sentence[0] != sentence[0].lower() or sentence[0] in "−x‖") for sentence in sentences)
    assert all(requirement.rationale.endswith(".") and requirement.source for requirement in requirements().values())


def test_every_check_and_every_requirement_has_cases():
    assert {requirement.check for requirement in requirements().values()} == set(CHECKS)
    assert {requirement.id for requirement, _ in DESIGNED} == set(requirements())


def test_no_requirement_lists_a_problem_twice():
    for requirement in requirements().values():
        texts = [problem.text for problem in requirement.designed()]
        assert len(texts) == len(set(texts)), requirement.id


def test_every_designed_problem_comes_back_from_its_text():
    for _, problem in DESIGNED:
        again = parse(problem.text)
        assert again == problem
        assert again.text == problem.text


def test_every_valid_designed_problem_materialises_and_has_a_finite_budget():
    special = {"put-query", "put-key", "put-value"}
    for requirement, problem in VALID:
        inputs = materialise(problem)
        edits = set() if isinstance(inputs, SinusoidalInputs) else {edit.name for edit in problem.edits}
        finite = all(np.isfinite(array.astype(np.float64)).all() for name, array in inputs.arrays().items() if name != "bias")
        assert finite or edits & special, f"{requirement.id}: {problem.text}"
        expected = expect(inputs, "eager")
        judged = np.broadcast_to(expected.judged, expected.output.shape)
        assert judged.any(), f"{requirement.id}: nothing is judged in {problem.text}"
        if not edits & special:
            assert np.isfinite(expected.output[judged].astype(np.float64)).all()
            assert np.isfinite(expected.budget[judged]).all()
            assert (expected.budget[judged] > 0).all()


def test_inputs_of_contiguous_problems_are_contiguous():
    for _, problem in VALID:
        if getattr(problem, "layout", "contiguous") == "contiguous":
            assert all(array.flags.c_contiguous for array in materialise(problem).arrays().values()), problem.text


def test_refused_problems_are_invalid_by_their_heads():
    refused = [problem for requirement, problem in DESIGNED if requirement.check == "refuses"]
    assert len(refused) == 2
    for problem in refused:
        divided = problem.inner_width if isinstance(problem, MultiHeadProblem) else problem.heads
        divisor = problem.heads if isinstance(problem, MultiHeadProblem) else problem.kv_heads
        assert divided % divisor


def test_every_recipe_is_used_by_a_designed_case_or_a_draw():
    """What is not used is not needed; what is misspelt is not found."""
    used = {name for _, problem in DESIGNED for name in _recipes(problem)}
    for requirement in requirements().values():
        drawn = requirement.random
        for field in ("laws", "masks", "biases", "edits"):
            used |= {text.split(".")[0] for text in getattr(drawn, field, ()) if text}
    for book in (LAWS, MASKS, BIASES, EDITS, MULTI_HEAD_EDITS):
        # these two stand for themselves in questions about conventions and in golden cases
        assert set(book.names()) - used <= {"hidden-key", "all-but-one"}, book.field


def _recipes(problem: Problem) -> list[str]:
    recipes = [problem.values, getattr(problem, "mask", None), getattr(problem, "bias", None), *getattr(problem, "edits", ())]
    return [recipe.name for recipe in recipes if recipe is not None]


def test_few_shapes_serve_many_cases():
    """Frameworks that compile do so once per signature; the quick tier has no time for many."""
    signatures = set()
    for _, problem in VALID:
        inputs = materialise(problem)
        if isinstance(inputs, AttentionInputs):
            shapes = tuple(array.shape for array in (inputs.query, inputs.key, inputs.value))
            forms = problem.mask and problem.mask.form, problem.bias and problem.bias.form
            rest = problem.causal, problem.key_lengths is None, problem.scale is None
            signatures.add((shapes, problem.dtype, *forms, *rest))
    assert len(signatures) <= 125


def test_the_document_is_fresh():
    assert not render.stale(), "run: python -m conformance.specification.render"


def test_the_document_names_everything():
    text = render.render()
    for identifier, requirement in requirements().items():
        assert f"### {identifier}\n\n**{requirement.sentence}**" in text
    for identifier, convention in conventions().items():
        assert f"### {identifier}\n" in text
        assert all(f"- `{answer}`: " in text for answer in convention.answers)


# ------------------------------------------------------------------------------------------------------- conventions


def answer(identifier: str, function) -> str:
    return conventions()[identifier].observe(function)


def oracle(problem: Problem, **changes) -> np.ndarray:
    """The right output, or that of a changed problem; rows without a key are 0."""
    expected = expect(materialise(problem.but(**changes)), "strict")
    return expected.output.astype(np.float32)


def refusing(problem: Problem) -> np.ndarray:
    raise ValueError("no")


def lacking(problem: Problem) -> np.ndarray:
    raise Unsupported("mask")


def test_answers_are_among_those_listed_and_features_that_lack_are_passed_on():
    for convention in conventions().values():
        with pytest.raises(Unsupported):
            convention.observe(lacking)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [(0.0, "zeros"), (np.nan, "nan"), (7.0, "other"), (None, "mean")],
)
def test_empty_rows(fill, expected):
    def implementation(problem):
        output = oracle(problem)
        rows = materialise(problem).value.mean(axis=2, keepdims=True) if fill is None else fill
        output[:, :, ::3] = rows
        return output

    assert answer("CON-EMPTY-ROW", implementation) == expected


@pytest.mark.parametrize("identifier", ["CON-NAN-BEHIND-MASK-K", "CON-NAN-BEHIND-MASK-V", "CON-INF-BEHIND-MASK-V"])
def test_behind_the_mask(identifier):
    def contains(problem):
        return oracle(problem, edits=())

    def leaks(problem):
        inputs = materialise(problem)
        bad = ~np.isfinite(inputs.key).all() or ~np.isfinite(inputs.value).all()
        return np.where(bad, np.float32(np.nan), oracle(problem, edits=()))

    assert answer(identifier, contains) == "contained"
    assert answer(identifier, leaks) == "leaks"


def test_alignment():
    assert answer("CON-ALIGNMENT", lambda problem: oracle(problem, causal="top-left")) == "top-left"
    assert answer("CON-ALIGNMENT", lambda problem: oracle(problem, causal="bottom-right")) == "bottom-right"
    assert answer("CON-ALIGNMENT", lambda problem: oracle(problem, causal="none")) == "other"
    assert answer("CON-ALIGNMENT", refusing) == "refused"


def test_polarity():
    def inverted(problem):
        name = {"one-key": "all-but-one", "all-but-one": "one-key"}[problem.mask.name]
        recipe = type(problem.mask)(name, problem.mask.seed, problem.mask.form)
        return oracle(problem, mask=recipe)

    assert answer("CON-POLARITY", oracle) == "true-attends"
    assert answer("CON-POLARITY", inverted) == "true-ignores"
    assert answer("CON-POLARITY", lambda problem: oracle(problem, mask=None)) == "other"


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
