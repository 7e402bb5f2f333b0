"""How far long work is: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

PERIOD = 5.0  # seconds between two lines

# Takes what is to be said, and how much of the total is done.
Tell = Callable[[str, int], None]


@contextmanager
def progress(total: Callable[[], int | None]) -> Generator[Tell]:
    """Tells on standard error. Only for a bar the total is asked for; without one it shows that work goes on."""
    if sys.stderr.isatty():
        with _bar(total()) as tell:
            yield tell
        return
    said = time.monotonic()

    def tell_in_lines(text: str, _done: int) -> None:
        nonlocal said
        if time.monotonic() - said > PERIOD:
            said = time.monotonic()
            click.echo(text, err=True)

    yield tell_in_lines


@contextmanager
def _bar(total: int | None) -> Generator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda text, done: bar.update(task, description=text, completed=done if total else 0)
