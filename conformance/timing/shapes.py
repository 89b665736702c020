"""The shapes at which calls are timed: those of published attention benchmarks by name, in sizes that a CPU can bear.

Absolute sizes are smaller than the originals, what a suite varies is not: ``Suite.source`` says what was scaled.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import UsageError, quoted
from conformance.operations import operations
from conformance.operations.attention import in_sizes as attention
from conformance.problem import Problem, Recipe

FEATURES = ("listed", "plain", "causal", "mask")


@dataclass(frozen=True)
class Suite:
    """``shapes`` by operation and name; ``trains``: whether a backward pass makes sense there."""

    meaning: str
    source: str
    shapes: Mapping[str, Mapping[str, Problem]]
    trains: bool = True


TIMED: dict[str, Mapping[str, Problem]] = {name: operation.timed() for name, operation in operations().items()}

SUITES: dict[str, Suite] = {
    "cpu-small": Suite(
        "one of each: a batch of short sequences, a causal prompt, a decoding step, grouped heads; the other operations too",
        "this project; a conformance run with --timing uses it",
        TIMED,
    ),
    "prefill": Suite(
        "a causal prompt that gets longer",
        "PyTorch, benchmarks/transformer/sdpa.py: batches 1 … 16, 16 or 32 heads, lengths 512 … 8192; here 1, 4, 128 … 512",
        {"attention": {f"L{n}": attention(1, 4, 4, n, n, causal="top-left") for n in (128, 256, 512)}},
    ),
    "decode": Suite(
        "one query against a cache that gets longer: bound by memory, so bytes a second are shown",
        "FlashInfer and flash-decoding: one query, caches of up to 128k keys; here 512 … 8192, batch 2, 8 heads over 2",
        {"attention": {f"Lk{n}": attention(2, 8, 2, 1, n) for n in (512, 2048, 8192)}},
        trains=False,
    ),
    "gqa": Suite(
        "the same work with fewer and fewer key heads",
        "PyTorch, benchmarks/transformer/sdpa.py: heads 16/16, 16/2, 32/32, 32/4 at 512 … 8192; here 8/8, 8/2, 8/1 at 256",
        {"attention": {f"H8-{kv}": attention(1, 8, kv, 256, 256, causal="top-left") for kv in (8, 2, 1)}},
    ),
    "long": Suite(
        "lengths at which memory for all scores begins to matter",
        "tritonbench, flash_attention: batch 4, 48 heads, width 64, lengths 2^7 … 2^14; here 1, 1, 2^9 … 2^11",
        {"attention": {f"L{n}": attention(1, 1, 1, n, n) for n in (512, 1024, 2048)}},
    ),
    "paper": Suite(
        "a constant number of tokens in fewer and longer sequences, widths of 64 and 128",
        "Dao 2023 (FlashAttention-2), section 4.1: 16k tokens, model width 2048, lengths 512 … 16k; here 1024 tokens, width 128",
        {
            "attention": {
                f"B{1024 // n}-L{n}-d{width}": attention(1024 // n, 128 // width, 128 // width, n, n, width)
                for width in (64, 128)
                for n in (128, 1024)
            }
        },
    ),
}

LADDER = (128, 256, 512, 1024, 2048)  # lengths for growth, the same in query and key


def rung(length: int) -> Problem:
    """The problem of a ladder's ``length``."""
    return attention(1, 1, 1, length, length)


def describe_suites() -> str:
    """Each suite: what it varies, where it comes from, its shapes."""
    lines = []
    for name, suite in SUITES.items():
        lines += [f"{name}: {suite.meaning}", f"  after: {suite.source}" + ("" if suite.trains else "; forward only")]
        lines += [f"  {shape}: {problem.text}" for shapes in suite.shapes.values() for shape, problem in shapes.items()]
    return "\n".join(lines)


def suites(names: tuple[str, ...]) -> dict[str, Suite]:
    """The suites of these names, all without one. Raises UsageError for a name that is none."""
    for name in names:
        if name not in SUITES:
            raise UsageError(f"Unknown suite of shapes {quoted(name)}: there are {', '.join(SUITES)}.")
    return {name: suite for name, suite in SUITES.items() if not names or name in names}


def as_offered(problem: Problem, features: frozenset[str]) -> Problem:
    """The shape without the biases that an implementation of these ``features`` lacks, and with one memory where it takes no two:
    they cost next to nothing."""
    if "separate-values" in problem.features - features:
        problem = problem.but(source="memory")
    if "output-bias" in problem.features - features:
        problem = problem.but(output="plain")
    if {"projection-bias", "separate-biases"} & problem.features - features:
        problem = problem.but(projection_bias=False, output="plain")
    return problem


def with_feature(name: str, problem: Problem, feature: str) -> tuple[str, Problem] | None:
    """The shape with a feature of FEATURES in place of those listed, and its name; None where it has no such variant.

    Raises UsageError for a feature that is none.
    """
    if feature not in FEATURES:
        raise UsageError(f"Unknown feature {quoted(feature)}: there are {', '.join(FEATURES)}.")
    if feature == "listed":
        return name, problem
    if not problem.attends:
        return None
    plain = problem.but(causal="none", mask=None)
    if feature == "causal":
        plain = plain.but(causal="top-left" if problem.query_length == problem.key_length else "bottom-right")
    if feature == "mask":
        plain = plain.but(mask=Recipe("right-padding", seed=1, form="b11k"))
    return f"{name}+{feature}", plain
