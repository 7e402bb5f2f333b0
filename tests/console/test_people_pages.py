"""Settings, people: roles, invitations, removals; and nothing of another plan manager's."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec import Struct

from console.people import PASSWORD, Browser, Person, made
from plankeeper.accounts import member_store
from plankeeper.accounts import members as member_service
from plankeeper.accounts.schemas import Invitation
from plankeeper.http.context import SYSTEM, WriteContext
from support.server import RunningServer

PEOPLE = "/console/settings/people"


class Told(Struct):
    type: str
    actor_kind: str
    actor_id: str | None


@pytest.fixture
def told(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Told]]:
    """What people did to accounts, in order."""
    statement = """
        select type, actor_kind, actor_id from events
        where plan_manager_id = $1 and type like 'account.%' and actor_kind = 'user' and type <> 'account.signed_in'
        order by id
    """
    return lambda: server.run(server.db.rows(Told, statement, plan_manager_id))


@pytest.fixture
def roles(server: RunningServer) -> Callable[[UUID], dict[UUID, str]]:
    def work(plan_manager_id: UUID) -> dict[UUID, str]:
        everybody = server.run(member_store.list_members(server.db, plan_manager_id))
        return {each.id: each.role for each in everybody}

    return work


@pytest.fixture
def invitations(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Invitation]]:
    return lambda: server.run(member_store.list_pending_invitations(server.db, plan_manager_id))


def link_on(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    found = re.search(r'<pre id="link"[^>]*>([^<]+)</pre>', answer.text)
    assert found
    return unescape(found[1])


def test_who_is_invited_joins_with_the_link_that_is_shown_once(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], plan_manager_id: UUID,
    told: Callable[[], list[Told]], roles: Any, invitations: Any,
) -> None:  # fmt: skip
    email = f"{plan_manager_id}@example.com"
    answer = owner.send(PEOPLE, {"email": email, "name": "Kim", "role": "manager"})
    link = link_on(answer)
    assert link.startswith(f"{server.url}/console/invitations/")
    assert "sends no mail" in answer.text
    page = owner.get(PEOPLE).text
    assert (email in page, link.rpartition("/")[2] in page) == (True, False)
    joining = new_browser()
    path = link.removeprefix(server.url)
    assert 'value="Kim"' in joining.get(path).text
    assert joining.send(path, {"name": "Kim", "password": PASSWORD}, path).status_code == 303
    assert joining.get("/console/settings/keys").status_code == 200
    assert sorted(roles(plan_manager_id).values()) == ["manager", "owner"]
    assert invitations() == []
    assert [each.type for each in told()] == ["account.invited", "account.joined"]


def test_a_new_link_ends_the_old_one_and_a_withdrawn_one_leads_nowhere(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], invitations: Any,
    told: Callable[[], list[Told]], plan_manager_id: UUID,
) -> None:  # fmt: skip
    first = link_on(owner.send(PEOPLE, {"email": f"{plan_manager_id}@example.com", "name": "", "role": "viewer"}))
    (known,) = invitations()
    second = link_on(owner.send(f"{PEOPLE}/invitations/{known.id}/again"))
    anybody = new_browser()
    assert (anybody.get(first).status_code, anybody.get(second).status_code) == (404, 200)
    assert [(each.id, each.email, each.role) for each in invitations()] == [(known.id, known.email, "viewer")]
    answer = owner.send(f"{PEOPLE}/invitations/{known.id}/withdraw")
    assert (answer.status_code, answer.headers["location"]) == (303, PEOPLE)
    assert "is withdrawn" in owner.get(PEOPLE).text
    assert (anybody.get(second).status_code, invitations()) == (404, [])
    assert owner.send(f"{PEOPLE}/invitations/{known.id}/withdraw").status_code == 404
    assert owner.send(f"{PEOPLE}/invitations/{known.id}/again").status_code == 404
    assert [each.type for each in told()] == ["account.invited"] * 2 + ["account.invitation_withdrawn"]


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"email": "kim"}, "Email: "),
        ({"email": ""}, "Email: "),
        ({"role": "admin"}, "Role: must be one of"),
        ({"name": "x" * 256}, "Name: must be one line"),
        ({"name": "a\nb"}, "Name: must be one line"),
    ],
)
def test_an_invitation_that_cannot_be_made_shows_the_form_again(
    owner: Browser, invitations: Any, wrong: dict[str, str], told: str
) -> None:
    form = {"email": "kim@example.com", "name": "Kim", "role": "viewer"} | wrong
    answer = owner.send(PEOPLE, form)
    assert (answer.status_code, told in answer.text) == (422, True)
    assert ('value="Kim"' in answer.text) == ("name" not in wrong)
    assert invitations() == []


def test_who_has_a_role_is_not_invited(owner: Browser, new_person: Callable[..., Person], invitations: Any) -> None:
    answer = owner.send(PEOPLE, {"email": new_person("viewer").email.upper(), "name": "", "role": "owner"})
    assert (answer.status_code, "Email: belongs to somebody who has a role here" in answer.text) == (422, True)
    assert invitations() == []


def test_a_role_is_changed_and_holds_at_once(
    owner: Browser, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    told: Callable[[], list[Told]], roles: Any, plan_manager_id: UUID,
) -> None:  # fmt: skip
    person = new_person("viewer")
    theirs = new_browser(person)
    assert theirs.get("/console/settings/keys").status_code == 403
    path = f"{PEOPLE}/{person.account_id}/role"
    assert "is viewer now" in owner.get(path).text
    answer = owner.send(path, {"role": "manager", "was": "viewer"})
    assert (answer.status_code, answer.headers["location"]) == (303, PEOPLE)
    assert "Robin Hale is manager now." in owner.get(PEOPLE).text
    assert theirs.get("/console/settings/keys").status_code == 200
    (event,) = told()
    assert (event.type, event.actor_id in map(str, roles(plan_manager_id))) == ("account.role_changed", True)
    assert event.actor_id != str(person.account_id)


def test_a_role_that_somebody_else_changed_meanwhile_stays(
    owner: Browser, new_person: Callable[..., Person], roles: Any, plan_manager_id: UUID
) -> None:
    person = new_person("manager")
    answer = owner.send(f"{PEOPLE}/{person.account_id}/role", {"role": "owner", "was": "viewer"})
    assert (answer.status_code, "by somebody else meanwhile" in answer.text) == (409, True)
    assert roles(plan_manager_id)[person.account_id] == "manager"
    answer = owner.send(f"{PEOPLE}/{person.account_id}/role", {"role": "king", "was": "manager"})
    assert (answer.status_code, "Role: must be one of" in answer.text) == (422, True)
    assert roles(plan_manager_id)[person.account_id] == "manager"


def test_who_is_removed_sees_nothing_more(
    owner: Browser, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    told: Callable[[], list[Told]], roles: Any, plan_manager_id: UUID,
) -> None:  # fmt: skip
    person = new_person("manager")
    theirs, path = new_browser(person), f"{PEOPLE}/{person.account_id}/remove"
    assert "Remove Robin Hale?" in owner.get(path).text
    assert person.account_id in roles(plan_manager_id)
    assert owner.send(path).headers["location"] == PEOPLE
    assert "Robin Hale has no role here any more." in owner.get(PEOPLE).text
    assert theirs.get("/console/activity").status_code == 303
    assert person.account_id not in roles(plan_manager_id)
    assert [each.type for each in told()] == ["account.removed"]
    assert owner.send(path).status_code == 404


def test_the_last_owner_is_neither_removed_nor_demoted(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], roles: Any, plan_manager_id: UUID
) -> None:
    person = new_person("owner")
    only = new_browser(person)
    page = only.get(PEOPLE).text
    assert ("The only owner" in page, f"{person.account_id}/remove" in page) == (True, False)
    for answer in (
        only.send(f"{PEOPLE}/{person.account_id}/role", {"role": "viewer", "was": "owner"}),
        only.send(f"{PEOPLE}/{person.account_id}/remove"),
    ):
        assert (answer.status_code, "make somebody else an owner first" in answer.text) == (422, True)
    assert roles(plan_manager_id) == {person.account_id: "owner"}
    new_person("owner")
    assert f"{person.account_id}/remove" in only.get(PEOPLE).text
    assert only.send(f"{PEOPLE}/{person.account_id}/role", {"role": "viewer", "was": "owner"}).status_code == 303
    assert only.get(f"{PEOPLE}/invite").status_code == 403


def test_a_sign_in_to_another_plan_manager_is_neither_shown_nor_touched(
    server: RunningServer, owner: Browser, new_person: Callable[..., Person], new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID, roles: Any,
) -> None:  # fmt: skip
    foreign = new_plan_manager()
    stranger = new_person("owner", foreign)
    shared = server.run(made(server, foreign, "owner", "Sam Both"))

    async def join() -> None:
        async with server.db.transaction() as tx:
            call = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await member_store.insert(tx, plan_manager_id, shared.account_id, "viewer", datetime.now(UTC))
            await member_service.change_role(call, shared.account_id, "manager")

    server.run(join())
    page = owner.get(PEOPLE).text
    assert (stranger.email in page, shared.email in page, str(foreign) in page) == (False, True, False)
    for step, form in (("role", {"role": "viewer", "was": "owner"}), ("remove", {})):
        assert owner.get(f"{PEOPLE}/{stranger.account_id}/{step}").status_code == 404
        assert owner.send(f"{PEOPLE}/{stranger.account_id}/{step}", form).status_code == 404
    assert owner.send(f"{PEOPLE}/{shared.account_id}/remove").status_code == 303
    assert shared.account_id not in roles(plan_manager_id)
    assert roles(foreign) == {stranger.account_id: "owner", shared.account_id: "owner"}


def test_an_invitation_of_another_plan_manager_is_not_there(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    foreign = new_plan_manager()
    theirs = new_browser(new_person("owner", foreign))
    link_on(theirs.send(PEOPLE, {"email": f"{foreign}@example.com", "name": "", "role": "viewer"}))
    (known,) = server.run(member_store.list_pending_invitations(server.db, foreign))
    assert known.email not in owner.get(PEOPLE).text
    for step in ("again", "withdraw"):
        assert owner.send(f"{PEOPLE}/invitations/{known.id}/{step}").status_code == 404
    assert server.run(member_store.list_pending_invitations(server.db, foreign)) == [known]


@pytest.mark.parametrize("role", ["viewer", "manager"])
def test_who_is_no_owner_sees_people_and_no_button(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], owner: Browser, invitations: Any, role: str
) -> None:
    owner.send(PEOPLE, {"email": "kim@example.com", "name": "", "role": "viewer"})
    person = new_person(role)
    browser = new_browser(person)
    page = browser.get(PEOPLE).text
    assert (person.email in page, "kim@example.com" in page) == (True, True)
    assert re.findall(r"/console/settings/people/[^\"]+", page) == []
    for path in ("", f"/{person.account_id}/role", f"/{person.account_id}/remove"):
        assert browser.send(PEOPLE + path, {"role": "owner", "was": role}).status_code == 403
    (known,) = invitations()
    assert browser.send(f"{PEOPLE}/invitations/{known.id}/withdraw").status_code == 403


def test_what_people_are_called_is_text(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    name = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
    person = server.run(made(server, plan_manager_id, "viewer", name))
    owner.send(PEOPLE, {"email": "kim@example.com", "name": name, "role": "viewer"})
    for path in (PEOPLE, f"{PEOPLE}/{person.account_id}/role", f"{PEOPLE}/{person.account_id}/remove"):
        page = owner.get(path).text
        assert ("<script>alert" in page, "<img src=x" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)
