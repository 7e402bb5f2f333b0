"""The primary is killed under load and its standby promoted: nothing acknowledged is lost, and writes go on."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.access import new_access
from faults.accounts import settle
from faults.load import Load
from faults.replicas import Pair
from support.folder import open_folder
from support.program import Serving, plankeeper
from support.server import wait_until

BACK = 5.0  # seconds from the promotion to the first write


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    started: list[Pair] = []
    yield started
    for each in started:
        each.stop()


def test_after_a_failover_nothing_acknowledged_is_lost_and_writes_go_on(pairs: list[Pair], failovers: int) -> None:
    for number in range(failovers):
        with open_folder() as folder:
            pair = Pair(folder)
            pairs.append(pair)
            fail_over(pair, folder, number)
            pairs.pop().stop()


def fail_over(pair: Pair, folder: Path, number: int) -> None:
    migrated = plankeeper("migrate", PLANKEEPER_DATABASE_URL=pair.dsn)
    assert migrated.returncode == 0, migrated.stderr
    serving = Serving(folder, workers=2, PLANKEEPER_DATABASE_URL=pair.dsn, PLANKEEPER_RATE_LIMIT="10000000/minute")
    load = Load(lambda: serving.url, new_access(pair.dsn), seed=number)
    wait_until(lambda: load.acknowledged > 100 or load.faults, 30)
    parted = time.monotonic()
    pair.part()  # what were acknowledged now would be lost
    time.sleep(0.5)
    pair.primary.kill()
    time.sleep(0.5)  # as long at least as it takes whoever decides on it
    pair.standby.promote()
    promoted = time.monotonic()
    wait_until(lambda: load.first_since(promoted) or load.faults, 30)
    wait_until(lambda before=load.acknowledged: load.acknowledged > before + 100 or load.faults, 30)
    assert load.faults == []
    gap = load.first_since(promoted)
    assert gap is not None
    told = f"first write {gap:.2f} s after the promotion, {load.longest_silence(parted):.2f} s without writes"
    settle(load, pair.standby.dsn(), f"failover {number + 1}: {told}")
    assert serving.stop() == 0
    assert gap < BACK
