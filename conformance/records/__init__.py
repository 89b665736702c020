"""Records: what a run did, as lines of JSON from which every report is made.

A header, then items, cases, conventions, timings, diagnoses … as they come, then a footer; ``conformance/records.schema.json``
describes each kind. A file without its footer is truncated. Record files may be joined one after the other: reading merges them.
"""

from conformance.records.coverage import AreaCoverage, Coverages, Undeclared, undeclared
from conformance.records.entries import implementation_entry, requirement_entry
from conformance.records.environment import command_line, current_environment
from conformance.records.extent import expected_of
from conformance.records.lines import decode, encode
from conformance.records.merging import merge_files, merge_shards
from conformance.records.picture import Picture
from conformance.records.reader import read_records
from conformance.records.record_types import (
    CONFORMANCE_TIERS,
    SCHEMA_VERSION,
    Case,
    ConventionResult,
    Counts,
    DiagnosisRecord,
    DtypeResult,
    Environment,
    ExplanationRecord,
    Growth,
    Header,
    ImplementationEntry,
    Item,
    Line,
    Passes,
    RequirementEntry,
    SelfComparison,
    Tier,
    Timing,
)
from conformance.records.run import Run, merge
from conformance.records.shares import Share, shares, too_little
from conformance.records.unrun import Unrun
from conformance.records.writer import RecordWriter

__all__ = [
    "CONFORMANCE_TIERS",
    "SCHEMA_VERSION",
    "AreaCoverage",
    "Case",
    "ConventionResult",
    "Counts",
    "Coverages",
    "DiagnosisRecord",
    "DtypeResult",
    "Environment",
    "ExplanationRecord",
    "Growth",
    "Header",
    "ImplementationEntry",
    "Item",
    "Line",
    "Passes",
    "Picture",
    "RecordWriter",
    "RequirementEntry",
    "Run",
    "SelfComparison",
    "Share",
    "Tier",
    "Timing",
    "Undeclared",
    "Unrun",
    "command_line",
    "current_environment",
    "decode",
    "encode",
    "expected_of",
    "implementation_entry",
    "merge",
    "merge_files",
    "merge_shards",
    "read_records",
    "requirement_entry",
    "shares",
    "too_little",
    "undeclared",
]  # fmt: skip
