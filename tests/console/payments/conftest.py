"""An office that pays, and browsers of its people."""

from collections.abc import Callable
from uuid import UUID

import pytest

from support.client import Client
from support.console import Browser
from support.payments import PayingOffice
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> PayingOffice:
    client = new_client(plan_manager_id, scopes=("read", "write", "claims", "payments"))
    return PayingOffice(server, client)


@pytest.fixture
def payer(manager: Callable[..., Browser]) -> Browser:
    """A manager who may make payments."""
    return manager("make_payments")
