"""Writes every report of a run, the page included, into a folder."""

import json
from collections.abc import Iterable
from pathlib import Path

from conformance.errors import UsageError
from conformance.page import make_page
from conformance.page.plots import start_drawing
from conformance.records import Run
from conformance.reports.csv_ import results_csv, timings_csv
from conformance.reports.junit import junit_xml
from conformance.reports.markdown import summary_markdown
from conformance.reports.summary import summary
from conformance.system import files

RECORDS = "records.jsonl"  # what a run writes into the same folder


def load() -> None:
    """What is otherwise loaded when the first report is written, which takes the half of a second."""
    start_drawing()


def write_reports(run: Run, folder: Path | str, inputs: Iterable[Path] = ()) -> list[Path]:
    """Writes summary.md, report.html, summary.json, junit.xml, results.csv and, if there are timings, timings.csv; returns their
    paths.

    All of them are written or none. Raises UsageError where that cannot be done, as over one of the ``inputs``, and where a run
    is writing its records into the folder.
    """
    texts = {
        "summary.md": summary_markdown(run),
        "report.html": make_page(run),
        "summary.json": json.dumps(summary(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "junit.xml": junit_xml(run),
        "results.csv": results_csv(run),
    }
    if run.timings:
        texts["timings.csv"] = timings_csv(run)
    folder = Path(folder)
    files.demand_free(folder / RECORDS)
    try:
        files.write_all({folder / name: text for name, text in texts.items()}, inputs)
    except OSError as error:
        raise UsageError(f"The reports cannot be written to {folder}: {error.strerror}.") from None
    return [folder / name for name in texts]
