"""What of a source file was never run, from its text and from the lines and branches that were not reached."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from conformance.records.unrun import Block, Branch, Function

LONGEST = 60  # characters of a condition that are shown
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Unreached:
    """What of a file was never run."""

    blocks: tuple[Block, ...] = ()
    branches: tuple[Branch, ...] = ()
    functions: tuple[Function, ...] = ()


def unreached(
    text: str, file: str, executable: Collection[int], missing: Collection[int], arcs: Collection[tuple[int, int]]
) -> Unreached:
    """``executable`` lines are those that can be run, ``missing`` those of them that were not, ``arcs`` the steps from a line to
    another one, or out of the function (a number below 0), that were not taken though the line was run.

    Raises SyntaxError, ValueError for a text that is no Python.
    """
    reading = _Reading(file, frozenset(executable), frozenset(missing), frozenset(arcs))
    reading.functions_of(ast.parse(text).body, "")
    return Unreached(tuple(reading.blocks), tuple(reading.branches), tuple(reading.functions))


class _Reading:
    """Goes through the functions of a file."""

    def __init__(self, file: str, executable: frozenset[int], missing: frozenset[int], arcs: frozenset[tuple[int, int]]) -> None:
        self._file, self._executable, self._missing, self._arcs = file, executable, missing, arcs
        self.blocks: list[Block] = []
        self.branches: list[Branch] = []
        self.functions: list[Function] = []

    def functions_of(self, suite: Sequence[ast.stmt], prefix: str) -> None:
        """The functions and methods in ``suite``, in whatever statement they stand."""
        for node in suite:
            if isinstance(node, _FUNCTIONS):
                self._function(node, prefix)
            else:
                inside = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
                for _, statements in _suites(node):
                    self.functions_of(statements, inside)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> None:
        lines = self._lines(node.body)
        if not lines:
            return
        if lines <= self._missing:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            self.functions.append(Function(file=self._file, name=f"{prefix}{node.name}", first=first, last=_end(node)))
            return
        self._suite(node.body, "")
        self.functions_of(node.body, f"{prefix}{node.name}.")

    def _suite(self, suite: Sequence[ast.stmt], condition: str) -> None:
        """Statements one after another, of which all, some or none were run."""
        lines = self._lines(suite)
        if lines and lines <= self._missing:
            self.blocks.append(Block(file=self._file, first=suite[0].lineno, last=_end(suite[-1]), condition=condition))
            return
        unrun: list[ast.stmt] = []
        for node in suite:
            lines = self._lines([node])
            if lines and lines <= self._missing:
                unrun.append(node)
                continue
            self._flush(unrun)
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self._inside(node)
        self._flush(unrun)

    def _flush(self, unrun: list[ast.stmt]) -> None:
        """What follows a statement that always leaves the suite."""
        if unrun:
            self.blocks.append(Block(file=self._file, first=unrun[0].lineno, last=_end(unrun[-1])))
            unrun.clear()

    def _inside(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If | ast.While):
            self._condition(node)
        for condition, suite in _suites(node):
            self._suite(suite, condition)

    def _condition(self, node: ast.If | ast.While) -> None:
        """A condition that was never false where nothing stands that would be run then: no lines tell of it."""
        if node.orelse or isinstance(node.test, ast.Constant):
            return
        body = self._lines(node.body)
        untaken = {target for line, target in self._arcs if line == node.lineno}
        if untaken - body and not untaken & body:
            self.branches.append(Branch(file=self._file, line=node.lineno, condition=_shown(node), answer=True))

    def _lines(self, suite: Sequence[ast.stmt]) -> frozenset[int]:
        """The lines of the statements that can be run, without those within functions that they define."""
        found: set[int] = set()
        for node in suite:
            inner: set[int] = set()
            for function in (one for one in ast.walk(node) if isinstance(one, _FUNCTIONS)):
                inner.update(range(function.body[0].lineno, _end(function) + 1))
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            found.update(line for line in range(first, _end(node) + 1) if line in self._executable and line not in inner)
        return frozenset(found)


def _suites(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The suites within a statement, each with what it hangs on."""
    if isinstance(node, ast.If | ast.While | ast.For | ast.AsyncFor):
        condition = _shown(node)
        yield condition, node.body
        yield f"else of {condition}", node.orelse  # an elif is one, too, and a statement of its own within it
    elif isinstance(node, ast.Try | ast.TryStar):
        yield "", node.body
        for handler in node.handlers:
            yield _cut(f"except {ast.unparse(handler.type)}" if handler.type else "except"), handler.body
        yield "else of try", node.orelse
        yield "finally", node.finalbody
    elif isinstance(node, ast.Match):
        for case in node.cases:
            guard = f" if {ast.unparse(case.guard)}" if case.guard else ""
            yield _cut(f"case {ast.unparse(case.pattern)}{guard}"), case.body
    elif isinstance(node, ast.With | ast.AsyncWith | ast.ClassDef):
        yield "", node.body


def _shown(node: ast.If | ast.While | ast.For | ast.AsyncFor) -> str:
    if isinstance(node, ast.For | ast.AsyncFor):
        return _cut(f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}")
    word = "if" if isinstance(node, ast.If) else "while"
    return _cut(f"{word} {ast.unparse(node.test)}")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
