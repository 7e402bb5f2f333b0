"""A primary and its standby on loopback, of the packaged PostgreSQL's own programs."""

import os
import signal
import subprocess
from pathlib import Path

import asyncpg
import psutil

from plankeeper.server.embedded_postgres import binaries
from support.ports import free_port
from support.program import kill_all
from support.server import wait_until
from system.faults.access import query

DATABASE = "plankeeper"


class Node:
    """One PostgreSQL server with a folder and a port of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._home = folder / name
        self._account = binaries.server_user(self._home)
        self._programs = binaries.find(None, self._account)
        self._log = folder / f"{name}.log"
        self._home.mkdir(mode=0o700)
        if self._account:
            os.chown(self._home, self._account.uid, self._account.gid)
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None

    def dsn(self, database: str = DATABASE) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        self._run("initdb", "-D", str(self._home), "-U", "postgres", "--auth=trust", "--no-locale", "-E", "UTF8")

    def copy(self, primary: "Node") -> None:
        """Become a standby of a primary that runs; its name, which the primary waits for, is `standby`."""
        source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
        self._run("pg_basebackup", "-D", str(self._home), "-d", source, "-R", "-c", "fast", "-X", "stream")

    def _run(self, program: str, *arguments: str) -> None:
        with Path(os.devnull).open() as stdin:
            self._programs.run(program, *arguments, inherited_fd=stdin.fileno())

    def start(self) -> None:
        flags = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", "unix_socket_directories="]
        with self._log.open("ab") as log:
            self._server = self._programs.spawn("postgres", "-D", str(self._home), *flags, log=log)
        wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return bool(query(self.dsn("postgres"), "select 1"))
        except (OSError, asyncpg.CannotConnectNowError):
            return False

    def kill(self) -> None:
        """End every process of it at once, with signal 9."""
        assert self._server is not None
        family = [psutil.Process(self._server.pid), *psutil.Process(self._server.pid).children()]
        kill_all(family)
        self._server.wait(20)
        self._server = None

    def promote(self) -> None:
        """Let a standby take writes; back once it does."""
        [[done]] = query(self.dsn(), "select pg_promote()")
        assert done is True

    def stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(30)


class ReplicaPair:
    """A primary that acknowledges nothing before its standby has it on disk."""

    def __init__(self, folder: Path) -> None:
        self.primary, self.standby = Node(folder, "primary"), Node(folder, "standby")
        self.primary.create()
        self.primary.start()
        query(self.primary.dsn("postgres"), f"create database {DATABASE}")
        self.standby.copy(self.primary)
        self.standby.start()
        for statement in ("alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()"):
            query(self.primary.dsn(), statement)
        wait_until(self._is_synchronous)

    def _is_synchronous(self) -> bool:
        [[found]] = query(self.primary.dsn(), "select count(*) from pg_stat_replication where sync_state = 'sync'")
        return found == 1

    @property
    def dsn(self) -> str:
        """Both hosts; a client takes the one that takes writes."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def disconnect(self) -> None:
        """From here on the primary sends its standby nothing, though it does not know that yet."""
        [[sender]] = query(self.primary.dsn(), "select pid from pg_stat_replication")
        os.kill(sender, signal.SIGSTOP)

    def stop(self) -> None:
        self.standby.stop()
        self.primary.stop()
