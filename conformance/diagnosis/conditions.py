"""On which problems an implementation fails: what all failing ones have and no passing one has."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from conformance.dtypes import DTYPES
from conformance.problem import Problem, SinusoidalProblem

Condition = Callable[[Any], bool]  # of a problem of any operation
TILES = (16, 32, 64, 128, 256, 512, 1024)
FEATURES: dict[str, str] = {
    "mask": "with a mask",
    "bias": "with a bias",
    "causal": "with a causal limit",
    "key-lengths": "with key lengths",
    "scale": "with a scale given",
    "grouped-heads": "with grouped heads",
    "value-width": "where the widths of key and value differ",
    "cross-length": "where the lengths of query and key differ",
    "cross-attention": "in cross-attention",
    "projection-bias": "with biases of the projections",
    "no-projection-bias": "without biases of the projections",
    "no-output-projection": "without an output projection",
    "output-bias": "with a bias of the output projection",
    "many-heads": "with several heads",
    "inner-width": "where the inner width is not that of the model",
    "odd-width": "at odd widths",
    "addition": "where the encoding is added to x",
    "interleaved": "with sine and cosine alternating",
    "concatenated": "with all sines before all cosines",
}
ABSENT: dict[str, str] = {
    "grouped-heads": "without grouped heads",
    "value-width": "where the widths of key and value agree",
    "cross-length": "where the lengths of query and key agree",
}


def common(failing: Sequence[Problem], passing: Sequence[Problem]) -> str:
    """Where failures are, in words: the condition, or the two, that all failing problems meet and no passing one does; else the
    one that the fewest passing ones meet. Empty where nothing tells them apart."""
    met = {words: condition for words, condition in _known([*failing, *passing]) if all(map(condition, failing))}
    exact = [words for words, condition in met.items() if not any(map(condition, passing))]
    if exact:
        return f"only {exact[0]}"
    for first, second in combinations(met, 2):
        if not any(met[first](problem) and met[second](problem) for problem in passing):
            return f"only {first} and {second}"
    if not met:
        return ""
    words = min(met, key=lambda words: sum(map(met[words], passing)))
    return f"only {words}, though not always there"


def _known(problems: Sequence[Problem]) -> list[tuple[str, Condition]]:
    """Conditions in words, those that some of ``problems`` meet and not all."""
    found = [*_features(), *_sizes(), *_contents(problems)]
    return [(words, condition) for words, condition in found if len({condition(problem) for problem in problems}) == 2]


def _features() -> Iterator[tuple[str, Condition]]:
    for feature, words in FEATURES.items():
        yield words, _has(feature)
    for feature, words in ABSENT.items():
        yield words, _lacks(feature)
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
    for tile in TILES:
        yield f"with more than {tile} keys", _beyond("key_length", tile)
        yield f"with more than {tile} queries", _beyond("query_length", tile)


def _of_keys(test: Condition) -> Condition:
    return lambda problem: not isinstance(problem, SinusoidalProblem) and test(problem)


def _beyond(field: str, size: int) -> Condition:
    return lambda problem: getattr(problem, field, 0) > size


def _contents(problems: Sequence[Problem]) -> Iterator[tuple[str, Condition]]:
    """Layouts, laws, edits, kinds and forms of masks that occur."""
    for layout in sorted({getattr(problem, "layout", "contiguous") for problem in problems}):
        yield f"in the {layout} layout", _is("layout", layout)
    for edit in sorted({edit.name for problem in problems for edit in getattr(problem, "edits", ())}):
        yield f"with the edit {edit}", _edited(edit)
    for field in ("mask", "bias"):
        recipes = [recipe for problem in problems if (recipe := getattr(problem, field, None)) is not None]
        for part, words in (("form", "of the form"), ("name", "of the kind")):
            for value in sorted({getattr(recipe, part) for recipe in recipes}):
                yield f"with a {field} {words} {value}", _made(field, part, value)
    for law in sorted({problem.values.name for problem in problems} - {"golden"}):
        yield f"with values of the law {law}", _made("values", "name", law)


def _edited(name: str) -> Condition:
    return lambda problem: any(edit.name == name for edit in getattr(problem, "edits", ()))


def _made(field: str, part: str, value: str) -> Condition:
    return lambda problem: getattr(getattr(problem, field, None), part, None) == value
