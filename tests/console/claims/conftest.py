"""An office whose invoices can be claimed, and browsers of managers with permissions."""

from collections.abc import Callable
from uuid import UUID

import pytest

from support.claims import Office
from support.client import ALL_SCOPES, Client
from support.console import Account, Browser, give_permissions
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, new_client(plan_manager_id, scopes=ALL_SCOPES))


@pytest.fixture
def manager(
    server: RunningServer, new_account: Callable[..., Account], new_browser: Callable[..., Browser]
) -> Callable[..., Browser]:
    """A browser of a manager with permissions: `manager("make_claims")`."""

    def make(*permissions: str) -> Browser:
        account = new_account("manager")
        server.run(give_permissions(server, account, [*permissions]))
        return new_browser(account)

    return make
