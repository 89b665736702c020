"""The command line: ``attention-conformance …``. Each command hands over to a function elsewhere, imported when it is needed."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from conformance import __version__, renamed
from conformance.checks.run_options import (
    DEFAULT_SEED,
    FUNCTION_OPTIONS,
    IMPLEMENTATION,
    LARGEST_SEED,
    RUN_OPTIONS,
    RunOption,
    function_settings,
)
from conformance.commands.of_records import COMMANDS, ImplementationName, UserPath
from conformance.commands.starter import FRAMEWORKS, command, write_starter
from conformance.system.command import CommandGroup
from conformance.system.exit_codes import ExitCode
from conformance.system.terminal_text import say

PATHS = ("FILE", "FOLDER", "PATH")  # metavars of RUN_OPTIONS

LONGEST_TIME = 86400.0 * 7  # seconds


class Commands(CommandGroup):
    """All commands."""

    makers = frozenset({"run", "merge", "page", "badge", "new", "expectations", "action"})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, renamed.COMMANDS.get(cmd_name, cmd_name))


def _options(options: Iterable[RunOption], **defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """click's options for some of the table; ``defaults`` by name take the place of the table's."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(list(options)):
            both_ways = option.switch and not option.flag.startswith("--no-")
            flag = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if both_ways else option.flag
            default = defaults.get(option.name, option.default)
            kind: Any = bool if option.switch else click.Choice(option.choices) if option.choices else option.type
            kind = UserPath() if option.metavar in PATHS else ImplementationName() if option is IMPLEMENTATION else kind
            command = click.option(
                flag, option.name, is_flag=option.switch, type=kind, default=default, multiple=option.repeated,
                metavar=option.metavar, help=option.help,
                show_default=default not in (None, ()),
            )(command)  # fmt: skip
        return command

    return decorate


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="attention-conformance")
def main() -> None:
    """Judges implementations of Transformer attention.

    Exit codes: 0 as expected, 1 something is not, 2 the request makes no sense, 3 the run proves nothing.
    """


for one in COMMANDS:
    main.add_command(one)


@main.command()
@_options(RUN_OPTIONS, reports="reports", timing=True)
@click.option("-k", "keyword", default="", metavar="EXPR", help="only items whose name matches, such as 'ATT-MASK and not numpy'")
@click.option(
    "-n",
    "workers",
    default="auto",
    metavar="N",
    show_default=True,
    help="how many items run at a time, in processes apart; auto: one a core",
)
@click.argument("more", nargs=-1, metavar="[-- PYTEST ARGUMENTS]")
def run(keyword: str, workers: str, more: tuple[str, ...], **values: Any) -> ExitCode:
    """Judge implementations, print the tables, write the reports."""
    from conformance.run.workers.started import Started, number_of
    from conformance.system.children import adopt_orphans

    adopt_orphans()
    started = Started(number_of(workers))
    source = click.get_current_context().get_parameter_source("timing")
    if (keyword or values["tier"] == "quick") and source is ParameterSource.DEFAULT:
        values["timing"] = False  # who asks for some requirements, or for a look around, has not asked for speed
    words = [word for option in RUN_OPTIONS for word in option.words(values[option.name])]
    try:
        from conformance.run.launch import launch

        return launch(words, started, keyword=keyword, more=more)
    finally:
        started.end()


@main.command("list")
def list_command() -> None:
    """Show the built-in implementations, the areas of requirements, the conventions."""
    from conformance.adapter import registry
    from conformance.commands.describe import list_all

    say(list_all(registry.builtin().values()))


def _time_limit(seconds: float, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--time-limit", type=click.FloatRange(0, LONGEST_TIME, min_open=True), default=seconds, show_default=True,
        metavar="SECONDS", help=what,
    )  # fmt: skip


@main.command()
@click.argument("implementation", type=ImplementationName())
@_options(FUNCTION_OPTIONS)
@_time_limit(300.0, "in which it must have been observed")
def describe(implementation: str, time_limit: float, **values: Any) -> ExitCode:
    """Show what an implementation declares, and what it is seen to do on conventions."""
    return _elsewhere("describe", implementation, values, time_limit)


@main.command()
@click.argument("identifier", metavar="ID")
def explain(identifier: str) -> None:
    """Show a requirement, such as ATT-MASK-003, a convention, such as CON-EMPTY-ROW, a golden case, such as GOLD-7, or a fault
    that a diagnosis names, such as scale-missing."""
    from conformance.commands.describe import explain

    say(explain(identifier))


