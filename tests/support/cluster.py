"""One cluster for all processes of a test run. It is migrated once; each process works on a copy of that database."""

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import asyncpg
import pytest

from plankeeper.database import privileges, schema
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres import cluster as embedded_cluster
from plankeeper.server.embedded_postgres import creation, postmaster
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE, SUPERUSER

TEMPLATE = "plankeeper"
COPY = "strategy file_copy"  # takes half of the processor time of a copy through the write-ahead log
ADDRESS = "PLANKEEPER_TEST_DATABASE_URL"

# Several servers of each process use it at once, and nothing that it holds must outlive the machine.
SETTINGS = {
    "max_connections": "400",
    "max_prepared_transactions": "10",
    "synchronous_commit": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "jit": "off",
}


def as_owner(dsn: str) -> str:
    """The same address with the role that owns the tables."""
    served, owned = f"user={SERVING_ROLE}", f"user={SUPERUSER}"
    return dsn.replace(served, owned).replace(f"//{SERVING_ROLE}@", f"//{SUPERUSER}@")


def execute(dsn: str, *statements: str) -> None:
    """Run statements as the owner one by one, each in a transaction of its own."""

    async def work() -> None:
        connection: Any = await asyncpg.connect(as_owner(dsn))
        try:
            for each in statements:
                await connection.execute(each)
        finally:
            await connection.close()

    run_apart(work())


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread of its own: the caller's may have an event loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def prepare_database(dsn: str) -> None:
    """Migrate a database, and give the role that serves its privileges."""

    async def prepare_role() -> None:
        async with Database(as_owner(dsn), pool_size=1).open() as db, db.transaction() as tx:
            await privileges.prepare_role(tx, SERVING_ROLE)

    schema.migrate(as_owner(dsn))
    run_apart(prepare_role())


class SharedCluster(Cluster):
    """A cluster that another process of the same run may have started. `dsn` is this process's own database."""

    def __init__(self, data_dir: Path, bin_dir: Path | None = None) -> None:
        super().__init__(data_dir, bin_dir)
        self._numbers = count(1)
        self._database = TEMPLATE
        self.is_owner = False

    @property
    def dsn(self) -> str:
        return self.dsn_of(self._database)

    @property
    def owner_dsn(self) -> str:
        return as_owner(self.dsn)

    def dsn_of(self, database: str) -> str:
        return super().dsn.replace(f"/{TEMPLATE}?", f"/{database}?")

    def new_database(self, *, migrated: bool = True) -> str:
        """The address of a new database: with the schema and the role that serves, or with nothing and the owner."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        template = TEMPLATE if migrated else "template0"
        execute(self.dsn_of("postgres"), f"create database {name} template {template} {COPY}")
        return self.dsn_of(name) if migrated else as_owner(self.dsn_of(name))

    def drop(self, dsn: str) -> None:
        name = dsn.removeprefix("postgresql:///").partition("?")[0]
        execute(self.dsn_of("postgres"), f"drop database {name} with (force)")

    def open(self) -> None:
        """Start and migrate it, or share what another process has started; then copy the migrated database."""
        if self.ensure():
            self.is_owner = True
            prepare_database(self.dsn)
        self._database = self.new_database().removeprefix("postgresql:///").partition("?")[0]

    def _launch(self, *arguments: Any) -> str | None:
        rules = creation._hba() + "local all all trust\n"  # noqa: SLF001 - tests have roles of their own
        with (
            patch.dict(embedded_cluster._REQUIRED_SETTINGS, SETTINGS),  # noqa: SLF001 - the flags of the server
            patch.object(creation, "_hba", lambda: rules),
        ):
            return super()._launch(*arguments)

    def abandon(self) -> None:
        """Stop the server at once: what it holds need not reach the disk."""
        running = postmaster.read_pid_file(self.location)
        if running:
            os.kill(running.pid, signal.SIGQUIT)
        self.stop()

    def prepared_database(self, name: str, *statements: str) -> str:
        """The address of a database that all processes read and none changes: the first one fills it."""
        dsn = self.dsn_of(name)
        lock = _locked(self.data_dir.with_name(f"{name}.lock"), fcntl.LOCK_EX)
        try:
            done = self.data_dir.with_name(f"{name}.done")
            if not done.exists():
                execute(self.dsn_of("postgres"), f"create database {name} template {TEMPLATE} {COPY}")
                execute(dsn, *statements)
                done.touch()
        finally:
            os.close(lock)
        return dsn

    def prepared_folder(self, name: str, fill: Callable[[Path], None]) -> Path:
        """A folder that all processes read and none changes: the first one fills it."""
        folder = self.data_dir.with_name(name)
        lock = _locked(folder.with_suffix(".lock"), fcntl.LOCK_EX)
        try:
            if not folder.exists():
                new = folder.with_suffix(".new")
                new.mkdir(mode=0o711)  # the database's user must traverse it
                fill(new)
                new.rename(folder)
        finally:
            os.close(lock)
        return folder


class ExternalDatabase:
    """An external database, started and migrated. Tests that need another one are skipped."""

    def __init__(self, dsn: str, data_dir: Path) -> None:
        self.dsn = dsn
        self.data_dir = data_dir

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"needs the embedded PostgreSQL ({name})")


@contextmanager
def external_database(dsn: str) -> Generator[ExternalDatabase]:
    """The database that PLANKEEPER_TEST_DATABASE_URL names."""
    with tempfile.TemporaryDirectory() as folder:
        yield ExternalDatabase(dsn, Path(folder) / "data")


@contextmanager
def shared_cluster(run: str, bin_dir: Path | None = None) -> Generator[SharedCluster]:
    """The cluster of a run, for one of its processes. The process that started it stops it after the last use."""
    folder = Path(tempfile.gettempdir()) / f"plankeeper-test-{run}"
    in_use = _locked(folder / "in-use", fcntl.LOCK_SH)
    cluster = SharedCluster(folder / "data", bin_dir)
    opening = _locked(folder / "opening", fcntl.LOCK_EX)
    try:
        cluster.open()
    finally:
        os.close(opening)
    try:
        yield cluster
    finally:
        if cluster.is_owner:
            fcntl.flock(in_use, fcntl.LOCK_EX)  # once the others have let go
            cluster.abandon()
            shutil.rmtree(folder)
        os.close(in_use)


def _locked(file: Path, how: int) -> int:
    """The descriptor of a locked file, which is not that of a folder that has been removed meanwhile."""
    while True:
        # Not one of pytest's own folders: they are closed to the system user that PostgreSQL runs as under root.
        file.parent.mkdir(exist_ok=True)
        file.parent.chmod(0o711)
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, how)
        if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
        os.close(descriptor)
