"""What can be declared, and which words of a declaration mean nothing."""

from collections.abc import Iterable, Iterator, Mapping

from conformance.adapter.contract import AXES, CAUSALITY, LENGTHS_DTYPES, Implementation, Support
from conformance.adapter.own_code import SMALLEST
from conformance.adapter.parameters import by_name, parameter_features
from conformance.adapter.routes import WAYS
from conformance.errors import UsageError
from conformance.numerics.dtypes import DTYPES
from conformance.numerics.profiles import DECLARABLE
from conformance.operations import operation_of, operations
from conformance.problem import LAYOUTS, MASK_FORMS
from conformance.problem.returned import IGNORED, OUTPUT, judged
from conformance.specification import conventions
from conformance.specification.own_sizes import LARGEST
from conformance.system.user_files import demand_name


def known_features(operation: str) -> tuple[str, ...]:
    """Every feature that an implementation of ``operation`` may offer."""
    return tuple(sorted({*parameter_features(operation).values(), *operation_of(operation).implied}))


def demand_sense(implementation: Implementation) -> None:
    """Raises UsageError for a declaration with words that mean nothing, or that contradicts itself, and for a name that records
    could not hold."""
    demand_name(implementation.name)
    for sentence in (*unknown_words(implementation.support), *contradictions(implementation)):
        raise UsageError(f"{implementation.name}: {sentence}")


def contradictions(implementation: Implementation) -> Iterator[str]:
    """A sentence for each thing that is declared and cannot be."""
    support = implementation.support
    for feature in sorted((support.features or frozenset()) & support.lacks):
        yield f"its Support both offers and lacks {feature!r}: take it out of features or of lacks."
    if not support.dtypes:
        yield "Support.dtypes is empty, so that nothing can be asked: name at least one."
    if operation_of(support.operation).problem.has("layout") and not support.layouts:
        yield "Support.layouts is empty, so that nothing can be asked: name at least one."
    masks = sorted(implementation.features & {"mask", "bias"})
    if masks and not support.mask_forms:
        yield f"Support.mask_forms is empty, and a {masks[-1]} is offered: name the forms, or name the feature in lacks."


def unknown_words(support: Support) -> list[str]:
    """A sentence for each word of ``support`` that the suite does not know, with those that it knows."""
    if support.operation not in operations():
        return [_sentence("operation", [support.operation], operations())]
    unknown = [_sentence(field, unknown, known) for field, unknown, known in _unknown(support) if unknown]
    return unknown or list(_senseless(support))


def declared_lacking(implementation: Implementation) -> tuple[str, ...]:
    """The features that it says it does not offer: those of ``lacks``, and those missing from ``features`` where it is given."""
    support = implementation.support
    left_out = () if support.features is None else set(known_features(support.operation)) - implementation.features
    return tuple(sorted(support.lacks.union(left_out)))


def unread(implementation: Implementation) -> tuple[str, ...]:
    """What of the signature the suite can make nothing of: parameters, which keep their defaults and are not tested, and
    catch-alls, with their stars, unless the declaration says what they hold."""
    how = implementation.calling
    return (*how.strangers, *(how.takes_any if implementation.support.features is None else ()))


def advice_on_unread(implementation: Implementation) -> tuple[str, ...]:
    """A sentence for parameters of which the suite can make nothing, and one for catch-alls, with what can be done."""
    names = unread(implementation)
    strangers, catch_alls = [n for n in names if not n.startswith("*")], [n for n in names if n.startswith("*")]
    sentences = []
    if strangers:
        means = "mean nothing to the suite and keep their defaults"
        if len(strangers) == 1:
            means = "means nothing to the suite and keeps its default"
        sentences.append(
            f"{', '.join(map(repr, strangers))} {means}: the suite passes {', '.join(by_name(implementation.operation))}; "
            "Support.parameters says which of them another name stands for"
        )
    if catch_alls:
        sentences.append(
            f"what {' and '.join(catch_alls)} may hold cannot be read, and is not asked for: declare it by Support.features"
        )
    return tuple(sentences)


