"""The designed cases can fail: each known fault, put into a small implementation that is right, is seen where it has to be."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from conformance.cases.admissible import reference_profile
from conformance.features.causal import offset as causal_offset
from conformance.judging.verdict import Outcome, judge
from conformance.numerics.dtypes import round_to
from conformance.oracle import expect
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, SinusoidalInputs
from conformance.specification import requirements
from conformance.specification.requirement import Requirement, nothing
from conformance.values import materialise


@dataclass
class Parts:
    """The steps of attention that a fault may replace; arrays in float32, or float64 for float64 inputs."""

    group: Callable = lambda head, group, kv_heads: head // group
    scale: Callable = lambda inputs, default: default if inputs.scale is None else inputs.scale
    mask: Callable = lambda mask: mask
    bias: Callable = lambda bias, scale: bias
    lengths: Callable = lambda lengths: lengths
    diagonal: Callable = lambda offset, query_length, key_length: offset
    uses: Callable = lambda causal, mask: (causal, mask)
    hide: Callable = lambda scores, hidden: np.where(hidden, -np.inf, scores)
    top: Callable = lambda scores: scores.max(axis=-1, keepdims=True)
    exponentials: Callable = lambda exponentials, dtype: exponentials
    weights: Callable = lambda exponentials, hidden, dtype: exponentials / exponentials.sum(axis=-1, keepdims=True)
    output: Callable = lambda output: output


def attention(inputs: AttentionInputs, parts: Parts) -> np.ndarray:
    dtype = inputs.query.dtype.name
    work = np.float64 if dtype == "float64" else np.float32
    heads, query_length, width = inputs.query.shape[1:]
    kv_heads, key_length = inputs.key.shape[1:3]
    reads = [parts.group(head, heads // kv_heads, kv_heads) for head in range(heads)]
    query, key, value = inputs.query.astype(work), inputs.key.astype(work)[:, reads], inputs.value.astype(work)[:, reads]
    scale = work(parts.scale(inputs, 1 / np.sqrt(width)))
    scores = query @ key.swapaxes(-1, -2) * scale
    if inputs.softcap is not None:
        scores = work(inputs.softcap) * np.tanh(scores / work(inputs.softcap))
    if inputs.bias is not None:
        scores = scores + parts.bias(four(inputs.bias.astype(work)), scale)
    hidden = np.zeros(scores.shape, bool)
    causal, mask = parts.uses(inputs.causal, inputs.mask)
    if mask is not None:
        hidden |= ~parts.mask(four(mask))
    if causal != "none":
        offset = parts.diagonal(causal_offset(causal, query_length, key_length), query_length, key_length)
        hidden |= np.arange(key_length) > np.arange(query_length)[:, None] + offset
    lengths = None if inputs.key_lengths is None else parts.lengths(inputs.key_lengths)
    if lengths is not None:
        hidden |= np.arange(key_length) >= lengths[:, None, None, None]
    if inputs.window is not None:
        left, right, *corner = inputs.window
        offset = key_length - query_length if "bottom-right" in (*corner, causal) else 0
        distance = np.arange(key_length) - np.arange(query_length)[:, None] - offset
        hidden |= (distance < (-np.inf if left is None else -left)) | (distance > (np.inf if right is None else right))
    if inputs.sinks is not None:  # a key of its own, with V = 0
        sinks = np.broadcast_to(inputs.sinks.astype(work)[:, None, None], (*scores.shape[:3], 1))
        scores, hidden = np.concatenate([scores, sinks], -1), np.concatenate([hidden, np.zeros(sinks.shape, bool)], -1)
        value = np.concatenate([value, np.zeros((*value.shape[:2], 1, value.shape[3]), work)], axis=2)
    scores = parts.hide(scores, hidden)
    exponentials = parts.exponentials(np.exp(scores - parts.top(scores)), dtype)
    return round_to(parts.output(parts.weights(exponentials, hidden, dtype) @ value), dtype)


def four(array: np.ndarray) -> np.ndarray:
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def running_sum(exponentials: np.ndarray, hidden: np.ndarray, dtype: str) -> np.ndarray:
    """The normaliser added up in the dtype of the inputs."""
    total = np.zeros(exponentials.shape[:-1], exponentials.dtype)
    for key in range(exponentials.shape[-1]):
        total = round_to(total + exponentials[..., key], dtype).astype(exponentials.dtype)
    return exponentials / total[..., None]


def without_last_tile(exponentials: np.ndarray, dtype: str) -> np.ndarray:
    keys = exponentials.shape[-1]
    return np.where(np.arange(keys) < max(1, keys // 64) * 64, exponentials, 0)


def fill(number: float) -> Parts:
    return Parts(hide=lambda scores, hidden: np.where(hidden, scores.dtype.type(number), scores))


@dataclass
class Fault:
    """A fault, and the requirements each of which has to see it."""

    parts: Parts
    seen_by: str


FAULTS: dict[str, Fault] = {
    "tiled groups": Fault(Parts(group=lambda head, group, kv_heads: head % kv_heads), "HEAD-001 HEAD-003 HEAD-004 HEAD-005"),
    "scale 1/d": Fault(Parts(scale=lambda i, default: default**2), "SCALE-001 SCALE-002 SCALE-003"),
    "no scale": Fault(Parts(scale=lambda i, default: 1.0), "SCALE-001 SCALE-004"),
    "scale of the model width": Fault(Parts(scale=lambda i, default: default / i.query.shape[1] ** 0.5), "SCALE-003"),
    "scale of the value width": Fault(Parts(scale=lambda i, default: i.value.shape[-1] ** -0.5), "SCALE-002"),
    "scale of d + 1": Fault(Parts(scale=lambda i, default: (i.query.shape[-1] + 1) ** -0.5), "SCALE-001"),
    "scale in float16": Fault(Parts(scale=lambda i, default: np.float16(i.scale or default)), "SCALE-001 SCALE-005 SCALE-007"),
    "scale of channels in use": Fault(
        Parts(scale=lambda i, default: max(1, np.any(i.query != 0, axis=(0, 1, 2)).sum()) ** -0.5), "SCALE-004"
    ),
    "scale ignored": Fault(Parts(scale=lambda i, default: default), "SCALE-005 SCALE-006 SCALE-007 SCALE-008"),
    "scale on top": Fault(Parts(scale=lambda i, default: default * (i.scale or 1)), "SCALE-005 SCALE-006 SCALE-007 SCALE-008"),
    "bias scaled": Fault(Parts(bias=lambda bias, scale: bias * scale), "SCALE-009 MASK-007"),
    "bias of head 0": Fault(Parts(bias=lambda bias, scale: bias[:, :1]), "MASK-007"),
    "infinite bias ignored": Fault(Parts(bias=lambda bias, scale: np.where(np.isinf(bias), 0, bias)), "MASK-008"),
    "mask inverted": Fault(Parts(mask=lambda mask: ~mask), "MASK-001 MASK-002 MASK-003 MASK-004 MASK-005 MASK-006 MASK-030"),
    "mask of batch row 0": Fault(Parts(mask=lambda mask: mask[:1]), "MASK-002 MASK-003 MASK-005 MASK-026"),
    "mask of head 0": Fault(Parts(mask=lambda mask: mask[:, :1]), "MASK-004 MASK-005 MASK-027 HEAD-004"),
    "mask of query 0": Fault(Parts(mask=lambda mask: mask[:, :, :1]), "MASK-001 MASK-003 MASK-006"),
    "mask ignored": Fault(
        Parts(uses=lambda causal, mask: (causal, None)), "MASK-001 MASK-002 MASK-016 MASK-019 MASK-028 MASK-029 MASK-037"
    ),
    "mask drops causal": Fault(
        Parts(uses=lambda causal, mask: ("none" if mask is not None else causal, mask)), "MASK-016 MASK-040"
    ),
    "causal drops mask": Fault(
        Parts(uses=lambda causal, mask: (causal, mask if causal == "none" else None)), "MASK-016 MASK-040"
    ),
    "lengths ignored": Fault(Parts(lengths=lambda lengths: None), "MASK-017 MASK-018 MASK-039"),
    "lengths of batch row 0": Fault(Parts(lengths=lambda lengths: lengths[:1]), "MASK-017 MASK-018 MASK-039"),
    "one key too many": Fault(
        Parts(diagonal=lambda offset, q, k: offset + 1), "MASK-009 MASK-010 MASK-011 MASK-012 MASK-013 MASK-014 MASK-035 MASK-036"
    ),
    "one key too few": Fault(
        Parts(diagonal=lambda offset, q, k: offset - 1), "MASK-009 MASK-010 MASK-011 MASK-012 MASK-013 MASK-015"
    ),
    "always from the top left": Fault(Parts(diagonal=lambda offset, q, k: 0), "MASK-011 MASK-013 MASK-015 MASK-038"),
    "always from the bottom right": Fault(Parts(diagonal=lambda offset, q, k: k - q), "MASK-010 MASK-012 MASK-014 MASK-038"),
    "limit per group of four rows": Fault(
        Parts(diagonal=lambda offset, q, k: (offset + 3 - np.arange(q) % 4)[:, None]), "MASK-009 MASK-035 MASK-036"
    ),
    "fill -10": Fault(fill(-10.0), "MASK-003 MASK-021 MASK-022"),
    "fill -1e4": Fault(fill(-1e4), "MASK-023 MASK-024 MASK-025 MASK-041"),
    "fill -1e5": Fault(fill(-1e5), "MASK-024 MASK-041"),
    "fill -1e9": Fault(fill(-1e9), "MASK-041"),
    "fill -1e20": Fault(fill(-1e20), "MASK-041"),
    "mask multiplied": Fault(Parts(hide=lambda scores, hidden: np.where(hidden, 0, scores)), "MASK-001 MASK-021 MASK-022"),
    "mask after softmax": Fault(
        Parts(hide=lambda s, hidden: s, weights=lambda e, hidden, d: np.where(hidden, 0, e / e.sum(-1, keepdims=True))),
        "MASK-001 MASK-009 MASK-022",
    ),
    "no maximum": Fault(Parts(top=lambda scores: 0), "OUT-007 SCALE-010 SCALE-011 SCALE-012 SCALE-014"),
    "maximum from 0": Fault(
        Parts(top=lambda scores: np.maximum(scores.max(-1, keepdims=True), 0)), "SCALE-010 SCALE-014 MASK-032"
    ),
    "one maximum for all": Fault(Parts(top=lambda scores: scores.max()), "OUT-021"),
    "softmax over queries": Fault(Parts(weights=lambda e, hidden, d: e / e.sum(-2, keepdims=True)), "OUT-013 OUT-021 OUT-023"),
    "last tile dropped": Fault(Parts(exponentials=without_last_tile), "OUT-036 MASK-036"),
    "last key dropped": Fault(
        Parts(exponentials=lambda e, d: np.where(np.arange(e.shape[-1]) < e.shape[-1] - 1, e, 0)), "OUT-010 OUT-017"
    ),
    "a weight lost after normalising": Fault(
        Parts(weights=lambda e, hidden, d: (e / e.sum(-1, keepdims=True)) * (np.arange(e.shape[-1]) > 0)),
        "OUT-008 OUT-009 OUT-013",
    ),
    "sum in the dtype of the inputs": Fault(Parts(weights=running_sum), "OUT-038"),
    "guarded normaliser": Fault(Parts(weights=lambda e, hidden, d: e / (e.sum(-1, keepdims=True) + 1e-6)), "OUT-003 OUT-009"),
    "float32 inside": Fault(Parts(output=lambda output: output.astype(np.float32)), "OUT-003"),
    "NaN removed": Fault(Parts(output=np.nan_to_num), "NUM-001 NUM-002 NUM-003"),
    "heads rolled": Fault(Parts(output=lambda output: np.roll(output, 1, axis=1)), "OUT-004 OUT-015 OUT-020"),
    "values clipped": Fault(Parts(output=lambda output: np.clip(output, -1e3, 1e3)), "OUT-012 NUM-006 NUM-010"),
}


def outcomes(identifier: str, function: Callable) -> list[Outcome]:
    """What becomes of a requirement's designed cases; a fault that raises counts as seen."""
    found = []
    for problem in requirements()[f"ATT-{identifier}"].designed():
        inputs = materialise(problem)
        with np.errstate(all="ignore"):
            output = function(inputs)
        found.append(judge(output, expect(inputs, reference_profile(problem.dtype))).outcome)
    return found


