"""What a function has, or its operation takes for granted, and its declaration keeps the suite from asking: for records, whose
verdicts say so first."""

from collections.abc import Iterator

from conformance.adapter.contract import Implementation, Support
from conformance.adapter.parameters import aliases, by_name, parameter_features
from conformance.adapter.routes import offered_ways
from conformance.operations import operation_of
from conformance.problem import MASK_FORMS
from conformance.problem.returned import judged


def own_not_asked(implementation: Implementation) -> tuple[str, ...]:
    """Parameters of the function that the suite knows and never passes, by the function's own names: those of features that are
    taken away or asked in another way, and further ones that mean the same as one that is passed."""
    table, spelled = parameter_features(implementation.operation), implementation.calling.spelled
    missed = [ours for ours in table if ours in spelled and not _is_asked(table[ours], implementation)]
    passed = {spelled[ours] for ours in spelled if ours not in missed}
    names = [f"{spelled[ours]} as {ours}" if spelled[ours] in passed else spelled[ours] for ours in missed]
    if "alignment" in spelled and not _is_asked("causal", implementation):
        names.append(spelled["alignment"])
    known = {name for ours in by_name(implementation.operation) for name in (ours, *aliases(implementation.operation, ours))}
    return (*names, *(name for name in implementation.calling.strangers if name in known))


def taken_away(implementation: Implementation) -> tuple[str, ...]:
    """Features that need no parameter and that it says it lacks."""
    return tuple(sorted(operation_of(implementation.operation).implied & implementation.support.lacks))


def narrowed(implementation: Implementation) -> tuple[str, ...]:
    """What else the declaration narrows the judgement to, beside dtypes and limits of shapes, a few words each."""
    support = implementation.support
    return (*_routed(implementation), *_exclusive(implementation), *_of_masks(implementation), *_otherwise(support))


def _is_asked(feature: str, implementation: Implementation) -> bool:
    """Whether the function's own parameter for the feature is used."""
    if feature != "padding":  # which no problem asks for itself: it is a way to ask for masks and lengths
        return "native" in offered_ways(feature, implementation)
    return any("padding" in offered_ways(masked, implementation) for masked in ("mask", "key-lengths"))


def _routed(implementation: Implementation) -> Iterator[str]:
    """Features without a parameter that are offered, and by declared routes asked in other ways alone."""
    for feature in sorted(operation_of(implementation.operation).implied & implementation.features):
        ways = offered_ways(feature, implementation)
        if "native" not in ways:
            yield f"{feature} asked by {' or '.join(ways)} alone" if ways else f"{feature} not asked"


def _exclusive(implementation: Implementation) -> Iterator[str]:
    declared = sorted(implementation.support.exclusive & implementation.features)
    if len(declared) > 1:
        yield f"not asked together: {', '.join(declared[:-1])} and {declared[-1]}"


def _of_masks(implementation: Implementation) -> Iterator[str]:
    forms = implementation.support.mask_forms
    if implementation.features & {"mask", "bias"} and not set(MASK_FORMS) <= set(forms):
        yield f"masks of form {', '.join(forms)} alone"


def _otherwise(support: Support) -> Iterator[str]:
    if operation_of(support.operation).problem.has("layout") and not set(Support().layouts) <= set(support.layouts):
        yield f"{', '.join(support.layouts)} inputs alone"
    if ignored := len(support.returns) - len(judged(support.returns)):
        yield f"{ignored} further part{'' if ignored == 1 else 's'} of the result not judged"
    if support.scale_dtype not in (None, "float64"):
        yield f"scale taken as rounded to {support.scale_dtype}"
    if support.compiles:
        yield "conventions asked in few places and no random shapes, since it compiles"