@main.command()
@click.argument("text", metavar="PROBLEM")
@click.option(
    "--implementation", required=True, type=ImplementationName(), metavar="NAME", help=IMPLEMENTATION.help.partition(";")[0]
)
@_options(FUNCTION_OPTIONS)
@click.option("--check", default="values", show_default=True, help="how it is judged, as `explain` names it for a requirement")
@_time_limit(300.0, "after which it is ended")
def reproduce(text: str, implementation: str, check: str, time_limit: float, **values: Any) -> ExitCode:
    """Judge one problem, given as its text or as the id of a golden case, on one implementation, and show the worst row of the
    output."""
    return _elsewhere("reproduce", implementation, values, time_limit, text=text, check=check)


@main.command()
@click.argument("implementation", type=ImplementationName())
@_options(FUNCTION_OPTIONS)
@_time_limit(60.0, "for each line")
def smoke(implementation: str, time_limit: float, **values: Any) -> ExitCode:
    """Check the adapter itself: types, shapes, layout, and what it declares."""
    code = _elsewhere("smoke", implementation, values, time_limit, lost="FAIL  ")
    sound = code is ExitCode.AS_EXPECTED
    say("The adapter is sound; `run` judges what it computes." if sound else "The adapter is not sound yet.")
    return code


def _elsewhere(command: str, name: str, values: dict[str, Any], time_limit: float, lost: str = "", **arguments: Any) -> ExitCode:
    """Prints what the command says in a process of its own; where that ends or hangs, what has become of it, after ``lost``."""
    from conformance.commands.elsewhere import Elsewhere, Lost
    from conformance.system.children import adopt_orphans, end_orphans

    adopt_orphans()
    asked = Elsewhere(command, name, function_settings(values), time_limit, **arguments)
    try:
        for line in asked.lines():
            say(line)
        return asked.code
    except Lost as loss:
        say(f"{lost}{loss}")
        return ExitCode.UNEXPECTED
    finally:
        end_orphans()
        if asked.printed:
            say(f"The implementation has printed:\n{asked.printed}", error=True)


@main.command()
@click.argument("file", type=UserPath())
@click.option("--framework", type=click.Choice(FRAMEWORKS), default="numpy", show_default=True)
def new(file: Path, framework: str) -> None:
    """Write a commented starting point for an implementation of your own, which runs as it is."""
    write_starter(file, framework)
    say(f"Wrote {file}. Next: {command('smoke', f'{file}:attention')}")


@main.command()
@click.argument("records", type=UserPath())
@click.option("--out", type=UserPath(), metavar="FOLDER", help="write the reports to this folder too")
@click.option("--partial", is_flag=True, help="accept the records of a run that did not come to its end")
def report(records: Path, out: Path | None, partial: bool) -> None:
    """Print the tables of a run again, from its records."""
    from conformance.records import read_records
    from conformance.reports import terminal_summary
    from conformance.run.report_files import write_reports

    made = read_records(records, partial)
    say(terminal_summary(made))
    _wrote(write_reports(made, out, [records]) if out else [])


@main.command()
@_options([IMPLEMENTATION, *FUNCTION_OPTIONS])
@click.option("--suite", "suites", multiple=True, metavar="NAME[,NAME]", help="suites of shapes, see --list (default: all)")
@click.option("--passes", type=click.Choice(["forward", "forward+backward", "both"]), default="both", show_default=True)
@click.option("--dtype", "dtypes", multiple=True, metavar="NAME[,NAME]", default=["float32"], show_default=True)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME[,NAME]",
    default=["listed"],
    show_default=True,
    help="shapes as they are listed, or all of them plain, causal, with a mask",
)
@click.option("--baseline", metavar="NAME", help="what ratios are relative to (default: NumPy; with gradients, torch-direct)")
@click.option("--growth/--no-growth", default=True, show_default=True, help="how time and memory grow with the length")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="of each implementation")
@click.option("--seed", type=click.IntRange(0, LARGEST_SEED), default=DEFAULT_SEED, show_default=True)
@click.option(
    "--time-limit",
    type=float,
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="without a sign of life, after which an implementation is given up",
)
@click.option("--records", type=UserPath(), metavar="FILE", help="write what is measured, JSON lines, to a file")
@click.option("--details", is_flag=True, help="a row for each shape and implementation, with all that was measured")
@click.option("--list", "listing", is_flag=True, help="show the suites of shapes, and measure nothing")
@click.option("--cost", is_flag=True, help="first measure what the suite itself costs per problem")
@click.option("--profiled", is_flag=True, help="show where the suite itself spends its time, and nothing else")
def bench(listing: bool, cost: bool, profiled: bool, **values: Any) -> ExitCode | None:
    """Measure the speed, memory and growth of implementations.

    Exit codes: 0 measured, 1 an implementation of your own is wrong or one ended its process, 3 the ratios are not to be trusted.
    """
    from rich.console import Console

    from conformance.timing import cost_table, describe_suites
    from conformance.timing.cost import harness_cost, profile

    if listing or profiled:
        say(describe_suites() if listing else profile(seed=values["seed"]))
        return None
    if cost:
        say(cost_table(harness_cost(seed=values["seed"])) + "\n")
    from conformance.adapter.loading import known_of
    from conformance.timing.bench import Options, run_bench

    names, words = values.pop(IMPLEMENTATION.name), function_settings(values)
    for option in FUNCTION_OPTIONS:
        del values[option.name]
    for name in ("suites", "dtypes", "features"):
        values[name] = tuple(word for text in values[name] for word in text.split(","))
    passes = values.pop("passes")
    values["passes"] = ("forward", "forward+backward") if passes == "both" else (passes,)
    options = Options(implementations=known_of(names, words), specs=names, words=words, **values)
    return run_bench(Console(), options)


