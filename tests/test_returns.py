"""``Support.returns``: what is returned beside the output is judged by its name, ignored as declared, or told in a sentence."""

from collections import Counter

import pytest

from conformance.adapter import Support, registry
from conformance.adapter.declarations import demand_sense, unknown_words
from conformance.adapter.narrowing import narrowed
from conformance.commands.describe import describe
from conformance.commands.reproduce import reproduce
from conformance.errors import UsageError
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.records import read_records
from conformance.system.exit_codes import ExitCode
from tests.fakes import named as fake
from tests.returning import named
from tests.support.commands import invoke, run_command
from tests.support.items import run_item

PLAIN = "attention batch=2 heads=4/2 length=5/7 width=8 dtype={} values=spread.1#1"
MASKED = f"{PLAIN} mask=random.1:b1qk#1"
LSE, WEIGHTS = "ATT-OUT-049", "ATT-OUT-053"


def of(function: str):
    return registry.resolve(named(function))


def verdict_of(function: str, text: str, dtype: str = "float32"):
    return Judge().values(Subject(of(function)), parse(text.format(dtype))).verdict


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", ["all_three", "rounded", "in_another_order", "base_2", "length_first"])
def test_what_is_right_passes_in_every_dtype_that_it_may_have(function, dtype):
    assert verdict_of(function, MASKED, dtype).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("function", "text", "output"),
    [
        ("unscaled_lse", PLAIN, "lse"),
        ("base_2_undeclared", PLAIN, "lse"),
        ("weights_before_masking", MASKED, "weights"),
    ],
)
def test_a_problem_fails_by_the_output_that_is_wrong(function, text, output):
    found = verdict_of(function, text)
    assert (found.outcome, found.output) == (Outcome.WRONG_VALUE, output)
    assert found.r > 1e3
    assert found.message.startswith(f"The {output} at {found.index}: got ")


def test_where_all_are_wrong_the_output_counts_and_the_others_are_told():
    problem, implementation = parse(PLAIN.format("float32")), of("all_three")
    changed = Judge().run(Subject(implementation), problem, Subject(implementation).route(problem)).outputs
    found = Judge().verdict({name: 2 * array for name, array in changed.items()}, Subject(implementation), problem, "strict")
    assert found.output == "output"
    assert "The lse is WRONG_VALUE too, r = " in found.message and "The weights are WRONG_VALUE too" in found.message


def test_the_r_of_a_pass_is_the_largest_of_its_outputs():
    problem, subject = parse(PLAIN.format("bfloat16")), Subject(of("all_three"))
    run = Judge().run(subject, problem, subject.route(problem))
    each = {n: Judge().verdict_of(n, a, subject, problem, "inner32").r for n, a in run.outputs.items()}
    assert len(set(each.values())) == 3
    assert Judge().verdict(run.outputs, subject, problem, "inner32").r == max(each.values())


@pytest.mark.parametrize("requirement", [LSE, "ATT-OUT-050", "ATT-OUT-051", "ATT-OUT-052", WEIGHTS, "ATT-OUT-054", "ATT-OUT-055"])
def test_the_requirements_hold_of_what_is_right(requirement):
    item = run_item(requirement, of("all_three")).item
    assert item.outcome is Outcome.PASS
    assert item.counts.designed > 10


def test_an_output_of_its_own_is_judged_by_what_it_is_alone():
    """A wrong output fails no requirement of the log-sum-exp; a wrong log-sum-exp fails no requirement of the weights."""
    assert run_item("ATT-OUT-055", of("weights_before_masking")).item.outcome is Outcome.WRONG_VALUE
    assert run_item("ATT-OUT-051", of("unscaled_lse")).item.outcome is Outcome.WRONG_VALUE
    assert run_item(LSE, of("all_three")).item.outcome is Outcome.PASS


