"""Limits of shapes: problems are fitted to what an implementation takes, and what cannot be had is left out and counted."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct, multi_head

from conformance.adapter import Implementation, Support
from conformance.adapter.declarations import unknown_words
from conformance.adapter.limits import MOST_WORK, fitted, outside
from conformance.checks.items import Effort
from conformance.commands.describe import describe
from conformance.errors import LeftOut
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import MultiHeadProblem, parse
from conformance.specification import requirements
from tests.support.commands import invoke, run_command
from tests.support.items import run_item

TILES = Support(widths=(64,), multiples={"query_length": 128, "key_length": 128})
EVERY = [
    Support(widths=(64, 128)),
    TILES,
    Support(square=True, multiples={"key_length": 16}),
    Support(at_most={"query_length": 8, "key_length": 8, "heads": 2, "width": 4}),
    Support(causal="always", square=True),
    Support(causal="always", conventions={"CON-ALIGNMENT": "bottom-right"}),
]
WIDE = parse("attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=spread.1#1")
DECLINES = Support(declines=(NotImplementedError,))


def designed(operation: str = "attention"):
    return [p for r in requirements().values() if r.operation == operation for p in r.designed()]


def implementation(support: Support, function=direct, name: str = "limited") -> Implementation:
    conventions = {"CON-POLARITY": "true-attends", "CON-ALIGNMENT": "top-left"}
    return Implementation(name, function, replace(support, conventions={**conventions, **support.conventions}), FRAMEWORK)


@pytest.mark.parametrize("support", EVERY, ids=range(len(EVERY)))
def test_designed_problems_are_within_the_limits_once_they_are_fitted(support):
    left_out = 0
    for problem in designed():
        try:
            found = fitted(problem, support)
        except LeftOut:
            left_out += 1
            continue
        assert not outside(found, support), (problem.text, found.text)
        assert found == problem or outside(problem, support), "what is within the limits stays as it is"
        assert (found.query_length == found.key_length) >= (problem.query_length == problem.key_length)
        if not support.square and support.causal != "always":
            assert found.features == problem.features, "what differs stays different"
        assert found.work <= max(problem.work, 20 * MOST_WORK)
    assert left_out < len(designed()) / 2


def test_sizes_go_to_the_nearest_that_is_allowed():
    assert fitted(WIDE, Support(widths=(64, 128))).width == 64
    found = fitted(WIDE, Support(multiples={"query_length": 16, "key_length": 16}))
    assert (found.query_length, found.key_length) == (16, 32), "queries stay fewer than keys"
    assert fitted(WIDE, Support(at_most={"key_length": 9})).key_length == 9
    assert fitted(WIDE, Support(square=True)).query_length == 13


def test_key_lengths_keep_their_share():
    problem = WIDE.but(key_lengths=(13, 4))
    assert fitted(problem, Support(multiples={"key_length": 26})).key_lengths == (26, 8)


def test_multi_head_widths_are_those_of_a_head():
    problem = parse(
        "multi_head_attention batch=2 heads=3 length=7 model=15 inner=15 dtype=float32 values=gaussian.1#1 source=self "
        "projection=plain output=plain"
    )
    found = fitted(problem, Support(operation="multi_head_attention", widths=(16, 32)))
    assert isinstance(found, MultiHeadProblem)
    assert (found.inner_width, found.model_width) == (48, 48), "the model stays as wide as its heads"


def test_an_implementation_that_is_always_causal_is_asked_for_that_without_a_parameter():
    def always(query, key, value):
        return direct(query, key, value, causal=True)

    for requirement in ("ATT-OUT-001", "ATT-MASK-009", "ATT-MASK-010"):
        result = run_item(requirement, implementation(Support(causal="always"), always))
        assert result.item.outcome is Outcome.PASS, result.unexpected[:1]
    subject = Subject(implementation(Support(causal="always"), always))
    with pytest.raises(LeftOut, match="causal bottom-right"):
        subject.route(WIDE.but(causal="bottom-right"))


def test_a_kernel_for_multiples_is_judged_on_many_of_them():
    seen = set()

    def kernel(query, key, value):
        lengths = query.shape[2], key.shape[2]
        if any(length % 16 for length in lengths) or query.shape[3] not in (8, 16):
            raise ValueError(f"not for {query.shape} and {key.shape}")
        seen.add(lengths)
        return direct(query, key, value)

    support = Support(widths=(8, 16), multiples={"query_length": 16, "key_length": 16}, dtypes=("float32",))
    result = run_item("ATT-OUT-004", implementation(support, kernel), Effort(examples=40, free=True, seed=1))
    assert result.item.outcome is Outcome.PASS, result.unexpected[:1]
    assert result.item.counts.fitted and result.item.counts.random
    assert len(seen) >= 6, seen
    assert max(length for lengths in seen for length in lengths) >= 48


def test_what_is_wrong_beyond_the_first_multiple_is_caught():
    def forgets_later_tiles(query, key, value):
        return direct(query, key[:, :, :16], value[:, :, :16])

    support = Support(multiples={"query_length": 16, "key_length": 16}, dtypes=("float32",))
    assert run_item("ATT-OUT-004", implementation(support, forgets_later_tiles)).item.outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("requirement", ["ATT-OUT-023", "ATT-SCALE-011", "ATT-MASK-023"])
def test_transformations_and_float16_at_other_sizes_redden_nothing(requirement):
    """One query alone is no multiple; scores that float16 holds at a width of 8 overflow at 64, in correct code too."""

    def demanding(query, key, value, **named):
        assert query.shape[2] % 8 == key.shape[2] % 8 == 0
        assert query.shape[3] == 64
        return direct(query, key, value, **named)

    demanding.__signature__ = inspect.signature(direct)
    support = Support(widths=(64,), multiples={"query_length": 8, "key_length": 8})
    result = run_item(requirement, implementation(support, demanding))
    assert not result.item.outcome.is_failure, result.unexpected[:1]
    assert result.item.counts.left_out


def test_conventions_are_asked_within_the_limits():
    def picky(query, key, value, *, mask=None, causal=False, scale=None):
        assert key.shape[2] % 8 == 0
        assert query.shape[3] == 16
        return direct(query, key, value, mask=mask, causal=causal, scale=scale)

    subject = Subject(Implementation("picky", picky, Support(widths=(16,), multiples={"key_length": 8}), FRAMEWORK))
    assert subject.observe("CON-ALIGNMENT") == "top-left"
    assert subject.observe("CON-POLARITY") == "true-attends"
    assert subject.observe("CON-EMPTY-ROW") == Subject(implementation(Support())).observe("CON-EMPTY-ROW")
    assert subject.observe("CON-NEGATIVE-SCALE") == "ordinary"


@pytest.mark.parametrize(
    "limits",
    [
        {"at_most": {"batch": 1}},
        {"multiples": {"query_length": 128, "key_length": 128}},
        {"widths": (64, 128), "multiples": {"query_length": 128, "key_length": 128}, "square": True},
    ],
    ids=["batch", "multiples", "square"],
)
def test_places_of_a_question_are_fitted_and_an_invalid_request_stays_invalid(limits):
    seen = []

    def picky(query, key, value, *, mask=None, causal=False, scale=None, key_lengths=None):
        seen.append((query.shape[0], query.shape[2]))
        return direct(query, key, value, mask=mask, causal=causal, scale=scale, key_lengths=key_lengths)

    subject = Subject(Implementation("picky", picky, Support(**limits), FRAMEWORK))
    for convention in ("CON-NEGATIVE-SCALE", "CON-ZERO-SCALE"):
        found = subject.observation(convention)
        assert found.answer == "ordinary", found.places
        assert any("key lengths" in place for place in found.where["ordinary"])
    assert subject.observe("CON-GROUPS-REFUSED") == "refused"
    most, multiple = limits.get("at_most", {}).get("batch", 9), limits.get("multiples", {}).get("query_length", 1)
    assert all(batch <= most and length % multiple == 0 for batch, length in seen)


def test_golden_cases_are_never_fitted():
    result = run_item("ATT-OUT-001", implementation(Support(widths=(64,)), direct))
    assert result.item.counts.golden == 0
    assert result.item.counts.designed
    assert any("none of 64" in reason for reason in result.item.lacking)


def test_declined_calls_are_not_offered_and_other_exceptions_are_faults():
    def offers_float32(query, key, value):
        if query.dtype != np.float32:
            raise NotImplementedError("float32 only")
        return direct(query, key, value)

    result = run_item("ATT-OUT-001", implementation(DECLINES, offers_float32))
    assert result.item.outcome is Outcome.PASS
    assert result.item.counts.left_out
    assert "declined: NotImplementedError: float32 only" in result.item.lacking
    assert run_item("ATT-OUT-001", implementation(Support(), offers_float32)).item.outcome is Outcome.ERROR
    others = implementation(Support(declines=(KeyError,)), offers_float32)
    assert run_item("ATT-OUT-001", others).item.outcome is Outcome.ERROR


@pytest.mark.parametrize("where", ["conversion", "binding", "call"])
def test_a_call_may_be_declined_anywhere(where):
    def declining(place):
        if place == where:
            raise NotImplementedError(f"no such {place}")

    class Picky(type(FRAMEWORK)):
        def from_numpy(self, array, device):
            declining("conversion")
            return super().from_numpy(array, device)

    def bound(query, key, value):
        declining("binding")
        return lambda: declining("call")

    subject = Subject(Implementation("picky", bound, replace(DECLINES, binds=True), Picky()))
    with pytest.raises(LeftOut, match=f"declined: NotImplementedError: no such {where}"):
        Judge().values(subject, WIDE)


def test_a_refusal_of_a_declined_type_is_a_refusal():
    def multi(query, key, value, weights, *, num_heads):
        if query.shape[-1] % num_heads:
            raise NotImplementedError("heads must divide the width")
        return multi_head(query, key, value, weights, num_heads=num_heads)

    subject = Subject(implementation(replace(DECLINES, operation="multi_head_attention"), multi))
    assert subject.observe("CON-WIDTH-REFUSED") == "refused"


@pytest.mark.parametrize(
    ("support", "sentence"),
    [
        (Support(multiples={"lenght": 8}), "Support.multiples names 'lenght'"),
        (Support(multiples={"key_length": 0}), "whole number above 0"),
        (Support(at_most={"key_length": -1}), "whole number above 0"),
        (Support(widths=(0,)), "whole number above 0"),
        (Support(multiples={"key_length": 64}, at_most={"key_length": 32}), "no size is left"),
        (Support(widths=(64,), at_most={"width": 32}), "leave no width"),
        (Support(causal="sometimes"), "Support.causal names 'sometimes'"),
        (Support(causal="always", lacks=frozenset({"causal"})), "leave one of them out"),
        (Support(operation="sinusoidal_encoding", square=True), "mean nothing for sinusoidal_encoding"),
        (Support(operation="multi_head_attention", multiples={"kv_heads": 2}), "Support.multiples names 'kv_heads'"),
        (Support(declines=(Exception,)), "which faults raise too"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_that_mean_nothing_are_refused(support, sentence):
    assert any(sentence in told for told in unknown_words(support)), unknown_words(support)


def test_describe_tells_the_limits():
    support = replace(TILES, multiples={"key_length": 16}, causal="always", square=True, declines=(NotImplementedError,))
    told = " ".join(describe(implementation(support)).split())
    for words in ("widths 64", "key_length multiples of 16", "always causal", "declines NotImplementedError"):
        assert words in told


MOSTLY_DECLINED = """
from conformance.adapter import Support
from conformance.implementations.numpy_ import direct

def attention(query, key, value):
    if query.shape[2] != 5:
        raise NotImplementedError("another length, please")
    return direct(query, key, value)

masks = frozenset({"mask", "bias", "causal", "key-lengths"})
attention.conformance = Support(declines=(NotImplementedError,), lacks=masks)
"""


def test_a_run_that_declines_nearly_all_is_no_verdict(tmp_path):
    (tmp_path / "mine.py").write_text(MOSTLY_DECLINED)
    words = ("--tier", "quick", "-n", "0", "--no-timing", "--no-diagnosis")
    result = run_command("run", "--implementation", "mine.py:attention", *words, folder=tmp_path)
    assert result.returncode == 3, result.stdout[-2000:]
    told = " ".join(result.stdout.split())
    assert "INCONCLUSIVE: only" in told
    assert "Too little was judged for a verdict; besides, every result is as expected: " in told
    assert "problems within the features of mine.py:attention were judged" in told
    assert "Every result is as expected" not in told
    assert "Not asked" in told
    assert "another length, please" in told
    assert "## Not asked" in (tmp_path / "reports" / "summary.md").read_text()
    assert "INCONCLUSIVE: only" in invoke("report", tmp_path / "reports" / "records.jsonl").output
