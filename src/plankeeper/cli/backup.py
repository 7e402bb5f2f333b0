"""`plankeeper backup` and `plankeeper restore`: the whole database as one file, by PostgreSQL's own programs."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import click

from plankeeper.cli.context import cluster_of, known_version, run, settings
from plankeeper.database import binaries, schema
from plankeeper.database.binaries import Account, ClusterError
from plankeeper.database.cluster import Cluster
from plankeeper.database.pool import Database
from plankeeper.plan_managers.store import fetch_all
from plankeeper.settings import Settings

# Told how many bytes are done.
Tell = Callable[[int], None]

_VERSION = re.compile(r"^COPY .*alembic_version \(version_num\) FROM stdin;\n(\d{4})\n", re.MULTILINE)
_SAID = re.compile(r"^pg_\w+: error: (.+)$", re.MULTILINE)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if there is one.")
def backup(file: Path, force: bool) -> None:
    """Write the whole database to FILE, as of one moment. Servers go on meanwhile."""
    _refuse_existing(file, force=force)
    found = settings()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is half-written goes
    with cluster_of(found) as cluster:
        dsn = cluster.dsn if cluster else found.database_url or ""
        server, version, _ = run(_ask(dsn))
        if version is None:
            raise click.ClickException("The database has no schema: there is nothing to back up.")
        programs = _programs(found, cluster, server)
        options = ["--format=custom", "--encoding=UTF8", "--no-unlogged-table-data", "--lock-wait-timeout=60s"]
        with _whole_file(file) as out, _progress("written", None) as tell:
            programs.run("pg_dump", *options, database=dsn, writes=out, told=lambda: tell(os.fstat(out.fileno()).st_size))
    click.echo(f"{file}: {_size(file.stat().st_size)}, schema {version}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(file: Path) -> None:
    """Fill an empty database from a FILE that `backup` wrote: all of it, or nothing."""
    found = settings()
    with _opened(file) as content, cluster_of(found) as cluster:
        dsn = cluster.dsn if cluster else found.database_url or ""
        server, version, has_data = run(_ask(dsn))
        if has_data:
            raise click.ClickException(
                "The database has data already. Restore into an empty one:"
                " name a new database in PLANKEEPER_DATABASE_URL, or a new folder in PLANKEEPER_DATA_DIR."
            )
        programs = _programs(found, cluster, server)
        _require_fitting(file, _version_in(file, content, programs), version)
        options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
        # A schema without data, as `migrate` or a first start leaves it, gives way to the backup's.
        options += ["--clean", "--if-exists"] if version else []
        with _progress("read", os.fstat(content.fileno()).st_size) as tell:
            # The program reads from our descriptor, so we see how far it is.
            where = lambda: tell(os.lseek(content.fileno(), 0, os.SEEK_CUR))  # noqa: E731
            programs.run("pg_restore", *options, database=dsn, reads=content, told=where)
        run(_settle(dsn))
    click.echo(f"Restored {file}: the schema is {schema.EXPECTED}.")


async def _ask(dsn: str) -> tuple[int, str | None, bool]:
    """The server's major version, the schema's version, and whether there is anybody's data."""
    async with Database(dsn, pool_size=1, statement_timeout=60).opened() as db:
        version = await known_version(db)
        # Everything but the schema's own rows belongs to a plan manager.
        has_data = bool(await fetch_all(db)) if version else False
        return int(await schema.server_version(db)) // 10_000, version, has_data


async def _settle(dsn: str) -> None:
    """Bring an older schema up to date, and count what the tables hold: plans made for empty ones are bad."""
    async with Database(dsn, pool_size=2, statement_timeout=3600).opened() as db:
        await schema.migrate_if_older(db, dsn)
        async with db.transaction() as tx:
            await tx.analyze()


@dataclass(frozen=True)
class _Programs:
    """A folder with pg_dump and pg_restore, their major version, and the account to run them with."""

    folder: Path
    major: int
    account: Account | None

    def run(
        self, program: str, *options: str, database: str | None = None,
        reads: BinaryIO | None = None, writes: BinaryIO | None = None, told: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Run a program to its end; raises ClickException with what it said of a failure."""
        address, password = _without_password(database) if database else ("", {})
        command = [str(self.folder / program), *options]
        command += ["--no-password", f"--dbname={address}"] if database else []
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(  # noqa: S603 - the programs that _programs() has chosen
                    command, stdin=reads or subprocess.DEVNULL, stdout=writes or subprocess.DEVNULL, stderr=said,
                    cwd="/", env=self._environment() | password, **_as_user(self.account),
                )  # fmt: skip
            except OSError as error:
                raise click.ClickException(f"{command[0]} cannot be run: {error.strerror}.") from None
            try:
                while process.poll() is None:
                    told()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            said.seek(0)
            if process.returncode:
                raise click.ClickException(_complaint(program, process.returncode, said.read().decode(errors="replace")))

    def _environment(self) -> dict[str, str]:
        # asyncpg heeds the PG… variables where they say what the address doesn't; so the programs shall too.
        return {**os.environ, "LC_ALL": "C", "PGCONNECT_TIMEOUT": "5"}


def _as_user(account: Account | None) -> dict[str, int | list[int]]:
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
