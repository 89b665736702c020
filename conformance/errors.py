"""The exceptions of the suite: what a user's mistake becomes, a sentence without a traceback, and what is not offered."""

import os
import signal

LONGEST = 400  # characters of an exception's text that are shown
LONGEST_QUOTE = 120  # characters of a user's own text within a sentence
LONGEST_SENTENCE = 1500  # characters of a sentence; long lists of what there is are within it


class UsageError(Exception):
    """Something the user can fix: what is wrong, where, and what to do, in one sentence.

    Every entry point (command line, pytest plugin, nox) prints ``str(error)`` alone and exits with code 2. A sentence that got
    far too long, by what it quotes, is cut in its middle: what is wrong stands at its beginning, what to do at its end.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(cut(sentence, LONGEST_SENTENCE))


class ProblemError(UsageError):
    """A problem text or a set of problem fields that describes no problem."""


class Unsupported(Exception):
    """The implementation does not offer what was asked; the text says which feature, dtype or layout. No mistake of anybody's.

    ``feature`` is the feature that is lacking, where it is one that could be offered.
    """

    def __init__(self, text: str, feature: str = "") -> None:
        super().__init__(text)
        self.feature = feature


class LeftOut(Unsupported):
    """What the declaration of an implementation leaves out of a feature that it offers: sizes beyond its limits, calls that it
    declines, shapes beyond its budget."""


class Declined(LeftOut):
    """A call that raised what is declared to mean "not offered": what it asked for may be offered in name alone."""


_PROCESS = os.getpid()


def cut(text: str, most: int = LONGEST_QUOTE) -> str:
    """The text, its middle left out where it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail]} … ({len(text) - most} characters) … {text[-tail:]}"


def quoted(text: str) -> str:
    """Text of a user or a file in quotation marks, for a sentence: in one line, and not too long."""
    return repr(cut(text))


def demand_own(error: BaseException) -> None:
    """Raises ``error`` again unless it is the implementation's own, which may be anything, ``SystemExit`` included.

    A KeyboardInterrupt is the user's wherever Ctrl-C raises one.
    """
    end_if_forked()
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error


def end_if_forked() -> None:
    """Ends a child process that the implementation has forked, which would go on as a second run."""
    if os.getpid() != _PROCESS:
        os._exit(1)


def told(error: BaseException) -> str:
    """Type and text of an exception in one line of printable characters, however long, strange or impossible the text is."""
    try:
        text = str(error)[: 10 * LONGEST]
    except BaseException as another:
        demand_own(another)
        text = f"(its text cannot be had: {type(another).__name__})"
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    shortened = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
    return f"{type(error).__name__}: {shortened}" if shortened else type(error).__name__
