"""Random cases: the same everywhere, as many as asked for, within their bounds, and shrunk to something small."""

import subprocess
import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conformance.cases import strategies
from conformance.cases.random import corpus, shrink
from conformance.cases.strategies import VARIANTS
from conformance.problem import AttentionProblem, parse
from conformance.specification import requirements
from conformance.specification.draw import Draw
from conformance.specification.palette import LARGEST, MULTI_HEAD_SHAPE_SETS, MULTI_HEAD_SHAPES, SHAPE_SETS, SHAPES
from conformance.values import materialise

RANDOM = [requirement for requirement in requirements().values() if requirement.random is not None]
LISTING = """
from conformance.cases.random import corpus
from conformance.specification import requirements
from conformance.specification.draw import Draw
for identifier in ("ATT-OUT-004", "ATT-MASK-017", "ATT-HEAD-023", "ATT-POS-008"):
    for example in corpus(requirements()[identifier], examples=4, seed=11, free=True):
        print(*(problem.text for problem in example.problems), sep="\\n")
"""


def texts(identifier: str, **settings) -> list[str]:
    settings = {"examples": 4, "seed": 11, "free": True} | settings
    return [problem.text for example in corpus(requirements()[identifier], **settings) for problem in example.problems]


def test_another_process_draws_the_same():
    listed = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True).stdout.splitlines()
    here = [text for identifier in ("ATT-OUT-004", "ATT-MASK-017", "ATT-HEAD-023", "ATT-POS-008") for text in texts(identifier)]
    assert listed == here


def test_drawing_again_draws_the_same_and_another_seed_does_not():
    first = texts("ATT-OUT-004")
    corpus.cache_clear()
    assert texts("ATT-OUT-004") == first
    assert texts("ATT-OUT-004", seed=12) != first


def alike() -> list[tuple[str, ...]]:
    """The requirements that may draw the same."""
    found = defaultdict(list)
    for requirement in RANDOM:
        found[requirement.random].append(requirement.id)
    return [tuple(identifiers) for identifiers in found.values() if len(identifiers) > 1]


@pytest.mark.parametrize("identifiers", alike(), ids=" ".join)
def test_requirements_with_equal_draws_get_other_problems(identifiers):
    drawn = [set(texts(identifier, examples=8)) for identifier in identifiers]
    assert all(drawn) and not set.intersection(*drawn)
    assert len(set.union(*drawn)) == sum(map(len, drawn))


def test_a_requirement_draws_by_its_id():
    one = requirements()["ATT-OUT-004"]
    drawn = [
        {
            problem.text
            for example in corpus(replace(one, id=name), examples=8, seed=11, free=True)
            for problem in example.problems
        }
        for name in ("ATT-OUT-998", "ATT-OUT-999")
    ]
    assert all(drawn) and not drawn[0] & drawn[1]


@pytest.mark.parametrize("requirement", RANDOM, ids=lambda requirement: requirement.id)
def test_no_two_variants_share_their_numbers(requirement):
    """Else most of them would find what the first has found."""
    for example in corpus(requirement, examples=3, seed=2, free=True):
        assert len({problem.values.seed for problem in example.problems}) == VARIANTS
        for problem in example.problems:
            beside = (getattr(problem, "mask", None), getattr(problem, "bias", None), *getattr(problem, "transformations", ()))
            assert {recipe.seed for recipe in beside if recipe is not None} <= {problem.values.seed}


def test_palette_shapes_come_first_whether_or_not_free_ones_follow():
    """So that all implementations share them, compiled or not."""
    assert texts("ATT-OUT-004")[: 4 * VARIANTS] == texts("ATT-OUT-004", free=False)
    strata = [example.free for example in corpus(requirements()["ATT-OUT-004"], examples=4, seed=11, free=True)]
    assert strata == [False] * 4 + [True]


@pytest.mark.parametrize("requirement", RANDOM, ids=lambda requirement: requirement.id)
def test_each_draw_gives_what_is_asked_for(requirement):
    """As many examples as asked for, of several problems each, that can be made and come back from their texts."""
    examples = corpus(requirement, examples=6, seed=5, free=True)
    assert len(examples) == 6 + 2
    for example in examples:
        assert len(example.problems) == VARIANTS
        for problem in example.problems[::3]:
            assert problem.operation == requirement.operation
            assert parse(problem.text) == problem
            materialise(problem)