def test_another_answer_to_the_same_call_is_seen_in_what_is_beside_the_output():
    item = run_item("ATT-OUT-026", of("noisy_lse")).item
    assert item.outcome is Outcome.NONDETERMINISTIC


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("with_an_axis_more", "The lse has shape (2, 3, 13, 1), expected (2, 3, 13). It has an axis of one element more"),
        ("length_before_heads", "expected (2, 3, 13). Length and heads look exchanged: return (batch, heads, query length)."),
        ("averaged_weights", "The heads look averaged: return the weights of each"),
        ("in_float64", "The lse is float64, expected bfloat16 or float32."),
        ("three_for_two", "The result has 3 parts, where Support.returns names 2: output, lse."),
        ("alone", "The result is of type ndarray, where Support.returns names the 2 parts output, lse."),
        ("without_weights", "The weights are of type NoneType, which is no array of numpy"),
        ("undeclared", 'Support.returns names the parts of a result, such as returns=("output", "-").'),
    ],
)
def test_what_is_returned_otherwise_is_told_in_a_sentence(function, told):
    result = invoke("smoke", named(function))
    assert result.exit_code == ExitCode.UNEXPECTED
    assert told in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("returns", "told"),
    [
        (
            ("output", "logits"),
            "Support.returns names 'logits', which the suite does not know: it knows output, lse, weights, -.",
        ),
        (("lse", "weights"), "Support.returns names no output: say which part of the result it is"),
        (("output", "lse", "lse"), "Support.returns names 'lse' more than once"),
        ((), "Support.returns names no output"),
        ("output", "Support.returns of"),
    ],
)
def test_words_that_mean_nothing_are_refused(tmp_path, returns, told):
    file = tmp_path / "mine.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def attention(query, key, value): ...\n"
        f"attention.conformance = Support(returns={returns!r})\n"
    )
    with pytest.raises(UsageError) as refused:
        demand_sense(registry.resolve(f"{file}:attention"))
    assert told in str(refused.value)


def test_an_encoding_returns_nothing_else():
    told = unknown_words(Support(operation="sinusoidal_encoding", returns=("output", "lse")))
    assert told == ["Support.returns names 'lse', which the suite does not know: it knows output, -."]


def test_the_command_line_says_it_too():
    ended = invoke("smoke", named("undeclared"), "--returns", "output,lse")
    assert ended.exit_code == ExitCode.AS_EXPECTED, ended.stdout
    implementation = registry.resolve(named("undeclared"), returns="output,-")
    assert implementation.options == ("--returns=output,-",)
    assert narrowed(implementation) == ("1 further part of the result not judged",)


def test_describe_says_what_is_returned_and_what_is_observed_of_it():
    text = describe(of("base_2"))
    assert "returns     output, lse" in text
    assert "CON-LSE-BASE" in text and "base-2" in text and "plus-infinity" in text
    assert "CON-LSE" not in describe(registry.resolve(fake("correct")))


@pytest.mark.parametrize(
    ("function", "convention", "answer"),
    [
        ("all_three", "CON-LSE-BASE", "natural"),
        ("base_2", "CON-LSE-BASE", "base-2"),
        ("unscaled_lse", "CON-LSE-BASE", "unscaled"),
        ("all_three", "CON-LSE-EMPTY-ROW", "minus-infinity"),
        ("base_2", "CON-LSE-EMPTY-ROW", "plus-infinity"),
        ("all_three", "CON-WEIGHTS-EMPTY-ROW", "zeros"),
        ("weights_before_masking", "CON-WEIGHTS-EMPTY-ROW", "shares"),
    ],
)
def test_conventions_of_the_log_sum_exp_are_observed(function, convention, answer):
    assert Subject(of(function)).observe(convention) == answer


def test_of_who_returns_the_output_alone_nothing_more_is_asked():
    assert Subject(registry.resolve(fake("correct"))).observation("CON-LSE-BASE") is None


@pytest.mark.parametrize(("check", "column"), [("values", "query"), ("lse", "query")])
def test_a_reproduction_shows_the_row_of_the_output_that_is_wrong(check, column):
    shown = reproduce(PLAIN.format("float32"), of("unscaled_lse"), check)
    assert "of       lse" in shown.report
    assert column in shown.report and "channel" not in shown.report


def test_an_output_that_is_not_returned_cannot_be_checked():
    with pytest.raises(UsageError, match="does not offer an output called weights"):
        reproduce(PLAIN.format("float32"), of("unscaled_lse"), "weights")


