"""The comparison of two runs, from their records alone."""

from conformance.comparison.accuracy import changed_accuracy
from conformance.comparison.conventions import changed_conventions
from conformance.comparison.ground import ground
from conformance.comparison.model import Comparison, Kind
from conformance.comparison.results import changed_results
from conformance.comparison.speed import changed_speed
from conformance.records import Run


def compare(base: Run, new: Run) -> Comparison:
    """What changed from ``base`` to ``new``. Raises UsageError where they have no result in common."""
    common = ground(base, new)
    results, of_results, compared = changed_results(base, new, common)
    accuracy, of_accuracy = changed_accuracy(base, new, common)
    speed, of_speed, timings = changed_speed(base, new, common)
    order = {kind: place for place, kind in enumerate(Kind)}
    changes = [*results, *changed_conventions(base, new), *accuracy, *speed]
    return Comparison(
        compared=compared,
        timings=timings,
        changes=tuple(sorted(changes, key=lambda change: (order[change.kind], change.implementation, change.subject))),
        differences=common.differences,
        not_compared=(*common.remarks, *of_results, *of_accuracy, *of_speed),
    )
