"""What there is, in words: implementations, what each declares, requirements and conventions."""

import difflib
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from tabulate import tabulate

from conformance.adapter import Implementation, Support
from conformance.adapter.declarations import advice_on_unread, known_features
from conformance.adapter.limits import in_words
from conformance.adapter.own_code import facts_of
from conformance.adapter.routes import offered_ways
from conformance.errors import UsageError, quoted
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.harness.subject import Subject
from conformance.numerics.profiles import DECLARABLE, UNDECLARED
from conformance.operations import operation_of
from conformance.problem.returned import OUTPUT
from conformance.records.distribution import distribution_of
from conformance.specification import WITHDRAWN, conventions, requirements
from conformance.specification.observing import MIXED, Observation
from conformance.specification.requirement import AREAS, CHECKS, Convention, Requirement
from conformance.values.golden import GoldenCase, case_of, load_cases

WIDTH = 116
SHOWN_SIZES = 12


def list_all(implementations: Iterable[Implementation]) -> str:
    """The implementations, and whether each can run here; areas of requirements; conventions."""
    rows = [
        (i.name, i.operation, i.framework.name, i.missing() or ("where named" if i.when_named else "yes"))
        for i in implementations
    ]
    sizes = Counter(requirement.area for requirement in requirements().values())
    areas = [(f"ATT-{area}", title, sizes[area]) for area, title in AREAS.items()]
    questions = [(c.id, ", ".join(c.operations), c.question) for c in conventions().values()]
    return "\n\n".join(
        [
            tabulate(rows, ("implementation", "operation", "framework", "runs here")),
            tabulate(areas, ("requirements", "area", "number")),
            tabulate(questions, ("convention", "operations", "question"), maxcolwidths=[None, 22, None]),
        ]
    )


def describe(implementation: Implementation) -> str:
    """What the implementation declares, and how it is asked for what it does not offer; conventions as observed too."""
    return "\n".join(parts(implementation))


def parts(implementation: Implementation) -> Iterator[str]:
    """The same, what is declared first: to observe, the implementation has to be called."""
    missing = implementation.missing()
    support = implementation.support
    framework = implementation.framework
    lines = [
        ("name", implementation.name),
        ("source", implementation.source),
        ("operation", support.operation),
        ("framework", framework.name if missing else f"{framework.name} {framework.version()}"),
        ("distribution", " ".join(distribution_of(implementation) or ())),
        ("device", support.device),
        ("runs here", missing or "yes"),
        ("dtypes", ", ".join(_dtype(name, support.profile_for(name)) for name in support.dtypes)),
    ]
    if operation_of(support.operation).problem.has("layout"):
        lines += [("layouts", ", ".join(support.layouts)), ("axes", support.axes)]
    lines += [("features", ", ".join(sorted(implementation.features)) or "none"), *_not_native(implementation)]
    lines += [("called", ", ".join(f"{ours} as {theirs}" for ours, theirs in _renamed(implementation)))]
    lines += [("not read", f"{sentence}.") for sentence in advice_on_unread(implementation)]
    if "mask" in implementation.features or "bias" in implementation.features:
        lines.append(("mask forms", ", ".join(support.mask_forms)))
    if "key-lengths" in implementation.features:
        lines.append(("key lengths", support.lengths_dtype))
    if support.exclusive:
        lines.append(("exclusive", f"{', '.join(sorted(support.exclusive))}: one at a time"))
    lines += _limits(support)
    if support.scale_dtype:
        lines.append(("scale", f"held in {support.scale_dtype}: judged as rounded so"))
    lines += [("returns", ", ".join(support.returns))] if support.returns != (OUTPUT,) else []
    lines += [("binds", "the function returns the computation")] if support.binds else []
    lines += [("compiles", "for each new shape, so that free shapes are left out")] if support.compiles else []
    lines += [("shapes", f"a budget of {support.shapes}: problems beyond it are left out")] if support.shapes else []
    lines.append(("own sizes", _few(facts_of(implementation, thorough=True).sizes)))
    yield "\n".join(_entry(name, value) for name, value in lines if value) + "\n"
    yield _conventions(implementation, observe=missing is None)


def explain(identifier: str) -> str:
    """The requirement, convention, fault or golden case called ``identifier``; raises UsageError, with what is alike, where there
    is none."""
    name = identifier.upper()
    if name.startswith("GOLD-"):
        return _golden_case(case_of(name))
    if name in requirements():
        return _requirement(requirements()[name])
    if name in WITHDRAWN:
        raise UsageError(f"{name} is withdrawn, since nothing could fail it: see {WITHDRAWN[name]}.")
    if name in conventions():
        return _convention(conventions()[name])
    if identifier in catalogue():
        return _fault(catalogue()[identifier])
    if identifier in DECLARABLE:
        return "\n".join(
            [*_heading(identifier, f"Numerics profile: {DECLARABLE[identifier]}."), "docs/budget.md has its constants."]
        )
    known = [*requirements(), *conventions()]
    alike = difflib.get_close_matches(name, known, n=3) or difflib.get_close_matches(identifier, catalogue(), n=3)
    hint = f"did you mean {', '.join(alike)}?" if alike else "`attention-conformance list` shows what there is."
    raise UsageError(f"There is no requirement, convention, fault or golden case {quoted(identifier)}: {hint}")


