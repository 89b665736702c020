"""The one exception that a user's mistake becomes: a sentence, exit code 2, no traceback."""


class UsageError(Exception):
    """Something the user can mend: what is wrong, where, and what to do, in one sentence.

    Every entry point (command line, pytest plugin, nox) prints ``str(error)`` alone and exits with code 2.
    """


class ProblemError(UsageError):
    """A problem text or a set of problem fields that describes no problem."""
