"""Records: what a run did, as lines of JSON from which every report is made.

A header, then items, cases, conventions, timings, diagnoses … as they come, then a footer; ``conformance/records.schema.json``
describes each kind. A file without its footer is truncated. Record files may be joined one after the other: reading merges them.
"""

from conformance.records.coverage import Coverage, Coverages, Undeclared, undeclared
from conformance.records.entries import implementation_entry, requirement_entry
from conformance.records.environment import command_line, current_environment
from conformance.records.extent import due_of
from conformance.records.lines import decode, encode
from conformance.records.model import (
    CONFORMANCE_TIERS,
    SCHEMA_VERSION,
    Case,
    Convention,
    Counts,
    Diagnosis,
    DtypeResult,
    Environment,
    Explanation,
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
from conformance.records.picture import Picture
from conformance.records.reader import read_records
from conformance.records.run import Run, merge
from conformance.records.shards import merge_files, merge_shards
from conformance.records.shares import Share, shares, too_little
from conformance.records.unrun import Unrun
from conformance.records.writer import RecordWriter

__all__ = [
    "CONFORMANCE_TIERS",
    "SCHEMA_VERSION",
    "Case",
    "Convention",
    "Counts",
    "Coverage",
    "Coverages",
    "Diagnosis",
    "DtypeResult",
    "Environment",
    "Explanation",
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
    "due_of",
    "encode",
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