@main.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def soak(options: tuple[str, ...]) -> None:
    """Judge many random problems on implementations that are right: budgets must hold, and not be slack."""
    from conformance.soak.__main__ import main as soak_command

    soak_command.main(list(options), prog_name="attention-conformance soak")


@main.command()
@click.option("--only", default="*", metavar="PATTERN", help="faults whose id matches, such as 'scale-*'")
@click.option("--matrix", is_flag=True, help="run every requirement on every fault, in place of stopping at the first kill")
@click.option("--thin", is_flag=True, help="say which faults are caught by a single case, on which all depends")
@click.option("--compare", is_flag=True, help="judge the faulty outputs by the tolerances of other suites too")
@click.option(
    "--correct",
    renamed.OPTIONS["--correct"],
    is_flag=True,
    help="run implementations that are right: none of them may be rejected",
)
@click.option("--diagnose", is_flag=True, help="see whether the diagnosis names each fault, and none that is not there")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, help="with --correct: seeds of the random cases")
@click.option("--processes", type=click.IntRange(1), metavar="N", help="in which it runs (default: one a core)")
@click.option("--out", type=UserPath(), metavar="FOLDER", help="write what was found to this folder too")
def faults(
    only: str,
    matrix: bool,
    thin: bool,
    compare: bool,
    correct: bool,
    diagnose: bool,
    seeds: int,
    processes: int | None,
    out: Path | None,
) -> ExitCode:
    """Prove that the suite is not blind: every fault of the catalogue must be caught, and nothing that is right."""
    from conformance.commands import faults as command

    if diagnose:
        return command.diagnose(only, out, processes)
    if correct:
        return command.correct(seeds, out, processes)
    return command.compare(only, out, processes) if compare else command.kill(only, matrix, out, processes, thin)


@main.group()
def expectations() -> None:
    """Known failures."""


@expectations.command()
@click.argument("records", type=UserPath())
@click.option("--to", "folder", type=UserPath(), default="expectations", show_default=True, metavar="FOLDER")
def update(records: Path, folder: Path) -> None:
    """Write what a run found into one TOML file per implementation; the reasons are yours to give."""
    from conformance.expectations.update import update
    from conformance.records import read_records

    _wrote(update(read_records(records), folder))


@main.group()
def golden() -> None:
    """Golden cases: for maintainers."""


@golden.command()
@click.argument("problem")
@click.option("--requirement", required=True, metavar="ID")
@click.option("--note", required=True, help="what is special about the case")
@click.option("--source", required=True, help="where it comes from")
@click.option("--file", default="", help="the golden file it goes to (default: that of the requirement's area)")
@click.option("--steps", is_flag=True, help="store the intermediate results too")
def add(problem: str, requirement: str, note: str, source: str, file: str, steps: bool) -> None:
    """Make the case of PROBLEM, a problem's text, and give it the next id."""
    from conformance.golden_tool import add

    say(add(requirement, note, source, problem, file=file, steps=steps))


@golden.command()
def check() -> ExitCode:
    """Make every case again and compare it with the files, byte for byte."""
    from conformance.golden_tool import check

    differences = check()
    say("\n".join(differences) or "Every byte is as the definitions make it.")
    return ExitCode.UNEXPECTED if differences else ExitCode.AS_EXPECTED


@golden.command()
def reissue() -> None:
    """Write the budgets anew after their derivation has changed (docs/budget.md); inputs and expected values must not differ."""
    from conformance.golden_tool import reissue

    changed = reissue()
    sentence = f"Budgets of {len(changed)} cases were issued again: say why in golden/README.md."
    say(sentence if changed else "Nothing differs.")


def _wrote(paths: Iterable[Path]) -> None:
    for path in paths:
        say(f"wrote {path}")
