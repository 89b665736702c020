"""``python -m conformance.soak``: exit code 0 where every r is within 1, 1 where one is not, 3 where none was judged."""

import click
from rich.console import Console
from rich.progress import Progress

from conformance.checks.run_options import DEFAULT_SEED, LARGEST_SEED
from conformance.evaluation.correct_list import specs
from conformance.soak import CORRECT, render, soak
from conformance.system.command import Command
from conformance.system.exit_codes import ExitCode, exit_code
from conformance.system.terminal_text import say


@click.command(cls=Command)
@click.option("--problems", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--seed", type=click.IntRange(0, LARGEST_SEED), default=DEFAULT_SEED, show_default=True)
@click.option("--processes", type=click.IntRange(1), metavar="N", help="in which it runs (default: one a core)")
@click.option("--implementation", "names", multiple=True, metavar="NAME", help="may be repeated (default: all that are right)")
def main(problems: int, seed: int, processes: int | None, names: tuple[str, ...]) -> ExitCode:
    """Judges many random problems on implementations that are right, those built in and those of the catalogue: budgets hold, and
    are not slack."""
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("problems", total=problems)
        soaked = soak(problems, seed, processes, names or (*CORRECT, *specs()), lambda done: bar.advance(task, done))
    say(render(soaked))
    return exit_code(unexpected=len(soaked.beyond), enough_cases=bool(soaked.extremes))


if __name__ == "__main__":
    main()
