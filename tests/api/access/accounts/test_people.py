"""Invitations, roles, and who may not leave."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, member_store, members
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import Actor, WriteContext
from plankeeper.core.errors import DomainError, NotFound, ValidationError
from support.accounts import PASSWORD, AccountDriver, recorded_account_events
from support.logins import FailedLogin, login_outcome

NO_DETAILS = {"permissions": [], "participants_of": None, "can_download": True}  # of a role, in events


def invite(ada: AccountDriver, email: str, role: str = "viewer") -> str:
    return ada.write(lambda ctx: invitations.invite(ctx, email, role), as_self=True)


def accept_invitation(ada: AccountDriver, token: str, name: str = "Sam", password: str = PASSWORD) -> Any:
    return ada.server.run(
        login_outcome(
            invitations.accept(ada.server.db, ada.server.settings, token, name, password, "192.0.2.8", "Browser 2")
        )
    )


def fresh_email() -> str:
    return f"{uuid7().hex}@example.com"


def roles_by_email(ada: AccountDriver) -> dict[str, str]:
    rows = ada.server.run(member_store.list_members(ada.server.db, ada.plan_manager_id))
    return {each.email: each.role for each in rows}


def test_accepting_an_invitation_creates_an_account_and_signs_in(ada: AccountDriver) -> None:
    email = fresh_email()
    token = invite(ada, f" {email} ", "manager")
    found = ada.server.run(invitations.get_open(ada.server.db, token))
    assert found
    assert (found.plan_manager_name, found.has_account, found.invitation.email) == ("Test plan manager", False, email)
    signed_in = accept_invitation(ada, token)
    assert isinstance(signed_in, LoginResult)
    session = ada.session(signed_in.token)
    assert session
    assert (session.email, session.name, session.roles) == (email, "Sam", {ada.plan_manager_id: "manager"})
    assert roles_by_email(ada) == {ada.email: "owner", email: "manager"}
    events = recorded_account_events(ada.server, ada.plan_manager_id)
    assert [(each.type, each.actor) for each in events] == [
        ("account.joined", "system"),
        ("account.invited", str(ada.id)),
        ("account.joined", str(session.account_id)),
        ("account.signed_in", str(session.account_id)),
    ]
    assert token not in str(events)
    assert hash_token(token).hex() not in str(events)
    assert isinstance(ada.sign_in(PASSWORD, email), LoginResult)


@pytest.mark.parametrize("known", [True, False])
def test_an_invitation_is_used_once_even_when_accepted_concurrently(
    ada: AccountDriver, new_account: Callable[..., AccountDriver], known: bool
) -> None:
    token = invite(ada, new_account().email if known else fresh_email())

    async def accept_twice() -> list[Any]:
        db, settings = ada.server.db, ada.server.settings
        return await asyncio.gather(*(invitations.accept(db, settings, token, "Sam", PASSWORD) for _ in range(2)))

    found = ada.server.run(accept_twice())
    assert sorted(type(each).__name__ for each in found) == ["LoginResult", "NoneType"]
    assert accept_invitation(ada, token) is None
    assert len(roles_by_email(ada)) == 2


def test_an_invitation_expires(ada: AccountDriver) -> None:
    token = invite(ada, fresh_email())
    statement = "update account_invitations set expires_at = now() where token_hash = $1"
    ada.server.run(ada.server.db.execute(statement, hash_token(token)))
    assert ada.server.run(invitations.get_open(ada.server.db, token)) is None
    assert accept_invitation(ada, token) is None
    assert accept_invitation(ada, "nobody's") is None


def test_a_new_invitation_invalidates_the_previous_link(ada: AccountDriver) -> None:
    email = fresh_email()
    first, second = invite(ada, email), invite(ada, email.upper(), "manager")
    assert accept_invitation(ada, first) is None
    assert len(ada.server.run(member_store.list_pending_invitations(ada.server.db, ada.plan_manager_id))) == 1
    assert isinstance(accept_invitation(ada, second), LoginResult)
    assert set(roles_by_email(ada).values()) == {"owner", "manager"}


def test_only_its_plan_manager_can_revoke_an_invitation(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    token, outsider = invite(ada, fresh_email()), new_account()
    [stored] = ada.server.run(member_store.list_pending_invitations(ada.server.db, ada.plan_manager_id))
    with pytest.raises(NotFound):
        outsider.write(lambda ctx: invitations.revoke(ctx, stored.id))
    ada.write(lambda ctx: invitations.revoke(ctx, stored.id))
    assert accept_invitation(ada, token) is None
    assert recorded_account_events(ada.server, ada.plan_manager_id)[-1].type == "account.invitation_withdrawn"


@pytest.mark.parametrize(
    "name, password", [("", PASSWORD), ("a\nb", PASSWORD), ("Sam", "short"), (" ", "password1234")]
)
def test_an_invalid_name_or_password_leaves_the_invitation_open(ada: AccountDriver, name: str, password: str) -> None:
    token = invite(ada, fresh_email())
    with pytest.raises(ValidationError):
        accept_invitation(ada, token, name, password)
    assert isinstance(accept_invitation(ada, token), LoginResult)


def test_an_existing_account_joins_with_its_own_password_only(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(name="Sam")
    token = invite(ada, sam.email.upper())
    found = ada.server.run(invitations.get_open(ada.server.db, token))
    assert found
    assert found.has_account
    assert accept_invitation(ada, token, "Mallory", "another long password") == FailedLogin(0)
    assert sam.email not in roles_by_email(ada)
    signed_in = accept_invitation(ada, token, "Mallory", PASSWORD)
    assert isinstance(signed_in, LoginResult)
    session = ada.session(signed_in.token)
    assert session
    assert (session.account_id, session.name) == (sam.id, "Sam")
    assert session.roles == {sam.plan_manager_id: "owner", ada.plan_manager_id: "viewer"}
    assert session.plan_manager_id == ada.plan_manager_id


def test_an_invitation_does_not_reveal_whether_the_email_has_an_account(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    """Guesses get the same results, until somebody joins."""
    emails = new_account(name="Sam").email, fresh_email()
    outcomes: list[list[str]] = []
    for email in emails:
        token, results = invite(ada, email), list[str]()
        for password in ("short", "password1234", "michael12345", "x"):
            try:
                results.append(type(accept_invitation(ada, token, "Mallory", password)).__name__)
            except ValidationError as error:
                results.append(str([(each.field, each.message) for each in error.errors or []]))
        outcomes.append(results)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][3] == "FailedLogin"  # they wait alike


@pytest.mark.parametrize("email", ["ｄemo@example.com", "dеmo@example.com", "demó@example.com", "demó@example.com"])
def test_an_email_with_letters_that_look_like_others_gets_no_account(ada: AccountDriver, email: str) -> None:
    with pytest.raises(ValidationError) as rejected:
        invite(ada, email)
    assert [(each.field, "ASCII" in each.message) for each in rejected.value.errors or []] == [("email", True)]
    with pytest.raises(ValidationError):
        ada.write(lambda ctx: members.create(ctx, email, "Demo", "viewer", PASSWORD))


@pytest.mark.parametrize("email", ["", "nobody", "a@b", "a b@example.com", "x\0@example.com", "x" * 300])
def test_an_invalid_email_cannot_be_invited(ada: AccountDriver, email: str) -> None:
    with pytest.raises(ValidationError):
        invite(ada, email)


def test_a_member_cannot_be_invited_again_and_a_role_must_be_known(ada: AccountDriver) -> None:
    with pytest.raises(ValidationError):
        invite(ada, ada.email.upper())
    with pytest.raises(ValidationError):
        invite(ada, fresh_email(), "admin")
    with pytest.raises(ValidationError):
        ada.write(lambda ctx: members.change_role(ctx, ada.id, "admin"))


def test_a_role_change_takes_effect_immediately_and_is_recorded(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(ada.plan_manager_id, role="viewer", name="Sam")
    token = sam.token()
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "manager"), as_self=True)
    session = sam.session(token)
    assert session
    assert session.roles == {ada.plan_manager_id: "manager"}
    last = recorded_account_events(ada.server, ada.plan_manager_id)[-1]
    shown = {"id": str(sam.id), "email": sam.email, "name": "Sam", "role": "manager", **NO_DETAILS}
    assert last == ("account.role_changed", str(ada.id), shown, {"role": "viewer"})
    before = len(recorded_account_events(ada.server, ada.plan_manager_id))
    ada.write(lambda ctx: members.change_role(ctx, sam.id, "manager"), as_self=True)
    assert len(recorded_account_events(ada.server, ada.plan_manager_id)) == before


def test_members_of_another_plan_manager_cannot_be_changed(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    outsider = new_account()
    assert ada.write(lambda ctx: members.change_role(ctx, outsider.id, "viewer"), as_self=True) is None
    assert ada.write(lambda ctx: members.remove(ctx, outsider.id), as_self=True) is None
    assert roles_by_email(outsider) == {outsider.email: "owner"}
    assert isinstance(outsider.sign_in(), LoginResult)


def test_the_last_owner_can_be_removed_only_by_the_system(ada: AccountDriver) -> None:
    with pytest.raises(ValidationError):
        ada.write(lambda ctx: members.remove(ctx, ada.id), as_self=True)
    with pytest.raises(ValidationError):
        ada.write(lambda ctx: members.change_role(ctx, ada.id, "viewer"), as_self=True)
    assert roles_by_email(ada) == {ada.email: "owner"}
    ada.write(lambda ctx: members.remove(ctx, ada.id))
    assert roles_by_email(ada) == {}


def test_when_two_owners_leave_concurrently_one_remains(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(ada.plan_manager_id)

    async def leave_concurrently() -> list[Any]:
        async def leave(who: UUID) -> None:
            async with ada.server.db.transaction() as tx:
                actor = Actor("user", str(who), None)
                await members.remove(WriteContext(tx, ada.plan_manager_id, ada.server.settings, actor), who)

        return await asyncio.gather(leave(ada.id), leave(sam.id), return_exceptions=True)

    found = ada.server.run(leave_concurrently())
    assert sorted(type(each).__name__ for each in found) == ["NoneType", "ValidationError"]
    assert list(roles_by_email(ada).values()) == ["owner"]


def test_a_removed_member_keeps_roles_with_other_plan_managers(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    sam = new_account(name="Sam")
    assert isinstance(accept_invitation(ada, invite(ada, sam.email)), LoginResult)
    ada.write(lambda ctx: members.remove(ctx, sam.id), as_self=True)
    session = sam.session(sam.token())
    assert session
    assert session.roles == {sam.plan_manager_id: "owner"}
    last = next(
        each for each in recorded_account_events(ada.server, ada.plan_manager_id) if each.type == "account.removed"
    )
    assert (last.data, last.previous) == (
        None,
        {"id": str(sam.id), "email": sam.email, "name": "Sam", "role": "viewer", **NO_DETAILS},
    )


def test_a_former_owner_cannot_change_members(ada: AccountDriver, new_account: Callable[..., AccountDriver]) -> None:
    bob = new_account(ada.plan_manager_id, role="owner")
    kim = new_account(ada.plan_manager_id, role="viewer")
    ada.write(lambda ctx: members.change_role(ctx, bob.id, "manager"), as_self=True)
    for late in (
        lambda ctx: members.change_role(ctx, kim.id, "owner"),
        lambda ctx: members.remove(ctx, kim.id),
        lambda ctx: invitations.invite(ctx, "late@example.com", "owner"),
        lambda ctx: invitations.revoke(ctx, uuid7()),
    ):
        with pytest.raises(DomainError) as rejection:
            bob.write(late, as_self=True)
        assert rejection.value.status == 403
    assert ada.write(lambda ctx: members.change_role(ctx, kim.id, "manager"), as_self=True)