def test_palettes_are_within_their_bounds_and_sets_name_what_there_is():
    assert all(shape.work <= LARGEST for shape in SHAPES.values())
    assert {name for names in SHAPE_SETS.values() for name in names} <= set(SHAPES)
    assert {name for names in MULTI_HEAD_SHAPE_SETS.values() for name in names} <= set(MULTI_HEAD_SHAPES)


def test_free_shapes_are_within_their_bounds():
    for requirement in RANDOM:
        for example in corpus(requirement, examples=8, seed=7, free=True):
            for problem in example.problems[:1]:
                if example.free and isinstance(problem, AttentionProblem):
                    work = problem.batch * problem.heads * problem.query_length * problem.key_length * problem.width
                    assert work <= LARGEST, problem.text


def test_variants_share_what_compiling_frameworks_compile_for():
    for requirement in RANDOM:
        if requirement.operation != "attention":
            continue
        for example in corpus(requirement, examples=2, seed=1, free=False):
            alike = {
                (p.query_length, p.key_length, p.width, p.dtype, p.mask and p.mask.form, p.bias and p.bias.form, p.causal)
                for p in example.problems
            }
            assert len(alike) == 1, requirement.id


def test_a_requirement_without_a_draw_has_no_random_cases():
    without = replace(requirements()["ATT-OUT-004"], random=None)
    assert corpus(without, examples=5, seed=0, free=True) == ()
    assert shrink(without, lambda problem: True, seed=0, examples=5, free=True, limit=50) is None


# --------------------------------------------------------------------------------------------------------- shrinking


def smallest(identifier: str, fails, **settings):
    settings = {"seed": 0, "examples": 12, "free": True, "limit": 300} | settings
    return shrink(requirements()[identifier], fails, **settings)


def test_shrinking_finds_the_smallest_size_that_fails():
    found = smallest("ATT-OUT-004", lambda problem: problem.query_length > 4 and problem.key_length > 3)
    assert (found.batch, found.heads, found.query_length, found.key_length, found.width) == (1, 1, 5, 4, 1)
    assert found.values.seed < VARIANTS


def test_shrinking_keeps_to_the_palette_where_shapes_cost_a_compilation():
    found = smallest("ATT-OUT-004", lambda problem: problem.query_length > 4, free=False)
    assert {name for name, value in vars(SHAPES["square"]).items() if getattr(found, name) != value} == set()


def test_shrinking_prefers_the_simplest_choice_that_fails():
    found = smallest("ATT-MASK-001", lambda problem: problem.dtype != "float64")
    assert found.dtype == "float32"


def test_nothing_that_fails_is_nothing_found():
    assert smallest("ATT-OUT-004", lambda problem: False) is None


def test_shrinking_ends_after_the_calls_that_it_may_make():
    calls = []

    def fails(problem):
        calls.append(problem)
        return problem.query_length > 1

    assert smallest("ATT-OUT-004", fails, limit=20).query_length > 1
    assert len(calls) <= 20


def test_multi_head_and_sinusoidal_problems_shrink_too():
    found = smallest("ATT-HEAD-013", lambda problem: problem.heads > 1)
    assert (found.batch, found.heads, found.query_length) == (1, 2, 1)
    found = smallest("ATT-POS-008", lambda problem: problem.length > 20)
    assert (found.batch, found.length, found.width) == (1, 21, 2)


def test_scaled_scores_in_float16_stay_within_its_range() -> None:
    """Beyond 65504 code that keeps its scores in float16 is right to give infinity: no requirement asks for more."""
    for requirement in requirements().values():
        if not isinstance(requirement.random, Draw) or "float16" not in requirement.random.dtypes:
            continue
        for example in corpus(requirement, examples=16, seed=1, free=True):
            for problem in (one for one in example.problems if one.dtype == "float16"):
                largest = _largest_score(problem)
                assert not np.isfinite(largest) or largest < 65504, f"{requirement.id}: {problem.text}"


