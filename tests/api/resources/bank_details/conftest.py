"""People and keys of one office."""

from collections.abc import Callable
from uuid import UUID

import pytest

from support.bank_details import Office
from support.client import Client
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    """An office with a provider, and a key that was made by command."""
    return Office(server, plan_manager_id, new_client(plan_manager_id, scopes=("read", "write", "payments")))
