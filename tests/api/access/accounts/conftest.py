"""Accounts with a role for a plan manager of its own."""

from collections.abc import Callable
from uuid import UUID

import pytest

from support.accounts import AccountDriver
from support.server import RunningServer


@pytest.fixture
def new_account(server: RunningServer, new_plan_manager: Callable[[], UUID]) -> Callable[..., AccountDriver]:
    """Makes an account: `new_account(plan_manager_id, role="viewer")`."""
    return lambda plan_manager_id=None, **more: AccountDriver(server, plan_manager_id or new_plan_manager(), **more)


@pytest.fixture
def ada(new_account: Callable[..., AccountDriver]) -> AccountDriver:
    """The only owner of a plan manager."""
    return new_account()
