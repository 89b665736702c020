"""The lines of a record file as types. ``conformance/records.schema.json`` is generated from them."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from conformance.judging.verdict import Outcome
from conformance.numerics.profiles import UNDECLARED
from conformance.problem.returned import OUTPUT
from conformance.records.accuracy import AccuracyEntry
from conformance.records.data import Count, Data, Identifier, Integer, Name, Number, Text, Word
from conformance.records.picture import Picture
from conformance.records.unrun import Unrun
from conformance.renamed import profile_of_today

SCHEMA_VERSION: Final = 1

Seconds = Annotated[float, Meta(ge=0, le=1e12)]  # ratios and shares, too: sums and products of them are numbers
Exponent = Annotated[float, Meta(ge=-1e3, le=1e3)]
Time = Annotated[datetime, Meta(tz=True)]
Tier = Literal["quick", "full", "exhaustive", "custom"]
Stratum = Literal["golden", "designed", "random"]
CONFORMANCE_TIERS = ("full", "exhaustive")  # those that run all there is
StatusWord = Literal["expected", "unexpected"]
Passes = Literal["forward", "forward+backward"]


class Environment(Data, frozen=True, kw_only=True):
    """Where the run took place. ``platform`` as Python's sys.platform, ``memory`` in bytes, ``instruction_set`` the best one of
    the processor that is known to change results, ``packages`` the installed versions."""

    python: Text
    platform: Text
    machine: Text
    cpu: str
    cores: Count
    memory: Count | None
    instruction_set: Word | None
    packages: dict[Word, Text]


class ImplementationEntry(Data, frozen=True, kw_only=True):
    """An implementation as it declares itself. ``profile`` by dtype; a dtype without one is judged as unfused. ``features`` are
    offered natively, those that it says it ``lacks`` are not; ``routes`` says for a feature how the suite may emulate it.
    ``unread`` are the parameters, and with their stars the catch-alls, that mean nothing to the suite; ``limits``: those of
    shapes, in words. ``own_not_asked``: parameters of its own that the suite knows and, as declared, never passes;
    ``taken_away``: features without a parameter that it says it lacks; ``narrowed``: to what else the declaration narrows the
    judgement, in words. ``scale_dtype``: in which the scale is held, where that is declared. ``distribution``: from which it
    comes, null for a file. ``missing``: why it cannot run here. ``returns``: what of its result is judged, where that is more
    than the output."""

    name: Name
    operation: Word
    framework: Text
    framework_version: Text | None
    device: Text
    dtypes: tuple[Word, ...]
    profile: dict[Word, Word]
    features: tuple[Word, ...]
    routes: dict[Word, tuple[Word, ...]]
    layouts: tuple[Word, ...]
    conventions: dict[Identifier, Text]
    source: Text
    missing: str | None
    lacks: tuple[Word, ...] = ()
    unread: tuple[str, ...] = ()
    limits: str = ""
    own_not_asked: tuple[str, ...] = ()
    taken_away: tuple[str, ...] = ()
    narrowed: tuple[str, ...] = ()
    scale_dtype: Word | None = None
    distribution: Text | None = None
    distribution_version: Text | None = None
    returns: tuple[Word, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "profile", profile_of_today(self.profile))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it returns that is judged."""
        return self.returns or (OUTPUT,)

    def judged_by(self, dtype: str) -> str:
        """The numerics profile under which the results in a dtype count."""
        return self.profile.get(dtype, UNDECLARED)


class RequirementEntry(Data, frozen=True, kw_only=True):
    """A requirement that the run asked for. ``output``: which further output it is about, where it is about one."""

    id: Identifier
    area: Identifier
    operation: Word
    sentence: str
    output: Word | UnsetType = UNSET


