"""Files and paths that nobody meant: each is read, or refused in one sentence with exit code 2."""

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.ci.annotations import SourceLine, place_of
from conformance.errors import UsageError
from conformance.expectations import load, load_skips
from conformance.problem import Problem, ProblemError, parse
from conformance.specification import conventions, requirements
from conformance.system.exit_codes import ExitCode
from conformance.system.resources import golden_folder, shown
from conformance.system.user_files import LARGEST_TEXT
from conformance.values import golden, materialise
from tests.support import runs
from tests.support.commands import invoke
from tests.support.expecting import entry

KNOWN = requirements().keys()
NUMPY = ("--implementation", "numpy-einsum")


def one_sentence(*words: str | Path) -> str:
    """What the command says, which is one line, with exit code 2."""
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE_ERROR, result.output[:500]
    assert len(result.stderr.splitlines()) == 1 and len(result.stderr) < 1700, result.stderr[:2000]
    return result.stderr


# Paths


def loop(folder: Path) -> Path:
    """A symbolic link that leads back to itself, by way of another."""
    (folder / "one").symlink_to(folder / "two")
    (folder / "two").symlink_to(folder / "one")
    return folder / "one"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


PATHS: dict[str, Callable[[Path], str]] = {
    "long": lambda folder: str(folder / ("x" * 300)),
    "long within": lambda folder: str(folder / "none" / ("é" * 200) / "file"),
    "endless": lambda folder: "y" * 100_000,
    "loop": lambda folder: str(loop(folder)),
    "in a loop": lambda folder: str(loop(folder) / "file"),
    "nul": lambda folder: f"{folder}/a\0b",
    "half a character": lambda folder: f"{folder}/\ud800",
}
INPUTS: dict[str, Callable[[Path], str]] = {
    **PATHS,
    "folder": str,
    "pipe": lambda folder: str(pipe(folder)),
    "device": lambda folder: os.devnull,
    "nothing": lambda folder: str(folder / "nothing"),
    "in a file": lambda folder: str(runs.write(folder / "plain.jsonl", runs.header()) / "x"),
    "no name": lambda folder: "",
}
READ = (
    "report {}", "page {}", "diff {} {}", "history {}", "annotate {}", "badge {} --out {folder}/out", "expectations update {}",
    "merge {} --out {folder}/out",
)  # fmt: skip
WRITTEN = (
    "report {r} --out {}", "page {r} --out {}", "badge {r} --out {}", "merge {r} --out {}", "expectations update {r} --to {}",
    "annotate {r} --root {}", "new {}/x.py", "bench --records {}",
)  # fmt: skip
OF_RUNS = ("--reports", "--records", "--expectations", "--skips")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("command", READ)
def test_what_cannot_be_read_is_told(tmp_path: Path, kind: str, command: str) -> None:
    path = INPUTS[kind](tmp_path)
    one_sentence(*(word.format(path, folder=tmp_path) for word in command.split()))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("command", WRITTEN)
def test_what_cannot_be_written_is_told(tmp_path: Path, kind: str, command: str) -> None:
    records = runs.write(tmp_path / "records.jsonl", runs.header(), runs.item(), runs.item("flawed", **runs.FAILS))
    path = PATHS[kind](tmp_path)
    one_sentence(*(word.format(path, r=records) for word in command.split()))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("option", OF_RUNS)
def test_paths_of_a_run_are_refused_before_it(tmp_path: Path, kind: str, option: str) -> None:
    assert "cannot be used" in one_sentence("run", *NUMPY, f"{option}={PATHS[kind](tmp_path)}")


def test_sources_of_records_lead_nowhere_strange(tmp_path: Path) -> None:
    long = (f"{'x' * 300}.py:1", f"x.py:{'9' * 5000}")
    for source in (f"{loop(tmp_path)}:1", *long, "a\0b.py:1", f"{tmp_path}/../../etc/passwd:1", "x.py:²"):
        assert place_of(source, tmp_path, tmp_path) == SourceLine()
    assert shown(tmp_path / "one") and shown("x" * 5000)


# Expectations and skips

