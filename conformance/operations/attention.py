"""Scaled dot-product attention: softmax(scale · Q Kᵀ + bias, over the visible keys) · V."""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from conformance.errors import ProblemError
from conformance.features import features
from conformance.operations.attending import Attending, in_shape, toggled
from conformance.operations.operation import Conversion, Named
from conformance.problem import AttentionProblem, Problem, Recipe
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
# Larger and smaller in turn, so that what is made large for one problem is there when the next, smaller one comes.
_SHAPES_OF_COMPANY = ("prime", "small", "value-width", "grouped")


class Attention(Attending):
    problem, inputs = AttentionProblem, AttentionInputs
    words = "attention"
    positional = ("query", "key", "value")
    implied = frozenset({"grouped-heads", "value-width", "cross-length"})
    ways: ClassVar = {"grouped-heads": ("native", "repeat")}
    orders_axes = True
    conditions: ClassVar = {
        "grouped-heads": "with grouped heads",
        "value-width": "where the widths of key and value differ",
        "cross-length": "where the lengths of query and key differ",
    }
    absent: ClassVar = {
        "grouped-heads": "without grouped heads",
        "value-width": "where the widths of key and value agree",
        "cross-length": "where the lengths of query and key agree",
    }
    repeat, stale, untouched, unaliased = "ATT-OUT-026", "ATT-OUT-027", "ATT-OUT-028", "ATT-OUT-029"
    form = "ATT-OUT-002"
    baselines: ClassVar = {
        ("forward", "cpu"): ("numpy-direct",),
        ("forward+backward", "cpu"): ("torch-direct", "jax-einsum"),
        ("forward", "cuda"): ("torch-cuda-direct",),
        ("forward+backward", "cuda"): ("torch-cuda-direct",),
    }
    soak_share = 85

    def materialise(self, problem: AttentionProblem) -> AttentionInputs:
        from conformance.numerics.dtypes import round_to
        from conformance.numerics.philox import Stream
        from conformance.values.distributions import DISTRIBUTIONS
        from conformance.values.layouts import laid_out, shared
        from conformance.values.transformations import TRANSFORMATIONS, transformed

        distribution = DISTRIBUTIONS.find(problem.values)
        seed = problem.values.seed
        query, key, value = distribution(problem, Stream(seed, "query"), Stream(seed, "key"), Stream(seed, "value"))
        if problem.layout == "expanded":  # one batch row, seen through stride 0 by all
            query, key, value = (np.repeat(array[:1], problem.batch, axis=0) for array in (query, key, value))
        query, key, value = (round_to(array, problem.dtype) for array in (query, key, value))
        if problem.values.argument is not None and not all(np.isfinite(array).all() for array in (query, key, value)):
            raise ProblemError(f"values={problem.values} makes numbers beyond {problem.dtype}: make its argument smaller.")
        given = {feature.argument: feature.given(problem) for feature in features(self.name)}
        given |= {name: shared(given[name], problem.layout) for name in ("mask", "bias")}
        inputs = AttentionInputs(query=query, key=key, value=value, **given)
        for recipe in problem.transformations:
            inputs = transformed(TRANSFORMATIONS, recipe, inputs)
        lengths = inputs.query.shape[2], inputs.key.shape[2]
        moved = [one for one in features(self.name) if one.positional and one.name in problem.features]
        if moved and lengths != (problem.query_length, problem.key_length):
            raise ProblemError(
                f"edits={','.join(map(str, problem.transformations))} changes the lengths to {lengths[0]} and {lengths[1]}, "
                f"which does not go with {moved[0].name}: its alignment is meant for the lengths that the problem names."
            )
        return laid_out(inputs, problem.layout)

    def truth(self, inputs: AttentionInputs) -> Any:
        from conformance.oracle.attention import truth_of_attention

        return truth_of_attention(inputs)

    def exactly(self, inputs: AttentionInputs) -> dict[str, Array]:
        from conformance.oracle.exact import attention_steps

        return attention_steps(inputs)

    def arguments(self, inputs: AttentionInputs, implementation: Any, to: Conversion, asked: Named) -> tuple[list[Any], Named]:
        from conformance.harness.prepared import length_first

        tensors = [inputs.query, inputs.key, inputs.value]
        if implementation.support.axes == "blhd":
            tensors = [length_first(array) for array in tensors]
        if inputs.query is inputs.key is inputs.value:
            return [to(tensors[0])] * 3, asked
        return [to(array) for array in tensors], asked

    def function(self, on: Callable[[Any], Any]) -> Callable[..., Any]:
        return self.plain_function(lambda **given: on(AttentionInputs(**given)))

    def compute(self, inputs: AttentionInputs, **own: Callable[..., Array]) -> Array:
        """``attention`` in place of all of it."""
        from conformance.faults.steps import attend

        return own["attention"](inputs) if "attention" in own else attend(inputs)

    def simplest(self, dtype: str, layouts: tuple[str, ...]) -> Problem:
        from conformance.specification.palette import SHAPES

        layout = "contiguous" if "contiguous" in layouts else next(iter(layouts), "contiguous")
        values = Recipe("gaussian", seed=1)
        return AttentionProblem(**SHAPES["square"].fields, dtype=dtype, values=values, layout=layout)

    def variants(self, base: Any, form: str | None) -> Iterator[Problem]:
        yield from super().variants(base, form)
        if form is not None:
            yield base.but(bias=Recipe("gaussian", form=form))
        yield from (base.but(scale=0.5), base.but(heads=6), base.but(value_width=6), base.but(key_length=7))

    def nulls(self, inputs: AttentionInputs) -> dict[str, Array]:
        """Of the visible keys' scores only the largest counts; ``heads`` is the true output, moved."""
        from conformance.oracle import scores_and_output

        keys = inputs.key.shape[2]
        visible = visible_pairs(inputs)
        scores, output = scores_and_output(inputs)
        value = np.repeat(inputs.value.astype(np.float64), inputs.heads // inputs.key.shape[1], axis=1)
        weights = {
            "zeros": np.zeros_like(scores),
            "mean": visible / np.maximum(visible.sum(axis=-1, keepdims=True), 1),
            "argmax": (np.arange(keys) == scores.argmax(axis=-1)[..., None]).astype(np.float64),
            "uniform": np.full_like(scores, 1.0 / keys),
        }
        nulls = {name: weight @ value for name, weight in weights.items()}
        return nulls | ({"heads": np.roll(output, 1, axis=1)} if inputs.heads > 1 else {})

    def examples(self, draw: Any, free: bool) -> Any:
        from conformance.cases.strategies import of_attention

        return of_attention(draw, free)

    def soaked(self, dice: Any, number: int) -> Problem:
        from conformance.soak.draw import of_attention, of_shared_shape

        return of_shared_shape(dice) if number <= 10 else of_attention(dice)

    def company(self, problem: Any) -> Iterator[Problem]:
        from conformance.specification.palette import SHAPES

        yield from (in_shape(problem, SHAPES[shape].fields) for shape in _SHAPES_OF_COMPANY)
        yield from toggled(problem, "mask", "bias", "scale", "key_lengths", "causal")
        yield in_shape(problem, SHAPES["square"].fields).but(causal="top-left")  # a triangle of another length

    def ordinary(self) -> Iterator[Problem]:
        sizes = {"batch": 2, "heads": 4, "kv_heads": 4, "query_length": 64, "key_length": 64, "width": 32, "value_width": 32}
        square = AttentionProblem(**sizes, values=Recipe("gaussian", 1))
        wide = square.but(query_length=32)
        yield from (square, wide, square.but(kv_heads=2), square.but(value_width=48), square.but(scale=0.25))
        yield from (square.but(causal="top-left"), wide.but(causal="top-left"), wide.but(causal="bottom-right"))
        yield from (square.but(mask=Recipe("random", 2, form)) for form in ("b1qk", "b11k", "bhqk"))
        yield from (square.but(bias=Recipe("gaussian", 3, form)) for form in ("qk", "bhqk"))
        yield from (square.but(key_lengths=(64, 40)), square.but(mask=Recipe("random", 4, "b11k"), causal="top-left"))

    def timed(self) -> Mapping[str, Problem]:
        return {
            "short": in_sizes(8, 8, 8, 64, 64),
            "prefill": in_sizes(1, 4, 4, 512, 512, causal="top-left"),
            "decode": in_sizes(1, 8, 8, 1, 1024),
            "grouped": in_sizes(1, 8, 2, 256, 256, causal="top-left"),
        }

    def few_sizes(self, problem: AttentionProblem) -> Problem:
        from conformance.adapter.limits import few_lengths

        sizes = few_lengths(problem)
        if problem.heads % problem.kv_heads == 0:
            sizes |= {"heads": 6, "kv_heads": 2} if problem.heads != problem.kv_heads else {"heads": 3, "kv_heads": 3}
        return problem.but(**sizes, width=8, value_width=8 if problem.width == problem.value_width else 11)

    def fitted(self, problem: AttentionProblem, fit: Any) -> Problem:
        names = ("width", "value_width")
        allowed = fit.allowed("width", of_width=True), fit.allowed("value_width", of_width=True)
        width, value_width = fit.pair((problem.width, problem.value_width), allowed, names)
        sizes = {**fit.heads(problem.heads, problem.kv_heads), "width": width, "value_width": value_width}
        return problem.but(**sizes, **fit.rows_and_lengths(problem))

    def flops(self, inputs: AttentionInputs) -> int:
        """2·(d + dv) for each visible pair of query and key in each query head and batch row."""
        return 2 * (inputs.query.shape[-1] + inputs.value.shape[-1]) * int(visible_pairs(inputs).sum())

    def products(self, inputs: AttentionInputs) -> int:
        return prod(inputs.query.shape[:3]) * inputs.key.shape[2] * (inputs.key.shape[3] + inputs.value.shape[3])

    def stored(self, problem: AttentionProblem, arrays: Mapping[str, Array], asked: Named) -> AttentionInputs:
        return AttentionInputs(query=arrays["query"], key=arrays["key"], value=arrays["value"], **asked)

    def frozen(self, problem: Any, inputs: Any, golden: Recipe) -> Named:
        queries, keys = inputs.query.shape, inputs.key.shape
        return super().frozen(problem, inputs, golden) | {
            "heads": queries[1],
            "kv_heads": keys[1],
            "query_length": queries[2],
            "key_length": keys[2],
            "width": queries[3],
            "value_width": inputs.value.shape[3],
            "layout": "contiguous",
        }


def in_sizes(batch: int, heads: int, kv_heads: int, lq: int, lk: int, width: int = 64, causal: str = "none") -> AttentionProblem:
    return AttentionProblem(
        batch=batch, heads=heads, kv_heads=kv_heads, query_length=lq, key_length=lk, width=width, value_width=width, causal=causal
    )


OPERATION = Attention()
