"""A convention excuses no answer but those that interfaces may have, the same everywhere; correct code stays green."""

import itertools
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import numpy as np
import pytest
from conformance.implementations.numpy_ import direct

from conformance import reports
from conformance.adapter import Implementation, Support, registry
from conformance.checks.conventions import observe_convention
from conformance.ci.annotations import annotations
from conformance.ci.badge import badge
from conformance.errors import UsageError
from conformance.expectations import load, no_expectations
from conformance.expectations.update import update
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.page import make_page
from conformance.problem import ARRANGEMENTS, FREQUENCIES, AttentionProblem, ProblemError, parse
from conformance.records import ConventionResult, Run, read_records
from conformance.specification import conventions, requirements
from conformance.specification.asking import COARSE, meant_by
from conformance.values import materialise
from tests import fake_conventions as fakes
from tests import hostile
from tests.support import runs
from tests.support.commands import invoke, run_command

POSITIONS, HEADS = "sinusoidal_encoding", "multi_head_attention"


def implementation(function: Callable[..., object], operation: str = "attention") -> Implementation:
    return registry.resolve(f"{fakes.FILE}:{function.__name__}", operation=operation)


def observed(function: Callable[..., object], identifier: str, operation: str = "attention") -> ConventionResult:
    subject = Subject(implementation(function, operation))
    return observe_convention(subject, identifier, no_expectations().for_(function.__name__))


