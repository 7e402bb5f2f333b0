"""`plankeeper import` and `plankeeper export`: whole files in and out."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO
from uuid import UUID

import click

from plankeeper.cli.context import UUID_TYPE, with_database, writing
from plankeeper.cli.progress import progress
from plankeeper.database.client import Database
from plankeeper.import_export.constraint_errors import EXPLANATIONS
from plankeeper.import_export.importer import SHOWN, Report, load
from plankeeper.import_export.reader import BadLine, Unreadable
from plankeeper.import_export.registry import RESOURCES
from plankeeper.import_export.writer import Csv, JsonLines
from plankeeper.settings import Settings

_resource = click.argument("resource", type=click.Choice(list(RESOURCES)))
_plan_manager = click.option(
    "--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="Whose data it is."
)


class _RolledBack(Exception):
    """Nothing is written: the report says why."""


@click.command(name="import")
@_resource
@click.argument("file", type=click.File("rb"))
@_plan_manager
@click.option("--notify", is_flag=True, help="Tell webhook endpoints of what changes; without it they hear nothing.")
def import_(resource: str, file: BinaryIO, plan_manager_id: UUID, notify: bool) -> None:
    """Import a CSV or JSON Lines FILE (`-` reads standard input): all of it, or nothing and a report of bad lines."""
    report = Report()

    async def work(db: Database, found: Settings) -> None:
        nonlocal report
        with _progress(file) as read:
            async with db.transaction() as tx:
                call = replace(await writing(tx, found, plan_manager_id, "import"), notify=notify)
                report = await load(call, RESOURCES[resource], _lines(file), EXPLANATIONS, read)
                if report.bad_lines:
                    raise _RolledBack

    try:
        with_database(work)
    except _RolledBack:
        _say_bad(report)
        sys.exit(1)
    except Unreadable as error:
        raise click.ClickException(f"{file.name}: {error}. Nothing was written.") from None
    _say_done(resource, report)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise click.ClickException(f"{file.name} cannot be read: {error.strerror}. Nothing was written.") from None


def _say_bad(report: Report) -> None:
    for fault in report.bad:
        click.echo(_sentence(fault), err=True)
    if len(report.bad) == SHOWN:
        click.echo(f"The first {SHOWN} faults are shown.", err=True)
    lines = len(report.bad_lines)
    least = "" if report.all_known else "At least "
    click.echo(f"{least}{lines:,} bad line{'s' if lines != 1 else ''}: nothing was written.", err=True)


def _say_done(resource: str, report: Report) -> None:
    for doubt in report.doubts[:10]:
        click.echo(f"Taken, but look at {_sentence(doubt)}", err=True)
    if report.doubtful > 10:
        click.echo(f"Taken, but look at {report.doubtful - 10:,} more such lines", err=True)
    tally = report.tally
    click.echo(
        f"{resource}: {report.lines:,} lines: {tally.created:,} created, {tally.changed:,} changed,"
        f" {tally.unchanged:,} unchanged"
    )


def _sentence(fault: BadLine) -> str:
    return f"line {fault.number}: {fault.field + ': ' if fault.field else ''}{fault.reason}"


@contextmanager
def _progress(file: BinaryIO) -> Generator[Callable[[int], None]]:
    """By the bytes of the file, told in lines."""
    with progress(lambda: _size(file)) as tell:
        yield lambda lines: tell(f"{lines:,} lines read", file.tell() if file.seekable() else 0)


def _size(file: BinaryIO) -> int | None:
    if not file.seekable():
        return None
    size = file.seek(0, 2)
    file.seek(0)
    return size


@contextmanager
def _output() -> Generator[None]:
    """What goes wrong with standard output is not the database's fault. That its reader has gone is nobody's."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"Standard output cannot be written: {error.strerror}.") from None


@click.command(name="export")
@_resource
@_plan_manager
@click.option("--format", "format_", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
def export_(resource: str, plan_manager_id: UUID, format_: str) -> None:
    """Write all of a RESOURCE to standard output, as `import` reads it, as of one moment."""
    chosen = RESOURCES[resource]
    writer = Csv(chosen.record) if format_ == "csv" else JsonLines()
    out: Any = sys.stdout.buffer

    async def work(db: Database, found: Settings) -> None:
        async with db.transaction(snapshot=True) as tx:
            await writing(tx, found, plan_manager_id, "export")
            with _output():
                out.write(writer.head().encode())
            async for record in chosen.export(tx, plan_manager_id):
                with _output():
                    out.write(writer.line(record).encode())
        with _output():
            out.flush()

    try:
        with_database(work)
    except BrokenPipeError:
        # Whoever read has seen enough; what is left in the buffer has nowhere to go.
        sys.stderr.close()
        sys.exit(1)
