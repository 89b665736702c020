"""Loading what a user names in a process of its own, and knowing here what it is: its code may do anything at all."""

import os
import pickle
from collections.abc import Mapping, Sequence

import msgspec

from conformance.adapter import Implementation, registry
from conformance.adapter.declarations import demand_sense
from conformance.adapter.known import Known, known
from conformance.errors import UsageError, told
from conformance.system.children import Channel, Child, channel, how_it_ended
from conformance.system.floating_point import FloatingPoint

LIMIT = 60.0  # seconds: several times what importing a framework takes
Given = Mapping[str, str | None]


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The implementations are loaded, and this is what they are."""

    known: tuple[Known, ...]


class Refused(msgspec.Struct, frozen=True, tag=True):
    """They cannot be loaded, for the reason of the sentence."""

    sentence: str


def chosen(names: Sequence[str], **given: str | None) -> tuple[Implementation, ...]:
    """The built-in implementations that names and patterns mean, and functions made with what is ``given``; without a name, all
    that are built in. Runs the user's code. Raises UsageError for what cannot be found, and for senseless declarations."""
    if not names:
        return tuple(registry.by_default().values())
    found = [registry.select([name]) if ":" not in name else [registry.resolve(name, **given)] for name in names]
    by_name = {implementation.name: implementation for some in found for implementation in some}
    for implementation in by_name.values():
        demand_sense(implementation)
    return tuple(by_name.values())


def load_here(names: Sequence[str], given: Given, line: Channel, floating_point: FloatingPoint) -> dict[str, Implementation]:
    """In a process of its own: loads the implementations and sends what they are, which may be computed by the user's own code,
    too. Where that cannot be had, it sends why, and the process ends."""
    owner = os.getpid()
    try:
        with floating_point:
            found = {one.name: one for one in chosen(names, **given)}
            spec = names[0] if len(names) == 1 and ":" in names[0] else ""
            answer = msgspec.json.encode(Loaded(tuple(known(one, spec) for one in found.values())))
    except UsageError as error:
        line.send(msgspec.json.encode(Refused(str(error))))
        os._exit(2)
    except BaseException as error:  # code of the user's may raise anything at all
        line.send(msgspec.json.encode(Refused(f"Loading {', '.join(names)} failed: {told(error)}.")))
        os._exit(2)
    if os.getpid() != owner:  # forked meanwhile
        os._exit(0)
    line.send(answer)
    return found


def known_of(names: Sequence[str], given: Given) -> tuple[Known, ...]:
    """What the implementations are that ``chosen`` would give. Raises UsageError as that does, and where the user's code ends its
    process or takes more than LIMIT seconds."""
    if not names:
        return tuple(map(known, registry.by_default().values()))
    found = [(_asked(name, given),) if ":" in name else map(known, registry.select([name])) for name in names]
    return tuple({one.name: one for some in found for one in some}.values())


def main() -> None:
    """The process that loads one."""
    line = channel()
    name, given = pickle.loads(line.receive())
    load_here([name], given, line, FloatingPoint())
    line.receive()


def _asked(name: str, given: Given) -> Known:
    child = Child(__name__)
    try:
        child.send(pickle.dumps((name, dict(given))))
        message = child.next(LIMIT)
    except TimeoutError:
        raise UsageError(f"Loading {name} took more than {LIMIT:g} s.") from None
    finally:
        child.end()
    if message is None:
        raise UsageError(f"Loading {name} ended the process {how_it_ended(child.code)}.")
    return understood(message, name)


def understood(message: bytes, name: str) -> Known:
    """Raises UsageError for a refusal, with its sentence."""
    try:
        said = msgspec.json.decode(message, type=Loaded | Refused)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"What the process of {name} says makes no sense: {error}.") from None
    if isinstance(said, Refused):
        raise UsageError(said.sentence)
    return said.known[0]
