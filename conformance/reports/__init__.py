"""Reports, made of records and nothing else: tables for pages and terminals, JUnit XML, CSV, a JSON summary."""

from conformance.reports.csv_ import results_csv, timings_csv
from conformance.reports.junit import junit_xml
from conformance.reports.markdown import summary_markdown
from conformance.reports.speed import growth_table, self_comparison_table, speed_tables, timing_tables
from conformance.reports.summary import summary
from conformance.reports.tables import (
    Table,
    accuracy_table,
    answers_table,
    conformance_table,
    conventions_tables,
    diagnosis_table,
    dtypes_table,
    failures_table,
    left_table,
    missing_table,
    routes_table,
    unrun_table,
)
from conformance.reports.terminal import terminal_summary
from conformance.reports.verdict import lines, verdict

__all__ = [
    "Table",
    "accuracy_table",
    "answers_table",
    "conformance_table",
    "conventions_tables",
    "diagnosis_table",
    "dtypes_table",
    "failures_table",
    "growth_table",
    "junit_xml",
    "left_table",
    "lines",
    "missing_table",
    "results_csv",
    "routes_table",
    "self_comparison_table",
    "speed_tables",
    "summary",
    "summary_markdown",
    "terminal_summary",
    "timing_tables",
    "timings_csv",
    "unrun_table",
    "verdict",
]  # fmt: skip
