"""The published JSON Schema of a line, generated: ``python -m conformance.records.schema`` writes records.schema.json anew."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from conformance.records.record_types import SCHEMA_VERSION, Line

FILE = "records.schema.json"


def schema() -> dict[str, Any]:
    """A JSON Schema, draft 2020-12, that each line of a record file obeys."""
    generated = msgspec.json.schema(Line)
    generated.pop("discriminator")  # a word of OpenAPI, not of JSON Schema
    for kind in generated["$defs"].values():
        kind["description"] = " ".join(kind["description"].split())
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of an attention-conformance record file, schema version {SCHEMA_VERSION}",
        "description": (
            "A record file is UTF-8 text, one JSON object a line: a header, then items, cases, conventions, timings, growths, "
            "self-comparisons, diagnoses and what never ran in any order, then a footer. A file without a footer is truncated. "
            "Files may be joined one after the other."
        ),
    }
    return {**head, **generated}


def schema_text() -> str:
    """The schema as it stands in the file."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"


def published() -> str:
    """The schema file that comes with the package."""
    return files("conformance").joinpath(FILE).read_text(encoding="utf-8")


if __name__ == "__main__":
    Path(str(files("conformance").joinpath(FILE))).write_text(schema_text(), encoding="utf-8")