DEEP = "x = " + "[" * 5000 + "]" * 5000
BAD_TOML = {
    "nested": (DEEP.encode(), "not valid TOML"),
    "tables": (("[" + ".".join("a" * 5000) + "]").encode(), "unknown key"),
    "digits": (b"x = " + b"9" * 10_000, "not valid TOML"),
    "nested in an entry": ((entry() + "cases = " + "[" * 300 + "]" * 300).encode(), ""),
    "list": (b'expected = ["a"]', "entry 1"),
    "number": (b"expected = 1", "not a list"),
    "long key": (b"k" * 1_000_000 + b" = 1", "unknown key"),
    "control": (b"\x00", "not valid TOML"),
    "utf-16": ("[[expected]]".encode("utf-16"), "not UTF-8"),
    "no case": (entry("cases = []").encode(), 'write cases = "none"'),
    "nothing left": (entry('cases = "none"\nrandom = false').encode(), "nothing to expect"),
    "nowhere": (entry("when = {platform = []}").encode(), "when.platform is empty"),
    "no range": (entry('when = {torch = ""}').encode(), "when.torch is empty"),
    "no package": (entry(f'when = {{{"x" * 5000} = "y"}}').encode(), "no range of versions"),
    "long outcome": (entry(outcome="X" * 1_000_000).encode(), "entry 1"),
    "long digest": (entry(f'cases = ["{"a" * 1_000_000}"]').encode(), "entry 1"),
    "a digest and a line": (entry('cases = ["0123456789ab\\n"]').encode(), "entry 1"),
    "huge": (b"#" * (LARGEST_TEXT + 1), "bytes"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_TOML)
def test_expectations_are_refused_in_a_sentence(tmp_path: Path, kind: str) -> None:
    content, told = BAD_TOML[kind]
    (tmp_path / "flawed.toml").write_bytes(content)
    for path in (tmp_path, tmp_path / "flawed.toml"):
        with pytest.raises(UsageError) as caught:
            load(path, KNOWN, runs.LINUX)
        message = str(caught.value)
        assert told in message and "flawed.toml" in message and len(message) < 600 + len(str(path)), message


def test_a_mark_of_the_byte_order_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "flawed.toml").write_bytes(b"\xef\xbb\xbf" + entry().encode())
    assert len(list(load(tmp_path, KNOWN, runs.LINUX).for_("flawed").entries())) == 1
    (tmp_path / "skips.txt").write_bytes(b"\xef\xbb\xbfATT-OUT-*\n")
    assert load_skips(tmp_path / "skips.txt", KNOWN) == ("ATT-OUT-*",)


def test_a_folder_without_expectations_is_another_than_was_meant(tmp_path: Path) -> None:
    (tmp_path / "flawed.tml").write_text(entry())
    with pytest.raises(UsageError, match=r"has no <implementation>\.toml"):
        load(tmp_path, KNOWN, runs.LINUX)


def test_a_version_that_is_none_is_in_no_range(tmp_path: Path) -> None:
    """As a record file may claim one of Python, to `expectations update`."""
    place = {"python": "three", "packages": {"torch": "é"}}
    environment = type(runs.LINUX)(**{**{name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}, **place})
    for when in ('{python = ">=3"}', '{torch = ">=2"}'):
        (tmp_path / "flawed.toml").write_text(entry(f"when = {when}"))
        assert list(load(tmp_path, KNOWN, environment).for_("flawed").entries()) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff", "not UTF-8"),
        (b"ATT-OUT-*\n" + b"x" * 1_000_000, "line 2"),
        (b"\x00", "line 1"),
        (b"\x1b[31m", "line 1"),
        (b"#" * (LARGEST_TEXT + 1), "bytes"),
        (b"*a" * 5000, "line 1"),
        (b"[" * 5000, "line 1"),
    ],
)
def test_skips_are_refused_in_a_sentence(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "skips.txt").write_bytes(content)
    with pytest.raises(UsageError, match=told) as caught:
        load_skips(tmp_path / "skips.txt", {*KNOWN, *conventions()})
    assert len(str(caught.value)) < 500 + len(str(tmp_path)) and "\x1b" not in str(caught.value)


