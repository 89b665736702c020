"""Hostile implementations: what they do × when they do it, each with what must come of it.

Whatever it is, the run ends in its bounds, a correct neighbour passes as it does alone, and no result is lost: that is checked of
all, in ``tests.attacks.trial``. What is said here of each is which outcomes its own items may have, which one some of them must
have, and how the run may end.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from textwrap import indent

from conformance.judging.verdict import Outcome
from tests.attacks import actions
from tests.fakes import correct

HEAD = f"""import atexit, builtins, ctypes, decimal, gc, inspect, json, locale, os, random, re, resource, signal, subprocess, sys
import threading, time, warnings
import numpy as np

helper = [sys.executable, "-c", "import time; time.sleep(10_000)"]
kept, calls = [], []

{inspect.getsource(correct)}
"""
CALLED = """
def attention(query, key, value, *, mask=None, causal=False, scale=None):
    calls.append(1)
    {when}
    return correct(query, key, value, mask=mask, causal=causal, scale=scale)
"""
# When harm is done: the source of the adapter, in which ``harm`` is defined.
MOMENTS = {
    "at import": "harm()\nattention = correct\n",
    "when it is looked up": (
        "def __getattr__(name):\n    if name != 'attention':\n        raise AttributeError(name)\n    harm()\n"
        "    return correct\n"
    ),
    "when its signature is read": (
        "class Attention:\n    __name__ = 'attention'\n    @property\n    def __signature__(self):\n        harm()\n"
        "        return inspect.signature(correct)\n    def __call__(self, *given, **named):\n"
        "        return correct(*given, **named)\n\nattention = Attention()\n"
    ),
    "in the first call": CALLED.format(when="len(calls) == 1 and harm()"),
    "in the fifth call": CALLED.format(when="len(calls) == 5 and harm()"),
    "with a mask": CALLED.format(when="mask is not None and harm()"),
    "in a question": CALLED.format(when="any('observing' in frame.filename for frame in inspect.stack(0)) and harm()"),
    "beside the items": CALLED.format(
        when="if len(calls) == 1: threading.Thread(target=lambda: (time.sleep(0.02), harm()), daemon=True).start()"
    ),
    "at exit": "atexit.register(harm)\nattention = correct\n",
    "when it is destroyed": "class Last:\n    def __del__(self):\n        harm()\n\nlast = Last()\nattention = correct\n",
    "in a child": CALLED.format(when="if len(calls) == 1 and os.fork() == 0:\n        try: harm()\n        finally: os._exit(0)"),
}
LOADING = ("at import", "when it is looked up", "when its signature is read")
CALLING = ("in the first call", "in the fifth call", "with a mask")
HIDDEN = ("at exit", "when it is destroyed", "in a child")

RIGHT = frozenset({"PASS", "UNSUPPORTED"})
ANYTHING = frozenset(map(str, Outcome))
# Which outcome a deed in a call has; what raises in one of the first calls alone is not the same each time.
OUTCOMES = {"raises": {"ERROR", "OUT_OF_MEMORY", "NONDETERMINISTIC"}, "dies": {"CRASH"}, "hangs": {"TIMEOUT"}}
UNLOADABLE = ("its file is gone", "a folder that goes")  # harmless to what is loaded; it may have to be loaded once more
CROSSED = (
    "ValueError", "SystemExit 0", "KeyboardInterrupt", "os._exit 0", "SIGKILL", "segmentation fault", "SIGTERM, heeded",
    "endless loop", "sleep", "sleep that holds the interpreter", "SIGSTOP", "forked helper",
)  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """``source`` defines ``attention``. Its items have outcomes of ``expected``, at least one of ``some`` where there are such;
    the run ends with one of ``codes``, of which 2 says that it could not be loaded."""

    kind: str
    deed: str
    moment: str
    source: str
    expected: frozenset[str]
    some: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset({0, 1})

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.deed}, {self.moment}"


@cache
def corpus() -> tuple[Attack, ...]:
    """All attacks, each with a name of its own."""
    found = {attack.name: attack for attack in (*_crossed(), *_states(), *_answers(), *_turns())}
    return tuple(found.values())


def _source(body: str, moment: str) -> str:
    return f"{HEAD}\ndef harm():\n{indent(body, '    ')}\n\n{MOMENTS[moment]}"


def _crossed() -> Iterator[Attack]:
    """Raises, deaths, hangs and what is left behind: some of them at every moment, the others at the plainest."""
    for kind in ("raises", "dies", "hangs", "leaves"):
        for deed, body in getattr(actions, kind.upper()).items():
            moments = tuple(MOMENTS) if deed in CROSSED else ("at import", "in the first call")
            if kind == "hangs" and deed not in CROSSED:
                moments = ("in the first call",)
            for moment in moments:
                yield _deed(kind, deed, body, moment)


def _deed(kind: str, deed: str, body: str, moment: str) -> Attack:
    source = _source(body, moment)
    if kind == "leaves" or moment in HIDDEN:
        return Attack(kind, deed, moment, source, RIGHT, codes=frozenset({0}))
    outcome = frozenset(OUTCOMES[kind]) | ({"CRASH"} if deed == "text exits" else set())
    if moment in LOADING:
        return Attack(kind, deed, moment, source, RIGHT | outcome | {"ERROR", "CRASH", "SKIPPED"}, codes=frozenset({0, 1, 2}))
    if moment in CALLING:
        return Attack(kind, deed, moment, source, RIGHT | outcome | {"ERROR", "SKIPPED"}, outcome, frozenset({1}))
    return Attack(kind, deed, moment, source, RIGHT | outcome | {"ERROR", "SKIPPED"})


def _states() -> Iterator[Attack]:
    """What is done to the process, and what is printed."""
    for kind, expected in (("streams", ANYTHING), ("harmless", RIGHT), ("patches", ANYTHING), ("prints", RIGHT)):
        for deed, body in getattr(actions, kind.upper()).items():
            for moment in ("at import", "in the first call"):
                codes = {0} if expected is RIGHT else {0, 1, 2} if moment in LOADING else {0, 1}
                codes |= {2} if deed in UNLOADABLE else set()
                yield Attack(kind, deed, moment, _source(body, moment), expected, codes=frozenset(codes))


def _answers() -> Iterator[Attack]:
    """What is returned; a subclass of an array that holds the right numbers may be taken for one."""
    wrong = frozenset({"ERROR", "WRONG_DTYPE", "WRONG_SHAPE", "WRONG_VALUE", "NONFINITE", "CRASH", "TIMEOUT", "SKIPPED"})
    for deed, expression in actions.RETURNS.items():
        body = f"output = correct(query, key, value, mask=mask)\n    return {expression}\n"
        yield Attack("returns", deed, "always", _returning(body), wrong | RIGHT, wrong, frozenset({1}))
    body = "output = correct(query, key, value, mask=mask)\n    return output.view(Odd)\n"
    for deed, method in actions.SUBCLASSES.items():
        head = f"{HEAD}\nOdd = type('Odd', (np.ndarray,), {{'{deed}': {method}}})\n"
        yield Attack("returns", f"array with its own {deed}", "always", _returning(body, head), wrong | RIGHT)
    body = "return np.ma.masked_array(correct(query, key, value, mask=mask), mask=True)\n"
    yield Attack("returns", "masked array", "always", _returning(body), wrong | RIGHT)


def _returning(body: str, head: str = HEAD) -> str:
    return f"{head}\ndef attention(query, key, value, *, mask=None):\n    {body}"


def _turns() -> Iterator[Attack]:
    """Wrong at times, and what is done to arguments and to outputs that were returned."""
    right, wrong = "correct(query, key, value, mask=mask)", "correct(query, key, value, mask=mask) * 0 + 1"
    of_values = frozenset({"WRONG_VALUE", "NONDETERMINISTIC"})
    for deed, condition in {
        "in the first call": "len(calls) == 1", "in the first twenty calls": "len(calls) <= 20",
        "every second call": "len(calls) % 2", "from the tenth call on": "len(calls) >= 10", "with a mask": "mask is not None",
    }.items():  # fmt: skip
        body = f"calls.append(1)\n    return ({wrong} if {condition} else {right}).astype(query.dtype)\n"
        yield Attack("wrong", deed, "always", _returning(body), ANYTHING - {"CRASH", "TIMEOUT"}, of_values, frozenset({1}))
    mutated = of_values | {"MUTATED_INPUT"}
    for deed, lines in {
        "query becomes 0": ("output = {right}", "query[...] = 0", "return output"),
        "value is written in its last place": ("output = {right}", "value[..., -1] = 7", "return output"),
        "the output is the query": ("query[...] = {right} if query.shape[3] == value.shape[3] else 0", "return query"),
        "outputs are zeroed in the next call": ("for array in kept: array[...] = 0", "kept[:] = [{right}]", "return kept[0]"),
        "outputs are zeroed by a thread": (
            "output = {right}", "threading.Timer(0.0, lambda: output.fill(0)).start()", "return output"
        ),
        "one buffer": (
            "output = {right}", "same = [one for one in kept if one.shape == output.shape and one.dtype == output.dtype]",
            "kept.extend([] if same else [output])", "same and same[0].__setitem__(Ellipsis, output)",
            "return same[0] if same else output",
        ),
        "shape of the query is set": ("output = {right}", "query.shape = (-1,)", "return output"),
        "query is locked": ("query.flags.writeable = key.flags.writeable = False", "return {right}"),
    }.items():  # fmt: skip
        body = "\n    ".join(line.replace("{right}", right) for line in lines)
        certain = mutated if deed.startswith(("query becomes", "value is", "the output is")) else frozenset()
        yield Attack("changes", deed, "always", _returning(body), ANYTHING - {"CRASH", "TIMEOUT"}, certain)
