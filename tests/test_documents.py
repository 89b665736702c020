"""The suite shows what is wrong or limited in the tutorials' systems: requirements that fail as known, and conventions."""

from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from conformance.adapter import Implementation, registry
from conformance.checks.conventions import observe_convention
from conformance.checks.items import Effort, ItemResult, ItemRun
from conformance.expectations import builtin_expectations, no_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.specification import conventions, requirements

FIXED = Effort(examples=0, free=False, seed=1)  # golden and designed cases only

SHOWN = [
    # √d_k taken in float32
    ("document-000-multi-head", "ATT-HEAD-013", "float64", Outcome.WRONG_VALUE),
    ("document-000-multi-head", "ATT-HEAD-013", "float32", Outcome.PASS),
    # finite fills: float16 cannot hold them, and scores may be lower
    ("document-000-multi-head", "ATT-HEAD-023", "float16", Outcome.ERROR),
    ("document-000-multi-head", "ATT-HEAD-033", "float32", Outcome.WRONG_VALUE),
    ("document-001-attention", "ATT-HEAD-023", "float16", Outcome.ERROR),
    ("document-001-attention", "ATT-HEAD-033", "float32", Outcome.WRONG_VALUE),
    ("document-003-multi-head", "ATT-HEAD-022", "float16", Outcome.ERROR),
    ("document-003-multi-head", "ATT-HEAD-024", "float16", Outcome.ERROR),
    ("document-003-multi-head", "ATT-HEAD-033", "float64", Outcome.WRONG_VALUE),
    ("document-003-multi-head", "ATT-HEAD-013", "float64", Outcome.PASS),
    # the root of the embedding in place of that of a head
    ("document-001-attention", "ATT-HEAD-018", "float32", Outcome.WRONG_VALUE),
    ("document-001-attention", "ATT-HEAD-019", "float16", Outcome.WRONG_VALUE),
    # projections that are not applied
    ("document-001-as-printed", "ATT-HEAD-013", "float32", Outcome.WRONG_VALUE),
    # exp without the maximum, and a float64 scalar
    ("document-003-numpy", "ATT-HEAD-032", "float64", Outcome.NONFINITE),
    ("document-003-numpy", "ATT-HEAD-026", "float32", Outcome.WRONG_DTYPE),
    ("document-003-numpy", "ATT-HEAD-013", "float64", Outcome.PASS),
    # a table in float32, of 5000 rows
    ("document-000-positional", "ATT-POS-001", "float64", Outcome.WRONG_VALUE),
    ("document-000-positional", "ATT-POS-001", "float32", Outcome.PASS),
    ("document-000-positional", "ATT-POS-012", "float32", Outcome.ERROR),
]

ANSWERS = {
    "document-000-multi-head": {"CON-EMPTY-ROW": "mean", "CON-NAN-BEHIND-MASK-K": "contained", "CON-POLARITY": "true-attends"},
    "document-001-as-printed": {"CON-EMPTY-ROW": "mean", "CON-POLARITY": "true-attends", "CON-WIDTH-REFUSED": "refused"},
    "document-001-attention": {"CON-EMPTY-ROW": "mean", "CON-POLARITY": "true-attends", "CON-WIDTH-REFUSED": "refused"},
    "document-003-multi-head": {"CON-EMPTY-ROW": "mean", "CON-NAN-BEHIND-MASK-V": "leaks", "CON-ALIGNMENT": None},
    "document-003-numpy": {"CON-EMPTY-ROW": None, "CON-POLARITY": None},
    "document-000-positional": {"CON-ODD-WIDTH": None, "CON-SINUSOID-FREQUENCIES": "d", "CON-BEYOND-MAX-LEN": "refused"},
    "torch-mha": {"CON-EMPTY-ROW": "zeros", "CON-POLARITY": "true-ignores", "CON-ALIGNMENT": "top-left"},
    "torch-mha-weights": {"CON-EMPTY-ROW": "nan", "CON-POLARITY": "true-ignores", "CON-NAN-BEHIND-MASK-K": "leaks"},
    "numpy-multi-head": {"CON-EMPTY-ROW": "zeros", "CON-POLARITY": "true-attends", "CON-ALIGNMENT": "top-left"},
}


def usable(name: str) -> Implementation:
    implementation = registry.builtin()[name]
    reason = implementation.missing()
    if reason:
        pytest.skip(reason)
    return implementation


@cache
def judge() -> Judge:
    return Judge()


@cache
def judged(name: str, requirement: str, known: bool) -> ItemResult:
    """The fixed cases of a requirement, with or without what is known to fail."""
    expectations = builtin_expectations(requirements()) if known else no_expectations()
    return ItemRun(requirements()[requirement], Subject(usable(name)), judge(), expectations.for_(name), FIXED).run()


@pytest.mark.parametrize(("name", "requirement", "dtype", "outcome"), SHOWN)
def test_what_is_wrong_shows(name, requirement, dtype, outcome):
    found = {case.outcome for case in judged(name, requirement, False).cases if case.dtype == dtype}
    assert outcome in found
    assert outcome is not Outcome.PASS or found == {Outcome.PASS}


@pytest.mark.parametrize(("name", "requirement"), sorted({row[:2] for row in SHOWN}))
def test_what_shows_is_known_with_its_reason(name, requirement):
    item = judged(name, requirement, True).item
    assert item.status == "expected", item.reason
    assert item.outcome is Outcome.PASS or item.reason


@pytest.mark.parametrize("name", ANSWERS)
def test_conventions_are_observed_as_declared(name):
    subject = Subject(usable(name))
    expectations = builtin_expectations(requirements()).for_(name)
    asked = [c.id for c in conventions().values() if subject.implementation.operation in c.operations]
    records = {identifier: observe_convention(subject, identifier, expectations) for identifier in asked}
    first = {identifier: next(iter(records[identifier].where), None) for identifier in ANSWERS[name]}
    assert first == ANSWERS[name]
    for record in records.values():
        assert record.status == "expected", record.message
        assert record.agrees is True or record.observed is None or record.reason, record.message


def test_what_is_declared_is_asked_of_the_operation():
    for implementation in registry.builtin().values():
        for identifier in implementation.support.conventions:
            assert implementation.operation in conventions()[identifier].operations, f"{implementation.name}: {identifier}"


def test_every_known_failure_was_reviewed():
    for file in Path(str(files("conformance.implementations") / "expectations")).glob("*.toml"):
        assert "to be reviewed" not in file.read_text(encoding="utf-8"), file.name


def test_something_is_shown_of_every_document():
    assert {row[0] for row in SHOWN} == {name for name in registry.builtin() if name.startswith("document-")}
