"""The data go one way: no module imports one that comes later on it, inside functions either."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance

PACKAGE = Path(conformance.__file__).parent
# From the bottom to the top, as docs/architecture.md draws it.
LAYERS = (
    "errors exit_codes files streams terminal_text user_files threads interruption command",
    "run_options shards world",
    "children floating_point",
    "data dtypes resources philox returned",
    "problem inputs features operations visibility scale",
    "cases.golden cases.golden_files",
    "values",
    "oracle",
    "verdict bias",
    "specification",
    "cases",
    "parameters adapter",
    "limits",
    "support_types user_function registry routes",
    "own_code own_sizes",
    "shape_budget",
    "declarations narrowing given prepared harness",
    "judging soundness",
    "accuracy kinds records",
    "known",
    "loading",
    "expectations",
    "checks",
    "unreached",
    "soak",
    "faults",
    "evaluation",
    "soak.__main__",
    "diagnosis",
    "reports",
    "page",
    "report_files",
    "comparison history",
    "timing",
    "workers",
    "session plugin launch ci",
    "smoke starter describe repro golden_tool interface",
    "elsewhere",
    "cli_records",
    "cli __main__",
)
REPORTS = ("reports", "page", "report_files")
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names.split()}


# What features and operations bring for later rooms, such as requirements for the specification, is made when these ask for it.
BROUGHT = {
    "features": {"specification", "oracle", "values"},
    "operations": {
        *("values", "oracle", "specification", "cases", "limits", "routes", "prepared", "soak", "faults", "diagnosis"),
    },
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
    known = {imported.split(".")[0] for module, imported in _imports() if module.startswith(REPORTS)}
    below = {"accuracy", "verdict", "dtypes", "oracle", "errors", "files", "problem", "exit_codes", "terminal_text", "returned"}
    assert known == {"reports", "page", "records", *below}
    of_oracle = {imported for module, imported in _imports() if module.startswith(REPORTS) and imported.startswith("oracle")}
    assert of_oracle == {"oracle.profiles"}, "names of profiles are all that a report needs"


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
