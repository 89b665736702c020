"""Speed: slower or faster where the intervals of the two runs do not touch; nothing is said where they do."""

from collections import Counter
from dataclasses import dataclass

from conformance.comparison.change import Change, ChangeKind
from conformance.comparison.ground import Ground
from conformance.judging.verdict import Outcome
from conformance.records import Run, Timing
from conformance.reports.format import milliseconds, ratio

OTHER_WORK = "the shape of that name does other work"
NO_INTERVAL = "no interval that both runs have"
UNSOUND = "the ratio of the baseline to itself is not 1, so that ratios say nothing"


@dataclass(frozen=True)
class _Interval:
    """Ends and middle of what is compared, by ``measure``: as text and in numbers."""

    low: float
    high: float
    text: str
    measure: str


def changed_speed(base: Run, new: Run, ground: Ground) -> tuple[list[Change], list[str], int]:
    """The changes, remarks on timings that cannot be compared, and how many were."""
    before = {_key(timing): timing for timing in base.timings}
    common = [(before[_key(timing)], timing) for timing in new.timings if _key(timing) in before]
    changes = [_failing(*pair) for pair in common if pair[1].outcome.is_failure and pair[0].outcome is Outcome.PASS]
    timed = [(then, now) for then, now in common if then.median_seconds is not None and now.median_seconds is not None]
    if timed and not ground.same_machine:
        return changes, ["Speed is not compared: the runs took place on different machines."], 0
    unsound = not (base.ratios_are_sound and new.ratios_are_sound)
    reasons: Counter[str] = Counter()
    for then, now in timed:
        found = _change(base, new, then, now, unsound)
        if isinstance(found, str):
            reasons[found] += 1
        elif found is not None:
            changes.append(found)
    remarks = [f"{number} timings are not compared: {reason}." for reason, number in reasons.items()]
    return changes, remarks, len(timed) - reasons.total()


def _key(timing: Timing) -> tuple[str, ...]:
    return (
        timing.implementation, timing.operation, timing.suite, timing.shape, timing.dtype, timing.passes, timing.device,
    )  # fmt: skip


def _failing(then: Timing, now: Timing) -> Change:
    return Change(ChangeKind.NO_LONGER_TIMED, now.implementation, _subject(now), str(then.outcome), str(now.outcome), now.message)


def _subject(timing: Timing) -> str:
    return f"{timing.shape} ({timing.suite}, {timing.dtype}, {timing.passes}, {timing.device})"


def _change(base: Run, new: Run, then: Timing, now: Timing, unsound: bool) -> Change | str | None:
    """The change; None where the intervals touch; why they cannot be compared, as a string."""
    if (then.flops, then.bytes) != (now.flops, now.bytes):
        return OTHER_WORK
    intervals = _ratios(base, new, then, now)
    if intervals and unsound:
        return UNSOUND
    intervals = intervals or _quartiles(then, now)
    if intervals is None:
        return NO_INTERVAL
    before, after = intervals
    if before.low <= after.high and after.low <= before.high:
        return None
    kind = ChangeKind.SLOWER if after.low > before.high else ChangeKind.FASTER
    return Change(kind, now.implementation, _subject(now), before.text, after.text, after.measure)


def _ratios(base: Run, new: Run, then: Timing, now: Timing) -> tuple[_Interval, _Interval] | None:
    """Of the ratio to the baseline, unless it is another one, of another version, or the implementation itself."""
    if then.baseline != now.baseline or now.implementation == now.baseline:
        return None
    entries = [run.implementations.get(now.baseline) for run in (base, new)]
    versions = [entry.framework_version for entry in entries if entry is not None]
    if len(set(versions)) > 1 or base.environment.packages.get("numpy") != new.environment.packages.get("numpy"):
        return None
    found = tuple(_ratio(timing) for timing in (then, now))
    return (found[0], found[1]) if found[0] and found[1] else None


def _ratio(timing: Timing) -> _Interval | None:
    if timing.ratio is None or timing.ratio_low is None or timing.ratio_high is None:
        return None
    text = f"{ratio(timing.ratio)} [{ratio(timing.ratio_low)}, {ratio(timing.ratio_high)}]"
    return _Interval(timing.ratio_low, timing.ratio_high, text, f"95 % intervals of the time relative to {timing.baseline}")


def _quartiles(then: Timing, now: Timing) -> tuple[_Interval, _Interval] | None:
    found = tuple(_spread(timing) for timing in (then, now))
    return (found[0], found[1]) if found[0] and found[1] else None


def _spread(timing: Timing) -> _Interval | None:
    low, middle, high = timing.low_quartile_seconds, timing.median_seconds, timing.high_quartile_seconds
    if low is None or middle is None or high is None:
        return None
    text = f"{milliseconds(middle)} [{milliseconds(low)}, {milliseconds(high)}]"
    return _Interval(low, high, text, "quartiles of the time of a call")
