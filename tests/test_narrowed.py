"""The first line of a verdict says what a declaration keeps the suite from asking, although the function has it."""

from pathlib import Path

import pytest

from conformance import reports
from conformance.adapter import Support
from conformance.adapter.narrowing import narrowed, own_not_asked, taken_away
from conformance.adapter.registry import resolve
from conformance.ci.badge import badges
from conformance.numerics.dtypes import DTYPES
from conformance.page import make_page
from conformance.records import Counts
from conformance.system.exit_codes import ExitCode
from tests.support import runs
from tests.test_declared import NO_MASKS, run_of

HAS_ALL = """
def attention(query, key, value, mask=None, bias=None, causal=False, scale=None, key_lengths=None, key_padding_mask=None):
    {body}
    return direct(query, key, value, mask=mask, bias=bias, causal=causal, scale=scale, key_lengths=key_lengths)

attention.conformance = Support({declared})
"""
# What is wrong, the declaration that keeps it from being asked, and what the first line says of it.
HIDDEN = {
    "lacks a parameter": ("causal = False", "lacks={'causal'}", "own parameters not asked: causal"),
    "features that leave parameters out": (
        "causal, key_lengths = False, None",
        "features={'mask', 'bias', 'scale', 'padding'}",
        "own parameters not asked: causal and key_lengths",
    ),
    "lacks padding": ("", "lacks={'padding'}", "own parameters not asked: key_padding_mask"),
    "a route past a parameter": ("causal = False", "routes={'causal': ('mask',)}", "own parameters not asked: causal"),
    "heads that are always repeated": ("", "routes={'grouped-heads': ('repeat',)}", "grouped-heads asked by repeat alone"),
    "a rounded scale": (
        "scale = float(ml_dtypes.bfloat16(query.shape[-1] ** -0.5 if scale is None else scale))",
        "scale_dtype='bfloat16'",
        "scale taken as rounded to bfloat16",
    ),
    "exclusive features": (
        "causal = causal and mask is None",
        "exclusive={'mask', 'causal'}",
        "not asked together: causal and mask",
    ),
    "compiled": ("", "compiles=True", "conventions asked in few places and no random shapes, since it compiles"),
    "declined conventions": (
        "if scale is not None and scale <= 0: raise ArithmeticError",
        "declines=(ArithmeticError,)",
        "conventions declined: CON-NEGATIVE-SCALE and CON-ZERO-SCALE",
    ),
    "one form of masks": ("", "mask_forms=('qk',)", "masks of form qk alone"),
    "one layout": ("", "layouts=('contiguous',)", "contiguous inputs alone"),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_what_a_declaration_hides_stands_in_the_first_line(tmp_path: Path, what: str) -> None:
    body, declared, told = HIDDEN[what]
    padded = "if key_padding_mask is not None: mask = key_padding_mask[:, None, None] if mask is None else mask"
    text = HAS_ALL.format(body=f"{body}\n    {padded}", declared=declared)
    few = ("-k", "ATT-OUT-001 or SCALE-001 or NEGATIVE-SCALE or ZERO-SCALE")
    result, run = run_of(tmp_path, f"import ml_dtypes\nfrom implementations.numpy_ import direct\n{text}", *few)
    assert run is not None
    first = reports.verdict(run)
    assert told in first
    assert first in result.stdout
    assert first in (tmp_path / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    assert first in make_page(run)


@pytest.mark.parametrize(
    ("lacks", "told"), [("output-bias", "lacking: output-bias"), ("separate-values", "lacking: separate-values")]
)
def test_what_multi_head_attention_lacks_by_declaration_stands_in_the_first_line(tmp_path: Path, lacks: str, told: str) -> None:
    text = f"""
from conformance.implementations.numpy_ import multi_head

def attention(query, key, value, weights, *, num_heads, mask=None, causal=False, key_lengths=None):
    return multi_head(query, key, value, weights, num_heads=num_heads, mask=mask, causal=causal, key_lengths=key_lengths)

attention.conformance = Support(operation="multi_head_attention", lacks={{{lacks!r}}})
"""
    _, run = run_of(tmp_path, text, "-k", "ATT-HEAD-030")
    assert run is not None
    assert told in reports.verdict(run)


def declared(tmp_path: Path, signature: str, support: str = "") -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    file = tmp_path / f"declared_{len(list(tmp_path.glob('*.py')))}.py"  # a file is loaded once in a process
    lines = ("from conformance.adapter import Support", f"def f({signature}): ...", f"f.conformance = Support({support})")
    file.write_text("\n".join(lines) + "\n")
    implementation = resolve(f"{file}:f")
    return own_not_asked(implementation), taken_away(implementation), narrowed(implementation)


@pytest.mark.parametrize(
    ("signature", "support", "own"),
    [
        ("q, k, v, attn_mask=None, is_causal=False", "", ()),
        ("q, k, v, attn_mask=None, is_causal=False", "lacks=frozenset({'causal'})", ("is_causal",)),
        ("q, k, v, causal=False, alignment=''", "lacks=frozenset({'causal'})", ("causal", "alignment")),
        ("q, k, v, mask=None", "lacks=frozenset({'causal'})", ()),  # it has no such parameter
        ("q, k, v, mask=None, attn_mask=None", "", ("attn_mask",)),  # of two masks, one is given
        ("q, k, v, mask=None, attn_mask=None", "parameters={'mask': 'attn_mask'}", ("mask",)),
        ("q, k, v, mask=None, /, scale=None", "", ("mask",)),  # by place alone
        ("q, k, v, both=None", "parameters={'mask': 'both', 'bias': 'both'}, lacks=frozenset({'bias'})", ("both as bias",)),
        ("q, k, v, scale=None", "routes={'scale': ()}", ("scale",)),
        ("q, k, v, key_padding_mask=None", "", ()),
        ("q, k, v, key_mask=None", "routes={'mask': ('bias',), 'key-lengths': ('mask',)}", ("key_mask",)),
        ("q, k, v, dropout=0.0", "", ()),  # it is told as not read
    ],
)  # fmt: skip
def test_own_parameters_that_are_never_asked(tmp_path: Path, signature: str, support: str, own: tuple[str, ...]) -> None:
    assert declared(tmp_path, signature, support)[0] == own


def test_a_plain_declaration_narrows_nothing(tmp_path: Path) -> None:
    every = "q, k, v, mask=None, bias=None, causal=False, alignment='', scale=None, key_lengths=None, key_padding_mask=None"
    assert declared(tmp_path, every) == ((), (), ())
    # without these parameters, there is nothing that the function has and the suite leaves alone
    assert declared(tmp_path, "q, k, v", "lacks=frozenset({'mask', 'bias', 'causal', 'scale', 'key-lengths'})") == ((), (), ())
    assert declared(tmp_path, "q, k, v", "lacks=frozenset({'grouped-heads'})")[1] == ("grouped-heads",)
    assert Support().exclusive == frozenset()


def test_several_implementations_are_counted_first_and_told_below(tmp_path: Path) -> None:
    entries = [runs.implementation("fine"), runs.implementation("other", own_not_asked=("is_causal",), taken_away=("x",))]
    run = runs.run(tmp_path, runs.header(entries), runs.item("fine"), runs.item("other"))
    first, *more = reports.lines(run)
    assert first == "Every result is as expected: 2 judged; 1 of 2 implementations narrowed by what it declares, see below."
    assert more == ["other: 1 requirement judged; own parameters not asked: is_causal; lacking: x."]


def test_nothing_is_told_twice(tmp_path: Path) -> None:
    entry = runs.implementation("fine", dtypes=DTYPES, lacks=("grouped-heads",), taken_away=("grouped-heads",))
    less = {"outcome": "UNSUPPORTED", "without": ("grouped-heads",)}
    run = runs.run(
        tmp_path, runs.header([entry], ("ATT-OUT-001", "ATT-HEAD-005")), runs.item(), runs.item("fine", "ATT-HEAD-005", **less)
    )
    assert reports.verdict(run) == "Every result is as expected: 1 judged, 1 not (unsupported: grouped-heads)."


def test_declined_conventions_are_told(tmp_path: Path) -> None:
    entry = runs.implementation("fine", dtypes=DTYPES)
    nothing = {"declared": None, "observed": None, "agrees": None}
    asked = (
        runs.convention("fine", "CON-ALIGNMENT", **nothing),  # for lack of a feature
        runs.convention("fine", "CON-ZERO-SCALE", **nothing, declined=3),
        runs.convention("fine", "CON-EMPTY-ROW", declined=1),
    )
    run = runs.run(tmp_path, runs.header([entry]), runs.item(), *asked)
    assert reports.verdict(run) == (
        "Every result is as expected: 1 judged; conventions declined: CON-ZERO-SCALE; conventions declined in part: "
        "CON-EMPTY-ROW."
    )


def test_reasons_that_are_cut_are_counted(tmp_path: Path) -> None:
    entry = runs.implementation("fine", dtypes=DTYPES)
    names = [f"ATT-OUT-{number:03}" for number in range(1, 7)]
    reasons = ["layout reversed", "no such problem within the limits: x", "width 3, no multiple of 8", "a", "b"]
    less = [
        runs.item("fine", name, outcome="UNSUPPORTED", lacking={reason: 1}, counts=Counts(unsupported=1))
        for name, reason in zip(names[1:], reasons, strict=True)
    ]
    run = runs.run(tmp_path, runs.header([entry], names), runs.item(), *less, exit_code=ExitCode.AS_EXPECTED)
    assert reports.verdict(run) == (
        "Every result is as expected: 1 judged, 5 not (unsupported: layout reversed; no such problem within "
        "the limits; width 3, no multiple of 8; and 2 more reasons)."
    )


# What is run of a whole, by words of pytest and options of ours, and how the first line begins.
PARTS = {
    "modules that pytest ignores": (("--", "--ignore-glob=*test_[hmpsc]*.py"), "Of what was run ("),
    "a shard": (("--shard", "1/40"), "Of shard 1/40 ("),
    "skipped conventions": (("--skips", "{skips}", "-k", "CON- or ATT-OUT-001"), "Of what was run (1 of "),
    "a failure that ends it": (("--", "--maxfail=1"), "Interrupted, of what was run so far ("),
}


@pytest.mark.parametrize("what", PARTS)
def test_a_part_of_a_run_says_so_first_and_has_no_share_and_no_badge(tmp_path: Path, what: str) -> None:
    (tmp_path / "skips.txt").write_text("CON-*\n")
    words, told = PARTS[what]
    wrong = "" if what != "a failure that ends it" else " * 2"
    body = f"def attention(query, key, value, scale=None):\n    return correct(query, key, value, scale=scale){wrong}\n"
    text = f"{body}attention.conformance = Support(lacks={NO_MASKS}, at_most={{'key_length': 64}})\n"
    _, run = run_of(tmp_path, text, *(word.format(skips=tmp_path / "skips.txt") for word in words))
    assert run is not None
    first = reports.verdict(run)
    assert first.startswith(told)
    assert "%" not in first
    assert run.partial
    assert badges(run) == {}
    assert all("%" not in cell for row in reports.left_table(run).rows for cell in row)
    assert ("conventions skipped" in first) == (what == "skipped conventions")
    assert run.exit_code == (ExitCode.INCONCLUSIVE if wrong else ExitCode.AS_EXPECTED)


def test_an_area_is_accused_of_what_keeps_most_of_it_from_being_asked(tmp_path: Path) -> None:
    def accused(lacks: tuple[str, ...], *without: tuple[str, ...]) -> list[tuple[str, ...]]:
        names = [f"ATT-HEAD-{number:03}" for number in range(1, len(without) + 1)]
        entry = runs.implementation("fine", features=(), lacks=lacks)
        less = [runs.item("fine", n, outcome="UNSUPPORTED", without=w) for n, w in zip(names, without, strict=True)]
        run = runs.run(tmp_path, runs.header([entry], ["ATT-OUT-001", *names]), runs.item(), *less)
        return [one.features for one in run.undeclared]

    groups = ("grouped-heads",)
    assert accused(groups, groups, groups, ("bias", "grouped-heads")) == []
    assert accused((), groups, groups, ("bias", "grouped-heads")) == [("bias", "grouped-heads")]
    assert accused(("causal",), ("mask",), ("causal",), ("bias",), ("causal", "mask")) == [("bias", "mask")]
