"""The primary is killed under load and its standby promoted: nothing acknowledged is lost, and writes go on."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.folder import temporary_folder
from support.program import ServeProcess, run_program
from support.server import wait_until
from system.faults.access import create_credentials
from system.faults.accounts import assert_consistent
from system.faults.conftest import is_full_run
from system.faults.load import Load
from system.faults.replicas import ReplicaPair

MAX_RECOVERY_SECONDS = 5.0  # seconds from the promotion to the first write


@pytest.fixture
def replica_pairs() -> Iterator[list[ReplicaPair]]:
    started: list[ReplicaPair] = []
    yield started
    for each in started:
        each.stop()


def test_a_failover_loses_no_acknowledged_write_and_writes_continue(
    replica_pairs: list[ReplicaPair], failovers: int
) -> None:
    for number in range(failovers):
        with temporary_folder() as folder:
            pair = ReplicaPair(folder)
            replica_pairs.append(pair)
            fail_over(pair, folder, number)
            replica_pairs.pop().stop()


def fail_over(pair: ReplicaPair, folder: Path, number: int) -> None:
    migrated = run_program("migrate", PLANKEEPER_DATABASE_URL=pair.dsn)
    assert migrated.returncode == 0, migrated.stderr
    serving = ServeProcess(folder, workers=2, PLANKEEPER_DATABASE_URL=pair.dsn, PLANKEEPER_RATE_LIMIT="10000000/minute")
    load = Load(lambda: serving.url, create_credentials(pair.dsn), seed=number)
    wait_until(lambda: load.acknowledged > 100 or load.errors)
    disconnected_at = time.monotonic()
    pair.disconnect()  # what were acknowledged now would be lost
    time.sleep(0.5)
    pair.primary.kill()
    time.sleep(0.5)  # at least as long as a failover manager takes to decide
    pair.standby.promote()
    promoted = time.monotonic()
    wait_until(lambda: load.seconds_to_next_write(promoted) or load.errors)
    wait_until(lambda before=load.acknowledged: load.acknowledged > before + 100 or load.errors)
    assert load.errors == []
    gap = load.seconds_to_next_write(promoted)
    assert gap is not None
    reported = f"first write {gap:.2f} s after the promotion, {load.longest_gap(disconnected_at):.2f} s without writes"
    assert_consistent(load, pair.standby.dsn(), f"failover {number + 1}: {reported}")
    assert serving.stop() == 0
    # Without other tests beside it, as in the full run.
    assert gap < MAX_RECOVERY_SECONDS or not is_full_run()
