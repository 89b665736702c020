"""Faults in dealing with the caller's memory: inputs that are changed, outputs that lie in an input."""

import numpy as np

from conformance.faults.calls import ATTENTION, MULTI_HEAD, SINUSOIDAL, Act, Call, Memory, called
from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, OUT

Array = np.ndarray


def _changing(name: str) -> Act:
    """The input ``name`` is changed by the call, whose output is right."""

    def act(call: Call, memory: Memory) -> Array:
        right, array = call.right(), call.arrays().get(name)
        if array is not None:
            array[...] = ~array if array.dtype == bool else array * array.dtype.type(2)
        return right

    return act


def _borrowing(call: Call, memory: Memory) -> Array:
    query = call.arrays()["query"]
    np.negative(query, out=query)
    np.negative(query, out=query)
    return call.right()


def _mask_and_triangle(call: Call, memory: Memory) -> Array:
    right, mask = call.right(), call.named.get("mask")
    if mask is not None and call.named.get("causal"):
        mask &= np.tri(*mask.shape[-2:]) > 0
    return right


def _clipped_lengths(call: Call, memory: Memory) -> Array:
    right, lengths = call.right(), call.named.get("key_lengths")
    if lengths is not None:
        np.minimum(lengths, lengths.min(), out=lengths)
    return right


def _scaled_float16(call: Call, memory: Memory) -> Array:
    right, query = call.right(), call.arguments[0]
    if query.dtype == np.float16:
        query *= np.float16(0.5)
    return right


def _bias_beside_mask(call: Call, memory: Memory) -> Array:
    right, bias = call.right(), call.named.get("bias")
    if bias is not None and "mask" in call.named:
        bias[...] = np.where(np.isfinite(bias), bias + bias.dtype.type(1), bias)
    return right


def _gaps(call: Call, memory: Memory) -> Array:
    """A row is written with its gaps: the elements of the caller that lie between its own are set to 0."""
    right, key = call.right(), call.arguments[1]
    owner = key.base
    if isinstance(owner, np.ndarray) and owner.size > key.size:
        kept = key.copy()
        owner[...] = 0
        key[...] = kept
    return right


def _weights_with_biases(call: Call, memory: Memory) -> Array:
    right, weights = call.right(), call.arguments[3]
    if weights.query_bias is not None:
        weights.query[...] *= weights.query.dtype.type(0.5)
    return right


def _into(name: str) -> Act:
    """The output is written over the input ``name`` where it fits, and that is returned."""

    def act(call: Call, memory: Memory) -> Array:
        right, array = call.right(), call.arrays().get(name)
        if array is None or array.shape != right.shape:
            return right
        array[...] = right
        return array

    return act


def _value_itself(call: Call, memory: Memory) -> Array:
    query, key, value = call.arguments
    if key.shape[2] > 1 or query.shape[1] != key.shape[1] or call.named:
        return call.right()
    return np.broadcast_to(value, (*query.shape[:3], value.shape[3]))


_MASKS = (("mask", "mask"), ("key_lengths", "key-lengths"))  # inputs, and the features that bring them
FAULTS: tuple[Fault, ...] = (
    *(
        called(of, f"changes-{name.replace('.', '-').replace('_', '-')}", f"changes its input {name}", _changing(name),
               (of.untouched,), (), needs)
        for of, names in (
            (ATTENTION, (("query", ""), ("key", ""), ("value", ""), *_MASKS, ("bias", "bias"))),
            (MULTI_HEAD, (("query", ""), *_MASKS, ("weights.query", ""), ("weights.output", ""),
                          ("weights.output_bias", "output-bias"))),
            (SINUSOIDAL, (("x", "addition"),)),
        )
        for name, needs in names
    ),
    called(ATTENTION, "draws-triangle-into-mask", "writes the causal triangle into the caller's mask where there are both",
           _mask_and_triangle, MASK(16) + OUT(28), (), "mask causal"),
    called(ATTENTION, "clips-key-lengths-in-place", "clips the caller's key lengths in place", _clipped_lengths,
           MASK(17) + OUT(28), (), "key-lengths"),
    called(ATTENTION, "scales-float16-query-in-place", "scales the caller's query in place, in float16 only", _scaled_float16,
           OUT(28, 5), dtypes=("float16",)),
    called(ATTENTION, "adds-to-bias-beside-mask", "adds to the caller's bias in place where there is a mask too",
           _bias_beside_mask, MASK(19) + OUT(28), (), "mask bias"),
    called(ATTENTION, "writes-between-elements", "writes to the memory between the elements of a key with gaps", _gaps, OUT(31)),
    called(MULTI_HEAD, "scales-weights-with-biases-in-place",
           "scales the caller's weights in place where the projections have biases", _weights_with_biases, HEAD(29), (),
           "projection-bias"),
    called(ATTENTION, "borrows-query", "writes to the query while it works, and puts it back", _borrowing, (),
           equivalent="Nobody reads the inputs between the beginning and the end of a call."),
    *(
        called(of, f"writes-over-{name}", f"returns the memory of {name} with the output in it, where it fits", _into(name),
               (of.unaliased, of.untouched))
        for of, name in ((ATTENTION, "query"), (MULTI_HEAD, "query"), (SINUSOIDAL, "x"))
    ),
    called(ATTENTION, "hands-out-value", "returns a view of V where there is a single key", _value_itself, OUT(29)),
)  # fmt: skip
