"""Text from records as a page can hold it: whatever an implementation calls itself or says when it fails."""

import math
import re

from conformance.system.terminal_text import REPLACEMENT, printable

NAME = 80  # characters of a name
IN_PLOTS = 19  # characters of a name in a plot
LINE = 2000  # characters of a message, a reason, a problem, a command
_UNSPEAKABLE = re.compile("[\ufffe\uffff]")  # of HTML alone
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = re.compile(r"[A-Za-z0-9-]{1,40}")


def clean(text: str, limit: int = LINE) -> str:
    """The text without what HTML cannot hold, cut where it is longer than ``limit``."""
    shortened = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return _UNSPEAKABLE.sub(REPLACEMENT, printable(shortened))


def anchor(identifier: str, number: int) -> str:
    """The identifier where it can stand in a link, else one made of its number."""
    return identifier if _PLAIN.fullmatch(identifier) else f"r{number}"


def unique_names(names: list[str], limit: int = IN_PLOTS) -> dict[str, str]:
    """What each name is called in a plot: its middle left out where it is longer than ``limit``, and no two alike."""
    shown: dict[str, str] = {}
    for number, name in enumerate(names):
        words = clean(" ".join(name.split()), NAME) or "(no name)"
        half = limit // 2
        short = words if len(words) <= limit else f"{words[:half]}…{words[-half:]}"
        shown[name] = short if short not in shown.values() else f"{words[: limit - 5]} #{number}"
    return shown


def figure(value: float) -> str:
    """Three significant digits, a power of ten for what is large: 2.51·10⁵."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")
    if 1e-4 <= abs(value) < 1e4 or value == 0:
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}·10{str(int(exponent)).translate(_RAISED)}"
