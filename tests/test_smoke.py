"""What `smoke` says of adapters: of sound ones, of unsound ones, and of what is no fault of theirs."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import Result
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support
from conformance.commands import smoke
from conformance.judging import judge as judging
from tests.fakes import named
from tests.support.commands import invoke

PLAIN = Support(dtypes=("float32",), lacks=frozenset({"bias", "causal", "key-lengths", "scale"}))


def lines(function, support: Support = PLAIN) -> list[str]:
    return [str(finding) for finding in smoke.smoke(Implementation("mine", function, support, FRAMEWORK))]


def test_a_mask_form_that_fails_has_one_way_out():
    def attention(query, key, value, *, mask=None):
        if mask is not None and mask.ndim == 2:
            raise ValueError("four axes, please")
        return direct(query, key, value, mask=mask)

    (told,) = (line for line in lines(attention) if line.startswith("FAIL feature mask"))
    assert told.endswith("in the form qk, and works in b11k, b1qk, 1hqk, bhqk, bhq1: broadcast it, or leave that form out of "
                         "Support.mask_forms.")  # fmt: skip


def test_what_is_slow_for_each_new_shape_alone_is_asked_whether_it_compiles(monkeypatch):
    now, seen = [0.0], set()
    monkeypatch.setattr(judging, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def attention(query, key, value, *, mask=None):
        shapes = (query.shape, key.shape, value.shape, None if mask is None else mask.shape)
        now[0] += 0.001 if shapes in seen else 1.0
        seen.add(shapes)
        return direct(query, key, value, mask=mask)

    (told,) = (line for line in lines(attention) if line.startswith("note time"))
    assert "if each is compiled anew, declare Support(compiles=True)" in told
    seen.clear()
    declared = lines(attention, replace(PLAIN, compiles=True))
    assert not [line for line in declared if line.startswith("note time")]
    assert "ok   mask form qk" in declared and "ok   feature mask" in declared, (
        "each call has a line, and a time limit, of its own"
    )
    assert not [line for line in lines(direct) if line.startswith("note time")]


def lines_of(result: Result, state: str) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.startswith(state)]


def test_smoke_finds_an_correct_adapter_sound_and_says_what_it_tried() -> None:
    result = invoke("smoke", "numpy-direct")
    assert result.exit_code == 0
    assert not lines_of(result, "FAIL")
    for tried in (
        "float64, float32, float16, bfloat16",
        "bias, causal, cross-length, grouped-heads, key-lengths, mask, scale",
        "bhq1",
    ):
        assert tried in result.stdout


@pytest.mark.parametrize("name", ["numpy-multi-head", "numpy-sinusoidal"])
def test_smoke_reaches_every_feature_of_the_other_operations(name: str) -> None:
    declared = re.search(r"^features +(.+(?:\n +.+)*)", invoke("describe", name).stdout, re.MULTILINE)
    tried = re.search(r"^ok +features: (.+)$", invoke("smoke", name).stdout, re.MULTILINE)
    assert declared
    assert tried
    assert sorted(re.split(r",\s+", declared[1].strip())) == tried[1].split(", ")


@pytest.mark.parametrize(
    ("fake", "told"),
    [
        ("length_first", "looks transposed, and is right if all arrays are (batch, length, heads, width): say --axes blhd"),
        ("returns_length_first", "transposed, (batch, length, heads, width): swap the two axes"),
        ("merges_heads", "heads look merged"),
        ("doubles", "The output is float64, expected float32"),
        ("with_weights", "tuple"),
        ("no_groups", "feature grouped-heads: ValueError: as many key heads as query heads, please"),
        ("no_half", "dtype float16: TypeError: no float16 here"),
        ("misspelt", "'gruoped-heads', which the suite does not know: it knows bias, causal, cross-length, grouped-heads"),
    ],
)
def test_smoke_names_what_is_unsound(fake: str, told: str) -> None:
    result = invoke("smoke", named(fake))
    assert result.exit_code == 1
    assert told in "\n".join(lines_of(result, "FAIL"))


def test_smoke_says_each_thing_that_raises_and_goes_on() -> None:
    result = invoke("smoke", named("no_groups"))
    assert len(lines_of(result, "FAIL")) == 1
    assert "mask, value-width" in result.stdout


@pytest.mark.parametrize(
    ("fake", "told"),
    [
        ("zeros", "which `run` judges"),
        ("one_buffer", "two calls return the same memory"),
        ("other_names", "'dropout' means nothing to the suite and keeps its default"),
    ],
)
def test_smoke_notes_what_is_no_fault_of_the_adapter(fake: str, told: str) -> None:
    result = invoke("smoke", named(fake))
    assert result.exit_code == 0
    assert told in "\n".join(lines_of(result, "note"))


def test_the_options_that_smoke_suggests_fix_the_layout() -> None:
    assert invoke("smoke", named("length_first"), "--axes", "blhd").exit_code == 0