def _unknown(support: Support) -> Iterator[tuple[str, list[str], Iterable[str]]]:
    """Field, its unknown words, the known ones."""
    features = known_features(support.operation)
    yield "features", _strangers(support.features or (), features), features
    yield "lacks", _strangers(support.lacks, features), features
    yield "exclusive", _strangers(support.exclusive, features), features
    returnable = (*operation_of(support.operation).returns, IGNORED)
    yield "returns", _strangers(support.returns, returnable), returnable
    yield "parameters", _strangers(support.parameters, by_name(support.operation)), by_name(support.operation)
    yield "routes", _strangers(support.routes, features), features
    yield "routes", _strangers((way for ways in support.routes.values() for way in ways), WAYS), WAYS
    yield "dtypes", _strangers(support.dtypes, DTYPES), DTYPES
    yield "flushes", _strangers(support.flushes, DTYPES), DTYPES
    yield "layouts", _strangers(support.layouts, LAYOUTS), LAYOUTS
    yield "mask_forms", _strangers(support.mask_forms, MASK_FORMS), MASK_FORMS
    sizes = operation_of(support.operation).problem.sizes
    yield "multiples", _strangers(support.multiples, sizes), sizes
    yield "at_most", _strangers(support.at_most, sizes), sizes
    yield "causal", _strangers([support.causal], CAUSALITY), CAUSALITY
    yield "scale_dtype", _strangers([] if support.scale_dtype is None else [support.scale_dtype], DTYPES), DTYPES
    yield "lengths_dtype", _strangers([support.lengths_dtype], LENGTHS_DTYPES), LENGTHS_DTYPES
    yield "axes", _strangers([support.axes], AXES), AXES
    yield from _unknown_profiles(support)
    yield from _unknown_conventions(support)


def _senseless(support: Support) -> Iterator[str]:
    """Limits that no problem meets, or that mean nothing for the operation."""
    given = [("widths", width) for width in support.widths]
    for field in ("multiples", "at_most"):
        given += [(f"{field}[{name!r}]", size) for name, size in getattr(support, field).items()]
    yield from (f"Support.{field} says {size}: a size is a whole number above 0." for field, size in given if not _is_size(size))
    for name, largest in support.at_most.items():
        multiple = support.multiples.get(name, 1)
        if _is_size(largest) and _is_size(multiple) and largest < multiple:
            yield f"Support.at_most[{name!r}] is {largest}, less than {multiple}, which must divide it: no size is left."
    multiple, most = support.multiples.get("width", 1), support.at_most.get("width")
    sound = all(map(_is_size, (multiple, *support.widths, *([] if most is None else [most]))))
    if support.widths and sound and not any(w % multiple == 0 and (most is None or w <= most) for w in support.widths):
        yield "Support.widths, multiples and at_most leave no width between them."
    attends = operation_of(support.operation).problem.attends
    if not attends and (support.square or support.causal != "asked"):
        yield f"Support.square and Support.causal mean nothing for {support.operation}: leave them out."
    if support.causal == "always" and "causal" in support.lacks:
        yield 'Support.causal is "always", and Support.lacks names causal: leave one of them out.'
    if not attends and support.scale_dtype is not None:
        yield f"Support.scale_dtype means nothing for {support.operation}, which has no scale: leave it out."
    if support.shapes is not None and not _is_size(support.shapes):
        yield f"Support.shapes is {support.shapes}: a budget of shapes is a whole number above 0."
    for size in support.sizes:
        if not (_is_size(size) and SMALLEST <= size <= LARGEST):
            yield f"Support.sizes says {size}: sizes are asked for from {SMALLEST} to {LARGEST}."
    if OUTPUT not in support.returns:
        yield f"Support.returns names no {OUTPUT}: say which part of the result it is, such as returns=({OUTPUT!r}, {IGNORED!r})."
    for name in sorted({name for name in judged(support.returns) if support.returns.count(name) > 1}):
        yield f"Support.returns names {name!r} more than once: a part that is not to be judged is called {IGNORED!r}."
    for kind in support.declines:
        if not issubclass(kind, Exception) or kind is Exception:
            yield f'Support.declines names {kind.__name__}, which faults raise too: name the types that mean "not offered".'


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1


def _unknown_profiles(support: Support) -> Iterator[tuple[str, list[str], Iterable[str]]]:
    if isinstance(support.profile, Mapping):
        yield "profile", _strangers(support.profile, DTYPES), DTYPES
        yield "profile", _strangers(support.profile.values(), DECLARABLE), DECLARABLE
    elif support.profile is not None:
        yield "profile", _strangers([support.profile], DECLARABLE), DECLARABLE


def _unknown_conventions(support: Support) -> Iterator[tuple[str, list[str], Iterable[str]]]:
    questions = conventions()
    yield "conventions", _strangers(support.conventions, questions), questions
    for identifier, answer in support.conventions.items():
        answers = questions[identifier].answers if identifier in questions else (answer,)
        yield f"conventions[{identifier!r}]", _strangers([answer], answers), answers


def _strangers(words: Iterable[str], known: Iterable[str]) -> list[str]:
    known = set(known)
    return sorted({str(word) for word in words} - known)


def _sentence(field: str, unknown: list[str], known: Iterable[str]) -> str:
    return f"Support.{field} names {', '.join(map(repr, unknown))}, which the suite does not know: it knows {', '.join(known)}."
