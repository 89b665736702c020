"""Encodings whose frequencies are not the paper's are judged by their own, and are not asked for what was frozen with others."""

import numpy as np
import pytest
from conformance.implementations.numpy_ import sinusoidal

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.declarations import unread
from conformance.checks.items import Effort, ItemRun
from conformance.errors import ProblemError, Unsupported
from conformance.expectations import no_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.specification import requirements
from conformance.values.golden import load_cases
from tests import fake_conventions as fakes

OPERATION = "sinusoidal_encoding"
TEXT = "sinusoidal_encoding length=11 width=6 dtype=float32"


def by_parameter(length, d_model, *, dtype, frequencies="d/2-1", arrangement="interleaved"):
    """Has both kinds of frequencies, and by default those of tensor2tensor."""
    if frequencies == "d":
        return sinusoidal(length, d_model, dtype=dtype, arrangement=arrangement)
    halves = fakes.tensor2tensor(length, d_model, dtype=dtype)
    pairs = np.stack([halves[:, : d_model // 2], halves[:, d_model // 2 :]], axis=-1).reshape(length, d_model)
    return pairs if arrangement == "interleaved" else halves


def subject(function) -> Subject:
    return Subject(Implementation(function.__name__, function, Support(operation=OPERATION), registry.frameworks()["numpy"]))


@pytest.mark.parametrize("function", [fakes.tensor2tensor, by_parameter, sinusoidal], ids=lambda function: function.__name__)
@pytest.mark.parametrize("requirement", ["ATT-POS-001", "ATT-POS-004", "ATT-POS-014", "ATT-POS-016"])
def test_each_is_judged_by_the_frequencies_that_it_has(function, requirement):
    run = ItemRun(
        requirements()[requirement], subject(function), Judge(), no_expectations().for_("any"), Effort(0, free=False, seed=1)
    )
    assert run.run().item.outcome is Outcome.PASS


def test_whoever_has_one_kind_is_not_asked_for_the_other():
    for function, other in ((fakes.tensor2tensor, "d"), (fakes.always_float64, "d/2-1")):
        asked = subject(function)
        with pytest.raises(Unsupported, match=f"frequencies {other}"):
            asked.route(parse(f"{TEXT} frequencies={other}"))


def test_golden_cases_were_frozen_with_the_frequencies_of_the_paper():
    problem = next(case.problem for case in load_cases() if case.problem.operation == OPERATION and case.problem.batch == 0)
    with pytest.raises(Unsupported, match="frequencies d"):
        Judge().values(subject(fakes.tensor2tensor), problem.but(arrangement="concatenated"))
    assert Judge().values(subject(by_parameter), problem).verdict.outcome is Outcome.PASS


def test_a_parameter_for_them_is_known():
    assert unread(subject(by_parameter).implementation) == ()


def test_the_text_says_them_where_they_are_asked_for():
    problem = parse(f"{TEXT} arrangement=concatenated frequencies=d/2-1")
    assert (problem.frequencies, parse(problem.text)) == ("d/2-1", problem)
    assert parse(TEXT).text == TEXT
    with pytest.raises(ProblemError, match="frequencies='d/2' is not one of default, d, d/2-1"):
        parse(f"{TEXT} frequencies=d/2")


def test_those_of_the_paper_are_not_said_so_that_cases_keep_their_identity():
    assert subject(sinusoidal).resolve(parse(TEXT)).text == f"{TEXT} arrangement=interleaved"
