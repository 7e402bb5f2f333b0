"""`plankeeper migrate`, `doctor`, `recheck` and `openapi`."""

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import click

from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.api_keys.service import EXPIRY_WARNING_PERIOD
from plankeeper.access.api_keys.store import list_expiring
from plankeeper.cli.citus import citus_lines
from plankeeper.cli.context import (
    embedded_cluster,
    load_settings,
    owner_dsn,
    run,
    run_as_owner,
    supported_schema_version,
    system_context,
    with_database,
)
from plankeeper.cli.doctor import (
    Line,
    abandoned_lines,
    mail_lines,
    proxy_lines,
    proxy_warnings,
    python_warnings,
    schema_lines,
    secret_key_lines,
    server_lines,
)
from plankeeper.cli.parameter_types import UUID_TYPE
from plankeeper.cli.privileges import find_serving_role, grant_privileges, role_lines
from plankeeper.cli.progress import migrate_with_progress
from plankeeper.core.encryption.rotation import KeyUsage, count_by_key
from plankeeper.core.json import to_json
from plankeeper.core.settings import SettingError, Settings
from plankeeper.core.version import full_version
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres.cluster import Cluster


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

        version, migrated, role = run_as_owner(work())
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for other programs.")
def doctor(*, as_json: bool) -> None:
    """Check the settings, database, schema and versions. Each line is ok, or says what to do."""
    lines = [("ok", f"Plankeeper {full_version()}, Python {platform.python_version()}")]
    lines += python_warnings(sys.version_info[:3])
    try:
        settings = Settings.read()
        lines += [("ok", "settings are valid"), *(("warn", each) for each in Settings.unknown_variables())]
        lines += [*proxy_warnings(settings), *mail_lines(settings)]
        lines += [*proxy_lines(settings), *_database_lines(settings)]
    except SettingError as error:
        lines.append(("FAIL", str(error)))
    states = {state for state, _ in lines}
    if as_json:
        worst = next((each for each in ("FAIL", "warn") if each in states), "ok")
        checks = [{"status": state.lower(), "message": text} for state, text in lines]
        click.echo(to_json({"status": worst.lower(), "checks": checks}))
    else:
        for state, text in lines:
            click.echo(f"{state:4}  {text}")
    if "FAIL" in states:
        sys.exit(1)


def _database_lines(settings: Settings) -> list[Line]:
    lines: list[Line] = []
    try:
        with embedded_cluster(settings) as cluster:
            if cluster and cluster.note:
                lines.append(("ok", cluster.note))
            # The embedded database's own role exists only once it is migrated.
            dsn = cluster.owner_dsn if cluster else settings.database_url or ""
            location = f"embedded in {settings.data_dir}" if cluster else "external"
            found = run(_inspect_database(settings, dsn, cluster))
    except click.ClickException as error:
        return [*lines, ("FAIL", error.message)]
    major = int(found.server_version) // 10_000
    is_supported = major >= 15
    advice = "" if is_supported else ": upgrade to version 15 or newer"
    lines.append(("ok" if is_supported else "FAIL", f"PostgreSQL {major}, {location}{advice}"))
    lines += found.server_lines
    lines.append(_schema_line(found.version))
    lines += [*found.citus_lines, *found.schema_lines, *secret_key_lines(settings, found.key_usage)]
    lines += abandoned_lines() if cluster else []
    return lines + [("warn", _expiry_warning(key)) for key in found.expiring]


def _schema_line(version: schema.SchemaVersion | None) -> Line:
    if version is None or not version.is_compatible:
        revision = version.revision if version else "empty"
        return "FAIL", f"schema {revision}, but {schema.LATEST_REVISION} is required: run `plankeeper migrate`"
    advice = f", newer than {schema.LATEST_REVISION}, but compatible with this Plankeeper" if version.is_newer else ""
    return "ok", f"schema {version.revision}{advice}"


def _expiry_warning(key: ApiKey) -> str:
    expires_at = f"{key.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"key {key.id} (…{key.last_four}, {key.name}) expires at {expires_at}: run `plankeeper keys rotate`"


class _Inspection(NamedTuple):
    """The results of `doctor` for a database. The last four are empty unless the schema is compatible."""

    server_version: str
    version: schema.SchemaVersion | None
    server_lines: list[Line]
    citus_lines: list[Line]
    schema_lines: list[Line]
    expiring: list[ApiKey]
    key_usage: list[KeyUsage]


async def _inspect_database(settings: Settings, dsn: str, cluster: Cluster | None) -> _Inspection:
    async with Database(dsn, pool_size=1, statement_timeout=60).open() as db:
        version = await supported_schema_version(db)
        server_version, lines = await schema.server_version(db), await server_lines(db, settings, dsn, cluster)
        lines += [] if cluster else await role_lines(db, version)
        if version is None or not version.is_compatible:
            return _Inspection(server_version, version, lines, [], [], [], [])
        expiring = await list_expiring(db, datetime.now(UTC) + EXPIRY_WARNING_PERIOD)
        citus, usage = await citus_lines(db), await count_by_key(db)
        return _Inspection(server_version, version, lines, citus, await schema_lines(db), expiring, usage)


@click.command()
@click.option(
    "--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="The plan manager whose invoices to check."
)
def recheck(plan_manager_id: UUID) -> None:
    """Check every invoice again: its participant, its provider or the current date might have changed."""
    from plankeeper.resources.invoices.service import recheck as recheck_batch

    async def work(db: Database, settings: Settings) -> tuple[int, int]:
        checked, changed, last_id = 0, 0, UUID(int=0)
        while True:
            async with db.transaction() as tx:
                ctx = await system_context(tx, settings, plan_manager_id, "recheck")
                ids, batch_changed = await recheck_batch(ctx, last_id)
            if not ids:
                return checked, changed
            checked, changed, last_id = checked + len(ids), changed + batch_changed, ids[-1]

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
