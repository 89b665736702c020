"""What `smoke` says of a mask form that does not work, and of functions that are compiled for each shape."""

import time
from dataclasses import replace

import numpy as np

from conformance import smoke
from conformance.adapter import Implementation, Support
from implementations.numpy_ import FRAMEWORK, direct

PLAIN = Support(dtypes=("float32",), lacks=frozenset({"bias", "causal", "key-lengths", "scale"}))


def lines(function, support: Support = PLAIN) -> list[str]:
    return [str(finding) for finding in smoke.smoke(Implementation("mine", function, support, FRAMEWORK))]


def test_a_mask_form_that_fails_has_one_way_out():
    def attention(query, key, value, *, mask=None):
        if mask is not None and mask.ndim == 2:
            raise ValueError("four axes, please")
        return direct(query, key, value, mask=mask)

    (told,) = (line for line in lines(attention) if line.startswith("FAIL feature mask"))
    assert told.endswith("in the form qk, and works in b11k, b1qk, 1hqk, bhqk, bhq1: broadcast it, or leave that form out of "
                         "Support.mask_forms.")  # fmt: skip


def test_what_is_slow_for_each_new_shape_alone_is_asked_whether_it_compiles(monkeypatch):
    monkeypatch.setattr(smoke, "COMPILATION", 0.02)
    seen = set()

    def attention(query, key, value, *, mask=None):
        shapes = (query.shape, key.shape, value.shape, None if mask is None else mask.shape)
        if shapes not in seen:
            until = time.perf_counter() + 0.05
            while time.perf_counter() < until:
                np.ones(1)
        seen.add(shapes)
        return direct(query, key, value, mask=mask)

    (told,) = (line for line in lines(attention) if line.startswith("note time"))
    assert "if each is compiled anew, declare Support(compiles=True)" in told
    seen.clear()
    declared = lines(attention, replace(PLAIN, compiles=True))
    assert not [line for line in declared if line.startswith("note time")]
    assert "ok   mask form qk" in declared and "ok   feature mask" in declared, (
        "each call has a line, and a time limit, of its own"
    )
    assert not [line for line in lines(direct) if line.startswith("note time")]
