"""Settings, people: roles, invitations, removals; and nothing of another plan manager's."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, unquote
from uuid import UUID

import httpx
import pytest
from msgspec import Struct

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts import members as member_service
from plankeeper.access.accounts.schemas import Invitation
from plankeeper.core.context import SYSTEM, WriteContext
from support.console import PASSWORD, Account, Browser, create_account
from support.server import RunningServer
from support.sweeps import sweep

PAGE = "/console/settings/people"


class EventRow(Struct):
    type: str
    actor_kind: str
    actor_id: str | None


@pytest.fixture
def recorded_events(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[EventRow]]:
    """The events about accounts, in order."""
    statement = """
        select type, actor_kind, actor_id from events
        where plan_manager_id = $1 and type like 'account.%' and actor_kind = 'user' and type <> 'account.signed_in'
        order by id
    """
    return lambda: server.run(server.db.rows(EventRow, statement, plan_manager_id))


@pytest.fixture
def roles_by_account(server: RunningServer) -> Callable[[UUID], dict[UUID, str]]:
    def read(plan_manager_id: UUID) -> dict[UUID, str]:
        everybody = server.run(member_store.list_members(server.db, plan_manager_id))
        return {each.id: each.role for each in everybody}

    return read


@pytest.fixture
def open_invitations(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Invitation]]:
    return lambda: server.run(member_store.list_pending_invitations(server.db, plan_manager_id))


def invitation_link(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    match = re.search(r'<pre id="link"[^>]*>([^<]+)</pre>', response.text)
    assert match
    return unescape(match[1])


def test_an_invited_member_joins_with_the_link_shown_once(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], plan_manager_id: UUID,
    recorded_events: Callable[[], list[EventRow]], roles_by_account: Any, open_invitations: Any,
) -> None:  # fmt: skip
    email = f"{plan_manager_id}@example.com"
    response = owner.submit(PAGE, {"email": email, "name": "Kim", "role": "manager"})
    link = invitation_link(response)
    assert link.startswith(f"{server.url}/console/invitations/")
    assert "doesn’t send emails" in response.text
    [mail_link] = re.findall(r'href="(mailto:[^"]+)"', response.text)
    address, _, query = unescape(mail_link).removeprefix("mailto:").partition("?")
    assert unquote(address) == email
    assert {name: text.splitlines() for name, text in parse_qsl(query)} == {
        "subject": ["Invitation to Plankeeper"],
        "body": [
            "Robin Hale (Test plan manager) invites you to Plankeeper.",
            "",
            "Open this link within 7 days to join. It works once:",
            link,
        ],
    }
    page = owner.get(PAGE).text
    assert (email in page, link.rpartition("/")[2] in page) == (True, False)
    joining = new_browser()
    path = link.removeprefix(server.url)
    assert 'value="Kim"' in joining.get(path).text
    assert joining.submit(path, {"name": "Kim", "password": PASSWORD}, path).status_code == 303
    assert joining.get("/console/settings/keys").status_code == 200
    assert sorted(roles_by_account(plan_manager_id).values()) == ["manager", "owner"]
    assert open_invitations() == []
    assert [each.type for each in recorded_events()] == ["account.invited", "account.joined"]


def test_a_new_link_replaces_the_old_one_and_a_revoked_link_is_invalid(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], open_invitations: Any,
    recorded_events: Callable[[], list[EventRow]], plan_manager_id: UUID,
) -> None:  # fmt: skip
    first = invitation_link(
        owner.submit(PAGE, {"email": f"{plan_manager_id}@example.com", "name": "", "role": "viewer"})
    )
    (known,) = open_invitations()
    second = invitation_link(owner.submit(f"{PAGE}/invitations/{known.id}/again"))
    anybody = new_browser()
    assert (anybody.get(first).status_code, anybody.get(second).status_code) == (404, 200)
    assert [(each.id, each.email, each.role) for each in open_invitations()] == [(known.id, known.email, "viewer")]
    response = owner.submit(f"{PAGE}/invitations/{known.id}/withdraw")
    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert "Its link no longer works." in owner.get(PAGE).text
    assert (anybody.get(second).status_code, open_invitations()) == (404, [])
    assert owner.submit(f"{PAGE}/invitations/{known.id}/withdraw").status_code == 404
    assert owner.submit(f"{PAGE}/invitations/{known.id}/again").status_code == 404
    assert [each.type for each in recorded_events()] == ["account.invited"] * 2 + ["account.invitation_withdrawn"]


@sweep(
    "wrong, recorded_events",
    [
        ({"email": "kim"}, "Email "),
        ({"email": ""}, "Email "),
        ({"role": "admin"}, "Role must be one of"),
        ({"name": "x" * 256}, "Name must be one line"),
        ({"name": "a\nb"}, "Name must be one line"),
    ],
)
def test_an_invalid_invitation_shows_the_form_again(
    owner: Browser, open_invitations: Any, wrong: dict[str, str], recorded_events: str
) -> None:
    form = {"email": "kim@example.com", "name": "Kim", "role": "viewer"} | wrong
    response = owner.submit(PAGE, form)
    assert (response.status_code, recorded_events in response.text) == (422, True)
    assert ('value="Kim"' in response.text) == ("name" not in wrong)
    assert open_invitations() == []


def test_a_member_cannot_be_invited(owner: Browser, new_account: Callable[..., Account], open_invitations: Any) -> None:
    response = owner.submit(PAGE, {"email": new_account("viewer").email.upper(), "name": "", "role": "owner"})
    assert (response.status_code, "Email belongs to a person who is already a member" in response.text) == (422, True)
    assert open_invitations() == []


def test_a_role_change_takes_effect_immediately(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    recorded_events: Callable[[], list[EventRow]], roles_by_account: Any, plan_manager_id: UUID,
) -> None:  # fmt: skip
    person = new_account("viewer")
    theirs = new_browser(person)
    assert theirs.get("/console/settings/keys").status_code == 403
    path = f"{PAGE}/{person.account_id}/role"
    assert ": viewer." in owner.get(path).text
    response = owner.submit(path, {"role": "manager", "was": "viewer"})
    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert "Robin Hale is now manager." in owner.get(PAGE).text
    assert theirs.get("/console/settings/keys").status_code == 200
    (event,) = recorded_events()
    assert (event.type, event.actor_id in map(str, roles_by_account(plan_manager_id))) == ("account.role_changed", True)
    assert event.actor_id != str(person.account_id)


def test_a_concurrent_role_change_is_not_overwritten(
    owner: Browser, new_account: Callable[..., Account], roles_by_account: Any, plan_manager_id: UUID
) -> None:
    person = new_account("manager")
    response = owner.submit(f"{PAGE}/{person.account_id}/role", {"role": "owner", "was": "viewer"})
    assert (response.status_code, "Someone else changed the role" in response.text) == (409, True)
    assert roles_by_account(plan_manager_id)[person.account_id] == "manager"
    response = owner.submit(f"{PAGE}/{person.account_id}/role", {"role": "king", "was": "manager"})
    assert (response.status_code, "Role must be one of" in response.text) == (422, True)
    assert roles_by_account(plan_manager_id)[person.account_id] == "manager"


def test_a_removed_member_loses_access(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    recorded_events: Callable[[], list[EventRow]], roles_by_account: Any, plan_manager_id: UUID,
) -> None:  # fmt: skip
    person = new_account("manager")
    theirs, path = new_browser(person), f"{PAGE}/{person.account_id}/remove"
    assert "Remove Robin Hale?" in owner.get(path).text
    assert person.account_id in roles_by_account(plan_manager_id)
    assert owner.submit(path).headers["location"] == PAGE
    assert "Robin Hale removed." in owner.get(PAGE).text
    assert theirs.get("/console/activity").status_code == 303
    assert person.account_id not in roles_by_account(plan_manager_id)
    assert [each.type for each in recorded_events()] == ["account.removed"]
    assert owner.submit(path).status_code == 404


def test_the_last_owner_is_neither_removed_nor_demoted(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    roles_by_account: Any,
    plan_manager_id: UUID,
) -> None:
    person = new_account("owner")
    only = new_browser(person)
    page = only.get(PAGE).text
    assert ("Only owner" in page, f"{person.account_id}/remove" in page) == (True, False)
    for response in (
        only.submit(f"{PAGE}/{person.account_id}/role", {"role": "viewer", "was": "owner"}),
        only.submit(f"{PAGE}/{person.account_id}/remove"),
    ):
        assert (response.status_code, "make another person an owner first" in response.text) == (422, True)
    assert roles_by_account(plan_manager_id) == {person.account_id: "owner"}
    new_account("owner")
    assert f"{person.account_id}/remove" in only.get(PAGE).text
    assert only.submit(f"{PAGE}/{person.account_id}/role", {"role": "viewer", "was": "owner"}).status_code == 303
    assert only.get(f"{PAGE}/invite").status_code == 403


def test_roles_with_another_plan_manager_are_neither_shown_nor_changed(
    server: RunningServer, owner: Browser, new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID, roles_by_account: Any,
) -> None:  # fmt: skip
    foreign = new_plan_manager()
    outsider = new_account("owner", foreign)
    shared = server.run(create_account(server, foreign, "owner", "Sam Both"))

    async def join() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await member_store.insert(tx, plan_manager_id, shared.account_id, "viewer", datetime.now(UTC))
            await member_service.change_role(ctx, shared.account_id, "manager")

    server.run(join())
    page = owner.get(PAGE).text
    assert (outsider.email in page, shared.email in page, str(foreign) in page) == (False, True, False)
    for step, form in (("role", {"role": "viewer", "was": "owner"}), ("remove", {})):
        assert owner.get(f"{PAGE}/{outsider.account_id}/{step}").status_code == 404
        assert owner.submit(f"{PAGE}/{outsider.account_id}/{step}", form).status_code == 404
    assert owner.submit(f"{PAGE}/{shared.account_id}/remove").status_code == 303
    assert shared.account_id not in roles_by_account(plan_manager_id)
    assert roles_by_account(foreign) == {outsider.account_id: "owner", shared.account_id: "owner"}


@pytest.mark.parametrize("role", ["viewer", "manager"])
def test_only_owners_see_the_buttons_to_change_members(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    owner: Browser,
    open_invitations: Any,
    role: str,
) -> None:
    owner.submit(PAGE, {"email": "kim@example.com", "name": "", "role": "viewer"})
    person = new_account(role)
    browser = new_browser(person)
    page = browser.get(PAGE).text
    assert (person.email in page, "kim@example.com" in page) == (True, True)
    assert re.findall(r"/console/settings/people/[^\"]+", page) == []
    for path in ("", f"/{person.account_id}/role", f"/{person.account_id}/remove"):
        assert browser.submit(PAGE + path, {"role": "owner", "was": role}).status_code == 403
    (known,) = open_invitations()
    assert browser.submit(f"{PAGE}/invitations/{known.id}/withdraw").status_code == 403


def test_names_are_shown_as_text(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    name = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
    person = server.run(create_account(server, plan_manager_id, "viewer", name))
    owner.submit(PAGE, {"email": "kim@example.com", "name": name, "role": "viewer"})
    for path in (PAGE, f"{PAGE}/{person.account_id}/role", f"{PAGE}/{person.account_id}/remove"):
        page = owner.get(path).text
        assert ("<script>alert" in page, "<img src=x" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)
