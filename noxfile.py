"""Every chore of this repository, one session each: ``pip install nox``, then ``nox -s conformance``.

All sessions but ``lint`` and ``mutants`` share one virtual environment, ``.nox/suite-<python version>``. An environment of its
own for each, as nox would make, means a PyTorch of about a gigabyte for each. It is built with the versions of constraints.txt,
by the Python that nox runs under, and again only when pyproject.toml, constraints.txt or that Python has changed: a second run
needs no network.
"""

import hashlib
import os
import platform
import sys
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["lint", "types", "tests", "golden"]
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "constraints.txt"
PYPROJECT = ROOT / "pyproject.toml"
ENVIRONMENT = ROOT / ".nox" / f"suite-{sys.version_info.major}.{sys.version_info.minor}"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
WORKFLOWS = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(".github/workflows/*.yml"))]
ACTION = "action.yml"
# Each worker imports the frameworks: beyond eight, that costs more than the worker gives.
TEST_WORKERS = ("-n", "auto", "--maxprocesses", "8")


def group(name: str) -> list[str]:
    """The packages of a dependency group of pyproject.toml."""
    return list(nox.project.dependency_groups(nox.project.load_toml(PYPROJECT), name))


def prepare(session: nox.Session) -> None:
    """Makes the shared environment, or leaves it as it is where nothing has changed that it was made from."""
    needed, here = nox.project.load_toml(PYPROJECT)["project"]["requires-python"], platform.python_version()
    if here not in SpecifierSet(needed):
        session.error(f"The suite needs Python {needed}, nox runs under {here}: install nox with another one.")
    digest = hashlib.sha256()
    for part in (PYPROJECT.read_bytes(), CONSTRAINTS.read_bytes(), sys.version.encode(), sys.base_prefix.encode()):
        digest.update(part)
    made_from = ENVIRONMENT.with_name(f"{ENVIRONMENT.name}.made-from")
    if made_from.exists() and made_from.read_text() == digest.hexdigest() and PROGRAMS.exists():
        session.log(f"Using {ENVIRONMENT.relative_to(ROOT)} as it is.")
        return
    session.log(f"Making {ENVIRONMENT.relative_to(ROOT)}: PyTorch and JAX are large, this takes a few minutes the first time.")
    made_from.unlink(missing_ok=True)
    # virtualenv comes with nox and, unlike venv, needs no further package on Debian
    session.run(sys.executable, "-m", "virtualenv", "--quiet", str(ENVIRONMENT))
    run(
        session,
        "python",
        "-m",
        "pip",
        "install",
        "--constraint",
        str(CONSTRAINTS),
        "--editable",
        ".[all]",
        *group("tests"),
        *group("types"),
    )
    made_from.write_text(digest.hexdigest())


def run(session: nox.Session, program: str, *arguments: str) -> None:
    """Runs a program of the shared environment; the session fails where it does."""
    session.run(str(PROGRAMS / program), *arguments)


@nox.session(python=False)
def conformance(session: nox.Session) -> None:
    """Judge the implementations, print the tables, write reports/. What follows -- goes to `attention-conformance run`."""
    prepare(session)
    run(session, "attention-conformance", "run", *session.posargs)


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """The suite's own tests. What follows -- goes to pytest."""
    prepare(session)
    run(session, "python", "-m", "pytest", *TEST_WORKERS, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format, of which `nox -s lint -- --fix` fixes what it can; then the workflows and the action."""
    session.install("--constraint", str(CONSTRAINTS), *group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION)
    session.run("zizmor", "--offline", "--no-progress", "--persona", "pedantic", ".github", ACTION)


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """Mypy, as pyproject.toml sets it up."""
    prepare(session)
    run(session, "python", "-m", "mypy", *session.posargs)


@nox.session(python=False)
def golden(session: nox.Session) -> None:
    """Compute every golden case again and compare, byte for byte."""
    prepare(session)
    run(session, "attention-conformance", "golden", "check", *session.posargs)


@nox.session(python=False)
def soak(session: nox.Session) -> None:
    """100,000 random problems: correct implementations stay within their budgets."""
    prepare(session)
    run(session, "python", "-m", "conformance.soak", *session.posargs)


@nox.session(python=False)
def hostile(session: nox.Session) -> None:
    """20,000 damaged files and hundreds of hostile implementations. What follows -- selects of these, as in -- hangs import."""
    prepare(session)
    if not session.posargs:
        run(session, "python", "-m", "tests.attacks.files")
    run(session, "python", "-m", "tests.attacks.trial", *session.posargs)


@nox.session(python=False)
def faults(session: nox.Session) -> None:
    """The catalogue of faults: each must be caught in the quick tier. What follows -- goes to `attention-conformance faults`."""
    prepare(session)
    run(session, "attention-conformance", "faults", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Changes one thing at a time in the central modules; quick tests must notice. Some alone: -- oracle/budget."""
    session.install("--constraint", str(CONSTRAINTS), "--editable", ".", *group("mutants"))
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """What the suite itself costs per problem, then speed, memory and growth. What follows -- goes to `bench`."""
    prepare(session)
    run(session, "attention-conformance", "bench", "--cost", *session.posargs)
