"""`plankeeper backup`, `restore`, `after-restore`: the database in one file by pg_dump and pg_restore, documents."""

import os
import re
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from plankeeper.access.accounts import link_store
from plankeeper.access.accounts import store as accounts
from plankeeper.access.plan_managers.store import list_all
from plankeeper.cli.context import (
    embedded_cluster,
    load_settings,
    owner_dsn,
    run_as_owner,
    supported_schema_version,
)
from plankeeper.cli.documents import StoredFile, copy_documents, open_folder, open_storage, report_lost
from plankeeper.cli.pg_tools import PgTools, find_tools
from plankeeper.cli.privileges import find_serving_role, grant_privileges
from plankeeper.cli.progress import migrate_with_progress, progress
from plankeeper.cli.secret_keys import describe_usage, missing_key_warnings
from plankeeper.core.encryption.rotation import KeyUsage, count_by_key
from plankeeper.core.settings import Settings
from plankeeper.database import citus, schema
from plankeeper.database.client import Database, Transaction
from plankeeper.database.server import analyze_all
from plankeeper.events import order_store
from plankeeper.mail import store as mail_store
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.storage import DocumentStorage, StorageError
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.office_settings import restore_store
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.webhooks import delivery_queue, endpoint_store

_WAITING = (
    "Claims and payments wait until an owner of each plan manager has confirmed in the console what was claimed and"
    " paid since the backup."
)
_DISABLED_REASON = "the database was restored from a backup, and the endpoint can have been changed or deleted since"
_EXCLUDES_EXTENSIONS = 17  # the first version of pg_dump that can leave out an extension
_FOLDER = click.Path(path_type=Path, file_okay=False)
_VERSION_PATTERN = re.compile(r"^COPY .*alembic_version \(version_num\) FROM stdin;\n(\d{4})\n", re.MULTILINE)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--documents", "folder", type=_FOLDER, help="Then copy the files of documents that this folder lacks into it."
)
def backup(file: Path, force: bool, folder: Path | None) -> None:
    """Write a consistent snapshot of the whole database to FILE while servers keep running."""
    _check_overwrite(file, force=force)
    settings = load_settings()
    source = open_storage(settings) if folder else None
    with embedded_cluster(settings) as cluster:
        dsn = owner_dsn(settings, cluster)
        database = run_as_owner(partial(_inspect_database, dsn))
        if database.schema is None:
            raise click.ClickException("The database has no schema, so there is nothing to back up.")
        tools = find_tools(settings, database.major_version)
        options = ["--format=custom", "--encoding=UTF8", "--no-unlogged-table-data", "--lock-wait-timeout=60s"]
        if database.is_citus:
            options += _citus_options(database.major_version)
            tools = replace(tools, environment=tools.environment | _CITUS_ENVIRONMENT)
        with _atomic_file(file) as partial_file, progress(lambda: None) as report:
            # pg_dump can seek in a named file, so it writes each table's offset into the table of contents.
            options.append(f"--file={partial_file}")
            report_written = lambda: report(f"{_format_size(partial_file.stat().st_size)} written", 0)  # noqa: E731
            tools.run("pg_dump", *options, database=dsn, on_progress=report_written)
        click.echo(f"{file}: {_format_size(file.stat().st_size)}, schema {database.schema}")
        if source and folder:  # after the database, so that it contains the files of all documents in FILE
            _copy_documents(dsn, source, open_folder(folder))


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--documents", "folder", type=_FOLDER, help="Then copy the files of documents that the storage lacks from it."
)
def restore(file: Path, folder: Path | None) -> None:
    """Restore a FILE that `backup` wrote into an empty database, in one transaction."""
    settings = load_settings()
    target = open_storage(settings) if folder else None
    with _open_file(file) as content, embedded_cluster(settings, creates=True) as cluster:
        dsn = owner_dsn(settings, cluster)
        database = run_as_owner(partial(_inspect_database, dsn))
        run_as_owner(partial(_check_serving_role, settings, cluster))
        if database.has_data:
            raise click.ClickException(
                "The database already contains data. Restore into an empty one:"
                " name a new database in PLANKEEPER_DATABASE_URL, or a new folder in PLANKEEPER_DATA_DIR."
                " Nothing was written."
            )
        if database.is_distributed:
            raise click.ClickException(
                "The tables of the database are distributed. Restore into a new database with the extension citus,"
                " then run `plankeeper distribute`. Nothing was written."
            )
        tools = find_tools(settings, database.major_version)
        _require_compatible(file, _read_backup_version(file, content, tools), database.schema)
        options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
        # `migrate` and a first start leave a schema without data: the backup's schema replaces it.
        options += ["--clean", "--if-exists"] if database.schema else []
        with progress(lambda: _size_of(content)) as report, _restore_errors(file):
            report_restored = lambda: report(*_restore_progress(content))  # noqa: E731
            tools.run("pg_restore", *options, database=dsn, stdin=content, on_progress=report_restored)
        usage, role, has_plan_managers = run_as_owner(partial(_finish_restore, settings, cluster))
        if target and folder:
            _copy_documents(dsn, open_folder(folder), target)
    click.echo(f"Restored {file}: the schema is {schema.LATEST_REVISION}.")
    click.echo(f"It contains {describe_usage(usage)}.")
    if has_plan_managers:
        click.echo(_WAITING)
    if role and settings.database_url:
        click.echo(f"The role {role} has its privileges.")
    if database.is_citus:
        click.echo("Its tables are on the coordinator: run `plankeeper distribute`.")
    for each in missing_key_warnings(settings, usage):
        click.echo(f"Warning: {each}", err=True)


