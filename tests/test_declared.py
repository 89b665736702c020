"""Green says what was judged: what is not offered is declared, what is declared works, what cannot be judged ends a run."""

import re
from pathlib import Path

import pytest
from click.testing import Result

from conformance.judging.verdict import Outcome
from conformance.records import Run, read_records
from conformance.system.exit_codes import ExitCode
from tests.support.commands import invoke

CORRECT = "from tests.fakes import correct\nfrom conformance.adapter import Support\n"
NO_MASKS = "frozenset({'mask', 'causal', 'key-lengths', 'bias'})"

# Six mistakes of declaration, each of which once ended in green.
MISTAKES = {
    "a mask and a causal flag under names of PyTorch, both ignored": """
def attention(query, key, value, attn_mask=None, is_causal=False, scale=None):
    return correct(query, key, value, scale=scale)
""",
    "the same behind a catch-all that hands on": """
class Layer:
    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, query, key, value, attn_mask=None, is_causal=False, scale=None):
        return correct(query, key, value, scale=scale)

attention = Layer()
""",
    "a catch-all of which nothing can be read": """
def attention(*args, **kwargs):
    return correct(*args, **kwargs)
""",
    "masks that are not offered, and nothing that says so": """
def attention(query, key, value, scale=None):
    return correct(query, key, value, scale=scale)
""",
    "masks declared as features, swallowed by a catch-all": """
def attention(query, key, value, **kwargs):
    return correct(query, key, value)

attention.conformance = Support(features=frozenset({"mask"}))
""",
    "a feature that is offered and raises": """
def attention(query, key, value, mask=None, causal=False):
    if causal:
        raise NotImplementedError("no causal today")
    return correct(query, key, value, mask=mask)
""",
}


def run_of(folder: Path, text: str, *words: str) -> tuple[Result, Run | None]:
    """The quick tier on a function ``attention``, and its records if it left any that are complete."""
    file = folder / f"mine_{len(list(folder.glob('*.py')))}.py"  # a file is loaded once in a process
    file.write_text(CORRECT + text)
    name = f"{file}:attention"
    result = invoke(
        "run",
        "--implementation",
        name,
        "--tier",
        "quick",
        "-n",
        "0",
        "--no-timing",
        "--no-diagnosis",
        "--reports",
        folder,
        *words,
    )
    records = folder / "records.jsonl"
    return result, read_records(records) if records.exists() and result.exit_code != ExitCode.USAGE_ERROR else None


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_declaration_is_not_green(tmp_path: Path, mistake: str) -> None:
    result, run = run_of(tmp_path, MISTAKES[mistake])
    assert result.exit_code == ExitCode.UNEXPECTED
    assert run is not None
    assert run.exit_code == ExitCode.UNEXPECTED
    assert "Every result is as expected" not in result.stdout


def test_what_is_not_offered_is_declared_or_offered(tmp_path: Path) -> None:
    """The suite itself is satisfied once the absence of masks is a statement."""
    function = MISTAKES["masks that are not offered, and nothing that says so"]
    result, run = run_of(tmp_path, function)
    assert run is not None
    (undeclared,) = run.undeclared
    assert (undeclared.area, undeclared.features) == ("MASK", ("bias", "causal", "key-lengths", "mask", "window"))
    assert re.search(
        r"MASK of .*\S+:attention was not judged at all: .*bias, causal, key-lengths, mask, window.*declare", result.stdout
    )
    result, run = run_of(tmp_path, f"{function}\nattention.conformance = Support(lacks={NO_MASKS})\n")
    assert run is not None
    assert run.undeclared == ()
    assert result.exit_code == ExitCode.AS_EXPECTED, result.stdout


def test_a_selection_is_not_asked_for_whole_areas(tmp_path: Path) -> None:
    function = MISTAKES["masks that are not offered, and nothing that says so"]
    _, run = run_of(tmp_path, function, "-k", "ATT-MASK-003 or ATT-OUT-001")
    assert run is not None
    assert run.exit_code == ExitCode.AS_EXPECTED


DECLINED = """
def attention(query, key, value, mask=None, bias=None, causal=False, key_lengths=None, scale=None):
    if mask is not None or bias is not None or causal or key_lengths is not None:
        raise NotImplementedError("no masks today")
    return correct(query, key, value, scale=scale)

attention.conformance = Support(declines=(NotImplementedError,))
"""


def test_what_is_offered_and_always_declined_is_not_green(tmp_path: Path) -> None:
    result, run = run_of(tmp_path, DECLINED)
    assert run is not None
    assert [one.area for one in run.undeclared] == ["MASK"]
    assert result.exit_code == ExitCode.UNEXPECTED


def test_skipping_a_requirement_declares_nothing(tmp_path: Path) -> None:
    (tmp_path / "skips.txt").write_text("ATT-MASK-001\n")
    function = MISTAKES["masks that are not offered, and nothing that says so"]
    _, run = run_of(tmp_path, function, "--skips", str(tmp_path / "skips.txt"))
    assert run is not None
    assert [one.area for one in run.undeclared] == ["MASK"]


def test_a_shard_accuses_no_area_that_another_may_judge(tmp_path: Path) -> None:
    function = MISTAKES["masks that are not offered, and nothing that says so"]
    result, run = run_of(tmp_path, function, "--shard", "1/3")
    assert run is not None
    assert run.undeclared == ()
    assert "neither offered nor declared" not in result.stdout