def test_what_an_update_writes_can_be_read(tmp_path: Path) -> None:
    """An answer and a dtype of records that are of no run."""
    answer, dtype = runs.convention("flawed", observed="sideways"), runs.case(0, "flawed", outcome="ERROR", dtype="float8")
    for line in (answer, dtype):
        lines = (runs.item("flawed", **runs.FAILS), runs.case(1, "flawed"), line)
        records = runs.write(tmp_path / "records.jsonl", runs.header(), *lines)
        one_sentence("expectations", "update", records, "--to", tmp_path / "to")
        assert not (tmp_path / "to").exists()


# Golden files


def _json(change: Callable[[dict], None]) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        document = json.loads(content)
        change(document)
        return json.dumps(document).encode()

    return damage


def _header(change: Callable[[dict], None]) -> Callable[[bytes], bytes]:
    """Of a safetensors file: its length in 8 bytes, then JSON."""

    def damage(content: bytes) -> bytes:
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        change(next(iter(header.values())))
        written = json.dumps(header).encode()
        return struct.pack("<Q", len(written)) + written + content[8 + length :]

    return damage


SINUSOIDS = "sinusoidal_encoding length=5000 width=4 dtype=float32 rows=1,2 values=golden.1#1"
DAMAGED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "deep": ("heads.json", lambda content: b"[" * 100_000),
    "digits": ("heads.json", lambda content: b'{"format": ' + b"1" * 10_000 + b"}"),
    "latin": ("heads.json", lambda content: content.replace(b"e", b"\xe9")),
    "nothing": ("heads.json", lambda content: b""),
    "cases of words": ("heads.json", _json(lambda document: document.update(cases=["x", 1]))),
    "a list as id": ("heads.json", _json(lambda document: document["cases"][0].update(id=["GOLD-0001"]))),
    "an id without number": ("heads.json", _json(lambda document: document["cases"][0].update(id="GOLD-one"))),
    "an endless id": ("heads.json", _json(lambda document: document["cases"][0].update(id="GOLD-" + "1" * 5000))),
    "a number as text": ("heads.json", _json(lambda document: document["cases"][0].update(problem=3))),
    "a note of lists": ("heads.json", _json(lambda document: document["cases"][0].update(note=[[]]))),
    "inputs of words": ("heads.json", _json(lambda document: document["cases"][0].update(inputs={"query": "x"}))),
    "a shape of words": ("heads.json", _json(lambda document: document["cases"][0]["inputs"]["query"].update(shape="x" * 9000))),
    "another length": ("heads.json", lambda content: content.replace(b"length=", b"length=1")),
    "another operation": ("heads.json", _json(lambda document: document["cases"][0].update(problem=SINUSOIDS))),
    "truncated": ("heads.safetensors", lambda content: content[:-1]),
    "no header": ("heads.safetensors", lambda content: b"\xff" * 8 + content),
    "a foreign dtype": ("heads.safetensors", _header(lambda tensor: tensor.update(dtype="F8_E4M3"))),
    "another shape": ("heads.safetensors", _header(lambda tensor: tensor.update(shape=[0]))),
    "a negative shape": ("heads.safetensors", _header(lambda tensor: tensor.update(shape=[-1]))),
    "a shape beyond": ("heads.safetensors", _header(lambda tensor: tensor.update(shape=[2**62, 2**62]))),
}  # fmt: skip


def read_all(folder: Path) -> None:
    for case in golden.load_cases(folder):
        golden.case_inputs(case)
        golden.golden_expected(case)


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_golden_files_are_told_in_a_sentence(tmp_path: Path, kind: str) -> None:
    name, damage = DAMAGED[kind]
    for path in golden_folder().glob("heads.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    golden.forget()
    with pytest.raises(UsageError) as caught:
        read_all(tmp_path)
    golden.forget()
    assert str(tmp_path / "heads.") in str(caught.value) and len(str(caught.value)) < 600 + len(str(tmp_path))


@pytest.mark.parametrize("file", ["../x", "/tmp/x", "x/y", "X", "x.json", "\0"])
def test_a_golden_file_is_named_by_a_word(file: str) -> None:
    text = "attention batch=1 heads=1 length=2 width=2 dtype=float32 values=gaussian.1#987654"
    words = ("--requirement", "ATT-OUT-001", "--note", "n", "--source", "s", "--file", file)
    assert "no name of a golden file" in one_sentence("golden", "add", text, *words)


# Problems

ATTENTION = "attention batch=1 heads=1 length=4 width=2 dtype={dtype} values={values}"
LAYER = "multi_head_attention batch=1 heads=2 length=3 model=8 inner=8 dtype={dtype} values={values} source=self projection=plain"


@pytest.mark.parametrize("number", ["1e999", "inf", "-inf", "nan", "0", "-0.0", "0.0", "1e300", "-1e39"])
@pytest.mark.parametrize("form", [ATTENTION, LAYER])
def test_amplitudes_are_ordinary_numbers(form: str, number: str) -> None:
    assert "argument" in one_sentence("reproduce", form.format(dtype="float64", values=f"gaussian.1*{number}#0"), *NUMPY)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ("gaussian.1*60000.0#0", "float16"),
        ("offset.1*1e5#0", "float16"),
        ("gaussian.1*1e38#0", "float16"),
    ],
)
def test_values_beyond_the_dtype_are_no_problem(values: str, dtype: str) -> None:
    with pytest.raises(ProblemError, match=f"beyond {dtype}"):
        materialise(parse(ATTENTION.format(dtype=dtype, values=values)))


