"""Endpoints, and none left behind by another test."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.client import Client
from support.receiver import Receiver
from support.webhooks import NewEndpoint


@pytest.fixture(autouse=True)
def no_leftover_endpoints(request: pytest.FixtureRequest) -> Iterator[None]:
    """A worker sends for all plan managers: what other tests have left would be sent in this one."""
    server: Any = request.getfixturevalue("server") if "server" in request.fixturenames else None
    if server:
        server.run(server.db.execute("delete from webhook_endpoints"))
    yield
    if server:
        server.run(server.db.execute("delete from webhook_endpoints"))


@pytest.fixture
def new_endpoint(api: Client, receiver: Receiver) -> NewEndpoint:
    """Makes an endpoint that sends to `receiver`: `hook(payload="full")`; returns it with its secret.

    By default, it receives only events of note types: changes of endpoints record events too.
    """
    return lambda **values: api.create(
        "/webhook-endpoints", {"url": receiver.url, "event_types": ["note_type.*"]} | values
    )
