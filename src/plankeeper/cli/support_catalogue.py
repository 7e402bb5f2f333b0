"""`plankeeper support-catalogue`: the agency's published items and prices, for all plan managers."""

import sys
from collections.abc import Sequence
from typing import BinaryIO

import click

from plankeeper.cli.context import (
    embedded_cluster,
    load_settings,
    owner_dsn,
    prepare_embedded,
    require_schema,
    run_as_owner,
    with_database,
)
from plankeeper.cli.privileges import require_owner
from plankeeper.cli.progress import progress
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.imports.reader import UnreadableFileError
from plankeeper.imports.support_catalogue import CatalogueFile, read_catalogue, write_catalogue
from plankeeper.resources.support_items import service, store
from plankeeper.resources.support_items.schemas import SupportItem
from plankeeper.resources.support_items.service import CatalogueChanges

MAX_ABSENT = 10  # numbers that are shown


class _DryRunError(Exception):
    """The transaction of a dry run is rolled back."""

    def __init__(self, changes: CatalogueChanges) -> None:
        super().__init__()
        self.changes = changes


@click.group()
def support_catalogue() -> None:
    """Import or export the support catalogue, which all plan managers share."""


@support_catalogue.command(name="import")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Only check the file and show what would change.")
def import_(file: BinaryIO, dry_run: bool) -> None:
    """Import the agency's support catalogue from a CSV or XLSX FILE (`-` reads standard input).

    A row replaces the stored one with the same item and start date; all other stored rows stay. If any row is invalid,
    nothing is written.
    """
    found = _read(file)
    for error in found.errors:
        click.echo(f"row {error.line_number}, {error.field}: {error.message}", err=True)
    if found.errors:
        count = len(found.errors)
        click.echo(f"{count:,} error{'s' if count != 1 else ''}: nothing was written.", err=True)
        sys.exit(1)
    try:
        changes = _write(found.items, dry_run=dry_run)
    except _DryRunError as dry:
        changes = dry.changes
    _report(changes, dry_run=dry_run)


def _read(file: BinaryIO) -> CatalogueFile:
    try:
        content = file.read()
    except OSError as error:
        raise click.ClickException(f"Cannot read {file.name}: {error.strerror}. Nothing was written.") from None
    try:
        with progress(lambda: None) as on_progress:
            return read_catalogue(content, lambda rows: on_progress(f"{rows:,} rows read", rows))
    except UnreadableFileError as error:
        raise click.ClickException(f"{file.name} {error}. Nothing was written.") from None


def _write(items: Sequence[SupportItem], *, dry_run: bool) -> CatalogueChanges:
    settings = load_settings()
    with embedded_cluster(settings) as cluster:

        async def work() -> CatalogueChanges:
            if cluster:
                await prepare_embedded(cluster)
            async with Database(owner_dsn(settings, cluster), pool_size=1, statement_timeout=600).open() as db:
                await require_schema(db)
                await require_owner(db)
                async with db.transaction() as tx:
                    changes = await service.import_items(tx, items, settings.today)
                    if dry_run:
                        raise _DryRunError(changes)
                    return changes

        return run_as_owner(work)


def _report(changes: CatalogueChanges, *, dry_run: bool) -> None:
    if changes.absent:
        shown = ", ".join(changes.absent[:MAX_ABSENT])
        more = f" and {len(changes.absent) - MAX_ABSENT:,} more" if len(changes.absent) > MAX_ABSENT else ""
        click.echo(
            f"Warning: {len(changes.absent):,} stored items that are in force today aren't in the file, and stay as"
            f" they are: {shown}{more}. To end one, import it with its last day as its End Date.",
            err=True,
        )
    counts = f"{changes.added:,} added, {changes.changed:,} changed, {changes.unchanged:,} unchanged"
    if dry_run:
        click.echo(f"support catalogue: {counts}. This was a dry run: nothing was written.")
    else:
        click.echo(f"support catalogue: {counts}, revision {changes.revision}")


@support_catalogue.command()
def export() -> None:
    """Write the stored support catalogue to standard output, as CSV that `import` reads."""

    async def work(db: Database, _settings: Settings) -> list[SupportItem]:
        return await store.list_all(db)

    click.echo(write_catalogue(with_database(work)), nl=False)
