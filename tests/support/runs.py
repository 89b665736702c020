"""Makes records and record files of runs that never took place."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conformance.judging.verdict import Outcome
from conformance.records import (
    SCHEMA_VERSION,
    Case,
    ConventionResult,
    Counts,
    DiagnosisRecord,
    DtypeResult,
    Environment,
    ExplanationRecord,
    Header,
    ImplementationEntry,
    Item,
    Line,
    RecordWriter,
    RequirementEntry,
    Run,
    SelfComparison,
    Timing,
    read_records,
)
from conformance.records.accuracy import Accuracy, AccuracyEntry
from conformance.system.exit_codes import ExitCode

LINUX = Environment(
    python="3.11.7",
    platform="linux",
    machine="x86_64",
    cpu="A processor",
    cores=2,
    memory=8 << 30,
    instruction_set="avx512",
    packages={"numpy": "2.4.6", "torch": "2.13.0+cpu"},
)

FAILS: dict[str, Any] = {"outcome": Outcome.WRONG_VALUE, "status": "unexpected"}  # of an item


def digest(number: int) -> str:
    """The digest of an imaginary problem."""
    return f"{number:012x}"


def implementation(name: str, **changes: Any) -> ImplementationEntry:
    defaults: dict[str, Any] = {
        "name": name,
        "operation": "attention",
        "framework": "numpy",
        "framework_version": "2.4.6",
        "device": "cpu",
        "dtypes": ("float32", "float16"),
        "profile": {"float32": "strict"},
        "features": ("causal", "mask"),
        "routes": {"causal": ("native", "mask")},
        "layouts": ("contiguous",),
        "conventions": {},
        "source": "somewhere.py:1",
        "missing": None,
    }
    return ImplementationEntry(**{**defaults, **changes})


def requirement(identifier: str, operation: str = "attention") -> RequirementEntry:
    area = identifier.split("-")[1]
    return RequirementEntry(id=identifier, area=area, operation=operation, sentence=f"The sentence of {identifier}.")


def header(
    implementations: Iterable[str | ImplementationEntry] = ("fine", "flawed"),
    requirements: Iterable[str | RequirementEntry] = ("ATT-OUT-001",),
    **changes: Any,
) -> Header:
    defaults: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "suite": "0.1.0",
        "specification": "1.0",
        "started": datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
        "seed": 7,
        "tier": "full",
        "command": "attention-conformance run",
        "environment": LINUX,
        "implementations": tuple(implementation(i) if isinstance(i, str) else i for i in implementations),
        "requirements": tuple(requirement(r) if isinstance(r, str) else r for r in requirements),
    }
    return Header(**{**defaults, **changes})


def item(implementation: str = "fine", requirement: str = "ATT-OUT-001", **changes: Any) -> Item:
    defaults: dict[str, Any] = {"outcome": Outcome.PASS, "status": "expected"}
    return Item(requirement=requirement, implementation=implementation, **{**defaults, **changes})


def in_dtypes(**outcomes: str) -> dict[str, DtypeResult]:
    """What became of an item in each dtype, of one problem: PASS, UNSUPPORTED, or a failure, which is unexpected."""
    return {dtype: _in_dtype(Outcome(outcome)) for dtype, outcome in outcomes.items()}


def _in_dtype(outcome: Outcome) -> DtypeResult:
    counts = Counts(designed=int(outcome.was_run), unsupported=int(not outcome.was_run), failed=int(outcome.is_failure))
    return DtypeResult(outcome=outcome, status="unexpected" if outcome.is_failure else "expected", counts=counts)


def case(
    number: int = 0, implementation: str = "fine", requirement: str = "ATT-OUT-001", outcome: str = "PASS", **changes: Any
) -> Case:
    dtype = changes.pop("dtype", "float32")
    defaults: dict[str, Any] = {
        "stratum": "designed",
        "text": f"attention batch=1 heads=1 length={number + 1} width=4 dtype={dtype} values=gaussian.1#{number}",
        "status": "unexpected" if Outcome(outcome).is_failure else "expected",
    }
    return Case(
        id=f"{requirement}/{digest(number)}",
        requirement=requirement,
        implementation=implementation,
        dtype=dtype,
        outcome=Outcome(outcome),
        **{**defaults, **changes},
    )


def accuracy(*values: float, dtype: str = "float32", profile: str = "strict") -> tuple[AccuracyEntry, ...]:
    """How the values of r are distributed, for an item."""
    made = Accuracy()
    for r in values:
        made.add(dtype, profile, r)
    return made.entries()


def convention(implementation: str = "fine", identifier: str = "CON-EMPTY-ROW", **changes: Any) -> ConventionResult:
    wrong = changes.get("agrees") is False
    status = "unexpected" if wrong else "expected"
    defaults: dict[str, Any] = {"declared": "zeros", "observed": "zeros", "agrees": True, "status": status}
    return ConventionResult(id=identifier, implementation=implementation, **{**defaults, **changes})


def timing(implementation: str = "fine", shape: str = "decode", **changes: Any) -> Timing:
    defaults: dict[str, Any] = {
        "operation": "attention",
        "dtype": "float32",
        "outcome": Outcome.PASS,
        "calls": 30,
        "flops": 1000,
        "baseline": "fine",
        "median_seconds": 0.002,
        "low_quartile_seconds": 0.0019,
        "high_quartile_seconds": 0.0022,
        "ratio": 1.0,
        "percent_of_matmul": 12.5,
        "r": 0.25,
    }
    return Timing(implementation=implementation, shape=shape, **{**defaults, **changes})


def self_comparison(ratio: float = 1.0, implementation: str = "fine", **changes: Any) -> SelfComparison:
    """Sound for a ratio of about 1; another one is not."""
    defaults: dict[str, Any] = {
        "operation": "attention",
        "suite": "cpu-small",
        "shape": "decode",
        "dtype": "float32",
        "ratio_low": ratio - 0.02,
        "ratio_high": ratio + 0.02,
        "tolerance": 0.03,
    }
    return SelfComparison(implementation=implementation, ratio=ratio, **{**defaults, **changes})


def explanation(**changes: Any) -> ExplanationRecord:
    sentence = "matches fault scale-missing on 3 of 3 failing and 0 contradicting cases of 9 that pass, r ≤ 0.2: does not scale."
    defaults: dict[str, Any] = {
        "symptom": "values", "faults": ("scale-missing",), "explained": 3, "failing": 3, "passing": 9, "fresh": 2, "r": 0.15,
        "sentence": sentence,
    }  # fmt: skip
    return ExplanationRecord(**{**defaults, **changes})


def diagnosis(implementation: str = "flawed", **changes: Any) -> DiagnosisRecord:
    defaults: dict[str, Any] = {
        "explanations": (explanation(),),
        "remarks": ("no known fault explains 1 failing cases with an exception.",),
        "failing": 3,
        "passing": 9,
        "seconds": 1.5,
    }
    return DiagnosisRecord(implementation=implementation, **{**defaults, **changes})


def write(path: Path, *records: Line, exit_code: ExitCode | None = ExitCode.AS_EXPECTED) -> Path:
    """A record file; without an exit code it is left without its footer."""
    with RecordWriter(path) as writer:
        for record in records:
            writer.write(record)
        if exit_code is not None:
            writer.finish(exit_code)
    return path


def run(folder: Path, *records: Line, exit_code: ExitCode = ExitCode.AS_EXPECTED) -> Run:
    """The run that the records make, written and read back."""
    return read_records(write(folder / "records.jsonl", *records, exit_code=exit_code))
