"""The project's words are those of the field: those that it once had for the same do not come back, in code or documents.

Names are looked through by their parts, so that ``honest_list`` has the word too. Problems' texts, ids and fields of records keep
what they had: that is what the exceptions are.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("conformance", "implementations", "docs", "tests")
KINDS = (".py", ".html", ".js", ".css", ".md", ".toml")
# Where earlier words are named to be read, or to be told that they are read.
NAMES_THEM = ("conformance/renamed.py", "tests/test_renamed.py", "tests/test_words.py", "CHANGELOG.md")

# The word, what is said instead, where it may stand: in what files (a pattern of their names) or lines (of their texts).
WORDS = [
    (r"dis?honest|honest", "correct, incorrect", None, None),
    (r"alarms?", "false positive", None, None),
    (r"laws?", "distribution", r"/(growth|statistics|record_types)\.", None),  # power laws
    (r"edits?|edited", "transformation", None, r"edits=|\"edits\"|\"edit\"|not edit"),  # texts; seeds; documents that are made
    (r"mends?|mended|mending", "fix", None, None),
    (r"compose|composes|composed|composing", "emulate", None, None),
    (r"eager", "unfused", None, r"backend=\"eager\""),  # of torch.compile
    (r"on board", "built-in", None, None),
    (r"[Ee]mpty rows?", "fully masked row", None, None),
    (r"sees? no key", "fully masked row", None, r"from number 128 on see no key"),  # a fault: all keys hidden from some queries
    (r"due", "expected", None, r"\"due\"|`due`|\|due is"),  # the field of a header; earlier messages
    (r"want (?:[{\d]|nan|inf)", "expected", None, None),
    (r"again: ?attention|attention-conformance repro|<dt>Again", "reproduce", None, None),
]
# In these rooms a symptom, elsewhere the sign of a number.
SIGNS = (r"signs?", "symptom", r"random signs|np\.sign|signs = |\* signs")
ROOMS_OF_SYMPTOMS = ("conformance/diagnosis", "conformance/run/workers/diagnosis_process.py")


def files() -> list[Path]:
    found = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in KINDS]
    found += [*ROOT.glob("*.md"), *ROOT.glob("*.py"), ROOT / "golden" / "README.md"]
    return [path for path in found if path.relative_to(ROOT).as_posix() not in NAMES_THEM]


TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files()}


def found(word: str, text: str, lines: str | None) -> list[str]:
    """The lines that have the word, also as a part of a name; the end of a line may be within."""
    spread = word.replace(" ", r"[\s#]+")
    pattern = re.compile(rf"(?<![A-Za-z])(?:{spread})(?![a-z])")
    starts = [text.rfind("\n", 0, match.start()) + 1 for match in pattern.finditer(text)]
    told = (text[start : text.find("\n", start)] for start in starts)
    return [line.strip() for line in told if lines is None or not re.search(lines, line)]


@pytest.mark.parametrize(("word", "instead", "but", "lines"), WORDS, ids=[word for word, *_ in WORDS])
def test_words_that_must_not_come_back(word, instead, but, lines):
    places = {
        name: there for name, text in TEXTS.items() if not (but and re.search(but, name)) and (there := found(word, text, lines))
    }
    assert not places, f"say {instead}"


def test_failures_have_symptoms_and_numbers_signs():
    word, instead, lines = SIGNS
    places = {
        name: there for name, text in TEXTS.items() if name.startswith(ROOMS_OF_SYMPTOMS) and (there := found(word, text, lines))
    }
    assert not places, f"say {instead}"


def test_a_word_is_found_in_names_and_across_lines():
    assert found("honest", "the_honest_one = 1\n", None) == ["the_honest_one = 1"]
    assert found("honest", "# dishonesty, and honesty\n", None) == []
    assert found("on board", "# those on\n# board, all\n", None) == ["# those on"]
    assert found("due", "# the due date\nDUE = 1\n", None) == ["# the due date"]
