"""Debian's Prometheus with our rules: an import raises no alert, and events that nobody sequences raise one."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest

from plankeeper.database.client import Database
from plankeeper.events import order_store
from support.client import Client
from support.folder import temporary_folder
from support.pages import PROJECT
from support.ports import free_port
from support.program import ServeProcess, environment, run_program
from support.server import wait_until

ALERTS = PROJECT / "packaging/prometheus/alerts.yml"
DELAYED = "PlankeeperEventsDelayed"
RULE = "sequencing_lag_seconds) > 30\n        for: 1m"
CONFIGURATION = """
global: {{scrape_interval: {interval}s, evaluation_interval: {interval}s}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: plankeeper
    static_configs: [{{targets: ["{server}"]}}]
"""


class Size(NamedTuple):
    """How long a run takes. A short one has a rule that fires sooner."""

    rule: str
    interval: int  # seconds between two scrapes
    rows: int  # of each import
    seconds: float  # of importing


FULL = Size(RULE, 15, 1_000_000, 600)
SHORT = Size("sequencing_lag_seconds) > 3\n        for: 1s", 1, 10_000, 5)
SIZE = FULL if os.environ.get("PLANKEEPER_SOAK") == "1" else SHORT


class Prometheus:
    """A Prometheus that reads the metrics of one server, and evaluates the rules."""

    def __init__(self, folder: Path, server: str) -> None:
        rules = ALERTS.read_text()
        assert RULE in rules
        (folder / "alerts.yml").write_text(rules.replace(RULE, SIZE.rule))
        configuration = folder / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(interval=SIZE.interval, server=server))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [
                "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}", "--log.level=error",
            ],
        )  # fmt: skip
        wait_until(self.has_read)

    def query(self, expression: str) -> list[Any]:
        response = httpx.get(f"{self.url}/api/v1/query", params={"query": expression})
        return response.json()["data"]["result"]

    def has_read(self) -> bool:
        try:
            is_ready = httpx.get(f"{self.url}/-/ready").is_success  # until then, queries return 503 without JSON
            return is_ready and bool(self.query('up{job="plankeeper"} == 1'))
        except httpx.TransportError:
            return False

    def alerts_since(self, started: float) -> set[str]:
        """The alerts that fired at any time."""
        seconds = int(time.monotonic() - started) + 1
        return {
            each["metric"]["alertname"]
            for each in self.query(f'max_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])')
        }

    def is_firing(self) -> bool:
        return bool(self.query(f'ALERTS{{alertstate="firing", alertname="{DELAYED}"}}'))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def serving(dsn: str) -> Iterator[ServeProcess]:
    with temporary_folder() as folder:
        running = ServeProcess(folder, PLANKEEPER_DATABASE_URL=dsn)
        yield running
        assert running.stop() == 0


@pytest.fixture
def prometheus(serving: ServeProcess) -> Iterator[Prometheus]:
    if not shutil.which("prometheus") and not os.environ.get("CI"):
        pytest.skip("no prometheus: apt-get install prometheus")
    with temporary_folder() as folder:
        running = Prometheus(folder, serving.url.removeprefix("http://"))
        yield running
        running.stop()


async def test_an_import_raises_no_alert_and_events_without_a_sequencer_do(
    dsn: str, serving: ServeProcess, prometheus: Prometheus, tmp_path: Path
) -> None:
    def command(*arguments: str) -> str:
        return run_program(*arguments, PLANKEEPER_DATABASE_URL=dsn).stdout.split()[0]

    plan_manager = command("plan-managers", "create", "--name", "Monitored")
    key = command("keys", "create", "--name", "test", "--plan-manager", plan_manager)
    api, started = Client(serving.url, key, UUID(plan_manager)), time.monotonic()
    imported = import_participants(tmp_path, plan_manager, dsn)
    wait_until(lambda: len(api.get("/events", limit=1).json()["data"]) == 1)
    fired = prometheus.alerts_since(started)
    sys.stdout.write(
        f"{imported:,} participants imported in {time.monotonic() - started:.0f} s, alerts: {sorted(fired)},"
        f" greatest lag {lag(prometheus, started)} s\n"
    )
    assert DELAYED not in fired
    async with Database(dsn, pool_size=1).open() as db, db.transaction() as tx:
        # What a sequencer holds while it serves a plan manager, as it may still do: from now on none can.
        async with asyncio.timeout(60):
            while not await order_store.try_lock(tx, UUID(plan_manager)):
                await asyncio.sleep(0.05)
        api.create("/note-types", {"note_type": "Waiting"})
        waiting = time.monotonic()
        wait_until(prometheus.is_firing, 240)
        sys.stdout.write(f"without a sequencer, {DELAYED} fired after {time.monotonic() - waiting:.0f} s\n")
    wait_until(lambda: not prometheus.is_firing(), 120)
    api.http.close()


def import_participants(folder: Path, plan_manager: str, dsn: str) -> int:
    """Import files of new participants until the time is over. Returns how many were imported."""
    file, count, until = folder / "participants.ndjson", 0, time.monotonic() + SIZE.seconds
    with file.open("w") as out:
        out.writelines(f'{{"first_name": "Robin {number}"}}\n' for number in range(SIZE.rows))
    command = [sys.executable, "-m", "plankeeper", "import", "participants", file, "--plan-manager", plan_manager]
    while time.monotonic() < until:
        subprocess.run(command, env=environment({"PLANKEEPER_DATABASE_URL": dsn}), check=True, capture_output=True)
        count += SIZE.rows
    return count


def lag(prometheus: Prometheus, started: float) -> float:
    seconds = int(time.monotonic() - started) + 1
    [found] = prometheus.query(f"max(max_over_time(plankeeper_event_sequencing_lag_seconds[{seconds}s]))")
    return round(float(found["value"][1]), 1)
