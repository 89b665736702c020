"""The kill matrix: what is wrong is caught by the requirement that speaks of it, and what is not caught is told."""

import json
from dataclasses import replace

import numpy as np
import pytest

from conformance.evaluation import kill_tables, kills
from conformance.faults import catalogue, kinds
from conformance.faults.fault import Fault
from conformance.faults.steps import attend, compute
from conformance.judging.judge import Judge
from conformance.numerics.dtypes import DTYPES
from conformance.specification import requirements
from conformance.system.exit_codes import ExitCode
from conformance.values import materialise
from tests.support.commands import invoke

UNSCALED = Fault(
    id="unscaled",
    sentence="does not scale",
    requirements=("ATT-SCALE-001",),
    sources=(),
    compute=lambda inputs: attend(inputs, scale=lambda inputs: 1.0),
)
HARMLESS = Fault(id="harmless", sentence="does nothing", requirements=("ATT-OUT-004",), sources=(), rewrite=lambda inputs: inputs)
RAISING = replace(UNSCALED, id="raising", compute=lambda inputs: np.zeros(0)[1])


@pytest.fixture(scope="module")
def judge():
    return Judge()


def tried(judge, *faults, matrix=False):
    one_dtype = [replace(fault, dtypes=("float32",)) for fault in faults]
    pairs = [(fault, "float32") for fault in one_dtype]
    trials = kills.try_everything(pairs, judge) if matrix else [kills.try_fault(*pair, judge) for pair in pairs]
    return kills.collect(trials, one_dtype, matrix)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fault_is_killed_by_the_first_requirement_that_it_names(judge, dtype):
    kill = kills.try_fault(UNSCALED, dtype, judge).kill
    assert (kill.requirement, kill.outcome, kill.random) == ("ATT-SCALE-001", "WRONG_VALUE", False)
    assert kill.r > 100


def test_it_stops_at_the_first_kill_unless_the_whole_matrix_is_wanted(judge):
    assert len(kills.try_fault(UNSCALED, "float32", judge).kills) == 1
    (found,) = kills.try_everything([(UNSCALED, "float32")], judge)
    assert len(found.kills) > 50
    assert {kill.requirement for kill in found.kills if kill.named} == {"ATT-SCALE-001"}


def test_an_exception_is_a_kill_without_a_margin(judge):
    kill = kills.try_fault(RAISING, "float32", judge).kill
    assert (kill.outcome, kill.r) == ("ERROR", None)


def test_what_is_not_caught_or_not_by_its_own_requirements_is_not_in_order(judge):
    elsewhere = replace(UNSCALED, id="elsewhere", requirements=("ATT-OUT-009",))  # with one key the scale cancels
    found = tried(judge, UNSCALED, elsewhere, HARMLESS)
    assert not found.in_order
    assert [trial.fault for trial in found.elsewhere] == ["elsewhere"]
    assert [trial.fault for trial in found.survivors] == ["harmless"]
    assert set(found.margins()) == {"unscaled"}
    text = kill_tables.render(found)
    assert "SURVIVES" in text and "ELSEWHERE" in text
    assert "Survivors (1):\n- harmless: float32" in text
    assert tried(judge, UNSCALED).in_order


def test_equivalent_faults_must_not_be_caught(judge):
    right = replace(HARMLESS, id="same", requirements=(), equivalent="It does nothing.")
    found = tried(judge, right)
    assert found.in_order and not found.judged
    assert "It does nothing." in kill_tables.render(found)
    wrong = tried(judge, replace(UNSCALED, equivalent="Nobody looks."))
    assert not wrong.in_order and wrong.unlike


def test_the_whole_matrix_tells_which_requirements_are_idle(judge):
    found = tried(judge, UNSCALED, matrix=True)
    assert found.victims()["ATT-SCALE-001"] == ("unscaled",)
    assert "ATT-OUT-009" in found.idle()  # one key
    assert "Requirements that kill no fault: " in kill_tables.render(found)


def test_the_whole_matrix_finds_what_the_first_kill_finds(judge):
    first, whole = kills.try_fault(UNSCALED, "float16", judge), kills.try_everything([(UNSCALED, "float16")], judge)[0]
    assert (first.kill.requirement, first.kill.r) == (whole.kill.requirement, whole.kill.r)


def test_a_fault_does_not_live_on_what_it_remembers_from_another_requirement(judge):
    def forgetful(function):
        seen = []

        def call(query, key, value, **named):
            seen.append(1)
            return function(query, key, value, **named) * query.dtype.type(1.0 if len(seen) < 10 else 2.0)

        return call

    fault = Fault(id="tired", sentence="doubles late", requirements=("ATT-OUT-009",), sources=(), behaviour=forgetful)
    assert not any(kill.named for kill in kills.try_fault(fault, "float64", judge).kills)


