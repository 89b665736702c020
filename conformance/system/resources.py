"""Paths: where the data that travel with the suite lie, in a checkout as in a wheel, and how a file is shown to a reader."""

from pathlib import Path

from conformance.errors import UsageError
from conformance.system.user_files import real


def shown(path: Path | str) -> str:
    """A file's path as a reader finds it on any machine: from the current folder, or from the folder of the suite's packages."""
    path = real(path)
    for folder in (Path.cwd(), Path(__file__).parents[2]):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)


def expectations_folder() -> Path:
    """Where the known failures of the built-in implementations lie."""
    return _packed("implementations") / "expectations"


def _packed(name: str) -> Path:
    """A folder that lies within the package where that is installed, and beside it in a checkout."""
    here = Path(__file__).resolve().parents[1]
    return here / name if (here / name).is_dir() else here.parent / name


def golden_folder() -> Path:
    """The folder ``golden``; raises UsageError where it is missing."""
    folder = _packed("golden")
    if not (folder / "schema.json").is_file():
        raise UsageError(f"The golden fixtures are missing: {folder} has no schema.json; install attention-conformance anew.")
    return folder
