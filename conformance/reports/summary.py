"""A run as a small JSON document, to be kept beside the code and compared over time."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from conformance.judging.verdict import Outcome
from conformance.records import Run, Timing
from conformance.records.accuracy import Accuracy
from conformance.reports import tallies
from conformance.reports.speed import timed
from conformance.reports.verdict import lines


def summary(run: Run) -> dict[str, Any]:
    """Per implementation: results by area, problems, accuracy, conventions and speed; what was unexpected, and what is missing.
    Plain JSON."""
    header = run.header
    return {
        "suite": header.suite,
        "specification": header.specification,
        "tier": header.tier,
        "seed": header.seed,
        "conformance_result": not run.not_conformance,
        "not_a_conformance_result_because": run.not_conformance,
        "started": header.started.isoformat(),
        "environments": [msgspec.to_builtins(shard.environment) for shard in run.headers],
        "implementations": _implementations(run),
        "unexpected": [
            {
                "requirement": item.requirement,
                "implementation": item.implementation,
                "outcome": str(item.outcome),
                "dtypes": tallies.failing_dtypes(item),
            }
            for item in run.unexpected
        ],
        "unexpected_conventions": [
            {"convention": c.id, "implementation": c.implementation, "declared": c.declared, "observed": c.observed}
            for c in run.unexpected_conventions
        ],
        "unexpected_timings": [
            {"timed": timed(timing), "implementation": timing.implementation, "outcome": str(timing.outcome)}
            for timing in run.wrong_timings
        ],
        "missing_results": {name: list(identifiers) for name, identifiers in run.missing.items()},
        "verdict": lines(run),
        "unrun": [{"implementation": one.implementation, "sentences": list(one.lines)} for one in run.unrun],
        "diagnoses": [
            {
                "implementation": diagnosis.implementation,
                "faults": [list(explanation.faults) for explanation in diagnosis.explanations],
                "requirements": [list(explanation.requirements) for explanation in diagnosis.explanations],
                "sentences": list(diagnosis.lines),
            }
            for diagnosis in run.diagnoses
        ],
    }


def _implementations(run: Run) -> dict[str, Any]:
    results, accuracies, problems = tallies.by_area(run), tallies.accuracies(run), tallies.problems(run)
    seconds, dtypes = tallies.seconds(run), tallies.by_dtype(run)
    return {
        name: {
            "framework": entry.framework,
            "framework_version": entry.framework_version,
            "device": entry.device,
            "missing": entry.missing,
            "areas": {area: dict(counts) for area, counts in results[name].items()},
            "dtypes": {dtype: dict(counts) for dtype, counts in dtypes[name].items()},
            "problems": dict(problems[name]),
            "seconds": round(seconds[name], 1),
            "accuracy": _accuracy(accuracies[name]) if name in accuracies else [],
            "conventions": {c.id: c.observed for c in run.conventions if c.implementation == name},
            "speed": [_speed(timing) for timing in _passed(run, name)],
        }
        for name, entry in run.implementations.items()
    }


def _accuracy(accuracy: Accuracy) -> list[dict[str, Any]]:
    return [
        {"dtype": dtype, "profile": profile, "count": d.count, "median": _plain(d.median), "max": _plain(d.max)}
        for (dtype, profile), d in sorted(accuracy.distributions.items())
    ]


def _passed(run: Run, name: str) -> Iterable[Timing]:
    return (timing for timing in run.timings if timing.implementation == name and timing.outcome is Outcome.PASS)


def _speed(timing: Timing) -> dict[str, Any]:
    names = ("shape", "dtype", "median_seconds", "ratio", "baseline", "percent_of_matmul")
    return {name: getattr(timing, name) for name in names}


def _plain(value: float) -> float | str:
    """Three digits, which is more than runs have in common; infinity as text."""
    return float(f"{value:.3g}") if math.isfinite(value) else str(value)
