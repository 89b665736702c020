"""ATT-OUT-048: an implementation is asked at the numbers that stand in its own source, and at those that it declares."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.adapter import registry
from conformance.adapter.declarations import demand_sense
from conformance.adapter.own_code import own_code, own_sizes
from conformance.cases.admissible import indistinguishable
from conformance.checks.items import Effort, ItemResult
from conformance.commands.describe import describe, explain
from conformance.commands.reproduce import reproduce
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.problem import AttentionProblem, parse
from conformance.specification import requirements
from conformance.specification.requirement import Facts
from tests.support.items import run_item

NUMBER = "ATT-OUT-048"
QUICK, FULL = Effort(examples=1, free=False, seed=1), Effort(examples=1, free=True, seed=1)
ALL = frozenset({"mask", "bias", "causal", "key-lengths", "scale", "grouped-heads", "value-width", "cross-length"})

HEAD = """
import numpy as np
from conformance.adapter import Support

def formula(query, key, value, causal=False):
    shared = query.shape[1] // key.shape[1]
    query, key, value = query.astype(float), key.astype(float).repeat(shared, 1), value.astype(float).repeat(shared, 1)
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value
"""

# What gives zeros beyond a size, with the number in another place each.
ZEROS = {
    "in the body": """
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (0 if key.shape[2] > 4096 else 1)
""",
    "in a constant of the module": """
MAX_HEADS = 12
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (0 if query.shape[1] > MAX_HEADS else 1)
""",
    "in a table of the module": """
BLOCKS = {"width": (16, 96)}
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (0 if query.shape[3] > BLOCKS["width"][1] else 1)
""",
    "in a helper": """
def fits(query):
    return query.shape[0] <= 150
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * fits(query)
""",
    "in a helper of a helper, imported in the call": """
import helping
def attention(query, key, value):
    from helping import whole
    return formula(query, key, value).astype(query.dtype) * whole(query)
""",
    "in a method": """
class Attention:
    def limit(self):
        return 77
    def __call__(self, query, key, value):
        return formula(query, key, value).astype(query.dtype) * (query.shape[2] <= self.limit())
attention = Attention()
""",
    "in what an object was made with": """
class Attention:
    def __init__(self, most):
        self.most = most
    def __call__(self, query, key, value):
        return formula(query, key, value).astype(query.dtype) * (query.shape[2] <= self.most)
attention = Attention(77)
""",
    "in a constant of the class": """
class Attention:
    MOST = 77
    @classmethod
    def run(cls, query, key, value):
        return formula(query, key, value).astype(query.dtype) * (query.shape[2] <= cls.MOST)
attention = Attention.run
""",
    "in a method of a class above": """
class Base:
    def __call__(self, query, key, value):
        return formula(query, key, value).astype(query.dtype) * (query.shape[2] <= 77)
class Attention(Base):
    def __call__(self, query, key, value):
        return super().__call__(query, key, value)
attention = Attention()
""",
    "in a module of torch's kind, by the name of a part": """
class Part:
    def forward(self, query):
        return query.shape[2] <= 77
class Attention:
    def __init__(self):
        self._modules = {"part": Part()}
    def __getattr__(self, name):
        if name not in self._modules:
            raise AttributeError(name)
        return self._modules[name]
    def __call__(self, query, key, value):
        return formula(query, key, value).astype(query.dtype) * self.part.forward(query)
attention = Attention()
""",
    "in a default": """
def attention(query, key, value, block=200):
    return formula(query, key, value).astype(query.dtype) * (value.shape[3] < block)
""",
    "in a closure": """
def made(most):
    def attention(query, key, value):
        return formula(query, key, value).astype(query.dtype) * (key.shape[2] != most)
    return attention
attention = made(1000)
""",
    "in what a decorator wraps": """