@pytest.mark.parametrize(
    ("function", "wrong"),
    [("all_three", Counter()), ("unscaled_lse", Counter(lse=7))],
)
def test_a_run_says_which_output_is_wrong(tmp_path, function, wrong):
    selected = "ATT-OUT-021 or ATT-OUT-049 or CON-LSE"
    words = ("run", "--tier", "quick", "--max-examples", "0", "--implementation", named(function), "-k", selected)
    ended = run_command(*words, "--reports", str(tmp_path), "--unrun", "never")
    run = read_records(tmp_path / "records.jsonl")
    cases = [case for case in run.cases if case.requirement == "ATT-OUT-021" and case.outcome.is_failure]
    assert ended.returncode == (ExitCode.UNEXPECTED if wrong else ExitCode.AS_EXPECTED), ended.stdout
    assert {case.output for case in cases} == set(wrong)
    assert {convention.id for convention in run.conventions} == {"CON-LSE-BASE", "CON-LSE-EMPTY-ROW"}
    if not wrong:
        return
    with_pictures = [case.picture for case in cases if case.picture is not None]
    assert with_pictures and all(picture.size[0] in (2, 3) for picture in with_pictures)  # heads × queries
    assert "lse, index" in ended.stdout
    assert "the lse matches fault lse-without-scale on" in " ".join(ended.stdout.split())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "WRONG_VALUE of the lse" in page and "lse[" in page
    assert "WRONG_VALUE of lse |" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_run_of_who_returns_the_output_alone_has_the_lines_that_it_had(tmp_path):
    words = ("--implementation", fake("correct"), "--records", str(tmp_path / "records.jsonl"), "--unrun", "never")
    run_command("run", "--tier", "quick", "--max-examples", "0", "-k", "ATT-OUT-021 or CON-LSE", *words)
    text = (tmp_path / "records.jsonl").read_text(encoding="utf-8")
    assert '"lse"' not in text and '"returns"' not in text and '"output":' not in text and "ATT-OUT-049" not in text


def test_what_an_expectation_says_of_an_output_that_is_not_returned_is_a_mistake(tmp_path):
    file = tmp_path / "known.toml"
    file.write_text('[[expected]]\nrequirement = "ATT-OUT-049"\noutcome = "WRONG_VALUE"\nreason = "none"\n')
    words = ("--implementation", fake("correct"), "-k", "ATT-OUT-021", "--expectations", str(file))
    ended = run_command("run", "--tier", "quick", *words)
    assert ended.returncode == ExitCode.USAGE_ERROR
    assert "ATT-OUT-049 is about lse, which" in ended.stderr


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("unscaled_lse", "lse-without-scale"),
        ("base_2_undeclared", "lse-to-base-2"),
        ("weights_before_masking", "returned-weights-before-masking"),
    ],
)
def test_the_diagnosis_names_what_is_wrong_beside_a_right_output(tmp_path, function, fault):
    words = ("run", "--tier", "quick", "--max-examples", "0", "--implementation", named(function))
    chosen = "ATT-OUT-021 or ATT-MASK-001 or ATT-OUT-052 or ATT-OUT-055"
    run_command(*words, "-k", chosen, "--records", str(tmp_path / "records.jsonl"), "--unrun", "never")
    run = read_records(tmp_path / "records.jsonl")
    (diagnosis,) = run.diagnoses
    (explanation,) = diagnosis.explanations
    assert explanation.faults[0] == fault
    assert explanation.explained == explanation.failing > 10
    assert set(explanation.requirements) == {item.requirement for item in run.unexpected}
    assert not diagnosis.remarks


def test_a_diagnosis_that_knows_no_fault_says_what_is_wrong(tmp_path):
    words = ("run", "--tier", "quick", "--max-examples", "0", "--implementation", named("noisy_lse"))
    ended = run_command(*words, "-k", "ATT-OUT-021", "--records", str(tmp_path / "records.jsonl"), "--unrun", "never")
    (diagnosis,) = read_records(tmp_path / "records.jsonl").diagnoses
    assert diagnosis.explanations == ()
    assert diagnosis.remarks == ("The output is right, and the lse is wrong beside it: ATT-OUT-021.",)
    assert ended.returncode == ExitCode.UNEXPECTED
