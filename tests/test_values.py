"""Values: the same bits everywhere and for ever under one version, and distributions, masks and transformations that do what they
say."""

import hashlib

import numpy as np
import pytest

from conformance.errors import ProblemError
from conformance.features.bias import BIASES
from conformance.features.mask import MASKS
from conformance.harness.given import memory_of
from conformance.numerics.dtypes import DTYPES
from conformance.numerics.philox import Stream
from conformance.oracle import expect
from conformance.problem import LAYOUTS, MASK_FORMS, AttentionProblem, MultiHeadProblem, Problem, Recipe, parse
from conformance.problem.inputs import AttentionInputs, Inputs
from conformance.problem.visibility import visible_pairs
from conformance.values import materialise
from conformance.values.distributions import DISTRIBUTIONS
from conformance.values.multihead_transformations import MULTI_HEAD_TRANSFORMATIONS
from conformance.values.transformations import TRANSFORMATIONS
from tests.support.pinned_recipes import PINNED

SHAPE = "attention batch=2 heads=4/2 length=5/7 width=8/7 dtype=float32"
MULTI_HEAD = (
    "multi_head_attention batch=2 heads=3 length=5 model=6 inner=6 dtype=float32 values=gaussian.1#4 source=self projection=bias "
    "output=bias lengths=3,4"
)


def problems() -> dict[str, Problem]:
    """One problem of each recipe there is."""
    found: dict[str, Problem] = {}
    base = parse(f"{SHAPE} values=gaussian.1#3")
    assert isinstance(base, AttentionProblem)
    for name in DISTRIBUTIONS.names():
        found[f"distribution {name}"] = base.but(values=Recipe(name, 3))
    for name in MASKS.names():
        found[f"mask {name}"] = base.but(mask=Recipe(name, 5, "bhqk", 3.0 if name == "first-tile" else None))
    for name in BIASES.names():
        found[f"bias {name}"] = base.but(bias=Recipe(name, 5, "bhqk", 3.0 if name == "first-tile" else None))
    masked = base.but(mask=Recipe("right-padding", 6, "b11k"))
    for name in TRANSFORMATIONS.names():
        shape = {"kv_heads": 4, "key_length": 5, "value_width": 8} if name == "one-tensor" else {}
        biased = {"bias": Recipe("gaussian", 5, "qk")} if name == "middle-bias" else {}
        found[f"transformation {name}"] = masked.but(transformations=(Recipe(name, 7),), **shape, **biased)
    multi = parse(MULTI_HEAD)
    assert isinstance(multi, MultiHeadProblem)
    found["multi-head"] = multi
    found["multi-head shared"] = multi.but(weights="shared")
    for name in MULTI_HEAD_TRANSFORMATIONS.names():
        fields = {"source": "cross"} if name in ("hidden-key", "hidden-value") else {}
        if name == "middle-mask":
            fields["mask"] = Recipe("random", 5, "qk")
        found[f"multi-head transformation {name}"] = multi.but(transformations=(Recipe(name, 7),), **fields)
    return found


