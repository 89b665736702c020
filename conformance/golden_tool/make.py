"""Makes one golden case: definition → inputs → exact values and budget → JSON entry and tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from conformance.cases.admissible import reference_profile
from conformance.errors import UsageError
from conformance.features import features
from conformance.golden_tool.definitions import Definition
from conformance.numerics.dtypes import round_to
from conformance.operations import operation_of
from conformance.oracle import Expected, exact, expect
from conformance.problem import Problem, Recipe
from conformance.problem.inputs import Inputs, SinusoidalInputs
from conformance.problem.returned import LSE
from conformance.values import materialise
from conformance.values.golden import inputs_from
from conformance.values.golden_files import Tensors, describe

GENERATOR = "attention-conformance golden 1"
LARGEST = 1 << 20  # products in one case: the exact oracle takes about a microsecond for each
# A budget is computed with matrix products, whose last bits depend on the processor: a stored one stands while it is this near.
BUDGET_TOLERANCE = 0.02


@dataclass(frozen=True)
class Made:
    """A case as the files hold it: its JSON entry, and its tensors by their full names ``GOLD-0001/query``."""

    entry: dict[str, Any]
    tensors: Tensors


def make(definition: Definition, arrays: Mapping[str, np.ndarray], stored_budget: np.ndarray | None = None) -> Made:
    """The case that ``definition`` defines. ``stored_budget`` is kept where it is the computed one but for last bits.

    Raises UsageError for a problem that is too large or no problem, or on which the two oracles disagree.
    """
    drawn = definition.parsed()
    inputs = _inputs(definition, drawn, arrays)
    problem = _stored_problem(drawn, inputs, definition.number)
    profile = reference_profile(problem.dtype)
    expected = _expected(definition, inputs, expect(inputs, profile), stored_budget)
    named = _named(inputs)
    parameters = {name: list(value) if isinstance(value, tuple) else value for name, value in problem.parameters.items()}
    entry = {
        "id": definition.id,
        "requirement": definition.requirement,
        "operation": problem.operation,
        "note": definition.note,
        "source": definition.source,
        "generator": GENERATOR,
        "made_from": _made_from(definition),
        "problem": problem.text,
        "parameters": parameters,
        "profile": profile,
        "inputs": {name: describe(array) for name, array in named.items()},
        "expected": {name: describe(array) for name, array in expected.items()},
    }
    return Made(entry, {f"{definition.id}/{name}": array for name, array in (named | expected).items()})


def _inputs(definition: Definition, problem: Problem, arrays: Mapping[str, np.ndarray]) -> Inputs:
    """What the distributions draw, with the written arrays in place of theirs."""
    if problem.values.name == "golden":
        raise UsageError(f"{definition.id}: a golden case is made from value distributions, not from another golden case.")
    inputs = materialise(problem)
    if not definition.written and not definition.positions:
        return inputs
    if problem.transformations:
        raise UsageError(f"{definition.id}: arrays written by hand go with no transformations, write what they should be.")
    drawn = _named(inputs)
    for name, written in definition.written.items():
        if name not in drawn or written not in arrays:
            raise UsageError(f"{definition.id}: there is no input {name!r} in the problem, or no array {written!r} for it.")
        array = arrays[written].reshape((1,) * (drawn[name].ndim - arrays[written].ndim) + arrays[written].shape)
        if array.shape != drawn[name].shape:
            raise UsageError(f"{definition.id}: {written} has the shape {array.shape}, {name} needs {drawn[name].shape}.")
        drawn[name] = array.astype(bool) if name == "mask" else round_to(array.astype(np.float64), problem.dtype)
    if definition.positions:
        query = drawn["query"]
        encoding = SinusoidalInputs(
            length=query.shape[1], width=query.shape[2], dtype=problem.dtype, arrangement="interleaved", x=query
        )
        drawn["query"] = round_to(exact.sinusoidal_encoding(encoding), problem.dtype)
    return inputs_from(problem, drawn)


def _named(inputs: Inputs) -> Tensors:
    """The stored inputs by name. Self-attention has one input array, the query."""
    named = dict(inputs.arrays())
    if inputs.attends and inputs.plain is None and inputs.key is inputs.query:
        del named["key"], named["value"]
    stored = {one.argument: getattr(inputs, one.argument) for one in features(inputs.operation) if one.is_stored}
    return named | {name: array for name, array in stored.items() if array is not None}


def _stored_problem(problem: Problem, inputs: Inputs, number: int) -> Problem:
    """The problem as golden case ``number``: its arrays are those stored, so what once transformed them is no longer said."""
    golden = Recipe("golden", number)
    return problem.but(values=golden, **operation_of(problem).frozen(problem, inputs, golden))


def _expected(definition: Definition, inputs: Inputs, first: Expected, stored_budget: np.ndarray | None) -> Tensors:
    """The exact output and steps, the budget, and which rows are judged where not all are."""
    steps = _steps(definition, inputs)
    output = steps.pop("output")
    steps.pop(LSE, None)  # golden cases were frozen without it
    _certify(definition.id, output, first)
    budget = np.where(first.judged, first.budget, np.inf)
    expected = {"output": output, "budget": stored_budget if _near(stored_budget, budget) else budget}
    if not first.judged.all():
        expected["judged"] = first.judged
    return expected | steps if definition.steps else expected


def _near(stored: np.ndarray | None, budget: np.ndarray) -> TypeGuard[np.ndarray]:
    """Whether a stored budget is the computed one but for BUDGET_TOLERANCE."""
    if stored is None or stored.shape != budget.shape:
        return False
    return np.allclose(stored, budget, rtol=BUDGET_TOLERANCE, atol=0.0)


def _steps(definition: Definition, inputs: Inputs) -> Tensors:
    operation = operation_of(inputs)
    products = operation.products(inputs)
    if products > LARGEST:
        raise UsageError(f"{definition.id}: {products} products are too many for a golden case, which may have {LARGEST}.")
    steps = operation.exactly(inputs)
    if definition.steps and len(steps) == 1:
        raise UsageError(f"{definition.id}: {operation.words} has no intermediate values to store.")
    return steps


def _certify(identifier: str, output: np.ndarray, first: Expected) -> None:
    """Both oracles must agree to a hundredth of the budget and the rounding of the stored numbers to float64."""
    allowed = 0.01 * first.budget + 0.5 * np.spacing(np.abs(output))
    wrong = first.judged & ~(np.abs(first.output - output) <= allowed)
    if output.shape != first.output.shape or wrong.any():
        raise UsageError(f"{identifier}: the two oracles disagree, so that one of them is wrong; nothing was stored.")


def _made_from(definition: Definition) -> str:
    """Where the arrays came from, in words that a reader can follow without this tool."""
    parts = [definition.problem]
    parts += [f"{name} = {written}" for name, written in definition.written.items()]
    parts += ["positions added to query"] if definition.positions else []
    return "; ".join(parts)
