"""Implementations that do harm: each is wrong in one way, which its docstring names, and is caught with its own outcome."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import correct

FILE = Path(__file__)


def transposed(query, key, value, *, mask=None, causal=False, scale=None):
    """Returns (batch, length, heads, width)."""
    return correct(query, key, value, mask=mask, causal=causal, scale=scale).swapaxes(1, 2)


def mutating(query, key, value, *, mask=None, causal=False, scale=None):
    """Scales its query in place."""
    output = correct(query, key, value, mask=mask, causal=causal, scale=scale)
    query *= query.dtype.type(0.5)
    return output


def aliasing(query, key, value):
    """Writes the output over the query and returns it."""
    query[...] = correct(query, key, value) if query.shape[3] == value.shape[3] else 0
    return query


_TURN = [0]


def nondeterministic(query, key, value, *, mask=None, causal=False, scale=None):
    """Every second answer is a tenth too large."""
    _TURN[0] += 1
    output = correct(query, key, value, mask=mask, causal=causal, scale=scale)
    return output if _TURN[0] % 2 else (output * output.dtype.type(1.1)).astype(output.dtype)


_CACHE = {}


def from_a_cache(query, key, value):
    """Answers by shapes and dtype alone: the second call with other values gets the first one's answer."""
    signature = (query.shape, key.shape, value.shape, query.dtype.name)
    if signature not in _CACHE:
        _CACHE[signature] = correct(query, key, value)
    return _CACHE[signature].copy()


def raising(query, key, value):
    """Raises where the lengths of query and key differ, though it does not say that it lacks that."""
    if query.shape[2] != key.shape[2]:
        raise RuntimeError("lengths differ")
    return correct(query, key, value)


def greedy(query, key, value):
    """Runs out of memory."""
    raise MemoryError("no room for the scores")


def double(query, key, value):
    """Returns float64 whatever comes in."""
    return correct(query, key, value).astype(np.float64)


def of_another_machine(query, key, value):
    """Returns the expected numbers in the other byte order."""
    output = correct(query, key, value)
    return output.astype(output.dtype.newbyteorder())


def maskless(query, key, value, *, mask=None):
    """Takes a mask and ignores it."""
    return correct(query, key, value)


def scaling_by_width(query, key, value):
    """Divides the scores by d, not by its square root."""
    return correct(query, key, value, scale=1.0 / query.shape[-1])


def nan_for_large_scores(query, key, value):
    """Takes the exponential without subtracting the maximum."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.exp(query @ key.repeat(query.shape[1] // key.shape[1], 1).swapaxes(-1, -2) / np.sqrt(query.shape[-1]))
        output = weights / weights.sum(-1, keepdims=True) @ value.repeat(query.shape[1] // key.shape[1], 1)
    return output.astype(query.dtype)


def positions_from_base_1000(length, d_model, *, dtype=np.float32):
    """A sinusoidal table, neither interleaved nor concatenated as it should be, for its base is 1000."""
    angles = np.arange(length)[:, None] / 1000.0 ** (np.arange(0, d_model, 2) / d_model)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return table.reshape(length, -1)[:, :d_model].astype(dtype)


def dying(query, key, value, *, scale=None):
    """Ends the process when it is given a scale."""
    if scale is not None:
        os._exit(11)
    return correct(query, key, value)


def dying_of_masks(query, key, value, *, mask=None):
    """Ends the process when it is given a mask."""
    if mask is not None:
        os._exit(11)
    return correct(query, key, value)


def dying_of_length(query, key, value, *, mask=None, causal=False):
    """Ends the process at 512 queries, which no check has."""
    if query.shape[2] >= 512:
        os._exit(11)
    return correct(query, key, value, mask=mask, causal=causal)


def hanging(query, key, value, *, scale=None):
    """Never returns when it is given a scale."""
    while scale is not None:
        time.sleep(0.05)
    return correct(query, key, value)


def exiting(query, key, value):
    """Asks the interpreter to end."""
    raise SystemExit(0)


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class _Base(BaseException):
    """Caught by nobody who catches Exception."""


def _only_in_earnest(raise_: Callable[[], None]) -> Callable[..., np.ndarray]:
    """Right for the plainest problem, of 13 queries, by which an adapter is tried before it is judged; then ``raise_``."""

    def attention(query, key, value):
        if query.shape[-2] != 13:
            raise_()
        return correct(query, key, value)

    return attention


@_only_in_earnest
def unspeakable() -> None:
    """Raises an exception whose text cannot be had."""
    raise _Unspeakable


@_only_in_earnest
def interrupting() -> None:
    """Raises what Ctrl-C raises."""
    raise KeyboardInterrupt


@_only_in_earnest
def babbling() -> None:
    """Raises no Exception, with a text that is long and cannot be encoded."""
    raise _Base("\0\x1b[31m\ud800 " * 100_000)


@_only_in_earnest
def skipping() -> None:
    """Skips itself, as if it were a test."""
    pytest.skip("not today")


def narrowing(query, key, value):
    """Right, but leaves little room for recursion and no standard output."""
    sys.setrecursionlimit(70)
    sys.stdout.close()
    return correct(query, key, value)


def stopping(query, key, value, *, scale=None):
    """Stops its own process when it is given a scale, timers and all."""
    if scale is not None:
        os.kill(os.getpid(), signal.SIGSTOP)
    return correct(query, key, value)


def forking(query, key, value):
    """Right, in two processes from each call on."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return correct(query, key, value)


_TIMED = [0]


def ending_when_timed(query, key, value):
    """Ends the process at its fifth call: judged before the timing, it is right."""
    _TIMED[0] += 1
    if _TIMED[0] == 5:
        os._exit(11)
    return correct(query, key, value)
