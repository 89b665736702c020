"""What is made of damaged files: a few hundred of those that ``python -m tests.attacks.files`` reads by the thousand."""

import pytest

from tests.attacks.files import COMMANDS, DRAWING, attack
from tests.attacks.records import KINDS


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