def digest(inputs: Inputs) -> str:
    bits = hashlib.sha256()
    mask = getattr(inputs, "mask", None)
    for name, array in {**inputs.arrays(), **({} if mask is None else {"mask": mask})}.items():
        bits.update(f"{name} {array.dtype.name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return bits.hexdigest()[:16]


def test_every_recipe_gives_the_bits_of_its_version():
    made = {name: digest(materialise(problem)) for name, problem in problems().items()}
    assert made == PINNED


def test_streams_are_keyed_by_seed_and_tensor_and_stay():
    assert Stream(1, "query").words((2,)).tolist() == [1386294051110952485, 18147817048375502686]
    assert (Stream(1, "query").words((9,)) != Stream(1, "key").words((9,))).all()
    assert (Stream(1, "query").words((9,)) != Stream(2, "query").words((9,))).all()


def test_streams_are_distributed_as_they_say():
    normal, uniform = Stream(5, "value").normal(20_000), Stream(5, "key").uniform(20_000)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.02
    assert np.abs(normal).max() < 2 * np.sqrt(3)
    assert 0 < uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert set(np.unique(Stream(5, "mask").below(3, 1000))) == {0, 1, 2}
    for count in range(2, 9):
        order = Stream(5, "edit").permutation(count)
        assert sorted(order) == list(range(count))
        assert (order != np.arange(count)).any()


# --------------------------------------------------------------------------------------------------------------- distributions


def scores(inputs: AttentionInputs) -> np.ndarray:
    group = inputs.query.shape[1] // inputs.key.shape[1]
    key = np.repeat(inputs.key.astype(np.float64), group, axis=1)
    return inputs.query.astype(np.float64) @ key.swapaxes(-1, -2) / np.sqrt(inputs.query.shape[-1])


@pytest.mark.parametrize(
    ("values", "dtype", "near"),
    [
        ("offset.1*100000.0", "float32", 1e5),
        ("offset.1*10000.0", "float16", 1e4),
        ("all-low.1*-100000.0", "float32", -1e5),
        ("all-low.1*-16000.0", "float16", -1.6e4),
        ("large-products.1*100000.0", "float16", 1e5 / np.sqrt(8)),
    ],
)
def test_distributions_of_far_scores_put_them_where_they_say_with_ordinary_differences(values, dtype, near):
    inputs = materialise(parse(f"attention batch=2 heads=2 length=5/30 width=8 dtype={dtype} values={values}#1"))
    found = scores(inputs)
    assert np.abs(found / near - 1).max() < 0.01
    assert 0.5 < found.std(axis=-1).mean() < 4
    if values.startswith("large"):
        assert (found * np.sqrt(8) > 65504).all()


@pytest.mark.parametrize(("amount", "dtype"), [(1e5, "float32"), (-16000.0, "float16"), (200.0, "bfloat16")])
def test_far_scores_are_equal_but_for_one_key_in_three_rows_of_four(amount, dtype):
    inputs = materialise(parse(f"attention batch=2 heads=2 length=6/13 width=8 dtype={dtype} values=far.1*{amount}#1"))
    found = scores(inputs) - amount
    apart, level = np.sort(found[..., [0, 2, 3, 4], :], axis=-1), found[..., [1, 5], :]
    assert np.abs(apart[..., :-1]).max() < 0.01 * abs(amount)
    assert np.abs(apart[..., -1] / abs(amount) - 0.125).max() < 0.01
    assert np.ptp(level, axis=-1).max() < 3
    assert (level.argmax(axis=-1) == 0).mean() > 0.8
    assert (np.abs(inputs.value[:, :, 0].astype(np.float64)) == 64).all()


def test_far_scores_have_a_key_that_a_causal_row_sees():
    text = "attention batch=2 heads=3 length=13 width=8 dtype=float32 values=far.1*100000.0#1 causal=top-left"
    best = scores(materialise(parse(text))).argmax(axis=-1)
    apart = np.arange(13) % 4 != 1
    assert (best <= np.arange(13))[..., apart].all()


def test_frontier_is_loudest_at_the_edge_of_the_triangle():
    for causal, offset in (("top-left", 0), ("bottom-right", 6)):
        problem = parse(f"attention batch=1 heads=2 length=7/13 width=16 dtype=float32 values=frontier.1#2 causal={causal}")
        order = np.argsort(scores(materialise(problem)), axis=-1)
        for row in range(6):
            loudest = set(order[0, 0, row, -2:].tolist())
            assert loudest == {row + offset, row + offset + 1}


def test_signatures_tell_rows_and_heads_by_their_value():
    value = materialise(parse(f"{SHAPE} values=signatures.1#2")).value
    assert np.array_equal(np.round(value.mean(axis=(2, 3))), [[1, 2], [3, 4]])


# -------------------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("name", [name for name in MASKS.names() if name not in ("empty-rows", "all-but-one", "band")])
def test_masks_leave_a_key_to_each_row(name):
    argument = "*3.0" if name == "first-tile" else ""
    for form in ("qk", "b11k", "b1qk", "1hqk", "bhqk"):
        mask = materialise(parse(f"{SHAPE} values=gaussian.1#1 mask={name}.1:{form}{argument}#4")).mask
        assert mask.any(axis=-1).all()


def test_one_key_may_be_named():
    for form in ("qk", "b11k", "bhqk"):
        shown, hidden = (
            materialise(parse(f"{SHAPE} values=gaussian.1#1 mask={name}.1:{form}*2.0#4")).mask
            for name in ("one-key", "all-but-one")
        )
        assert (shown == (np.arange(7) == 2)).all()
        assert np.array_equal(shown, ~hidden)


def test_masks_differ_along_each_axis_of_their_form():
    mask = materialise(parse(f"{SHAPE} values=gaussian.1#1 mask=random.1:bhqk#4")).mask
    for axis in range(4):
        first = np.take(mask, [0], axis=axis)
        assert (first != mask).any()


def test_a_mask_that_would_hide_everything_is_refused():
    with pytest.raises(ProblemError, match="would hide all of 7 keys"):
        materialise(parse(f"{SHAPE} values=gaussian.1#1 mask=first-tile.1:qk*7.0#0"))


# -------------------------------------------------------------------------------------------------------------- transformations


def output(text: str) -> np.ndarray:
    return expect(materialise(parse(text)), "strict").output.astype(np.float64)


@pytest.mark.parametrize(
    "transformation", ["permute-keys", "duplicate-keys", "negate-query-and-key", "hidden-value", "hidden-key", "loud-hidden"]
)
def test_transformations_that_must_not_move_the_output_do_not(transformation):
    text = f"{SHAPE} values=spread.1#1 mask=right-padding.1:b11k#6"
    np.testing.assert_allclose(output(f"{text} edits={transformation}.1#3"), output(text), rtol=1e-12, atol=1e-12)
    assert digest(materialise(parse(f"{text} edits={transformation}.1#3"))) != digest(materialise(parse(text)))


@pytest.mark.parametrize(
    ("transformation", "axis", "kept"),
    [("perturb-batch.1*1.0", 0, [0]), ("perturb-head.1*1.0", 1, [0, 1]), ("perturb-query.1*2.0", 2, [0, 1, 3, 4])],
)
def test_transformations_of_one_part_move_that_part_only(transformation, axis, kept):
    text = f"{SHAPE} values=spread.1#1"
    before, after = output(text), output(f"{text} edits={transformation}#3")
    moved = [i for i in range(before.shape[axis]) if i not in kept]
    assert np.array_equal(np.take(before, kept, axis), np.take(after, kept, axis))
    assert (np.take(before, moved, axis) != np.take(after, moved, axis)).all()


def test_a_suffix_moves_no_causal_row_before_it():
    text = "attention batch=2 heads=2 length=7 width=8 dtype=float32 values=spread.1#1 causal=top-left"
    before, after = output(text), output(f"{text} edits=suffix.1*3.0#3")
    assert np.array_equal(before[:, :, :3], after[:, :, :3])
    assert (before[:, :, 3:] != after[:, :, 3:]).all()


def test_a_row_alone_is_the_row():
    text = f"{SHAPE} values=spread.1#1 mask=random.1:bhqk#2 bias=gaussian.1:b1qk#2"
    np.testing.assert_array_equal(output(f"{text} edits=batch-row.1*1.0#0"), output(text)[1:])
    np.testing.assert_allclose(output(f"{text} edits=query-row.1*2.0#0"), output(text)[:, :, 2:3], rtol=1e-12)


@pytest.mark.parametrize("amount", [-2e4, -1e6, -1e10])
def test_low_visible_lowers_what_is_seen_and_nothing_else(amount):
    text = f"{SHAPE} values=spread.1#1 mask=right-padding.1:b11k#6 edits=low-visible.1*{amount}#0"
    inputs = materialise(parse(text))
    found, visible = scores(inputs), visible_pairs(inputs)
    assert np.abs(found[visible] / amount - 1).max() < 0.01
    assert np.abs(found[~visible]).max() < 100


def test_special_numbers_stand_where_they_are_put():
    inputs = materialise(parse(f"{SHAPE} values=gaussian.1#1 edits=put-value.1*inf#0,put-query.1*nan#0"))
    assert np.argwhere(np.isinf(inputs.value)).tolist() == [[0, 0, 3, 3], [0, 1, 3, 3]]
    assert np.argwhere(np.isnan(inputs.query)).tolist() == [[0, h, 2, 4] for h in range(4)]
    zeros = materialise(parse(f"{SHAPE} values=gaussian.1#1 edits=put-zeros.1#0"))
    assert (np.signbit(zeros.key) & (zeros.key == 0)).any()


def test_multi_head_transformations():
    text = MULTI_HEAD
    np.testing.assert_allclose(output(f"{text} edits=permute-heads.1#1"), output(text), atol=1e-12)
    np.testing.assert_array_equal(output(f"{text} edits=batch-row.1*0.0#1"), output(text)[:1])
    loud = output(f"{text} edits=loud-hidden.1#1")
    assert np.array_equal(loud[0, :3], output(text)[0, :3])
    assert not np.array_equal(loud[0, 3:], output(text)[0, 3:])
    for transformation in ("loud-hidden", "low-visible", "suffix"):
        inputs = materialise(parse(f"{text} edits={transformation}.1#1"))
        assert inputs.query is inputs.key is inputs.value


def test_what_multi_head_attention_hides_does_not_move_its_output():
    text = MULTI_HEAD.replace("source=self", "source=cross")
    for transformation in ("hidden-key", "hidden-value", "loud-hidden"):
        inputs = materialise(parse(f"{text} edits={transformation}.1#1"))
        assert any(not np.array_equal(array, materialise(parse(text)).arrays()[name]) for name, array in inputs.arrays().items())
        np.testing.assert_array_equal(output(f"{text} edits={transformation}.1#1"), output(text))


@pytest.mark.parametrize("transformation", ["hidden-key", "hidden-value"])
def test_self_attention_has_no_key_or_value_of_its_own_to_hide(transformation):
    with pytest.raises(ProblemError, match="need source=cross"):
        materialise(parse(f"{MULTI_HEAD} edits={transformation}.1#1"))


@pytest.mark.parametrize("source", ["self", "cross"])
def test_a_suffix_moves_no_causal_row_of_multi_head_attention_before_it(source):
    text = MULTI_HEAD.replace("lengths=3,4", "causal=top-left").replace("source=self", f"source={source}")
    before, after = output(text), output(f"{text} edits=suffix.1*3.0#3")
    assert np.array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).all()


