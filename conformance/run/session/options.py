"""The options of a run, and what they mean: which implementations, how much effort, which known failures."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter.known import Known
from conformance.checks.run_options import RUN_OPTIONS, TIERS, TIME_LIMITS, Effort, function_settings
from conformance.errors import UsageError
from conformance.expectations import Expectations, builtin_expectations, load, load_skips
from conformance.records import Tier
from conformance.records.shard import Shard
from conformance.run.workers.asking import WorkerTask
from conformance.run.workers.slots import Group
from conformance.specification import conventions, requirements
from conformance.system.user_files import demand_path

LONGEST_TIME = 86400.0 * 7  # seconds that an item may be given


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("attention-conformance", "conformance of attention implementations")
    group.addoption(
        "--processes", dest="conformance_processes", metavar="N", default=None,
        help="how many implementations run at a time, each in a process of its own; auto: one a core (default: 1, or as -n says)",
    )  # fmt: skip
    for option in RUN_OPTIONS:
        given: dict[str, Any] = {"dest": option.name, "default": option.default, "help": option.help}
        if option.switch:
            given["action"] = "store_true"
        elif option.repeated:
            given |= {"action": "append", "default": [], "metavar": option.metavar}
        else:
            given |= {"type": option.type, "metavar": option.metavar, "choices": option.choices or None}
        group.addoption(option.flag, **given)


@dataclass(frozen=True)
class Settings:
    """The options of a run, understood; ``names`` and ``given`` say which implementations are tested."""

    names: tuple[str, ...]
    given: dict[str, str | None]
    effort: Effort
    tier: Tier
    skips: tuple[str, ...]
    expectations: Expectations
    records: Path | None
    reports: Path | None
    time_limit: float
    timing: bool
    diagnosis: bool
    unrun: str
    shard: Shard


def settings_from(config: pytest.Config) -> Settings:
    """Raises UsageError for options that make no sense."""
    option = config.option
    examples = TIERS[option.tier] if option.max_examples is None else option.max_examples
    if examples < 0:
        raise UsageError(f"--max-examples {examples} must not be negative.")
    _demand_time_limit(option.time_limit)
    shard = Shard() if option.conformance_shard is None else Shard.parse(option.conformance_shard)
    if shard.count > 1 and option.seed == "random":
        raise UsageError("With --shard all shards need one seed, or their records could not be merged: give --seed a number.")
    known = requirements()
    names = tuple(option.conformance_implementations)
    expectations = _expectations(option.expectations, known, names)
    for path in filter(None, (option.reports, option.records, option.skips, option.expectations)):
        demand_path(path)
    reports = Path(option.reports) if option.reports else None
    records = Path(option.records) if option.records else (reports / "records.jsonl" if reports else None)
    if records and records.exists() and not records.is_file():
        raise UsageError(f"--records {records} is no regular file, so that the records could not be read again.")
    return Settings(
        names=names,
        given=function_settings(vars(option)),
        effort=Effort(examples, free=option.tier != "quick", seed=_seed(option.seed)),
        tier=option.tier if option.max_examples is None else "custom",
        skips=load_skips(Path(option.skips), {*known, *conventions()}) if option.skips else (),
        expectations=expectations,
        records=records,
        reports=reports,
        time_limit=option.time_limit or TIME_LIMITS[option.tier],
        timing=option.timing,
        diagnosis=not option.no_diagnosis,
        unrun=option.conformance_unrun,
        shard=shard,
    )


def groups(settings: Settings) -> tuple[Group, ...]:
    """What is tested, by the processes that it shares: each function of the user's own has its own, in which it finds nothing
    that another one has left; those that are built in share theirs, where the oracle's answers serve all of them. Raises
    UsageError for a name that is not built in."""
    own = [name for name in dict.fromkeys(settings.names) if ":" in name]
    return tuple(_group(settings, names) for names in (*((name,) for name in own), _built_in_among(settings.names)) if names)


def _built_in_among(names: Sequence[str]) -> tuple[str, ...]:
    """The implementations that are built in of what ``names`` name, patterns among them; all where there is nothing."""
    from conformance.adapter import registry

    patterns = [name for name in names if ":" not in name]
    return tuple(one.name for one in registry.select(patterns)) if names else tuple(registry.by_default())


def _group(settings: Settings, names: tuple[str, ...]) -> Group:
    return Group(
        WorkerTask(
            names=names, given=settings.given, effort=settings.effort, skips=settings.skips,
            expectations=settings.expectations,
        )
    )  # fmt: skip


def demand_askable(settings: Settings, implementations: Sequence[Known]) -> None:
    """A run of which all would be skipped is a mistake, not a result, and so is an expectation of what is never asked. Raises
    UsageError with the reasons."""
    reasons = {implementation.missing for implementation in implementations}
    if None not in reasons:
        names = ", ".join(implementation.name for implementation in implementations)
        raise UsageError(f"Nothing of {names} can run here: {' '.join(str(reason) for reason in sorted(reasons, key=str))}")
    operations = {identifier: one.operation for identifier, one in requirements().items()}
    settings.expectations.demand_askable([implementation.entry for implementation in implementations], operations)


def _demand_time_limit(limit: float | None) -> None:
    """Raises UsageError for a time limit that is no time."""
    if limit is not None and not 0 < limit <= LONGEST_TIME:
        raise UsageError(f"--time-limit {limit:g} is no number of seconds above 0 and up to {LONGEST_TIME:g}.")


def _expectations(path: str | None, known: Collection[str], names: Sequence[str]) -> Expectations:
    if path is not None:
        return load(Path(path), known)
    own = [name for name in names if ":" in name]
    return builtin_expectations(known, implementations=[*own, *_built_in_among(names)])


def _seed(text: str) -> int:
    """The seed; one that is drawn here where a random one is wanted."""
    if text == "random":
        return secrets.randbelow(2**31)
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"--seed {text!r} is neither a whole number nor 'random'.")
    return int(text)
