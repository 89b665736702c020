"""The right ways to compute attention of this package as implementations, each under the profile that goes with it."""

from collections.abc import Callable

import numpy as np

from conformance.adapter import Implementation, Support, registry
from conformance.evaluation import correct_merges as merges
from conformance.evaluation import correct_variants as plain
from conformance.faults.functions import CONVENTIONS
from conformance.operations import operation_of
from conformance.problem import LAYOUTS
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
HALF = ("float16", "bfloat16")
FULL = {"float64": "strict", "float32": "strict"}
EVERYWHERE = FULL | dict.fromkeys(HALF, "inner32")
MERGED = {dtype: f"{profile}+merges" for dtype, profile in EVERYWHERE.items()}
THROUGH_LSE = {dtype: f"{profile}+lse" for dtype, profile in EVERYWHERE.items()}


def _implementation(
    name: str, compute: Callable[[AttentionInputs], Array], profiles: dict[str, str] = EVERYWHERE, flushes: tuple[str, ...] = ()
) -> Implementation:
    """``profiles`` by dtype, of all that it computes."""

    def output(inputs: AttentionInputs) -> Array:
        with np.errstate(all="ignore"):
            return compute(inputs).astype(inputs.query.dtype)

    support = Support(
        dtypes=tuple(profiles),
        layouts=LAYOUTS,
        profile=profiles,
        conventions=CONVENTIONS,
        flushes=flushes,
    )
    return Implementation(f"correct-{name}", operation_of("attention").function(output), support, registry.frameworks()["numpy"])


def variants() -> dict[str, Implementation]:
    """All of them, by name."""
    made = (
        _implementation("powers-of-two", plain.powers_of_two),
        _implementation("log-sum-exp", plain.log_sum_exp),
        _implementation("odd-tiles", plain.odd_tiles),
        _implementation("three-splits", plain.three_splits),
        _implementation("one-by-one", plain.one_by_one),
        _implementation("in-float32", plain.in_float32),
        _implementation("rounded-weights", plain.rounded_weights, dict.fromkeys(HALF, "fused")),
        _implementation("rounded-query", plain.rounded_query, dict.fromkeys(HALF, "fused_q")),
        _implementation("biased-powers-of-two", merges.biased_powers_of_two),
        _implementation("merged-by-lse", merges.merged_by_lse),
        _implementation("weighed-by-lse", merges.weighed_by_lse, THROUGH_LSE),
        _implementation("moved-by-sigmoids", merges.moved_by_sigmoids, MERGED),
        _implementation("normalised-by-lse", merges.normalised_by_lse, THROUGH_LSE),
        _implementation("compensated", merges.compensated),
        _implementation("fused-multiply-add", merges.fused_multiply_add),
        _implementation("lazily-rescaled", merges.lazily_rescaled),
        _implementation("channels-in-halves", merges.channels_in_halves),
        _implementation("keys-first", merges.keys_first),
        _implementation("pairs-of-sums", merges.pairs_of_sums),
        _implementation("three-products", merges.three_products, {"float32": "bf16x3"}),
        _implementation("short-products", merges.short_products, {"float32": "tf32"}),
        _implementation("flushing", merges.flushing, {"float16": "fused"}, flushes=("float16",)),
    )
    return {implementation.name: implementation for implementation in made}


def specs() -> tuple[str, ...]:
    """What ``registry.resolve`` takes for each of them, in other processes too."""
    return tuple(f"{__name__}:{name.removeprefix('correct-').replace('-', '_')}" for name in variants())


def __getattr__(name: str) -> Implementation:
    found = variants().get(f"correct-{name.replace('_', '-')}")
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