@pytest.mark.parametrize("weights", ["full", "shared"])
@pytest.mark.parametrize("amount", [-2e4, -1e10])
def test_low_visible_lowers_the_scores_that_the_projections_make(amount, weights):
    problem = parse(f"{MULTI_HEAD.replace('projection=bias', 'projection=plain')} edits=low-visible.1*{amount}#0")
    assert isinstance(problem, MultiHeadProblem)
    inputs = materialise(problem.but(weights=weights))
    heads = [
        (inputs.query.astype(np.float64) @ matrix).reshape(2, 5, 3, 2) for matrix in (inputs.weights.query, inputs.weights.key)
    ]
    found = np.einsum("bqhd,bkhd->bhqk", *heads) / np.sqrt(2.0)
    for row, seen in enumerate((3, 4)):  # in self-attention the hidden tokens are queries too, of ordinary scores
        low = found[row, :, :seen, :seen]
        assert np.abs(low / amount - 1).max() < 0.01
        assert np.abs(found[row, :, :, seen:]).max() < 100


@pytest.mark.parametrize("distribution", ["heavy.1#1", "gaussian.1*2.0#1"])
def test_positions_are_added_to_an_x_of_one_distribution(distribution):
    with pytest.raises(ProblemError, match="gaussian only"):
        materialise(parse(f"sinusoidal_encoding length=4 width=6 dtype=float32 batch=2 values={distribution}"))


