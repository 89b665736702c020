"""What is made of damaged files: a few hundred of those that ``python -m tests.attacks.files`` reads by the thousand."""

import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from conformance.system.exit_codes import ExitCode
from tests.attacks.files import COMMANDS, DRAWING, attack
from tests.attacks.records import KINDS, undamaged, whole
from tests.attacks.sandbox import OUT, Sandbox


@pytest.fixture(scope="module")
def found():
    return attack(400)


def test_damaged_files_cost_a_sentence_and_nothing_else(found) -> None:
    """Codes of the table, one sentence where a file is refused, nothing outside the folder, no text that commands anybody."""
    assert not found.faults, "\n".join(found.lines())


def test_the_few_hundred_reach_what_they_are_for(found) -> None:
    assert sum(found.kinds.values()) == 400
    assert len(found.distinct) > 300
    assert len(found.kinds) > len(set(KINDS))
    commands = {command for command, _ in found.endings}
    assert {
        *COMMANDS,
        *DRAWING,
        "run --expectations",
        "expectations update, on a file",
        "run --skips",
        "golden cases",
    } <= commands
    for command in COMMANDS:
        codes = {code for name, code in found.endings if name == command}
        assert {"0", "1"} & codes and "2" in codes, f"{command} must meet files that it takes, and files that it refuses"


def test_what_is_drawn_is_the_same_each_time() -> None:
    first, second = attack(60), attack(60)
    assert (first.kinds, first.endings, first.distinct) == (second.kinds, second.endings, second.distinct)


# The judge


def refuse(told: str) -> None:
    click.echo(told, err=True)
    sys.exit(ExitCode.USAGE_ERROR)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: 1 / 0, "it raised ZeroDivisionError"),
        (lambda: click.echo("\x1b]0;title\x07"), "control characters reach the terminal"),
        (lambda: click.echo("a\u202eb"), "direction of writing"),
        (lambda: click.echo("fine\n ::error::x"), "a line begins with ::"),
        (lambda: refuse(""), "in place of one sentence"),
        (lambda: refuse("one.\nAnd another."), "several lines said"),
        (lambda: refuse("long " * 1000), "longer than anybody reads"),
        (lambda: Path("..", "..", "victim").write_text("x"), "it wrote outside"),
        (lambda: Path(OUT, "junit.xml").write_text("<a>\x01</a>"), "not well-formed"),
        (lambda: Path(OUT, "summary.json").write_text("[NaN]"), "a JSON file that is none"),
        (lambda: Path(OUT, "results.csv").write_text("a,b\n=1+1,2\n"), "that a sheet computes"),
        (lambda: Path(OUT, "report.html").write_text("<img src=x onerror=PWNED>"), "markup of a record"),
    ],
)
def test_what_must_not_be_is_seen(function: Callable[[], object], told: str, tmp_path: Path) -> None:
    _, faults = Sandbox(tmp_path).call(function)
    assert len(faults) == 1 and told in faults[0], faults


def test_an_undamaged_file_is_faultless_in_every_command(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    for name, shard in (("records.jsonl", ""), ("other.jsonl", ""), ("second.jsonl", "2/2")):
        sandbox.put(name, whole(undamaged(shard)))
    sandbox.put("first.jsonl", whole([undamaged("1/2")[0], undamaged_footer_of_nothing()]))
    for name, words in COMMANDS.items():
        ending, faults = sandbox.run(words)
        assert not faults and ending.code in (0, 1), f"{name}: {faults} {ending.errors}"


def undamaged_footer_of_nothing() -> str:
    return '{"kind":"footer","finished":"2026-11-29T12:01:00Z","counts":{},"outcomes":{},"unexpected":0,"exit_code":0}'
