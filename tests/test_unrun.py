"""What never ran is said: the lines, branches and functions of an implementation that no problem reaches."""

import json
from pathlib import Path

import numpy as np
import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.known import known
from conformance.records import Unrun, decode
from conformance.run.workers.afterwards import unrun
from tests.support.commands import PATIENCE, run_command

HEAD = """
import numpy as np

def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
"""
PLAIN = """
def attention(query, key, value):
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat(group, 1), value.repeat(group, 1)
    return softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5) @ value
"""
# What is never run has a comment with what is to be said of it.
MANY = """
class Choice:
    def __init__(self, kind):
        self.kind = kind

    def unused(self):  # never called
        return self.kind

CHOICE = Choice("made when the file is loaded")

def logged(function):
    def call(*arguments):
        return function(*arguments)
    return call

@logged
def attention(query, key, value):
    lengths = key.shape[2]
    if lengths > 1 << 30:
        query = query * 0  # if lengths > 1 << 30
        query = query + 1  # if lengths > 1 << 30
    if lengths < 0:
        group = 1  # if lengths < 0
    elif lengths > 1 << 29:
        group = 2  # if lengths > 1 << 29
    elif lengths:
        group = query.shape[1] // key.shape[1]
    else:
        group = 3  # else of if lengths
    try:
        key, value = key.repeat(group, 1), value.repeat(group, 1)
    except ZeroDivisionError:
        key = None  # except ZeroDivisionError
    while group < 0:
        group += 1  # while group < 0
    for _ in range(0):
        group = 0  # for _ in range(0)
    match group:
        case -5:
            group = 7  # case -5
        case _:
            pass
    if query.ndim == 4:  # always true
        group = group + 0
    return softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5) @ value

def other(query):  # never called
    return query
"""


def found(tmp_path: Path, code: str, seconds: float = PATIENCE, **options: str) -> Unrun:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + code)
    spec = f"{file}:attention"
    given = {"dtypes": "float32", "lacks": "mask,bias,causal,scale,key-lengths", **options}
    return unrun(known(registry.resolve(spec, **given)), given, seconds, seed=1)


def line_of(text: str, code: str) -> int:
    """The first line of the file that has the text."""
    return next(number for number, line in enumerate((HEAD + code).splitlines(), 1) if text in line)


def test_lines_branches_and_functions_that_no_problem_reaches_are_listed(tmp_path):
    record = found(tmp_path, MANY)
    marked: dict[str, list[int]] = {}
    for number, line in enumerate((HEAD + MANY).splitlines(), 1):
        if "  # " in line:
            marked.setdefault(line.partition("  # ")[2], []).append(number)
    functions = [(function.name, function.first) for function in record.functions]
    assert functions == [(name, line) for name, line in zip(("Choice.unused", "other"), marked.pop("never called"), strict=True)]
    assert [(branch.line, branch.answer) for branch in record.branches] == [(marked.pop("always true")[0], True)]
    assert {(block.condition, block.first, block.last) for block in record.blocks} == {
        (condition, lines[0], lines[-1]) for condition, lines in marked.items()
    }
    first = marked["if lengths > 1 << 30"]
    file = str(tmp_path / "mine.py")
    assert f"{file}: lines {first[0]}–{first[1]} (if lengths > 1 << 30) were never run: nothing is known of them." in record.lines
    assert any(line.startswith(f"{file}: functions Choice.unused (lines") for line in record.lines)


def test_where_all_was_run_that_is_said_early_in_whatever_folder(tmp_path):
    folder = tmp_path / "of [mine] *"
    folder.mkdir()
    record = found(folder, PLAIN)
    assert record.lines == (f"{folder / 'mine.py'}: every line of what is called was run, in every branch.",)
    assert 0 < record.problems < record.expected