def test_low_visible_needs_a_channel_for_each_head():
    with pytest.raises(ProblemError, match="a channel for each of 6 heads"):
        materialise(parse(f"{MULTI_HEAD.replace('heads=3', 'heads=6').replace('model=6', 'model=5')} edits=low-visible.1#0"))


# ------------------------------------------------------------------------------------------------------------- layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_same_numbers_in_another_order(layout):
    problem = parse(f"{SHAPE} values=gaussian.1#1")
    assert isinstance(problem, AttentionProblem)
    plain, laid = materialise(problem), materialise(problem.but(layout=layout))
    for name, array in laid.arrays().items():
        expected = plain.arrays()[name]
        assert np.array_equal(array, np.repeat(expected[:1], 2, axis=0) if layout == "expanded" else expected)
        of_key_alone = layout in ("mixed", "key-columns") and name != "key"
        contiguous = layout in ("contiguous", "misaligned") or layout.startswith("mask") or of_key_alone
        assert array.flags.c_contiguous == contiguous
    strides = laid.query.strides
    signs = {"expanded": strides[0] == 0, "reversed": strides[2] < 0, "transposed": strides[1] < strides[2]}
    fastest = {"columns": 2, "heads-last": 1, "batch-last": 0}
    assert signs.get(layout, True)
    assert layout not in fastest or strides[fastest[layout]] == laid.query.itemsize
    assert laid.key.strides[2] == laid.key.itemsize or layout != "key-columns"
    for array in laid.arrays().values():
        begin = array if layout == "misaligned" else memory_of(array)
        assert (begin.ctypes.data % 16 != 0) == (layout == "misaligned")


