"""The exceptions of the suite: what a user's mistake becomes, a sentence without a traceback, and what is not offered."""


class UsageError(Exception):
    """Something the user can mend: what is wrong, where, and what to do, in one sentence.

    Every entry point (command line, pytest plugin, nox) prints ``str(error)`` alone and exits with code 2.
    """


class ProblemError(UsageError):
    """A problem text or a set of problem fields that describes no problem."""


class Unsupported(Exception):
    """The implementation does not offer what was asked; the text says which feature, dtype or layout. No mistake of anybody's."""


# What an implementation may raise without ending more than its own case.
RAISED_BY_IMPLEMENTATIONS: tuple[type[BaseException], ...] = (Exception, SystemExit, GeneratorExit, BaseExceptionGroup)
