"""kill -9 at random moments under mixed load: nothing acknowledged is lost, nothing is done twice."""

import random
import time
from collections import Counter
from pathlib import Path

import psutil

from faults.access import Access, new_access
from faults.accounts import settle
from faults.load import Load
from plankeeper.embedded_postgres.cluster import Cluster
from support.program import Serving
from support.server import wait_until

# A round kills one of ours, then one of PostgreSQL's; two rounds have met every kind but the last.
OURS = ("worker", "server", "everything")
POSTGRESQLS = ("postmaster", "backend")
MORE = 30  # writes that must be acknowledged before the next kill


class Service:
    """`plankeeper serve` with a database of its own: killed in part or whole, and started again if it has to be."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self.serving = Serving(folder, workers=2, PLANKEEPER_RATE_LIMIT="10000000/minute")

    @property
    def address(self) -> str:
        return self.serving.url

    @property
    def dsn(self) -> str:
        shared = Cluster(self._folder)
        assert not shared.ensure()
        return shared.dsn

    def access(self) -> Access:
        return new_access(self.dsn)

    def kill(self, kind: str) -> None:
        family = self.serving.family()
        if kind == "worker":
            self._chance.choice(self.serving.workers()).kill()
        elif kind == "postmaster":
            self.serving.postmaster().kill()
        elif kind == "backend":
            self._chance.choice(backends(self.serving.postmaster())).kill()
        else:
            self.serving.process.kill()
            for each in family if kind == "everything" else ():
                if each.is_running():
                    each.kill()
            _, alive = psutil.wait_procs(family, timeout=30)
            assert not alive, alive
            self.serving.ended()
            self.serving = Serving(self._folder, workers=2, PLANKEEPER_RATE_LIMIT="10000000/minute")


def backends(postmaster: psutil.Process) -> list[psutil.Process]:
    """PostgreSQL's processes that serve a connection of ours."""
    return [each for each in postmaster.children() if " plankeeper " in " ".join(each.cmdline())]


def test_nothing_acknowledged_is_lost_or_done_twice_whatever_is_killed(folder: Path, rounds: int) -> None:
    chance = random.Random(4)
    service = Service(folder, chance)
    load = Load(lambda: service.address, service.access())
    wait_until(lambda: load.acknowledged > MORE or load.faults, 30)
    kills: Counter[str] = Counter()
    gaps: dict[str, float] = {}
    for number in range(rounds):
        for kind in (OURS[number % len(OURS)], POSTGRESQLS[number % len(POSTGRESQLS)]):
            time.sleep(chance.uniform(0.1, 1))
            before, moment = load.acknowledged, time.monotonic()
            service.kill(kind)
            wait_until(lambda before=before: load.acknowledged > before + MORE or load.faults, 60)
            assert load.faults == [], (kind, load.faults)
            wait_until(lambda: len(service.serving.workers()) == 2, 30)
            kills[kind] += 1
            gaps[kind] = max(load.longest_silence(moment), gaps.get(kind, 0))
    told = ", ".join(f"{count} x {kind} (longest silence {gaps[kind]:.1f} s)" for kind, count in kills.items())
    settle(load, service.dsn, f"{rounds} rounds, killed: {told}")
    assert service.serving.stop() == 0
