"""Citus on loopback: a coordinator and two workers, from a build that lies beside the project."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from plankeeper.server.embedded_postgres import binaries
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE, SUPERUSER
from support.cluster import execute, prepare_database
from support.ports import free_ports

BUILD = Path(__file__).parents[3] / "shared" / "citus"
PORTS = 11  # from the coordinator's to that of the server beside the trio, which trio.sh starts without Citus

# What the databases hold needn't outlive the machine.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "lock_timeout": "5s",  # as docs/operations/clusters.md advises
}


class CitusTrio:
    """A coordinator and two workers; `third` is a server that can join as another worker."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._numbers = count(1)
        self.port, worker1, worker2, *_, self.third = free_ports(PORTS)
        self.ports = {"coordinator": self.port, "worker1": worker1, "worker2": worker2}

    def up(self) -> None:
        """Start the servers that aren't running."""
        folder = binaries.find(None, None).folder.parent
        subprocess.run(
            [BUILD / "trio.sh", "up"],
            env={**os.environ, "PGINSTALL": str(folder), "HOME_DIR": str(self.home), "PORT": str(self.port)},
            check=True,
            capture_output=True,
        )

    def down(self) -> None:
        for name in [*self.ports, "plain"]:
            self.kill(name)

    def kill(self, name: str) -> None:
        """Stop a server at once, as if its machine had failed."""
        pid_file = self.home / "data" / name / "postmaster.pid"
        if pid_file.exists():
            pid = int(pid_file.read_text().splitlines()[0])
            os.kill(pid, signal.SIGQUIT)
            while pid_file.exists():
                time.sleep(0.05)

    def configure(self, port: int) -> None:
        settings = [f"alter system set {name} = '{value}'" for name, value in SETTINGS.items()]
        execute(self._address(port, "postgres"), *settings, "select pg_reload_conf()")

    def new_database(self) -> str:
        """The address of a new database on all nodes, with the schema, before `distribute`."""
        name = f"test_{next(self._numbers)}"
        for port in self.ports.values():
            execute(self._address(port, "postgres"), f"create database {name} template template0 encoding 'UTF8'")
            execute(self._address(port, name), "create extension citus")
        nodes = [f"select citus_add_node('127.0.0.1', {self.ports[each]})" for each in ("worker1", "worker2")]
        dsn = self._address(self.port, name, SERVING_ROLE)
        execute(dsn, f"select citus_set_coordinator_host('127.0.0.1', {self.port})", *nodes)
        prepare_database(dsn)
        return dsn

    def start_third(self, dsn: str) -> None:
        """Make the third server ready to join the nodes of a database."""
        self.kill("plain")
        with (self.home / "data" / "plain" / "postgresql.conf").open("a") as file:
            file.write("shared_preload_libraries = 'citus'\nwal_level = logical\n")
        self.up()
        name = dsn.rpartition("/")[2]
        execute(self._address(self.third, "postgres"), f"create database {name} template template0 encoding 'UTF8'")
        execute(self._address(self.third, name), "create extension citus")

    def _address(self, port: int, database: str, role: str = SUPERUSER) -> str:
        return f"postgresql://{role}@127.0.0.1:{port}/{database}"


@contextmanager
def citus_trio() -> Generator[CitusTrio]:
    """A running trio. Skips the test if the build is missing."""
    if not (BUILD / "trio.sh").is_file():
        pytest.skip(f"{BUILD} with a build of Citus doesn't exist")
    home = Path(tempfile.mkdtemp(prefix="plankeeper-citus-"))
    home.chmod(0o711)
    trio = CitusTrio(home)
    try:
        trio.up()
        for port in trio.ports.values():
            trio.configure(port)
        yield trio
    finally:
        trio.down()
        shutil.rmtree(home)
