"""Endpoints, and no secrets of another test: all that a database has are counted, and a worker sends for all."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plankeeper.core.encryption.cipher import SecretKey, create_key_file
from support.client import Client
from support.cluster import SharedCluster
from support.receiver import Receiver
from support.server import RunningServer

TABLES = (
    "webhook_endpoints", "idempotency_records", "single_sign_on_providers", "payment_lines", "payments", "payment_runs",
    "bank_details",
)  # fmt: skip
DELETE_SECRETS = ";".join(
    [
        *(f"delete from {table}" for table in TABLES),
        "update accounts set totp_secret = null where totp_secret is not null",
        "update office_settings set bank_account = null where bank_account is not null",
    ]
)


@pytest.fixture(autouse=True)
def no_leftover_secrets(server: RunningServer) -> Iterator[None]:
    server.execute_as_owner(DELETE_SECRETS)
    yield
    server.execute_as_owner(DELETE_SECRETS)


@pytest.fixture
def new_endpoint(api: Client, receiver: Receiver) -> Callable[[], dict[str, Any]]:
    """Create an endpoint for events of note types, and return it with its secret."""
    return lambda: api.create("/webhook-endpoints", {"url": receiver.url, "event_types": ["note_type.*"]})


@pytest.fixture
def new_key_file(tmp_path: Path) -> Callable[[], tuple[Path, SecretKey]]:
    """Makes a key file with one key."""

    def make() -> tuple[Path, SecretKey]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.keys"
        return path, create_key_file(path)

    return make


@pytest.fixture(scope="module")
def server_without_key(server: RunningServer, cluster: SharedCluster) -> Iterator[RunningServer]:
    """Another server on the same database, without a key file."""
    running = RunningServer(
        cluster.dsn, secret_key_file=None, webhook_allowed_networks=server.settings.webhook_allowed_networks
    ).start()
    yield running
    running.stop()
