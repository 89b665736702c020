"""What a function offers is read from its signature, through whatever stands before it and by whatever names libraries use."""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.declarations import advice_on_unread, unread
from conformance.adapter.registry import frameworks, resolve
from conformance.adapter.user_function import check_signature
from conformance.errors import UsageError
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from tests.fakes import correct
from tests.support.commands import invoke

MASKED = "attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=gaussian.1#1 mask=right-padding.1:b11k#47"
LENGTHS = "attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=gaussian.1#1 lengths=5,9"


def borrowed(query, key, value, attn_mask=None, is_causal=False, sm_scale=None):
    """The names of PyTorch and Pallas."""
    return correct(query, key, value, mask=attn_mask, causal=is_causal, scale=sm_scale)


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that forgets functools.wraps."""

    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


class Module:
    """Called as a torch module is: by a catch-all, which hands on to ``forward``."""

    def __init__(self, name: str = "forward") -> None:
        setattr(self, name, borrowed)
        self._name = name

    def __call__(self, *args, **kwargs):
        return getattr(self, self._name)(*args, **kwargs)


class Holder:
    """Keeps what it stands for in an attribute of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.inside = function

    def __call__(self, *args, **kwargs):
        return self.inside(*args, **kwargs)


def made(function: Callable[..., Any], **support: Any) -> Implementation:
    return Implementation("mine", function, Support(**support), frameworks()["numpy"])


def outcome(implementation: Implementation, text: str) -> Outcome:
    return Judge().values(Subject(implementation), parse(text)).verdict.outcome


@pytest.mark.parametrize(
    "function",
    [
        borrowed,
        unwrapped(borrowed),
        unwrapped(unwrapped(borrowed)),
        functools.partial(borrowed),
        functools.partial(Module()),
        Module(),
        Module("call"),
        Module("_orig_mod"),
        Holder(borrowed),
        Holder(Module()),
        functools.wraps(borrowed)(lambda *args, **kwargs: borrowed(*args, **kwargs)),
    ],
)
def test_features_are_read_through_what_stands_before_a_function(function) -> None:
    implementation = made(function)
    assert {"mask", "causal", "scale"} <= implementation.features
    assert outcome(implementation, MASKED) is Outcome.PASS


def test_modules_of_torch_and_what_it_compiles_are_read() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")

    class Layer(torch.nn.Module):
        def forward(self, query, key, value, attn_mask=None, is_causal=False):
            return value

    def function(query, key, value, *, attn_mask=None, is_causal=False):
        return value

    for subject in (Layer(), torch.compile(Layer()), torch.compile(function)):
        assert made(subject).calling.spelled == {"mask": "attn_mask", "causal": "is_causal"}


def test_what_was_settled_by_a_partial_is_not_asked_again() -> None:
    def attend(module, query, key, value, attn_mask=None, is_causal=False):
        return correct(query, key, value, mask=attn_mask, causal=is_causal)

    settled = made(functools.partial(unwrapped(attend), None))
    check_signature(settled)
    assert outcome(settled, MASKED) is Outcome.PASS
    with pytest.raises(UsageError, match="takes 2 positional parameters, where attention passes 3"):
        check_signature(made(functools.partial(correct, None)))


def test_own_parameters_are_not_lost_to_those_of_what_is_wrapped() -> None:
    def inner(query, key, value, causal=False):
        return correct(query, key, value, causal=causal)

    def outer(query, key, value, mask=None, scale=None, **more):
        return inner(query, key, value, **more)

    implementation = made(outer)
    assert {"mask", "scale", "causal"} <= implementation.features
    assert outcome(implementation, MASKED) is Outcome.WRONG_VALUE


def test_a_helper_is_not_taken_for_what_is_wrapped() -> None:
    def softmax(scores, axis=-1):
        return scores

    def attention(query, key, value, **unused):
        return softmax(value)

    check_signature(made(attention))
    assert made(attention).calling.spelled == {}


def test_parameters_by_position_alone_are_named() -> None:
    def attention(query, key, value, mask=None, /):
        return value

    assert unread(made(attention)) == ("mask",)


