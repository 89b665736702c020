"""Texts that nobody wrote in good faith, for wherever a file holds a text."""

ROOT = "@ROOT@"  # stands for a folder in which nothing may be written
PWNED = "PWNED"  # what a command of a CI, or a page, would show had it obeyed a text
MARKUP = f"</script></testcase>]]><img src=x onerror={PWNED}>"

_OF_TERMINALS = (
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31mred", "\x00", "a\x00b", "\x07\x08\x0b\x0c\x0e", "\x7f", "over\rwritten",
    "\x1b", "\x85next", "\u202eright to left\u202c", "\u2066isolated\u2069", "\u200e\u200f\u061c", "\u2028line\u2029paragraph",
)  # fmt: skip
_OF_COMMANDS = (
    f"::error::{PWNED}", f"x\n::error::{PWNED}", f"x\r::error::{PWNED}", f"x\r\n::set-output name=a::{PWNED}",
    f"  ::add-mask::{PWNED}", f"x\u2028::error::{PWNED}", f"x\x0b::error::{PWNED}", f"x\x85::error::{PWNED}", "a%0A::b",
    "%s%n{0}{",
)  # fmt: skip
_OF_SHEETS = ("=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(\"http://x\")", "a,b\n=1", '"', "a\"b")  # fmt: skip
_OF_PATHS = (
    "../../../victim", "../victim", "..", ".", "/", f"{ROOT}/victim", "a/b", "a\\..\\..\\victim", "C:\\victim", "CON", "~/victim",
    "x" * 300, "a/../../victim",
)  # fmt: skip
_OF_MARKUP = (
    MARKUP, "<script>", "&amp;&#0;&x;", "{{ 7*7 }}{% raw %}", "[bold red]x[/]", "[/]", "[link=http://x]y", "| a | b |", "`x`",
    "[x](javascript:x)", "\n# heading\n", "![x](http://x)", "$x$", "*x*", "<!--", "{\"a\": 1}",
)  # fmt: skip
_OF_ENCODINGS = ("\ud800", "a\udfffb", "\ufffe\uffff", "\U0010ffff", "\U0001f600", "é", "e\u0301", "\u200b", "\ufeff")
_OF_LENGTH = ("", " ", "\t", "\n", "x" * 10_000, "\u0301" * 2_000, "word " * 20_000)

TEXTS = (
    *_OF_TERMINALS, *_OF_COMMANDS, *_OF_SHEETS, *_OF_PATHS, *_OF_MARKUP, *_OF_ENCODINGS, *_OF_LENGTH
)  # fmt: skip

# As they stand in JSON text: numbers that types do not hold, and what is no number of JSON.
NUMBERS = (
    "1e400", "-1e400", "1" + "0" * 400, "-1" + "0" * 400, "1e999999999", "1e-999999999", "-0.0", "1e308", "5e-324",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "-1", "0", "1.5", "2", "4", "-9223372036854775809",
    "0." + "1" * 5_000,
)  # fmt: skip
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "0x10", "01", "1_000", "1e", "+1", ".5", "--1", "1" * 2 + "." * 2)
# Values of every type, for fields of another.
VALUES = (None, True, False, 0, -1, 1, 1.5, "", "x", "1", "NaN", [], [[]], [None], [1], ["x"], {}, {"x": 1}, {"x": [{}]})
