"""The judgement on mutants: who survives without a reason, and who was said to survive and does not, fails the session."""

import pytest

from tests import mutants
from tests.mutants import Mutant

FILE = "conformance/judging/verdict.py"


def mutant(change: str, killed: bool, function: str = "conformance.judging.verdict.judge") -> Mutant:
    return Mutant(FILE, function, change, killed)


KILLED = [mutant("", True)] * 20
ALIVE = mutant("- a  + b", False)


@pytest.mark.parametrize(
    ("found", "known", "told"),
    [
        (KILLED, {}, []),
        ([*KILLED, ALIVE], {}, ["SURVIVES, and mutants.toml has no reason: conformance.judging.verdict.judge: - a  + b"]),
        (
            [*KILLED, ALIVE],
            {"- a  + b": ""},
            ["SURVIVES, and mutants.toml has no reason: conformance.judging.verdict.judge: - a  + b"],
        ),
        ([*KILLED, ALIVE], {"- a  + b": "It is the same."}, []),
        ([*KILLED, ALIVE], {mutants.ALL: "Nothing runs it."}, []),
        (
            KILLED,
            {"- a  + b": "It is the same."},
            ["KILLED, or gone: take it out of mutants.toml: conformance.judging.verdict.judge: - a  + b"],
        ),
        (
            [*KILLED[:8], ALIVE],
            {"- a  + b": "It is the same."},
            ["conformance/judging/verdict.py: 89% of the mutants are killed, 90% must be."],
        ),
    ],
)
def test_what_is_not_as_the_file_says_is_told(found: list[Mutant], known: dict[str, str], told: list[str]) -> None:
    assert list(mutants.judged(found, {"conformance.judging.verdict.judge": known} if known else {})) == told


def test_functions_that_were_not_looked_at_are_left_alone() -> None:
    assert list(mutants.judged(KILLED, {"conformance.adapter.routes.fold": {"- a  + b": "It is the same."}})) == []


def test_functions_are_named_as_they_are_written() -> None:
    assert mutants._function("conformance.judging.verdict.x_judge__mutmut_3") == "conformance.judging.verdict.judge"
    assert mutants._function("conformance.judging.judge.xǁJudgeǁ_keep__mutmut_12") == "conformance.judging.judge.Judge._keep"
    assert mutants._change("--- a\n+++ b\n@@ -1 +1 @@\n def f():\n-    return  1\n+    return 2\n") == "- return 1  + return 2"


def test_every_survivor_has_a_reason_and_every_module_is_there() -> None:
    assert all(why for reasons in mutants.known().values() for why in reasons.values())
    assert all((mutants.ROOT / module).exists() for module in mutants.mutated())
    modules = {module.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for module in mutants.mutated()}
    assert {function for function in mutants.known() if not any(function.startswith(f"{name}.") for name in modules)} == set()


def test_an_update_keeps_reasons_and_asks_for_new_ones(tmp_path, monkeypatch) -> None:
    file = tmp_path / "mutants.toml"
    file.write_text("# What it is.\n", encoding="utf-8")
    monkeypatch.setattr(mutants, "KNOWN", file)
    mutants.write([*KILLED, ALIVE])
    assert mutants.known() == {"conformance.judging.verdict.judge": {"- a  + b": ""}}
    file.write_text(file.read_text(encoding="utf-8").replace('why = ""', 'why = "It is the same."'), encoding="utf-8")
    mutants.write([*KILLED, ALIVE, mutant("- c  + d", False)])
    assert mutants.known() == {"conformance.judging.verdict.judge": {"- a  + b": "It is the same.", "- c  + d": ""}}
    mutants.write([*KILLED, mutant("- c  + d", False)])
    assert mutants.known() == {"conformance.judging.verdict.judge": {"- c  + d": ""}}
    assert file.read_text(encoding="utf-8").startswith("# What it is.\n")
