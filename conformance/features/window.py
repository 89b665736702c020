"""A sliding window: a query sees the keys from ``left`` before its own place to ``right`` behind it, both included.

Its place is where the causal limit's alignment puts it. Either side may be open. Sources: flash-attention (``window_size``),
ONNX Attention 25, ``jax.nn.dot_product_attention`` (``local_window_size``): inclusive; Mistral and Hugging Face count W keys with
the query's own; cuDNN leaves the one at the left edge out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from conformance.errors import ProblemError, Unsupported, quoted
from conformance.features.causal import offset
from conformance.features.feature import Conversion, Feature, Wrong
from conformance.problem.fields import Field, demand

ALIGNMENTS = ("", "top-left", "bottom-right", "default")  # "": that of the causal limit, top-left without one
LARGEST = 10**9


@dataclass(frozen=True)
class Sides:
    """The field: ``3/2``, ``-/2`` where the left side is open, ``3/2/bottom-right``. Its value is (left, right) or (left, right,
    alignment)."""

    def read(self, text: str, key: str) -> tuple[Any, ...]:
        left, right, *alignment = text.split("/") if text.count("/") in (1, 2) else ("", "")
        sides = [None if side == "-" else int(side) if side.isascii() and side.isdigit() and len(side) < 10 else -1
                 for side in (left, right)]  # fmt: skip
        demand(-1 not in sides, f"{key}={quoted(text)} is not of the form 3/2, -/2 or 3/2/bottom-right.")
        return ((*sides, *alignment),)

    def write(self, values: tuple[Any, ...]) -> str:
        left, right, alignment = parts(values[0])
        return "/".join(["-" if side is None else str(side) for side in (left, right)] + ([alignment] if alignment else []))

    def check(self, values: tuple[Any, ...], names: Any) -> None:
        if values[0] is None:
            return
        *sides, alignment = parts(values[0])
        fits = all(side is None or (isinstance(side, int) and 0 <= side <= LARGEST) for side in sides)
        demand(fits and alignment in ALIGNMENTS, f"{names[0]}={values[0]} must be two whole numbers from 0 on or None.")


def parts(window: Any) -> tuple[int | None, int | None, str]:
    """Left, right and alignment."""
    return (*window, "") if len(window) == 2 else window


def alignment_of(window: Any, causal: str) -> str:
    """top-left, bottom-right, or default where that is left to the implementation."""
    return parts(window)[2] or (causal if causal != "none" else "top-left")


class Window(Feature):
    name = argument = "window"
    aliases = ("window_size", "local_window_size", "attn_window", "attention_window")
    ways = ("native", "mask", "bias")
    words = "the window"
    condition = "with a window"
    alone: ClassVar = {"attention": ("ATT-MASK-057", "ATT-MASK-058"), "multi_head_attention": ("ATT-HEAD-042",)}
    beside: ClassVar = {
        "attention": dict.fromkeys(("mask", "bias", "causal", "key-lengths", "scale"), ("ATT-MASK-059",)),
        "multi_head_attention": dict.fromkeys(("mask", "causal"), ("ATT-HEAD-042",)),
    }
    positional = True
    example = (3, 2)
    meant: ClassVar = {"CON-WINDOW": "inclusive", "CON-WINDOW-ALIGNMENT": "top-left"}
    field = Field(
        key="window", kind=Sides(), names=("window",), defaults=(None,),
        asks={"window": lambda problem: problem.window is not None},
    )  # fmt: skip

    @property
    def readings(self) -> tuple[str, ...]:
        return ("CON-WINDOW",)

    def check(self, problem: Any) -> None:
        alignment = parts(problem.window)[2]
        if alignment and problem.causal not in ("none", alignment):
            raise ProblemError(f"window={Sides().write((problem.window,))} lies otherwise than causal={problem.causal}.")

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "1 1 rows lk"] | None:
        if inputs.window is None:
            return None
        (left, right, _), lengths = parts(inputs.window), (inputs.query.shape[-2], inputs.key.shape[-2])
        distance = np.arange(lengths[1]) - np.arange(start, stop)[:, None] - self._offset(inputs, *lengths)
        seen = np.ones(distance.shape, dtype=bool)
        if left is not None:
            seen &= distance >= -left
        if right is not None:
            seen &= distance <= right
        return seen[None, None]

    def _offset(self, inputs: Any, query_length: int, key_length: int) -> int:
        return offset(alignment_of(inputs.window, inputs.causal), query_length, key_length)

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        if inputs.window is None:
            return
        left, right, said = parts(inputs.window)
        queries, keys = visible.shape[2:]
        bottom_right = "bottom-right" in (said, inputs.causal)
        for i in range(queries):
            own = i + keys - queries if bottom_right else i
            if left is not None:
                visible[:, :, i, : max(0, own - left)] = False
            if right is not None:
                visible[:, :, i, max(0, own + right + 1) :] = False

    def passed(self, inputs: Any, implementation: Any, to: Conversion, known: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        """The numbers as the implementation counts, and the alignment, where it can be told."""
        left, right, _ = parts(inputs.window)
        counted = known.get("CON-WINDOW")
        if left is not None and counted in ("exclusive", "left-exclusive"):
            left += 1
        if right is not None and counted == "exclusive":
            right += 1
        yield "window", (left, right)
        alignment = alignment_of(inputs.window, inputs.causal)
        if implementation.has("alignment") and alignment != "default":
            yield "alignment", alignment

    def read(self, named: Mapping[str, Any]) -> Any:
        window = named[self.parameter]
        return None if window is None else (*window, named["alignment"])

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Natively where it lies as the implementation lays it; folded where it is known how it lies."""
        alignment = alignment_of(problem.window, problem.causal)
        if problem.query_length == problem.key_length:
            return True
        if way != "native":
            return alignment != "default"
        return alignment == "default" or implementation.has("alignment") or conventions.get(_ALIGNMENT) == alignment

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        return Unsupported("window", self.name)

    def decided_by(self, problem: Any, implementation: Any) -> tuple[str, ...]:
        unequal = problem.query_length != problem.key_length
        return (_ALIGNMENT,) if unequal and not implementation.has("alignment") else ()

    def drawn(self, problem: Any, between: Callable[[int, int], int]) -> Any:
        sides = [side if side >= 0 else None for side in (between(-1, problem.key_length), between(-1, problem.key_length))]
        return tuple(sides) if problem.causal != "default" else None

    def requirements(self) -> Iterable[Any]:
        from conformance.specification.build import ALL, F32, attention, joined, multi_head
        from conformance.specification.draw import Draw, MultiHeadDraw
        from conformance.specification.requirement import Blind, Requirement

        sides = ("3/2", "0/4", "2/0", "-/1", "5/-")

        def alone() -> Any:
            return joined(
                attention("square", ALL, values="spread.1#201", window=(3, 2)),
                attention("square", F32, values="spread.1#202", window=(0, 4)),
                attention("square", F32, values="signatures.1#203", window=(4, 0)),
                attention("square", F32, values="spread.1#204", window=(None, 1)),
                attention("square", ALL, values="spread.1#205", window=(2, None)),
                attention("grouped-square", F32, values="spread.1#206", window=(1, 3)),
                attention("tile", F32, values="spread.1#207", window=(16, 15)),
                attention("prime", ALL, values="spread.1#208", window=(4, 7)),
            )

        return (
            Requirement(
                id="ATT-MASK-057",
                sentence="With a window, a query sees the keys from so many places before its own to so many behind it, both "
                "included; an open side hides nothing.",
                rationale="Whether the key at the edge is in is counted differently in many kernels.",
                source="transformers#29623; mlx-lm#390; sglang#31501",
                designed=alone,
                few_of=lambda problem: problem.query_length == 13 and problem.heads == problem.kv_heads,
                random=Draw(shapes="square", further=(("window", sides),)),
            ),
            Requirement(
                id="ATT-MASK-058",
                sentence="Window over unequal lengths: the place of a query is where the alignment puts it.",
                rationale="Window and triangle are aligned at different corners where each has code of its own.",
                source="flashinfer#4972; ROCm/flash-attention#158; lalamo#200",
                designed=lambda: joined(
                    attention("wide", ALL, values="spread.1#209", window=(2, 1, "bottom-right")),
                    attention("wide", F32, values="spread.1#210", window=(2, 3, "top-left")),
                    attention("decode", F32, values="spread.1#211", window=(4, 0, "bottom-right")),
                    attention("tall", F32, values="spread.1#212", window=(None, 2, "top-left")),
                    attention("long", F32, values="spread.1#213", window=(100, 0, "bottom-right")),
                    attention("wide", F32, values="spread.1#214", window=(2, 0), causal="bottom-right"),
                    attention("wide", F32, values="spread.1#215", window=(3, 1), causal="top-left"),
                ),
                random=Draw(shapes="wide", further=(("window", ("3/2/bottom-right", "2/3/top-left", "4/-/bottom-right")),)),
            ),
            Requirement(
                id="ATT-MASK-059",
                sentence="Window together with causal, a mask, key lengths or a bias: a key is visible where all show it.",
                rationale="Each of them is easily the only one that a code path looks at.",
                source="pytorch#190486; tvm#18630; vllm#17476",
                designed=lambda: joined(
                    attention("square", ALL, values="spread.1#216", window=(3, 3), causal="top-left"),
                    attention("square", ALL, values="spread.1#217", window=(4, 2), mask="random.1:b1qk*0.8#217"),
                    attention("square", ALL, values="spread.1#218", window=(5, 2), key_lengths=(9, 12)),
                    attention("square", ALL, values="spread.1#219", window=(3, 2), bias="gaussian.1:qk#219"),
                    attention("square", ALL, values="spread.1#220", window=(3, 2), scale=0.5),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                random=Draw(
                    shapes="core", causal=("none", "top-left", "bottom-right"), masks=("", "random.1*0.8"), forms=("b1qk",),
                    further=(("window", ("3/2", "4/0", "-/3")),),
                ),
            ),
            Requirement(
                id="ATT-MASK-060",
                sentence="A window that is wider than the keys hides nothing.",
                rationale="Tiles beyond the ends of the keys are planned for it.",
                source="Follows from the definition",
                designed=lambda: joined(
                    attention("square", ALL, values="spread.1#221", window=(13, 40)),
                    attention("wide", F32, values="spread.1#222", window=(100, 100)),
                ),
            ),
            Requirement(
                id="ATT-MASK-061",
                sentence="A window of 0 shows each query the key at its own place alone.",
                rationale="0 is taken for \"no window\" where a number stands for that.",
                source="Follows from the definition",
                designed=lambda: attention("square", ALL, values="spread.1#223", window=(0, 0)),
                exempt="one key is all that a query sees.",
                cannot_tell=("mean", "argmax"),
            ),
            Requirement(
                id="ATT-HEAD-042",
                operation="multi_head_attention",
                sentence="A window hides keys in multi-head attention as in plain attention, beside causal and masks too.",
                rationale="The layer builds its own mask from it.",
                source="pytorch#190486",
                designed=lambda: joined(
                    multi_head("square", ALL, values="gaussian.1#224", window=(2, 1)),
                    multi_head("square", ALL, values="gaussian.1#225", window=(3, 3), causal="top-left"),
                    multi_head("square", ALL, values="gaussian.1#226", window=(2, 2), mask="random.1:b1qk*0.8#26"),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                blind=(Blind("bfloat16", ("low",), ("zeros", "mean", "argmax", "uniform")),),
                random=MultiHeadDraw(further=(("window", ("2/1", "3/0", "-/1")),)),
            ),
        )  # fmt: skip

    def faults(self) -> tuple[Wrong, ...]:
        def wrong(
            identifier: str,
            sentence: str,
            change: Callable[[Any], Any],
            *,
            of: str = "ATT-MASK-057",
            sources: tuple[str, ...] = (),
        ) -> Wrong:
            """``change`` gives other inputs for those that have a window."""
            return Wrong(
                id=f"window-{identifier}", sentence=sentence, requirements={"attention": (of,)}, sources=sources,
                rewrite=lambda inputs: inputs if inputs.window is None else change(inputs),
            )  # fmt: skip

        def sides(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
            def changed(inputs: Any) -> Any:
                left, right, corner = parts(inputs.window)
                return inputs.but(window=(*change(left, right), corner))

            return changed

        def moved(side: int | None, by: int) -> int | None:
            return None if side is None else max(0, side + by)

        def at_other_corner(inputs: Any) -> Any:
            left, right, _ = parts(inputs.window)
            return inputs.but(window=(left, right, _OTHER[alignment_of(inputs.window, inputs.causal)]))

        def modulo_keys(inputs: Any) -> Any:
            keys = inputs.key.shape[-2]
            return sides(lambda left, right: tuple(None if side is None else side % keys for side in (left, right)))(inputs)

        def cut_at_tiles(inputs: Any) -> Any:
            seen = self.visible(inputs, 0, inputs.query.shape[-2])
            assert seen is not None
            tiles = np.add.reduceat(seen, np.arange(0, seen.shape[-1], 8), axis=-1, dtype=int) > 0
            whole = np.repeat(tiles, 8, axis=-1)[..., : seen.shape[-1]]
            return inputs.but(window=None, mask=whole if inputs.mask is None else whole & inputs.mask)

        return (
            wrong("one-more-before", "shows one key more before each query than the window",
                  sides(lambda left, right: (moved(left, 1), right)), sources=(_BACKENDS, _CACHE)),
            wrong("one-less-before", "shows one key less before each query than the window",
                  sides(lambda left, right: (moved(left, -1), right)), sources=(_BACKENDS,)),
            wrong("one-more-behind", "shows one key more behind each query than the window",
                  sides(lambda left, right: (left, moved(right, 1)))),
            wrong("one-less-behind", "shows one key less behind each query than the window",
                  sides(lambda left, right: (left, moved(right, -1)))),
            wrong("sides-exchanged", "takes the sides of the window for one another", sides(lambda left, right: (right, left))),
            wrong("of-left-side", "has the left side of the window at both sides", sides(lambda left, right: (left, left))),
            wrong("open-behind", "has no window behind each query", sides(lambda left, right: (left, None))),
            wrong("open-before", "has no window before each query", sides(lambda left, right: (None, right))),
            wrong("of-zero-ignored", "takes a window of 0 for none",
                  sides(lambda left, right: (None, None) if left == right == 0 else (left, right)), of="ATT-MASK-061"),
            wrong("modulo-keys", "counts the sides of the window modulo the number of keys", modulo_keys, of="ATT-MASK-060"),
            wrong("at-other-corner", "aligns the window at the other corner", at_other_corner,
                  of="ATT-MASK-058", sources=_CORNER),
            wrong("cut-at-tiles", "cuts the window at borders of tiles of 8 keys only", cut_at_tiles, sources=(_TILES,)),
        )  # fmt: skip

    def conventions(self) -> Iterable[Any]:
        from conformance.specification.asking import IN_DTYPES, OTHER, REFUSED, changed, first_alike
        from conformance.specification.build import attention, multi_head
        from conformance.specification.observing import Question
        from conformance.specification.requirement import Convention

        counts = {"inclusive": (3, 3), "exclusive": (2, 2), "left-exclusive": (2, 3)}

        def square() -> Any:
            return attention("square", values="zero-query.1#1", window=(3, 3))

        def layer() -> Any:
            return multi_head("square", values="gaussian.1#1", window=(3, 3))

        def counted(ask: Any, problem: Any) -> str:
            return first_alike(ask(problem), {answer: problem.but(window=sides) for answer, sides in counts.items()})

        def aligned(ask: Any, problem: Any) -> str:
            meanings = {corner: problem.but(window=(3, 2, corner)) for corner in ("top-left", "bottom-right")}
            return first_alike(ask(problem.but(window=(3, 2, "default"))), meanings)

        def wide() -> Any:
            return attention("wide", values="zero-query.1#1", window=(3, 2, "default"))

        def cross() -> Any:
            return multi_head("cross", values="gaussian.1#1", source="cross", window=(3, 2, "default"))

        return (
            Convention(
                id="CON-WINDOW",
                question="A window of 3 to both sides: which keys does it show?",
                source="flash-attention, ONNX Attention 25 and jax (inclusive); Mistral and Hugging Face (W keys in all); cuDNN",
                answers={
                    "inclusive": "those up to 3 places away",
                    "exclusive": "those less than 3 places away",
                    "left-exclusive": "those less than 3 places before, and up to 3 behind",
                    "nan": "the output holds NaN",
                    "refused": REFUSED,
                    "other": OTHER,
                },
                legitimate=frozenset(counts),
                questions={
                    "attention": Question(problems=square, read=counted, places=(*IN_DTYPES, changed("1 batch row", batch=1))),
                    "multi_head_attention": Question(problems=layer, read=counted, places=IN_DTYPES),
                },
                native=True,
            ),
            Convention(
                id=_ALIGNMENT,
                question="A window, with more keys than queries and nothing said of the alignment: where does it lie?",
                source="flash-attention 2.1 release notes (bottom-right); jax.nn.dot_product_attention (top-left)",
                answers={
                    "top-left": "around key i",
                    "bottom-right": "around key i + Lk − Lq",
                    "nan": "the output holds NaN",
                    "refused": REFUSED,
                    "other": OTHER,
                },
                legitimate=frozenset({"top-left", "bottom-right"}),
                questions={
                    "attention": Question(
                        problems=wide,
                        read=aligned,
                        places=(*IN_DTYPES, changed("4 queries and 7 keys", query_length=4, key_length=7)),
                    ),
                    "multi_head_attention": Question(problems=cross, read=aligned, places=IN_DTYPES),
                },
                native=True,
                otherwise="Windows over unequal lengths are then asked by mask or bias, if it takes one, and judged so.",
            ),
        )


_ALIGNMENT = "CON-WINDOW-ALIGNMENT"
_OTHER = {"top-left": "bottom-right", "bottom-right": "top-left", "default": "default"}
_BACKENDS = "transformers: https://github.com/huggingface/transformers/issues/29623"
_CACHE = "mlx-lm: https://github.com/ml-explore/mlx-lm/pull/390"
_CORNER = (
    "ROCm flash-attention: https://github.com/ROCm/flash-attention/issues/158",
    "flashinfer: https://github.com/flashinfer-ai/flashinfer/issues/4972",
    "lalamo: https://github.com/trymirai/lalamo/pull/200",
)
_TILES = "sglang: https://github.com/sgl-project/sglang/pull/31501"
FEATURE = Window()
