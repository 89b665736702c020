"""The one table from what became of a run to the code with which the process ends."""

import enum


class ExitCode(enum.IntEnum):
    """Code with which every entry point ends (command line, nox); larger codes win where several apply to merged runs."""

    AS_EXPECTED = 0
    UNEXPECTED = 1
    USAGE_ERROR = 2
    INCONCLUSIVE = 3

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS: dict[ExitCode, str] = {
    ExitCode.AS_EXPECTED: "every result is as expected: passed, not offered, skipped, or a failure that is known",
    ExitCode.UNEXPECTED: "at least one result is unexpected: a failure or an answer that is not known, a pass where a failure is "
    "known, an area that is neither offered nor declared as lacking",
    ExitCode.USAGE_ERROR: "the command, a file or an implementation was given wrongly; the message says what to do",
    ExitCode.INCONCLUSIVE: "the run proves nothing: too few cases ran, it was interrupted, results are missing, or the suite "
    "itself failed",
}

# pytest's exit codes: ok, tests failed, interrupted, internal error, usage error, no test collected.
FROM_PYTEST: dict[int, ExitCode] = {
    0: ExitCode.AS_EXPECTED,
    1: ExitCode.UNEXPECTED,
    2: ExitCode.INCONCLUSIVE,
    3: ExitCode.INCONCLUSIVE,
    4: ExitCode.USAGE_ERROR,
    5: ExitCode.INCONCLUSIVE,
}


def exit_code(*, unexpected: int, enough_cases: bool, missing: int = 0) -> ExitCode:
    """The code of a run that came to its end, with ``unexpected`` results, and ``missing`` ones, which were expected and have
    none."""
    if unexpected:
        return ExitCode.UNEXPECTED
    return ExitCode.AS_EXPECTED if enough_cases and not missing else ExitCode.INCONCLUSIVE
