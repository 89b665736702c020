"""The built-in implementations: conversion keeps numbers and strides, each agrees with a calculation by hand."""

import sys
from contextlib import nullcontext
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conformance.adapter import Surrounds, registry
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.numerics.dtypes import DTYPES, float_type
from conformance.problem import LAYOUTS, parse
from conformance.values import materialise
from conformance.values.layouts import lay_out
from tests.support.builtin import ALL, call, identity_weights, judge_all, of, tokens, usable, usable_framework

# ---- frameworks


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("framework", registry.frameworks())
def test_conversion_keeps_dtype_and_numbers(framework, dtype):
    framework = usable_framework(framework)
    array = np.array([[0.0, -1.5], [float_type(dtype).tiny, np.inf]]).astype(float_type(dtype).numpy)
    there = framework.from_numpy(array.copy(), "cpu")
    assert there.dtype == framework.dtype_of(dtype)
    back = framework.to_numpy(there)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("kind", [np.bool_, np.int64])
@pytest.mark.parametrize("framework", registry.frameworks())
def test_conversion_keeps_masks_and_lengths(framework, kind):
    framework = usable_framework(framework)
    array = np.array([[1, 0, 1]], dtype=kind)
    with framework.surroundings("float64") if isinstance(framework, Surrounds) else nullcontext():
        back = framework.to_numpy(framework.from_numpy(array, "cpu"))
    assert back.dtype == kind
    assert np.array_equal(back, array)


@pytest.mark.parametrize("framework", registry.frameworks())
def test_what_is_no_array_of_the_framework_is_a_type_error(framework):
    framework = usable_framework(framework)
    for foreign in ([1.0], None, "text"):
        with pytest.raises(TypeError, match=type(foreign).__name__):
            framework.to_numpy(foreign)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "expanded", "columns", "heads-last", "misaligned"])
def test_torch_keeps_strides_and_gaps(layout, dtype):
    framework = usable_framework("torch")
    array = lay_out(np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5).astype(float_type(dtype).numpy), layout)
    tensor = framework.from_numpy(array, "cpu")
    assert tensor.stride() == tuple(stride // array.itemsize for stride in array.strides)
    assert np.array_equal(framework.to_numpy(tensor), array)
    assert (tensor.data_ptr() % 16 != 0) == (layout == "misaligned")
    if layout == "strided":  # what lies behind an element is the NaN of the gap
        beside = tensor.as_strided((1,), (1,), tensor.storage_offset() + 1)
        assert np.isnan(framework.to_numpy(beside).astype(float)).all()


LAYING = (
    "attention batch=2 heads=2 length=5 width=4 dtype={} values=gaussian.1#1 mask=random.1:bhqk#1 bias=gaussian.1:qk#1 layout={}"
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["numpy-direct", "torch-direct"])
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "reversed"])
def test_an_implementation_gets_its_arguments_as_they_are_laid_out(name, layout, dtype):
    """Strides, what is shared between arguments, and where they begin; numbers that nobody else writes to."""
    implementation = usable(name)
    seen = {}

    def look(query, key, value, **named):
        seen.update({"query": query, "key": key, "value": value, **named})
        return query

    problem = parse(LAYING.format(dtype, layout))
    inputs = materialise(problem)
    support = replace(implementation.support, exclusive=frozenset(), features=frozenset({"mask", "bias"}))
    subject = Subject(replace(implementation, function=look, support=support))
    subject.prepare(inputs, subject.route(problem)).run()
    for argument in ("query", "key", "value", "mask", "bias"):
        given, laid = seen[argument], getattr(inputs, argument)
        strides = given.strides if name == "numpy-direct" else [stride * given.element_size() for stride in given.stride()]
        assert tuple(strides) == laid.strides
        address = given.ctypes.data if name == "numpy-direct" else given.data_ptr()
        misaligned = layout == "misaligned" and argument in ("query", "key", "value")
        assert (address % 16 != 0) == misaligned or layout in ("packed", "strided")
        assert not np.may_share_memory(implementation.framework.to_numpy(given), laid)
    shares = implementation.framework.shares_memory
    if name == "torch-direct":
        assert shares(seen["query"], seen["key"]) == shares(seen["key"], seen["value"]) == (layout == "packed")


