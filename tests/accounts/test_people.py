"""Invitations, roles, and who may not leave."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from accounts.conftest import PASSWORD, Someone, told
from plankeeper.accounts import member_store, members, sessions
from plankeeper.accounts.policy import hash_token
from plankeeper.accounts.schemas import LoginError, LoginResult
from plankeeper.http.context import Actor, WriteContext
from plankeeper.http.errors import ValidationError, NotFound, ApiError


def invited(ada: Someone, email: str, role: str = "viewer") -> str:
    return ada.write(lambda call: sessions.invite(call, email, role), as_self=True)


def accepted(ada: Someone, token: str, name: str = "Sam", password: str = PASSWORD) -> Any:
    return ada.server.run(
        sessions.accept(ada.server.db, ada.server.settings, token, name, password, "192.0.2.8", "Browser 2")
    )


def fresh_email() -> str:
    return f"{uuid7().hex}@example.com"


def roles(ada: Someone) -> dict[str, str]:
    found = ada.server.run(member_store.list_members(ada.server.db, ada.plan_manager_id))
    return {each.email: each.role for each in found}


def test_who_is_invited_makes_an_account_and_is_signed_in(ada: Someone) -> None:
    email = fresh_email()
    token = invited(ada, f" {email} ", "manager")
    found = ada.server.run(sessions.get_invitation(ada.server.db, token))
    assert found
    assert (found.plan_manager_name, found.has_account, found.invitation.email) == ("Test plan manager", False, email)
    signed_in = accepted(ada, token)
    assert isinstance(signed_in, LoginResult)
    session = ada.session(signed_in.token)
    assert session
    assert (session.email, session.name, session.roles) == (email, "Sam", {ada.plan_manager_id: "manager"})
    assert roles(ada) == {ada.email: "owner", email: "manager"}
    events = told(ada.server, ada.plan_manager_id)
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
def test_an_invitation_is_used_once_even_by_two_at_once(
    ada: Someone, new_person: Callable[..., Someone], known: bool
) -> None:
    token = invited(ada, new_person().email if known else fresh_email())

    async def twice() -> list[Any]:
        db, settings = ada.server.db, ada.server.settings
        return await asyncio.gather(*(sessions.accept(db, settings, token, "Sam", PASSWORD) for _ in range(2)))

    found = ada.server.run(twice())
    assert sorted(type(each).__name__ for each in found) == ["LoginResult", "NoneType"]
    assert accepted(ada, token) is None
    assert len(roles(ada)) == 2


def test_an_invitation_ends(ada: Someone) -> None:
    token = invited(ada, fresh_email())
    statement = "update account_invitations set expires_at = now() where token_hash = $1"
    ada.server.run(ada.server.db.execute(statement, hash_token(token)))
    assert ada.server.run(sessions.get_invitation(ada.server.db, token)) is None
    assert accepted(ada, token) is None
    assert accepted(ada, "nobody's") is None


def test_who_is_invited_again_has_the_newest_link_alone(ada: Someone) -> None:
    email = fresh_email()
    first, second = invited(ada, email), invited(ada, email.upper(), "manager")
    assert accepted(ada, first) is None
    assert len(ada.server.run(member_store.list_pending_invitations(ada.server.db, ada.plan_manager_id))) == 1
    assert isinstance(accepted(ada, second), LoginResult)
    assert set(roles(ada).values()) == {"owner", "manager"}


def test_an_invitation_can_be_withdrawn_by_its_plan_manager_alone(
    ada: Someone, new_person: Callable[..., Someone]
) -> None:
    token, stranger = invited(ada, fresh_email()), new_person()
    [kept] = ada.server.run(member_store.list_pending_invitations(ada.server.db, ada.plan_manager_id))
    with pytest.raises(NotFound):
        stranger.write(lambda call: members.revoke_invitation(call, kept.id))
    ada.write(lambda call: members.revoke_invitation(call, kept.id))
    assert accepted(ada, token) is None
    assert told(ada.server, ada.plan_manager_id)[-1].type == "account.invitation_withdrawn"


@pytest.mark.parametrize(
    "name, password", [("", PASSWORD), ("a\nb", PASSWORD), ("Sam", "short"), (" ", "password1234")]
)
def test_a_bad_name_or_password_leaves_the_invitation_open(ada: Someone, name: str, password: str) -> None:
    token = invited(ada, fresh_email())
    with pytest.raises(ValidationError):
        accepted(ada, token, name, password)
    assert isinstance(accepted(ada, token), LoginResult)


def test_who_has_an_account_joins_with_its_password_and_no_other(
    ada: Someone, new_person: Callable[..., Someone]
) -> None:
    sam = new_person(name="Sam")
    token = invited(ada, sam.email.upper())
    found = ada.server.run(sessions.get_invitation(ada.server.db, token))
    assert found
    assert found.has_account
    assert accepted(ada, token, "Mallory", "another long password") == LoginError(0)
    assert sam.email not in roles(ada)
    signed_in = accepted(ada, token, "Mallory", PASSWORD)
    assert isinstance(signed_in, LoginResult)
    session = ada.session(signed_in.token)
    assert session
    assert (session.account_id, session.name) == (sam.id, "Sam")
    assert session.roles == {sam.plan_manager_id: "owner", ada.plan_manager_id: "viewer"}
    assert session.plan_manager_id == ada.plan_manager_id


@pytest.mark.parametrize("email", ["", "nobody", "a@b", "a b@example.com", "x\0@example.com", "x" * 300])
def test_a_bad_email_is_not_invited(ada: Someone, email: str) -> None:
    with pytest.raises(ValidationError):
        invited(ada, email)


def test_who_belongs_already_is_not_invited_and_a_role_is_one_of_three(ada: Someone) -> None:
    with pytest.raises(ValidationError):
        invited(ada, ada.email.upper())
    with pytest.raises(ValidationError):
        invited(ada, fresh_email(), "admin")
    with pytest.raises(ValidationError):
        ada.write(lambda call: members.change_role(call, ada.id, "admin"))


def test_a_role_is_changed_at_once_and_told(ada: Someone, new_person: Callable[..., Someone]) -> None:
    sam = new_person(ada.plan_manager_id, role="viewer", name="Sam")
    token = sam.token()
    ada.write(lambda call: members.change_role(call, sam.id, "manager"), as_self=True)
    session = sam.session(token)
    assert session
    assert session.roles == {ada.plan_manager_id: "manager"}
    last = told(ada.server, ada.plan_manager_id)[-1]
    shown = {"id": str(sam.id), "email": sam.email, "name": "Sam", "role": "manager"}
    assert last == ("account.role_changed", str(ada.id), shown, {"role": "viewer"})
    before = len(told(ada.server, ada.plan_manager_id))
    ada.write(lambda call: members.change_role(call, sam.id, "manager"), as_self=True)
    assert len(told(ada.server, ada.plan_manager_id)) == before


def test_people_of_another_plan_manager_can_not_be_changed(ada: Someone, new_person: Callable[..., Someone]) -> None:
    stranger = new_person()
    assert ada.write(lambda call: members.change_role(call, stranger.id, "viewer"), as_self=True) is None
    assert ada.write(lambda call: members.remove(call, stranger.id), as_self=True) is None
    assert roles(stranger) == {stranger.email: "owner"}
    assert isinstance(stranger.sign_in(), LoginResult)


def test_the_only_owner_stays_unless_the_system_removes_them(ada: Someone) -> None:
    with pytest.raises(ValidationError):
        ada.write(lambda call: members.remove(call, ada.id), as_self=True)
    with pytest.raises(ValidationError):
        ada.write(lambda call: members.change_role(call, ada.id, "viewer"), as_self=True)
    assert roles(ada) == {ada.email: "owner"}
    ada.write(lambda call: members.remove(call, ada.id))
    assert roles(ada) == {}


def test_of_two_owners_who_leave_at_once_one_stays(ada: Someone, new_person: Callable[..., Someone]) -> None:
    sam = new_person(ada.plan_manager_id)

    async def both() -> list[Any]:
        async def leave(who: UUID) -> None:
            async with ada.server.db.transaction() as tx:
                actor = Actor("user", str(who), None)
                await members.remove(WriteContext(tx, ada.plan_manager_id, ada.server.settings, actor), who)

        return await asyncio.gather(leave(ada.id), leave(sam.id), return_exceptions=True)

    found = ada.server.run(both())
    assert sorted(type(each).__name__ for each in found) == ["NoneType", "ValidationError"]
    assert list(roles(ada).values()) == ["owner"]


def test_who_is_removed_keeps_the_roles_elsewhere(ada: Someone, new_person: Callable[..., Someone]) -> None:
    sam = new_person(name="Sam")
    assert isinstance(accepted(ada, invited(ada, sam.email)), LoginResult)
    ada.write(lambda call: members.remove(call, sam.id), as_self=True)
    session = sam.session(sam.token())
    assert session
    assert session.roles == {sam.plan_manager_id: "owner"}
    last = next(each for each in told(ada.server, ada.plan_manager_id) if each.type == "account.removed")
    assert (last.data, last.previous) == (
        None,
        {"id": str(sam.id), "email": sam.email, "name": "Sam", "role": "viewer"},
    )


def test_who_is_no_owner_any_more_changes_nobody(ada: Someone, new_person: Callable[..., Someone]) -> None:
    bob = new_person(ada.plan_manager_id, role="owner")
    kim = new_person(ada.plan_manager_id, role="viewer")
    ada.write(lambda call: members.change_role(call, bob.id, "manager"), as_self=True)
    for late in (
        lambda call: members.change_role(call, kim.id, "owner"),
        lambda call: members.remove(call, kim.id),
        lambda call: sessions.invite(call, "late@example.com", "owner"),
        lambda call: members.revoke_invitation(call, uuid7()),
    ):
        with pytest.raises(ApiError) as refused:
            bob.write(late, as_self=True)
        assert refused.value.status == 403
    assert ada.write(lambda call: members.change_role(call, kim.id, "manager"), as_self=True)
