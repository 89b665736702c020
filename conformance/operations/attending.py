"""What operations have in common in which queries attend to keys: all that features make of them."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from conformance.features import examples, features
from conformance.operations.operation import Named, Operation
from conformance.problem import KeyProblem, Problem, Recipe
from conformance.problem.inputs import KeyInputs
from conformance.problem.returned import LSE, OUTPUT, WEIGHTS


class Attending(Operation):
    """Its problems are KeyProblems, its inputs KeyInputs."""

    sometimes_passed = ("alignment",)
    returns = (OUTPUT, LSE, WEIGHTS)

    def variants(self, base: KeyProblem, form: str | None) -> Iterator[Problem]:
        if form is not None:
            yield base.but(mask=Recipe("random", form=form))
        yield from (base.but(**asked) for asked in examples(self.name))
        yield base.but(causal="default")
        yield base.but(key_lengths=tuple(1 + row for row in range(base.batch)))

    def plain_function(self, on: Callable[..., Any], *own: str) -> Callable[..., Any]:
        """``on``, of inputs by name, as a function of the ``positional`` parameters, of ``own`` by name, and of what features are
        asked by; all are spelled out where its signature is looked at."""
        asked_of = [one for one in features(self.name) if one.field is not None]
        defaults = {name: value for one in asked_of for name, value in one.plain().items()}
        needed = (*self.positional, *own)

        def function(*given: Any, **named: Any) -> Any:
            arguments = dict(zip(self.positional, given, strict=False)) | named
            if unknown := arguments.keys() - {*needed, *defaults}:
                raise TypeError(f"{self.name} has no parameter {min(unknown)}")
            asked = {one.argument: one.read(defaults | arguments) for one in asked_of}
            return on(**{name: arguments[name] for name in needed}, **asked)

        by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, by_place) for name in self.positional]
        parameters += [inspect.Parameter(name, by_name) for name in own]
        parameters += [inspect.Parameter(name, by_name, default=value) for name, value in defaults.items()]
        function.__dict__["__signature__"] = inspect.Signature(parameters)  # where inspect looks first
        return function

    def frozen(self, problem: KeyProblem, inputs: KeyInputs, golden: Recipe) -> Named:
        return {
            "transformations": (),
            "batch": inputs.query.shape[0],
            **{one.argument: one.stored(problem, inputs, golden) for one in features(self.name) if one.field is not None},
        }


def toggled(problem: KeyProblem, *names: str) -> Iterator[Problem]:
    """``problem`` with each of these arguments, or without it where it has it."""
    fixed = {"mask": Recipe("random", 26, "b1qk"), "bias": Recipe("gaussian", 26, "qk"), "scale": 0.5, "causal": "top-left"}
    asked = fixed | {"key_lengths": key_lengths(problem.batch, problem.key_length)}
    for name in names:
        unasked = "none" if name == "causal" else None
        yield problem.but(**{name: asked[name] if getattr(problem, name) == unasked else unasked})


def key_lengths(batch: int, key_length: int) -> tuple[int, ...]:
    """One for each batch row, none of them all keys."""
    return tuple(1 + (row + 2) * (key_length - 1) // (batch + 3) for row in range(batch))


def in_shape(problem: Any, sizes: Named) -> Any:
    """``problem`` in other sizes, its lengths such as fit."""
    lengths = None if problem.key_lengths is None else key_lengths(sizes["batch"], sizes["key_length"])
    return problem.but(**sizes, key_lengths=lengths)
