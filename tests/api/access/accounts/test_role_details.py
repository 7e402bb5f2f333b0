"""Permissions of managers and limits of viewers: with roles and invitations, in events, dropped with the role."""

from collections.abc import Callable
from contextlib import nullcontext
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, member_store, members
from plankeeper.access.accounts.schemas import LoginResult, RoleDetails
from plankeeper.core.errors import DomainError, ValidationError
from support.accounts import PASSWORD, AccountDriver, recorded_account_events
from support.importing import import_records

PERMITTED = RoleDetails(["make_claims", "override_blocks"])


@pytest.fixture
def manager_id(ada: AccountDriver) -> UUID:
    """An account manager."""
    row = {"id": str(uuid7()), "first_name": "Morgan", "email": "morgan@example.com"}
    assert not ada.server.run(import_records(ada.server, ada.plan_manager_id, "account-managers", [row])).errors
    return UUID(row["id"])


def details_of(account: AccountDriver, plan_manager_id: UUID) -> RoleDetails:
    session = account.session(account.token())
    assert session
    return session.role_details[plan_manager_id]


def test_an_invited_manager_gets_the_permissions(ada: AccountDriver, new_account: Callable[..., AccountDriver]) -> None:
    sam = new_account(name="Sam")
    token = ada.write(lambda ctx: invitations.invite(ctx, sam.email, "manager", details=PERMITTED), as_self=True)
    place = (ada.server.db, ada.server.settings)
    accepted = ada.server.run(invitations.accept(*place, token, "Sam", PASSWORD, "192.0.2.8", "Browser 2"))
    assert isinstance(accepted, LoginResult)
    assert details_of(sam, ada.plan_manager_id) == PERMITTED
    events = {each.type: each.data for each in recorded_account_events(ada.server, ada.plan_manager_id)}
    assert events["account.invited"]["permissions"] == PERMITTED.permissions
    assert events["account.joined"]["permissions"] == PERMITTED.permissions


def test_a_change_of_permissions_is_an_event_and_another_role_drops_them(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(ada.plan_manager_id, role="manager", name="Sam")
    for details in (PERMITTED, PERMITTED):  # the second time, nothing changes
        ada.write(lambda ctx, given=details: members.change_role(ctx, sam.id, "manager", given), as_self=True)
    changes = [e for e in recorded_account_events(ada.server, ada.plan_manager_id) if e.type == "account.role_changed"]
    assert [(each.data["permissions"], each.previous) for each in changes] == [
        (PERMITTED.permissions, {"permissions": []})
    ]
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "viewer"), as_self=True)
    last = recorded_account_events(ada.server, ada.plan_manager_id)[-1]
    assert details_of(sam, ada.plan_manager_id) == RoleDetails()
    assert last.previous == {"role": "manager", "permissions": PERMITTED.permissions}


def test_a_role_without_details_keeps_those_that_it_can_have(
    ada: AccountDriver, new_account: Callable[..., AccountDriver], manager_id: UUID
) -> None:
    sam = new_account(ada.plan_manager_id, role="viewer", name="Sam")
    limited = RoleDetails([], manager_id, can_download=False)
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "viewer", limited), as_self=True)
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "viewer"), as_self=True)
    assert details_of(sam, ada.plan_manager_id) == limited
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "manager"), as_self=True)
    assert details_of(sam, ada.plan_manager_id) == RoleDetails()


def test_a_limit_names_an_account_manager_of_the_plan_manager(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(ada.plan_manager_id, role="viewer", name="Sam")
    unknown = RoleDetails([], uuid7())
    with pytest.raises(ValidationError) as raised:
        ada.write(lambda ctx: members.change_role(ctx, sam.id, "viewer", unknown), as_self=True)
    assert [each.field for each in raised.value.errors or []] == ["participants_of"]


@pytest.mark.parametrize("scopes, permissions, is_allowed", [
    (["read", "write"], [], True),
    (["claims"], ["make_claims"], True),
    (["claims"], ["make_payments"], False),
    (["payments"], ["make_payments"], True),
    (["claims", "payments"], ["make_claims"], False),
])  # fmt: skip
def test_a_manager_gives_a_key_only_scopes_with_a_permission(
    ada: AccountDriver,
    new_account: Callable[..., AccountDriver],
    scopes: list[str],
    permissions: list,
    is_allowed: bool,
) -> None:
    sam = new_account(ada.plan_manager_id, role="manager", name="Sam")
    given = RoleDetails(permissions)
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "manager", given), as_self=True)
    expected = nullcontext() if is_allowed else pytest.raises(DomainError, match="which an owner can give you")
    with expected:
        sam.write(lambda ctx: members.require_scopes(ctx, [ada.plan_manager_id], scopes), as_self=True)
    ada.write(lambda ctx: members.require_scopes(ctx, [ada.plan_manager_id], scopes), as_self=True)


def test_a_role_holds_only_its_own_details(ada: AccountDriver) -> None:
    memberships = ada.server.run(member_store.list_memberships(ada.server.db, ada.id))
    assert [each.details for each in memberships] == [RoleDetails()]
