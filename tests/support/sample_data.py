"""Databases with the sample data of the documentation. It is loaded once for all processes of a test run."""

import fcntl
import os
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from plankeeper.cli.demo import add_demo_catalogue, load_demo_data
from plankeeper.cli.demo_claims import add_demo_claims
from plankeeper.cli.sample_data.dataset import LAST_MOMENT
from plankeeper.core.encryption.cipher import create_key_file
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from support.cluster import COPY, TEMPLATE, SharedCluster, as_owner, execute, run_apart
from support.rechecks import recheck

NAME = "sample_data"
CLAIMED = "claimed_sample_data"

_numbers = count(1)


async def load_catalogue(dsn: str) -> None:
    """Import the catalogue of the sample data, before the sample data is loaded."""
    async with Database(as_owner(dsn), pool_size=1).open() as db:
        await add_demo_catalogue(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), now=LAST_MOMENT)


async def _load(dsn: str) -> None:
    await load_catalogue(dsn)
    async with Database(dsn).open() as db:
        await load_demo_data(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), now=LAST_MOMENT)


async def _add_claims(dsn: str, key_file: Path) -> None:
    """Add them, and check what they have queued: otherwise, the servers of tests would change invoices meanwhile."""
    create_key_file(key_file)
    settings = ClaimedDatabase(dsn, key_file).settings
    async with Database(dsn).open() as db:
        await add_demo_claims(db, settings)
        await recheck(db, settings)


def new_sample_database(cluster: SharedCluster) -> str:
    """The address of a new database with the sample data: the first call of a run loads it, and each call copies it."""
    _prepare(cluster, NAME, TEMPLATE, _load)
    return _copy(cluster, NAME)


class ClaimedDatabase(NamedTuple):
    """The address of a database with claims and payments, and the keys of its secrets."""

    dsn: str
    key_file: Path

    @property
    def settings(self) -> Settings:
        """Without a storage of documents."""
        return Settings.read({"PLANKEEPER_DATABASE_URL": self.dsn, "PLANKEEPER_SECRET_KEY_FILE": str(self.key_file)})


def new_claimed_database(cluster: SharedCluster) -> ClaimedDatabase:
    """A new database with the sample data, and the claims and payments of `serve --demo`: a run makes them once."""
    key_file = cluster.data_dir.with_name(f"{CLAIMED}.keys")
    _prepare(cluster, NAME, TEMPLATE, _load)
    _prepare(cluster, CLAIMED, NAME, partial(_add_claims, key_file=key_file))
    return ClaimedDatabase(_copy(cluster, CLAIMED), key_file)


def _prepare(
    cluster: SharedCluster, name: str, template: str, load: Callable[[str], Coroutine[Any, Any, None]]
) -> None:
    """Copy and fill a database, unless another test or process of the run has done so."""
    done = cluster.data_dir.with_name(f"{name}.done")
    with done.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            execute(cluster.dsn_of("postgres"), f"create database {name} template {template} {COPY}")
            run_apart(load(cluster.dsn_of(name)))
            done.touch()


def _copy(cluster: SharedCluster, name: str) -> str:
    copy = f"{name}_{os.getpid()}_{next(_numbers)}"
    execute(cluster.dsn_of("postgres"), f"create database {copy} template {name} {COPY}")
    return cluster.dsn_of(copy)