class Header(Data, frozen=True, kw_only=True, tag_field="kind", tag="header", rename={"expected": "due"}):
    """First line: which suite ran what, where and how. ``schema`` is the version of this file format, ``suite`` and
    ``specification`` are theirs. ``shard``: which part of the run this is, such as 2/5; empty for a whole run.
    ``selection``: the expression of -k, empty where all was asked for. ``conventions``: all questions, each with the operations
    of which it is asked; ``outputs``: those of them that are about a further output, with its name. ``expected``, ``due`` in the
    file: by implementation, the ids of the requirements and conventions that were selected; null where all of them were, or where
    an older version did not say."""

    schema: Literal[1]
    suite: Word
    specification: Word
    started: Time
    seed: Integer
    tier: Tier
    shard: Annotated[str, Meta(pattern=r"^([1-9][0-9]{0,3}/[1-9][0-9]{0,3})?$(?!\n)")] = ""
    selection: str = ""
    command: str
    environment: Environment
    implementations: tuple[ImplementationEntry, ...]
    requirements: tuple[RequirementEntry, ...]
    conventions: dict[Identifier, tuple[Word, ...]] = msgspec.field(default_factory=dict)
    outputs: dict[Identifier, Word] | UnsetType = UNSET
    expected: dict[Name, tuple[Identifier, ...]] | None = None


class Counts(Data, frozen=True, kw_only=True):
    """Problems of an item: run, by stratum; ``unsupported`` ones were not run, ``left_out`` among them because of declared limits
    and not for a feature that lacks; ``failed`` are among those run, ``fitted`` ones too, whose sizes were made to fit limits."""

    golden: Count = 0
    designed: Count = 0
    random: Count = 0
    unsupported: Count = 0
    failed: Count = 0
    left_out: Count = 0
    fitted: Count = 0

    @property
    def run(self) -> int:
        return self.golden + self.designed + self.random


class DtypeResult(Data, frozen=True, kw_only=True):
    """What became of a requirement in one dtype: the worst ``outcome``, UNSUPPORTED where no problem was run, and the ``counts``
    of its problems; ``status`` as of an item."""

    outcome: Outcome
    status: StatusWord
    counts: Counts = Counts()


class Item(Data, frozen=True, kw_only=True, tag_field="kind", tag="item"):
    """A requirement on an implementation. ``outcome`` is the worst of its cases; ``status`` is unexpected for a failure that is
    not known and for a pass where a failure is known; ``reason`` says why it was skipped, is unsupported, known or unexpected.
    ``dtypes`` has the same for each dtype of its problems; it is empty where none was come to. ``calls`` are counted where they
    may be compiled, ``compiled`` of them were as a whole, null where nothing is known of it. ``lacking``: why problems were not
    asked, and how many, the most frequent reasons; ``without``: for lack of which features. ``examples`` were run by Hypothesis;
    ``seconds`` is wall time, ``implementation_seconds`` the part inside the implementation.
    ``observations`` are worth knowing and never judged."""

    requirement: Identifier
    implementation: Name
    outcome: Outcome
    status: StatusWord
    reason: str = ""
    counts: Counts = Counts()
    calls: Count = 0
    compiled: Count | None = None
    lacking: dict[str, Count] = msgspec.field(default_factory=dict)
    dtypes: dict[Word, DtypeResult] = msgspec.field(default_factory=dict)
    examples: Count = 0
    seconds: Seconds = 0.0
    implementation_seconds: Seconds = 0.0
    accuracy: tuple[AccuracyEntry, ...] = ()
    without: tuple[Word, ...] = ()
    observations: dict[str, str | bool | Integer | float] = msgspec.field(default_factory=dict)