def test_a_first_call_that_is_wrong_counts(tmp_path: Path) -> None:
    function = """
CALLS = []

def attention(query, key, value):
    CALLS.append(1)
    return correct(query, key, value) * (len(CALLS) > 3)
"""
    _, run = run_of(tmp_path, f"{function}\nattention.conformance = Support(lacks={NO_MASKS}, dtypes=('float32',))\n")
    assert run is not None
    found = [item for item in run.items if item.outcome is Outcome.NONDETERMINISTIC]
    assert found and {item.status for item in found} == {"unexpected"}
    assert all("A first call of the process was wrong" in item.reason for item in found)


def test_the_verdict_says_to_what_a_declaration_narrows_it(tmp_path: Path) -> None:
    function = "\ndef attention(query, key, value):\n    return correct(query, key, value)\n"
    support = f"Support(lacks={NO_MASKS}, dtypes=('float32',), at_most={{'batch': 1}})"
    result, _ = run_of(tmp_path, f"{function}\nattention.conformance = {support}\n")
    assert re.search(r"judged in float32 alone, within its limits \(batch at most 1\)", result.stdout)


EXPECTED = '[[expected]]\nrequirement = "{}"\noutcome = "WRONG_VALUE"\nreason = "known"\n{}\n'


@pytest.mark.parametrize(
    ("requirement", "more", "code", "told"),
    [
        ("ATT-MASK-003", "", ExitCode.UNEXPECTED, "is expected of ATT-MASK-003, which is not asked, since mask"),
        ("ATT-POS-001", "", ExitCode.USAGE_ERROR, "ATT-POS-001 is about sinusoidal_encoding"),
        ("ATT-OUT-001", 'dtypes = ["float16"]', ExitCode.USAGE_ERROR, "does not declare the dtype float16"),
    ],
)
def test_an_expectation_of_what_is_never_asked_is_an_error(
    tmp_path: Path, requirement: str, more: str, code: ExitCode, told: str
) -> None:
    (tmp_path / "known.toml").write_text(EXPECTED.format(requirement, more))
    function = MISTAKES["masks that are not offered, and nothing that says so"]
    support = f"\nattention.conformance = Support(lacks={NO_MASKS}, dtypes=('float32',))\n"
    result, run = run_of(tmp_path, function + support, "--expectations", str(tmp_path / "known.toml"))
    assert result.exit_code == code
    reasons = "" if run is None else " ".join(item.reason for item in run.unexpected)
    assert told in reasons + result.stderr


UNSOUND = {
    "merges heads": ("return correct(query, key, value).swapaxes(1, 2).reshape(2, query.shape[2], -1)", "The heads look merged"),
    "returns a list": ("return [1.0]", "The output is of type list"),
    "raises": ("raise OSError('no device')", "OSError: no device"),
    "is transposed": (
        "return correct(*(a.swapaxes(1, 2) for a in (query, key, value))).swapaxes(1, 2)",
        "say --axes blhd",
    ),
}


@pytest.mark.parametrize("kind", UNSOUND)
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_stops_at_an_adapter_that_is_not_sound(tmp_path: Path, kind: str, workers: str, capfd) -> None:
    body, told = UNSOUND[kind]
    result, _ = run_of(tmp_path, f"\ndef attention(query, key, value):\n    {body}\n", "-n", workers)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert told in result.stderr
    assert "cannot be judged, since its adapter is not sound" in result.stderr.splitlines()[-1]
    assert "unexpected" not in result.stdout


def test_an_adapter_that_is_sound_in_one_dtype_is_judged(tmp_path: Path) -> None:
    body = "    return correct(query, key, value).astype('float64')\n"
    _, run = run_of(tmp_path, f"\ndef attention(query, key, value):\n{body}")
    assert run is not None
    assert Outcome.WRONG_DTYPE in {item.outcome for item in run.items}


def test_beside_others_an_unsound_adapter_costs_its_own_results(tmp_path: Path) -> None:
    result, run = run_of(
        tmp_path,
        "\ndef attention(query, key, value):\n    return [1.0]\n",
        "--implementation",
        "numpy-direct",
        "-k",
        "ATT-OUT-00",
    )
    assert run is not None
    assert {item.outcome for item in run.items if item.implementation == "numpy-direct"} == {Outcome.PASS}
    assert {(item.outcome, item.status) for item in run.items if "mine" in item.implementation} == {(Outcome.ERROR, "unexpected")}
    assert result.exit_code == ExitCode.UNEXPECTED


@pytest.mark.parametrize(
    ("body", "limit", "told"),
    [
        ("import time; time.sleep(10_000)", 3, "FAIL  The implementation gave no answer within 3 s."),
        ("os._exit(7)", 600, "FAIL  The implementation ended the process with code 7."),
    ],
)
def test_smoke_ends_a_hang_and_tells_of_a_death(tmp_path: Path, body: str, limit: int, told: str) -> None:
    (tmp_path / "mine.py").write_text(f"import os\n\ndef attention(query, key, value):\n    {body}\n")
    result = invoke("smoke", f"{tmp_path / 'mine.py'}:attention", "--time-limit", str(limit))
    assert result.exit_code == ExitCode.UNEXPECTED
    assert told in result.stdout
    assert result.stdout.endswith("The adapter is not sound yet.\n")
