"""A large database on each supported version of PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from uuid_utils.compat import uuid7

from support.cluster import SharedCluster, shared_cluster
from system.plans.crowded_database import prepare_crowded_database

# The programs of the oldest supported version, in Debian.
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(scope="session")
def postgres_15_cluster(cluster: SharedCluster) -> Iterator[SharedCluster]:
    """A cluster of PostgreSQL 15 for the whole run.

    It is opened after `cluster` in every process, and therefore closed before it: the process that owns a cluster waits
    for the others when it closes it, and two that waited for each other would wait forever.
    """
    if not POSTGRES_15.is_dir() and "CI" not in os.environ:
        pytest.skip(f"{POSTGRES_15} does not exist: install the package postgresql-15")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid7().hex
    with shared_cluster(f"{run}-15", POSTGRES_15) as shared:
        yield shared


# The short form fills and explains the largest database on one version. The smaller ones are always on both.
LARGE_VERSIONS = ["cluster", "postgres_15_cluster"] if os.environ.get("PLANKEEPER_SOAK") == "1" else ["cluster"]


@pytest.fixture(scope="module", params=LARGE_VERSIONS, ids={"cluster": "embedded", "postgres_15_cluster": "15"}.get)
def large_database(request: pytest.FixtureRequest) -> str:
    """A database with 100,000 participants, providers and invoices of one plan manager."""
    return prepare_crowded_database(request.getfixturevalue(request.param))