def test_a_declaration_is_found_behind_a_partial(tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import functools\nfrom conformance.adapter import Support\n"
        "def inner(query, key, value, flag=1): return value\n"
        "inner.conformance = Support(axes='blhd')\n"
        "attention = functools.partial(inner, flag=2)\n"
    )
    assert resolve(f"{file}:attention").support.axes == "blhd"


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("attention_mask", "mask"),
        ("attn_bias", "bias"),
        ("is_causal", "causal"),
        ("use_causal_mask", "causal"),
        ("softmax_scale", "scale"),
        ("scaling", "scale"),
        ("key_value_seq_lengths", "key-lengths"),
        ("src_key_padding_mask", "padding"),
    ],
)
def test_names_of_released_interfaces_are_recognised(name: str, feature: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def attention(query, key, value, {name}=None): return value", namespace)
    assert feature in made(namespace["attention"]).features


def test_a_mask_that_is_ignored_under_another_name_is_a_failure() -> None:
    def ignores(query, key, value, attn_mask=None):
        return correct(query, key, value)

    assert outcome(made(ignores), MASKED) is Outcome.WRONG_VALUE


def test_names_of_ones_own_are_declared() -> None:
    def own(query, key, value, what=None):
        return correct(query, key, value, mask=what)

    assert "mask" not in made(own).features
    implementation = made(own, parameters={"mask": "what"})
    assert outcome(implementation, MASKED) is Outcome.PASS
    assert unread(implementation) == ()


def test_one_parameter_may_stand_for_mask_and_bias() -> None:
    def either(query, key, value, attn_mask=None):
        kind = "mask" if attn_mask is not None and attn_mask.dtype == bool else "bias"
        scores = query @ key.swapaxes(-1, -2) / np.float32(query.shape[-1]) ** np.float32(0.5)
        if attn_mask is not None:
            scores = np.where(attn_mask, scores, -np.inf) if kind == "mask" else scores + attn_mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True)) @ value

    implementation = made(either, parameters={"mask": "attn_mask", "bias": "attn_mask"})
    assert implementation.exclusive == {"mask", "bias"}
    assert outcome(implementation, f"{MASKED} bias=gaussian.1:qk#3") is Outcome.PASS


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("text", [MASKED, LENGTHS])
def test_a_key_padding_mask_is_given_and_its_polarity_observed(inverted: bool, text: str) -> None:
    seen = []

    def attention(query, key, value, key_padding_mask=None):
        mask = None
        if key_padding_mask is not None:
            seen.append(key_padding_mask.shape)
            mask = (~key_padding_mask if inverted else key_padding_mask)[:, None, None]
        return correct(query, key, value, mask=mask)

    implementation = made(attention)
    assert outcome(implementation, text) is Outcome.PASS
    assert set(seen) == {(2, 13)}
    observed = Subject(implementation).convention("CON-PADDING-POLARITY")
    assert observed == ("true-ignores" if inverted else "true-attends")


def test_what_means_nothing_is_said() -> None:
    def attention(query, key, value, *args, dropout=0.0, **kwargs):
        return value

    assert unread(made(attention)) == ("dropout", "*args", "**kwargs")
    stranger, catch_all = advice_on_unread(made(attention))
    assert stranger.startswith("'dropout' means nothing to the suite and keeps its default")
    assert catch_all.startswith("what *args and **kwargs may hold cannot be read")
    assert unread(made(correct)) == advice_on_unread(made(correct)) == ()


@pytest.mark.parametrize(
    ("support", "sentence"),
    [
        ({"parameters": {"mask": "msk"}}, "'mask' is called 'msk', and the function has no such parameter"),
        ({"features": frozenset({"bias"})}, "offers 'bias', and the function has no parameter 'bias'"),
    ],
)
def test_what_is_declared_and_not_there_is_refused(support: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        check_signature(made(borrowed, **support))


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ("parameters={'masc': 'attn_mask'}", "Support.parameters names 'masc'"),
        ("mask_forms=()", "Support.mask_forms is empty, and a mask is offered"),
        ("dtypes=()", "Support.dtypes is empty"),
        ("layouts=()", "Support.layouts is empty"),
        ("features=frozenset({'mask'}), lacks=frozenset({'mask'})", "both offers and lacks 'mask'"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused(tmp_path, declaration: str, sentence: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def attention(query, key, value, attn_mask=None): return value\n"
        f"attention.conformance = Support({declaration})\n"
    )
    for command in (("run", "--implementation"), ("describe",), ("reproduce", MASKED, "--implementation")):
        result = invoke(*command, f"{file}:attention")
        assert result.exit_code == 2
        assert sentence in result.stderr


def test_a_catch_all_that_hands_on_to_what_was_read_holds_nothing_unknown() -> None:
    def named(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        implementation = Implementation("it", function, Support(), frameworks()["numpy"])
        return tuple(implementation.calling.spelled), unread(implementation)

    every = ("mask", "causal", "scale")
    for handed_on in (Module(), Module("call"), Holder(borrowed), unwrapped(borrowed), unwrapped(unwrapped(borrowed))):
        assert named(handed_on) == (every, ())

    inside = borrowed

    def with_more(*args, dropout=0.0, **kwargs):
        return inside(*args, **kwargs)

    def keeps(query, key, value, *more, **kwargs):
        return inside(query, key, value, *more, **kwargs)

    def swallows(*args, **kwargs):
        return np.zeros(3)

    assert named(swallows) == ((), ("*args", "**kwargs"))
    assert named(with_more) == (every, ("dropout",))
    assert named(keeps) == (every, ("*more",))
