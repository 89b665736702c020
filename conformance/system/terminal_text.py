"""Text of others, as a terminal or the log of a continuous integration can show it without obeying it.

Names, messages and printed output of an implementation, and whatever stands in a record file, may hold escape sequences,
characters that turn the order of text round, and lines that a continuous integration takes for commands.
"""

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# C0, C1 and DEL without tab and newline; separators of lines; what is invisible and reorders, hides or joins text (not the
# joiners of Persian words and of emoji, which only shape what is seen); halves of surrogate pairs, which no encoding can write.
UNPRINTABLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f"
)
_UNPRINTABLE = re.compile(f"[{UNPRINTABLE}]")
# "::error::…" after any white space, as GitHub reads it; "##[error]…" and Azure's "##vso[…]" wherever they stand in a line.
_AT_LINE_START = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_ANYWHERE = re.compile(r"##(?=[A-Za-z]*\[)")


def printable(text: str) -> str:
    """The text with every character replaced that acts in place of being seen; newlines and tabs stay."""
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub(REPLACEMENT, text)


def cleaned(text: str) -> str:
    """``printable`` text of which no line is a command of a continuous integration. To be applied to whole lines, last."""
    return _ANYWHERE.sub("## ", _AT_LINE_START.sub(r"\1: ", printable(text)))


def say(text: str, *, error: bool = False, command: bool = False) -> None:
    """Prints ``text`` and a newline, cleaned, to the standard output or the standard error: all that a command prints goes
    through here. ``command``: it is a workflow command of our own (``ci/workflow_commands.py``), to be obeyed."""
    import click

    click.echo(printable(text) if command else cleaned(text), err=error)