@click.command("after-restore")
def after_restore() -> None:
    """End sessions, and have claims and payments wait for an owner, after a recovery without `plankeeper restore`."""
    settings = load_settings()
    with embedded_cluster(settings) as cluster:
        dsn = owner_dsn(settings, cluster)

        async def work() -> None:
            async with Database(dsn, pool_size=1, statement_timeout=3600).open() as db, db.transaction() as tx:
                await _close_access(tx)

        run_as_owner(work)
    click.echo(
        "Everybody has to sign in again. Mails that weren't sent are deleted, and links to approve invoices no longer"
        " work. Webhook endpoints are disabled."
    )
    click.echo(_WAITING)


def _copy_documents(dsn: str, source: DocumentStorage, target: DocumentStorage) -> None:
    async def work() -> list[StoredFile]:
        async with Database(dsn, pool_size=1, statement_timeout=60).open() as db:
            return await copy_documents(db, source, target)

    try:
        lost = run_as_owner(work)
    except StorageError as error:
        raise click.ClickException(f"Copying the documents failed: {error.__cause__}") from None
    report_lost(lost)


class _DatabaseState(NamedTuple):
    """`schema` is its version; `is_distributed`: Citus has the tables on its nodes."""

    major_version: int
    schema: str | None
    has_data: bool
    is_citus: bool
    is_distributed: bool


async def _inspect_database(dsn: str) -> _DatabaseState:
    async with Database(dsn, pool_size=1, statement_timeout=60).open() as db:
        version = await supported_schema_version(db)
        # All rows except those of the migrations belong to a plan manager.
        has_data = bool(await list_all(db)) if version else False
        major_version = int(await schema.server_version(db)) // 10_000
        is_distributed = version is not None and db.is_citus and await citus.is_distributed(db)
        revision = version.revision if version else None
        return _DatabaseState(major_version, revision, has_data, db.is_citus, is_distributed)


async def _check_serving_role(settings: Settings, cluster: Cluster | None) -> None:
    """Find the role that serves before anything is written, so that a wrong address changes nothing."""
    async with Database(owner_dsn(settings, cluster), pool_size=1).open() as db:
        await find_serving_role(db, settings, cluster)


# One connection to each node, so that it has one snapshot: all rows of a plan manager are from the same moment.
_CITUS_ENVIRONMENT = {"PGOPTIONS": "-c citus.max_adaptive_executor_pool_size=1"}


def _citus_options(major_version: int) -> list[str]:
    """Without the extension, the backup can be restored to a PostgreSQL with or without Citus."""
    if major_version < _EXCLUDES_EXTENSIONS:
        raise click.ClickException(
            f"A backup of a database with Citus requires PostgreSQL {_EXCLUDES_EXTENSIONS}, but the server is"
            f" {major_version}. Nothing was written."
        )
    return ["--exclude-extension=citus*"]


async def _finish_restore(settings: Settings, cluster: Cluster | None) -> tuple[list[KeyUsage], str | None, bool]:
    """Migrate an older schema, and analyse the tables: without statistics PostgreSQL plans for empty ones.

    Returns the keys that the stored secrets need, the role that got its privileges, and if there are plan managers.
    """
    dsn = owner_dsn(settings, cluster)
    async with Database(dsn, pool_size=2, statement_timeout=3600).open() as db:
        await migrate_with_progress(db, dsn)
        async with db.transaction() as tx:
            has_plan_managers = await _close_access(tx)
            with progress(lambda: None) as report:
                report("collecting statistics", 0)
                await analyze_all(tx)
        return await count_by_key(db), await grant_privileges(db, settings, cluster), has_plan_managers


