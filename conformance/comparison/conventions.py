"""Conventions: which answer changed, and which is now unexpected."""

from collections import defaultdict
from collections.abc import Iterator

from conformance.comparison.model import Change, Kind
from conformance.records import Run

NOTHING = "nothing observed"


def changed_conventions(base: Run, new: Run) -> Iterator[Change]:
    """A change for each convention of which another answer was observed, or which is unexpected and was not."""
    before, after = _observed(base), _observed(new)
    disagreed = {(c.id, c.implementation) for c in base.unexpected_conventions}
    disagrees = {(c.id, c.implementation): c for c in new.unexpected_conventions}
    for key, answer in after.items():
        if key not in before:
            continue
        identifier, implementation = key
        if key in disagrees and key not in disagreed:
            yield Change(Kind.NOT_AS_DUE, implementation, identifier, before[key], answer, disagrees[key].message)
        elif answer != before[key]:
            yield Change(Kind.CONVENTION, implementation, identifier, before[key], answer)


def _observed(run: Run) -> dict[tuple[str, str], str]:
    """Answers by convention and implementation; machines of several shards may have seen different ones."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for convention in run.conventions:
        if not convention.skipped:
            found[convention.id, convention.implementation].append(convention.observed or NOTHING)
    return {key: " / ".join(sorted(set(answers))) for key, answers in found.items()}
