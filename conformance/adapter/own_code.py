"""The code that is an implementation's own: its functions and classes, and those that they name in the same package, or, of a
user's file, in the same folder. It is found by looking at what is there: nothing is imported, and nothing of the user's is run.
"""

import dis
import inspect
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from conformance.adapter import CompilesShapes, Implementation
from conformance.adapter.parameters import KEPT_IN
from conformance.adapter.registry import BUILTIN
from conformance.specification.own_sizes import COMMON, LARGEST
from conformance.specification.requirement import Facts

MOST_FUNCTIONS = 200
MOST_FILES = 8
DEEPEST = 5  # calls of calls
LONGEST = 64  # entries of a collection that are looked at
SUITE = __name__.partition(".")[0]
_MISSING = object()
# Where what is called keeps the Python function: KEPT_IN, compilers of kernels, properties that are computed once.
_COMPILED_IN = ("fn", "py_func")  # of triton, numba
_WRAPPED_IN = (*KEPT_IN, *_COMPILED_IN, "func")
_RUN_WHEN_MADE = ("__new__", "__init__", "__post_init__")
_RUN_WHEN_CALLED = ("__call__", "forward", "call")


@dataclass(frozen=True)
class OwnCode:
    """``functions`` in the order in which they were met, the nearest to the called one first; the ``numbers`` that they read (in
    their code, in defaults, in constants of modules and classes), each with how many calls lie before it."""

    functions: tuple[FunctionType, ...] = ()
    numbers: dict[int, int] = field(default_factory=dict)
    compiled: tuple[
        FunctionType, ...
    ] = ()  # of the functions, those that another tool compiles, so that they never run as they are


def own_code(implementation: Implementation) -> OwnCode:
    """Empty where nothing of it is written in Python."""
    walk = _Walk(_homes(implementation.function))
    walk.take(implementation.function, 0)
    walk.run()
    return OwnCode(tuple(walk.functions), walk.numbers, tuple(walk.compiled))


def own_files(implementation: Implementation) -> tuple[str, ...]:
    """The Python files of its functions, a few, that of the function which is called first."""
    files = dict.fromkeys(function.__code__.co_filename for function in own_code(implementation).functions)
    return tuple(file for file in files if file.endswith(".py") and Path(file).is_file())[:MOST_FILES]


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@dataclass(frozen=True)
class _Home:
    """What is the implementation's own: a ``package`` with all that is in it, or the ``files`` of a folder."""

    package: str = ""
    folder: Path | None = None
    file: str = ""

    def has(self, module: str, file: str) -> bool:
        if self.package:
            return module == self.package or module.startswith(f"{self.package}.")
        return file == self.file or (self.folder is not None and bool(file) and Path(file).parent == self.folder)


def _homes(function: Any) -> tuple[_Home, ...]:
    """Where the function and what it wraps are at home, without the suite itself; the libraries of a mere wrapper are not."""
    chain = list(_unwrapped(function, 8))
    found = [home for home in map(_home, chain) if home is not None]
    return tuple(dict.fromkeys([*found[-1:], *(home for home in found if not home.package)]))


def _unwrapped(function: Any, depth: int) -> Iterator[Any]:
    """The function, and what it wraps, from the outside to the inside."""
    while depth and function is not None:
        yield function
        depth -= 1
        if isinstance(function, MethodType):
            yield function.__self__
        if isinstance(function, partial):
            function = function.func
            continue
        kept = (_static(function, name) for name in _WRAPPED_IN)
        inner = next((one for one in kept if callable(one) and one is not function), None)
        if inner is None and isinstance(function, FunctionType):
            cells = [one for one in _cells(function) if callable(one) and not inspect.isclass(one)]
            inner = cells[0] if len(cells) == 1 else None
        function = inner


