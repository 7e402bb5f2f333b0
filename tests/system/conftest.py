"""The order of the system tests, which several processes run file by file, and what several files use."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.cluster import SharedCluster
from support.program import ServeProcess
from support.rechecks import wait_for_rechecks

PROJECT = Path(__file__).parents[2]
# What takes minutes comes first, so that no process still works on it when the others have nothing left.
LONGEST = (
    "tests/system/clusters/test_citus.py",
    "tests/system/patroni/test_patroni.py",
    "tests/system/clients/test_generated_clients.py",
    "tests/browser/test_documentation_site.py",
    "tests/system/test_first_change.py",
    "tests/system/faults/test_kills.py",
    "tests/system/plans/test_plans.py",
    "tests/system/faults/test_keep_copy.py",
    "tests/system/proxies/test_rolling_restarts.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {PROJECT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda each: places.get(each.path, len(LONGEST)))


def _load_sample_data(folder: Path) -> None:
    """Load it, and let the server check what the claims and payments have queued: it changes some of the invoices."""
    serving = ServeProcess(folder, "--demo")
    with Cluster(folder) as cluster:
        wait_for_rechecks(cluster.dsn)
    assert serving.stop() == 0


def _migrate(folder: Path) -> None:
    assert ServeProcess(folder).stop() == 0


def _copier(source: Path) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        subprocess.run(["cp", "--archive", f"{source}/.", folder], check=True)

    return copy


@pytest.fixture(scope="session")
def copy_sample_data(cluster: SharedCluster) -> Callable[[Path], None]:
    """Copies into an empty data folder what the first `serve --demo` made of another one, with its key and its sign-in.

    The first start takes three times as long as one that finds its data.
    """
    return _copier(cluster.prepared_folder("sample", _load_sample_data))


@pytest.fixture(scope="session")
def copy_migrated_data(cluster: SharedCluster) -> Callable[[Path], None]:
    """Copies into an empty data folder what the first `serve` made of another one: a migrated database, and a key."""
    return _copier(cluster.prepared_folder("migrated", _migrate))
