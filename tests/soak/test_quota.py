"""A quota holds over four workers of two servers: nearly all of it is used, never more, and clients are told the truth.

Each answer is attributed to a window by what it says itself: the time at which it was sent for, plus its `t`, the
seconds that its worker saw left, is the end of its window, a whole minute. The client would have to be half a minute
late to put an answer into another window.
"""

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import NamedTuple

import psutil
import pytest

from plankeeper.embedded_postgres.cluster import Cluster
from soak.load import Answer, Connection, closing, get, new_key, percentile
from support.folder import open_folder
from support.program import Serving

WINDOW = 60
OVER = 3  # times the quota
BURST = 5  # seconds in which the short run sends what the long one sends in a minute
RATE_LIMIT = re.compile(r'"default";r=(\d+);t=(\d+)')


class Told(NamedTuple):
    """An answer, and what it says of the quota."""

    answer: Answer
    accepted: bool
    left: int
    seconds: int

    @classmethod
    def by(cls, answer: Answer, quota: int) -> "Told":
        assert answer.status in (200, 429), answer
        assert answer.headers["ratelimit-policy"] == f'"default";q={quota};w={WINDOW}'
        match = RATE_LIMIT.fullmatch(answer.headers["ratelimit"])
        assert match, answer
        return cls(answer, answer.status == 200, int(match[1]), int(match[2]))

    @property
    def window(self) -> int:
        """The minute that it counts in, by its end."""
        return round((self.answer.sent + self.seconds - 0.5) / WINDOW)


@pytest.fixture
def servers(cluster: Cluster) -> Iterator[list[Serving]]:
    """Two servers of two workers each, over one database."""
    with open_folder() as folder:
        settings = {"PLANKEEPER_DATABASE_URL": cluster.dsn, "PLANKEEPER_RATE_LIMIT": "600/minute"}
        running = [Serving(folder, workers=2, **settings) for _ in range(2)]
        yield running
        assert [each.stop() for each in running] == [0, 0]


async def connected(serving: Serving) -> list[Connection]:
    """Connections to a server of which each worker has at least two."""
    made: list[Connection] = []
    workers = serving.workers()
    for _ in range(50):
        made += [await Connection.to(serving.url) for _ in range(4)]
        ours = {each.port for each in made}
        shares = [_held(worker, ours) for worker in workers]
        if len(workers) == 2 and min(shares) >= 2:
            return made
    for each in made:
        each.close()
    raise AssertionError(f"of {len(made)} connections the workers have {shares}")


def _held(worker: psutil.Process, ports: set[int]) -> int:
    return sum(bool(each.raddr) and each.raddr.port in ports for each in worker.net_connections("tcp"))


async def paced(connection: Connection, request: bytes, every: float, until: float) -> list[Answer]:
    """Ask at a pace; who falls behind makes up for it at once."""
    answers: list[Answer] = []
    due = time.time()
    while due < until:
        await asyncio.sleep(max(0.0, due - time.time()))
        answers.append(await connection.ask(request))
        due += every
    return answers


async def driven(servers: list[Serving], dsn: str, quota: int, pace: float, until: float) -> list[Told]:
    """What a key of this quota is told while it is used at `pace` requests a second on all workers."""
    plan_manager_id, key = await new_key(dsn, quota)
    request = get("/note-types?limit=1", key, plan_manager_id)
    async with AsyncExitStack() as stack:
        connections: list[Connection] = []
        for serving in servers:
            made = await connected(serving)
            await stack.enter_async_context(closing(made))
            connections += made
        every = len(connections) / pace
        found = await asyncio.gather(*(paced(each, request, every, until) for each in connections))
    return sorted((Told.by(answer, quota) for each in found for answer in each), key=lambda told: told.answer.sent)


def staleness(told: list[Told], quota: int) -> list[float]:
    """How old, in seconds, the figure of each accepted answer of a window is at least.

    `r` says that so many had been accepted. The moment from which that was too few is when the answer to one more was
    here. And it never says more than had been sent for by then.
    """
    accepted = [each for each in told if each.accepted]
    here = sorted(each.answer.received for each in accepted)
    sent = sorted(each.answer.sent for each in accepted)
    found: list[float] = []
    for each in accepted:
        used = quota - each.left
        assert 0 < used <= len(accepted)
        assert sent[used - 1] <= each.answer.received, "more is said to be used than was asked for"
        found.append(max(0.0, each.answer.sent - here[used]) if used < len(here) else 0.0)
    return found


def check_window(number: int, told: list[Told], quota: int, asked_least: float) -> None:
    accepted, refused = [each for each in told if each.accepted], [each for each in told if not each.accepted]
    old = staleness(told, quota)
    first = min((each.answer.sent for each in refused), default=0.0)
    idle = quota - sum(each.answer.received <= first for each in accepted)
    sys.stdout.write(
        f"quota {quota}, window {number}: {len(told)} sent, {len(accepted)} accepted ({len(accepted) / quota:.1%});"
        f" RateLimit old by {percentile(old, 0.99):.2f} s (p99), {max(old):.2f} s (most);"
        f" left when first refused: {idle}\n"
    )
    assert len(told) >= asked_least * quota, "the client was too slow to prove anything"
    assert 0.95 * quota <= len(accepted) <= quota
    # What a worker used is reported within half a second, and heard of within another. A machine that is busy
    # with other things may hold up a few.
    assert percentile(old, 0.95) <= 1
    for each in refused:
        assert each.left == 0
        assert "retry-after" in each.answer.headers
        assert int(each.answer.headers["retry-after"]) == max(1, each.seconds)
    check_ends(told)
    assert not any("retry-after" in each.answer.headers for each in accepted)


def check_ends(told: list[Told]) -> None:
    """Who waits for the seconds that it is told comes in the next minute, and at most a second too late.

    The machine's clock is the database's. A worker that was held up tells of an earlier moment.
    """
    for each in told:
        end = each.window * WINDOW
        assert each.answer.received + each.seconds >= end - 0.1
        assert each.answer.sent + each.seconds <= end + 1.1


async def whole_minute(seconds: float) -> None:
    """Wait until this minute has so many seconds left."""
    left = WINDOW - time.time() % WINDOW
    if left < seconds:
        await asyncio.sleep(left + 0.2)


async def test_a_key_at_three_times_its_quota_gets_it_and_no_more(
    cluster: Cluster, servers: list[Serving], full: bool
) -> None:
    if full:
        # From a little before a minute's end to a little after the third whole one.
        first = int(time.time() // WINDOW) + (1 if time.time() % WINDOW < WINDOW - 5 else 2)
        await asyncio.sleep(max(0.0, first * WINDOW - 3 - time.time()))
        until = (first + 3) * WINDOW + 2.0
        quotas = (600, 6000)
        told = await asyncio.gather(
            *(driven(servers, cluster.dsn, quota, OVER * quota / WINDOW, until) for quota in quotas)
        )
        for quota, each in zip(quotas, told, strict=True):
            for number in (1, 2, 3):
                window = [one for one in each if one.window == first + number]
                check_window(number, window, quota, OVER * 0.9)
    else:
        await whole_minute(BURST * 2)
        # It begins when the servers have connections, and ends by the clock.
        told = [await driven(servers, cluster.dsn, 600, OVER * 600 / BURST, time.time() + BURST + 1)]
        assert len({one.window for one in told[0]}) == 1
        check_window(1, told[0], 600, OVER * 0.9)
