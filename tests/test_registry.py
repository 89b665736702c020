"""Built-in implementations are found without their frameworks; a user's function becomes one, a user's mistake one sentence."""

import subprocess
import sys
import textwrap

import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.errors import UsageError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder; Python's path and modules are afterwards what they were."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder, name: str, text: str) -> None:
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


MINE = """
    from conformance.adapter import Support

    def attention(query, key, value, *, mask=None, causal=False, dropout=0.0):
        return value

    def declared(q, k, v, scale=None):
        return v

    declared.conformance = Support(framework="torch", axes="blhd", profile="fused", lacks=frozenset({"grouped-heads"}))

    class Kernel:
        def __call__(self, q, k, v, *, bias=None):
            return v

    kernel = Kernel()
    number = 3
"""


def sentence(spec: str, **given: str) -> str:
    with pytest.raises(UsageError) as caught:
        registry.resolve(spec, **given)
    text = str(caught.value)
    assert "\n" not in text
    return text


# ---- what is built in


def test_every_framework_and_every_tutorial_is_there():
    names = set(registry.builtin())
    assert {"numpy-direct", "numpy-blocked", "torch-sdpa-flash", "torch-mha", "jax-nn-sdpa", "torch-cuda-sdpa-cudnn"} <= names
    documents = {"000-multi-head", "000-positional", "001-attention", "003-numpy", "003-multi-head"}
    assert {f"document-{document}" for document in documents} <= names
    assert set(registry.frameworks()) == {"numpy", "torch", "jax"}


def test_each_says_where_it_is_defined():
    for name, implementation in registry.builtin().items():
        path, _, line = implementation.source.partition(":")
        assert implementation.name == name
        assert path.startswith("implementations/") and path.endswith(".py") and int(line) > 1


def test_listing_imports_no_framework():
    program = (
        "import sys; from conformance.adapter import registry; registry.builtin(); registry.frameworks();"
        "print(sorted({'torch', 'jax'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_package_implementations_of_the_users_own_changes_nothing(folder):
    (folder / "implementations").mkdir()
    write(folder / "implementations", "__init__.py", "raise RuntimeError('the package of the user was imported')")
    command = [sys.executable, "-m", "conformance", "run", "--implementation", "document-003-numpy", "--tier", "quick"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Every result is as expected" in ran.stdout and "known failures" in ran.stdout  # its expectations were found


def test_patterns_select_in_the_order_of_the_list():
    chosen = [implementation.name for implementation in registry.select(["torch-sdpa*", "numpy-direct", "numpy-*"])]
    assert chosen == [name for name in registry.builtin() if name.startswith(("torch-sdpa", "numpy-"))]


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(UsageError, match=r"'tensorflow-\*'"):
        registry.select(["numpy-direct", "tensorflow-*"])


def test_a_misspelt_name_gets_advice():
    assert "did you mean numpy-direct" in sentence("numpy-dirct")
    assert "numpy-blocked" in sentence("qqq")


def test_a_builtin_name_resolves_to_itself():
    assert registry.resolve("numpy-direct", framework="torch") is registry.builtin()["numpy-direct"]


# ---- functions of the user's own


@pytest.mark.parametrize("place", ["mine", "mine.py", "./mine.py", "{folder}/mine.py"])
def test_a_plain_function_is_an_implementation(folder, place):
    write(folder, "mine.py", MINE)
    spec = f"{place.format(folder=folder)}:attention"
    found = registry.resolve(spec)
    assert isinstance(found, Implementation)
    assert (found.name, found.framework.name, found.operation, found.options) == (spec, "numpy", "attention", ())
    assert found.features == {"mask", "causal", "grouped-heads", "value-width", "cross-length"}
    assert found.source == "mine.py:4"


def test_what_a_function_declares_counts(folder):
    write(folder, "mine.py", MINE)
    found = registry.resolve("mine:declared")
    assert found.framework.name == "torch"
    assert (found.support.axes, found.support.profile_for("float16")) == ("blhd", "fused")
    assert "grouped-heads" not in found.features


def test_options_go_before_what_is_declared_and_are_kept_for_reproduction(folder):
    write(folder, "mine.py", MINE)
    found = registry.resolve("mine:declared", framework="jax", axes="bhld")
    assert (found.framework.name, found.support.axes, found.support.profile) == ("jax", "bhld", "fused")
    assert found.options == ("--framework=jax", "--axes=bhld")


def test_an_instance_that_can_be_called_and_a_ready_implementation(folder):
    write(folder, "mine.py", MINE)
    write(
        folder,
        "ready.py",
        """
        from dataclasses import replace
        from conformance.adapter.registry import builtin
        ready = replace(builtin()["numpy-direct"], name="renamed")
        """,
    )
    assert "bias" in registry.resolve("mine:kernel").features
    assert registry.resolve("ready:ready").name == "renamed"


def test_a_file_imports_its_neighbours_and_is_loaded_once(folder):
    (folder / "deep").mkdir()
    write(folder, "deep/helper.py", "def work(q, k, v): return v\n")
    write(folder, "deep/user.py", "from helper import work\nmarker = object()\ndef attention(q, k, v): return work(q, k, v)\n")
    first, second = (registry.resolve("deep/user.py:attention").function for _ in range(2))
    assert first is second


def test_other_operations(folder):
    write(
        folder,
        "ops.py",
        """
        def heads(query, key, value, weights, *, num_heads, mask=None): ...
        def encoding(length, d_model, dtype=None): ...
        """,
    )
    assert "mask" in registry.resolve("ops:heads", operation="multi_head_attention").features
    assert "addition" not in registry.resolve("ops:encoding", operation="sinusoidal_encoding").features


# ---- mistakes


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nowhere:attention", "no module 'nowhere'"),
        ("nowhere.deeper:attention", "no module 'nowhere'"),
        ("nowhere.py:attention", "no Python file"),
        ("mine:", "names no function"),
        (":attention", "names no function"),
        ("mine:atention", "did you mean attention?"),
        ("mine:zzz", "it defines attention, declared"),
        ("mine:number", "int and cannot be called"),
        ("mine:Kernel", "is a class"),
    ],
)
def test_what_cannot_be_found(folder, spec, expected):
    write(folder, "mine.py", MINE)
    assert expected in sentence(spec)


