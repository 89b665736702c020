"""The built-in implementations for tests: skipped where what they need is not installed, called with NumPy arrays."""

from contextlib import nullcontext
from dataclasses import fields

import numpy as np
import pytest

from conformance.adapter import Implementation, Surrounds, registry
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.problem.inputs import Weights

ALL = registry.builtin()


def of(operation: str) -> list[str]:
    return [name for name, implementation in ALL.items() if implementation.operation == operation]


def usable(name: str) -> Implementation:
    implementation = ALL[name]
    reason = implementation.missing()
    if reason:
        pytest.skip(reason)
    return implementation


def usable_framework(name: str):
    framework = registry.frameworks()[name]
    reason = framework.missing("cpu")
    if reason:
        pytest.skip(reason)
    return framework


def call(implementation: Implementation, *arrays, **named):
    """The function's output as NumPy, for NumPy arguments with heads before length."""
    framework, support = implementation.framework, implementation.support
    swap = support.axes == "blhd" and implementation.operation == "attention"

    def convert(argument):
        if isinstance(argument, Weights):
            given = {field.name: getattr(argument, field.name) for field in fields(Weights)}
            return Weights(**{name: convert(array) for name, array in given.items()})
        if not isinstance(argument, np.ndarray):
            return argument
        swapped = argument.swapaxes(1, 2).copy() if swap and argument.ndim == 4 and argument.dtype != bool else argument
        return framework.from_numpy(swapped, support.device)

    with framework.surroundings("float64") if isinstance(framework, Surrounds) else nullcontext():
        arguments = [convert(array) for array in arrays]
        if len(arrays) > 2 and all(array is arrays[0] for array in arrays[:3]):
            arguments[:3] = [arguments[0]] * 3
        result = implementation.function(*arguments, **{key: convert(value) for key, value in named.items()})
        result = framework.wait(result() if support.binds else result)
        output = framework.to_numpy(result if len(support.returns) == 1 else result[support.returns.index("output")])
    return output.swapaxes(1, 2) if swap else output


def tokens(dtype=np.float64):
    """Two tokens of width 4 whose scores with themselves, over √4, are ln 3, 0 and 0, 0: weights 3/4, 1/4 and 1/2, 1/2."""
    x = np.zeros((1, 2, 4), dtype)
    x[0, 0, 0] = np.sqrt(2.0 * np.log(3.0))
    return x


def identity_weights(output: bool, dtype=np.float64) -> Weights:
    eye = np.eye(4, dtype=dtype)
    return Weights(query=eye, key=eye, value=eye, output=eye if output else None)


def judge_all(name: str, texts) -> list[float]:
    """r of the problems that the implementation takes, each of which must pass."""
    subject, judge, found = Subject(usable(name)), Judge(), []
    for text in texts:
        try:
            judgement = judge.values(subject, parse(text))
        except Unsupported:
            continue
        assert judgement.verdict.outcome is Outcome.PASS, f"{text}: {judgement.verdict.message}"
        found.append(judgement.verdict.r)
    return found