def is_designed(requirement: Requirement) -> bool:
    """Whether it has problems of its own, whoever is asked, and answers to them."""
    return requirement.designed is not nothing


@pytest.mark.parametrize("area", ["OUT", "SCALE", "MASK", "HEAD", "NUM"])
def test_the_implementation_without_a_fault_passes(area):
    for identifier, requirement in requirements().items():
        if requirement.area == area and requirement.operation == "attention" and is_designed(requirement):
            found = outcomes(identifier.removeprefix("ATT-"), lambda inputs: attention(inputs, Parts()))
            assert set(found) == {Outcome.PASS}, identifier


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_seen(name):
    fault = FAULTS[name]
    for identifier in fault.seen_by.split():
        found = outcomes(identifier, lambda inputs: attention(inputs, fault.parts))
        assert any(outcome.is_failure for outcome in found), f"ATT-{identifier} does not see {name!r}"


# --------------------------------------------------------------------------------------------------------- multi-head


def multi_head(inputs: MultiHeadInputs, split: Callable, merge: Callable, scale: Callable, parts: Parts) -> np.ndarray:
    weights, dtype = inputs.weights, inputs.query.dtype.name
    work = np.float64 if dtype == "float64" else np.float32

    def project(x, matrix, bias):
        product = x.astype(work) @ matrix.astype(work)
        return split(product if bias is None else product + bias.astype(work), inputs.num_heads)

    plain = AttentionInputs(
        query=project(inputs.query, weights.query, weights.query_bias),
        key=project(inputs.key, weights.key, weights.key_bias),
        value=project(inputs.value, weights.value, weights.value_bias),
        mask=inputs.mask, causal=inputs.causal, key_lengths=inputs.key_lengths, window=inputs.window, softcap=inputs.softcap,
        sinks=inputs.sinks,
    )  # fmt: skip
    merged = merge(attention(plain.but(scale=scale(inputs, plain)), parts))
    if weights.output is None:
        return round_to(merged, dtype)
    product = merged @ weights.output.astype(work)
    return round_to(product if weights.output_bias is None else product + weights.output_bias.astype(work), dtype)


