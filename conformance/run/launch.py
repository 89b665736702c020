"""A run of the checks outside of anybody's test suite: pytest with our plugin, and with nothing of the user's own set-up."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from conformance.errors import UsageError
from conformance.plugin import CHECKS
from conformance.run.workers.started import Started
from conformance.system.exit_codes import FROM_PYTEST, ExitCode
from conformance.system.terminal_text import say
from conformance.system.world import SWITCH, note_environment

# Settings of the user's own tests, which a run of ours must not obey.
FOREIGN_SETTINGS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")

# What is to be said where pytest ends otherwise than with results.
ENDINGS: dict[int, str] = {
    pytest.ExitCode.INTERRUPTED: "Interrupted: what was recorded until then is kept, and is no complete run.",
    pytest.ExitCode.NO_TESTS_COLLECTED: "Nothing was run: no requirement or convention on an implementation fits -k.",
}
EARLY = "Interrupted: nothing was recorded."


def launch(options: Sequence[str], started: Started, *, keyword: str = "", more: Sequence[str] = ()) -> ExitCode:
    """Runs the checks with ``options`` (RUN_OPTIONS as words) and ``more`` words for pytest, in the processes that are
    ``started``; ``keyword`` selects as -k does. Raises UsageError for what makes no sense.
    """
    _demand_expression(keyword)
    session = _Session(started)
    ours = ["-p", "conformance.plugin", "--pyargs", CHECKS]
    ours += [*_surroundings(), *_appearance(), *_selected(keyword)]
    with _environment():
        code = pytest.main([*ours, *options, *more], plugins=[session])
    said = (ExitCode.AS_EXPECTED, ExitCode.USAGE_ERROR)  # a shard may have nothing to do; a usage error has had its sentence
    if session.ending in ENDINGS and code not in said:
        say(ENDINGS[session.ending], error=True)
    elif session.ending is None and code == pytest.ExitCode.INTERRUPTED:  # before there was anything to run
        say(EARLY, error=True)
    return ExitCode(int(code)) if session.ending is not None else FROM_PYTEST.get(int(code), ExitCode.INCONCLUSIVE)


def _demand_expression(keyword: str) -> None:
    """Raises UsageError, in our words, for what pytest would refuse too, after everything has been loaded."""
    try:
        Expression.compile(keyword)
    except Exception as error:  # a class of its own in each version of pytest
        raise UsageError(f"-k {keyword!r} cannot be read as names with and, or, not and parentheses: {error}.") from None


@contextmanager
def _environment() -> Iterator[None]:
    """The environment variables of a run. The processes in which implementations run know nothing of them."""
    before = dict(os.environ)
    for name in FOREIGN_SETTINGS:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins reorder, rerun or decorate
    os.environ[SWITCH] = note_environment(before, (*FOREIGN_SETTINGS, "PYTEST_DISABLE_PLUGIN_AUTOLOAD"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _surroundings() -> list[str]:
    """No configuration file, no conftest.py, no cache folder, no filters of warnings."""
    return [
        "-c",
        os.devnull,
        "--rootdir",
        os.getcwd(),
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        "-p",
        "no:warnings",
        "-p",
        "no:unraisableexception",  # it would warn of what a destructor raises, after a search of all memory
        "-p",
        "no:threadexception",
        "-p",
        "no:logging",  # what libraries log is theirs
    ]


def _appearance() -> list[str]:
    """Failures as their messages alone; the recorder's header, progress and tables take the place of pytest's."""
    return ["-q", "--tb=short", "-rN", "--assert=plain"]


def _selected(keyword: str) -> list[str]:
    return ["-k", keyword] if keyword else []


class _Session:
    """A pytest plugin that has the processes of the run, turns pytest's usage errors into ours, and learns how it ended."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.ending: int | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        try:
            return (yield)
        except pytest.UsageError as error:
            raise UsageError(_sentence(error)) from None

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            raise UsageError(_sentence(error)) from None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """What the run is; pytest itself would say it only among much else. Its closing line counts tests, which are not our
        results: the verdict stands in its place."""
        terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        if not session.config.option.collectonly:
            terminal.summary_stats = lambda: None
        recorder: Any = session.config.pluginmanager.get_plugin("conformance-recorder")
        for line in recorder.pytest_report_header():
            say(line)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """How pytest itself sees the end. What it returns is then the recorder's exit code."""
        self.ending = int(exitstatus)


def _sentence(error: pytest.UsageError) -> str:
    """pytest's message without the usage that its option parser prints before, and the files that it names after."""
    text = str(error)
    if "error: " not in text:
        return text
    message = text.split("error: ", 1)[1].splitlines()[0].strip()
    return f"pytest does not understand the arguments after --: {message}."
