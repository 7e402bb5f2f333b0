"""The database machines: etcd, Patroni and PostgreSQL with the documented configuration, on loopback addresses."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil

from plankeeper.server.embedded_postgres import binaries
from support.pages import substitute
from support.program import kill_all, signal_process
from support.server import wait_until
from system.patroni.documented import documented_file, free_ports, on_loopback

PATH = f"{os.environ['PATH']}:/usr/sbin"  # Debian's HAProxy is there
PACKAGES = {"etcd": "etcd-server", "haproxy": "haproxy", "setpriv": "util-linux"}
NAMES = ("pg1", "pg2", "pg3")
PASSWORD = "secret"
# The server's user may have no access to the interpreter or the project.
READ_EVERYTHING = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")


def missing_package() -> str | None:
    """A package without which the machines can't run, if one is missing."""
    return next((package for program, package in PACKAGES.items() if not shutil.which(program, path=PATH)), None)


class Programs:
    """Starts programs as a user that PostgreSQL accepts. They end with the tests, whatever happens to those."""

    def __init__(self, folder: Path) -> None:
        self.user = binaries.server_user(folder)
        self.postgresql = binaries.find(None, self.user).folder

    def own(self, path: Path) -> None:
        if self.user:
            os.chown(path, self.user.uid, self.user.gid)

    def start(self, command: list[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
        user = self.user
        as_user = (f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", *READ_EVERYTHING) if user else ()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PATRONI_"))}
        with log.open("ab") as output:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig=TERM", *as_user, "--", *command],
                cwd=folder,
                env=environment | {"PATH": PATH, "HOME": str(folder), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


class Machine:
    """One of the three machines, with a folder of its own."""

    def __init__(self, programs: Programs, folder: Path, number: int) -> None:
        self.name = NAMES[number]
        self.address = f"127.0.0.{21 + number}"
        self.url = f"http://{self.address}:{free_ports()[8008]}"
        self._programs = programs
        self._folder = folder / self.name
        self._data = self._folder / "data"
        self._folder.mkdir(mode=0o700)
        programs.own(self._folder)
        self.patroni_file = self._write("patroni.yml", self._patroni_file())
        self._etcd_file = self._write("etcd.yml", self._etcd_file_contents())
        self._etcd: subprocess.Popen[bytes] | None = None
        self._patroni: subprocess.Popen[bytes] | None = None

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        self._programs.own(path)
        return path

    def _patroni_file(self) -> str:
        text = substitute(
            documented_file("yaml", "scope: plankeeper"),
            {
                r"^name: pg1$": f"name: {self.name}",
                r"/var/lib/postgresql/18/plankeeper": str(self._data),
                r"/usr/lib/postgresql/18/bin": str(self._programs.postgresql),
                r"/var/lib/postgresql/pgpass": str(self._folder / "pgpass"),
                r"/var/run/postgresql": str(self._folder),
            },
        )
        text = substitute(text, {r"((?:listen|connect_address): 10\.0\.0\.)21": rf"\g<1>{self.address[-2:]}"}, times=4)
        return on_loopback(substitute(text, {r'password: "\.\.\."': f"password: {PASSWORD}"}, times=4))

    def _etcd_file_contents(self) -> str:
        text = substitute(
            documented_file("yaml", "initial-cluster-token: plankeeper"),
            {r"^name: pg1$": f"name: {self.name}", r"/var/lib/etcd/plankeeper": str(self._folder / "etcd")},
        )
        return on_loopback(substitute(text, {r"(urls: http://10\.0\.0\.)21": rf"\g<1>{self.address[-2:]}"}, times=4))

    def start(self) -> None:
        self._etcd = self._start("etcd", "--config-file", str(self._etcd_file))
        self.start_patroni()

    def start_patroni(self) -> None:
        self._patroni = self._start(sys.executable, "-m", "patroni", str(self.patroni_file))

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return self._programs.start([*command], self._folder, self._folder / "log")

    def postgresql_processes(self) -> list[psutil.Process]:
        """The postmaster and its children; empty if it isn't running."""
        try:
            postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().split("\n")[0]))
            return [postmaster, *postmaster.children()] if str(self._data) in postmaster.cmdline() else []
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return []

    def kill_patroni(self) -> None:
        assert self._patroni is not None
        self._patroni.kill()
        self._patroni.wait()

    def kill(self) -> None:
        """End everything on this machine at once, with signal 9."""
        for process in (self._etcd, self._patroni):
            assert process is not None
            process.kill()
        kill_all(self.postgresql_processes())
        for process in (self._etcd, self._patroni):
            assert process is not None
            process.wait()
        wait_until(lambda: not self.postgresql_processes())

    def pause_postgresql(self) -> list[psutil.Process]:
        """Stop all processes of PostgreSQL with SIGSTOP: returns them, to be continued."""
        postmaster = self.postgresql_processes()[0]
        postmaster.suspend()  # first, so that no new one is started
        paused = [postmaster, *postmaster.children()]
        for each in paused:
            signal_process(each, signal.SIGSTOP)
        return paused

    def members(self) -> list[dict[str, Any]]:
        """The machines as Patroni sees them here; empty if it doesn't respond."""
        try:
            return httpx.get(f"{self.url}/cluster", timeout=2).json()["members"]
        except (httpx.TransportError, ValueError, KeyError):
            return []

    def stop(self) -> None:
        """End everything at once. PostgreSQL takes its shared memory with it, which it can't after signal 9."""
        for process in (self._patroni, self._etcd):
            if process is not None:
                process.kill()
                process.wait()
        running = self.postgresql_processes()
        for each in running:
            signal_process(each, signal.SIGCONT)
        for each in running[:1]:
            signal_process(each, signal.SIGQUIT)
        _, alive = psutil.wait_procs(running, 30)
        assert not alive, alive