@pytest.mark.parametrize("dtype", DTYPES)
def test_misaligned_arrays_begin_one_element_behind_a_multiple_of_64_bytes(dtype):
    inputs = materialise(parse(f"{SHAPE.replace('float32', dtype)} values=gaussian.1#1 layout=misaligned"))
    assert all(array.ctypes.data % 64 == array.itemsize for array in inputs.arrays().values())


@pytest.mark.parametrize(("lengths", "together"), [("5", ("query", "key", "value")), ("5/7", ("key", "value"))])
def test_packed_inputs_share_one_buffer(lengths, together):
    inputs = materialise(
        parse(f"attention batch=2 heads=4/2 length={lengths} width=3/5 dtype=float32 values=gaussian.1#1 layout=packed")
    )
    owners = {}
    for name, array in inputs.arrays().items():
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners.setdefault(id(array), []).append(name)
    assert tuple(max(owners.values(), key=len)) == together
    # values lie before keys where the two are alone: code that takes the first of a shared buffer for the keys shows
    assert (inputs.value.ctypes.data < inputs.key.ctypes.data) == (len(together) == 2)


@pytest.mark.parametrize("layout", ["mask-strided", "mask-transposed", "mask-expanded"])
@pytest.mark.parametrize("form", MASK_FORMS)
def test_masks_and_biases_are_laid_out_and_say_the_same(layout, form):
    text = f"{SHAPE} values=gaussian.1#1 mask=random.1:{form}#1 bias=gaussian.1:{form}#1"
    plain, laid = materialise(parse(text)), materialise(parse(f"{text} layout={layout}"))
    for name in ("mask", "bias"):
        array, expected = getattr(laid, name), getattr(plain, name)
        assert array.shape == expected.shape
        if layout == "mask-expanded":
            shared = (0,) if form == "qk" else (0, 1)
            assert all(array.strides[axis] == 0 for axis in shared)
            expected = np.broadcast_to(
                expected[tuple(slice(0, 1) if axis in shared else slice(None) for axis in range(array.ndim))], array.shape
            )
        assert np.array_equal(array, expected)
        assert array.flags.c_contiguous is False or 1 in array.shape[-2:]


def test_an_transformation_that_changes_lengths_is_refused_beside_causal() -> None:
    text = "attention batch=1 heads=1 length=5/7 width=4 dtype=float32 values=gaussian.1#0 {}edits=duplicate-keys.1#0"
    assert materialise(parse(text.format(""))).key.shape[2] == 14
    with pytest.raises(ProblemError, match="does not go with causal"):
        materialise(parse(text.format("causal=bottom-right ")))
