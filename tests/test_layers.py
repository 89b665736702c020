"""The data go one way: no module imports one that comes later on it, inside functions either."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance

PACKAGE = Path(conformance.__file__).parent
# From the bottom to the top, as docs/architecture.md draws it.
LAYERS = (
    "errors renamed",
    "system",
    "numerics",
    "problem features operations",
    "values",
    "oracle",
    "specification",
    "adapter",
    "harness",
    "judging",
    "cases",
    "records",
    "adapter.known",
    "adapter.loading",
    "expectations",
    "checks",
    "soak",
    "faults",
    "evaluation",
    "soak.__main__",
    "diagnosis",
    "reports",
    "page",
    "comparison history",
    "timing",
    "run plugin",
    "ci",
    "golden_tool interface commands",
    "cli __main__",
)
REPORTS = ("reports", "page")
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names.split()}


# What features and operations bring for later rooms, such as requirements for the specification, is made when these ask for it.
BROUGHT = {
    "features": {"specification", "oracle", "values"},
    "operations": {"values", "oracle", "specification", "cases", "adapter", "harness", "soak", "faults", "diagnosis"},
}


def test_no_module_imports_a_later_one():
    for module, imported in _imports():
        brought = imported.split(".")[0] in BROUGHT.get(module.split(".")[0], ())
        assert brought or _place(imported) <= _place(module), f"{module} imports {imported}, which comes after it"


@pytest.mark.parametrize("room", BROUGHT)
def test_what_is_brought_for_later_rooms_is_imported_inside_functions_alone(room):
    for path in (PACKAGE / room).glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.removeprefix("conformance.").split(".")[0] not in BROUGHT[room], path.name


def test_reports_know_records_and_no_judging():
    known = {imported for module, imported in _imports() if module.startswith(REPORTS) and not imported.startswith(REPORTS)}
    below = {"errors", "problem", "problem.returned", "judging.verdict", "numerics.dtypes", "numerics.profiles"}
    printing = {"system.exit_codes", "system.files", "system.terminal_text"}
    assert {name for name in known if name.split(".")[0] != "records"} == below | printing


def test_a_class_has_a_name_of_its_own():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: there for name, there in places.items() if len(there) > 1} == {}


def _place(module: str) -> int:
    package, *rest = module.split(".")
    assert package in PLACE, f"{package} has no place in LAYERS yet"
    return PLACE.get(".".join((package, *rest[:1])), PLACE[package])


def _imports() -> Iterator[tuple[str, str]]:
    """Module and imported module, both without the name of the package."""
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if module != "__init__" and isinstance(node, ast.ImportFrom) and node.module:
                if node.module == "conformance":
                    yield from ((module, alias.name) for alias in node.names if alias.name in PLACE)
                elif node.module.startswith("conformance."):
                    package = node.module.removeprefix("conformance.")
                    yield from ((module, _submodule(package, alias.name)) for alias in node.names)


def _submodule(package: str, name: str) -> str:
    """What ``from package import name`` brings: a module of the package where there is one of that name."""
    return f"{package}.{name}" if (PACKAGE / package.replace(".", "/") / f"{name}.py").exists() else package
