"""`/metrics` of `plankeeper serve`: complete from the start, of all processes, with the values of the supervisor."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.cluster import SharedCluster
from support.outage import stoppable_database
from support.pages import PROJECT
from support.program import ServeProcess
from support.server import wait_until

SAMPLE = re.compile(r"^(plankeeper_\w+(?:\{.*\})?) (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def serving(cluster: SharedCluster) -> Iterator[ServeProcess]:
    started = ServeProcess(
        Path(), workers=2, PLANKEEPER_DATABASE_URL=cluster.new_database(), PLANKEEPER_WEBHOOK_WORKER="on"
    )
    yield started
    assert started.stop() == 0


def samples(serving: ServeProcess) -> dict[str, float]:
    text = httpx.get(f"{serving.url}/metrics", timeout=60).text
    return {name: float(value) for name, value in SAMPLE.findall(text)}


def test_every_counter_begins_with_0(serving: ServeProcess) -> None:
    """Also those of the rules: Prometheus would not notice the first error of a counter that begins with 1."""
    found = samples(serving)
    counters = {name: value for name, value in found.items() if re.match(r"\w+_total\b", name)}
    busy = {name for name, value in counters.items() if value}
    assert {name.partition("{")[0] for name in busy} <= {"plankeeper_process_cpu_seconds_total"}
    names = {name.partition("{")[0] for name in counters}
    page = (PROJECT / "docs/operations/monitoring.md").read_text()
    assert names == set(re.findall(r"^\| `(plankeeper_\w+_total)`", page, re.MULTILINE))
    routes = 'plankeeper_http_requests_total{method="POST",route="/api/public/v1/participants",status="%s"}'
    assert [counters[routes % status] for status in (200, 500, 503)] == [0, 0, 0]
    assert counters['plankeeper_http_requests_total{method="GET",route="/console/participants",status="503"}'] == 0


def test_the_processes_report_what_they_use(serving: ServeProcess) -> None:
    def is_complete() -> bool:
        found = samples(serving)
        kinds = [
            found[f'plankeeper_process_{name}{{process="{kind}"}}']
            for kind in ("api", "webhook", "supervisor")
            for name in ("resident_memory_bytes", "open_fds", "max_fds", "cpu_seconds_total")
        ]
        return all(kinds) and found["plankeeper_database_up"] == 1

    def is_of_all_workers() -> bool:
        workers = [each for each in serving.workers() if each.nice() == psutil.Process().nice()]
        memory = sum(each.memory_info().rss for each in workers)
        reported = samples(serving)['plankeeper_process_resident_memory_bytes{process="api"}']
        return reported == pytest.approx(memory, rel=0.25)

    wait_until(is_complete)
    wait_until(is_of_all_workers)  # each reports for itself


def test_killed_processes_are_counted_when_they_are_replaced(serving: ServeProcess) -> None:
    everybody = {"api": 2, "webhook": 1}

    def running(found: dict[str, float]) -> dict[str, float]:
        return {kind: found[f'plankeeper_workers{{process="{kind}"}}'] for kind in everybody}

    wait_until(lambda: running(samples(serving)) == everybody)
    for process in serving.workers():
        process.send_signal(signal.SIGKILL)

    def is_replaced() -> bool:
        try:
            found = samples(serving)
        except httpx.TransportError:
            return False
        restarts = {kind: found[f'plankeeper_worker_restarts_total{{process="{kind}"}}'] for kind in everybody}
        return restarts == everybody == running(found)

    wait_until(is_replaced)


def test_an_unreachable_database_is_reported_until_it_is_back(cluster: SharedCluster) -> None:
    with stoppable_database(cluster) as database:
        serving = ServeProcess(Path(), PLANKEEPER_DATABASE_URL=database.dsn)
        try:
            for change, expected in ((None, 1), (database.stop, 0), (database.start, 1)):
                if change:
                    change()
                wait_until(lambda value=expected: samples(serving)["plankeeper_database_up"] == value)
        finally:
            assert serving.stop() == 0
