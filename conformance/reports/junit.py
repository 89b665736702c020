"""A run as JUnit XML: a suite per implementation, a test case per requirement, per convention and per timed call."""

import re
from xml.etree import ElementTree

from conformance.judging.verdict import Outcome
from conformance.records import Case, ConventionResult, Growth, Item, Run, Timing, Undeclared
from conformance.reports import tallies
from conformance.reports.format import stamp
from conformance.reports.shown import Choice
from conformance.reports.speed import timed
from conformance.system.terminal_text import REPLACEMENT, printable

SHOWN_CASES = 5
_RAISED = frozenset({Outcome.ERROR, Outcome.OUT_OF_MEMORY, Outcome.TIMEOUT, Outcome.CRASH})
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 has no way to write


def junit_xml(run: Run) -> str:
    """Unexpected results are failures, or errors where the implementation raised or died; known failures, unsupported and
    skipped requirements are skipped, with the reason. A convention fails where its answer is not as expected, a timed call where
    its own output does, an area where it is neither offered nor declared as lacking. What was expected and has no result is an
    error."""
    root = ElementTree.Element("testsuites", name=_title(run))
    grouped, choice = tallies.unexpected_by_item(run), Choice(run)
    for name in run.implementations:
        items = [item for item in run.items if item.implementation == name]
        suite = ElementTree.SubElement(root, "testsuite", name=name, timestamp=f"{run.header.started:%Y-%m-%dT%H:%M:%S}")
        _properties(suite, run)
        for item in items:
            _case(suite, item, choice.of(grouped.get((item.requirement, name), [])))
        for convention in run.conventions:
            if convention.implementation == name:
                _convention(suite, convention)
        for timing in run.timed:
            if timing.implementation == name:
                _timing(suite, timing)
        for one in run.undeclared:
            if one.implementation == name:
                _undeclared(suite, one)
        for identifier in run.missing.get(name, ()):
            _missing(suite, name, identifier)
        _count(suite, sum(item.seconds for item in items))
    _total(root)
    _make_writable(root)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _title(run: Run) -> str:
    mark = f" ({stamp(run)})" if stamp(run) else ""
    return f"attention-conformance {run.header.suite}, specification {run.header.specification}{mark}"


def _properties(suite: ElementTree.Element, run: Run) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    values = {
        "suite": run.header.suite,
        "specification": run.header.specification,
        "tier": run.header.tier,
        "seed": str(run.header.seed),
        "conformance-result": stamp(run) or "yes",
    }
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)


def _case(suite: ElementTree.Element, item: Item, cases: list[Case]) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=item.implementation, name=item.requirement, time=f"{item.seconds:.3f}"
    )
    kind = tallies.kind_of(item)
    if kind == tallies.UNEXPECTED:
        tag = "error" if item.outcome in _RAISED else "failure"
        message = item.reason or (cases[0].message if cases else "")
        result = ElementTree.SubElement(element, tag, type=str(item.outcome), message=message)
        result.text = "\n\n".join(_text(case) for case in cases[:SHOWN_CASES])
    elif kind != tallies.PASSED:
        why = f"known failure, {item.outcome}" if kind == tallies.KNOWN else kind
        ElementTree.SubElement(element, "skipped", message=f"{why}: {item.reason}")


def _convention(suite: ElementTree.Element, convention: ConventionResult) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=convention.implementation, name=convention.id, time="0")
    if convention.status == "unexpected":
        ElementTree.SubElement(element, "failure", type="convention", message=convention.message)
    elif convention.reason:
        message = f"known answer, {convention.observed}: {convention.reason}"
        ElementTree.SubElement(element, "skipped", message=message)


def _undeclared(suite: ElementTree.Element, one: Undeclared) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=one.implementation, name=f"area: {one.area}", time="0")
    ElementTree.SubElement(element, "failure", type="undeclared", message=one.sentence)


def _missing(suite: ElementTree.Element, implementation: str, identifier: str) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=_plain(implementation), name=_plain(identifier), time="0")
    ElementTree.SubElement(
        element, "error", type="missing", message="It was expected and has no result: the suite itself failed."
    )


def _timing(suite: ElementTree.Element, timing: Timing | Growth) -> None:
    name = f"timed: {timed(timing)}"
    element = ElementTree.SubElement(suite, "testcase", classname=timing.implementation, name=name, time="0")
    if timing.status == "unexpected":
        tag = "error" if timing.outcome in _RAISED else "failure"
        ElementTree.SubElement(element, tag, type=str(timing.outcome), message=timing.message)
    elif timing.outcome is not Outcome.PASS:
        why = f"known failure, {timing.outcome}" if timing.outcome.is_failure else str(timing.outcome)
        ElementTree.SubElement(element, "skipped", message=f"{why}: {timing.message}")


def _text(case: Case) -> str:
    return "\n".join(line for line in (f"{case.id}: {case.outcome}", case.text, case.message, case.reason, case.repro) if line)


def _count(suite: ElementTree.Element, seconds: float) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{seconds:.3f}")


def _total(root: ElementTree.Element) -> None:
    """The sums over the suites that readers take from the root, where the schemas know no number of skipped cases."""
    for attribute in ("tests", "failures", "errors"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")


def _make_writable(root: ElementTree.Element) -> None:
    """Every text and attribute without what XML cannot hold, whatever made it."""
    for element in root.iter():
        element.text = None if element.text is None else _plain(element.text)
        for name, value in element.attrib.items():
            element.set(name, _plain(value))


def _plain(text: str) -> str:
    return _NOT_XML.sub(REPLACEMENT, printable(text))