class Case(Data, frozen=True, kw_only=True, tag_field="kind", tag="case"):
    """A problem on an implementation: all golden and designed cases that ran, of the random ones the failures. ``id`` is the
    requirement and the digest of the problem's ``text``. ``route`` is native, or says how the suite emulated the request, such as
    causal=mask. ``r`` is the largest error / budget, at ``index``, where the output was ``got`` in place of ``want``.
    The first failures of an item that have an output of the expected shape have a ``picture`` of it. ``output``: of which further
    output all this is said, where it is one."""

    NUMBERS = ("r", "got", "want", "budget")

    id: Annotated[str, Meta(pattern=r"^[A-Z0-9]+(-[A-Z0-9]+)*/[0-9a-f]{12}$(?!\n)", max_length=200)]
    requirement: Identifier
    implementation: Name
    stratum: Stratum
    dtype: Word
    text: str
    route: Text = "native"
    outcome: Outcome
    message: str = ""
    r: Number | None = None
    index: tuple[Integer, ...] | None = None
    got: Number | None = None
    want: Number | None = None
    budget: Number | None = None
    status: StatusWord
    reason: str = ""
    repro: str = ""
    picture: Picture | None = None
    output: Word | UnsetType = UNSET

    @property
    def digest(self) -> str:
        return self.id.partition("/")[2]


class ConventionResult(Data, frozen=True, kw_only=True, tag_field="kind", tag="convention"):
    """What an implementation declares on a point where released APIs differ, and what was observed. ``agrees`` is null where
    nothing was declared or nothing could be observed. ``status`` is unexpected where the two differ, where the observed answer is
    none that an interface may have, and where another one is expected; ``reason`` says why it is known or unexpected. ``where``
    holds, by answer, the places in which it was observed, in words; ``message`` says what the answer means, or what to do.
    ``declined``: how many calls of the question the implementation declined; ``skipped``: it was not asked, by request."""

    id: Identifier
    implementation: Name
    declared: Text | None
    observed: Text | None
    agrees: bool | None
    status: StatusWord
    reason: str = ""
    where: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    message: str = ""
    declined: Count = 0
    skipped: bool = False


class Timing(Data, frozen=True, kw_only=True, tag_field="kind", tag="timing"):
    """Calls of an implementation at a named ``shape`` of a ``suite`` of shapes: median and quartiles of one call, over ``calls``;
    ``ratio``, the median over rounds of its time to that of ``baseline`` in the same round, below 1 if faster, with the ends of
    its 95 % bootstrap interval; ``percent_of_matmul``, its rate against the machine's own large matrix product. ``first_seconds``
    is the first call's, compilation included; ``bytes`` are those of inputs and output, once each; ``peak_bytes`` come on top of
    them. ``r`` and ``outcome`` judge the timed call's own output; times are null unless it passed. ``status`` is unexpected for
    a failure that is not known; ``reason`` says why it is known."""

    NUMBERS = ("r",)

    implementation: Name
    operation: Word
    suite: Word = "cpu-small"
    shape: Text
    dtype: Word
    passes: Passes = "forward"
    device: Text = "cpu"
    outcome: Outcome
    calls: Count
    flops: Count
    bytes: Count = 0
    baseline: Text
    median_seconds: Seconds | None = None
    low_quartile_seconds: Seconds | None = None
    high_quartile_seconds: Seconds | None = None
    ratio: Seconds | None = None
    ratio_low: Seconds | None = None
    ratio_high: Seconds | None = None
    first_seconds: Seconds | None = None
    percent_of_matmul: Seconds | None = None
    peak_bytes: Count | None = None
    r: Number | None = None
    status: StatusWord = "expected"
    reason: str = ""
    message: str = ""


class Growth(Data, frozen=True, kw_only=True, tag_field="kind", tag="growth"):
    """How time and memory grow with the length L = Lq = Lk: measured over a ladder of ``lengths``, and the exponents of the power
    laws fitted to them (naive attention: 2; memory of a fused one: 1). ``peak_bytes`` beyond inputs and output. ``outcome`` and
    ``status`` are those of the length at which it ended, if it did before the last."""

    implementation: Name
    operation: Word
    dtype: Word
    passes: Passes = "forward"
    outcome: Outcome
    lengths: tuple[Count, ...]
    seconds: tuple[Seconds, ...] = ()
    peak_bytes: tuple[Count | None, ...] = ()
    time_exponent: Exponent | None = None
    memory_exponent: Exponent | None = None
    status: StatusWord = "expected"
    message: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("seconds", "peak_bytes"):
            if len(getattr(self, name)) != len(self.lengths):
                raise ValueError(f"{name} of a growth are not one for each of its lengths")


