"""The comparison of two runs, from their records alone."""

from collections import defaultdict
from collections.abc import Iterator

from conformance.comparison.accuracy import changed_accuracy
from conformance.comparison.change import Change, ChangeKind, Comparison
from conformance.comparison.ground import ground
from conformance.comparison.results import changed_results
from conformance.comparison.speed import changed_speed
from conformance.records import Run


def compare(base: Run, new: Run) -> Comparison:
    """What changed from ``base`` to ``new``. Raises UsageError where they have no result in common."""
    common = ground(base, new)
    results, of_results, compared = changed_results(base, new, common)
    accuracy, of_accuracy = changed_accuracy(base, new, common)
    speed, of_speed, timings = changed_speed(base, new, common)
    order = {kind: place for place, kind in enumerate(ChangeKind)}
    changes = [*results, *changed_conventions(base, new), *accuracy, *speed]
    return Comparison(
        compared=compared,
        timings=timings,
        changes=tuple(sorted(changes, key=lambda change: (order[change.kind], change.implementation, change.subject))),
        differences=common.differences,
        not_compared=(*common.remarks, *of_results, *of_accuracy, *of_speed),
    )


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
            yield Change(ChangeKind.NOT_AS_EXPECTED, implementation, identifier, before[key], answer, disagrees[key].message)
        elif answer != before[key]:
            yield Change(ChangeKind.CONVENTION, implementation, identifier, before[key], answer)


def _observed(run: Run) -> dict[tuple[str, str], str]:
    """Answers by convention and implementation; machines of several shards may have seen different ones."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for convention in run.conventions:
        if not convention.skipped:
            found[convention.id, convention.implementation].append(convention.observed or NOTHING)
    return {key: " / ".join(sorted(set(answers))) for key, answers in found.items()}
