"""Hostile implementations by the real command: some of those that ``python -m tests.attacks.trial`` holds, and their judge."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import actions
from tests.attacks.adapters import CALLED, HEAD, MOMENTS, Attack, corpus
from tests.attacks.trial import TOKEN, held, survivors

BY_NAME = {attack.name: attack for attack in corpus()}
SOME = (
    "raises: SystemExit 0, at import",
    "raises: KeyboardInterrupt, in the fifth call",
    "raises: name raises, in the first call",
    "dies: os._exit 0, at import",
    "dies: segmentation fault, with a mask",
    "dies: SIGKILL, beside the items",
    "dies: os._exit 0, at exit",
    "hangs: sleep that holds the interpreter, with a mask",
    "hangs: endless loop, at exit",
    "leaves: forked helper, in the first call",
    "leaves: daemon in a session of its own, at import",
    "leaves: helper that is terminated, in the first call",
    "streams: closes 0 to 2, at import",
    "streams: all are None, at import",
    "streams: closes 3 to 255, in the first call",
    "harmless: np.seterr raises, in the first call",
    "harmless: its file is gone, at import",
    "patches: json, in the first call",
    "prints: commands, in the first call",
    "returns: str dtype, always",
    "returns: nameless type, always",
    "wrong: in the first call, always",
)


@pytest.mark.hostile
@pytest.mark.parametrize("name", SOME)
def test_harm_costs_its_own_items(name: str, tmp_path: Path) -> None:
    trial = held(BY_NAME[name], tmp_path)
    assert not trial.faults, "\n".join(trial.faults)


def test_the_corpus_has_every_deed_at_its_moments() -> None:
    assert len(BY_NAME) >= 250
    assert {attack.moment for attack in corpus()} == {*MOMENTS, "always"}
    deeds = {attack.deed for attack in corpus()}
    for table in ("RAISES", "DIES", "HANGS", "LEAVES", "STREAMS", "HARMLESS", "PATCHES", "PRINTS", "RETURNS"):
        assert set(getattr(actions, table)) <= deeds
    for attack in corpus():
        compile(attack.source, attack.name, "exec")
        assert attack.some <= attack.expected


@pytest.mark.hostile
def test_a_run_that_is_not_as_expected_is_told(tmp_path: Path) -> None:
    """A correct function of which an error is said to be expected."""
    source = HEAD + CALLED.format(when="open('litter', 'w').close()")
    wrong = Attack("raises", "nothing", "never", source, frozenset({"ERROR"}), frozenset({"ERROR"}), frozenset({1}))
    told = " ".join(held(wrong, tmp_path).faults)
    for part in (
        "exit code 0, expected 1",
        "its own outcomes ['PASS']",
        "none of its items is ERROR",
        "left in the folder: litter",
    ):
        assert part in told


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_process_that_outlives_its_run_is_found_and_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, env={**os.environ, TOKEN: "of a test"}
    ) as left:
        assert survivors("of another", patience=0.0) == []
        assert len(survivors("of a test", patience=0.0)) == 1
        assert left.wait() < 0