def _few(sizes: tuple[int, ...]) -> str:
    """The sizes that are declared or stand in its source, as many as a line is worth."""
    more = f" and {len(sizes) - SHOWN_SIZES} more" if len(sizes) > SHOWN_SIZES else ""
    return ", ".join(map(str, sizes[:SHOWN_SIZES])) + more


def _limits(support: Support) -> Iterator[tuple[str, str]]:
    """What is taken of the features that it offers."""
    yield "limits", in_words(support)
    yield "declines", ", ".join(kind.__name__ for kind in support.declines)


def _dtype(name: str, profile: str | None) -> str:
    return f"{name} ({profile or f'no profile declared: judged as {UNDECLARED}'})"


def _not_native(implementation: Implementation) -> Iterator[tuple[str, str]]:
    """Features that the suite emulates, each with the way, and those that cannot be asked for."""
    offered = implementation.features
    emulated: list[str] = []
    lacking: list[str] = []
    for feature in known_features(implementation.operation):
        if feature == "padding":  # a way to ask for masks and lengths, which no problem asks for itself
            continue
        ways = offered_ways(feature, implementation)
        if feature not in offered:
            (emulated if ways else lacking).append(f"{feature} (by {ways[0]})" if ways else feature)
    yield "emulated", ", ".join(emulated)
    yield "lacks", ", ".join(lacking)


def _renamed(implementation: Implementation) -> list[tuple[str, str]]:
    """The suite's and the function's own names of parameters, where they differ."""
    return [(ours, theirs) for ours, theirs in implementation.calling.spelled.items() if ours != theirs]


def _conventions(implementation: Implementation, observe: bool) -> str:
    subject = Subject(implementation)
    rows = []
    for question in conventions().values():
        declared = implementation.support.conventions.get(question.id)
        if question.is_asked_of(implementation.operation, implementation.support.returns) or declared:
            seen = subject.observation(question.id) if observe else None
            observed = "cannot run here" if not observe else seen.answer if seen else "unsupported"
            rows.append((question.id, declared or "–", observed, _remark(question, declared, seen)))
    return tabulate(rows, ("convention", "declared", "observed", ""), maxcolwidths=[None, None, None, 60]).rstrip()


def _remark(question: Convention, declared: str | None, seen: Observation | None) -> str:
    """What is wrong with an answer; nothing where nothing is."""
    if seen is None:
        return ""
    if seen.answer == MIXED:
        return seen.places
    if seen.answer not in question.legitimate:
        return seen.raised.get(seen.answer) or f"no answer that an interface should have: {question.meaning(seen.answer)}"
    return "they differ" if declared not in (None, seen.answer) else ""


def _requirement(requirement: Requirement) -> str:
    designed = list(requirement.designed())
    golden = [case for case in load_cases() if case.requirement == requirement.id]
    lines = [
        ("area", AREAS[requirement.area]),
        ("operation", requirement.operation),
        ("why", requirement.rationale),
        ("source", requirement.source),
        ("check", f"{requirement.check}: {CHECKS[requirement.check]}"),
        ("random", "drawn by Hypothesis" if requirement.random else "none"),
        ("golden", ", ".join(case.id for case in golden) or "none"),
        ("designed", f"{len(designed)} problem{'' if len(designed) == 1 else 's'}"),
        ("adapted", f"to {requirement.adapts_to}" if requirement.adapts_to else ""),
    ]
    heading, texts = _heading(requirement.id, requirement.sentence), [f"  {problem.text}" for problem in designed]
    return "\n".join([*heading, *(_entry(*line) for line in lines if line[1]), *texts])


def _fault(fault: Fault) -> str:
    lines = [
        ("operation", fault.operation),
        ("needs", ", ".join(sorted(fault.needs)) or "nothing"),
        ("shows in", ", ".join(fault.dtypes)),
        ("violates", ", ".join(fault.requirements)),
        ("seen in", "; ".join(fault.sources) or "none that is public"),
    ]
    return "\n".join([*_heading(fault.id, f"An implementation that {fault.sentence}."), *(_entry(*line) for line in lines)])


def _golden_case(case: GoldenCase) -> str:
    lines = [
        ("requirement", f"{case.requirement}: {requirements()[case.requirement].sentence}"),
        ("source", case.source),
        ("made from", case.made_from),
        ("file", f"golden/{case.file.name}, with {', '.join((*case.inputs, *case.expected))}"),
    ]
    return "\n".join([*_heading(case.id, case.note), *(_entry(*line) for line in lines), f"  {case.problem.text}"])


def _convention(convention: Convention) -> str:
    width = max(map(len, convention.answers))
    answers = [
        textwrap.fill(
            f"  {answer:<{width}}  {meaning}{'' if answer in convention.legitimate else ' (unexpected)'}",
            WIDTH,
            subsequent_indent=" " * (width + 4),
        )
        for answer, meaning in convention.answers.items()
    ]
    lines = [("operations", ", ".join(convention.operations)), ("source", convention.source)]
    return "\n".join([*_heading(convention.id, convention.question), *(_entry(*line) for line in lines), "answers", *answers])


def _heading(identifier: str, sentence: str) -> list[str]:
    return [identifier, textwrap.fill(sentence, WIDTH), ""]


def _entry(name: str, value: str) -> str:
    return textwrap.fill(f"{name:<11} {value}", WIDTH, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False)