@pytest.mark.parametrize(
    ("function", "identifier", "answer", "place"),
    [
        (fakes.neither_alignment, "CON-ALIGNMENT", "other", "in each of 8 places"),
        (fakes.causal_forgets_one_query, "CON-ALIGNMENT", "mixed", "'bottom-right' for 1 query and 13 keys"),
        (fakes.nan_below_zero, "CON-NEGATIVE-SCALE", "nan", "in each of"),
        (
            fakes.nan_below_zero_if_causal,
            "CON-NEGATIVE-SCALE",
            "mixed",
            "'nan' for causal with the scale -0.5; 'ordinary' in the other",
        ),
        (fakes.zero_is_not_given, "CON-ZERO-SCALE", "default", "1/√d is used instead"),
        (fakes.refuses_zero, "CON-ZERO-SCALE", "refused", "the scale must not be 0"),
        (fakes.noise_in_fully_masked_rows, "CON-EMPTY-ROW", "unstable", "something else in each call"),
        (fakes.faint_noise_in_fully_masked_rows, "CON-EMPTY-ROW", "unstable", "something else in each call"),
        (fakes.first_value_in_fully_masked_rows, "CON-EMPTY-ROW", "other", "none of these"),
        (fakes.fully_masked_rows_by_dtype, "CON-EMPTY-ROW", "mixed", "'nan' for float16"),
        (fakes.fully_masked_rows_of_one_array, "CON-EMPTY-ROW", "mixed", "'nan' for one array for query, key and value"),
        (fakes.zero_where_nan_is_hidden, "CON-NAN-BEHIND-MASK-K", "other", "finite"),
        (fakes.polarity_by_form, "CON-POLARITY", "mixed", "'true-ignores' for a mask of form b11k"),
        (fakes.even_heads, "CON-EMPTY-ROW", "mixed", "'nan' for 8 heads, for 8 heads with biases"),
        (fakes.wraps_around, "CON-BEYOND-MAX-LEN", "other", "length=10000"),
        (fakes.forgets_the_last_sine, "CON-ODD-WIDTH", "other", "length=4001 width=7"),
        (fakes.halves_of_wide_tables, "CON-SINUSOID-ARRANGEMENT", "mixed", "'concatenated' for 5 positions of 512 columns"),
        (fakes.other_frequencies, "CON-SINUSOID-FREQUENCIES", "other", "none of these"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_another_answer_is_unexpected_and_says_where(function, identifier, answer, place):
    operation = HEADS if function is fakes.even_heads else POSITIONS if "dtype" in function.__code__.co_varnames else "attention"
    record = observed(function, identifier, operation)
    assert (record.observed, record.status) == (answer, "unexpected")
    assert place in record.message
    assert f'convention = "{identifier}" and answer = "{answer}"' in record.message
    assert record.where


@pytest.mark.parametrize(
    ("function", "operation", "answers"),
    [
        (fakes.doubled, "attention", {"CON-EMPTY-ROW": "zeros", "CON-NEGATIVE-SCALE": "ordinary", "CON-ALIGNMENT": "top-left"}),
        (fakes.half_only, "attention", {"CON-ALIGNMENT": "bottom-right", "CON-POLARITY": "true-ignores"}),
        (fakes.mean_of_what_causal_leaves, "attention", {"CON-EMPTY-ROW": "mean", "CON-ALIGNMENT": "top-left"}),
        (fakes.one_head_only, HEADS, {"CON-EMPTY-ROW": "nan", "CON-POLARITY": "true-attends"}),
        (fakes.always_float64, POSITIONS, {"CON-SINUSOID-ARRANGEMENT": "interleaved", "CON-SINUSOID-FREQUENCIES": "d"}),
        (fakes.in_bfloat16, POSITIONS, {"CON-SINUSOID-ARRANGEMENT": "interleaved", "CON-BEYOND-MAX-LEN": "extends"}),
        (
            fakes.tensor2tensor,
            POSITIONS,
            {"CON-SINUSOID-ARRANGEMENT": "concatenated", "CON-SINUSOID-FREQUENCIES": "d/2-1", "CON-ODD-WIDTH": "zero-padded"},
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)  # fmt: skip
def test_correct_code_has_the_answers_that_interfaces_may_have(function, operation, answers):
    asked = [identifier for identifier, question in conventions().items() if operation in question.operations]
    records = {identifier: observed(function, identifier, operation) for identifier in asked}
    assert [record.message for record in records.values() if record.status == "unexpected"] == []
    assert {identifier: records[identifier].observed for identifier in answers} == answers


@pytest.mark.parametrize(
    "identifier", ["CON-ZERO-SCALE", "CON-NEGATIVE-SCALE", "CON-SINUSOID-ARRANGEMENT", "CON-SINUSOID-FREQUENCIES"]
)
def test_meanings_are_farther_apart_than_what_is_taken_for_one(identifier):
    """In every place; else the first of them would be read off an output of the second."""
    (question,) = conventions()[identifier].questions.values()
    (base,) = question.problems()
    for problem in {base, *(place.change(base) for place in question.places)}:
        if isinstance(problem, AttentionProblem):
            meanings = [meant_by(problem), meant_by(problem.but(scale=None))]
        else:
            frequencies = FREQUENCIES if identifier == "CON-SINUSOID-FREQUENCIES" else FREQUENCIES[:1]
            names = itertools.product(ARRANGEMENTS, frequencies)
            meanings = [meant_by(problem.but(batch=0, arrangement=name, frequencies=other)) for name, other in names]
        for first, second in itertools.combinations(meanings, 2):
            assert np.abs(first - second).max() > 4 * COARSE * max(np.abs(first).max(), np.abs(second).max()), problem.text


def run(function: Callable[..., object], folder: Path, *options: str) -> tuple[CompletedProcess[str], Run]:
    """A run of the questions alone."""
    completed = run_command(
        "run", "--implementation", f"{fakes.FILE}:{function.__name__}", "--tier", "quick", "--no-timing", "-n", "0",
        "-k", "CON", "--reports", str(folder), *options,
    )  # fmt: skip
    return completed, read_records(folder / "records.jsonl")


def stated(folder: Path, convention: str, answer: str) -> tuple[str, str]:
    path = folder / "known.toml"
    path.write_text(f'[[expected]]\nconvention = "{convention}"\nanswer = "{answer}"\nreason = "as was once decided"\n')
    return "--expectations", str(path)


def test_a_run_fails_by_one_count_wherever_it_is_told(tmp_path):
    completed, recorded = run(fakes.neither_alignment, tmp_path)
    assert completed.returncode == recorded.exit_code == 1
    assert recorded.footers[0].unexpected == len(recorded.unexpected_conventions) == 1
    assert "1 convention is not as expected" in completed.stdout
    name = f"{fakes.FILE}:neither_alignment"
    assert f"UNEXPECTED CON-ALIGNMENT on {name}: observed other" in completed.stdout
    assert "CON-ALIGNMENT on" in (tmp_path / "summary.md").read_text()
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert suite.get("failures") == "1"
    assert 'class="answer differs' in (tmp_path / "report.html").read_text()
    assert [line.startswith("::error title=CON-ALIGNMENT") for line in annotations(recorded, tmp_path, tmp_path)] == [True]


def test_an_answer_that_is_stated_is_known(tmp_path):
    completed, recorded = run(fakes.neither_alignment, tmp_path, *stated(tmp_path, "CON-ALIGNMENT", "other"))
    assert completed.returncode == recorded.exit_code == recorded.footers[0].unexpected == 0, completed.stdout
    (record,) = [record for record in recorded.conventions if record.id == "CON-ALIGNMENT"]
    assert (record.observed, record.status, record.reason) == ("other", "expected", "as was once decided")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.find("testcase[@name='CON-ALIGNMENT']/skipped") is not None) == ("0", True)


def test_one_that_dies_of_a_question_has_an_answer_that_can_be_stated(tmp_path):
    completed = run_command(
        "run", "--implementation", f"{hostile.FILE}:dying_of_masks", "--tier", "quick", "--no-timing", "-n", "1",
        "-k", "CON-POLARITY", "--reports", str(tmp_path), *stated(tmp_path, "CON-POLARITY", "crashes"),
    )  # fmt: skip
    (record,) = read_records(tmp_path / "records.jsonl").conventions
    assert (record.observed, record.status, record.reason) == ("crashes", "expected", "as was once decided")
    assert "0 unexpected" in completed.stderr


@pytest.mark.parametrize(
    ("answer", "colour"), [({}, "brightgreen"), ({"status": "unexpected"}, "red"), ({"reason": "known"}, "yellow")]
)
def test_a_badge_is_green_where_no_answer_is_wrong(tmp_path, answer, colour):
    told = runs.convention("fine", observed="other", declared=None, agrees=None, **answer)
    recorded = runs.run(tmp_path, runs.header(["fine"]), runs.item(), told)
    assert badge(recorded, "fine")["color"] == colour


def test_the_page_tells_known_answers_from_unexpected_ones_and_says_where(tmp_path):
    mixed = {
        "observed": "mixed",
        "declared": None,
        "agrees": None,
        "where": {"nan": ("8 heads",), "zeros": ("float32", "1 head")},
    }
    known = runs.convention("fine", reason="an old path", message="not the same everywhere", **mixed)
    recorded = runs.run(tmp_path, runs.header(["fine"]), runs.item(), known)
    assert 'class="answer known" title="not the same everywhere (nan: 8 heads; zeros: float32, 1 head) an old path"' in make_page(
        recorded
    )
    assert "(mixed)k" in reports.conventions_tables(recorded)[0].rows[0]


@pytest.mark.parametrize(
    ("convention", "answer", "told"),
    [
        (
            "CON-ALIGNMENT",
            "nan",
            "The answer is 'other', where 'nan' is expected (as was once decided): correct or remove entry 1",
        ),
        ("CON-ZERO-SCALE", "default", "The question is not supported, where 'default' is expected"),
        ("CON-EMPTY-ROW", "other", "The answer is 'zeros', where 'other' is expected"),
    ],
)
def test_an_answer_that_is_stated_and_not_given_is_unexpected(tmp_path, convention, answer, told):
    known = load(stated(tmp_path, convention, answer)[1], requirements())
    subject = Subject(implementation(fakes.neither_alignment))
    record = observe_convention(subject, convention, known.for_("neither"))
    assert record.status == "unexpected"
    assert told in record.reason


@pytest.mark.parametrize(
    ("convention", "answer", "told"),
    [
        ("CON-ALINGMENT", "other", "there is no convention 'CON-ALINGMENT'"),
        ("CON-ALIGNMENT", "zeros", "'zeros' is no answer to CON-ALIGNMENT; use one of top-left"),
        ("CON-ALIGNMENT", "top-left", "'top-left' is an answer to CON-ALIGNMENT that interfaces may have"),
        ("CON-ODD-WIDTH", "other", "CON-ODD-WIDTH is about sinusoidal_encoding, and "),
    ],
)
def test_what_cannot_be_stated_is_refused(tmp_path, convention, answer, told):
    result = invoke(
        "run", "--implementation", f"{fakes.FILE}:neither_alignment", "--tier", "quick", "-n", "0", "-k", "CON",
        *stated(tmp_path, convention, answer),
    )  # fmt: skip
    assert result.exit_code == 2
    assert f"known.toml, entry 1: {told}" in " ".join(result.output.split())


def test_two_answers_to_one_question_are_refused(tmp_path):
    stated(tmp_path, "CON-ALIGNMENT", "other")
    path = tmp_path / "known.toml"
    path.write_text(path.read_text() + path.read_text().replace("other", "nan"))
    with pytest.raises(UsageError, match="entries 1 and 2 both state an answer to CON-ALIGNMENT"):
        load(path, requirements())


def test_updated_expectations_settle_the_run(tmp_path):
    def recorded(answer):
        status = "expected" if answer == "top-left" else "unexpected"
        told = runs.convention("fine", "CON-ALIGNMENT", declared=None, observed=answer, agrees=None, status=status)
        return runs.run(tmp_path, runs.header(["fine"]), runs.item(), told)

    wrong = recorded("other")
    (path,) = update(wrong, tmp_path / "known")
    assert 'convention = "CON-ALIGNMENT"\nanswer = "other"\nreason = "to be reviewed"' in path.read_text()
    assert load(path, requirements()).for_("fine").judge_answer("CON-ALIGNMENT", "other", sound=False).expected
    assert update(wrong, tmp_path / "known") == []
    assert update(recorded("nan"), tmp_path / "known") == [path]
    assert 'answer = "nan"' in path.read_text()
    assert "other" not in path.read_text()
    assert update(recorded("top-left"), tmp_path / "known") == [path]
    assert "CON-ALIGNMENT" not in path.read_text()


def test_what_is_declared_excuses_no_answer_that_interfaces_should_not_have():
    function = fakes.neither_alignment
    declared = Support(conventions={"CON-ALIGNMENT": "other"})
    subject = Subject(Implementation("declared", function, declared, registry.frameworks()["numpy"]))
    record = observe_convention(subject, "CON-ALIGNMENT", no_expectations().for_("declared"))
    assert (record.agrees, record.status) == (True, "unexpected")


def test_a_triangle_that_lies_in_several_ways_is_not_used():
    """The problem is asked by mask instead, where it lies as it should."""
    subject = Subject(implementation(fakes.causal_forgets_one_query))
    assert subject.convention("CON-ALIGNMENT") == "mixed"
    problem = parse("attention batch=2 heads=3 length=1/13 width=8 dtype=float32 values=gaussian.1#1 causal=top-left")
    assert str(subject.route(problem)) == "causal=mask"
    assert Judge().values(subject, problem).verdict.outcome is Outcome.PASS


def test_masks_that_mean_several_things_are_judged_by_the_first_place():
    subject = Subject(implementation(fakes.polarity_by_form))
    assert (subject.convention("CON-POLARITY"), subject.observe("CON-POLARITY")) == ("true-attends", "mixed")


def test_where_each_shape_costs_a_compilation_a_few_places_stand_for_all():
    asked = {}
    for compiles in (False, True):
        seen = set()

        def notes(query, key, value, *, mask=None, causal=False, scale=None, seen=seen):
            seen.add((query.dtype.name, query.shape, key.shape))
            return direct(query, key, value, mask=mask, causal=causal, scale=scale)

        subject = Subject(Implementation("notes", notes, Support(compiles=compiles), registry.frameworks()["numpy"]))
        assert subject.observe("CON-EMPTY-ROW") == "zeros"
        asked[compiles] = seen
    assert asked[True] < asked[False]
    assert len(asked[True]) == 3


def test_what_is_one_array_for_the_suite_is_one_array_for_the_implementation():
    seen = []

    def looks(query, key, value):
        seen.append(query is key is value)
        return direct(query, key, value)

    for axes in ("bhld", "blhd"):
        subject = Subject(Implementation("looks", looks, Support(axes=axes), registry.frameworks()["numpy"]))
        for layout, transformations in itertools.product(
            ("contiguous", "transposed", "strided", "expanded", "mixed"), ("", " edits=one-tensor.1#0")
        ):
            text = "attention batch=2 heads=3 length=5 width=8 dtype=float32 values=gaussian.1#1"
            problem = parse(f"{text}{'' if layout == 'contiguous' else f' layout={layout}'}{transformations}")
            subject.prepare(materialise(problem), subject.route(problem)).run()
            assert seen.pop() == (bool(transformations) and layout != "mixed"), problem.text


def test_inputs_of_several_shapes_are_no_one_array():
    with pytest.raises(ProblemError, match=r"^The transformation one-tensor needs query, key and value of one shape, not .*\.$"):
        materialise(parse("attention batch=2 heads=3 length=5/7 width=8 dtype=float32 values=gaussian.1#1 edits=one-tensor.1#0"))
