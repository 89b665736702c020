"""What commands print of others: nothing that a terminal or a continuous integration would obey."""

import ast
from pathlib import Path

import pytest

import conformance
from conformance.errors import LONGEST_SENTENCE, UsageError, cut, quoted
from conformance.system.exit_codes import ExitCode
from conformance.system.terminal_text import UNPRINTABLE, cleaned
from tests.support import runs
from tests.support.commands import invoke
from tests.support.hostile_records import TEXT, hostile_run

PACKAGE = Path(conformance.__file__).parent
# Where something is printed that is no text of others, or is printed by pytest or rich: with the reason.
PRINTERS = {
    "system/terminal_text.py": "say",
    "system/interruption.py": "a fixed sentence, from a signal handler",
    "timing/bench.py": "rich's console, of cleaned text",
    "run/session/progress.py": "numbers",
    "system/streams.py": "one sentence, cleaned by command.py",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 中 \N{GREEK SMALL LETTER ALPHA}\n\tmore", "plain é 中 \N{GREEK SMALL LETTER ALPHA}\n\tmore"),
        ("\x1b[31mred\x9b0m\x7f", "\ufffd[31mred\ufffd0m\ufffd"),
        ("a\rb\x0bc\x85d\u2028e", "a\ufffdb\ufffdc\ufffdd\ufffde"),
        ("file\u202egnp.exe\u2066\u200f\u061c", "file\ufffdgnp.exe\ufffd\ufffd\ufffd"),
        ("\ud800\ufeff\U000e0041", "\ufffd\ufffd\ufffd"),
        ("\N{WOMAN}\u200d\N{PERSONAL COMPUTER} می\u200cخواهم", "\N{WOMAN}\u200d\N{PERSONAL COMPUTER} می\u200cخواهم"),
        ("::error::no", ": :error::no"),
        ("one\n \t\u3000::warning::no", "one\n \t\u3000: :warning::no"),
        ("a::b module::c", "a::b module::c"),
        ("x ##[error]no ##vso[task]no #[no]", "x ## [error]no ## vso[task]no #[no]"),
    ],
)
def test_text_is_cleaned(text: str, shown: str) -> None:
    assert cleaned(text) == shown
    assert cleaned(shown) == shown


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The hostile run, an ordinary one, and one cut into two shards."""
    shards = [runs.write(tmp_path / f"{number}.jsonl", _part(number), exit_code=ExitCode.UNEXPECTED) for number in (1, 2)]
    hostile = runs.write(tmp_path / "hostile.jsonl", *hostile_run(), exit_code=ExitCode.UNEXPECTED)
    plain = runs.write(tmp_path / "plain.jsonl", runs.header(), runs.item(), runs.item("flawed"))
    return {"hostile": hostile, "plain": plain, "first": shards[0], "second": shards[1]}


def _part(number: int) -> runs.Header:
    return runs.header([runs.implementation("fine", missing=TEXT)], shard=f"{number}/2")


@pytest.mark.parametrize(
    "words",
    [
        "report {hostile}",
        "report {hostile} --out {folder}",
        "page {hostile} --out {folder}/page.html",
        "diff {plain} {hostile}",
        "diff {hostile} {plain}",
        "diff {plain} {hostile} --format markdown",
        "history {hostile} {plain}",
        "history {hostile} --format markdown",
        "annotate {hostile} --root {folder}",
        "badge {hostile} --out {folder}",
        "merge {first} {second} --out {folder}/merged.jsonl",
        "expectations update {hostile} --to {folder}",
    ],
)
def test_no_command_prints_what_is_obeyed(files: dict[str, Path], tmp_path: Path, words: str) -> None:
    result = invoke(*words.format(**files, folder=tmp_path / "out").split())
    assert result.exit_code in (0, 1), result.output
    assert result.output == "" or not {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066)} & set(
        result.output
    )
    commands = [line for line in result.output.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    if words.startswith("annotate"):
        commands = [line for line in commands if not line.startswith(("::error title=", "::notice title="))]
    assert not commands


def test_annotations_are_still_obeyed(files: dict[str, Path], tmp_path: Path) -> None:
    lines = invoke("annotate", files["hostile"], "--root", tmp_path).output.splitlines()
    assert lines and all(line.startswith(("::error ", "::notice ")) for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ("report", "\x1b[31m\u202e"),
        ("reproduce", "\x1b[2J", "--implementation", "numpy-einsum"),
        ("explain", "::error::x\n::error::y"),
        ("describe", "no\x1b[1msuch"),
        ("\n::error::x",),
        ("report", "--\n::error::x"),
        ("report", "a\n::error::b\nc"),
    ],
)
def test_mistakes_are_told_in_cleaned_text(words: tuple[str, ...]) -> None:
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "\x1b" not in result.stderr and "\u202e" not in result.stderr
    assert not any(line.lstrip().startswith("::") for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("reproduce", "{}", "--implementation", "numpy-einsum"),
        ("reproduce", "attention {}=1", "--implementation", "numpy-einsum"),
        ("reproduce", "attention values={}", "--implementation", "numpy-einsum"),
        (
            "reproduce",
            "attention batch=1 heads=1 length=2 width=2 dtype={} values=gaussian.1#1",
            "--implementation",
            "numpy-einsum",
        ),
        (
            "reproduce",
            "attention batch=1 heads=1 length=2 width=2 dtype=float32 values={}.1#1",
            "--implementation",
            "numpy-einsum",
        ),
        ("explain", "{}"),
        ("explain", "GOLD-{}"),
        ("describe", "{}"),
        ("bench", "--suite", "{}"),
        ("report", "{}"),
        ("faults", "--only", "{}"),
        ("run", "--implementation", "{}", "-n", "0"),
        ("run", "--reports", "{}"),
        ("run", "-k", "{} )"),
        ("run", "--tier", "{}"),
        ("run", "--{}"),
        ("{}",),
        ("run", "--time-limit", "{}"),
        ("diff", "a", "b", "--format", "{}"),
        ("history", "a", "--implementation", "{}"),
        ("golden", "add", "{}", "--requirement", "ATT-OUT-001", "--note", "n", "--source", "s"),
    ],
)
def test_what_a_user_wrote_is_quoted_cut(words: tuple[str, ...]) -> None:
    result = invoke(*(word.format("7" * 100_000) for word in words))
    assert result.exit_code == ExitCode.USAGE_ERROR, result.output[:200]
    assert len(result.stderr) <= LONGEST_SENTENCE + 100
    assert len(result.stderr.splitlines()) == 1


def test_quotations_and_sentences_have_a_length() -> None:
    assert quoted("short\n") == r"'short\n'"
    assert cut("ab" * 100, 20).startswith("ababababab") and "180 characters" in cut("ab" * 100, 20)
    sentence = str(UsageError(f"The file {'x' * 10_000_000} cannot be read: give another one."))
    assert len(sentence) < LONGEST_SENTENCE + 50
    assert sentence.startswith("The file xxx") and sentence.endswith("give another one.")


def test_all_printing_goes_through_one_function() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("print", "echo", "secho"):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= set(PRINTERS), "use conformance.system.terminal_text.say"


def test_every_character_that_acts_is_known_to_the_pattern() -> None:
    from unicodedata import category

    kept = {0x9, 0xA, 0x200C, 0x200D, *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}  # seen, or shape what is seen
    acting = [code for code in range(0x10000) if category(chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Cs") and code not in kept]
    assert [hex(code) for code in acting if cleaned(chr(code)) == chr(code)] == []
    assert len(UNPRINTABLE) < 200