import functools
def logged(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        return function(*arguments, **named)
    return call
@logged
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (query.shape[1] // key.shape[1] <= 20)
""",
    "in a partial": """
import functools
def general(query, key, value, most):
    return formula(query, key, value).astype(query.dtype) * (query.shape[0] * query.shape[1] <= most)
attention = functools.partial(general, most=3000)
""",
    "as a whole tile": """
TILE = 24
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (1 if query.shape[2] % TILE else 0)
""",
}
HELPING = """
def whole(query):
    return rest(query.shape[2])
def rest(number):
    return number <= 500
"""
LATER = {
    "beside causal": """
def attention(query, key, value, causal=False):
    return formula(query, key, value, causal).astype(query.dtype) * (0 if causal and key.shape[2] > 300 else 1)
""",
    "beside a mask, for one size alone": """
def attention(query, key, value, mask=None):
    wrong = mask is not None and query.shape[2] == 80
    if mask is None:
        return formula(query, key, value).astype(query.dtype)
    shared = query.shape[1] // key.shape[1]
    query, key, value = query.astype(float), key.astype(float).repeat(shared, 1), value.astype(float).repeat(shared, 1)
    scores = np.where(mask, query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ value).astype(np.float32) * (not wrong)
""",
    "beside a mask, for a width of values larger than the other": """
def attention(query, key, value, mask=None):
    shared = query.shape[1] // key.shape[1]
    query, key, value = query.astype(float), key.astype(float).repeat(shared, 1), value.astype(float).repeat(shared, 1)
    seen = np.ones((1, 1, 1, 1), bool) if mask is None else mask
    scores = np.where(seen, query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    output = (weights / weights.sum(-1, keepdims=True) @ value).astype(np.float32)
    wrong = mask is not None and value.shape[3] % 32 == 0 and value.shape[3] > query.shape[3]
    return output * (not wrong)
""",
    "for two sizes at once": """
def attention(query, key, value):
    wrong = query.shape[3] % 96 == 0 and key.shape[2] % 64 == 0
    return formula(query, key, value).astype(query.dtype) * (not wrong)
""",
    "for a size in another dtype": """
def attention(query, key, value):
    wrong = query.dtype == np.float16 and key.shape[2] > 700
    return formula(query, key, value).astype(query.dtype) * (not wrong)
attention.conformance = Support(dtypes=("float32", "float16"))
""",
    "for the product of two sizes": """
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (query.shape[2] * key.shape[2] < 65536)
""",
}


def made(tmp_path: Path, code: str, name: str = "attention", **options: str):
    """The function ``name`` of a file with the code, taken in float32."""
    tmp_path.joinpath("helping.py").write_text(HELPING)
    file = tmp_path / "mine.py"
    file.write_text(HEAD + code)
    return registry.resolve(f"{file}:{name}", **({} if "dtypes=" in code else {"dtypes": "float32"}), **options)


def judged(implementation, effort: Effort) -> ItemResult:
    return run_item(NUMBER, implementation, effort)


@pytest.mark.parametrize("place", ZEROS)
def test_zeros_beyond_a_number_of_its_own_are_caught_in_the_quick_tier(tmp_path, place):
    found = judged(made(tmp_path, ZEROS[place]), FULL if place == "in a partial" else QUICK)
    assert found.item.outcome is Outcome.WRONG_VALUE, own_sizes(made(tmp_path, ZEROS[place]))
    assert found.item.status == "unexpected"


@pytest.mark.parametrize("place", LATER)
def test_what_needs_a_feature_or_two_sizes_is_caught_in_the_full_tier(tmp_path, place):
    assert judged(made(tmp_path, LATER[place]), FULL).item.outcome is Outcome.WRONG_VALUE


def test_what_is_right_passes_whatever_numbers_it_has(tmp_path):
    code = "BASE = 10000\ndef attention(q, k, v, eps=1e-6, axis=-1, most=0, big=10**9, yes=True):\n"
    code += "    return formula(q, k, v).astype(q.dtype) if BASE and q.shape[2] < 12345678 else None\n"
    implementation = made(tmp_path, code)
    assert own_sizes(implementation)[0] == 10000
    assert not set(own_sizes(implementation)) & {-1, 0, 1, 10**9, 12345678}
    found = judged(implementation, FULL)
    assert found.item.outcome is Outcome.PASS and found.item.counts.designed > 50


def test_without_a_number_there_is_nothing_to_ask_and_nothing_wrong(tmp_path):
    implementation = made(tmp_path, "def attention(q, k, v):\n    return q\n")
    found = judged(implementation, FULL)
    assert (found.item.outcome, found.item.status) == (Outcome.UNSUPPORTED, "expected")
    assert "in its source and in Support.sizes" in found.item.reason


# As a function of C: a size of which nothing can be read.
UNREADABLE = """
exec(compile('''
def attention(query, key, value):
    return formula(query, key, value).astype(query.dtype) * (key.shape[2] <= int(\\"4\\" \\"0\\"))
''', "<nowhere>", "exec"))
"""


def test_sizes_can_be_declared_or_given(tmp_path):
    plain = made(tmp_path, UNREADABLE)
    assert 40 not in own_sizes(plain)
    assert judged(plain, QUICK).item.outcome is not Outcome.WRONG_VALUE
    given = made(tmp_path, UNREADABLE, sizes="40,128")
    assert given.support.sizes == (40, 128) and own_sizes(given)[:2] == (40, 128)
    found = judged(given, QUICK)
    assert found.item.outcome is Outcome.WRONG_VALUE
    assert "--sizes=40,128" in found.unexpected[0].repro
    tmp_path.joinpath("declared").mkdir()
    declared = made(tmp_path / "declared", UNREADABLE + "attention.conformance = Support(sizes=(40, 128))\n")
    assert judged(declared, QUICK).item.outcome is Outcome.WRONG_VALUE


def test_a_failure_is_reproduced_by_its_text(tmp_path):
    implementation = made(tmp_path, ZEROS["in the body"])
    case = judged(implementation, QUICK).unexpected[0]
    problem = parse(case.text)
    assert isinstance(problem, AttentionProblem) and problem.key_length == 4097
    assert reproduce(case.text, implementation, "values").judgement.verdict.outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize(("sizes", "told"), [("12,x", "'x' is no whole number"), ("1", "says 1"), ("1000000", "says 1000000")])
def test_a_size_that_is_none_is_a_mistake_of_the_user(tmp_path, sizes, told):
    with pytest.raises(UsageError, match=told):
        demand_sense(made(tmp_path, ZEROS["in a helper"], sizes=sizes))


def test_describe_and_explain_say_which(tmp_path):
    assert re.search(r"^own sizes +12(, 2)?$", describe(made(tmp_path, ZEROS["in a constant of the module"])), re.MULTILINE)
    assert "Support.sizes" in explain(NUMBER)


def test_the_nearest_numbers_come_first_and_libraries_have_no_part(tmp_path):
    code = "def far():\n    return 300\ndef near(n):\n    return far() + 200\n"
    code += "def attention(q, k, v, most=100):\n    return np.linalg.norm(near(most)) + np.einsum('i,i', q, k)\n"
    implementation = made(tmp_path, code)
    assert own_sizes(implementation) == (100, 200, 300)
    assert {function.__module__ for function in own_code(implementation).functions} == {implementation.function.__module__}


def test_nothing_is_imported_and_nothing_of_the_user_is_run(tmp_path):
    code = """
class Trap:
    limit = 55
    def __getattr__(self, name):
        raise SystemExit("run")
    @property
    def size(self):
        raise SystemExit("run")
trap = Trap()
def attention(query, key, value):
    import wave
    return trap.size, trap.limit, trap.other, wave.open
"""
    file = tmp_path / "mine.py"
    file.write_text(HEAD + code)
    program = (
        "import sys; from conformance.adapter import registry; from conformance.adapter.own_code import own_sizes; "
        f"i = registry.resolve({str(file) + ':attention'!r}); print(own_sizes(i), 'wave' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(55,) False"


def facts(*sizes: int, features: frozenset[str] = ALL, dear: bool = False, thorough: bool = True) -> Facts:
    return Facts(sizes=sizes, features=features, dtypes=("float32",), dear=dear, thorough=thorough)


def at(*sizes: int, **changes) -> list[AttentionProblem]:
    adapted = requirements()[NUMBER].adapted
    return list(adapted(facts(*sizes, **changes)))


def test_every_size_of_a_problem_is_a_number_of_its_own_in_turn():
    found = at(48)
    for name in ("batch", "heads", "kv_heads", "query_length", "key_length", "width", "value_width"):
        assert {47, 48, 49, 96} <= {getattr(problem, name) for problem in found}, name
    for feature in ALL - {"value-width"}:
        assert {48, 49} <= {problem.key_length for problem in found if feature in problem.features}, feature
    assert any(problem.heads == 49 and problem.kv_heads == 1 for problem in found)


def test_there_are_few_where_each_shape_is_dear_and_in_the_quick_tier():
    many = (20, 30, 40, 50, 60, 70, 80, 90)
    assert len(at(*many, dear=True, thorough=False)) == 3
    assert len(at(*many, dear=True)) == 16
    assert len(at(*many, thorough=False)) == 48
    assert len(at(*many)) == 640
    assert sum(p.batch * p.heads * p.query_length * p.key_length * p.width for p in at(131072, 65536, 30000)) < 1 << 25


def test_only_what_is_offered_is_asked():
    for problem in at(20, 3000, features=frozenset({"causal"})):
        assert problem.features <= {"causal"}


@pytest.mark.parametrize("number", [2, 3, 7, 16, 100, 513])
def test_null_models_are_told_from_the_truth(number):
    for problem in at(number)[::7]:
        assert not indistinguishable(problem), problem.text
