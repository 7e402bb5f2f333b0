"""`plankeeper migrate`, `recheck` and `openapi`."""

from pathlib import Path
from uuid import UUID

import click

from plankeeper.cli.context import (
    embedded_cluster,
    load_settings,
    owner_dsn,
    run_as_owner,
    supported_schema_version,
    system_context,
    with_database,
)
from plankeeper.cli.parameter_types import plan_manager_option
from plankeeper.cli.privileges import find_serving_role, grant_privileges
from plankeeper.cli.progress import migrate_with_progress, progress
from plankeeper.core.settings import Settings
from plankeeper.database import schema
from plankeeper.database.client import Database


@click.command()
def migrate() -> None:
    """Migrate the database schema to the version that this release requires."""
    settings = load_settings()
    with embedded_cluster(settings, creates=True) as cluster:
        dsn = owner_dsn(settings, cluster)

        async def work() -> tuple[schema.SchemaVersion | None, bool, str | None]:
            async with Database(dsn, pool_size=1, statement_timeout=3600).open() as db:
                version = await supported_schema_version(db)
                await find_serving_role(db, settings, cluster)  # a wrong address changes nothing
                migrated = await migrate_with_progress(db, dsn)
                return version, migrated, await grant_privileges(db, settings, cluster)

        version, migrated, role = run_as_owner(work)
    if version is not None and version.is_newer:
        click.echo(
            f"The schema is {version.revision}, which is newer than {schema.LATEST_REVISION}, but compatible with this"
            " Plankeeper."
        )
    else:
        click.echo(f"The schema is {'now' if migrated else 'already'} {schema.LATEST_REVISION}.")
    if role and settings.database_url:
        click.echo(f"The role {role} has its privileges.")


@click.command()
@plan_manager_option("The plan manager whose invoices to check.")
def recheck(plan_manager_id: UUID) -> None:
    """Check every invoice again, closed ones too."""
    from plankeeper.resources.invoices import recheck_store
    from plankeeper.resources.invoices.rechecks import check_next

    async def work(db: Database, settings: Settings) -> tuple[int, int]:
        checked, changed, position = 0, 0, recheck_store.FIRST
        with progress(lambda: None) as report:
            while True:
                async with db.transaction() as tx:
                    ctx = await system_context(tx, settings, plan_manager_id, "recheck")
                    found, batch_changed = await check_next(ctx, position)
                if not found:
                    return checked, changed
                checked, changed, position = checked + len(found), changed + batch_changed, found[-1]
                report(f"{checked:,} invoices checked", checked)

    checked, changed = with_database(work)
    click.echo(f"{checked:,} invoices checked, {changed:,} changed")


@click.command()
@click.option(
    "--check",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare the document with a file instead of printing it.",
)
def openapi(check: Path | None) -> None:
    """Print the OpenAPI document."""
    from plankeeper.server.app import openapi_document

    text = openapi_document()
    if check is None:
        click.echo(text, nl=False)
    elif not check.exists() or check.read_bytes() != text.encode():
        raise click.ClickException(f"{check} differs from the server's OpenAPI document: run `make openapi`.")
