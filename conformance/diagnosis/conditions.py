"""On which problems an implementation fails: what all failing ones have and no passing one has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from conformance.features import every_feature
from conformance.numerics.dtypes import DTYPES
from conformance.operations import operation_of, operations
from conformance.problem import Problem

Condition = Callable[[Any], bool]  # of a problem of any operation
FEW = 1 / 3  # of the passing problems
TILES = (16, 32, 64, 128, 256, 512, 1024)
FEATURES: dict[str, str] = {
    **{one.name: one.condition for one in every_feature() if one.condition},
    **{name: words for operation in operations().values() for name, words in operation.conditions.items()},
}
ABSENT: dict[str, str] = {name: words for operation in operations().values() for name, words in operation.absent.items()}
HIDING = frozenset(one.name for one in every_feature() if one.hides)
SIZES: dict[str, str] = {
    "key_length": "keys",
    "query_length": "queries",
    "length": "positions",
    "width": "columns of queries and keys",
    "heads": "heads",
    "batch": "batch rows",
}


def common(failing: Sequence[Problem], passing: Sequence[Problem]) -> str:
    """Where failures are, in words: the condition, or the two, that all failing problems meet and no passing one does; else one
    that few passing ones meet. Empty where nothing tells them apart."""
    every = [*failing, *passing]
    general = _met([*_features(), *_sizes(), *_contents(every)], failing, passing)
    met = general | _met(_least(failing), failing, passing)
    exact = [words for words, condition in met.items() if not any(map(condition, passing))]
    if exact:
        return f"only {exact[0]}"
    for first, second in combinations(met, 2):
        if not any(met[first](problem) and met[second](problem) for problem in passing):
            return f"only {first} and {second}"
    shares = {words: sum(map(condition, passing)) / len(passing) for words, condition in general.items()}
    words = min(shares, key=shares.__getitem__, default="")
    return f"only {words}, though not always there" if words and shares[words] <= FEW else ""


def _met(
    conditions: Iterable[tuple[str, Condition]], failing: Sequence[Problem], passing: Sequence[Problem]
) -> dict[str, Condition]:
    """Those that all failing problems meet and not all passing ones."""
    return {w: condition for w, condition in conditions if all(map(condition, failing)) and not all(map(condition, passing))}


def _features() -> Iterator[tuple[str, Condition]]:
    for feature, words in FEATURES.items():
        yield words, _has(feature)
    for feature, words in ABSENT.items():
        yield words, _lacks(feature)
    yield "where keys are hidden", lambda problem: bool(HIDING & problem.features)
    for dtype in DTYPES:
        yield f"in {dtype}", _is("dtype", dtype)
    yield "in 16 bit", lambda problem: problem.dtype in ("float16", "bfloat16")


def _has(feature: str) -> Condition:
    return lambda problem: feature in problem.features


def _lacks(feature: str) -> Condition:
    return lambda problem: feature not in problem.features


def _is(field: str, value: object) -> Condition:
    return lambda problem: getattr(problem, field, None) == value


def _sizes() -> Iterator[tuple[str, Condition]]:
    yield "with a single query", _is("query_length", 1)
    yield "with more queries than one", _beyond("query_length", 1)
    yield "with more keys than queries", _of_keys(lambda problem: problem.key_length > problem.query_length)
    yield "with more queries than keys", _of_keys(lambda problem: problem.query_length > problem.key_length)
    yield "with a batch of several rows", _beyond("batch", 1)
    yield "with several heads", _beyond("heads", 1)
    yield "with several heads of keys and values", _beyond("kv_heads", 1)
    for alignment in ("top-left", "bottom-right"):
        yield f"with a {alignment} causal limit", _is("causal", alignment)
    yield "with a single position", _is("length", 1)
    for tile in TILES:
        yield f"with more than {tile} positions", _beyond("length", tile)
        yield f"with more than {tile} keys", _beyond("key_length", tile)
        yield f"with more than {tile} queries", _beyond("query_length", tile)


def _least(failing: Sequence[Problem]) -> Iterator[tuple[str, Condition]]:
    """From which size on it fails."""
    for field, words in SIZES.items():
        sizes = [getattr(problem, field, 0) for problem in failing]
        words = operation_of(failing[0]).of_sizes.get(field, words)
        if min(sizes) > 1:
            yield f"with {min(sizes)} {words} or more", _beyond(field, min(sizes) - 1)


def _of_keys(test: Condition) -> Condition:
    return lambda problem: problem.attends and test(problem)


def _beyond(field: str, size: int) -> Condition:
    return lambda problem: getattr(problem, field, 0) > size


def _contents(problems: Sequence[Problem]) -> Iterator[tuple[str, Condition]]:
    """Layouts, distributions, transformations, kinds and forms of masks that occur."""
    for layout in sorted({problem.layout for problem in problems}):
        yield f"in the {layout} layout", _is("layout", layout)
    for transformation in sorted({transformation.name for problem in problems for transformation in problem.transformations}):
        yield f"with the transformation {transformation}", _transformed(transformation)
    for field in ("mask", "bias"):
        recipes = [recipe for problem in problems if (recipe := getattr(problem, field)) is not None]
        for part, words in (("form", "of the form"), ("name", "of the kind")):
            for value in sorted({getattr(recipe, part) for recipe in recipes}):
                yield f"with a {field} {words} {value}", _made(field, part, value)
    for frequencies in sorted({getattr(problem, "frequencies", "default") for problem in problems} - {"default"}):
        yield f"with the frequencies {frequencies}", _is("frequencies", frequencies)
    for distribution in sorted({problem.values.name for problem in problems} - {"golden"}):
        yield f"with values of the distribution {distribution}", _made("values", "name", distribution)


def _transformed(name: str) -> Condition:
    return lambda problem: any(transformation.name == name for transformation in problem.transformations)


def _made(field: str, part: str, value: str) -> Condition:
    return lambda problem: getattr(getattr(problem, field, None), part, None) == value
