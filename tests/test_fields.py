"""Fields of problems: what one entry of a description gives, and that a new one changes nothing that was frozen."""

import inspect
from dataclasses import FrozenInstanceError

import pytest

from conformance.features import Feature, features
from conformance.golden_tool import check
from conformance.operations import operations
from conformance.problem import AttentionProblem, ProblemError, Recipe, parse
from conformance.problem.fields import Field, Number
from conformance.specification import requirements
from conformance.values import materialise
from conformance.values.golden import load_cases
from tests.support.added_features import added

TEXT = "attention batch=1 heads=1 length=2/3 width=4 dtype=float32 values=gaussian.1#0"
PLAIN = parse(TEXT)


class Slope(Feature):
    name = argument = "slope"
    field = Field(
        key="slope", kind=Number(), names=("slope",), defaults=(None,), asks={"slope": lambda problem: problem.slope is not None}
    )


@pytest.fixture
def sloped():
    """Attention and multi-head attention with one more feature."""
    with added(Slope()):
        yield


def test_a_new_optional_field_changes_no_frozen_case_and_no_text(sloped) -> None:
    assert check() == []
    for case in load_cases():
        assert "slope" not in case.problem.text


def test_a_new_field_is_read_written_asked_and_listed(sloped) -> None:
    plain = parse(TEXT)
    problem = plain.but(slope=0.5)
    assert problem.text == f"{TEXT} slope=0.5"
    assert parse(problem.text) == problem != plain
    assert problem.features - plain.features == {"slope"}
    assert problem.parameters["slope"] == 0.5
    assert materialise(problem).slope == 0.5
    assert materialise(plain).slope is None
    with pytest.raises(ProblemError, match="slope='far' is not a number"):
        parse(f"{TEXT} slope=far")


def test_a_text_that_knows_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(ProblemError, match="unknown field 'slope'"):
        parse(f"{TEXT} slope=0.5")


def test_what_is_no_field_or_is_missing_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="has no field slope"):
        PLAIN.but(slope=1.0)
    with pytest.raises(TypeError, match="needs kv_heads"):
        AttentionProblem(query_length=2, key_length=3, width=4, value_width=4)


def test_a_problem_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PLAIN.causal = "top-left"
    with pytest.raises(FrozenInstanceError):
        del PLAIN.causal


def test_problems_are_equal_where_their_texts_are() -> None:
    assert PLAIN.but(scale=1) == PLAIN.but(scale=1.0)
    assert PLAIN.but(values=Recipe("gaussian", 1)) != PLAIN
    assert len({PLAIN, PLAIN.but(), PLAIN.but(layout="reversed")}) == 2


@pytest.mark.parametrize("kind", [one.problem for one in operations().values()], ids=operations())
def test_no_two_fields_of_an_operation_say_the_same(kind) -> None:
    fields = kind.fields()
    names = [name for field in fields for name in field.names]
    assert len(names) == len(set(names))
    assert len({field.key for field in fields}) == len(fields)
    assert all(len(field.names) == len(field.defaults) for field in fields)
    of_features = {feature.argument for feature in features(kind.operation)}
    assert set(kind.__annotations__) - {"BEFORE", "BEHIND"} <= set(names) - of_features
    assert set(names) - of_features <= {name for base in kind.__mro__ for name in inspect.get_annotations(base)}


def test_every_problem_of_the_specification_is_made_again_from_its_text() -> None:
    for requirement in requirements().values():
        for problem in requirement.designed():
            assert parse(problem.text) == problem
