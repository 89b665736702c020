"""Multi-head attention with given weights: project, split into heads, attend, merge, project."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, ClassVar

import numpy as np

from conformance.errors import Unsupported
from conformance.operations import attention
from conformance.operations.attending import Attending, in_shape, toggled
from conformance.operations.operation import Conversion, Named
from conformance.problem import MultiHeadProblem, Problem, Recipe
from conformance.problem.inputs import MultiHeadInputs, Weights
from conformance.problem.multihead import OUTPUTS, WEIGHTS

Array = np.ndarray
_SHAPES_OF_COMPANY = ("many", "one-head", "square", "inner")
_SQUARE: Named = {
    "batch": 2, "heads": 4, "query_length": 16, "key_length": 16, "model_width": 32, "inner_width": 32, "value_inner_width": 32,
}  # fmt: skip


class MultiHeadAttention(Attending):
    problem, inputs = MultiHeadProblem, MultiHeadInputs
    words = "multi-head attention"
    positional = ("query", "key", "value", "weights")
    always_passed = demanded = ("num_heads",)
    aliases: ClassVar = {"num_heads": ("n_heads", "n_head", "nhead", "nheads", "heads", "num_attention_heads")}
    implied = frozenset(
        {
            *("cross-attention", "separate-values", "cross-length", "full-weights", "many-heads", "inner-width", "value-width"),
            *("projection-bias", "no-projection-bias", "no-output-projection", "output-bias", "no-output-bias"),
            "separate-biases",
        }
    )
    ways: ClassVar = {
        "no-projection-bias": ("native", "zeros"),
        "no-output-bias": ("native", "zeros"),
        "separate-biases": ("native", "zeros"),
        "no-output-projection": ("native", "identity"),
    }
    zeros: ClassVar = {"no-projection-bias": frozenset({"projection-bias"}), "no-output-bias": frozenset({"output-bias"})}
    conditions: ClassVar = {
        "cross-attention": "in cross-attention",
        "projection-bias": "with biases of the projections",
        "no-projection-bias": "without biases of the projections",
        "no-output-projection": "without an output projection",
        "output-bias": "with a bias of the output projection",
        "no-output-bias": "without a bias of the output projection",
        "separate-biases": "where only some of the projections have biases",
        "separate-values": "where keys and values are projected from different inputs",
        "many-heads": "with several heads",
        "inner-width": "where the inner width is not that of the model",
    }
    prefix = "multi-head-"
    repeat, stale, untouched, unaliased = "ATT-HEAD-027", "ATT-HEAD-028", "ATT-HEAD-029", "ATT-HEAD-030"
    form = "ATT-HEAD-026"
    baselines: ClassVar = {("forward", "cpu"): ("numpy-multi-head",)}
    soak_share = 10

    def materialise(self, problem: MultiHeadProblem) -> MultiHeadInputs:
        from conformance.values.multihead import multi_head

        return multi_head(problem)

    def truth(self, inputs: MultiHeadInputs) -> Any:
        from conformance.oracle.multihead import truth_of_multi_head

        return truth_of_multi_head(inputs)

    def exactly(self, inputs: MultiHeadInputs) -> dict[str, Array]:
        from conformance.oracle.exact import multi_head_steps

        return multi_head_steps(inputs)

    def arguments(self, inputs: MultiHeadInputs, implementation: Any, to: Conversion, asked: Named) -> tuple[list[Any], Named]:
        query = to(inputs.query)
        key = query if inputs.key is inputs.query else to(inputs.key)
        value = key if inputs.value is inputs.key else to(inputs.value)
        weights = Weights(**{name: to(array) for name, array in inputs.weights.arrays().items()})
        return [query, key, value, weights], {"num_heads": inputs.num_heads, **asked}

    def function(self, on: Callable[[Any], Any]) -> Callable[..., Any]:
        def attend(weights: Weights, num_heads: int, **given: Any) -> Any:
            if weights.query.shape[1] % num_heads or weights.value.shape[1] % num_heads:
                raise ValueError(f"{num_heads} heads do not divide the inner widths")
            return on(MultiHeadInputs(weights=weights, num_heads=num_heads, **given))

        return self.plain_function(attend, "num_heads")

    def compute(self, inputs: MultiHeadInputs, **own: Callable[..., Array]) -> Array:
        from conformance.faults.steps import multi_head

        return multi_head(inputs, **own)

    def simplest(self, dtype: str, layouts: tuple[str, ...]) -> Problem:
        from conformance.specification.palette import MULTI_HEAD_SHAPES

        return MultiHeadProblem(**MULTI_HEAD_SHAPES["square"].fields, dtype=dtype, values=Recipe("gaussian", seed=1))

    def variants(self, base: Any, form: str | None) -> Iterator[Problem]:
        """With any set of projections too."""
        yield from super().variants(base, form)
        for heads, bias, output, weights in product((base.heads, 1), (False, True), OUTPUTS, WEIGHTS):
            changed = base.but(heads=heads, projection_bias=bias, output=output, weights=weights)
            yield changed
            yield from (changed.but(source=source, key_length=length) for source in ("cross", "memory") for length in (5, 7))
            if weights == "full":
                yield from (changed.but(inner_width=9, value_inner_width=9), changed.but(value_inner_width=9))

    def nulls(self, inputs: MultiHeadInputs) -> dict[str, Array]:
        from conformance.oracle import heads_of, merged

        attended = attention.OPERATION.nulls(heads_of(inputs, np.float64))
        return {name: merged(output, inputs.weights) for name, output in attended.items()}

    def examples(self, draw: Any, free: bool) -> Any:
        from conformance.cases.strategies import of_multi_head

        return of_multi_head(draw, free)

    def soaked(self, dice: Any, number: int) -> Problem:
        from conformance.soak.draw import of_multi_head

        return of_multi_head(dice)

    def company(self, problem: Any) -> Iterator[Problem]:
        from conformance.specification.palette import MULTI_HEAD_SHAPES

        shapes = [MULTI_HEAD_SHAPES[shape].fields for shape in _SHAPES_OF_COMPANY]
        fitting = (sizes for sizes in shapes if problem.source != "self" or sizes["query_length"] == sizes["key_length"])
        yield from (in_shape(problem, sizes) for sizes in fitting)
        yield in_shape(problem, MULTI_HEAD_SHAPES["one-head"].fields).but(causal="top-left")
        yield from toggled(problem, "mask", "key_lengths", "causal")
        yield problem.but(projection_bias=not problem.projection_bias, output="plain" if problem.projection_bias else "bias")

    def ordinary(self) -> Iterator[Problem]:
        plain = MultiHeadProblem(**_SQUARE, values=Recipe("gaussian", 1))
        yield from (plain, plain.but(projection_bias=True, output="bias"), plain.but(source="cross", key_length=24))
        yield from (plain.but(causal="top-left"), plain.but(mask=Recipe("random", 2, "b1qk")), plain.but(key_lengths=(16, 10)))

    def timed(self) -> Mapping[str, Problem]:
        def layer(batch: int, lq: int, lk: int, causal: str = "none") -> Problem:
            return MultiHeadProblem(
                batch=batch, heads=4, query_length=lq, key_length=lk, model_width=256, inner_width=256, value_inner_width=256,
                source="self" if lq == lk else "cross", projection_bias=True, output="bias", causal=causal,
            )  # fmt: skip

        return {"short": layer(8, 64, 64), "prefill": layer(1, 512, 512, causal="top-left"), "decode": layer(1, 1, 1024)}

    def can(self, feature: str, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Only some biases with zeros for the others, where it can have those."""
        absent = "output-bias" if problem.projection_bias else "projection-bias"
        return feature != "separate-biases" or way != "zeros" or absent in implementation.features

    def routes(self, problem: Any, implementation: Any, combined: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        """Without an output projection, natively or as the problem with an identity for it, whatever that one needs in turn."""
        from conformance.adapter.routes import Route, offered_ways

        without = "no-output-projection"
        ways = offered_ways(without, implementation)
        if problem.output != "none" or "native" in ways:
            yield from combined(problem)
        if problem.output == "none" and "identity" in ways and problem.value_inner_width == problem.model_width:
            yield from (Route({**route.ways, without: "identity"}) for route in combined(problem.but(output="plain")))
        elif problem.output == "none" and "native" not in ways:
            raise Unsupported(without, without)

    def few_sizes(self, problem: MultiHeadProblem) -> Problem:
        from conformance.adapter.limits import few_lengths

        sizes = few_lengths(problem)
        whole = problem.inner_width % problem.heads == 0
        if whole and problem.model_width == problem.inner_width == problem.value_inner_width:
            heads, width = (1, 8) if problem.heads == 1 else (3, 15)
            sizes |= {"heads": heads, "model_width": width, "inner_width": width, "value_inner_width": width}
        return problem.but(**sizes)

    def fitted(self, problem: MultiHeadProblem, fit: Any) -> Problem:
        heads = fit.nearest(problem.heads, fit.allowed("heads")) if problem.heads > 1 else problem.heads
        model_width, inner, value_inner = problem.model_width, problem.inner_width, problem.value_inner_width
        if inner % problem.heads or value_inner % problem.heads:  # to be refused: left as it is
            return problem.but(**fit.rows_and_lengths(problem))
        model = fit.allowed("model_width")
        of_inner = fit.allowed("inner_width", of_width=True, times=heads)
        if model_width == inner:
            of_inner = of_inner.where(lambda n: model.test(n * heads))
        allowed = of_inner, fit.allowed("value_inner_width", of_width=True, times=heads)
        width, value_width = fit.pair((inner // problem.heads, value_inner // problem.heads), allowed, ("width", "value_width"))
        sizes = {
            "heads": heads,
            "model_width": width * heads if model_width == inner else fit.nearest(model_width, model),
            "inner_width": width * heads,
            "value_inner_width": value_width * heads,
        }
        return problem.but(**sizes, **fit.rows_and_lengths(problem))

    def flops(self, inputs: MultiHeadInputs) -> int:
        """Those of attention at the shapes that the projections give, and those of the projections."""
        (batch, heads, *lengths), weights = inputs.pairs, inputs.weights
        by_query = weights.query.size + (0 if weights.output is None else weights.output.size)
        projections = 2 * batch * (lengths[0] * by_query + lengths[1] * (weights.key.size + weights.value.size))

        def split(length: int, matrix: Array) -> Array:
            return np.broadcast_to(np.float32(0), (batch, heads, length, matrix.shape[1] // heads))

        of_tokens = ((lengths[0], weights.query), (lengths[1], weights.key), (lengths[1], weights.value))
        query, key, value = (split(length, matrix) for length, matrix in of_tokens)
        return projections + attention.OPERATION.flops(inputs.within(query, key, value))

    def products(self, inputs: MultiHeadInputs) -> int:
        inner = inputs.weights.query.shape[1] + inputs.weights.value.shape[1]
        rows = inputs.query.shape[1] + inputs.key.shape[1]
        return inputs.query.shape[0] * rows * inner * (inputs.query.shape[2] + rows)

    def stored(self, problem: MultiHeadProblem, arrays: Mapping[str, Array], asked: Named) -> MultiHeadInputs:
        query = arrays["query"]
        key = query if problem.source == "self" else arrays["key"]
        weights = {name.removeprefix("weights."): array for name, array in arrays.items() if name.startswith("weights.")}
        return MultiHeadInputs(
            query=query, key=key, value=arrays["value"] if problem.source == "cross" else key, weights=Weights(**weights),
            num_heads=problem.heads, **asked,
        )  # fmt: skip


OPERATION = MultiHeadAttention()