def _largest_score(problem: AttentionProblem) -> float:
    inputs = materialise(problem)
    query = inputs.query.astype(np.float64)
    key = np.repeat(inputs.key.astype(np.float64), problem.heads // problem.kv_heads, axis=1)
    scores = query @ key.swapaxes(-1, -2) * (problem.width**-0.5 if problem.scale is None else problem.scale)
    return float(np.abs(scores).max())


# ------------------------------------------------------------------------------------------------------- free shapes


def all_of(strategy, examples=150):
    """What a strategy draws, the same each time."""
    found = []

    @settings(database=None, derandomize=True, max_examples=examples, phases=(Phase.generate,))
    @given(strategy)
    def body(drawn):
        found.append(drawn)

    body()
    return found


def test_free_sizes_of_attention_are_named_as_they_are_drawn():
    sizes = all_of(strategies._sizes(st.just((3, 5)), st.just((4, 2)), st.just((8, 6))))
    others = {"heads": 4, "kv_heads": 2, "query_length": 3, "key_length": 5, "width": 8, "value_width": 6}
    assert sizes and all(found == {"batch": found["batch"]} | others for found in sizes)
    assert {found["batch"] for found in sizes} == {1, 2, 3}
    alone = all_of(strategies._sizes(st.just((3, 5)), st.just((4, 2)), st.just((8, 6)), batches=1))
    assert {found["batch"] for found in alone} == {1}


@pytest.mark.parametrize("inner", [False, True])
def test_free_sizes_of_multi_head_attention_are_multiples_of_the_heads(inner):
    sizes = all_of(strategies._multi_head_sizes(st.just(3), st.just((4, 5)), inner=inner))
    names = ("batch", "heads", "model_width", "inner_width", "value_inner_width", "query_length", "key_length")
    assert {tuple(sorted(found)) for found in sizes} == {tuple(sorted(names))}
    values = {name: {found[name] for found in sizes} for name in names}
    assert (values["heads"], values["query_length"], values["key_length"]) == ({3}, {4}, {5})
    assert values["batch"] == {1, 2, 3}
    assert values["inner_width"] == values["value_inner_width"] == {3, 6, 9, 12, 15, 18}
    assert any(found["inner_width"] != found["value_inner_width"] for found in sizes) is inner
    assert values["model_width"] == (set(range(1, 17)) if inner else values["inner_width"])
    assert inner or all(found["model_width"] == found["inner_width"] for found in sizes)


@pytest.mark.parametrize(
    ("name", "always", "sometimes"),
    [
        ("square", lambda f: f["query_length"] == f["key_length"], lambda f: f["query_length"] == 19),
        ("wide", lambda f: f["query_length"] < f["key_length"], lambda f: f["key_length"] > 15),
        ("tall", lambda f: f["query_length"] > f["key_length"], lambda f: f["query_length"] > 15),
        ("unequal", lambda f: f["query_length"] != f["key_length"], lambda f: f["query_length"] > f["key_length"]),
        ("unequal", lambda f: f["query_length"] != f["key_length"], lambda f: f["query_length"] < f["key_length"]),
        ("decode", lambda f: f["query_length"] == 1 and f["key_length"] >= 2, lambda f: f["key_length"] == 100),
        ("small", lambda f: max(f["query_length"], f["key_length"], f["width"]) <= 3, lambda f: f["width"] == 3),
        ("4-wide", lambda f: 4 <= f["width"] <= 24, lambda f: f["width"] == 24),
        ("tile", lambda f: f["batch"] == f["heads"] == 1 and 65 <= f["key_length"] <= 72, lambda f: f["query_length"] == 72),
        ("value-width", lambda f: f["value_width"] > f["width"], lambda f: f["value_width"] == 24),
        ("grouped", lambda f: f["heads"] % f["kv_heads"] == 0 < f["heads"] - f["kv_heads"], lambda f: f["heads"] == 9),
        ("grouped-square", lambda f: f["query_length"] == f["key_length"], lambda f: f["heads"] == 3 * f["kv_heads"]),
        ("any", lambda f: f["heads"] == f["kv_heads"] and f["width"] == f["value_width"], lambda f: f["key_length"] == 23),
    ],
)
def test_free_sizes_of_a_set_are_what_its_name_says(name, always, sometimes):
    sizes = all_of(strategies._FREE[name], examples=300)
    assert all(always(found) for found in sizes) and any(sometimes(found) for found in sizes)
