"""The specification as data: ids, problems, and the rendered document."""

import importlib
import pkgutil
import re
from collections import Counter

import numpy as np

from conformance import checks
from conformance.checks.one_changed import one_changed
from conformance.features.bias import BIASES
from conformance.features.mask import MASKS
from conformance.golden_tool.definitions import FILE_OF_AREA
from conformance.oracle import expect
from conformance.problem import MultiHeadProblem, Problem, parse
from conformance.problem.inputs import AttentionInputs, SinusoidalInputs
from conformance.specification import WITHDRAWN, conventions, render, requirements
from conformance.specification.few import few
from conformance.specification.requirement import AREAS, CHECKS
from conformance.values import materialise
from conformance.values.distributions import DISTRIBUTIONS
from conformance.values.multihead_transformations import MULTI_HEAD_TRANSFORMATIONS
from conformance.values.transformations import TRANSFORMATIONS

DESIGNED = [
    (requirement, problem) for requirement in requirements().values() for problem in requirement.designed()
]  # fmt: skip


def test_ids_are_permanent_in_form_and_unbroken_in_each_area():
    numbers: dict[str, list[int]] = {}
    for identifier in (*requirements(), *WITHDRAWN):
        match = re.fullmatch(r"ATT-(OUT|SCALE|MASK|HEAD|NUM|POS)-(\d{3})", identifier)
        assert match, identifier
        numbers.setdefault(match[1], []).append(int(match[2]))
    assert len(numbers) == 6
    for area, given in numbers.items():
        assert sorted(given) == list(range(1, len(given) + 1)), area


def test_every_area_has_a_module_of_checks_and_a_golden_file():
    modules = [importlib.import_module(info.name) for info in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}.")]
    assert sorted(module.AREA for module in modules if hasattr(module, "AREA")) == sorted(AREAS)
    assert set(FILE_OF_AREA) == set(AREAS)


def test_sentences_are_sentences_and_different():
    sentences = [requirement.sentence for requirement in requirements().values()]
    assert max(Counter((r.operation, r.sentence) for r in requirements().values()).values()) == 1
    assert all(sentence.endswith(".") and (sentence[0] != sentence[0].lower() or sentence[0] in "−x‖") for sentence in sentences)
    assert all(requirement.rationale.endswith(".") and requirement.source for requirement in requirements().values())


def test_every_check_and_every_requirement_has_cases():
    assert {requirement.check for requirement in requirements().values()} == set(CHECKS)
    adapted = {requirement.id for requirement in requirements().values() if requirement.adapted is not None}
    assert {requirement.id for requirement, _ in DESIGNED} | adapted == set(requirements())


def test_no_requirement_lists_a_problem_twice():
    for requirement in requirements().values():
        texts = [problem.text for problem in requirement.designed()]
        assert len(texts) == len(set(texts)), requirement.id


def test_the_few_problems_of_who_compiles_are_among_the_designed_ones():
    for requirement in requirements().values():
        if requirement.few is not None:
            few, designed = list(requirement.few()), list(requirement.designed())
            assert few and set(few) < set(designed), requirement.id


def test_every_designed_problem_comes_back_from_its_text():
    for _, problem in DESIGNED:
        again = parse(problem.text)
        assert again == problem
        assert again.text == problem.text


def test_every_designed_problem_materialises_and_has_a_finite_budget():
    special = {"put-query", "put-key", "put-value", "hidden-key", "hidden-value"}
    for requirement, problem in DESIGNED:
        inputs = materialise(problem)
        transformations = (
            set() if isinstance(inputs, SinusoidalInputs) else {transformation.name for transformation in problem.transformations}
        )
        finite = all(np.isfinite(array.astype(np.float64)).all() for name, array in inputs.arrays().items() if name != "bias")
        assert finite or transformations & special, f"{requirement.id}: {problem.text}"
        expected = expect(inputs, "unfused")
        judged = np.broadcast_to(expected.judged, expected.output.shape)
        assert judged.any() or not requirement.judges_values, f"{requirement.id}: nothing is judged in {problem.text}"
        if not transformations & special:
            assert np.isfinite(expected.output[judged].astype(np.float64)).all()
            assert np.isfinite(expected.budget[judged]).all()
            assert (expected.budget[judged] > 0).all()


def test_inputs_of_contiguous_problems_are_contiguous():
    for _, problem in DESIGNED:
        if getattr(problem, "layout", "contiguous") == "contiguous":
            assert all(array.flags.c_contiguous for array in materialise(problem).arrays().values()), problem.text


def test_what_is_asked_of_heads_that_do_not_divide_is_such_a_request():
    for identifier in ("CON-GROUPS-REFUSED", "CON-WIDTH-REFUSED"):
        for question in conventions()[identifier].questions.values():
            forms = list(question.problems())
            for problem in [*forms, *(place.change(form) for form in forms for place in question.places)]:
                divided = problem.inner_width if isinstance(problem, MultiHeadProblem) else problem.heads
                divisor = problem.heads if isinstance(problem, MultiHeadProblem) else problem.kv_heads
                assert divided % divisor, problem.text


def test_every_recipe_is_used_by_a_designed_case_or_a_draw():
    """What is not used is not needed; what is misspelt is not found."""
    used = {name for _, problem in DESIGNED for name in _recipes(problem)}
    stale = [problem for requirement, problem in DESIGNED if requirement.check == "stale"]
    used |= {name for each in stale for _, problem in one_changed(each, materialise(each)) for name in _recipes(problem)}
    for requirement in requirements().values():
        drawn = requirement.random
        for field in ("distributions", "masks", "biases", "transformations"):
            used |= {text.split(".")[0] for text in getattr(drawn, field, ()) if text}
    for book in (DISTRIBUTIONS, MASKS, BIASES, TRANSFORMATIONS, MULTI_HEAD_TRANSFORMATIONS):
        # these are there for questions about conventions, and for golden cases
        assert set(book.names()) - used <= {"hidden-key", "hidden-value", "suffix", "all-but-one", "one-tensor"}, book.field


def _recipes(problem: Problem) -> list[str]:
    recipes = [
        problem.values,
        getattr(problem, "mask", None),
        getattr(problem, "bias", None),
        *getattr(problem, "transformations", ()),
    ]
    return [recipe.name for recipe in recipes if recipe is not None]


def test_few_shapes_serve_many_cases():
    """Frameworks that compile do so once per signature: each costs jax-nn-sdpa about 0.2 s of a processor."""
    signatures = set()
    asked = [problem for r in requirements().values() for problem in few(r)]
    for problem in asked:
        inputs = materialise(problem)
        if isinstance(inputs, AttentionInputs):
            shapes = tuple(array.shape for array in (inputs.query, inputs.key, inputs.value))
            forms = problem.mask and problem.mask.form, problem.bias and problem.bias.form
            rest = problem.causal, problem.key_lengths is None, problem.scale is None
            signatures.add((shapes, problem.dtype, *forms, *rest))
    assert len(signatures) <= 300


def test_the_document_is_fresh():
    assert not render.stale(), "run: python -m conformance.specification.render"


def test_the_document_names_everything():
    text = render.render()
    for identifier, requirement in requirements().items():
        assert f"### {identifier}\n\n**{requirement.sentence}**" in text
    for identifier, convention in conventions().items():
        assert f"### {identifier}\n" in text
        assert all(f"`{answer}`" in text for answer in convention.answers)
