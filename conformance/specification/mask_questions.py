"""Conventions on what a query sees, asked of attention and of multi-head attention alike.

Answers are read off which outputs move with which inputs, and not off the values: a wrong scale or projection hides none of them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from conformance.errors import Unsupported
from conformance.numerics.dtypes import float_type
from conformance.problem import AttentionProblem, KeyProblem, Recipe
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs
from conformance.specification.asking import (
    COARSE,
    IN_DTYPES,
    MULTI_HEAD_CROSS,
    MULTI_HEAD_SELF,
    NEGLIGIBLE,
    ONE_ARRAY,
    OTHER,
    REFUSED,
    attention_problems,
    changed,
    in_shapes,
    is_nothing,
    masked,
    meant_by,
    multi_head_problems,
    resembles,
    shaped,
)
from conformance.specification.build import attention
from conformance.specification.draw import KEY_FORMS
from conformance.specification.observing import Ask, Place, Question
from conformance.specification.requirement import Convention
from conformance.values import materialise

_PADDING_SEED = 47  # hides keys in each form and shape that is asked
_FEW_KEYS = 16  # so many can be shown one at a time, and be tried as the last one that a row sees


def _outputs(ask: Ask, problem: KeyProblem, mask: Recipe) -> np.ndarray:
    """The output for ``problem`` with another mask, of the form that it has."""
    assert problem.mask is not None
    return ask(problem.but(mask=replace(mask, form=problem.mask.form))).astype(np.float64)


def _polarity(ask: Ask, problem: KeyProblem) -> str:
    """Queries that see one and the same key are given the same output; those that see all the others are not.

    The key is the first, which all see that are causal too; of those, the first may see no other one.
    """
    first = 0 if problem.causal == "none" else 1
    if problem.query_length - first < 2:
        raise Unsupported("queries to compare")

    def spread(mask: str) -> float:
        output = _outputs(ask, problem, Recipe(mask, argument=0.0))
        return float(np.ptp(output[..., first:, :], axis=-2).max())

    shown, hidden = spread("one-key"), spread("all-but-one")
    if shown < NEGLIGIBLE * hidden:
        return "true-attends"
    return "true-ignores" if hidden < NEGLIGIBLE * shown else "other"


def _fully_masked_row(ask: Ask, problem: KeyProblem) -> str:
    """What two calls answer: what is left in memory, or drawn at random, is another thing each time."""
    first, second = (_outputs(ask, problem, Recipe("empty-rows", seed=1))[..., ::3, :] for _ in range(2))
    answer = _of_rows(ask, problem, first)
    if answer != _of_rows(ask, problem, second):
        return "unstable"
    if answer == "other":
        return "other" if resembles(second, first) else "unstable"
    return "unstable" if answer == "zeros" and not np.array_equal(first, second) else answer


def _of_rows(ask: Ask, problem: KeyProblem, rows: np.ndarray) -> str:
    if np.isnan(rows).all():
        return "nan"
    if not np.isfinite(rows).all():
        return "other"
    if is_nothing(rows, materialise(problem)).all():
        return "zeros"
    if problem.has("kv_heads"):
        value = materialise(problem).arrays()["value"].astype(np.float64)
        value = np.moveaxis(value.repeat(problem.heads // problem.kv_heads, axis=1), -2, 0)[..., None, :]
        if _is_mean(rows, np.repeat(value, problem.query_length, axis=-2), problem):
            return "mean"
    if problem.key_length > _FEW_KEYS:
        return "other"
    free = problem.but(causal="none")
    alone = np.stack([_outputs(ask, free, Recipe("one-key", argument=float(j))) for j in range(problem.key_length)])
    tells_keys_apart = bool((np.ptp(alone, axis=0).max(axis=-1) > COARSE * np.abs(alone).max()).all())
    return "mean" if tells_keys_apart and _is_mean(rows, alone, problem) else "other"


def _is_mean(rows: np.ndarray, of_key: np.ndarray, problem: KeyProblem) -> bool:
    """Whether ``rows`` are the mean of what each key gives, (keys, …, queries, width), or of those that causal alone leaves."""
    means = [of_key.mean(axis=0)]
    if problem.causal != "none":
        left = np.tri(problem.query_length, problem.key_length)
        means.append(np.einsum("qk,k...qc->...qc", left / left.sum(axis=1, keepdims=True), of_key))
    return any(resembles(rows, mean[..., ::3, :]) for mean in means)


def _emptied_together(ask: Ask, problem: AttentionProblem) -> str:
    """What two calls give in rows that causal empties, alone or together with the mask."""
    empty = np.logical_not(visible_pairs(cast(AttentionInputs, materialise(problem))).any(-1))
    if not empty.any():
        raise Unsupported("rows without a key")
    first, second = (ask(problem).astype(np.float64)[empty] for _ in range(2))
    answer = _of_emptied(first, problem, empty)
    return answer if answer == _of_emptied(second, problem, empty) else "unstable"


def _of_emptied(rows: np.ndarray, problem: AttentionProblem, empty: np.ndarray) -> str:
    """What ``rows``, (empty ones, width), are; means of all keys, or of those that causal or the mask alone leaves."""
    if np.isnan(rows).all():
        return "nan"
    if not np.isfinite(rows).all():
        return "other"
    if is_nothing(rows, materialise(problem)).all():
        return "zeros"
    alike = problem.but(values=replace(problem.values, name="zero-query"))
    left = (alike.but(mask=None, causal="none"), alike.but(mask=None), alike.but(causal="none"))
    means = np.stack([meant_by(one)[empty] for one in left])
    near = np.abs(means - rows) <= COARSE * np.abs(means).max()
    return "mean" if near.all(-1).any(0).all() else "other"


def _lowest_bias(ask: Ask, problem: AttentionProblem) -> str:
    """What rows give whose bias is the lowest finite number throughout."""
    rows = ask(problem).astype(np.float64)[..., ::3, :]
    if np.isnan(rows).all():
        return "nan"
    if not np.isfinite(rows).all():
        return "other"
    if is_nothing(rows, materialise(problem)).all():
        return "zeros"
    value = materialise(problem).arrays()["value"].astype(np.float64)
    value = value.repeat(problem.heads // problem.kv_heads, axis=1)
    slack = COARSE * np.abs(value).max(initial=0.0)
    low, high = value.min(-2, keepdims=True) - slack, value.max(-2, keepdims=True) + slack
    return "number" if bool(((low <= rows) & (rows <= high)).all()) else "other"


def _alignment(ask: Ask, problem: KeyProblem) -> str:
    """The last key that a row sees is the last one that, replaced together with all after it, moves the row.

    Of many keys, those near the diagonals are tried.
    """
    problem = problem.but(causal="default")
    plain = ask(problem).astype(np.float64)
    if np.isnan(plain).all():
        return "nan"
    length, surplus = problem.query_length, problem.key_length - problem.query_length
    starts = _starts(length, problem.key_length)
    rounding = 4.0 * float_type(problem.dtype).unit_roundoff  # two calls may round to different sides
    negligible = np.maximum(NEGLIGIBLE, rounding * np.abs(plain))
    last = np.zeros(length, dtype=int)
    for start in starts:
        other = ask(problem.but(transformations=(Recipe("suffix", seed=3, argument=float(start)),))).astype(np.float64)
        still = (np.abs(other - plain) <= negligible) | (np.isnan(other) & np.isnan(plain))  # a row may be fully masked
        moved = ~np.moveaxis(still, -2, 0).reshape(length, -1).all(axis=1)
        last[moved] = start
    tried = np.array([0, *starts])

    def lies(diagonal: int) -> bool:
        """Whether each row that sees a key sees those up to its diagonal."""
        rows = [row for row in range(length) if row + diagonal >= 0]
        return all(last[row] == tried[tried <= row + diagonal].max() for row in rows)

    if lies(0):
        return "top-left"
    return "bottom-right" if lies(surplus) else "other"


def _starts(query_length: int, key_length: int) -> list[int]:
    """Keys from which on all are replaced: each of few, else those near both ends of both diagonals and between them."""
    surplus = key_length - query_length
    near = (1, 2, surplus, surplus + 1, key_length // 2, query_length - 1, query_length, key_length - 2, key_length - 1)
    chosen = range(1, key_length) if key_length <= _FEW_KEYS else near
    return sorted({start for start in chosen if 0 < start < key_length})


def _behind_mask(tensor: str, number: str) -> Convention:
    name, word = {"K": "key", "V": "value"}[tensor], {"nan": "NaN", "inf": "infinity"}[number]
    mask = Recipe("right-padding", seed=_PADDING_SEED)

    def read(ask: Ask, problem: KeyProblem) -> str:
        output = _outputs(ask, problem.but(transformations=(Recipe(f"hidden-{name}", argument=float(number)),)), mask)
        if not np.isfinite(output).all():
            return "leaks"
        return "contained" if resembles(output, _outputs(ask, problem, mask)) else "other"

    return Convention(
        id=f"CON-{number.upper()}-BEHIND-MASK-{tensor}",
        question=f"What does {word} in {tensor} of a key do that a boolean mask hides from every query?",
        source="transformers#38690; xformers documentation of padded operators",
        answers={
            "contained": "the output is as if the hidden entry were an ordinary number",
            "leaks": "the output is not finite",
            "other": "the output is finite, and another than with an ordinary number there",
        },
        legitimate=frozenset({"contained", "leaks"}),
        questions=_of_masks(
            read,
            "b11k",
            source="cross",
            places=in_shapes("even"),
            multi_head=(*MULTI_HEAD_CROSS, changed("causal", causal="top-left")),
        ),
    )


def _of_masks(
    read: Callable[[Ask, Any], str],
    form: str,
    *,
    source: str = "self",
    places: tuple[Place, ...] = (),
    multi_head: tuple[Place, ...] = (),
) -> dict[str, Question]:
    """Questions by operation, asked with a mask of ``form`` if they can; multi-head attention as self- or cross-attention.

    ``places`` are those of attention beside the dtypes, ``multi_head`` those of multi-head attention.
    """
    return {
        "attention": Question(problems=lambda: masked(attention_problems(), form), read=read, places=(*IN_DTYPES, *places)),
        "multi_head_attention": Question(
            problems=lambda: masked(multi_head_problems(source), form), read=read, places=(*IN_DTYPES, *multi_head)
        ),
    }


_IN_FORMS = tuple(changed(f"a mask of form {form}", mask=Recipe("all", form=form)) for form in KEY_FORMS)
_OTHER_SHAPES = (
    shaped("2 key heads for 6 query heads", "grouped"),
    shaped("values of another width", "value-width"),
    shaped("3 batch rows of 5 heads", "prime"),
)
_CAUSAL = shaped("causal", "square", causal="top-left")
_ONE_ARRAY = shaped("one array for query, key and value", "square", transformations=ONE_ARRAY)

MASK_CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="CON-EMPTY-ROW",
        question="What does a fully masked row give?",
        source="pytorch#103963; pytorch#103749; mlx#2608",
        answers={
            "zeros": "zeros, or zeros of the heads, which an output projection turns into its bias",
            "mean": "the mean of all V, hidden ones included, or of those that causal leaves",
            "nan": "NaN, as softmax over nothing but −∞ gives",
            "unstable": "something else in each call",
            "other": OTHER,
        },
        legitimate=frozenset({"zeros", "mean", "nan"}),
        questions=_of_masks(
            _fully_masked_row,
            "b1qk",
            places=(*in_shapes("tile"), *_OTHER_SHAPES, _CAUSAL, _ONE_ARRAY),
            multi_head=(*MULTI_HEAD_SELF, changed("causal", causal="top-left")),
        ),
    ),
    _behind_mask("K", "nan"),
    _behind_mask("V", "nan"),
    _behind_mask("V", "inf"),
    Convention(
        id="CON-EMPTY-ROW-CAUSAL",
        question="What does a row give that causal masks fully, alone or together with a mask?",
        source="pytorch#103963; tvm#14907; flash-attention 2.1 release notes",
        answers={
            "zeros": "zeros",
            "mean": "the mean of all V, or of those that causal or the mask alone leaves",
            "nan": "NaN, as softmax over nothing but −∞ gives",
            "unstable": "something else in each call",
            "other": OTHER,
        },
        legitimate=frozenset({"zeros", "mean", "nan"}),
        questions={
            "attention": Question(
                problems=lambda: (
                    problem.but(mask=Recipe("left-padding", seed=46, form=form))
                    for problem in attention("square", values="gaussian.1#1", causal="top-left")
                    for form in ("b11k", "b1qk", "bhqk")
                ),
                read=_emptied_together,
                places=(
                    *IN_DTYPES,
                    shaped("from the top left, 7 queries and 13 keys", "wide"),
                    shaped("from the bottom right, 13 queries and 7 keys", "tall", causal="bottom-right", few=True),
                    shaped("from the bottom right, 13 queries and 7 keys, no mask", "tall", causal="bottom-right", mask=None),
                    shaped("2 key heads for 6 query heads", "grouped"),
                ),
            )
        },
    ),
    Convention(
        id="CON-LOWEST-BIAS",
        question="What does a query give whose bias is the lowest finite number of the dtype for every key?",
        source="transformers#38690; torch.finfo(dtype).min is the usual fill of additive masks",
        answers={
            "number": "what a number gives, some mean of V: with equal weights where nothing is left of the scores beside it, "
            "with those that no bias gives, or with others where parts of the keys are merged by their log-sum-exps",
            "zeros": "zeros, as if every key were hidden",
            "nan": "NaN, as if every key were hidden: the number times log₂ e, or with a score, is −∞",
            "other": OTHER,
        },
        legitimate=frozenset({"number", "zeros", "nan"}),
        questions={
            "attention": Question(
                problems=lambda: (
                    problem.but(bias=Recipe("lowest-rows", seed=1, form=form))
                    for problem in attention_problems()
                    for form in ("qk", "bhqk", "b1qk", "1hqk")
                ),
                read=_lowest_bias,  # in one dtype: in float16 computed in float32 it is a number like others
                places=(*in_shapes("even"), *_OTHER_SHAPES),
            )
        },
    ),
    Convention(
        id="CON-ALIGNMENT",
        question="Causal, with more keys than queries and nothing said of the alignment: which keys does row i see?",
        source="PyTorch documentation of scaled_dot_product_attention; flash-attention 2.1 release notes; pytorch#108108",
        answers={
            "top-left": "j ≤ i",
            "bottom-right": "j ≤ i + Lk − Lq",
            "nan": "the output is NaN",
            "refused": REFUSED,
            "other": OTHER,
        },
        legitimate=frozenset({"top-left", "bottom-right"}),
        questions={
            "attention": Question(
                problems=attention_problems,
                read=_alignment,
                places=(
                    *IN_DTYPES,
                    shaped("1 head with 65 queries and 67 keys", "tile"),
                    shaped("2 heads with 2 queries and 1031 keys", "long"),
                    shaped("1 query and 13 keys", "decode", few=True),
                    shaped("13 queries and 7 keys", "tall"),
                ),
            ),
            "multi_head_attention": Question(
                problems=lambda: multi_head_problems("cross"),
                read=_alignment,
                places=(*IN_DTYPES, *MULTI_HEAD_CROSS, changed("1 query and 7 keys", query_length=1)),
            ),
        },
        native=True,
        otherwise="Causal problems of unequal lengths are then asked by mask or bias, if it takes one, and judged so.",
    ),
    Convention(
        id="CON-POLARITY",
        question="What does True mean in a boolean mask, as the implementation takes it?",
        source="PyTorch documentation: scaled_dot_product_attention and MultiheadAttention differ",
        answers={
            "true-attends": "the query may attend to the key",
            "true-ignores": "the key is hidden from the query",
            "other": OTHER,
        },
        legitimate=frozenset({"true-attends", "true-ignores"}),
        questions=_of_masks(
            _polarity,
            "b1qk",
            places=(*in_shapes("tile"), *_IN_FORMS, _ONE_ARRAY),
            multi_head=(*MULTI_HEAD_SELF, *_IN_FORMS),
        ),
        native=True,
        otherwise="It is judged by the answer of the first place, and as if True meant attend where that is none of these.",
    ),
    Convention(
        id="CON-PADDING-POLARITY",
        question="What does True mean in a key padding mask, (batch, key length), as the implementation takes it?",
        source="PyTorch documentation of MultiheadAttention, where True ignores; elsewhere it attends",
        answers={
            "true-attends": "queries may attend to the key",
            "true-ignores": "the key is hidden from all queries",
            "other": OTHER,
        },
        legitimate=frozenset({"true-attends", "true-ignores"}),
        questions=_of_masks(_polarity, "b11k", places=(*in_shapes("even"), _ONE_ARRAY), multi_head=MULTI_HEAD_SELF),
        by="padding",
        otherwise="It is judged by the answer of the first place, and as if True meant attend where that is none of these.",
    ),
)