def split_right(array, heads):
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def merge_right(array):
    return array.swapaxes(1, 2).reshape(array.shape[0], array.shape[2], -1)


RIGHT = {
    "split": split_right,
    "merge": merge_right,
    "scale": lambda inputs, plain: plain.query.shape[-1] ** -0.5,
    "parts": Parts(),
}
MULTI_HEAD_FAULTS = {
    "split by a view": ({"split": lambda a, heads: a.reshape(a.shape[0], heads, a.shape[1], -1)}, "HEAD-011 HEAD-013 HEAD-016"),
    "interleaved heads": (
        {"split": lambda a, heads: a.reshape(*a.shape[:2], -1, heads).transpose(0, 3, 1, 2)},
        "HEAD-011 HEAD-012 HEAD-017",
    ),
    "merge by a view": ({"merge": lambda a: a.reshape(a.shape[0], a.shape[2], -1)}, "HEAD-010 HEAD-012"),
    "merge in reverse order": ({"merge": lambda a: merge_right(a[:, ::-1])}, "HEAD-010 HEAD-012"),
    "scale of the model width": ({"scale": lambda inputs, plain: inputs.query.shape[-1] ** -0.5}, "HEAD-016 HEAD-018"),
    "fill -1e4": ({"parts": fill(-1e4)}, "HEAD-033"),
    "fill -1e9": ({"parts": fill(-1e9)}, "HEAD-033"),
    "fill -1e20": ({"parts": fill(-1e20)}, "HEAD-033"),
    "no maximum": ({"parts": Parts(top=lambda scores: 0)}, "HEAD-032"),
    "other alignment": ({"parts": Parts(diagonal=lambda offset, lq, lk: lk - lq - offset)}, "HEAD-021"),
    "query projection transposed": ({}, "HEAD-007 HEAD-013"),
    "output projection transposed": ({}, "HEAD-009"),
    "projection biases ignored": ({}, "HEAD-008"),
    "output bias ignored": ({}, "HEAD-009"),
    "causal ignored": ({}, "HEAD-021"),
    "padding ignored": ({}, "HEAD-022 HEAD-023 HEAD-024"),
    "key and value from the query": ({}, "HEAD-014"),
}


