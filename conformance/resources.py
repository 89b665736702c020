"""Where the data that travel with the suite lie: beside the package, in a checkout as in an installed wheel."""

from pathlib import Path

from conformance.errors import UsageError


def golden_folder() -> Path:
    """The folder ``golden``, a sibling of the package; raises UsageError where it is missing."""
    folder = Path(__file__).resolve().parent.parent / "golden"
    if not (folder / "schema.json").is_file():
        raise UsageError(f"The golden fixtures are missing: {folder} has no schema.json; install attention-conformance anew.")
    return folder
