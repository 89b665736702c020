"""The verdict of a run: what is as expected and what is not, what was judged, and what most of the failures have in common.

Whatever shows a verdict takes it from here, so that all outputs of a run say the same.
"""

from collections import Counter

from conformance.exit_codes import ExitCode
from conformance.records import Run
from conformance.reports import causes, tallies, unjudged
from conformance.verdict import Outcome


def verdict(run: Run) -> str:
    """The run in one sentence."""
    return lines(run)[0]


def lines(run: Run) -> list[str]:
    """The verdict, a sentence each, the most important first: the result, with how much was judged; what of signatures could not
    be read, and masks that were taken for their opposite; what cannot be told; areas that were left out without a word; what the
    failures have in common; what faults explain; what was not offered."""
    if not run.items and not run.conventions:
        return [_of_timings(run), *unjudged.unread(run)]
    oversights = [one.sentence for one in run.undeclared]
    notes = [*unjudged.unread(run), *_inverted(run)]
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
        parts.append(f"{conventions} convention{' is' if conventions == 1 else 's are'} not as due")
    if timings:
        parts.append(_wrong_timings(timings))
    areas = len(run.undeclared)
    if areas:
        parts.append(f"{areas} area{' is' if areas == 1 else 's are'} neither offered nor declared as lacking")
    told = ", and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) if parts else "every result is as expected"
    selected = "of what was selected, " if run.header.selection else ""
    told = f"{_unfinished(run)}{selected}{told}: {_judged(run)}."
    return f"{told[:1].upper()}{told[1:]}"


def _wrong_timings(number: int) -> str:
    return f"{number} timed output{' is' if number == 1 else 's are'} wrong"


def _unfinished(run: Run) -> str:
    """What is to be said before the result where the run has not come to its end, or where the suite itself failed."""
    if not run.is_complete:
        return "unfinished, so far "
    if run.exit_code == ExitCode.INCONCLUSIVE:
        return "interrupted, so far "
    if run.exit_code == ExitCode.UNEXPECTED and not run.surprises:
        return "a check ended without a result, see its message; besides, "
    return ""


def _nothing(run: Run) -> str:
    where = "in this shard " if len(run.headers) == 1 and run.header.shard else ""
    told = f"{where}nothing was judged"
    if run.items:
        left = len(run.items)
        told += f": {'the one result is' if left == 1 else f'all {left} results are'} {_reasons(run, ' or ')}"
    else:
        asked = len(run.conventions)
        told += f": no requirement was run, {asked} convention{' was' if asked == 1 else 's were'} asked"
    return f"{told[:1].upper()}{told[1:]}."


def _judged(run: Run) -> str:
    """Of all results, each a requirement on an implementation: how many were judged, how many were not and why."""
    judged = sum(item.outcome.was_run for item in run.items)
    known = sum(tallies.kind_of(item) == tallies.KNOWN for item in run.items)
    told = f"{judged} judged{unjudged.narrowed(run)}" + (f" ({known} known failure{'' if known == 1 else 's'})" if known else "")
    left = len(run.items) - judged
    if not left:
        return told
    features = unjudged.not_offered(run)
    return f"{told}, {left} not ({_reasons(run, ', ')}{': ' if features else ''}{', '.join(features)})"


def _reasons(run: Run, between: str) -> str:
    """Why results were not judged, with numbers where there are several reasons."""
    counts = Counter(item.outcome for item in run.items if not item.outcome.was_run)
    words = {Outcome.UNSUPPORTED: tallies.UNSUPPORTED, Outcome.SKIPPED: tallies.SKIPPED}
    told = [(counts[outcome], word) for outcome, word in words.items() if counts[outcome]]
    return told[0][1] if len(told) == 1 else between.join(f"{number} {word}" for number, word in told)
