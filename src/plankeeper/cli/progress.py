"""Progress of long commands: a bar on a terminal, otherwise a line every few seconds."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

REPORT_INTERVAL = 5.0  # seconds between two lines

# Called with the text to show and the completed part of the total.
ProgressCallback = Callable[[str, int], None]


@contextmanager
def progress(total: Callable[[], int | None]) -> Generator[ProgressCallback]:
    """Report progress on standard error. `total` is called only for a bar; with None the bar shows activity only."""
    if sys.stderr.isatty():
        with _bar(total()) as report:
            yield report
        return
    last_report = time.monotonic()

    def report_lines(text: str, _done: int) -> None:
        nonlocal last_report
        if time.monotonic() - last_report > REPORT_INTERVAL:
            last_report = time.monotonic()
            click.echo(text, err=True)

    yield report_lines


@contextmanager
def _bar(total: int | None) -> Generator[ProgressCallback]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda text, done: bar.update(task, description=text, completed=done if total else 0)