async def _close_access(tx: Transaction) -> bool:
    """End what a copy of a database must not bring back.

    Ends all sessions, forgets known devices, deletes links to reset a password and mails, and revokes links to approve
    invoices: access that was revoked since must not return. Disables webhook endpoints, and leaves a gap in the order
    of events. Forgets which objects of the storage to delete. Claims and payments wait for an owner.

    Returns whether there are plan managers.
    """
    await accounts.delete_all_sessions_and_devices(tx)
    await link_store.delete_all_reset_links(tx)
    await mail_store.delete_all(tx)
    now = datetime.now(UTC)
    plan_managers = await list_all(tx)
    for each in plan_managers:
        await document_store.keep_objects(tx, each.id)
        await approval_store.revoke_all_links(tx, each.id, now)
        await order_store.leave_gap(tx, each.id)
        for endpoint_id in await endpoint_store.disable_all(tx, each.id, _DISABLED_REASON, now):
            await delivery_queue.cancel_pending(tx, each.id, endpoint_id)
        await restore_store.insert(tx, each.id, now)
    return bool(plan_managers)


def _check_overwrite(file: Path, *, force: bool) -> None:
    if not os.path.lexists(file):
        return
    if not force:
        raise click.ClickException(f"{file} already exists. Choose another name, or overwrite it with --force.")
    if not file.is_file():
        raise click.ClickException(
            f"{file} is not a regular file, so --force does not overwrite it. Choose another name."
        )


@contextmanager
def _atomic_file(file: Path) -> Generator[Path]:
    """A temporary file that only its owner can read. It is renamed to `file` once it is complete and synced."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
        partial_file = Path(name)
        try:
            yield partial_file
            os.fsync(descriptor)
            partial_file.replace(file)
        except BaseException:
            partial_file.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        folder = os.open(file.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise click.ClickException(f"Cannot write {file}: {error.strerror}. Nothing was written.") from None


@contextmanager
def _open_file(file: Path) -> Generator[BinaryIO]:
    try:
        content = file.open("rb")
    except OSError as error:
        raise click.ClickException(f"Cannot read {file}: {error.strerror}.") from None
    with content:
        yield content


def _read_backup_version(file: Path, content: BinaryIO, tools: PgTools) -> str:
    """The schema's version in a backup. Raises ClickException if the file is not a backup."""
    with tempfile.TemporaryFile() as out:
        options = ["--data-only", "--table=alembic_version", "--file=-"]
        with _restore_errors(file):
            tools.run("pg_restore", *options, stdin=content, stdout=out)
        content.seek(0)
        out.seek(0)
        match = _VERSION_PATTERN.search(out.read().decode())
    if match is None:
        raise click.ClickException(f"{file} is not a Plankeeper backup. Nothing was written.")
    return match[1]


@contextmanager
def _restore_errors(file: Path) -> Generator[None]:
    try:
        yield
    except click.ClickException as error:
        raise click.ClickException(f"Cannot restore {file}: {error.message}") from None


def _size_of(content: BinaryIO) -> int:
    return os.fstat(content.fileno()).st_size


def _restore_progress(content: BinaryIO) -> tuple[str, int]:
    """The step of pg_restore, and the bytes that it has read, which are the offset of the shared file descriptor."""
    position = os.lseek(content.fileno(), 0, os.SEEK_CUR)
    # The file ends with the data of the last table. Indexes and references follow, about half of the time.
    step = ", creating indexes" if position >= _size_of(content) else ""
    return f"{_format_size(position)} read{step}", position


def _require_compatible(file: Path, backup_version: str, database_version: str | None) -> None:
    if backup_version > schema.LATEST_REVISION:
        raise click.ClickException(
            f"{file} has schema {backup_version}, but this Plankeeper supports no newer schema than"
            f" {schema.LATEST_REVISION}. Restore it with the newer version of Plankeeper."
        )
    if database_version not in (None, backup_version):
        raise click.ClickException(
            f"{file} has schema {backup_version}, but the database already has schema {database_version}, without data."
            " Restore into a database without a schema: name a new database in PLANKEEPER_DATABASE_URL, or a new folder"
            " in PLANKEEPER_DATA_DIR. `restore` then migrates the backup's schema."
        )


def _format_size(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size:,} bytes"