def test_data_tell_what_the_table_tells(judge):
    found = tried(judge, UNSCALED, HARMLESS)
    document = json.loads(kill_tables.as_json(found))
    assert [trial["fault"] for trial in document["trials"]] == ["unscaled", "harmless"]
    assert document["trials"][0]["kills"][0]["requirement"] == "ATT-SCALE-001"
    assert not document["trials"][1]["kills"]


def test_processes_find_what_one_finds(judge):
    faults = kills.chosen("scale-by-width*")[:2]
    done = []
    apart = kills.run(faults, processes=1, progress=done.append)
    together = [kills.try_fault(fault, dtype, judge) for fault in faults for dtype in fault.dtypes]
    assert sum(done) == len(together)
    assert [(t.fault, t.dtype, t.kill.requirement, t.kill.r) for t in apart.trials] == [
        (t.fault, t.dtype, t.kill.requirement, t.kill.r) for t in together
    ]


def test_the_command_ends_well_where_all_are_killed_and_writes_what_it_found(tmp_path):
    result = invoke("faults", "--only", "scale-missing", "--out", str(tmp_path))
    assert result.exit_code == ExitCode.AS_EXPECTED, result.output
    assert "scale-missing" in result.output
    assert "1 faults in 4 pairs" in (tmp_path / "faults.md").read_text(encoding="utf-8")
    assert len(json.loads((tmp_path / "faults.json").read_text(encoding="utf-8"))["trials"]) == 4


def test_a_pattern_without_a_fault_is_one_sentence():
    result = invoke("faults", "--only", "no-such-*")
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "no-such-*" in result.output and "Traceback" not in result.output


def test_the_catalogue_is_sound():
    assert len(catalogue()) == sum(len(faults) for faults in kinds().values()) >= 120
    known = requirements()
    for fault in catalogue().values():
        assert fault.id == fault.id.lower() and " " not in fault.id
        assert set(fault.dtypes) <= set(DTYPES) and fault.dtypes, fault.id
        assert set(fault.requirements) <= set(known), fault.id
        assert all(known[identifier].operation == fault.operation for identifier in fault.requirements), fault.id
        assert set(fault.alike) <= set(catalogue()) - {fault.id}, fault.id
        assert not fault.sentence.endswith(".") and fault.sentence == fault.sentence.strip(), fault.id
        assert all(": " in source for source in fault.sources), fault.id


def test_likeness_is_mutual():
    for fault in catalogue().values():
        assert all(fault.id in catalogue()[other].alike for other in fault.alike), fault.id


def test_a_fault_that_a_single_case_catches_is_thin_and_the_case_is_named(judge):
    """Wrong for one seed of the values: the second problem of a requirement that has other values does not see it."""
    (problem,) = (p for p in requirements()["ATT-NUM-006"].designed() if p.dtype == "float64" and p.values.seed == 9)
    query = materialise(problem).query
    fault = replace(UNSCALED, id="on-a-thread", requirements=("ATT-NUM-006",), dtypes=("float64",))
    wrong = UNSCALED.compute
    fault = replace(fault, compute=lambda inputs: (wrong if np.array_equal(inputs.query, query) else compute)(inputs))
    found = kills.collect([kills.try_fault(fault, "float64", judge, thin=True)], [fault], False, thin=True)
    (trial,) = found.thin
    assert (trial.cases, trial.only) == (1, f"ATT-NUM-006/{problem.digest}")
    assert f"on-a-thread  float64  {trial.only}" in kill_tables.render(found)
    assert "Thin, that is, caught by a single case: 1 of the pairs." in kill_tables.render(found)


def test_what_two_cases_catch_is_not_thin_and_nothing_is_said_where_none_was_looked_for(judge):
    trial = kills.try_fault(UNSCALED, "float32", judge, thin=True)
    assert trial.cases >= kills.ENOUGH and not trial.thin and not trial.only
    assert "Thin" not in kill_tables.render(tried(judge, UNSCALED))


def test_no_fault_of_sequences_or_memory_hangs_by_a_thread(judge):
    found = [
        kills.try_fault(fault, dtype, judge, thin=True)
        for kind in ("first_calls", "kept_answers", "callers_memory")
        for fault in kinds()[kind][::3]
        if not fault.equivalent
        for dtype in fault.dtypes
    ]
    assert found and not [(trial.fault, trial.dtype) for trial in found if trial.thin]
