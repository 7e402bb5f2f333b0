"""A server that is asked for ten times what it can do: it refuses early, and what it accepts stays quick."""

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from soak.load import Answer, Connection, closing, get, percentile
from support.folder import open_folder
from support.program import Serving

FEW, MANY = 8, 640  # connections that find the capacity, and that go beyond it
INSIDE = 16  # requests that the worker takes at a time
HELD = 600  # connections that it takes: some of the many are closed
TIMES = 10


@dataclass
class Seen:
    """What clients saw."""

    answers: list[Answer] = field(default_factory=list[Answer])
    closed: int = 0

    def of(self, status: int) -> list[Answer]:
        return [each for each in self.answers if each.status == status]

    def p(self, part: float) -> float:
        return percentile([each.seconds for each in self.of(200)], part)


@pytest.fixture
def serving() -> Iterator[Serving]:
    with open_folder() as folder:
        settings = {"PLANKEEPER_MAX_REQUESTS": str(INSIDE), "PLANKEEPER_MAX_CONNECTIONS": str(HELD)}
        running = Serving(folder, "--demo", workers=1, **settings)
        yield running
        assert running.stop() == 0


def the_request(serving: Serving) -> bytes:
    """One that costs the server far more than the client: the whole of 400 participants."""
    return get("/participants?limit=1000", serving.said("API key:"), serving.said("Plan manager:"))


async def client(url: str, request: bytes, start: float, every: float, until: float, seen: Seen) -> None:
    """Ask every so many seconds, or at once where an answer took longer; who is closed on comes again."""
    due = start
    while time.time() < until:
        try:
            connection = await Connection.to(url)
        except OSError:
            seen.closed += 1
            await asyncio.sleep(0.5)
            continue
        async with closing([connection]):
            try:
                while time.time() < until:
                    await asyncio.sleep(max(0.0, due - time.time()))
                    seen.answers.append(await connection.ask(request))
                    due = max(due + every, time.time())
            except (OSError, EOFError):
                seen.closed += 1
                await asyncio.sleep(0.5)


async def load(serving: Serving, clients: int, seconds: float, each_second: float = 0) -> Seen:
    """So many clients, who together ask so often; or as often as they are answered."""
    seen, request, now = Seen(), the_request(serving), time.time()
    every = clients / each_second if each_second else 0.0
    work = (
        client(serving.url, request, now + every * number / clients, every, now + seconds, seen)
        for number in range(clients)
    )
    # An answer that does not come at all is a failure, and not an endless test.
    await asyncio.wait_for(asyncio.gather(*work), seconds + 60)
    return seen


async def test_ten_times_the_capacity_is_refused_early_and_what_is_accepted_stays_quick(
    serving: Serving, full: bool
) -> None:
    [worker] = serving.workers()
    rounds, seconds = (3, 20.0) if full else (1, 2.0)
    await load(serving, FEW, 1)  # what is made once is made
    usual = await load(serving, FEW, seconds / 2)
    capacity = len(usual.answers) / (seconds / 2)
    assert len(usual.of(200)) == len(usual.answers) > 0
    told(f"capacity {capacity:.0f}/s, p50 {usual.p(0.5):.3f} s, p99 {usual.p(0.99):.3f} s with {FEW} clients")
    sizes = [worker.memory_info().rss]
    for _ in range(rounds):
        seen = await load(serving, MANY, seconds, TIMES * capacity)
        sizes.append(worker.memory_info().rss)
        check(seen, usual, seconds, capacity)
    told(f"memory of the worker: {', '.join(f'{size / 1e6:.0f}' for size in sizes)} MB")
    # The first overload fills buffers once; after it nothing grows.
    assert sizes[1] <= 1.6 * sizes[0]
    assert sizes[-1] <= 1.2 * sizes[1]
    after = await load(serving, FEW, seconds / 2)
    told(f"afterwards {len(after.answers) / (seconds / 2):.0f}/s, p99 {after.p(0.99):.3f} s")
    assert len(after.of(200)) == len(after.answers) > 0
    assert after.closed == 0
    assert after.p(0.5) <= 4 * usual.p(0.5)
    assert [each.pid for each in serving.workers()] == [worker.pid]
    assert httpx.get(f"{serving.url}/readyz").status_code == 200


def check(seen: Seen, usual: Seen, seconds: float, capacity: float) -> None:
    accepted, refused = [each.seconds for each in seen.of(200)], [each.seconds for each in seen.of(503)]
    asked, quick = len(seen.answers), usual.p(0.99)
    told(
        f"{asked / seconds:.0f}/s asked ({asked / seconds / capacity:.1f} times the capacity):"
        f" {len(accepted) / seconds:.0f}/s accepted, p50 {seen.p(0.5):.3f} s, p99 {seen.p(0.99):.3f} s;"
        f" {len(refused) / seconds:.0f}/s refused, p99 {percentile(refused, 0.99):.3f} s;"
        f" {seen.closed} connections closed"
    )
    # All that are connected, one after the other, would take so long: what is accepted takes nothing like it. As many
    # more as the worker takes at a time, as much longer may they take than usual, and a good deal more: the clients
    # and the refusals want the same cores.
    assert seen.p(0.99) <= 0.5 * HELD * seconds / len(accepted)
    assert seen.p(0.99) <= 20 * INSIDE / FEW * quick
    assert asked >= TIMES / 2 * capacity * seconds, "too few were asked to prove anything"
    assert len(accepted) + len(refused) == asked
    assert {each.headers.get("retry-after") for each in seen.of(503)} == {"1"}
    assert seen.closed >= MANY - HELD
    assert len(accepted) >= 0.1 * capacity * seconds


def told(line: str) -> None:
    sys.stdout.write(f"{line}\n")
