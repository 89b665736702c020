"""The verdict of a run: what is as expected and what is not, what was judged, and what most of the failures have in common.

Whatever shows a verdict takes it from here, so that all outputs of a run say the same.
"""

from collections import Counter

from conformance.judging.verdict import Outcome
from conformance.records import Run
from conformance.reports import causes, tallies, unjudged
from conformance.system.exit_codes import ExitCode

SHOWN = 8  # implementations of which results are missing


def verdict(run: Run) -> str:
    """The run in one sentence."""
    return lines(run)[0]


def lines(run: Run) -> list[str]:
    """The verdict, a sentence each, the most important first: the result, with how much was judged; what has no result; what of
    signatures could not be read, and masks that were taken for their opposite; what cannot be told; areas that were left out
    without a word; what the failures have in common; what faults explain; what was not offered."""
    if not run.items and not run.conventions:
        return [_of_timings(run), *unjudged.unread(run)]
    oversights = [one.sentence for one in run.undeclared]
    notes = [*_missing(run), *unjudged.unread(run), *_inverted(run)]
    return [_result(run), *notes, *run.too_little, *oversights, *causes.sentences(run), *unjudged.sentences(run)]


def _inverted(run: Run) -> list[str]:
    """Masks that mean the opposite of the suite's, without a declaration: an accident as likely as a choice."""
    words = {"CON-POLARITY": "mask", "CON-PADDING-POLARITY": "key padding mask"}
    return [
        f"{c.implementation} was seen to ignore keys where its {words[c.id]} is True, and was judged so: if that is no accident, "
        f'declare {c.id} "true-ignores".'
        for c in run.conventions
        if c.id in words and c.declared is None and c.observed == "true-ignores"
    ]


def _of_timings(run: Run) -> str:
    if not run.timed:
        return "Nothing was run."
    wrong = len(run.wrong_timings)
    found = f"{_wrong_timings(wrong)} of {len(run.timed)}" if wrong else "no requirement was run"
    return f"Timings alone: {found}."


def _result(run: Run) -> str:
    if not any(item.outcome.was_run for item in run.items) and not run.surprises:
        return _nothing(run)
    number, conventions, timings = len(run.unexpected), len(run.unexpected_conventions), len(run.wrong_timings)
    parts = [f"{number} of {len(run.items)} results {'is' if number == 1 else 'are'} unexpected"] if number else []
    if conventions:
        parts.append(f"{conventions} convention{' is' if conventions == 1 else 's are'} not as expected")
    if timings:
        parts.append(_wrong_timings(timings))
    areas = len(run.undeclared)
    if areas:
        parts.append(f"{areas} area{' is' if areas == 1 else 's are'} neither offered nor declared as lacking")
    nothing_else = "what was recorded is as expected" if run.missing else "every result is as expected"
    told = ", and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) if parts else nothing_else
    return _sentence(f"{_unfinished(run)}{_part(run, so_far=_ended_early(run))}{told}: {_judged(run)}{unjudged.narrowed(run)}.")


def _missing(run: Run) -> list[str]:
    """What of a run that came to its end was expected and has no result, a line for each implementation, of a few."""
    lines = [f"No result of {name}: {causes.listed(identifiers)}." for name, identifiers in run.missing.items()]
    left = len(lines) - SHOWN
    return lines if left <= 0 else [*lines[:SHOWN], f"… and of {left} more implementations."]


def _incomplete(run: Run) -> str:
    """How many results are missing, and of which implementation where it is one alone."""
    missing, questions = sum(map(len, run.missing.values())), {identifier for h in run.headers for identifier in h.conventions}
    conventions = sum(identifier in questions for identifiers in run.missing.values() for identifier in identifiers)
    expected = sum(identifier in questions for identifier, _ in run.expected)
    parts = [
        f"{number} of {whole} {name}"
        for number, whole, name in (
            (missing - conventions, len(run.expected) - expected, "requirements"), (conventions, expected, "conventions"),
        )
        if number
    ]  # fmt: skip
    on = f" of {len(run.missing)} implementations" if len(run.missing) > 1 else f" of {next(iter(run.missing))}"
    return f"{' and '.join(parts)}{on} have no result, so that the run proves nothing of the whole; "


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _part(run: Run, *, so_far: bool) -> str:
    """What is to be said where the run is not all that was expected: a selection, a shard, or one that ended early,
    ``so_far``."""
    extent, several = run.extent, len(run.implementations) > 1
    if extent.is_whole or (run.missing and not (run.header.selection or run.shard)):
        return "so far " if so_far else ""
    on = f" on {len(run.implementations)} implementations" if several else ""
    parts = [f"{extent.requirements} of {extent.requirements_expected} requirements{on}"]
    if extent.conventions < extent.conventions_expected:
        parts.append(f"{extent.conventions} of {extent.conventions_expected} conventions")
    what = f"shard {run.shard}" if run.shard else f"what was run{' so far' if so_far else ''}"
    return f"of {what} ({', '.join(parts)}), "


def _ended_early(run: Run) -> bool:
    """Too little to be judged is another reason why a run proves nothing, and has its own sentence."""
    return not run.is_complete or (run.was_interrupted and not run.too_little)


def _wrong_timings(number: int) -> str:
    return f"{number} timed output{' is' if number == 1 else 's are'} wrong"


def _unfinished(run: Run) -> str:
    """What is to be said before the result where the run has not come to its end, or where the suite itself failed."""
    if run.missing:
        return _incomplete(run)
    if _ended_early(run):
        return "interrupted, " if run.is_complete else "unfinished, "
    if run.too_little:
        return "too little was judged for a verdict; besides, "
    if run.exit_code == ExitCode.INCONCLUSIVE:
        return "the suite itself failed, see its message; besides, "
    if run.exit_code == ExitCode.UNEXPECTED and not run.surprises:
        return "a check ended without a result, see its message; besides, "
    return ""


def _nothing(run: Run) -> str:
    told = f"{_incomplete(run) if run.missing else ''}{_part(run, so_far=not run.is_complete)}nothing was judged"
    if run.items:
        left = len(run.items)
        told += f": {'the one result is' if left == 1 else f'all {left} results are'} {_reasons(run, ' or ')}"
    else:
        asked = sum(not convention.skipped for convention in run.conventions)
        told += f": no requirement was run, {asked} convention{' was' if asked == 1 else 's were'} asked"
    return _sentence(f"{told}.")


def _judged(run: Run) -> str:
    """Of all results, each a requirement on an implementation: how many were judged, how many were not and why."""
    judged = sum(item.outcome.was_run for item in run.items)
    known = sum(tallies.kind_of(item) == tallies.KNOWN for item in run.items)
    told = f"{judged} judged{unjudged.within(run)}" + (f" ({known} known failure{'' if known == 1 else 's'})" if known else "")
    left = len(run.items) - judged
    if not left:
        return told
    return f"{told}, {left} not ({_reasons(run, ', ')}{unjudged.not_offered(run)})"


def _reasons(run: Run, between: str) -> str:
    """Why results were not judged, with numbers where there are several reasons."""
    counts = Counter(item.outcome for item in run.items if not item.outcome.was_run)
    words = {Outcome.SKIPPED: tallies.SKIPPED, Outcome.UNSUPPORTED: tallies.UNSUPPORTED}  # why it is so follows the last
    told = [(counts[outcome], word) for outcome, word in words.items() if counts[outcome]]
    return told[0][1] if len(told) == 1 else between.join(f"{number} {word}" for number, word in told)
