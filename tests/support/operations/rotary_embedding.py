"""A made-up operation in one module: the rotary embedding (Su et al. 2021), each pair of columns turned by position · ω_i."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from conformance.numerics.dtypes import float_type, round_to
from conformance.numerics.philox import Stream
from conformance.operations.operation import Operation
from conformance.problem.attention import BATCH, DTYPE, VALUES
from conformance.problem.base import Problem, demand_size
from conformance.problem.fields import NEEDED as NO_DEFAULT
from conformance.problem.fields import Field, Sizes, demand
from conformance.problem.inputs import NEEDED, Arguments

_NAME, DTYPES = "rotary_embedding", ("float32", "float64")


def _size(name: str) -> Field:
    return Field(key=name, kind=Sizes(), names=(name,), defaults=(NO_DEFAULT,), required=True, always=True)


class RotaryProblem(Problem):
    operation = _NAME
    sizes = ("batch", "length", "width")
    BEFORE: ClassVar = (BATCH, _size("length"), _size("width"), DTYPE, VALUES)

    def check(self) -> None:
        demand_size(self.batch, self.length, self.width)
        demand(self.width % 2 == 0, f"width={self.width} must be even.")

    @property
    def work(self) -> int:
        return self.batch * self.length * self.width

    cost = work

    @property
    def longest(self) -> int:
        return self.length

    def head_widths(self) -> dict[str, float]:
        return {"width": self.width}

    def in_words(self) -> str:
        return f"{self.length} positions of {self.width} columns in {self.dtype}"


class RotaryInputs(Arguments):
    operation = _NAME
    OWN: ClassVar = {"x": NEEDED}
    drawn = ("x",)

    @property
    def dtype(self) -> str:
        return self.x.dtype.name

    def arrays(self) -> dict[str, np.ndarray]:
        return {"x": self.x}


def rotated(x: np.ndarray, sign: float = 1.0, first: int = 0) -> np.ndarray:
    """In long double, by ``sign`` times the angles of positions from ``first`` on."""
    x = x.astype(np.longdouble)
    rates = np.power(np.longdouble(10000), -np.arange(0, x.shape[-1], 2) / np.longdouble(x.shape[-1]))
    angles = sign * np.arange(first, first + x.shape[-2])[:, None] * rates
    even, odd = x[..., ::2], x[..., 1::2]
    return np.stack([even * np.cos(angles) - odd * np.sin(angles), even * np.sin(angles) + odd * np.cos(angles)], -1).reshape(
        x.shape
    )


class RotaryEmbedding(Operation):
    problem, inputs = RotaryProblem, RotaryInputs
    words = "the rotary embedding"
    positional = ("x",)

    def materialise(self, problem: RotaryProblem) -> RotaryInputs:
        x = Stream(problem.values.seed, "value").normal(problem.batch, problem.length, problem.width)
        return RotaryInputs(x=round_to(x, problem.dtype))

    def truth(self, inputs: RotaryInputs) -> Any:
        """Budget: as of the sinusoidal encoding for either wave, and two roundings of products and one of the sum."""
        from conformance.oracle.expected import Truth

        x, output, unit = inputs.x.astype(np.float64), rotated(inputs.x), float_type(inputs.dtype).unit_roundoff
        pairs = np.repeat(np.abs(x[..., ::2]) + np.abs(x[..., 1::2]), 2, axis=-1)
        bound = unit * (pairs * (4.0 + 16.0 * np.arange(x.shape[-2])[:, None]) + np.abs(output.astype(np.float64)))
        return Truth(output, np.ones(x.shape, bool), x.shape, inputs.dtype, lambda profile: bound, None, bound.nbytes)

    def exactly(self, inputs: RotaryInputs) -> dict[str, np.ndarray]:
        import mpmath

        with mpmath.workdps(40):
            width, output = inputs.x.shape[-1], np.empty(inputs.x.shape)
            for *row, position, column in np.ndindex(*inputs.x.shape[:-1], width // 2):
                number = mpmath.mpc(
                    *(mpmath.mpf(float(part)) for part in inputs.x[(*row, position)][2 * column : 2 * column + 2])
                )
                turned = number * mpmath.expj(position * mpmath.mpf(10000) ** (mpmath.mpf(-2 * column) / width))
                output[(*row, position)][2 * column : 2 * column + 2] = float(turned.real), float(turned.imag)
        return {"output": output}

    def arguments(
        self, inputs: RotaryInputs, implementation: Any, to: Any, asked: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        return [to(inputs.x)], asked

    def function(self, on: Callable[[Any], Any]) -> Callable[..., Any]:
        def rotate(x: np.ndarray) -> Any:
            return on(RotaryInputs(x=x))

        return rotate

    def simplest(self, dtype: str, layouts: tuple[str, ...]) -> Problem:
        return RotaryProblem(batch=2, length=5, width=8, dtype=dtype)

    def nulls(self, inputs: RotaryInputs) -> Mapping[str, np.ndarray]:
        shifted = rotated(inputs.x, first=1).astype(np.float64)
        return {"zeros": 0 * shifted, "position 0": inputs.x.astype(np.float64), "shifted": shifted}

    def requirements(self) -> Iterator[Any]:
        from conformance.specification.requirement import Requirement

        yield Requirement(
            id="ATT-POS-901",
            operation=_NAME,
            sentence="Each pair of columns is turned by its position times its frequency.",
            rationale="The other direction gives the same scores of equal tokens.",
            source="Su et al. 2021 (arXiv 2104.09864)",
            designed=lambda: [
                RotaryProblem(batch=2, length=length, width=width, dtype=dtype)
                for length, width in ((5, 8), (9, 2))
                for dtype in DTYPES
            ],
            random=_draw(),
        )

    def faults(self) -> Iterable[Any]:
        from conformance.faults.grammar import computed, fault

        way = computed(lambda inputs: round_to(rotated(inputs.x, -1.0), inputs.dtype), operation=_NAME)
        return (fault("rotary-other-way", "turns the other way", way, ("ATT-POS-901",), dtypes=DTYPES),)

    def examples(self, draw: Any, free: bool) -> Any:
        from hypothesis import strategies as st

        from conformance.cases.strategies import described

        sizes = st.tuples(st.integers(1, 3), st.integers(2, 12), st.integers(1, 6)).map(
            lambda drawn: {"batch": drawn[0], "length": drawn[1], "width": 2 * drawn[2]}
        )
        return described(sizes, {"dtype": draw.dtypes}, lambda sizes, chosen, seed, variant: _problem(sizes, chosen, seed), free)


def _draw() -> Any:
    from conformance.specification.draw import AnyDraw

    class RotaryDraw(AnyDraw):
        operation = _NAME

    return RotaryDraw(dtypes=DTYPES)


def _problem(sizes: Mapping[str, Any], chosen: Mapping[str, Any], seed: int) -> Problem:
    from conformance.problem import Recipe

    return RotaryProblem(**sizes, **chosen, values=Recipe("gaussian", seed))


OPERATION = RotaryEmbedding()
