"""The process as an implementation sees it: that of a plain program, which was given no arguments and knows of no test run."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

SWITCH = "ATTENTION_CONFORMANCE"  # set in the environment by a run of ours, which its workers inherit: what was there before
_PREFIXES = ("PYTEST_", "ATTENTION_CONFORMANCE")
_changed: dict[str, str | None] = {}  # what SWITCH says, while it is out of sight
_given: list[str] | None = None  # the arguments of this process, while they are out of sight


def note_environment(before: Mapping[str, str], names: Sequence[str]) -> str:
    """The value of SWITCH that says what ``names`` were ``before`` the run changed them."""
    return json.dumps({name: before.get(name) for name in names})


def given_arguments() -> list[str]:
    """The arguments with which this process was started, its own name first."""
    return sys.argv if _given is None else _given


def environment_outside() -> dict[str, str]:
    """The environment of a process that knows nothing of us: what the user's own shell has given."""
    environment = dict(os.environ)
    return _as_it_was(environment, _noted(environment) or _changed)


@contextmanager
def outside() -> Iterator[None]:
    """No arguments, and none of the environment variables of a run of ours or of pytest; what is done to either is undone."""
    global _given, _changed
    arguments, environment, before = sys.argv, dict(os.environ), (_given, _changed)
    _given, _changed = given_arguments(), _noted(environment) or _changed
    sys.argv = [arguments[0]] if arguments and arguments[0] != "-c" else [sys.executable]
    _set(_as_it_was(environment, _changed))
    try:
        yield
    finally:
        _set(environment)
        sys.argv, (_given, _changed) = arguments, before


def _as_it_was(environment: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """The environment without ours and pytest's variables, and with those of the user's that a run puts aside; as it is where
    there is no run."""
    if SWITCH not in environment:
        return dict(environment)
    found = {name: value for name, value in environment.items() if not name.startswith(_PREFIXES)}
    for name, value in changed.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def _noted(environment: Mapping[str, str]) -> dict[str, str | None]:
    """What ``note_environment`` has written, if it has."""
    try:
        noted = json.loads(environment.get(SWITCH, "{}"))
    except ValueError:
        return {}
    return dict(noted) if isinstance(noted, dict) else {}


def _set(wanted: Mapping[str, str]) -> None:
    """Changes only what differs: a library may keep an eye on the environment."""
    current = dict(os.environ)
    for name in current.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if current.get(name) != value:
            os.environ[name] = value
