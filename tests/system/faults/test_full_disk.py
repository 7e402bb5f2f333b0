"""The database's disk becomes full under load: writes fail with a clear error, and resume once there is space."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import httpx
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.client import PREFIX
from support.program import Done, ServeProcess, run_program
from support.server import readiness, wait_until
from system.faults.access import create_credentials, query
from system.faults.accounts import assert_consistent
from system.faults.load import Load

DISK_MEGABYTES = 192  # megabytes: a cluster, its log for a while, and something to fill up


@pytest.fixture
def disk(folder: Path) -> Iterator[Path]:
    """A small file system of its own."""
    made = folder / "disk"
    made.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m,mode=0711", "tmpfs", str(made)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here: that takes root, and a system that lets it")
    yield made
    subprocess.run(["umount", "--lazy", str(made)], check=True)


def fill_disk(disk: Path) -> Path:
    """Take all the space that is left, or that is free again because PostgreSQL has removed a part of its log."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(65536))
    return filler


def detail(response: httpx.Response) -> str:
    assert response.status_code in (200, 503)
    return response.json().get("detail", "")


def cluster_dsn(data_dir: Path) -> str:
    shared = Cluster(data_dir)
    assert not shared.ensure()
    return shared.dsn


def other_client(load: Load, dsn: str) -> httpx.Client:
    """A client for another plan manager than the load's, which counts what there is."""
    return httpx.Client(base_url=load.address() + PREFIX, headers=create_credentials(dsn).headers, timeout=20)


def is_out_of_space(client: httpx.Client) -> bool:
    """Whether a write fails because the disk is full; its response is then the documented one."""
    response = client.post("/participants", json={"last_name": "Refused", "reason_for_leaving": os.urandom(4000).hex()})
    if response.status_code == 200:
        return False
    assert (response.status_code, response.json()["error"]) == (503, "service_unavailable")
    assert response.headers["retry-after"].isdecimal()
    return True


# What `doctor` says of a full disk. PostgreSQL writes a file for the first connection after a change of its catalogs:
# then `doctor` gets no connection.
REPORTED = (
    r"^warn  the database has .* and its disk 0\.0 MiB of free space.*\n"
    r"FAIL  The database's disk is full, so it can't write$"
    r"|^FAIL  The database is unavailable: the database's disk is full, so it can't write: could not write init file"
)


def is_reported(done: Done) -> Done | None:
    """The output of `doctor` that says that the disk is full."""
    return done if re.search(REPORTED, done.stdout, re.MULTILINE) else None


def test_when_tables_cannot_grow_reads_work_and_writes_return_503(
    disk: Path, serve: Callable[..., ServeProcess]
) -> None:
    serving = serve(disk / "data", workers=2)
    dsn = cluster_dsn(disk / "data")
    load = Load(lambda: serving.url, create_credentials(dsn), clients=4)
    wait_until(lambda: load.acknowledged > 100 or load.errors)
    postmaster = serving.postmaster().pid
    ready = f"{serving.url}/readyz"
    assert readiness(serving.url).json() == {"status": "ok"}
    with other_client(load, dsn) as client:
        filler = fill_disk(disk)
        wait_until(lambda: is_out_of_space(client) and load.retries > 30, 60)
        # If the log needed the space first, PostgreSQL starts again, and says so for a moment.
        wait_until(lambda: client.get("/participants").status_code == 200)
        full = "The database's disk is full, so it can't write."
        wait_until(lambda: fill_disk(disk) and detail(httpx.get(ready)) == full)
        body = {"reason_for_leaving": os.urandom(4000).hex()}
        refused = f"{full} Nothing was written."
        wait_until(lambda: fill_disk(disk) and detail(client.post("/participants", json=body)).startswith(refused))
    data = str(disk / "data")
    sick = wait_until(lambda: fill_disk(disk) and is_reported(run_program("doctor", PLANKEEPER_DATA_DIR=data)))
    assert sick.returncode == 1
    log = [json.loads(line) for line in serving.lines]
    assert [line for line in log if (line.get("reason"), line.get("sqlstate")) == ("disk_full", "53100")]
    assert not [line for line in serving.lines if "No space left" in line]
    back = free_space_and_recover(load, filler)
    wait_until(lambda: httpx.get(ready).status_code == 200)
    assert serving.postmaster().pid == postmaster
    assert_consistent(load, dsn, f"disk full of data, first write {back:.1f} s after there was space")
    assert serving.stop() == 0


def test_when_the_wal_cannot_grow_the_database_recovers_with_free_space(
    full_run_only: None, disk: Path, serve: Callable[..., ServeProcess]
) -> None:
    folder = disk.parent / "data"
    assert serve(folder).stop() == 0
    log = folder / "postgres" / "pg_wal"
    owner = log.stat()
    shutil.copytree(log, disk / "pg_wal")
    for each in (disk / "pg_wal", *(disk / "pg_wal").rglob("*")):
        os.chown(each, owner.st_uid, owner.st_gid)
    shutil.rmtree(log)
    log.symlink_to(disk / "pg_wal")

    serving = serve(folder, workers=2)
    dsn = cluster_dsn(folder)
    load = Load(lambda: serving.url, create_credentials(dsn), clients=4)
    wait_until(lambda: load.acknowledged > 100 or load.errors)
    with other_client(load, dsn) as client:
        filler = fill_disk(disk)
        # More than is left of the segment that PostgreSQL writes to: it gives up.
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            query(dsn, "select pg_logical_emit_message(false, 'fill', repeat('x', 17000000), true)")
        wait_until(lambda: is_out_of_space(client) and load.retries > 30, 60)
    assert "No space left on device" in (folder / "postgres.log").read_text()
    back = free_space_and_recover(load, filler)
    assert_consistent(load, dsn, f"disk full of log, first write {back:.1f} s after there was space")
    assert serving.stop() == 0


def free_space_and_recover(load: Load, filler: Path) -> float:
    """Make space: the seconds to the first write."""
    assert load.errors == []
    filler.unlink()
    freed = time.monotonic()
    back = wait_until(lambda: load.seconds_to_next_write(freed) or load.errors, 60)
    wait_until(lambda before=load.acknowledged: load.acknowledged > before + 100 or load.errors, 60)
    assert load.errors == []
    return back
