"""``compiles=True`` judges what is compiled: what is interpreted is counted; a slow compiler gets a verdict within a budget."""

from dataclasses import replace

import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.declarations import unknown_words
from conformance.commands.describe import describe
from conformance.errors import LeftOut
from conformance.harness.shape_budget import affordable, shape_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of
from conformance.problem import parse
from conformance.records import shares, too_little
from conformance.reports import tables
from conformance.specification import requirements
from conformance.values import materialise
from tests.support import runs
from tests.support.items import run_item

BUDGET = 4
few_sizes = operation_of("attention").few_sizes
SOME = ("ATT-OUT-001", "ATT-OUT-020", "ATT-SCALE-001", "ATT-HEAD-001", "ATT-MASK-009")


def slow_compiler() -> tuple[Implementation, set]:
    """A compiler whose every shape is noted: it would take a minute for each."""
    compiled: set = set()

    def attention(query, key, value, *, mask=None, causal=False, scale=None):
        given = None if mask is None else mask.shape, causal, scale is None
        compiled.add((query.shape, key.shape, value.shape, query.dtype.name, given))
        return direct(query, key, value, mask=mask, causal=causal, scale=scale)

    conventions = {"CON-ALIGNMENT": "top-left", "CON-POLARITY": "true-attends"}
    support = Support(compiles=True, shapes=BUDGET, layouts=("contiguous",), conventions=conventions)
    return Implementation("slow", attention, support, FRAMEWORK), compiled


def test_a_slow_compiler_compiles_no_more_shapes_than_its_budget():
    implementation, compiled = slow_compiler()
    results = [run_item(requirement, implementation) for requirement in SOME]
    assert 1 < len(compiled) <= BUDGET
    assert {result.item.outcome for result in results} <= {Outcome.PASS, Outcome.UNSUPPORTED}
    assert sum(result.item.counts.run for result in results) > 20
    assert any("beyond its budget of 4 shapes" in result.item.lacking for result in results)


def test_the_shapes_are_the_same_for_any_selection_and_process():
    implementation, _ = slow_compiler()
    chosen = affordable(implementation, few_sizes)
    assert len(chosen) == BUDGET
    assert chosen == affordable(slow_compiler()[0], few_sizes)
    for order in (SOME, SOME[::-1], SOME[2:3]):
        again, compiled = slow_compiler()
        for requirement in order:
            run_item(requirement, again)
        assert len(compiled) <= BUDGET


def test_a_problem_in_another_shape_is_left_out_and_a_feature_that_lacks_is_no_matter_of_the_budget():
    subject = Subject(slow_compiler()[0])
    with pytest.raises(LeftOut, match="budget"):
        subject.demand_affordable(parse("attention batch=1 heads=1 length=21/34 width=55 dtype=float16 values=gaussian.1#1"))
    result = run_item(
        "ATT-SCALE-001", replace(slow_compiler()[0], support=replace(slow_compiler()[0].support, dtypes=("float16",)))
    )
    assert any(reason == "dtype float64" for reason in result.item.lacking)


def test_designed_problems_come_in_few_sizes():
    designed = [p for r in requirements().values() if r.operation == "attention" for p in r.designed()]
    few = {(p.batch, p.heads, p.kv_heads, p.query_length, p.key_length, p.width, p.value_width) for p in map(few_sizes, designed)}
    assert len(few) <= 12
    assert all(few_sizes(problem).features == problem.features for problem in designed)


def test_what_a_compiler_sees_makes_another_shape():
    problem = parse("attention batch=1 heads=3 length=7/13 width=8 dtype=float32 values=gaussian.1#1")
    others = [
        problem.but(dtype="float64"), problem.but(key_length=14), problem.but(causal="top-left"), problem.but(scale=0.5),
        problem.but(layout="strided"), parse(f"{problem.text} mask=random.1:qk#1"), parse(f"{problem.text} mask=random.1:bhqk#1"),
    ]  # fmt: skip
    shapes = {shape_of(materialise(one)) for one in (problem, *others)}
    assert len(shapes) == 1 + len(others)
    assert shape_of(materialise(parse(problem.text.replace("#1", "#2")))) == shape_of(materialise(problem))


