"""A part of the kill matrix, small enough for every run of the tests; ``nox -s faults`` runs the whole of it."""

from dataclasses import replace

import pytest

from conformance.evaluation import kills
from conformance.faults import catalogue
from conformance.judging.judge import Judge
from conformance.specification import requirements
from conformance.specification.requirement import nothing

EVERY = 17  # no multiple of the number of dtypes, so that each dtype has its turn
PAIRS = [(fault, dtype) for fault in catalogue().values() if not fault.equivalent for dtype in fault.dtypes]
# Those whose problems depend on the implementation alone are tested in test_own_sizes.py.
TESTING = [key for key, one in requirements().items() if one.designed is not nothing]


@pytest.fixture(scope="module")
def judge():
    return Judge()


@pytest.mark.parametrize("number", range(2))
def test_no_fault_of_a_sample_survives_or_is_caught_by_others_only(judge, number):
    sample = PAIRS[number :: 2 * EVERY]
    trials = [kills.try_fault(fault, dtype, judge) for fault, dtype in sample]
    faults = [replace(fault, dtypes=(dtype,)) for fault, dtype in sample]
    found = kills.collect(trials, faults, False)
    assert not found.survivors
    assert not found.elsewhere


@pytest.mark.parametrize("identifier", TESTING)
def test_each_requirement_kills_a_fault_that_names_it(judge, identifier):
    naming = [(replace(fault, requirements=(identifier,)), dtype) for fault, dtype in PAIRS if identifier in fault.requirements]
    assert any(kills.try_fault(fault, dtype, judge).kill for fault, dtype in naming), f"{len(naming)} faults name it"
