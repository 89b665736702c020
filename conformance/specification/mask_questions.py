"""Conventions on what a query sees, asked of attention and of multi-head attention alike.

Answers are read off which outputs move with which inputs, and not off the values: a wrong scale or projection hides none of them.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from conformance.errors import Unsupported
from conformance.inputs import MultiHeadInputs
from conformance.problem import Recipe
from conformance.specification.asking import OTHER, REFUSED, KeyProblem, asked, attention_problems, masked, multi_head_problems
from conformance.specification.model import Ask, Convention, Observer
from conformance.values import materialise

_NEGLIGIBLE = 1e-4  # of what one token contributes to an output; weights of the tokens that count are far larger
_PADDING_SEED = 47  # hides keys in each form and shape that is asked


def _outputs(ask: Ask, problem: KeyProblem, mask: Recipe) -> np.ndarray:
    """The output for ``problem`` with another mask, of the form that it has."""
    assert problem.mask is not None
    return ask(problem.but(mask=replace(mask, form=problem.mask.form))).astype(np.float64)


def _polarity(ask: Ask, problem: KeyProblem) -> str:
    """Queries that see one and the same key are given the same output; those that see all the others are not."""

    def spread(mask: str) -> float:
        output = _outputs(ask, problem, Recipe(mask, argument=2.0))
        return float(np.ptp(output, axis=-2).max())

    shown, hidden = spread("one-key"), spread("all-but-one")
    if shown < _NEGLIGIBLE * hidden:
        return "true-attends"
    return "true-ignores" if hidden < _NEGLIGIBLE * shown else "other"


def _empty_row(ask: Ask, problem: KeyProblem) -> str:
    """The mean of V is the mean of what each key alone gives."""
    rows = _outputs(ask, problem, Recipe("empty-rows", seed=1))[..., ::3, :]
    if np.isnan(rows).all():
        return "nan"
    if (rows == _of_no_key(problem)).all():
        return "zeros"
    alone = np.stack([_outputs(ask, problem, Recipe("one-key", argument=float(j))) for j in range(problem.key_length)])
    mean = alone.mean(axis=0)[..., ::3, :]
    tells_keys_apart = bool((np.ptp(alone, axis=0).max(axis=-1) > 0).all())
    return "mean" if tells_keys_apart and np.allclose(rows, mean, rtol=1e-4, atol=1e-4) else "other"


def _of_no_key(problem: KeyProblem) -> np.ndarray:
    """The output where heads give zeros: 0, or the bias of the output projection."""
    inputs = materialise(problem)
    bias = inputs.weights.output_bias if isinstance(inputs, MultiHeadInputs) else None
    return np.zeros(()) if bias is None else bias


def _alignment(ask: Ask, problem: KeyProblem) -> str:
    """The last key that a row sees is the last one that, replaced together with all after it, moves the row."""
    problem = problem.but(causal="default")
    plain = ask(problem).astype(np.float64)
    if np.isnan(plain).all():
        return "nan"
    last = np.zeros(problem.query_length, dtype=int)
    for start in range(1, problem.key_length):
        other = ask(problem.but(edits=(Recipe("suffix", seed=3, argument=float(start)),))).astype(np.float64)
        moved = np.moveaxis(np.abs(other - plain), -2, 0).reshape(problem.query_length, -1).max(axis=1)
        last[~(moved <= _NEGLIGIBLE)] = start
    rows, surplus = np.arange(problem.query_length), problem.key_length - problem.query_length
    if (last == rows).all():
        return "top-left"
    return "bottom-right" if (last == rows + surplus).all() else "other"


def _or_refused(observer: Observer) -> Observer:
    def observe(ask: Ask) -> str:
        try:
            return observer(ask)
        except Unsupported:
            raise
        except Exception:  # an implementation may raise anything
            return "refused"

    return observe


def _behind_mask(tensor: str, number: str) -> Convention:
    name, word = {"K": "key", "V": "value"}[tensor], {"nan": "NaN", "inf": "infinity"}[number]

    def observe(ask: Ask, problem: KeyProblem) -> str:
        edits = (Recipe(f"hidden-{name}", argument=float(number)),)
        output = _outputs(ask, problem.but(edits=edits), Recipe("right-padding", seed=_PADDING_SEED))
        return "contained" if np.isfinite(output).all() else "leaks"

    return Convention(
        id=f"CON-{number.upper()}-BEHIND-MASK-{tensor}",
        question=f"What does {word} in {tensor} of a key do that a boolean mask hides from every query?",
        source="transformers#38690; xformers documentation of padded operators",
        answers={
            "contained": "the output is as if the hidden entry were an ordinary number",
            "leaks": "the output is not finite",
        },
        observers=_of_masks(observe, "b11k", source="cross"),
    )


def _of_masks(observe: Callable[[Ask, KeyProblem], str], form: str, source: str = "self") -> dict[str, Observer]:
    """Observers by operation, which ask with a mask of ``form`` if they can; multi-head attention as self- or cross-attention."""
    return {
        "attention": asked(observe, lambda: masked(attention_problems(), form)),
        "multi_head_attention": asked(observe, lambda: masked(multi_head_problems(source), form)),
    }


MASK_CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="CON-EMPTY-ROW",
        question="What does a query give from which every key is hidden?",
        source="pytorch#103963; pytorch#103749; mlx#2608",
        answers={
            "zeros": "zeros, which an output projection turns into its bias",
            "mean": "the mean of all V, hidden ones included",
            "nan": "NaN",
            "other": OTHER,
        },
        observers=_of_masks(_empty_row, "b1qk"),
    ),
    _behind_mask("K", "nan"),
    _behind_mask("V", "nan"),
    _behind_mask("V", "inf"),
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
        observers={
            "attention": _or_refused(asked(_alignment, attention_problems)),
            "multi_head_attention": _or_refused(asked(_alignment, lambda: multi_head_problems("cross"))),
        },
        native=True,
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
        observers=_of_masks(_polarity, "b1qk"),
        native=True,
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
        observers=_of_masks(_polarity, "b11k"),
        by="padding",
    ),
)
