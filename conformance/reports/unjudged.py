"""What a run did not judge: what of a signature means nothing to the suite, and features that are not offered."""

from collections.abc import Iterator

from conformance.dtypes import DTYPES
from conformance.records import Run, Share, shares
from conformance.reports.format import joined
from conformance.verdict import Outcome

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


def _few(names: list[str]) -> str:
    """As many as fit a line, and the number of the others."""
    shown = [name for place, name in enumerate(names) if not place or len(", ".join(names[: place + 1])) <= LONGEST]
    left = len(names) - len(shown)
    return joined([*shown, f"{left} more"] if left else shown)


def sentences(run: Run) -> list[str]:
    """For each implementation, of a few, what was not judged, where not all of it was."""
    several = len(run.implementations) > 1
    found = [
        f"{name}: {text}" if several else f"{text[:1].upper()}{text[1:]}"
        for name in list(run.implementations)
        for text in _of(run, name, several)
    ]
    return found if len(found) <= SHOWN else [*found[:SHOWN], f"… and {len(found) - SHOWN} more, in the table Conformance."]


def not_offered(run: Run) -> tuple[str, ...]:
    """The features for lack of which a single implementation was not asked; nothing of several, which lack different ones."""
    return _features(run, next(iter(run.implementations))) if len(run.implementations) == 1 else ()


def narrowed(run: Run) -> str:
    """Of a single implementation, to what its declaration narrows the judgement: dtypes, limits, and the share that they left."""
    if len(run.implementations) > 1:
        return ""
    entry, share = next(iter(run.implementations.values())), next(iter(shares(run.items).values()), Share())
    parts = [f"in {joined(entry.dtypes)} alone"] if 0 < len(entry.dtypes) < len(DTYPES) else []
    parts += [f"within its limits ({entry.limits})"] if entry.limits else []
    parts += [f"{share.left_out} problems left out ({1 - share.left:.0%})"] if share.left_out else []
    return "".join(f" {part}" if part.startswith("in") else f", {part}" for part in parts)


def _short(reason: str) -> str:
    """The beginning of a reason, which may be a sentence of the implementation's."""
    return reason.partition(": ")[0].rstrip(".")


def _of(run: Run, name: str, several: bool) -> Iterator[str]:
    coverages = [coverage for (implementation, _), coverage in run.coverages.items() if implementation == name]
    judged, left = sum(one.judged for one in coverages), sum(one.unsupported for one in coverages)
    features = _features(run, name)
    if several and judged and left and features:
        yield f"{judged} requirements judged, {left} not offered: {', '.join(features)}."


def _features(run: Run, name: str) -> tuple[str, ...]:
    """The features for lack of which ``name`` was not asked whole requirements, then what else kept it from that, in the words of
    the most frequent reason of each."""
    offered = run.implementations[name].features
    found: dict[str, None] = {}
    others: dict[str, None] = {}
    for item in run.items:
        if item.implementation == name and item.outcome is Outcome.UNSUPPORTED:
            features = [feature for feature in item.without if feature not in offered]
            found.update(dict.fromkeys(features))
            if not features:
                others.update(dict.fromkeys(_short(one) for one in list(item.lacking)[:1] if not one.startswith("dtype")))
    return (*sorted(found), *list(others)[:SHOWN_REASONS])