@pytest.mark.parametrize(
    "more",
    [
        "values=large-products.1*-1#0", "scale=inf", "scale=nan", "scale=1e999", "mask=random.1:qk*nan#1",
        "mask=count.1:qk*inf#1",
        "bias=gaussian.1:qk*1e999#1",
        "edits=query-row.1*inf#0", "edits=batch-row.1*nan#0", "edits=suffix.1*inf#0", "edits=perturb-head.1*-inf#0",
        "mask=random.1:qk#99999999999999999999", "mask=random.1:qk*1e#1",
    ],
)  # fmt: skip
def test_other_arguments_are_ordinary_numbers(more: str) -> None:
    text = f"{ATTENTION.format(dtype='float32', values='gaussian.1#0')} {more}"
    one_sentence("reproduce", text.replace("values=gaussian.1#0 ", "") if more.startswith("values") else text, *NUMPY)


@pytest.mark.parametrize(
    "sizes", ["batch=999999999999999999", "width=999999999999999999", "length=99999999999/4", "heads=99999999999/1"]
)
def test_problems_that_no_machine_holds_are_refused(sizes: str) -> None:
    name = sizes.partition("=")[0]
    words = [word for word in ATTENTION.format(dtype="float32", values="gaussian.1#0").split() if not word.startswith(name)]
    assert "too large" in one_sentence("reproduce", f"{' '.join(words)} {sizes}", *NUMPY)


def test_problems_with_special_numbers_by_transformations_are_problems() -> None:
    """What the specification asks stays legal: NaN and infinities where a transformation puts them."""
    for requirement in requirements().values():
        for problem in requirement.designed():
            assert parse(problem.text) == problem


WORDS = (
    *("attention", "sinusoidal_encoding", "multi_head_attention", "batch=1", "batch=0", "heads=2/1", "heads=5/3", "length=3"),
    *("width=2", "dtype=float16", "values=gaussian.1*2#1", "values=spread.1#1", "mask=random.1:qk*7#1", "bias=low.1:b1qk#0"),
    *("edits=suffix.1*1e5#0", "edits=loud-hidden.1#0", "edits=hidden-key.1*nan#1", "lengths=9", "rows=1,2", "model=4", "inner=4"),
    *("layout=reversed", "causal=default", "scale=-1e308", "source=self", "\x00"),
)
texts = st.text(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(WORDS[:3]), texts)
def test_any_text_is_a_problem_or_refused(operation: str, text: str) -> None:
    for words in (text, f"{operation} {text}"):
        made, sentence = attempted(words)
        assert len(sentence) < 1700
        assert made is None or parse(made.text) == made


def attempted(text: str) -> tuple[Problem | None, str]:
    """The problem of which the arrays could be made, or what was said."""
    try:
        problem = parse(text)
        materialise(problem)
    except ProblemError as error:
        return None, str(error)
    return problem, ""


def test_uneven_groups_of_heads_may_not_go_with_an_transformation() -> None:
    text = ATTENTION.format(dtype="float32", values="gaussian.1#0").replace("heads=1", "heads=5/3")
    with pytest.raises(ProblemError, match="does not fit this problem"):
        materialise(parse(f"{text} mask=right-padding.1:b11k#47 edits=loud-hidden.1#0"))
