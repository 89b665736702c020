"""The options of a run, and what they mean: which implementations, how much effort, which known failures."""

import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance import registry
from conformance.adapter import Implementation
from conformance.checks.items import Effort
from conformance.declarations import demand_sense
from conformance.errors import UsageError
from conformance.expectations import Expectations, builtin_expectations, load, load_skips
from conformance.records import Tier
from conformance.run_options import RUN_OPTIONS, TIERS, TIME_LIMITS, function_settings
from conformance.shards import Shard
from conformance.specification import conventions, requirements

LONGEST_TIME = 86400.0 * 7  # seconds that an item may be given


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("attention-conformance", "conformance of attention implementations")
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
    """The options of a run, understood."""

    implementations: tuple[Implementation, ...]
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
    implementations = chosen(option.conformance_implementations, **function_settings(vars(option)))
    _demand_one_that_runs(implementations)
    examples = TIERS[option.tier] if option.max_examples is None else option.max_examples
    if examples < 0:
        raise UsageError(f"--max-examples {examples} must not be negative.")
    _demand_time_limit(config)
    if getattr(option, "dist", None) == "each":  # of pytest-xdist
        raise UsageError("--dist each runs every item in every worker, and each would be counted several times: leave it out.")
    shard = Shard() if option.conformance_shard is None else Shard.parse(option.conformance_shard)
    if shard.count > 1 and option.seed == "random":
        raise UsageError("With --shard all shards need one seed, or their records could not be merged: give --seed a number.")
    known = requirements()
    expectations = _expectations(option.expectations, known)
    expectations.demand_askable(implementations, {identifier: one.operation for identifier, one in known.items()})
    reports = Path(option.reports) if option.reports else None
    records = Path(option.records) if option.records else (reports / "records.jsonl" if reports else None)
    if records and records.exists() and not records.is_file():
        raise UsageError(f"--records {records} is no regular file, so that the records could not be read again.")
    return Settings(
        implementations=implementations,
        effort=Effort(examples, free=option.tier != "quick", seed=_seed(config)),
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


def chosen(names: Sequence[str], **given: str | None) -> tuple[Implementation, ...]:
    """The built-in implementations that names and patterns mean, and functions made with what is ``given``; without a name, all
    that are built in. Raises UsageError for what cannot be found, and for declarations that mean nothing."""
    if not names:
        return tuple(registry.builtin().values())
    found = [registry.select([name]) if ":" not in name else [registry.resolve(name, **given)] for name in names]
    by_name = {implementation.name: implementation for some in found for implementation in some}
    for implementation in by_name.values():
        demand_sense(implementation)
    return tuple(by_name.values())


def _demand_one_that_runs(implementations: Sequence[Implementation]) -> None:
    """A run of which all would be skipped is a mistake, not a result. Raises UsageError with the reasons."""
    reasons = {implementation.missing() for implementation in implementations}
    if None not in reasons:
        names = ", ".join(implementation.name for implementation in implementations)
        raise UsageError(f"Nothing of {names} can run here: {' '.join(str(reason) for reason in sorted(reasons, key=str))}")


def _demand_time_limit(config: pytest.Config) -> None:
    """Raises UsageError for a time limit that is no time, or that nobody can enforce."""
    limit = config.option.time_limit
    if limit is None:
        return
    if not 0 < limit <= LONGEST_TIME:
        raise UsageError(f"--time-limit {limit:g} is no number of seconds above 0 and up to {LONGEST_TIME:g}.")
    in_workers = hasattr(config, "workerinput") or bool(getattr(config.option, "numprocesses", None))
    if not in_workers:
        raise UsageError("--time-limit needs worker processes, which can be ended: say -n 1 or more.")


def _expectations(path: str | None, known: Collection[str]) -> Expectations:
    return builtin_expectations(known) if path is None else load(Path(path), known)


def _seed(config: pytest.Config) -> int:
    """The seed; a random one is drawn once, by the process that the user started, and handed to its workers."""
    if hasattr(config, "workerinput"):
        return int(config.workerinput["conformance_seed"])
    text = config.option.seed
    if text == "random":
        text = os.environ.setdefault("ATTENTION_CONFORMANCE_SEED", str(secrets.randbelow(2**31)))
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"--seed {text!r} is neither a whole number nor 'random'.")
    return int(text)
