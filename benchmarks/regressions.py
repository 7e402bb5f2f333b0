"""Compares the processor time of Plankeeper's requests with the bare handler's, and the ratios with recorded ones.

Both are measured in turns on one core, so a ratio depends little on the machine's speed and on its other work.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.bare_peer import BareHandler
from benchmarks.data import dataset
from benchmarks.load import CONNECTIONS
from benchmarks.markdown import markdown_table
from benchmarks.peers import HttpPeer, PeerFactory, prepare_peer
from benchmarks.plankeeper import Plankeeper
from benchmarks.scenarios import CREATE, CURSOR, GET, Scenario, WrongResponseError

BASELINE_FILE = Path(__file__).with_name("baseline.json")
MAX_GROWTH = 0.15
PARTICIPANTS = 2_000
ROUNDS = 15
ATTEMPTS = 3  # measurements that must all exceed the limit
# Requests of a round, for some tenths of a second of processor time. The shortest request comes last, because it varies
# most in the first half minute after the start.
REQUESTS = {CURSOR: 800, CREATE: 480, GET: 1_600}
_LOAD_SECONDS = 600
_IDLE_SECONDS = 5


@dataclass(frozen=True)
class Comparison:
    """Microseconds of processor time for each request in each round: Plankeeper's and the bare handler's."""

    scenario: Scenario
    rounds: list[tuple[float, float]]

    @property
    def plankeeper(self) -> float:
        return median(own for own, _ in self.rounds)

    @property
    def bare(self) -> float:
        return median(bare for _, bare in self.rounds)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios: in one round, the core is equally fast for both."""
        return median(own / bare for own, bare in self.rounds)


class Systems:
    """Plankeeper and the bare handler, running at the same time with one worker each."""

    def __init__(self, plankeeper: HttpPeer, bare: HttpPeer) -> None:
        self.plankeeper = plankeeper
        self.bare = bare
        self._sent = 0
        self._idle_shares = self._measure_idle_shares()

    def compare(self, scenario: Scenario, limit: float | None = None) -> Comparison:
        """Send both the same requests in turns. The first round only warms them up.

        With a limit, it ends once the ratios of more than half of all rounds are on one side of it: so is the median.
        """
        rounds: list[tuple[float, float]] = []
        with self._one_core():
            for number in range(ROUNDS + 1):
                peers = (self.plankeeper, self.bare) if number % 2 else (self.bare, self.plankeeper)
                times = {peer: self._measure(peer, scenario) for peer in peers}
                rounds.append((times[self.plankeeper], times[self.bare]))
                self._sent += REQUESTS[scenario]
                if limit is not None and is_decided(rounds[1:], limit):
                    break
        return Comparison(scenario, rounds[1:])

    @contextmanager
    def _one_core(self) -> Generator[None]:
        """Both systems run on one core and the client on another: a busy core costs both the same."""
        cores = sorted(os.sched_getaffinity(0))
        for pid in self.plankeeper.pids() | self.bare.pids():
            with suppress(FileNotFoundError, ProcessLookupError):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(thread.name), cores[-1:])
        os.sched_setaffinity(0, cores[:1])
        try:
            yield
        finally:
            os.sched_setaffinity(0, cores)

    def _measure(self, peer: HttpPeer, scenario: Scenario) -> float:
        rows, request, count = peer.sample_rows(scenario), peer.request(scenario), REQUESTS[scenario]
        numbers = range(self._sent, self._sent + count)
        messages = [request.render(rows[each % len(rows)], each).serialize(rows[0]).encode() for each in numbers]
        before, started = peer.processor_seconds(), time.monotonic()
        asyncio.run(send_requests(peer.port, messages, CONNECTIONS))
        used, seconds = peer.processor_seconds() - before, time.monotonic() - started
        return (used - self._idle_shares[peer] * seconds) / count * 1e6

    def _measure_idle_shares(self) -> dict[HttpPeer, float]:
        """The processor time per second without requests. On a busy machine, it would be more of each request."""
        before = {peer: peer.processor_seconds() for peer in (self.plankeeper, self.bare)}
        time.sleep(_IDLE_SECONDS)
        return {peer: (peer.processor_seconds() - seconds) / _IDLE_SECONDS for peer, seconds in before.items()}


