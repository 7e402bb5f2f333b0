"""A server under ten times its capacity rejects early, and accepted requests stay fast."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from support.folder import temporary_folder
from support.program import ServeProcess
from system.load.client import Connection, TimedResponse, closing, get_request, percentile

FEW_CONNECTIONS, MANY_CONNECTIONS = 8, 640  # connections that find the capacity, and that go beyond it
MAX_REQUESTS = 16  # requests that the worker takes at a time
MAX_CONNECTIONS = 600  # connections that it takes: some of the many are closed
OVERLOAD_FACTOR = 10


@dataclass
class Results:
    """The responses to the clients."""

    responses: list[TimedResponse] = field(default_factory=list[TimedResponse])
    closed: int = 0

    def with_status(self, status: int) -> list[TimedResponse]:
        return [each for each in self.responses if each.status == status]

    def latency_percentile(self, part: float) -> float:
        return percentile([each.seconds for each in self.with_status(200)], part)


@pytest.fixture
def serving(copy_sample_data: Callable[[Path], None]) -> Iterator[ServeProcess]:
    with temporary_folder() as folder:
        copy_sample_data(folder)
        settings = {
            "PLANKEEPER_MAX_CONCURRENT_REQUESTS": str(MAX_REQUESTS),
            "PLANKEEPER_MAX_CONNECTIONS": str(MAX_CONNECTIONS),
        }
        running = ServeProcess(folder, "--demo", workers=1, **settings)
        yield running
        assert running.stop() == 0


def list_request(serving: ServeProcess) -> bytes:
    """One that costs the server far more than the client: the whole of 400 participants."""
    return get_request(
        "/participants?limit=1000", serving.output_value("API key:"), serving.output_value("Plan manager:")
    )


async def run_client(url: str, request: bytes, start: float, every: float, until: float, seen: Results) -> None:
    """Send a request at an interval, or at once after a slower response; reconnects if the server closes."""
    due = start
    while time.time() < until:
        try:
            connection = await Connection.open(url)
        except OSError:
            seen.closed += 1
            await asyncio.sleep(0.5)
            continue
        async with closing([connection]):
            try:
                while time.time() < until:
                    await asyncio.sleep(max(0.0, due - time.time()))
                    seen.responses.append(await connection.send(request))
                    due = max(due + every, time.time())
            except (OSError, EOFError):
                seen.closed += 1
                await asyncio.sleep(0.5)


async def run_load(serving: ServeProcess, clients: int, seconds: float, each_second: float = 0) -> Results:
    """Clients with a common rate; without one, each sends its next request after the response."""
    seen, request, now = Results(), list_request(serving), time.time()
    every = clients / each_second if each_second else 0.0
    work = (
        run_client(serving.url, request, now + every * number / clients, every, now + seconds, seen)
        for number in range(clients)
    )
    # An answer that does not come at all is a failure, and not an endless test.
    await asyncio.wait_for(asyncio.gather(*work), seconds + 60)
    return seen


async def test_ten_times_the_capacity_is_rejected_early_and_accepted_requests_stay_fast(
    serving: ServeProcess, is_full_run: bool
) -> None:
    [worker] = serving.workers()
    rounds, seconds = (3, 20.0) if is_full_run else (1, 2.0)
    await run_load(serving, FEW_CONNECTIONS, 1)  # what is made once is made
    usual = await run_load(serving, FEW_CONNECTIONS, seconds / 2)
    capacity = len(usual.responses) / (seconds / 2)
    assert len(usual.with_status(200)) == len(usual.responses) > 0
    print_line(
        f"capacity {capacity:.0f}/s, p50 {usual.latency_percentile(0.5):.3f} s,"
        f" p99 {usual.latency_percentile(0.99):.3f} s with {FEW_CONNECTIONS} clients"
    )
    sizes = [worker.memory_info().rss]
    for _ in range(rounds):
        seen = await run_load(serving, MANY_CONNECTIONS, seconds, OVERLOAD_FACTOR * capacity)
        sizes.append(worker.memory_info().rss)
        check_results(seen, usual, seconds, capacity)
    print_line(f"memory of the worker: {', '.join(f'{size / 1e6:.0f}' for size in sizes)} MB")
    # The first overload fills buffers once; after it nothing grows.
    assert sizes[1] <= 1.6 * sizes[0]
    assert sizes[-1] <= 1.2 * sizes[1]
    after = await run_load(serving, FEW_CONNECTIONS, seconds / 2)
    print_line(f"afterwards {len(after.responses) / (seconds / 2):.0f}/s, p99 {after.latency_percentile(0.99):.3f} s")
    assert len(after.with_status(200)) == len(after.responses) > 0
    assert after.closed == 0
    assert after.latency_percentile(0.5) <= 4 * usual.latency_percentile(0.5)
    assert [each.pid for each in serving.workers()] == [worker.pid]
    assert httpx.get(f"{serving.url}/readyz").status_code == 200


def check_results(seen: Results, baseline: Results, seconds: float, capacity: float) -> None:
    accepted, rejected = (
        [each.seconds for each in seen.with_status(200)],
        [each.seconds for each in seen.with_status(503)],
    )
    sent, baseline_p99 = len(seen.responses), baseline.latency_percentile(0.99)
    print_line(
        f"{sent / seconds:.0f}/s asked ({sent / seconds / capacity:.1f} times the capacity):"
        f" {len(accepted) / seconds:.0f}/s accepted, p50 {seen.latency_percentile(0.5):.3f} s,"
        f" p99 {seen.latency_percentile(0.99):.3f} s;"
        f" {len(rejected) / seconds:.0f}/s refused, p99 {percentile(rejected, 0.99):.3f} s;"
        f" {seen.closed} connections closed"
    )
    # All that are connected, one after the other, would take so long: what is accepted takes nothing like it. As many
    # more as the worker takes at a time, as much longer may they take than usual, and a good deal more: the clients
    # and the rejections use the same cores.
    assert seen.latency_percentile(0.99) <= 0.5 * MAX_CONNECTIONS * seconds / len(accepted)
    assert seen.latency_percentile(0.99) <= 20 * MAX_REQUESTS / FEW_CONNECTIONS * baseline_p99
    assert sent >= OVERLOAD_FACTOR / 2 * capacity * seconds, "too few were asked to prove anything"
    assert len(accepted) + len(rejected) == sent
    assert {each.headers.get("retry-after") for each in seen.with_status(503)} == {"1"}
    assert seen.closed >= MANY_CONNECTIONS - MAX_CONNECTIONS
    assert len(accepted) >= 0.1 * capacity * seconds


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
