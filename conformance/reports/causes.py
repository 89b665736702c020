"""What many unexpected failures have in common, so that one cause is told once and its consequences are folded under it.

A cause is a fault that the diagnosis has named or, from the recorded cases alone, a property that nearly all failures share and
few passes have: a dtype, a feature of the problem, a form of mask, a memory layout, a route.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from conformance.errors import ProblemError
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import float_type
from conformance.numerics.profiles import TIGHTEST_FIRST
from conformance.problem import parse
from conformance.records import Case, ImplementationEntry, Item, Run
from conformance.reports import tallies

LEAST = 3  # failing requirements of which anything common is said
NEARLY_ALL = 0.9
OF_CASES = 0.25  # the least share of the cases with a property that fail
OF_PASSES = 0.25  # the largest share of the passes that have it
SHOWN_IDS = 6
SHOWN_IMPLEMENTATIONS = 8

Property = tuple[str, str]  # kind and value
_DTYPES = re.compile(r"The output is (\w+).*, (?:expected|due is) (\w+)\.")
# How a property is said of failures, the most telling kind first, and what can be declared; {} is its value.
_SAID: dict[str, tuple[str, str]] = {
    "output": ("are of the {} beside a right output", ""),
    "dtype": ("are in {} alone", "declare dtypes without {}"),
    "dtypes": ("are in {}", "declare dtypes without {}"),
    "layout": ("have inputs that are {} in memory", "declare layouts without {}"),
    "feature": ("need {}", 'declare lacks={{"{}"}} if it is not offered'),
    "form of mask": ("have a mask of form {}", "declare mask_forms without {} if it is not taken"),
    "form of bias": ("have a bias of form {}", "declare mask_forms without {} if it is not taken"),
    "causal": ("are causal from the {}", ""),
    "route": ("are asked by {}", ""),
}
_KINDS = tuple(_SAID)


@dataclass(frozen=True)
class Cause:
    """One cause of unexpected failures of ``implementation``: a ``title``, the whole ``sentence``, and the ``requirements`` that
    fail for it alone, as far as the records tell; ``shared``: the property that their cases have in common, if it is one."""

    implementation: str
    title: str
    sentence: str
    requirements: tuple[str, ...]
    of_dtype: bool = False
    shared: Property | None = None


def causes(run: Run) -> list[Cause]:
    """The causes, implementation by implementation, each requirement under the first that explains it: faults, then what is
    common to the failures."""
    found: list[Cause] = []
    for name, items in _failing(run).items():
        left = [item.requirement for item in items]
        for cause in (*_explained(run, name, left), *_common_or_left(run, name, items)):
            covered = tuple(identifier for identifier in left if identifier in cause.requirements)
            if covered:
                found.append(replace(cause, requirements=covered))
                left = [identifier for identifier in left if identifier not in covered]
    return found


def unexplained(run: Run, found: Iterable[Cause]) -> tuple[Item, ...]:
    """The unexpected results that are no consequence of what was found."""
    folded = {(cause.implementation, identifier) for cause in found for identifier in cause.requirements}
    return tuple(item for item in run.unexpected if (item.implementation, item.requirement) not in folded)


def sentences(run: Run) -> list[str]:
    """The common part of the failures and what faults explain, for the verdict."""
    told = []
    failing = _failing(run)
    for name, items in failing.items():
        left = [item.requirement for item in items]
        common, explained = _common_or_left(run, name, items), list(_explained(run, name, left))
        # a dtype that fails hides everything else; of a feature, the fault says more
        found = [*common, *explained] if any(cause.of_dtype for cause in common) else [*explained, *common]
        prefix = f"{name}: " if len(run.implementations) > 1 else ""
        told += [f"{prefix}{cause.sentence}" if prefix else _capital(cause.sentence) for cause in found]
    return told


def listed(identifiers: Sequence[str]) -> str:
    more = f" and {len(identifiers) - SHOWN_IDS} more" if len(identifiers) > SHOWN_IDS else ""
    return ", ".join(identifiers[:SHOWN_IDS]) + more


def _failing(run: Run) -> dict[str, list[Item]]:
    """Unexpected failures by implementation, of the first few that have any."""
    grouped: dict[str, list[Item]] = defaultdict(list)
    for item in run.unexpected:
        if item.outcome.is_failure:
            grouped[item.implementation].append(item)
    return dict(list(grouped.items())[:SHOWN_IMPLEMENTATIONS])


def _explained(run: Run, name: str, failing: Sequence[str]) -> Iterator[Cause]:
    for diagnosis in run.diagnoses:
        for explanation in diagnosis.explanations if diagnosis.implementation == name else ():
            covered = tuple(identifier for identifier in failing if identifier in explanation.requirements)
            if covered:
                title = " and ".join(explanation.faults)
                told = f"the fault {title} explains" if len(explanation.faults) == 1 else f"the faults {title} together explain"
                share = f"{len(covered)} of {len(failing)} unexpected failures" if len(failing) > 1 else "the unexpected failure"
                yield Cause(name, f"explained by {title}", f"{told} {share}: {listed(covered)}.", covered)


def _common_or_left(run: Run, name: str, items: Sequence[Item]) -> list[Cause]:
    """What nearly all failures share, else what those share that no fault explains."""
    common = _common(run, name, items)
    failing = [item.requirement for item in items]
    explained = {identifier for cause in _explained(run, name, failing) for identifier in cause.requirements}
    left = [item for item in items if item.requirement not in explained]
    if common or len(left) == len(items):
        return common
    return [replace(cause, of_dtype=False) for cause in _common(run, name, left, "other ")]


def _common(run: Run, name: str, items: Sequence[Item], which: str = "") -> list[Cause]:
    """The property that tells most of what nearly all failures of the items share; nothing where there is none."""
    own, concerned = [case for case in run.cases if case.implementation == name], {item.requirement for item in items}
    failing = [c for c in own if c.status == "unexpected" and c.outcome.is_failure and c.requirement in concerned]
    passing = [case for case in own if case.stratum != "random" and case.outcome is Outcome.PASS]
    if len(items) < LEAST or not failing:
        return []
    best = _most_telling(items, failing, passing)
    if best is None:
        return _common_outcome(name, items, failing, which)
    covered = _covered(items, _shared(failing), best)
    kind, value = best
    said, advice = (text.format(value) for text in _SAID[kind])
    shared = [case for case in failing if case.requirement in covered]
    told = f"{_counted(len(covered), len(items), which)} {said}"
    returned = _returned(shared)
    refused = {case.outcome for case in shared} <= {Outcome.ERROR, Outcome.OUT_OF_MEMORY}
    if kind not in ("dtype", "dtypes") and not refused:
        advice = ""  # what is wrong is not fixed by saying that it is not offered
    if kind == "dtype" and returned:
        advice = f"{returned} is returned, {value} is expected: convert the output, or {advice}"
    else:
        told += _by_outcome(shared)
        advice = ", or ".join(filter(None, (advice, _looser_profile(run, run.implementations[name], kind, value, shared))))
    sentence = f"{told}: {advice}." if advice else f"{told}."
    return [Cause(name, f"those that {said}{_by_outcome(shared)}", sentence, covered, kind in ("dtype", "dtypes"), best)]


def _common_outcome(name: str, items: Sequence[Item], failing: Sequence[Case], which: str) -> list[Cause]:
    """Where no property tells failures from passes, how they fail may: of wrong values that says nothing."""
    outcomes: dict[str, set[Outcome]] = defaultdict(set)
    for case in failing:
        outcomes[case.requirement].add(case.outcome)
    alike = Counter(next(iter(found)) for found in outcomes.values() if len(found) == 1)
    outcome, number = alike.most_common(1)[0] if alike else (Outcome.PASS, 0)
    if outcome in (Outcome.WRONG_VALUE, Outcome.NONFINITE) or not _nearly_all(number, len(items)):
        return []
    covered = tuple(i.requirement for i in items if outcomes.get(i.requirement) == {outcome})
    returned = _returned([case for case in failing if case.requirement in covered])
    if returned:
        told = f"{_counted(number, len(items), which)} are {outcome}: {returned} is returned, whatever is expected"
        advice = f'convert the output, or declare dtypes=("{returned}",)'
        return [Cause(name, f"those that are {outcome}", f"{told}: {advice}.", covered, True)]
    message = Counter(case.message for case in failing if case.outcome is outcome).most_common(1)[0][0]
    told = f"{_counted(number, len(items), which)} are {outcome}, most often: {message}"
    return [Cause(name, f"those that are {outcome}", told, covered)]


def _most_telling(items: Sequence[Item], failing: Sequence[Case], passing: Sequence[Case]) -> Property | None:
    fails, passes = (Counter(p for case in cases for p in properties(case)) for cases in (failing, passing))
    shared = _shared(failing)
    telling = []
    for one, number in fails.items():
        covered = len(_covered(items, shared, one))
        share = number / (number + passes[one])
        if _nearly_all(covered, len(items)) and share >= OF_CASES and passes[one] <= OF_PASSES * len(passing) and passing:
            telling.append((-covered, -round(share, 1), _KINDS.index(one[0]), one))
    return min(telling)[-1] if telling else None


def _nearly_all(number: int, total: int) -> bool:
    return number >= LEAST and (number >= NEARLY_ALL * total or number == total - 1)


def _shared(failing: Iterable[Case]) -> dict[str, frozenset[Property]]:
    """What all unexpected failures of a requirement have in common, by requirement."""
    shared: dict[str, frozenset[Property]] = {}
    for case in failing:
        own = properties(case)
        shared[case.requirement] = shared.get(case.requirement, own) & own
    return shared


def _covered(items: Sequence[Item], shared: Mapping[str, frozenset[Property]], one: Property) -> tuple[str, ...]:
    """The requirements of which every unexpected failure has the property."""
    return tuple(item.requirement for item in items if one in shared.get(item.requirement, ()))


def properties(case: Case) -> frozenset[Property]:
    """What a case can have in common with others, by kind and value."""
    routes = [] if case.route == "native" else [("route", way) for way in case.route.split(",")]
    further = [("output", case.output)] if case.output else []
    return _properties(case.text) | {("dtype", case.dtype), *routes, *further}


@lru_cache(maxsize=1 << 16)
def _properties(text: str) -> frozenset[Property]:
    try:
        problem = parse(text)
    except ProblemError:  # records of another version, or of nobody's problem
        return frozenset()
    found: set[Property] = {("feature", feature) for feature in problem.features}
    if float_type(problem.dtype).is_16_bit:
        found.add(("dtypes", "float16 and bfloat16"))
    for kind in ("mask", "bias"):
        recipe = getattr(problem, kind, None)
        if recipe is not None:
            found.add((f"form of {kind}", recipe.form))
    layout, causal = getattr(problem, "layout", "contiguous"), getattr(problem, "causal", "none")
    if layout != "contiguous":
        found.add(("layout", layout))
    if causal in ("top-left", "bottom-right"):
        found.add(("causal", causal.replace("-", " ")))
    return frozenset(found)


def _counted(number: int, total: int, which: str) -> str:
    """``which``: of which failures, "other " or nothing."""
    return f"all {'' if number == total else f'but {total - number} of '}{total} {which}unexpected failures"


def _by_outcome(cases: Sequence[Case]) -> str:
    """How they fail, where that is one thing and not wrong values, of which nothing need be said."""
    outcomes = {case.outcome for case in cases}
    return f" ({outcomes.pop()})" if len(outcomes) == 1 and outcomes != {Outcome.WRONG_VALUE} else ""


def _returned(cases: Sequence[Case]) -> str:
    """The dtype that is returned for another one, where that is what is wrong with all."""
    returned = {match[1] if (match := _DTYPES.match(case.message)) else "" for case in cases}
    same = len(returned) == 1 and all(case.outcome is Outcome.WRONG_DTYPE for case in cases)
    return returned.pop() if same else ""


def _looser_profile(run: Run, entry: ImplementationEntry, kind: str, dtype: str, failing: Sequence[Case]) -> str:
    """The tightest profile under which all golden and designed cases of the dtype pass, where none is declared for it."""
    wrong_by_much = any(case.outcome is not Outcome.WRONG_VALUE or case.r is None for case in failing)
    if kind != "dtype" or dtype in entry.profile or wrong_by_much:
        return ""
    distributions = tallies.accuracies(run)[entry.name].distributions
    met = [p for p in TIGHTEST_FIRST[dtype] if (d := distributions.get((dtype, p))) is not None and d.max <= 1]
    return f"the profile {met[0]}" if met else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
