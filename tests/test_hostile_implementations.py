"""Hostile implementations by the real command: some of those that ``python -m tests.attacks.trial`` holds, and their judge."""

from pathlib import Path

import pytest

from tests.attacks import actions
from tests.attacks.adapters import MOMENTS, corpus
from tests.attacks.trial import held

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
        assert attack.some <= attack.due
