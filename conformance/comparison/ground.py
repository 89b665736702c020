"""What two runs have in common: only where they asked the same can their answers be compared."""

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.errors import UsageError
from conformance.records import Environment, ImplementationEntry, Run

# Which random cases are drawn depends on these, and on nothing else.
_OF_DRAWS = ("suite", "specification", "tier", "seed")
_DECLARED = ("dtypes", "features", "layouts", "profile", "conventions", "device", "operation")  # by an implementation


@dataclass(frozen=True)
class Ground:
    """``requirements`` with one meaning in both runs; whether the specification, the random cases and the machine are the same;
    ``remarks`` on what therefore is not compared, and ``differences`` as facts."""

    requirements: frozenset[str]
    implementations: frozenset[str]
    same_specification: bool
    same_draws: bool
    same_machine: bool
    remarks: tuple[str, ...]
    differences: tuple[str, ...]


def ground(base: Run, new: Run) -> Ground:
    """Raises UsageError where the runs share no result at all."""
    _demand_common_results(base, new)
    reworded = {name for name, entry in new.requirements.items() if base.requirements.get(name, entry) != entry}
    draws, other_draws = [_draws(run) for run in (base, new)], []
    if draws[0] != draws[1]:
        other_draws = [f"{name} {before} and {after}" for name, before in draws[0].items() if (after := draws[1][name]) != before]
    same_specification = base.header.specification == new.header.specification
    machines = [_machine(run.environment) for run in (base, new)]
    return Ground(
        requirements=frozenset(base.requirements.keys() & new.requirements.keys()) - reworded,
        implementations=frozenset(base.implementations.keys() & new.implementations.keys()),
        same_specification=same_specification,
        same_draws=not other_draws,
        same_machine=machines[0] == machines[1],
        remarks=tuple(_remarks(base, new, reworded, other_draws)),
        differences=tuple(_differences(base, new)),
    )


def _demand_common_results(base: Run, new: Run) -> None:
    results = [_results(run) for run in (base, new)]
    if not results[0] & results[1]:
        judged = [", ".join(sorted({name for name, *_ in some})[:5]) or "nothing" for some in results]
        raise UsageError(
            f"The two runs have no result in common, so there is nothing to compare: the base is of {judged[0]}, the new run of "
            f"{judged[1]}, and no requirement or timing of one implementation is in both."
        )


def _results(run: Run) -> set[tuple[str, ...]]:
    """What was judged or timed, the implementation first."""
    judged = {(item.implementation, item.requirement) for item in run.items}
    return judged | {(t.implementation, t.operation, t.suite, t.shape, t.dtype, t.passes, t.device) for t in run.timings}


def _draws(run: Run) -> dict[str, str]:
    """All that decides which random cases an item is given."""
    found = {name: " and ".join(sorted({str(getattr(header, name)) for header in run.headers})) for name in _OF_DRAWS}
    found["Hypothesis"] = " and ".join(sorted({h.environment.packages.get("hypothesis", "unknown") for h in run.headers}))
    found["examples"] = (
        str(max((item.examples for item in run.items), default=0)) if run.header.tier == "custom" else "the tier's"
    )
    return found


def _machine(environment: Environment) -> tuple[str, ...]:
    return environment.platform, environment.machine, environment.cpu, f"{environment.cores} cores"


def _remarks(base: Run, new: Run, reworded: set[str], other_draws: list[str]) -> Iterator[str]:
    if other_draws:
        yield (
            f"Random cases were drawn differently ({', '.join(other_draws)}), so failures in random cases alone are not compared."
        )
    versions = base.header.specification, new.header.specification
    if reworded:
        yield (
            f"Requirements that say something else in the new run (specification {versions[1]}) than in the base ({versions[0]}) "
            f"are not compared: {', '.join(sorted(reworded))}."
        )
    if versions[0] != versions[1]:
        yield (f"Accuracy is not compared: budgets of specification {versions[0]} and {versions[1]} need not be the same.")
    for name, run in (("base", base), ("new", new)):
        if run.exit_code == 3:
            yield f"The {name} run proves nothing (exit code 3): what it did not reach counts as not run."


def _differences(base: Run, new: Run) -> Iterator[str]:
    for name in ("suite", "specification", "tier", "seed"):
        yield from _differ(name, *(getattr(run.header, name) for run in (base, new)))
    yield from _differ("machine", *(", ".join(_machine(run.environment)) for run in (base, new)))
    yield from _differ("instruction set", *(run.environment.instruction_set or "unknown" for run in (base, new)))
    yield from _differ("Python", *(run.environment.python for run in (base, new)))
    packages = [run.environment.packages for run in (base, new)]
    for name in sorted({*packages[0], *packages[1]}):
        yield from _differ(name, *(some.get(name, "absent") for some in packages))
    for name, entry in new.implementations.items():
        if name in base.implementations:
            yield from _declared(base.implementations[name], entry)


def _differ(name: str, before: object, after: object) -> Iterator[str]:
    if before != after:
        yield f"{name}: {before} → {after}"


def _declared(before: ImplementationEntry, after: ImplementationEntry) -> Iterator[str]:
    """What an implementation declares otherwise than before."""
    for field in _DECLARED:
        then, now = (_words(getattr(entry, field)) for entry in (before, after))
        if then != now:
            gone, come = (", ".join(word for word in some if word not in others) for some, others in ((then, now), (now, then)))
            yield f"{after.name}, {field}: {gone or 'nothing'} → {come or 'nothing'}"
    yield from _differ(f"{after.name}, runs", *(f"no, {entry.missing}" if entry.missing else "yes" for entry in (before, after)))


def _words(value: str | tuple[str, ...] | dict[str, str]) -> list[str]:
    """What is declared, piece by piece, so that the difference alone is shown."""
    if isinstance(value, dict):
        return [f"{key} {entry}" for key, entry in sorted(value.items())]
    return [value] if isinstance(value, str) else sorted(value)