@pytest.mark.parametrize("place", ["broken", "broken.py"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\nraise RuntimeError('no licence')\n", ("RuntimeError: no licence", "broken.py:2")),
        ("def f(:\n", ("SyntaxError", "broken.py:1")),
        ("import not_installed_anywhere\n", ("ModuleNotFoundError", "not_installed_anywhere", "broken.py:1")),
        ("import json\n\n\njson.loads('{')\n", ("JSONDecodeError", "broken.py:4")),
        ("raise SystemExit(3)\n", ("SystemExit: 3", "broken.py:1")),
    ],
)
def test_what_cannot_be_imported(folder, place, text, expected):
    write(folder, "broken.py", text)
    said = sentence(f"{place}:attention")
    assert all(part in said for part in ("Importing broken", *expected)), said


@pytest.mark.parametrize(
    ("signature", "operation", "expected"),
    [
        ("q, k", "attention", "takes 2 positional parameters, where attention passes 3: query, key, value."),
        ("*, q, k, v", "attention", "takes 0 positional parameters"),
        ("q, k, v, dropout", "attention", "demands 'dropout', which attention does not know"),
        ("q, k, v, *, dropout", "attention", "demands 'dropout', which attention does not know"),
        ("q, k, v, mask", "attention", "demands 'mask', which is passed only where a problem asks for it: give it a default."),
        ("q, k, mask=None", "attention", "'mask' in the place of value"),
        ("q, k, v, w", "multi_head_attention", "no parameter 'num_heads'"),
        ("q, k, v", "multi_head_attention", "takes 3 positional parameters, where multi_head_attention passes 4"),
        ("length", "sinusoidal_encoding", "takes 1 positional parameters, where sinusoidal_encoding passes 2"),
    ],
)
def test_what_cannot_be_called(folder, signature, operation, expected):
    write(folder, "wrong.py", f"def function({signature}): ...\n")
    assert expected in sentence("wrong:function", operation=operation)


@pytest.mark.parametrize(
    ("signature", "operation"),
    [
        ("*arrays, **options", "attention"),
        ("q, k, v, /, **options", "attention"),
        ("q, k, v, mask=None, window=None", "attention"),
        ("q, k, v, weights, num_heads", "multi_head_attention"),
        ("q, k, v, weights, **options", "multi_head_attention"),
        ("length, d_model, dtype", "sinusoidal_encoding"),
    ],
)
def test_what_can_be_called(folder, signature, operation):
    write(folder, "right.py", f"def function({signature}): ...\n")
    assert registry.resolve("right:function", operation=operation).operation == operation


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"framework": "tourch"}, "Unknown framework 'tourch': did you mean torch?"),
        ({"operation": "atention"}, "Unknown operation 'atention': did you mean attention"),
        ({"axes": "hbld"}, "Unknown order of axes 'hbld': did you mean"),
        ({"profile": "exact"}, "Unknown numerics profile 'exact'"),
    ],
)
def test_words_that_mean_nothing(folder, given, expected):
    write(folder, "mine.py", MINE)
    assert expected in sentence("mine:attention", **given)


def test_a_declaration_that_is_no_support(folder):
    write(folder, "mine.py", "def attention(q, k, v): ...\nattention.conformance = {'axes': 'blhd'}\n")
    said = sentence("mine:attention")
    assert "type dict" in said and Support.__name__ in said


def test_a_declaration_of_wrong_types_is_one_sentence(tmp_path):
    file = tmp_path / "wrongly.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def f(query, key, value): ...\n"
        "f.conformance = Support(dtypes='float32')\n"
        "def g(query, key, value, *, mask=None): ...\n"
        "g.conformance = Support(features=['mask'])\n"
    )
    with pytest.raises(UsageError, match="dtypes"):
        registry.resolve(f"{file}:f")
    assert registry.resolve(f"{file}:g").support.features == frozenset({"mask"})


def test_dtypes_and_lacks_can_be_given_as_words(folder):
    write(folder, "mine.py", MINE)
    found = registry.resolve("mine.py:attention", dtypes="float32, float16", lacks="grouped-heads,bias")
    assert found.support.dtypes == ("float32", "float16")
    assert found.support.lacks == {"grouped-heads", "bias"}
    assert found.options == ("--dtypes=float32,float16", "--lacks=grouped-heads,bias")
