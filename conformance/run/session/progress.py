"""How far a run is: a bar on a terminal, a line for every tenth elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

WHAT = "results and conventions"  # what a run counts; reports count the two apart


class Progress:
    """Counts items done and failed. Starting it again, as each worker's collection does, changes nothing."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.total = 0
        self.done = 0
        self.failed = 0
        self._bar: RichProgress | None = None
        self._began = time.monotonic()

    def start(self, total: int) -> None:
        if self.total or not total:
            return
        self.total = total
        if self.console.is_terminal:
            text, counts = TextColumn("{task.description}"), MofNCompleteColumn()
            columns = (text, BarColumn(), counts, TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = RichProgress(*columns, console=self.console, transient=True)
            self._bar.add_task(WHAT, total=total)
            self._bar.start()

    def advance(self, failed: bool) -> None:
        self.done += 1
        self.failed += failed
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self.done, description=f"{WHAT} ({self.failed} unexpected)")
        elif self.total and self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            percent = self.done * 10 // self.total * 10
            seconds = time.monotonic() - self._began
            line = f"{percent:3} %: {self.done} of {self.total} {WHAT}, {self.failed} unexpected, {seconds:.0f} s"
            self.console.print(line, highlight=False)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None
