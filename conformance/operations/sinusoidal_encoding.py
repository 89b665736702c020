"""The sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from conformance.errors import ProblemError, Unsupported
from conformance.numerics.dtypes import round_to
from conformance.operations.operation import Conversion, Named, Operation
from conformance.problem import ARRANGEMENTS, FREQUENCIES, Problem, Recipe, SinusoidalProblem
from conformance.problem.inputs import SinusoidalInputs

Array = np.ndarray
ARRANGEMENT, RATES = "CON-SINUSOID-ARRANGEMENT", "CON-SINUSOID-FREQUENCIES"


class SinusoidalEncoding(Operation):
    problem, inputs = SinusoidalProblem, SinusoidalInputs
    words = "the sinusoidal encoding"
    positional = ("length", "d_model")
    always_passed = ("dtype",)
    sometimes_passed = ("arrangement", "frequencies")
    parameters: ClassVar = {"x": "addition"}
    implied = frozenset({"odd-width", *ARRANGEMENTS})
    conditions: ClassVar = {
        "odd-width": "at odd widths",
        "addition": "where the encoding is added to x",
        "interleaved": "with sine and cosine alternating",
        "concatenated": "with all sines before all cosines",
    }
    of_sizes: ClassVar = {"width": "columns"}
    by_profile = False
    prefix = "sinusoid-"
    repeat, stale, untouched, unaliased = "ATT-POS-017", "ATT-POS-018", "ATT-POS-019", "ATT-POS-020"
    form = "ATT-POS-007"
    baselines: ClassVar = {("forward", "cpu"): ("numpy-sinusoidal",)}
    soak_share = 5

    def materialise(self, problem: SinusoidalProblem) -> SinusoidalInputs:
        from conformance.numerics.philox import Stream
        from conformance.values.distributions import DISTRIBUTIONS

        x = None
        if problem.batch:
            if problem.values.name != "gaussian" or problem.values.argument is not None:
                raise ProblemError(
                    f"{self.name} has the value distribution gaussian only, without an argument, not {problem.values}."
                )
            DISTRIBUTIONS.find(problem.values)
            numbers = Stream(problem.values.seed, "value").normal(problem.batch, problem.length, problem.width)
            x = round_to(numbers, problem.dtype)
        return self._inputs(problem, problem.frequencies, x)

    def _inputs(self, problem: SinusoidalProblem, frequencies: str, x: Array | None) -> SinusoidalInputs:
        return SinusoidalInputs(
            length=problem.length, width=problem.width, dtype=problem.dtype, arrangement=problem.arrangement,
            frequencies=frequencies, rows=problem.rows, x=x,
        )  # fmt: skip

    def truth(self, inputs: SinusoidalInputs) -> Any:
        from conformance.oracle.sinusoidal import truth_of_sinusoidal

        return truth_of_sinusoidal(inputs)

    def exactly(self, inputs: SinusoidalInputs) -> dict[str, Array]:
        from conformance.oracle.exact import sinusoidal_encoding

        return {"output": sinusoidal_encoding(inputs)}

    def arguments(self, inputs: SinusoidalInputs, implementation: Any, to: Conversion, asked: Named) -> tuple[list[Any], Named]:
        named: Named = {}
        if implementation.has("dtype"):
            named["dtype"] = implementation.framework.dtype_of(inputs.dtype)
        for name in self.sometimes_passed:
            if implementation.has(name) and getattr(inputs, name) != "default":
                named[name] = getattr(inputs, name)
        if inputs.x is not None:
            named["x"] = to(inputs.x)
        return [inputs.length, inputs.width], named

    def function(self, on: Callable[[Any], Any]) -> Callable[..., Any]:
        def encoding(
            length: int, d_model: int, *, dtype: Any = np.float32, arrangement: str = "interleaved", x: Any = None
        ) -> Any:
            return on(SinusoidalInputs(length=length, width=d_model, dtype=np.dtype(dtype).name, arrangement=arrangement, x=x))

        return encoding

    def compute(self, inputs: SinusoidalInputs, **own: Callable[..., Array]) -> Array:
        from conformance.faults.steps import sinusoidal

        return sinusoidal(inputs, **own)

    def simplest(self, dtype: str, layouts: tuple[str, ...]) -> Problem:
        return SinusoidalProblem(length=5, width=8, dtype=dtype, values=Recipe("gaussian", seed=1))

    def variants(self, base: Any, form: str | None) -> Iterator[Problem]:
        yield from (base.but(batch=2), base.but(width=7), *(base.but(arrangement=name) for name in ARRANGEMENTS))

    def nulls(self, inputs: SinusoidalInputs) -> dict[str, Array]:
        from conformance.oracle import truth_of

        added = 0.0 if inputs.x is None else inputs.x.astype(np.float64)
        longer = truth_of(inputs.but(length=inputs.length + 1, rows=None, x=None)).output.astype(np.float64)
        table = longer[:-1]
        half = inputs.width // 2
        pairs = table[:, : 2 * half].reshape(-1, half, 2)[..., ::-1].reshape(-1, 2 * half)
        concatenated = inputs.arrangement == "concatenated"
        swapped = np.roll(table, half, axis=1) if concatenated else np.hstack([pairs, table[:, 2 * half :]])
        tables = {"zeros": 0 * table, "position 0": table[:1] + 0 * table, "shifted": longer[1:], "swapped": swapped}
        return {name: values + added for name, values in tables.items()}

    def examples(self, draw: Any, free: bool) -> Any:
        from conformance.cases.strategies import of_sinusoidal

        return of_sinusoidal(draw, free)

    def soaked(self, dice: Any, number: int) -> Problem:
        from conformance.soak.draw import of_sinusoidal

        return of_sinusoidal(dice)

    def ordinary(self) -> Iterator[Problem]:
        for arrangement in ARRANGEMENTS:
            table = SinusoidalProblem(length=50, width=32, arrangement=arrangement)
            yield from (table, table.but(batch=2))

    def timed(self) -> Mapping[str, Problem]:
        return {"short": SinusoidalProblem(length=64, width=256), "prefill": SinusoidalProblem(length=2048, width=256)}

    def resolved(self, problem: Any, convention: Callable[[str], str]) -> Problem:
        """Arrangement and frequencies. A golden case that names no frequencies was frozen with those of the paper."""
        if problem.arrangement == "default":
            observed = convention(ARRANGEMENT)
            problem = problem.but(arrangement=observed if observed in ARRANGEMENTS else ARRANGEMENTS[0])
        if problem.frequencies == "default" and problem.values.name != "golden":
            observed = convention(RATES)
            if observed in FREQUENCIES[1:]:  # the paper's need no word
                problem = problem.but(frequencies=observed)
        return problem

    def decided_by(self, problem: Any, implementation: Any) -> Iterable[str]:
        if problem.arrangement != "default" and not implementation.has("arrangement"):
            yield ARRANGEMENT
        if not implementation.has("frequencies"):
            yield RATES

    def demand(self, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> None:
        """A function without a parameter for them has frequencies of its own, the paper's where those are none that are known."""
        if implementation.has("frequencies"):
            return
        frozen = problem.values.name == "golden" and problem.frequencies == "default"
        asked = FREQUENCIES[0] if frozen else problem.frequencies
        observed = conventions.get(RATES)
        if asked not in ("default", observed if observed in FREQUENCIES else FREQUENCIES[0]):
            raise Unsupported(f"frequencies {asked}")

    def can(self, feature: str, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Natively where the columns lie as asked; where neither arrangement is known, they count as interleaved."""
        if way != "native" or feature not in ARRANGEMENTS or implementation.has("arrangement"):
            return True
        observed = conventions.get(ARRANGEMENT)
        return feature == (observed if observed in ARRANGEMENTS else ARRANGEMENTS[0])

    def element(self, place: tuple[int, ...], inputs: SinusoidalInputs) -> str:
        from conformance.diagnosis.places import element

        return element(place, inputs)

    def pattern(self, wrong: Array, inputs: SinusoidalInputs, rows: Array) -> str:
        from conformance.diagnosis.places import pattern

        return pattern(wrong, inputs, rows)

    def fitted(self, problem: SinusoidalProblem, fit: Any) -> Problem:
        length = fit.nearest(problem.length, fit.allowed("length"), fit.step("length"))
        width = fit.nearest(problem.width, fit.allowed("width", of_width=True))
        batch = fit.nearest(problem.batch, fit.allowed("batch")) if problem.batch else 0
        rows = problem.rows if problem.rows is None else tuple(sorted({min(row, length - 1) for row in problem.rows}))
        return problem.but(length=length, width=width, batch=batch, rows=rows)

    def products(self, inputs: SinusoidalInputs) -> int:
        return inputs.width * (inputs.length if inputs.rows is None else len(inputs.rows))

    def stored(self, problem: SinusoidalProblem, arrays: Mapping[str, Array], asked: Named) -> SinusoidalInputs:
        return self._inputs(problem, "d" if problem.frequencies == "default" else problem.frequencies, arrays.get("x"))


OPERATION = SinusoidalEncoding()
