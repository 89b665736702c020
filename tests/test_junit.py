"""JUnit XML, as the schemas of Jenkins' and Maven Surefire's readers have it in common."""

import re
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance import reports
from conformance.judging.verdict import Outcome
from tests.support import runs

ATTRIBUTES = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "disabled"}, set()),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors", "skipped", "time"},
    ),
    "properties": (set(), set()),
    "property": ({"name", "value"}, {"name", "value"}),
    "testcase": ({"name", "classname", "time"}, {"name", "classname", "time"}),
    "failure": ({"message", "type"}, {"type"}),
    "error": ({"message", "type"}, {"type"}),
    "skipped": ({"message"}, set()),
}
CHILDREN = {
    "testsuites": ["testsuite"], "testsuite": ["properties", "testcase"], "properties": ["property"],
    "testcase": ["skipped", "error", "failure"],
}  # fmt: skip


@pytest.fixture
def junit(tmp_path: Path) -> ElementTree.Element:
    identifiers = [f"ATT-OUT-{number:03}" for number in range(1, 6)]
    outcomes = (
        {}, runs.FAILS, {"outcome": Outcome.CRASH, "status": "unexpected"}, {"outcome": Outcome.UNSUPPORTED},
        {"outcome": Outcome.WRONG_VALUE, "reason": "known \x00 \x1b[31m"},
    )  # fmt: skip
    items = [runs.item("flawed", r, seconds=1234.5678, **how) for r, how in zip(identifiers, outcomes, strict=True)]
    case = runs.case(1, "flawed", identifiers[1], outcome="WRONG_VALUE", message="At (0,): got <nan> & \x0c")
    convention = runs.convention("flawed", observed="nan", agrees=False)
    run = runs.run(tmp_path, runs.header(["fine", "flawed"], identifiers, selection="a part"), *items, case, convention)
    return ElementTree.fromstring(reports.junit_xml(run))


def test_junit_has_the_elements_and_attributes_that_readers_take(junit: ElementTree.Element) -> None:
    assert junit.tag == "testsuites"
    for element in junit.iter():
        allowed, expected = ATTRIBUTES[element.tag]
        assert set(element.attrib) <= allowed, element.tag
        assert expected <= set(element.attrib), element.tag
        children = [child.tag for child in element]
        known = CHILDREN.get(element.tag, [])
        assert set(children) <= set(known), element.tag
        assert children == sorted(children, key=known.index), f"the order in {element.tag}"
    assert all(len(list(case)) <= 1 for case in junit.iter("testcase")), "one result a case"


def test_junit_numbers_and_times_are_those_of_the_schemas(junit: ElementTree.Element) -> None:
    time = re.compile(r"\d+(\.\d{1,3})?")  # no thousands separator, no exponent
    for element in [*junit.iter("testsuite"), *junit.iter("testcase"), junit]:
        assert time.fullmatch(element.attrib["time"]), element.attrib["time"]
    for suite in junit.iter("testsuite"):
        datetime.strptime(suite.attrib["timestamp"], "%Y-%m-%dT%H:%M:%S")
    counted = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error", "skipped": "testcase/skipped"}
    for suite in junit.iter("testsuite"):
        assert {name: int(suite.attrib[name]) for name in counted} == {n: len(suite.findall(p)) for n, p in counted.items()}
    for name in ("tests", "failures", "errors"):
        assert int(junit.attrib[name]) == sum(int(suite.attrib[name]) for suite in junit.iter("testsuite"))


def test_junit_cases_have_names_of_their_own(junit: ElementTree.Element) -> None:
    names = [(case.attrib["classname"], case.attrib["name"]) for case in junit.iter("testcase")]
    assert len(names) == len(set(names)) == 6
    assert junit.find(".//failure[@type='WRONG_VALUE']") is not None
    assert junit.find(".//error[@type='CRASH']") is not None
