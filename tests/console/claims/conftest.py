"""An office whose invoices can be claimed, and browsers of managers with permissions."""

from collections.abc import Callable
from uuid import UUID

import pytest

from support.claims import Office
from support.client import ALL_SCOPES, Client
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, new_client(plan_manager_id, scopes=ALL_SCOPES))
