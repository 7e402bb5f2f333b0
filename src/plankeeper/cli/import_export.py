"""`plankeeper import` and `plankeeper export`."""

import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import click
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.access_log.store import record_export
from plankeeper.cli.context import system_context, with_database, write
from plankeeper.cli.documents import (
    ImportedDocuments,
    export_documents,
    import_documents,
    list_files,
    open_storage,
    report_lost,
)
from plankeeper.cli.parameter_types import plan_manager_option
from plankeeper.cli.progress import progress
from plankeeper.core.context import WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.imports.importer import MAX_REPORTED, ImportReport, import_file
from plankeeper.imports.reader import UnreadableFileError
from plankeeper.imports.writer import CsvWriter, JsonLinesWriter
from plankeeper.resources.documents.storage import StorageError
from plankeeper.resources.exports import FINANCIAL_RECORDS, Export
from plankeeper.resources.providers.bank_columns import export as export_with_bank_details
from plankeeper.resources.providers.schemas import ProviderExport
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from plankeeper.resources.upsert import RowError

_resource_argument = click.argument("resource", type=click.Choice(list(RESOURCES)))
_plan_manager_option = plan_manager_option("The plan manager that the records belong to.")


class _RolledBackError(Exception):
    """The import has errors, so its transaction is rolled back."""


@click.command(name="import")
@_resource_argument
@click.argument("file", type=click.File("rb"))
@_plan_manager_option
@click.option("--notify", is_flag=True, help="Send the changes to webhook endpoints; by default, they aren't sent.")
@click.option(
    "--match",
    type=click.Choice(["external_id", "participant_number", "abn"]),
    help="Update the record that has a line's value of this field; create one if none has it.",
)
@click.option(
    "--documents",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Also import the documents in this folder, each with the id or the external_id of its invoice as its name.",
)
def import_(
    resource: str, file: BinaryIO, plan_manager_id: UUID, notify: bool, match: str | None, folder: Path | None
) -> None:
    """Import a CSV or JSON Lines FILE (`-` reads standard input). If any line is invalid, nothing is written."""
    _require_invoices(resource, folder)
    fields = RESOURCES[resource].match_fields
    if match and match not in fields:
        known = f"use one of {', '.join(fields)}" if fields else "its lines can only be matched by id"
        raise click.BadParameter(f"{resource} can't be matched by {match}: {known}.", param_hint="--match")
    report = ImportReport()

    async def work(ctx: WriteContext) -> None:
        nonlocal report
        if folder:
            open_storage(ctx.settings)  # before anything is written
        ctx = replace(ctx, notify=notify, import_id=uuid7())
        with _line_progress(file) as on_progress:
            report = await import_file(
                ctx, RESOURCES[resource], _lines(file), CONSTRAINT_ERRORS, on_progress, match=match
            )
        if report.rejected_lines:
            raise _RolledBackError

    try:
        write(plan_manager_id, "import", work)
    except _RolledBackError:
        _print_errors(report)
        sys.exit(1)
    except UnreadableFileError as error:
        raise click.ClickException(f"{file.name}: {error}. Nothing was written.") from None
    _print_summary(resource, report)
    if folder:
        _import_documents(plan_manager_id, folder, notify=notify)


def _require_invoices(resource: str, folder: Path | None) -> None:
    if folder and resource != "invoices":
        raise click.BadParameter(f"{resource} have no documents, only invoices have.", param_hint="--documents")


def _import_documents(plan_manager_id: UUID, folder: Path, *, notify: bool) -> None:
    async def work(db: Database, settings: Settings) -> ImportedDocuments:
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, plan_manager_id, "import")
        ctx = replace(ctx, notify=notify, import_id=uuid7())
        with progress(lambda: len(list_files(folder))) as on_progress:
            return await import_documents(db, settings, ctx, folder, on_progress)

    found = with_database(work)
    for error in found.errors[:MAX_REPORTED]:
        click.echo(error, err=True)
    if len(found.errors) > MAX_REPORTED:
        click.echo(f"Only the first {MAX_REPORTED} errors are shown.", err=True)
    click.echo(f"documents: {found.added:,} added, {found.unchanged:,} unchanged, {len(found.errors):,} not added")
    if found.errors:
        sys.exit(1)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise click.ClickException(f"Cannot read {file.name}: {error.strerror}. Nothing was written.") from None


def _print_errors(report: ImportReport) -> None:
    for error in report.errors:
        click.echo(_describe_error(error), err=True)
    if len(report.errors) == MAX_REPORTED:
        click.echo(f"Only the first {MAX_REPORTED} errors are shown.", err=True)
    lines = len(report.rejected_lines)
    at_least = "" if report.is_complete else "At least "
    click.echo(f"{at_least}{lines:,} invalid line{'s' if lines != 1 else ''}: nothing was written.", err=True)