def _home(one: Any) -> _Home | None:
    """None for what is not written in Python, and for the suite's own code, which is never an implementation's."""
    module, file = _place(one)
    package = BUILTIN if module.startswith(BUILTIN) else module.partition(".")[0]
    if not module or package == SUITE or package == "builtins":
        return None
    if "." in module or hasattr(sys.modules.get(module), "__path__"):
        return _Home(package=package)
    shared = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")}
    folder = Path(file).parent if file else None
    return _Home(folder=None if folder in shared else folder, file=file)


def _place(one: Any) -> tuple[str, str]:
    """The module and file in which a function, a class, the class of an object, or a module was written; empty where unknown."""
    if isinstance(one, MethodType):
        one = one.__func__
    if isinstance(one, FunctionType):
        return str(one.__globals__.get("__name__", "")), one.__code__.co_filename
    if isinstance(one, ModuleType):
        return one.__name__, str(vars(one).get("__file__") or "")
    kind = one if isinstance(one, type) else type(one)
    module = kind.__dict__.get("__module__", "")
    module = module if isinstance(module, str) else ""
    return module, str(getattr(sys.modules.get(module), "__file__", None) or "")


class _Walk:
    """Goes from function to function, those that are nearer first."""

    def __init__(self, homes: tuple[_Home, ...]) -> None:
        self.functions: list[FunctionType] = []
        self.numbers: dict[int, int] = {}
        self.compiled: list[FunctionType] = []
        self._homes = homes
        self._waiting: deque[tuple[FunctionType, Any, int]] = deque()
        self._seen: dict[int, Any] = {}  # by address; kept, so that no address is used twice

    def run(self) -> None:
        while self._waiting and len(self.functions) < MOST_FUNCTIONS:
            function, owner, depth = self._waiting.popleft()
            self.functions.append(function)
            self._read(function, owner, depth)

    def take(self, value: Any, depth: int, owner: Any = None, nested: int = 0) -> None:
        """Notes what a function reads or calls: a number, a function, a class, an object, or a collection of these."""
        if isinstance(value, int | np.integer):
            if not isinstance(value, bool):
                self.numbers.setdefault(int.__add__(value, 0) if isinstance(value, int) else int(value), depth)
        elif type(value) in (tuple, list, set, frozenset, dict):
            if len(value) <= LONGEST and nested < 3:
                entries = (*value, *value.values()) if isinstance(value, dict) else tuple(value)
                for entry in entries:
                    self.take(entry, depth, owner, nested + 1)
        elif not isinstance(value, str | bytes | float | complex | ModuleType | CodeType) and value is not None:
            self._take_object(value, depth, owner)

    def _take_object(self, value: Any, depth: int, owner: Any) -> None:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, MethodType):
            value, owner = value.__func__, value.__self__
        if id(value) in self._seen or depth > DEEPEST:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            if self._is_own(value):
                self._waiting.append((value, owner, depth))
        elif isinstance(value, partial):
            self.take((value.func, *value.args, *value.keywords.values()), depth)
        elif self._is_own(value):
            names = _RUN_WHEN_MADE if isinstance(value, type) else _RUN_WHEN_CALLED
            for method in (_static(value, name) for name in names):
                self.take(method, depth, value)
        for inner in (_static(value, name) for name in _WRAPPED_IN):
            if isinstance(inner, FunctionType | MethodType | partial) or self._is_own(inner):
                self.take(inner, depth, owner)
        self.compiled += [inner for inner in (_static(value, name) for name in _COMPILED_IN) if isinstance(inner, FunctionType)]

    def _read(self, function: FunctionType, owner: Any, depth: int) -> None:
        """What stands in the function's code, and what its names mean."""
        names: dict[str, None] = {}
        for code in codes(function.__code__):
            for constant in (*code.co_consts, *_small_numbers(code)):
                self.take(constant, depth)
            names |= dict.fromkeys(code.co_names)
        self.take((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()), depth)
        known = [*_cells(function), *(function.__globals__[name] for name in names if name in function.__globals__)]
        known += _imported(names, str(function.__globals__.get("__package__") or ""))
        for value in known:
            self.take(value, depth + 1 if callable(value) else depth)
        bases = [owner, *known]
        met: dict[int, Any] = {}
        while bases and len(met) < LONGEST:
            base = bases.pop(0)
            if id(base) in met or base is None or not self._is_own(base) or isinstance(base, FunctionType):
                continue
            met[id(base)] = base
            for value in (value for name in names for value in _statics(base, name)):
                self.take(value, depth + 1 if _is_run(value) else depth, None if isinstance(base, ModuleType) else base)
                bases.append(value)

    def _is_own(self, value: Any) -> bool:
        if value is None or value is _MISSING:
            return False
        module, file = _place(value)
        return any(home.has(module, file) for home in self._homes)


