"""What a run did not judge: features that are not offered, and what of a signature means nothing to the suite."""

from collections.abc import Iterator

from conformance.dtypes import DTYPES
from conformance.records import Run, Share, shares
from conformance.verdict import Outcome

SHOWN = 8  # implementations of which it is said
SHOWN_REASONS = 3


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
    parts = [f"in {' and '.join(entry.dtypes)} alone"] if 0 < len(entry.dtypes) < len(DTYPES) else []
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
    yield from (f"{sentence}." for sentence in run.implementations[name].unread)


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
