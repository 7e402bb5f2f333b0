"""Databases with the sample data of the documentation. It is loaded once for all processes of a test run."""

import asyncio
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from plankeeper.cli.demo import add_demo_catalogue, load_demo_data
from plankeeper.cli.sample_data.dataset import LAST_MOMENT
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from support.cluster import TEMPLATE, SharedCluster, as_owner, execute

NAME = "sample_data"

_numbers = count(1)


async def load_catalogue(dsn: str) -> None:
    """Import the catalogue of the sample data, before the sample data is loaded."""
    async with Database(as_owner(dsn), pool_size=1).open() as db:
        await add_demo_catalogue(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), now=LAST_MOMENT)


async def _load(dsn: str) -> None:
    await load_catalogue(dsn)
    async with Database(dsn).open() as db:
        await load_demo_data(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), now=LAST_MOMENT)


def new_sample_database(cluster: SharedCluster) -> str:
    """The address of a new database with the sample data: the first call of a run loads it, and each call copies it."""
    admin_dsn, done = cluster.dsn_of("postgres"), cluster.data_dir.with_name(f"{NAME}.done")
    with done.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            execute(admin_dsn, f"create database {NAME} template {TEMPLATE}")
            # In a thread of its own: the caller's may have an event loop.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _load(cluster.dsn_of(NAME))).result()
            done.touch()
    name = f"{NAME}_{os.getpid()}_{next(_numbers)}"
    execute(admin_dsn, f"create database {name} template {NAME}")
    return cluster.dsn_of(name)