def _is_run(value: Any) -> bool:
    return isinstance(value, FunctionType | MethodType | staticmethod | classmethod | property | type | partial)


def _statics(base: Any, name: str) -> Iterator[Any]:
    """The attribute, and of a class or an object also those of the classes above, which ``super()`` finds."""
    found = _static(base, name)
    if found is not _MISSING:
        yield found
    if not isinstance(base, ModuleType):
        kind = base if isinstance(base, type) else type(base)
        above = (one.__dict__[name] for one in type.mro(kind) if name in one.__dict__)
        yield from (value for value in above if value is not found)


def _static(base: Any, name: str) -> Any:
    """The attribute without running anything: of a module, a class, an object, or among the parts that an object keeps in a
    dictionary of its own, as torch's modules do."""
    if isinstance(base, ModuleType):
        return vars(base).get(name, _MISSING)
    found = inspect.getattr_static(base, name, _MISSING)
    if isinstance(found, MemberDescriptorType) and not isinstance(base, type):
        try:
            return found.__get__(base)
        except AttributeError:
            return _MISSING
    if found is not _MISSING or isinstance(base, type):
        return found
    try:
        parts = tuple(object.__getattribute__(base, "__dict__").values())
    except AttributeError:
        parts = ()
    return next((part[name] for part in parts if type(part) is dict and name in part), _MISSING)


def _cells(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # empty still
            continue
    return found


def _imported(names: Iterable[str], package: str) -> Iterator[Any]:
    """What functions import when they are called, where it has been imported before."""
    for name in names:
        for full in (name, f"{package}.{name}" if package else ""):
            if full in sys.modules:
                yield sys.modules[full]


def _small_numbers(code: CodeType) -> Iterator[int]:
    """Numbers that stand in the instructions and not among the constants, as from Python 3.14 on."""
    if "LOAD_SMALL_INT" in dis.opmap:
        yield from (instruction.argval for instruction in dis.get_instructions(code) if instruction.opname == "LOAD_SMALL_INT")


SMALLEST = 2  # of numbers that may be sizes
MOST = 64  # numbers that are asked about


def own_sizes(implementation: Implementation) -> tuple[int, ...]:
    """The likeliest first: those declared, then those that stand in what is called, then those in what that calls."""
    found = own_code(implementation).numbers
    likeliest = sorted(found, key=lambda number: (number <= COMMON, found[number]))
    wanted = (number for number in (*implementation.support.sizes, *likeliest) if SMALLEST <= number <= LARGEST)
    return tuple(dict.fromkeys(wanted))[:MOST]


def is_dear(implementation: Implementation) -> bool:
    """Whether each new shape costs a compilation."""
    return implementation.support.compiles or isinstance(implementation.framework, CompilesShapes)


def facts_of(implementation: Implementation, thorough: bool) -> Facts:
    """What requirements may know of it. With a budget of shapes it is asked at no sizes of its own."""
    support = implementation.support
    return Facts(
        sizes=own_sizes(implementation) if support.shapes is None else (),
        features=implementation.features,
        dtypes=support.dtypes,
        dear=is_dear(implementation),
        thorough=thorough,
    )