def test_torch_takes_read_only_arrays_without_sharing_them():
    framework = usable_framework("torch")
    array = np.broadcast_to(np.arange(3.0), (2, 3))
    tensor = framework.from_numpy(array, "cpu")
    tensor[0, 0] = 7.0
    assert array[0, 0] == 0.0


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_shared_memory_is_seen(framework):
    framework = usable_framework(framework)
    array = framework.from_numpy(np.arange(4.0), "cpu")
    assert framework.shares_memory(array, array[1:])
    assert not framework.shares_memory(array, framework.from_numpy(np.arange(4.0), "cpu"))


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_missing_framework_is_named_with_what_to_install(framework, monkeypatch):
    monkeypatch.setitem(sys.modules, framework, None)
    sentence = registry.frameworks()[framework].missing("cpu")
    assert sentence == f"{framework} is not installed: pip install 'attention-conformance[{framework}]'."


def test_a_missing_device_is_named(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cuda = [name for name in ALL if name.startswith("torch-cuda-")]
    assert len(on_cuda) == 5
    assert {ALL[name].missing() for name in on_cuda} == {"torch finds no CUDA device."}


# ---- calculations by hand


@pytest.mark.parametrize("name", of("attention"))
def test_attention_by_hand(name):
    """Scores 0 and ln 3 give the weights 1/4 and 3/4; the scale 1/√4 is the default one. In 32 bit or, if need be, 16."""
    implementation = usable(name)
    kind = float_type("float32" if "float32" in implementation.support.dtypes else "float16")
    dtype = kind.numpy
    query = np.zeros((2, 2, 1, 4))
    query[..., 0] = 2.0
    key = np.zeros((2, 2, 2, 4))
    key[:, :, 1, 0] = np.log(3.0)
    value = np.zeros((2, 2, 2, 4))
    value[:, :, 1] = [4.0, 8.0, -4.0, 1.0]
    output = call(implementation, *(array.astype(dtype) for array in (query, key, value)))
    assert output.dtype == dtype
    expected = np.broadcast_to([3.0, 6.0, -3.0, 0.75], output.shape)
    np.testing.assert_allclose(output.astype(float), expected, rtol=8 * kind.unit_roundoff)


@pytest.mark.parametrize("name", of("multi_head_attention"))
def test_multi_head_attention_by_hand(name):
    implementation = usable(name)
    projected = "no-output-bias" in implementation.features
    x = tokens()
    output = call(implementation, x, x, x, identity_weights(projected), num_heads=1)
    expected = x[:, :1] * np.array([0.75, 0.5])[None, :, None]
    np.testing.assert_allclose(output, expected, rtol=1e-7)


@pytest.mark.parametrize("name", of("sinusoidal_encoding"))
def test_sinusoidal_encoding_by_hand(name):
    implementation = usable(name)
    dtype = implementation.framework.dtype_of("float32")
    table = call(implementation, 2, 2, dtype=dtype)
    expected = np.array([[0.0, 1.0], [0.8414709848, 0.5403023059]])
    np.testing.assert_allclose(table, expected, atol=1e-6)
    x = np.ones((3, 2, 2), np.float32)
    np.testing.assert_allclose(call(implementation, 2, 2, dtype=dtype, x=x), 1.0 + np.stack([expected] * 3), atol=1e-6)


@pytest.mark.parametrize("name", [name for name in of("sinusoidal_encoding") if "concatenated" in ALL[name].features])
def test_sinusoidal_arrangements_hold_the_same_numbers(name):
    implementation = usable(name)
    dtype = implementation.framework.dtype_of("float64")
    woven = call(implementation, 9, 7, dtype=dtype)
    joined = call(implementation, 9, 7, dtype=dtype, arrangement="concatenated")
    assert np.array_equal(np.concatenate((woven[:, 0::2], woven[:, 1::2]), axis=1), joined)


# ---- problems, judged


ATTENTION = (
    "attention batch=2 heads=6/2 length=5/37 width=8 dtype={} values=spread.1#1 mask=random.1:b1qk#2 causal=bottom-right",
    "attention batch=2 heads=3 length=33 width=8 dtype={} values=heavy.1#3 causal=top-left lengths=31,2",
    "attention batch=2 heads=2 length=4/30 width=8/6 dtype={} values=signatures.1#4 bias=holes.1:1hqk#5 scale=0.7",
    "attention batch=2 heads=2 length=3 width=8 dtype={} values=spread.1#6 mask=random.1:bhqk#7 layout=strided",
    "attention batch=2 heads=2 length=3/7 width=8 dtype={} values=gaussian.1#8",
)
_MULTI_HEAD = "multi_head_attention batch=2 heads=2 length={} model=8 inner=8 dtype=float32 values=gaussian.1#1 "
MULTI_HEAD = (
    _MULTI_HEAD.format("5") + "projection=bias output=bias source=self mask=random.1:{}#2 causal=top-left",
    _MULTI_HEAD.format("5/3") + "projection=plain output=plain source=cross mask=random.1:{}#4 lengths=3,2",
    _MULTI_HEAD.format("4") + "projection=plain output=none source=self mask=left-padding.1:{}#6",
)
MASKED = ("numpy-multi-head", "jax-multi-head", "torch-mha", "torch-mha-weights", "document-003-multi-head")


@pytest.mark.parametrize("name", of("attention"))
def test_attention_is_within_its_budget(name):
    support = ALL[name].support
    dtypes = support.dtypes[-1:] if support.compiles else support.dtypes  # a compilation takes longer than all the rest
    assert len(judge_all(name, [text.format(dtype) for text in ATTENTION for dtype in dtypes])) >= 3 * len(dtypes)


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_queries_is_no_mask_of_keys_where_heads_and_queries_are_single(name):
    text = (
        "multi_head_attention batch=3 heads=1 length={} model=2 inner=2 dtype=float32 values=gaussian.1*3.0#1 projection=plain "
    )
    texts = [
        text.format("1/9") + "source=memory output=plain mask=all.1:bhq1#5",
        text.format("1") + "output=plain mask=all.1:bhq1#5",
    ]
    assert judge_all(name, texts)


@pytest.mark.parametrize("form", ["qk", "b11k", "b1qk", "1hqk", "bhqk"])
@pytest.mark.parametrize("name", MASKED)
def test_multi_head_attention_is_within_its_budget(name, form):
    assert len(judge_all(name, [text.format(form) for text in MULTI_HEAD])) >= 2


# ---- adapters that only a GPU needs, on the CPU


def three(width: int, value_width: int, query_length: int = 3, key_length: int = 5):
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 4, query_length, width), (2, 2, key_length, width), (2, 2, key_length, value_width))
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_padding_of_widths_changes_nothing():
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    from conformance.implementations.pytorch import direct
    from conformance.implementations.pytorch_sdpa import with_padded_widths

    query, key, value = three(5, 7)
    for named in ({}, {"scale": 0.3}, {"causal": True}):
        padded = with_padded_widths("MATH")(query, key, value, **named)()
        assert padded.shape == (2, 4, 3, 7)
        torch.testing.assert_close(padded, direct(query, key, value, **named), rtol=1e-12, atol=1e-12)


def test_a_backend_that_takes_no_single_key_says_so():
    from conformance.implementations.pytorch_sdpa import with_padded_widths

    with pytest.raises(Unsupported, match="a single key"):
        with_padded_widths("MATH", one_key=False)(*three(8, 8, key_length=1))


def test_a_backend_without_masks_is_causal_from_the_bottom_right():
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    from conformance.implementations.pytorch import direct
    from conformance.implementations.pytorch_sdpa import without_mask

    query, key, value = three(8, 8)
    expected = direct(query, key, value, causal=True, alignment="bottom-right")
    torch.testing.assert_close(without_mask("MATH")(query, key, value, causal=True), expected, rtol=1e-12, atol=1e-12)


def test_bfloat16_is_computed_in_float32_by_numpy():
    """512 equal weights: a sum kept in bfloat16 would stop at 256 of them."""
    query, key = (np.zeros((1, 1, length, 1), ml_dtypes.bfloat16) for length in (1, 512))
    value = np.ones((1, 1, 512, 1), ml_dtypes.bfloat16)
    for name in ("numpy-direct", "numpy-blocked", "numpy-einsum"):
        assert call(ALL[name], query, key, value).item() == 1.0
