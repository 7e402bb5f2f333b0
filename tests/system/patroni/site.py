"""Three database machines under Patroni, and two application machines with HAProxy and a Plankeeper server each.

Patroni makes writes resume 10 to 24 s after the primary fails, without losing one that was acknowledged.
"""

import random
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from support.folder import temporary_folder
from support.pages import substitute
from support.program import ServeProcess, run_program
from support.receiver import Headers, Receiver, ResponseTuple
from support.server import wait_until
from system.faults.access import query
from system.load.webhooks import WebhookWorker
from system.patroni.documented import documented_file, on_loopback
from system.patroni.machines import PASSWORD, Machine, Programs

MAX_WAIT = 300  # seconds that a cluster may take to become healthy on a busy machine
WORKER_STARTED = "the webhook worker is started"
HEALTHY = [("leader", "running"), ("replica", "streaming"), ("sync_standby", "streaming")]


class Application:
    """HAProxy, `plankeeper serve` and `plankeeper webhook-worker` on one machine."""

    def __init__(self, programs: Programs, folder: Path, number: int) -> None:
        self._address = f"127.0.0.{11 + number}"
        self._folder = folder / f"app{number + 1}"
        self._folder.mkdir()
        file = self._folder / "haproxy.cfg"
        file.write_text(self._localise(documented_file("haproxy", "listen plankeeper_database")))
        command = ["haproxy", "-db", "-f", str(file)]
        self.haproxy = programs.start(command, self._folder, self._folder / "haproxy.log")

    def _localise(self, text: str) -> str:
        return on_loopback(substitute(text, {r"127\.0\.0\.1:": f"{self._address}:"}))

    @property
    def dsn(self) -> str:
        return self._localise(documented_file("conf", "127.0.0.1:5000").strip()).replace("...", PASSWORD)

    def serve(self) -> None:
        settings = {"PLANKEEPER_DATABASE_URL": self.dsn, "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}
        self.server = ServeProcess(self._folder, **settings)
        # A program of its own: a worker of `serve` has a low priority, and the processors are busy here.
        self.webhook_worker = self._start_webhook_worker(settings)

    def _start_webhook_worker(self, settings: dict[str, str]) -> WebhookWorker:
        """Start it again if it can't reach the database at its start, as systemd does."""
        self._webhook_log = self._folder / "webhooks.log"
        worker = WebhookWorker(self._webhook_log, **settings)
        wait_until(lambda: WORKER_STARTED in self._webhook_log.read_text() or worker.process.poll() is not None)
        if worker.process.poll() is None:
            return worker
        self._webhook_log.unlink()
        return self._start_webhook_worker(settings)

    def processes(self) -> set[psutil.Process]:
        """All processes of Plankeeper on this machine."""
        programs = [psutil.Process(each.process.pid) for each in (self.server, self.webhook_worker)]
        return {process for each in programs for process in [each, *each.children(recursive=True)]}

    def log_lines(self) -> list[str]:
        return [*self.server.lines, *self._webhook_log.read_text().splitlines()]


class Site:
    """All machines. `received` has the ids of the events that were received as webhooks."""

    def __init__(self, machines: list[Machine], applications: list[Application], receiver: Receiver) -> None:
        self.machines = machines
        self.applications = applications
        self.webhook_url = receiver.url
        self.received: set[str] = set()
        receiver.respond = self._receive

    def _receive(self, headers: Headers, _body: bytes) -> ResponseTuple:
        self.received.add(headers["webhook-id"])
        return 204, {}, b""

    @property
    def dsn(self) -> str:
        return self.applications[0].dsn

    def url(self) -> str:
        """The address of any server: clients are behind a load balancer."""
        return random.choice(self.applications).server.url

    def processes(self) -> set[psutil.Process]:
        """All processes of Plankeeper."""
        return {process for each in self.applications for process in each.processes()}

    def errors(self) -> list[str]:
        """The errors that Plankeeper logged. An unavailable database is a warning."""
        return [line for each in self.applications for line in each.log_lines() if '"level":"error"' in line]

    def members(self) -> list[dict[str, Any]]:
        """The members of the cluster, as the first one that responds sees them."""
        return next(filter(None, (each.members() for each in self.machines)), [])

    def machine(self, role: str) -> Machine | None:
        """The machine that has a role in the cluster; null if none has."""
        names = [each["name"] for each in self.members() if each["role"] == role and each["state"] != "stopped"]
        return next((each for each in self.machines if each.name in names), None)

    def is_healthy(self) -> bool:
        """Whether there is a primary with two standbys, of which one is synchronous, in the eyes of each."""
        views = [sorted((each["role"], each["state"]) for each in machine.members()) for machine in self.machines]
        return all(view == HEALTHY for view in views)

    def wait_until_healthy(self) -> None:
        wait_until(self.is_healthy, MAX_WAIT)

    def patronictl(self, *arguments: str) -> None:
        program = "from patroni.ctl import ctl; ctl()"
        command = [sys.executable, "-c", program, "-c", str(self.machines[0].patroni_file), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_WAIT, check=False)
        assert done.returncode == 0, done


def create_database(site: Site) -> None:
    """The documented roles and database, with the schema."""
    statements = documented_file("sql", "create role plankeeper_owner").replace("...", PASSWORD).split(";\n")
    superuser = site.dsn.replace("//plankeeper", "//postgres").replace("/plankeeper?", "/postgres?")
    for statement in filter(None, statements):
        query(superuser, statement)
    owner = site.dsn.replace("//plankeeper", "//plankeeper_owner")
    migrated = run_program("migrate", PLANKEEPER_DATABASE_URL=site.dsn, PLANKEEPER_OWNER_DATABASE_URL=owner)
    assert migrated.returncode == 0, migrated.stderr


@contextmanager
def running_site() -> Generator[Site]:
    """Starts everything, and ends what it started whatever happens."""
    with temporary_folder() as folder, ExitStack() as stack:
        programs = Programs(folder)
        machines = [Machine(programs, folder, number) for number in range(3)]
        for machine in machines:
            stack.callback(machine.stop)
            machine.start()
        applications = [Application(programs, folder, number) for number in range(2)]
        for each in applications:
            stack.callback(end, each.haproxy)
        site = Site(machines, applications, stack.enter_context(Receiver()))
        site.wait_until_healthy()
        create_database(site)
        for each in applications:
            each.serve()
            stack.callback(each.server.stop)
            stack.callback(each.webhook_worker.end)
        yield site
        for each in applications:
            each.webhook_worker.stop()
            assert each.server.stop() == 0


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
