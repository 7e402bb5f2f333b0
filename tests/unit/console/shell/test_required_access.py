"""The one place that decides whether an account can open a page: role, permission, limit, CSV files."""

from dataclasses import replace
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts.schemas import RoleDetails
from plankeeper.console.application import page_routes
from plankeeper.console.shell.responses import RoleRequiredError, require_access
from plankeeper.console.shell.routing import PageRoute

PAGE = next(each for each in page_routes() if each.path == "/console/settings/keys" and each.method == "GET")
FILE = next(each for each in page_routes() if each.path == "/console/participants.csv")
CLAIMS = replace(PAGE, permission="make_claims")


class FakeAccount:
    """An account with a role and its details."""

    def __init__(self, role: str, details: RoleDetails) -> None:
        self.role, self.details = role, details

    def has_role(self, role: str) -> bool:
        roles = ("viewer", "manager", "owner")
        return roles.index(self.role) >= roles.index(role)

    def has_permission(self, permission: str) -> bool:
        return self.role == "owner" or permission in self.details.permissions


@pytest.mark.parametrize("route, role, details, message", [
    (PAGE, "viewer", RoleDetails(), "can change your role"),
    (PAGE, "manager", RoleDetails(), None),
    (CLAIMS, "manager", RoleDetails(), "An owner of the plan manager can give you the permission to make claims."),
    (CLAIMS, "manager", RoleDetails(["make_payments"]), "permission to make claims"),
    (CLAIMS, "manager", RoleDetails(["make_claims"]), None),
    (CLAIMS, "owner", RoleDetails(), None),
    (FILE, "viewer", RoleDetails(), None),
    (FILE, "viewer", RoleDetails([], uuid7()), None),
    (FILE, "viewer", RoleDetails(can_download=False), "can’t download CSV and XLSX files"),
    (replace(FILE, is_limited=False), "viewer", RoleDetails([], uuid7()), "limited to the participants of one"),
])  # fmt: skip
def test_a_page_requires_role_permission_and_limit(
    route: PageRoute, role: str, details: RoleDetails, message: str | None
) -> None:
    account: Any = FakeAccount(role, details)
    if message is None:
        require_access(route, account)
    else:
        with pytest.raises(RoleRequiredError, match=message):
            require_access(route, account)
