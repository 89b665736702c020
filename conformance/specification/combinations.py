"""ATT-MASK, third part: each argument beside each other one, whatever the relation of the lengths.

The problems are made by loops, so that no combination is forgotten: two arguments and nothing else, then as many as there are,
in each relation of the lengths and with each form of a mask and of a bias. What was met is counted by ``met``.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

from conformance.problem import MASK_FORMS, AttentionProblem, Recipe
from conformance.specification.build import ALL, F32, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.palette import SHAPES
from conformance.specification.requirement import Requirement

RELATIONS = {"wide": "Lq < Lk", "square": "Lq = Lk", "tall": "Lq > Lk", "decode": "Lq = 1"}  # by name in the palette
ARGUMENTS = ("mask", "bias", "top-left", "bottom-right", "key-lengths", "scale", "grouped-heads", "value-width")
_MASKS = ("random.1*0.7", "right-padding.1", "all.1", "left-padding.1", "random.1*0.4")
_GROUPED = {"heads": 6, "kv_heads": 2}
_OTHER_WIDTH = 11


def pairs_of_arguments() -> list[tuple[str, str]]:
    """All but the two alignments, of which there is one at a time."""
    return [pair for pair in combinations(ARGUMENTS, 2) if set(pair) != {"top-left", "bottom-right"}]


def combined(
    relation: str, arguments: Iterable[str], mask_form: int, bias_form: int, seed: int, **fields: Any
) -> AttentionProblem:
    """A problem in float32 with ``arguments`` and no others; forms by their number in MASK_FORMS, modulo their count."""
    asked = set(arguments)
    sizes = SHAPES[relation].fields
    if "grouped-heads" in asked:
        sizes |= _GROUPED
    if "value-width" in asked:
        sizes |= {"value_width": _OTHER_WIDTH}
    one_key = relation == "decode" and "top-left" in asked
    return AttentionProblem(
        **sizes,
        values=Recipe("spread", seed),
        mask=_mask(relation, MASK_FORMS[mask_form % len(MASK_FORMS)], seed, everything=one_key) if "mask" in asked else None,
        bias=Recipe("gaussian", seed, MASK_FORMS[bias_form % len(MASK_FORMS)]) if "bias" in asked else None,
        causal=next((alignment for alignment in ("top-left", "bottom-right") if alignment in asked), "none"),
        key_lengths=(sizes["key_length"] - 4, sizes["key_length"] - 1) if "key-lengths" in asked else None,
        scale=0.6 if "scale" in asked else None,
        **fields,
    )


def _mask(relation: str, form: str, seed: int, everything: bool) -> Recipe:
    """A mask of another kind for each seed; one that hides nothing where rows would else be fully masked."""
    if everything or (relation == "decode" and form == "bhq1"):
        return Recipe("all", 0, form)
    if form == "bhq1":
        return Recipe("empty-rows", seed, form)
    kind = Recipe.parse(_MASKS[seed % len(_MASKS)], "mask")
    return Recipe(kind.name, seed, form, kind.argument)


def _two_at_a_time() -> Iterator[AttentionProblem]:
    for turn, relation in enumerate(RELATIONS):
        for number, pair in enumerate(pairs_of_arguments()):
            yield combined(relation, pair, turn + number, 2 * turn + number, 200 + len(RELATIONS) * number + turn)


def _many_at_a_time() -> Iterator[AttentionProblem]:
    """All arguments but another value width, which many lack: each form of a mask and of a bias beside each of them."""
    for turn, relation in enumerate(RELATIONS):
        for form in range(len(MASK_FORMS)):
            alignment = ("top-left", "bottom-right")[(turn // 2 + form) % 2]
            heads = ("grouped-heads",) if (form // 2 + turn) % 2 else ()
            asked = ("mask", "bias", alignment, "key-lengths", "scale", *heads)
            yield combined(relation, asked, form, form + turn, 320 + len(RELATIONS) * form + turn)


def _beside_another_width() -> Iterator[AttentionProblem]:
    for form, relation in enumerate((*RELATIONS, "wide", "tall")):
        yield combined(relation, ("mask", "bias", "value-width"), form, form + 1, 350 + form)


def of_layout(layout: str, seed: int) -> list[AttentionProblem]:
    """Inputs laid out so, in each relation of the lengths, with each form of a mask and of a bias, beside all other arguments."""
    problems = []
    for form, relation in enumerate((*RELATIONS, "wide", "tall")):
        alignment = ("bottom-right", "top-left")[form % 3 % 2]
        others = ("grouped-heads", "value-width") if form % 2 else ("scale", "key-lengths")
        asked = ("mask", "bias", alignment, *others)
        problems.append(combined(relation, asked, form, form + 1, seed + form, layout=layout))
    return problems


def met(problem: AttentionProblem) -> frozenset[str]:
    """The arguments that a problem gives, and its layout where it is no contiguous one."""
    given = problem.features - {"causal", "cross-length"}
    given |= {problem.causal} if problem.causal != "none" else set()
    return frozenset(given | ({problem.layout} if problem.layout != "contiguous" else set()))


def _sees_one_key(problem: AttentionProblem) -> bool:
    return problem.causal == "top-left" and problem.query_length == 1


_HIDING = {"mask", "bias", "causal", "key-lengths"}


def hiding_nothing() -> list[AttentionProblem]:
    """Two arguments at a time that hide no key: who takes no masks is asked them too."""
    return [problem for problem in _two_at_a_time() if not problem.features & _HIDING]


@cache
def _problems() -> tuple[AttentionProblem, ...]:
    many = [
        problem.but(dtype=dtype)
        for number, problem in enumerate(_many_at_a_time())
        for dtype in (F32 if number % 2 and not _sees_one_key(problem) else ALL)
    ]
    two = [problem for problem in _two_at_a_time() if problem.features & _HIDING]
    return (*two, *many, *_beside_another_width())


_OF_MASKS = ("mask-strided", "mask-transposed", "mask-expanded")

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-MASK-045",
        sentence="Each argument keeps its meaning beside each other one, be the queries fewer than keys, as many, more, or one.",
        rationale="Code takes another path for unequal lengths and for each pair of arguments; one of them is dropped there, or "
        "the triangle is laid as for equal lengths.",
        source="keras#23040; pytorch#144858; onnxruntime#29020",
        designed=lambda: [problem for problem in _problems() if not _sees_one_key(problem)],
        few=lambda: [problem for problem in _many_at_a_time() if not _sees_one_key(problem)][::2],
        random=Draw(
            shapes="core",
            causal=("none", "top-left", "bottom-right"),
            masks=("all.1", "random.1*0.8", "right-padding.1"),
            biases=("", "gaussian.1"),
            bias_forms=MASK_FORMS,
            scales=(None, 0.6),
        ),
    ),
    Requirement(
        id="ATT-MASK-046",
        sentence="Causal from the top left, a single query sees the first key alone, whatever else is given.",
        rationale="One query is the case that a decoder's path takes over, with rules of its own for the triangle.",
        source="pytorch#144858; executorch#22426",
        designed=lambda: [problem for problem in _problems() if _sees_one_key(problem)],
        few=lambda: [problem for problem in _many_at_a_time() if _sees_one_key(problem)][:1],
        exempt="The one visible key takes all the weight of any model.",
        cannot_tell=("mean", "argmax"),
    ),
    Requirement(
        id="ATT-MASK-050",
        sentence="Masks and biases with gaps, with another axis fastest, or expanded by stride 0 give what contiguous ones give.",
        rationale="A mask is mostly a view: expanded over batch, heads or queries, transposed, a slice of a larger one. A kernel "
        "that takes it for contiguous reads another one.",
        source="pytorch#191937; pytorch#97605",
        designed=lambda: joined(
            *(
                attention("wide", ALL, values="spread.1#131", layout=layout, **beside)
                for layout in _OF_MASKS
                for beside in ({"mask": "random.1:bhqk#131"}, {"bias": "gaussian.1:bhqk#131"})
            ),
            attention("wide", F32, values="spread.1#132", layout="mask-expanded", mask="left-padding.1:qk#132"),
            attention("wide", F32, values="spread.1#132", layout="mask-expanded", bias="gaussian.1:qk#132"),
            *(of_layout(layout, 900 + 10 * turn) for turn, layout in enumerate(_OF_MASKS)),
        ),
        random=Draw(
            shapes="core",
            layouts=_OF_MASKS,
            masks=("random.1", "right-padding.1"),
            biases=("gaussian.1", ""),
            bias_forms=("qk", "bhqk", "b1qk"),
        ),
    ),
)
