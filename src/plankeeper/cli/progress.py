"""Progress of long commands: a bar on a terminal, otherwise a line every few seconds."""

import asyncio
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from plankeeper.database import citus, schema
from plankeeper.database.client import Database

REPORT_INTERVAL = 5.0  # seconds between two lines
_MIGRATION_POLL_INTERVAL = 0.2  # seconds

# Called with the text to show and the completed part of the total.
ProgressCallback = Callable[[str, int], None]
LineWriter = Callable[[str], object]


def echo_line(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def progress(total: Callable[[], int | None], write_line: LineWriter = echo_line) -> Generator[ProgressCallback]:
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
            write_line(text)

    yield report_lines


@contextmanager
def _bar(total: int | None) -> Generator[ProgressCallback]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda text, done: bar.update(task, description=text, completed=done if total else 0)


async def migrate_with_progress(db: Database, dsn: str, write_line: LineWriter = echo_line) -> bool:
    """Migrate if the program doesn't work with the schema, and return whether it did.

    On Citus, tables that are distributed stay so, and new ones are distributed.
    """
    version = await schema.current_version(db)
    if version is not None and version.is_compatible:
        return False  # without the time that loading the progress bar takes
    state = schema.MigrationProgress()
    migration = asyncio.create_task(schema.upgrade(dsn, state))
    try:
        with progress(lambda: 100, write_line) as report:
            while not migration.done():
                await asyncio.wait([migration], timeout=_MIGRATION_POLL_INTERVAL)
                index = await schema.index_progress(db)
                text = f"{state.describe()} ({index})" if index else state.describe()
                report(text, 100 * state.completed // max(1, len(state.revisions)))
        await migration
        if db.is_citus and await citus.is_distributed(db):
            async with db.transaction() as tx:
                await citus.distribute(tx)
    except schema.MigrationLockError:
        raise click.ClickException(
            f"The migration stopped at {state.describe()} for ten minutes. Find the transaction, such as a backup or an"
            " import, in pg_stat_activity, and run `plankeeper migrate` again when it has ended. Nothing is lost."
        ) from None
    finally:
        migration.cancel()
        await asyncio.gather(migration, return_exceptions=True)
    return True