class SelfComparison(Data, frozen=True, kw_only=True, tag_field="kind", tag="self-comparison"):
    """An implementation timed against itself, as if it were two: the ratio must be 1 within the ``tolerance``, and its 95 %
    interval must hold 1, or the ratios of the same run say nothing."""

    implementation: Name
    operation: Word
    suite: Word
    shape: Text
    dtype: Word
    ratio: Seconds
    ratio_low: Seconds
    ratio_high: Seconds
    tolerance: Seconds

    @property
    def is_sound(self) -> bool:
        return abs(self.ratio - 1.0) <= self.tolerance and self.ratio_low <= 1.0 <= self.ratio_high


class ExplanationRecord(Data, frozen=True, kw_only=True, rename={"symptom": "sign"}):
    """``faults`` of the catalogue, one or several at once, that explain ``explained`` of ``failing`` problems, which were wrong
    by ``symptom`` (values, dtype, raises …), and that none of ``passing`` problems contradicts; ``fresh`` ones were run besides.
    ``r`` is the largest error / budget against the faults' own outputs, null where none were compared. ``alike``: faults that
    explain as much, so that outputs do not tell which it is. ``sentence`` says all this. ``requirements``: those whose recorded
    failures are all of the explained kind, or in dtypes that are less accurate besides. They are consequences of the fault as far
    as can be told."""

    NUMBERS = ("r",)

    symptom: str
    faults: tuple[Word, ...]
    explained: Count
    failing: Count
    passing: Count
    fresh: Count
    r: Number | None = None
    alike: tuple[Word, ...] = ()
    sentence: str
    requirements: tuple[Identifier, ...] = ()


class DiagnosisRecord(Data, frozen=True, kw_only=True, tag_field="kind", tag="diagnosis"):
    """What explains the unexpected failures of an implementation. ``failing`` and ``passing`` problems were run again, of which
    ``vanished`` had failed before and passed then. ``remarks`` are sentences on failures that no fault explains."""

    implementation: Name
    explanations: tuple[ExplanationRecord, ...] = ()
    remarks: tuple[str, ...] = ()
    failing: Count = 0
    passing: Count = 0
    vanished: Count = 0
    seconds: Seconds = 0.0

    @property
    def lines(self) -> tuple[str, ...]:
        """All sentences."""
        return (*(explanation.sentence for explanation in self.explanations), *self.remarks)


class Totals(Data, frozen=True, kw_only=True):
    """Lines before the footer, by kind."""

    items: Count = 0
    cases: Count = 0
    conventions: Count = 0
    timings: Count = 0
    growths: Count = 0
    self_comparisons: Count = 0
    diagnoses: Count = 0
    unrun: Count = 0


class Footer(Data, frozen=True, kw_only=True, tag_field="kind", tag="footer"):
    """Last line: what came before it. ``outcomes`` counts items; ``unexpected`` counts items, conventions, timings and growths
    whose status is that, and areas that were neither offered nor declared as lacking. ``interrupted``: it was ended before all
    that was expected had been run; null where an older version did not say."""

    finished: Time
    counts: Totals
    outcomes: dict[Outcome, Count]
    unexpected: Count
    exit_code: Annotated[int, Meta(ge=0, le=3)]
    interrupted: bool | None = None


Line = Header | Item | Case | ConventionResult | Timing | Growth | SelfComparison | DiagnosisRecord | Unrun | Footer
LISTS: Final[dict[type, str]] = {
    Item: "items",
    Case: "cases",
    ConventionResult: "conventions",
    Timing: "timings",
    Growth: "growths",
    SelfComparison: "self_comparisons",
    DiagnosisRecord: "diagnoses",
    Unrun: "unrun",
}  # what may come between header and footer, and its name in Totals and Run
