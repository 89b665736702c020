"""No size is out of reach: classes of size meet each other and each argument, and what goes wrong at a size alone is caught."""

from functools import cache

import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.checks.items import Effort, ItemRun
from conformance.expectations import builtin_expectations
from conformance.faults.functions import CONVENTIONS
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of
from conformance.oracle import expect
from conformance.problem.visibility import visible_pairs
from conformance.specification import coverage, requirements
from conformance.specification.requirement import Facts
from conformance.specification.size_classes import CLASSES, TILES, class_of, sizes_of
from conformance.values import materialise

OF_SIZE = ("ATT-OUT-042", "ATT-MASK-053", "ATT-MASK-054", "ATT-MASK-055", "ATT-MASK-056")


def facts(**told):
    return Facts(**{"sizes": (), "features": frozenset(), "dtypes": (), "dear": False, "thorough": True} | told)


@pytest.mark.parametrize("operation", coverage.coverage())
def test_each_class_of_size_meets_each_other_one_and_each_argument(operation):
    assert coverage.coverage()[operation].missing() == []


def test_the_document_says_what_is_covered():
    assert not coverage.stale(), "run python -m conformance.specification.coverage"


def test_the_table_says_what_is_missing_where_something_is(monkeypatch):
    monkeypatch.setattr(coverage, "requirements", lambda: {key: one for key, one in requirements().items() if key not in OF_SIZE})
    coverage.coverage.cache_clear()
    try:
        missing = coverage.coverage()["attention"].missing()
        assert "width a high tile" in missing and "batch of 128" in missing and len(missing) > 1000
        assert "Missing: " in " ".join(coverage.sentences("attention"))
    finally:
        coverage.coverage.cache_clear()


def test_classes_do_not_overlap_and_hold_every_edge_of_a_tile():
    sizes = [size for word in CLASSES for size in CLASSES[word]]
    assert len(sizes) == len(set(sizes))
    assert {tile + by for tile in TILES for by in (-1, 0, 1)} < set(sizes)
    assert class_of(100) is None and class_of(70_000) == "beyond 2¹⁶"


@pytest.mark.parametrize("identifier", [*OF_SIZE, "ATT-HEAD-037"])
def test_each_problem_of_a_size_judges_a_row(identifier):
    requirement = requirements()[identifier]
    problems = [*requirement.designed(), *requirement.adapted(facts())]
    assert len(problems) > 30
    for problem in problems:
        inputs = materialise(problem)
        assert visible_pairs(inputs).any(), problem.text


def test_where_shapes_are_dear_few_are_asked_and_each_class_among_them():
    asked = [problem for name in OF_SIZE for problem in requirements()[name].few()]
    assert len(asked) <= 50
    assert {"1", "small", "odd", "a low tile", "a middle tile", "over a middle tile"} <= {
        class_of(sizes_of(problem)["key_length"]) for problem in asked
    }
    more = [problem for name in OF_SIZE for problem in requirements()[name].adapted(facts(dear=True))]
    assert len(more) <= 100
    for name in ("batch", "kv_heads", "query_length", "key_length", "width"):
        sizes = {sizes_of(problem)[name] for problem in (*asked, *more)}
        assert {tile + by for tile in TILES for by in (-1, 0, 1)} <= sizes, name
    assert not [problem for name in OF_SIZE for problem in requirements()[name].adapted(facts(thorough=False))]


def zeros_where(wrong):
    """Right, but for zeros where ``wrong`` of the sizes is true."""

    def output(inputs):
        right = expect(inputs, "strict").output.astype(inputs.query.dtype)
        return right * 0 if wrong(sizes_in(inputs)) else right

    support = Support(dtypes=("float32",), profile="strict", conventions=CONVENTIONS)
    return Implementation("zeros", operation_of("attention").function(output), support, frameworks()["numpy"])


def sizes_in(inputs):
    batch, heads, query_length, width = inputs.query.shape
    kv_heads, key_length, value_width = *inputs.key.shape[1:3], inputs.value.shape[3]
    return {
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "query_length": query_length, "key_length": key_length,
        "width": width, "value_width": value_width, "group": heads // kv_heads,
    }  # fmt: skip


def catching(wrong, thorough):
    """The problems at which ``wrong`` is true and zeros are rejected, at most two of them."""
    judge, subject, found = Judge(), Subject(zeros_where(wrong)), []
    for problem in asked(thorough):
        if wrong(sizes_of(problem) | {"heads": problem.heads}):
            assert judge.values(subject, problem).verdict.outcome is Outcome.WRONG_VALUE, problem.text
            found.append(problem)
            if len(found) == 2:
                break
    return found


@cache
def asked(thorough):
    told = facts(thorough=thorough)
    found = [problem for name in OF_SIZE for one in (requirements()[name],) for problem in (*one.designed(), *one.adapted(told))]
    return tuple(problem for problem in found if problem.dtype == "float32")


DIMENSIONS = ("batch", "heads", "kv_heads", "group", "query_length", "key_length", "width", "value_width")


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("size", [8, 128, 256, 1024])
def test_zeros_beyond_any_size_are_caught_in_the_full_tier(dimension, size):
    assert len(catching(lambda sizes: sizes[dimension] > size, True)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sizes: sizes["batch"] > 8,
        lambda sizes: sizes["width"] == 128,
        lambda sizes: sizes["key_length"] == 64 and sizes["query_length"] == 1,
        lambda sizes: sizes["query_length"] % 16 == 0 == sizes["key_length"] % 16,
        lambda sizes: sizes["batch"] * sizes["heads"] > 100,
        lambda sizes: sizes["width"] >= 64,
        lambda sizes: sizes["key_length"] > 16 * sizes["query_length"] and sizes["key_length"] > 100,
    ],
)
def test_what_begins_at_an_ordinary_size_is_caught_in_the_quick_tier(wrong):
    assert catching(wrong, False)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sizes: sizes["batch"] > 65_535,
        lambda sizes: sizes["batch"] * sizes["heads"] > 65_535,
        lambda sizes: sizes["query_length"] * sizes["key_length"] > 65_535,
        lambda sizes: sizes["width"] >= 256 and sizes["key_length"] > 100,
        lambda sizes: sizes["query_length"] in (255, 511, 1023) and sizes["width"] in (64, 128),
        lambda sizes: sizes["group"] > 32 and sizes["key_length"] % 8 == 0,
        lambda sizes: sizes["value_width"] > 2 * sizes["width"] and sizes["value_width"] % 64 == 0,
    ],
)
def test_what_begins_at_a_large_size_or_at_two_together_is_caught_in_the_full_tier(wrong):
    assert catching(wrong, True)


def test_zeros_beyond_a_batch_of_8_fail_the_requirement_of_the_quick_tier():
    known = builtin_expectations(requirements()).for_("zeros")
    zeros = zeros_where(lambda sizes: sizes["batch"] > 8)
    result = ItemRun(requirements()["ATT-OUT-042"], Subject(zeros), Judge(), known, Effort(0, False, 0)).run()
    assert result.item.outcome is Outcome.WRONG_VALUE and result.item.counts.failed > 1