def faulty_inputs(name: str, inputs: MultiHeadInputs) -> MultiHeadInputs:
    """The inputs as a faulty implementation would read them."""
    weights = inputs.weights
    changed = {
        "query projection transposed": lambda: {"query": weights.query.T},
        "output projection transposed": lambda: {"output": weights.output.T},
        "projection biases ignored": lambda: {"query_bias": None, "key_bias": None, "value_bias": None},
        "output bias ignored": lambda: {"output_bias": None},
    }
    if name in changed:
        return inputs.but(weights=replace(weights, **changed[name]()))
    if name == "causal ignored":
        return inputs.but(causal="none")
    if name == "padding ignored":
        return inputs.but(mask=None, key_lengths=None)
    if name == "key and value from the query" and inputs.key.shape == inputs.query.shape:
        return inputs.but(key=inputs.query, value=inputs.query)
    return inputs


def test_multi_head_without_a_fault_passes():
    for identifier, requirement in requirements().items():
        if requirement.operation == "multi_head_attention" and is_designed(requirement):
            found = outcomes(identifier.removeprefix("ATT-"), lambda inputs: multi_head(inputs, **RIGHT))
            assert set(found) == {Outcome.PASS}, identifier


@pytest.mark.parametrize("name", MULTI_HEAD_FAULTS)
def test_multi_head_faults_are_seen(name):
    parts, seen_by = MULTI_HEAD_FAULTS[name]
    for identifier in seen_by.split():
        found = outcomes(identifier, lambda inputs: multi_head(faulty_inputs(name, inputs), **RIGHT | parts))
        assert any(outcome.is_failure for outcome in found), f"ATT-{identifier} does not see {name!r}"


