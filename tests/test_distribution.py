"""Records say which released distribution an implementation comes from, and its version."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import hypothesis
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support, registry
from conformance.commands.describe import describe
from conformance.records import implementation_entry, read_records
from conformance.reports.format import provenance
from tests.support.commands import run_command


def entry(function, support: Support | None = None):
    return implementation_entry(Implementation("mine", function, support or Support(), FRAMEWORK))


def test_a_function_of_a_package_names_it_by_itself():
    found = entry(hypothesis.given)
    assert (found.distribution, found.distribution_version) == ("hypothesis", version("hypothesis"))


def test_a_wrapper_in_a_file_declares_it():
    implementation = Implementation("mine", direct, Support(distribution="numpy"), FRAMEWORK)
    assert implementation_entry(implementation).distribution_version == version("numpy")
    assert f"numpy {version('numpy')}" in describe(implementation)


def test_what_is_not_installed_is_said():
    assert entry(direct, Support(distribution="no-such-distribution")).distribution_version == "not installed"


def test_files_and_the_suite_itself_have_none(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def attention(query, key, value):\n    return value\n")
    mine = registry.resolve(f"{tmp_path}/mine.py:attention")
    assert implementation_entry(mine).distribution is None
    assert implementation_entry(registry.builtin()["numpy-direct"]).distribution is None
    assert implementation_entry(replace(mine, support=Support(distribution="numpy"))).distribution == "numpy"


def test_reports_tell_it(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "from conformance.adapter import Support\nfrom conformance.implementations.numpy_ import direct\n\n\n"
        "def attention(query, key, value):\n    return direct(query, key, value)\n\n\n"
        'attention.conformance = Support(distribution="numpy")\n'
    )
    words = ("--tier", "quick", "-n", "0", "--no-timing", "--no-diagnosis", "-k", "ATT-OUT-001")
    run_command("run", "--implementation", "mine.py:attention", *words, folder=tmp_path)
    lines = provenance(read_records(tmp_path / "reports" / "records.jsonl"))
    assert f"mine.py:attention: numpy {version('numpy')}" in lines
