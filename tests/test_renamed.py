"""Words of earlier versions are still read: in commands, declarations and records."""

import json
from pathlib import Path

import pytest

from conformance import renamed
from conformance.adapter import Support
from conformance.cli import main
from conformance.numerics.profiles import PROFILES
from conformance.records import encode, read_records
from tests.support import runs
from tests.support.commands import invoke

TEXT = "attention batch=1 heads=1 length=2 width=2 dtype=float32 values=gaussian.1#1"


@pytest.mark.parametrize(("before", "now"), renamed.COMMANDS.items())
def test_commands(before, now):
    assert now in main.commands and before not in main.commands
    assert invoke(before, "--help").stdout == invoke(now, "--help").stdout.replace(f" {now} ", f" {before} ")


def test_a_command_that_stands_in_earlier_records_runs():
    shown = invoke("repro", TEXT, "--implementation", "numpy-direct")
    assert shown.exit_code == 0 and "PASS" in shown.stdout


@pytest.mark.parametrize(("now", "before"), renamed.OPTIONS.items())
def test_options(now, before):
    (option,) = [option for option in main.commands["faults"].params if before in option.opts]
    assert option.opts == [now, before] and option.name == now.removeprefix("--")


@pytest.mark.parametrize(("before", "now"), renamed.PROFILES.items())
def test_profiles_that_are_declared(before, now):
    assert now in PROFILES and before not in PROFILES
    assert Support(profile=before) == Support(profile=now)
    support = Support(profile={"float16": f"{before}+lse", "float32": "strict"}, flushes=("float16",))
    assert support.judged_by("float16") == f"{now}+lse+flushes" and support.judged_by("float32") == "strict"


@pytest.mark.parametrize(("before", "now"), renamed.PROFILES.items())
def test_profiles_in_records(tmp_path: Path, before, now):
    entry = runs.implementation("fine", profile={"float16": now})
    item = runs.item(accuracy=runs.accuracy(0.5, dtype="float16", profile=now))
    written = runs.write(tmp_path / "now.jsonl", runs.header(implementations=[entry]), item)
    old = tmp_path / "old.jsonl"
    old.write_text(written.read_text(encoding="utf-8").replace(f'"{now}"', f'"{before}"'), encoding="utf-8")
    assert before in old.read_text(encoding="utf-8") and read_records(old) == read_records(written)


def test_fields_of_records_have_the_names_that_they_had():
    header = json.loads(encode(runs.header(["fine"], ["ATT-OUT-001"], expected={"fine": ("ATT-OUT-001",)})))
    assert header["due"] == {"fine": ["ATT-OUT-001"]}
    (explanation,) = json.loads(encode(runs.diagnosis()))["explanations"]
    assert explanation["sign"] == "values" and "symptom" not in explanation
