"""Renders the specification to ``docs/specification.md``: ``python -m conformance.specification.render`` writes it anew."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance.features.bias import BIASES
from conformance.features.mask import MASKS
from conformance.numerics.profiles import TIGHTEST_FIRST
from conformance.specification import SPEC_VERSION, WITHDRAWN, conventions, requirements
from conformance.specification.requirement import AREAS, CHECKS, NULLS, Blind, Convention, Requirement
from conformance.system import files
from conformance.values.distributions import DISTRIBUTIONS
from conformance.values.multihead_transformations import MULTI_HEAD_TRANSFORMATIONS
from conformance.values.transformations import TRANSFORMATIONS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "specification.md"

_HEAD = f"""# Specification

Version {SPEC_VERSION}. Made from `conformance/specification/` by `python -m conformance.specification.render`: do not edit.

Attention is softmax(scale · Q Kᵀ + bias, over the visible keys) · V, with Q of shape (batch, query heads, Lq, d), K
(batch, key heads, Lk, d), V (batch, key heads, Lk, dv). A **requirement** is one testable sentence that mathematics settles.
A **convention** is a point on which released interfaces differ: it is observed and shown. Answers in bold are those that
interfaces may have; another one is unexpected, and so is one that is not the same in all places in which it is asked (*mixed*),
or not the declared one. Ids are permanent: an id is never given to another sentence, and stays when its requirement is
withdrawn. Words are used as in IEEE 754; *visible* means neither masked nor beyond the causal limit or the key length, nor under
a bias of −∞.

How a requirement is checked:
"""


def render() -> str:
    """The whole document."""
    return "\n".join([*_introduction(), *_areas(), *_conventions(), *_recipes()]) + "\n"


def _introduction() -> Iterator[str]:
    yield _HEAD
    for name, meaning in CHECKS.items():
        yield f"- **{name}**: {meaning}."
    yield ""
    yield "Each problem that tests values must tell these null models from the truth by ten error budgets (of the profile"
    yield "`strict`, in 16 bit of `fused`), unless the requirement says why it cannot:"
    yield ""
    for name, meaning in NULLS.items():
        yield f"- **{name}** {meaning}."
    yield ""
    yield from _power()


def _power() -> Iterator[str]:
    """What is lost under coarser profiles, of all requirements at a glance."""
    judging = [requirement for requirement in requirements().values() if requirement.judges_values]
    yield "Under every profile by which outputs are judged, one designed case of a requirement in each dtype must tell each of"
    yield "them, by ten budgets, or by three under `low` and where bfloat16 rounds scores or queries. Where rounding is larger"
    yield "than what a requirement is about, that cannot be, and the requirement says so:"
    yield ""
    yield "| dtype | profile | requirements with cases | that cannot tell something more | which, and what |"
    yield "|---|---|---:|---:|---|"
    for dtype, profiles in TIGHTEST_FIRST.items():
        asked = [r for r in judging if any(problem.dtype == dtype for problem in r.designed())]
        for profile in profiles:
            lost: dict[frozenset[str], list[str]] = {}
            for requirement in asked:
                if untold := requirement.blind_to(dtype, profile):
                    lost.setdefault(untold, []).append(requirement.id.removeprefix("ATT-"))
            said = "; ".join(f"{_in_order(nulls)}: {', '.join(ids)}" for nulls, ids in lost.items())
            yield f"| {dtype} | `{profile}` | {len(asked)} | {sum(map(len, lost.values()))} | {said or '–'} |"
    yield ""


def _in_order(nulls: Iterable[str]) -> str:
    return _listed(name for name in NULLS if name in nulls)


def _areas() -> Iterator[str]:
    table = requirements().values()
    for area, title in AREAS.items():
        members = [requirement for requirement in table if requirement.area == area]
        yield f"## {title} (ATT-{area})"
        yield ""
        for requirement in members:
            yield from _requirement(requirement)
        gone = {identifier: shown for identifier, shown in WITHDRAWN.items() if identifier.split("-")[1] == area}
        for identifier, convention in gone.items():
            yield f"*{identifier} is withdrawn, since nothing could fail it: {convention} shows what it was about.*"
            yield ""


def _requirement(requirement: Requirement) -> Iterator[str]:
    yield f"### {requirement.id}"
    yield ""
    yield f"**{requirement.sentence}**"
    yield ""
    yield f"{requirement.rationale} *Source:* {requirement.source}."
    yield ""
    yield f"`{requirement.operation}` · checked by **{requirement.check}** · {_cases(requirement)}"
    if requirement.exempt:
        yield ""
        yield f"Cannot tell {_listed(requirement.cannot_tell)} from the truth: {requirement.exempt}"
    if requirement.blind:
        yield ""
        yield f"{'Besides, it cannot' if requirement.exempt else 'Cannot'} tell {'; '.join(map(_lost, requirement.blind))}."
    yield ""


def _lost(blind: Blind) -> str:
    return f"{_in_order(blind.nulls)} in {blind.dtype} under {_listed(f'`{name}`' for name in blind.profiles)}"


def _cases(requirement: Requirement) -> str:
    if requirement.adapts_to:
        return f"cases that depend on the implementation, on {requirement.adapts_to}"
    problems = list(requirement.designed())
    dtypes = _listed(dict.fromkeys(problem.dtype for problem in problems))
    count = f"{len(problems)} designed case{'' if len(problems) == 1 else 's'} in {dtypes}"
    return count if requirement.random is None else f"{count}, and random ones"


def _listed(words: Iterable[str]) -> str:
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _conventions() -> Iterator[str]:
    yield "## Conventions"
    yield ""
    for convention in conventions().values():
        yield from _convention(convention)


def _convention(convention: Convention) -> Iterator[str]:
    yield f"### {convention.id}"
    yield ""
    yield f"**{convention.question}** ({_listed(f'`{operation}`' for operation in convention.operations)})"
    yield ""
    for answer, meaning in convention.answers.items():
        name = f"**`{answer}`**" if answer in convention.legitimate else f"`{answer}`"
        yield f"- {name}: {meaning}"
    yield ""
    for operation, question in convention.questions.items():
        places = "; ".join(place.words for place in question.places)
        yield f"Asked of `{operation}` also in other places: {places}."
        yield ""
    yield f"*Source:* {convention.source}."
    yield ""


def _recipes() -> Iterator[str]:
    yield "## Recipes"
    yield ""
    yield "Values, masks, biases and transformations are named in the text of a problem, as `name.version:form*argument#seed`."
    for title, book in (
        ("Value distributions", DISTRIBUTIONS),
        ("Masks", MASKS),
        ("Biases", BIASES),
        ("Transformations of attention", TRANSFORMATIONS),
        ("Transformations of multi-head attention", MULTI_HEAD_TRANSFORMATIONS),
    ):
        yield ""
        yield f"### {title}"
        yield ""
        for name in book.names():
            yield f"- `{name}`: {' '.join(book.describe(name).split())}"


def stale() -> bool:
    """Whether ``docs/specification.md`` is missing or differs from what the specification says now."""
    return not DOCUMENT.is_file() or DOCUMENT.read_text(encoding="utf-8") != render()


if __name__ == "__main__":
    files.write(DOCUMENT, render())