def _print_summary(resource: str, report: ImportReport) -> None:
    for warning in report.warnings[:10]:
        click.echo(f"Warning: {_describe_error(warning)}", err=True)
    if report.warning_count > 10:
        click.echo(f"Warning: {report.warning_count - 10:,} more lines have warnings", err=True)
    counts = report.counts
    click.echo(
        f"{resource}: {report.row_count:,} lines: {counts.created:,} created, {counts.changed:,} changed,"
        f" {counts.unchanged:,} unchanged"
    )


def _describe_error(error: RowError) -> str:
    return f"line {error.line_number}: {error.field + ': ' if error.field else ''}{error.message}"


@contextmanager
def _line_progress(file: BinaryIO) -> Generator[Callable[[int], None]]:
    """Measure progress in bytes, and report it in lines."""
    with progress(lambda: _file_size(file)) as report:
        yield lambda lines: report(f"{lines:,} lines read", file.tell() if file.seekable() else 0)


def _file_size(file: BinaryIO) -> int | None:
    if not file.seekable():
        return None
    size = file.seek(0, 2)
    file.seek(0)
    return size


@contextmanager
def _stdout_errors() -> Generator[None]:
    """Report errors of standard output as such, and not as errors of the database. A closed pipe passes through."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"Cannot write to standard output: {error.strerror}.") from None


async def _export_documents(db: Database, settings: Settings, plan_manager_id: UUID, folder: Path) -> None:
    try:
        with progress(lambda: None) as on_progress:
            lost = await export_documents(db, settings, plan_manager_id, folder, on_progress)
    except StorageError as error:
        raise click.ClickException(
            f"Copying the documents failed: {error.__cause__}. Repeat the export: it continues where it stopped."
        ) from None
    report_lost(lost)


_EXPORTS: Mapping[str, Export] = {
    **{name: Export(each.export_schema, each.export) for name, each in RESOURCES.items()},
    **FINANCIAL_RECORDS,
}


@click.command(name="export")
@click.argument("resource", type=click.Choice(list(_EXPORTS)))
@_plan_manager_option
@click.option("--format", "format_", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.option(
    "--documents",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the documents of invoices to this folder, each with the id of its invoice as its name.",
)
@click.option(
    "--with-bank-details", is_flag=True, help="Also write the bank accounts of providers, with their numbers."
)
def export_(resource: str, plan_manager_id: UUID, format_: str, folder: Path | None, with_bank_details: bool) -> None:
    """Write all records of a RESOURCE to standard output. Except claims and payments, `import` reads them."""
    _require_invoices(resource, folder)
    if with_bank_details and resource != "providers":
        raise click.BadParameter(f"{resource} have none, only providers have.", param_hint="--with-bank-details")
    definition, name = _EXPORTS[resource], f"{resource}-with-bank-details" if with_bank_details else resource
    schema = ProviderExport if with_bank_details else definition.schema
    writer = CsvWriter(schema) if format_ == "csv" else JsonLinesWriter()
    out: Any = sys.stdout.buffer

    async def work(db: Database, settings: Settings) -> None:
        if folder:
            open_storage(settings)  # before anything is written
        async with db.transaction(snapshot=True) as tx:
            await system_context(tx, settings, plan_manager_id, "export")
            with _stdout_errors():
                out.write(writer.header())
            exported: AsyncGenerator[Sequence[Struct]] = (
                export_with_bank_details(tx, settings, plan_manager_id)
                if with_bank_details
                else definition.export(tx, plan_manager_id)
            )
            rows = await _write_records(out, writer, exported)
        with _stdout_errors():
            out.flush()
        if folder:
            await _export_documents(db, settings, plan_manager_id, folder)
        async with db.transaction() as tx:
            await record_export(await system_context(tx, settings, plan_manager_id, "export"), name, None, rows)

    try:
        with_database(work)
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe. Closing stderr hides the interpreter's message about it.
        sys.stderr.close()
        sys.exit(1)
    if isinstance(writer, CsvWriter) and writer.formula_count:
        _warn_about_formulas(writer.formula_count)


async def _write_records(
    out: Any, writer: CsvWriter | JsonLinesWriter, exported: AsyncGenerator[Sequence[Struct]]
) -> int:
    """Write the records, and return their number."""
    rows = 0
    async with aclosing(exported) as batches:
        async for records in batches:
            with _stdout_errors():
                out.write(writer.lines(records))
            rows += len(records)
    return rows


def _warn_about_formulas(count: int) -> None:
    click.echo(
        f"Warning: {count:,} values begin with =, +, - or @, and a spreadsheet that opens the file"
        " runs them as formulas: import its columns as text instead.",
        err=True,
    )