# --------------------------------------------------------------------------------------------------------- sinusoidal


def exponent_of_timing(pair: np.ndarray, width: int) -> np.ndarray:
    return pair / max(1, (width + 1) // 2 - 1)


def sinusoidal(
    inputs: SinusoidalInputs,
    first: int = 0,
    exponent: Callable = lambda pair, width: 2 * pair / width,
    frequency: Callable = lambda power: 10000.0**-power,
    angle: Callable = lambda positions, frequencies, dtype: positions * frequencies,
    add: Callable = lambda x, table: x + table,
) -> np.ndarray:
    concatenated = inputs.arrangement == "concatenated"
    if inputs.frequencies == "d/2-1":
        exponent = exponent_of_timing
    columns, half = np.arange(inputs.width), (inputs.width + 1) // 2
    pair, cosine = (columns % half, columns >= half) if concatenated else (columns // 2, columns % 2 == 1)
    positions = np.arange(first, first + inputs.length)[:, None].astype(np.float64)
    angles = angle(positions, frequency(exponent(pair, inputs.width))[None], inputs.dtype)
    table = np.where(cosine, np.cos(angles), np.sin(angles))
    if inputs.x is not None:
        table = add(inputs.x.astype(np.float64), table)
    return round_to(table, inputs.dtype)


SINUSOIDAL_FAULTS = {
    "counts from 1": ({"first": 1}, "POS-001 POS-002 POS-005 POS-006"),
    "doubled exponent": ({"exponent": lambda pair, width: 4 * pair / width}, "POS-001 POS-004 POS-014"),
    "exponent of the column": ({"exponent": lambda pair, width: np.arange(width) / width}, "POS-001 POS-010 POS-011"),
    "first frequency one step late": ({"exponent": lambda pair, width: 2 * (pair + 1) / width}, "POS-003 POS-001"),
    "last frequency 1/10000": ({"exponent": lambda pair, width: pair / max(1, width // 2 - 1)}, "POS-004 POS-001"),
    "multiplied by the wavelength": ({"frequency": lambda power: 10000.0**power}, "POS-001 POS-004"),
    "angle in 16 bit": (
        {"angle": lambda p, f, dtype: round_to(round_to(p, "bfloat16").astype(np.float64) * f, "bfloat16").astype(np.float64)},
        "POS-005 POS-012 POS-013",
    ),
    "angle in float16 for float16": (
        {"angle": lambda p, f, d: round_to(p * round_to(f, "float16").astype(np.float64), "float16").astype(np.float64)},
        "POS-013",
    ),
    "position of the batch row": (
        {"add": lambda x, table: x + table[: x.shape[0], None] if x.shape[0] <= len(table) else x},
        "POS-008 POS-009",
    ),
    "added to the first batch row only": ({"add": lambda x, t: np.concatenate([x[:1] + t, x[1:]])}, "POS-008"),
    "not added": ({"add": lambda x, table: x}, "POS-008 POS-009"),
}


def test_sinusoidal_without_a_fault_passes():
    for identifier, requirement in requirements().items():
        if requirement.operation == "sinusoidal_encoding" and is_designed(requirement):
            assert set(outcomes(identifier.removeprefix("ATT-"), sinusoidal)) == {Outcome.PASS}, identifier


@pytest.mark.parametrize("name", SINUSOIDAL_FAULTS)
def test_sinusoidal_faults_are_seen(name):
    parts, seen_by = SINUSOIDAL_FAULTS[name]
    for identifier in seen_by.split():
        found = outcomes(identifier, lambda inputs: sinusoidal(inputs, **parts))
        assert any(outcome.is_failure for outcome in found), f"ATT-{identifier} does not see {name!r}"
