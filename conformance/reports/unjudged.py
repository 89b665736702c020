"""What a run did not judge: what of a signature means nothing to the suite, what a declaration takes away, and features that are
not offered."""

from collections import Counter
from collections.abc import Iterator, Sequence

from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES
from conformance.records import ConventionResult, ImplementationEntry, Run, Share, shares
from conformance.reports.format import joined

SHOWN = 8  # implementations of which it is said
SHOWN_REASONS = 3
SHOWN_UNREAD = 3  # implementations whose unread parameters have a line each,
LONGEST = 60  # and so many characters of names in it; the table "Not asked" has all


def unread(run: Run) -> list[str]:
    """A line for each implementation, of a few, that has parameters of which the suite can make nothing."""
    found = {name: entry.unread for name, entry in run.implementations.items() if entry.unread}
    several = len(run.implementations) > 1
    lines = [_unread(names, f"of {name}, " if several else "") for name, names in list(found.items())[:SHOWN_UNREAD]]
    left = len(found) - SHOWN_UNREAD
    return lines if left <= 0 else [*lines, f"Not read: parameters of {left} more implementations, in the table Not asked."]


def _unread(names: tuple[str, ...], whose: str) -> str:
    strangers, catch_alls = [n for n in names if not n.startswith("*")], [n for n in names if n.startswith("*")]
    parts = []
    if strangers:
        parts.append(f"{_few(strangers)} {'keeps its default' if len(strangers) == 1 else 'keep their defaults'}")
    if catch_alls:
        parts.append(f"what {' and '.join(catch_alls)} may hold is not asked for")
    return f"Not read: {whose}{'; '.join(parts)}."


def _few(names: Sequence[str]) -> str:
    """As many as fit a line, and the number of the others."""
    shown = [name for place, name in enumerate(names) if not place or len(", ".join(names[: place + 1])) <= LONGEST]
    left = len(names) - len(shown)
    return joined([*shown, f"{left} more"] if left else shown)


def sentences(run: Run) -> list[str]:
    """For each of several implementations, of a few, what was not judged, where not all of it was; of a single one, the first
    sentence says it."""
    if len(run.implementations) == 1:
        return []
    found = [f"{name}: {text}" for name in run.implementations for text in _of(run, name)]
    return (
        found
        if len(found) <= SHOWN
        else [*found[:SHOWN], f"… and {len(found) - SHOWN} more, in the tables Conformance and Not asked."]
    )


def not_offered(run: Run) -> str:
    """The features for lack of which a single implementation was not asked; nothing of several, which lack different ones."""
    return _not_offered(run, next(iter(run.implementations))) if len(run.implementations) == 1 else ""


def within(run: Run) -> str:
    """The dtypes and limits within which a single implementation was judged, and the share that they left of a whole run."""
    if len(run.implementations) > 1:
        return ""
    entry, share = next(iter(run.implementations.values())), next(iter(shares(run.items).values()), Share())
    parts = [f"in {joined(entry.dtypes)} alone"] if 0 < len(entry.dtypes) < len(DTYPES) else []
    parts += [f"within its limits ({entry.limits})"] if entry.limits else []
    of_whole = "" if run.partial else f" ({1 - share.left:.0%})"
    parts += [f"{share.left_out} problem{'' if share.left_out == 1 else 's'} left out{of_whole}"] if share.left_out else []
    return "".join(f" {part}" if part.startswith("in") else f", {part}" for part in parts)


def narrowed(run: Run) -> str:
    """To what else a declaration narrows the judgement, in parts that each begin with a semicolon; of several implementations,
    how many of them."""
    judged = {item.implementation for item in run.items if item.outcome.was_run}
    found = [parts for name in run.implementations if name in judged and (parts := narrowing(run, name))]
    skipped = sum(convention.skipped for convention in run.conventions)
    told = f"; {skipped} convention{'' if skipped == 1 else 's'} skipped" if skipped else ""
    if len(run.implementations) == 1:
        return told + "".join(f"; {part}" for parts in found for part in parts)
    if not found:
        return told
    what = "what it declares" if len(found) == 1 else "what they declare"
    return f"{told}; {len(found)} of {len(run.implementations)} implementations narrowed by {what}, see below"


def narrowing(run: Run, name: str) -> list[str]:
    """What the declaration of ``name`` keeps from being asked although it is there, and conventions that it declined."""
    entry = run.implementations[name]
    told_before = _features(run, name)
    away = [feature for feature in entry.taken_away if feature not in told_before]
    answers = [convention for convention in run.conventions if convention.implementation == name and convention.declined]
    return [
        *([f"own parameters not asked: {joined(entry.own_not_asked)}"] if entry.own_not_asked else []),
        *([f"lacking: {joined(away)}"] if away else []),
        *entry.narrowed,
        *_declined("conventions declined", [answer for answer in answers if answer.observed is None]),
        *_declined("conventions declined in part", [answer for answer in answers if answer.observed is not None]),
    ]


def _declined(what: str, conventions: list[ConventionResult]) -> list[str]:
    return [f"{what}: {_few(sorted({convention.id for convention in conventions}))}"] if conventions else []


def _of(run: Run, name: str) -> Iterator[str]:
    """What was not judged of one of several implementations, as a sentence."""
    coverages = [coverage for (implementation, _), coverage in run.coverages.items() if implementation == name]
    judged, left = sum(one.judged for one in coverages), sum(one.unsupported for one in coverages)
    parts = [f"{left} not offered: {', '.join(features)}"] if left and (features := _features(run, name)) else []
    narrowed = narrowing(run, name)
    if judged and (parts or narrowed):
        yield "; ".join([", ".join([f"{judged} requirement{'' if judged == 1 else 's'} judged", *parts]), *narrowed]) + "."


def _not_offered(run: Run, name: str) -> str:
    """The features for lack of which ``name`` was not asked whole requirements; then, where there were others, why it was not."""
    features, reasons = _features(run, name), _reasons(run, name)
    told = f": {', '.join(features)}" if features else ""
    if not reasons:
        return told
    left = len(reasons) - SHOWN_REASONS
    more = [f"and {left} more reason{'' if left == 1 else 's'}"] if left > 0 else []
    return f"{told}{', and for other reasons: ' if features else ': '}{'; '.join([*reasons[:SHOWN_REASONS], *more])}"


def _features(run: Run, name: str) -> list[str]:
    entry = run.implementations[name]
    return sorted({feature for without in _unsupported(run, entry) for feature in without})


def _reasons(run: Run, name: str) -> list[str]:
    """Why whole requirements were not asked that lack no feature, the commonest first, in the words of the most frequent reason
    of each."""
    entry, found = run.implementations[name], Counter[str]()
    for item in run.items:
        if item.implementation == name and item.outcome is Outcome.UNSUPPORTED and not _lacks(item.without, entry):
            found.update(_short(reason) for reason in list(item.lacking)[:1] if not reason.startswith("dtype"))
    return [reason for reason, _ in found.most_common()]


def _unsupported(run: Run, entry: ImplementationEntry) -> Iterator[list[str]]:
    """The features that each requirement lacks which was not asked."""
    for item in run.items:
        if item.implementation == entry.name and item.outcome is Outcome.UNSUPPORTED:
            yield _lacks(item.without, entry)


def _lacks(without: Sequence[str], entry: ImplementationEntry) -> list[str]:
    return [feature for feature in without if feature not in entry.features]


def _short(reason: str) -> str:
    """The beginning of a reason, which may be a sentence of the implementation's."""
    return reason.partition(": ")[0].rstrip(".")