def test_torch_compile_gives_up_nothing_because_of_the_number_of_shapes():
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")

    @torch.compile(backend="eager", dynamic=False)
    def compiled(query, key, value):
        return torch.softmax(query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5, -1) @ value

    def attention(query, key, value):
        return compiled(query, key, value)

    support = Support(compiles=True, layouts=("contiguous",), dtypes=("float32",), lacks=frozenset({"grouped-heads"}))
    subject = Subject(Implementation("compiled", attention, support, registry.frameworks()["torch"]))
    lengths = range(2, 16)  # more than the eight that torch compiles by itself
    for length in lengths:
        problem = parse(f"attention batch=1 heads=1 length={length} width=4 dtype=float32 values=gaussian.1#1")
        assert Judge().values(subject, problem).verdict.outcome is Outcome.PASS
    assert (subject.calls, subject.compiled) == (len(lengths), len(lengths))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= len(lengths)


class GivesUp(type(FRAMEWORK)):
    """A framework whose compiler gives up after three shapes and says so to nobody."""

    def __init__(self) -> None:
        self.calls = 0

    def compilations(self) -> tuple[int, int]:
        return min(self.calls, 3), int(self.calls > 3)

    def forget_compiled(self) -> None:
        self.calls = 0


def test_calls_that_are_interpreted_are_counted_as_such():
    framework = GivesUp()

    def attention(query, key, value):
        framework.calls += 1
        return direct(query, key, value)

    implementation = Implementation("gives-up", attention, Support(compiles=True, layouts=("contiguous",)), framework)
    item = run_item("ATT-OUT-001", implementation).item
    assert item.calls > 3
    assert item.compiled == 3


def test_after_an_exception_the_compiler_begins_anew():
    """A request that is refused, such as heads that do not divide, must not leave the rest of the run uncompiled."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")

    def inner(query, key, value):
        if query.shape[1] != key.shape[1]:
            raise ValueError("as many key heads as query heads, please")
        return torch.softmax(query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5, -1) @ value

    compiled = torch.compile(inner, backend="eager", dynamic=False)
    support = Support(compiles=True, layouts=("contiguous",), dtypes=("float32",))
    subject = Subject(Implementation("refuses", compiled, support, registry.frameworks()["torch"]))
    assert subject.observe("CON-GROUPS-REFUSED") == "refused"
    before = subject.calls, subject.compiled or 0
    for length in (3, 4, 5):
        problem = parse(f"attention batch=1 heads=1 length={length} width=4 dtype=float32 values=gaussian.1#1")
        assert Judge().values(subject, problem).verdict.outcome is Outcome.PASS
    assert (subject.calls - before[0], subject.compiled - before[1]) == (3, 3)


def test_too_few_compiled_calls_are_no_verdict():
    items = [runs.item(calls=100, compiled=0), runs.item(requirement="ATT-OUT-002", calls=100, compiled=10)]
    (told,) = too_little(shares(items))
    assert told.startswith("INCONCLUSIVE: only 10 of 200 calls of fine ran compiled code")
    assert too_little(shares([runs.item(calls=100, compiled=95), runs.item(requirement="ATT-OUT-002")])) == ()


def test_what_is_not_compiled_at_all_says_nothing():
    item = run_item("ATT-OUT-001", Implementation("plain", direct, Support(compiles=True), FRAMEWORK)).item
    assert item.compiled is None


def test_tables_and_describe_tell_it(tmp_path):
    made = runs.run(tmp_path, runs.header(), runs.item(calls=10, compiled=2), runs.item("flawed"))
    assert tables.compiled_table(made).rows == (("fine", "2", "10"),)
    assert "a budget of 4" in describe(slow_compiler()[0])


@pytest.mark.parametrize("number", [0, -1])
def test_a_budget_of_nothing_is_refused(number: int):
    assert any("Support.shapes" in sentence for sentence in unknown_words(Support(shapes=number)))
