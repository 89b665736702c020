"""In which order scores pass through features, and what the exact oracle asks of them."""

from typing import Any, ClassVar

import numpy as np
import pytest

from conformance.features import Feature, ScoreIndex, in_order, ordered
from conformance.oracle import exact, truth_of
from conformance.oracle.stages import stages
from conformance.problem import parse
from conformance.problem.fields import Field, Number
from conformance.values import materialise
from tests.support.added_features import added


def named(name: str, **attributes: Any) -> Feature:
    return type("Named", (Feature,), {"name": name, "argument": name, **attributes})()


def names(*features: Feature) -> list[str]:
    return [feature.name for feature in ordered(features)]


def test_each_comes_after_what_it_follows_and_before_what_it_precedes():
    assert names(named("first", follows=("second",)), named("second"), named("third", precedes=("second",))) == [
        "third",
        "second",
        "first",
    ]


def test_those_of_logits_come_behind_all_those_of_scores():
    assert names(named("last", of_logits=object()), named("cap", of_scores=object())) == ["cap", "last"]
    with pytest.raises(ValueError, match="in a circle: "):
        names(named("last", of_logits=object(), precedes=("cap",)), named("cap", of_scores=object()))


def test_a_circle_is_told_by_its_names():
    with pytest.raises(ValueError, match=r"in a circle: (one, other, one|other, one, other)\."):
        names(named("one", follows=("other",)), named("other", follows=("one",)))


@pytest.mark.parametrize("where", ["follows", "precedes"])
def test_a_name_that_is_no_feature_is_told(where):
    with pytest.raises(ValueError, match="The feature one follows or precedes nothing, which is the name of no feature"):
        names(named("one", **{where: ("nothing",)}))


def test_what_a_feature_precedes_may_belong_to_one_operation_alone():
    of_layers = [feature.name for feature in in_order("multi_head_attention")]
    assert "softcap" in of_layers
    assert "bias" not in of_layers


class Doubled:
    """The stage: scores times the number of the key, as those of ``Numbered`` are."""

    name = "numbered"

    def value(self, flow: Any) -> None:
        if flow.inputs.numbered is not None:
            flow.scores = flow.scores * flow.of_all_keys(np.arange(flow.keys), 0)

    def error(self, flow: Any, bounds: Any) -> None:
        return None


class Numbered(Feature):
    """A score counts as often as the number of its key says, with its bias."""

    name = argument = "numbered"
    follows: ClassVar = ("bias",)
    of_scores = Doubled()
    field = Field(
        key="numbered", kind=Number(), names=("numbered",), defaults=(None,),
        asks={"numbered": lambda problem: problem.numbered is not None},
    )  # fmt: skip

    def score_exactly(self, mp: Any, score: Any, inputs: Any, place: ScoreIndex) -> Any:
        return score if inputs.numbered is None else score * place.key


def test_both_oracles_ask_a_new_feature_in_its_turn_and_say_of_which_score():
    text = "attention batch=2 heads=2 length=3/4 width=4 dtype=float64 values=gaussian.1#1 softcap=1.0 bias=holes.1:1hqk#2"
    with added(Numbered()):
        turns = [stage.name for stage in stages() if stage.name in ("sinks", "numbered", "bias", "softcap")]
        assert turns == ["softcap", "bias", "numbered", "sinks"]
        inputs = materialise(parse(f"{text} numbered=1"))
        np.testing.assert_allclose(truth_of(inputs).output, exact.attention(inputs), rtol=1e-14)
        assert not np.allclose(exact.attention(inputs), exact.attention(inputs.but(numbered=None)))