def is_decided(rounds: list[tuple[float, float]], limit: float) -> bool:
    """Whether the median of all rounds is on the same side of a limit, whatever the remaining ones measure."""
    above = sum(own / bare > limit for own, bare in rounds)
    return max(above, len(rounds) - above) > ROUNDS // 2


@contextmanager
def running_systems(work: Path, plankeeper: PeerFactory = Plankeeper) -> Generator[Systems]:
    """Load both systems, unless `work` contains them, and run them."""
    data = dataset(work, PARTICIPANTS)
    peers = [prepare_peer(factory, work, data, _LOAD_SECONDS, fresh=False)[0] for factory in (plankeeper, BareHandler)]
    own, bare = (each for each in peers if isinstance(each, HttpPeer))
    own.workers = bare.workers = 1
    with own.running(writes=True), bare.running(writes=True):
        for peer in (own, bare):
            for scenario in REQUESTS:
                peer.probe(scenario)
        yield Systems(own, bare)


def find_regressions(
    systems: Systems, recorded: Mapping[str, float], scenarios: Iterable[Scenario] = tuple(REQUESTS)
) -> list[Comparison]:
    """The scenarios whose ratio has grown by more than MAX_GROWTH in each of several measurements."""
    exceeding: list[Comparison] = []
    for scenario in scenarios:
        limit = recorded[scenario.name] * (1 + MAX_GROWTH)
        for _ in range(ATTEMPTS):
            comparison = systems.compare(scenario, limit)
            sys.stdout.write(f"{describe(comparison, recorded)}\n")
            if comparison.ratio <= limit:
                break
        else:
            exceeding.append(comparison)
    return exceeding


def describe(comparison: Comparison, recorded: Mapping[str, float]) -> str:
    before = recorded[comparison.scenario.name]
    return (
        f"{comparison.scenario.title}: {comparison.plankeeper:,.0f} µs of processor time, {comparison.ratio:.2f} times"
        f" the bare handler's {comparison.bare:,.0f} µs; recorded: {before:.2f} ({comparison.ratio / before - 1:+.0%})"
    )


def read_baseline() -> dict[str, float]:
    """The recorded ratio of each scenario."""
    return json.loads(BASELINE_FILE.read_text())


def record_baseline(work: Path) -> None:
    """Measure each scenario several times, and write the median ratios."""
    with running_systems(work) as systems:
        comparisons = [[systems.compare(scenario) for _ in range(ATTEMPTS)] for scenario in REQUESTS]
    ratios = {runs[0].scenario.name: round(median(each.ratio for each in runs), 2) for runs in comparisons}
    BASELINE_FILE.write_text(json.dumps(ratios, indent=2) + "\n")
    header = ["processor time, µs", "Plankeeper", "bare handler", "ratio"]
    rows = [
        [each.scenario.title, f"{each.plankeeper:,.0f}", f"{each.bare:,.0f}", f"{each.ratio:.2f}"]
        for runs in comparisons
        for each in runs
    ]
    print("\n".join(markdown_table([header, *rows])))


async def send_requests(port: int, requests: Iterable[bytes], connections: int) -> None:
    """Send each request as soon as a connection is free. Raises WrongResponseError for a status other than 2xx."""
    remaining = iter(requests)
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(_send_over_connection(port, remaining))


async def _send_over_connection(port: int, requests: Iterator[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for request in requests:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            body = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            if head.split()[1][0] != "2":
                raise WrongResponseError(f"{head.splitlines()[0]}: {body.decode()}")
    finally:
        writer.transport.abort()
