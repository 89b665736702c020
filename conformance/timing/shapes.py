"""The shapes at which forward calls are timed: those of published attention benchmarks by name, in sizes that a CPU can bear.

``short`` is a batch of short sequences, ``prefill`` one long causal sequence, ``decode`` a single query against a long cache,
``grouped`` causal attention in which four query heads share a kv head. All in float32, widths of 64.
"""

from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, SinusoidalProblem


def _attention(batch: int, heads: int, kv_heads: int, lq: int, lk: int, causal: str = "none") -> AttentionProblem:
    return AttentionProblem(
        batch=batch, heads=heads, kv_heads=kv_heads, query_length=lq, key_length=lk, width=64, value_width=64, causal=causal
    )


def _multi_head(batch: int, lq: int, lk: int, causal: str = "none") -> MultiHeadProblem:
    return MultiHeadProblem(
        batch=batch, heads=4, query_length=lq, key_length=lk, model_width=256, inner_width=256, value_inner_width=256,
        source="self" if lq == lk else "cross", projection_bias=True, output="bias", causal=causal,
    )  # fmt: skip


TIMED: dict[str, dict[str, Problem]] = {
    "attention": {
        "short": _attention(8, 8, 8, 64, 64),
        "prefill": _attention(1, 4, 4, 512, 512, causal="top-left"),
        "decode": _attention(1, 8, 8, 1, 1024),
        "grouped": _attention(1, 8, 2, 256, 256, causal="top-left"),
    },
    "multi_head_attention": {
        "short": _multi_head(8, 64, 64),
        "prefill": _multi_head(1, 512, 512, causal="top-left"),
        "decode": _multi_head(1, 1, 1024),
    },
    "sinusoidal_encoding": {
        "short": SinusoidalProblem(length=64, width=256),
        "prefill": SinusoidalProblem(length=2048, width=256),
    },
}