def test_what_it_calls_in_the_same_folder_is_measured_too_and_libraries_are_not(tmp_path):
    tmp_path.joinpath("kernels_of_mine.py").write_text(
        "def run(query):\n    if query.shape[0] > 10**6:\n        return None\n    return query\n\ndef foreign():\n    return 1\n"
    )
    code = PLAIN.replace("    group =", "    query = kernels_of_mine.run(query)\n    group =")
    record = found(tmp_path, "import kernels_of_mine\n" + code)
    assert [Path(file).name for file in record.files] == ["mine.py", "kernels_of_mine.py"]
    assert [(Path(block.file).name, block.first, block.condition) for block in record.blocks] == [
        ("kernels_of_mine.py", 3, "if query.shape[0] > 10 ** 6")
    ]
    assert not record.functions


def test_what_is_not_written_in_python_cannot_be_measured():
    compiled = Implementation("compiled", np.dot, Support(), registry.frameworks()["numpy"])
    assert "no Python source" in unrun(known(compiled), {}, PATIENCE, seed=1).lines[0]


def test_an_implementation_that_ends_the_process_leaves_what_was_found_until_then(tmp_path):
    deadly = PLAIN.replace("    group =", "    if key.shape[2] > 1000:\n        import os\n        os._exit(1)\n    group =")
    record = found(tmp_path, deadly.replace("1000", "10**7") + "\n")
    assert [block.condition for block in record.blocks] == ["if key.shape[2] > 10 ** 7"] and not record.remark
    tmp_path.joinpath("deadly").mkdir()
    record = found(tmp_path / "deadly", deadly)
    assert "ended the process, or gave no answer, after " in record.lines[-1]


def test_a_kernel_that_another_tool_compiles_is_not_called_unreached(tmp_path):
    jit = "class Kernel:\n    def __init__(self, fn):\n        self.fn = fn\n    def launch(self, group):\n        return group\n"
    kernel = "@Kernel\ndef kernel(group):\n    return group * 64\n"
    record = found(tmp_path, jit + kernel + PLAIN.replace("    key, value", "    kernel.launch(group)\n    key, value"))
    assert [(one.name, one.compiled) for one in record.functions] == [("kernel", True)]
    assert "compiled by another tool" in record.lines[-1]


def test_time_is_limited(tmp_path):
    """One call takes all there is, whatever the machine."""
    slow = PLAIN.replace(
        "    group =", "    if key.shape[2] == 0:\n        return None\n    import time; time.sleep(1.0)\n    group ="
    )
    record = found(tmp_path, slow, seconds=1.0)
    assert record.problems < record.expected and record.lines[-1].startswith("Time was up after ")
    assert len(record.blocks) == 1


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """A folder with a file of the user's, and what a quick run of it says and writes."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.py").write_text(HEAD + MANY)

    def run(*options: str) -> str:
        words = [
            "--dtypes",
            "float32",
            "--lacks",
            "mask,bias,causal,scale,key-lengths",
            "--tier",
            "quick",
            "-n",
            "0",
            "--no-timing",
        ]
        return run_command("run", "--implementation", "mine.py:attention", *words, *options).stdout

    return run


def test_a_run_says_it_in_the_terminal_and_in_every_report(reports, tmp_path):
    said = reports()
    sentence = "(if lengths > 1 << 30) were never run: nothing is known of them."
    assert "What never ran of mine.py:attention" in said and sentence in said
    assert "What never ran" in (tmp_path / "reports/summary.md").read_text()
    summary = json.loads((tmp_path / "reports/summary.json").read_text())
    assert any(sentence in line for line in summary["unrun"][0]["sentences"])
    records = [decode(line) for line in (tmp_path / "reports/records.jsonl").read_bytes().splitlines()]
    assert sum(isinstance(record, Unrun) for record in records) == 1


@pytest.mark.parametrize("options", [("--unrun", "never"), ("-k", "ATT-OUT-001")])
def test_it_is_not_measured_where_it_is_not_wanted(reports, options):
    assert "What never ran" not in reports(*options)
