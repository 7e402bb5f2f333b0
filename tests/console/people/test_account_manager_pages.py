"""Account managers: list, create, edit, deactivate."""

import asyncio
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import ValidationError
from plankeeper.core.fields import Email
from plankeeper.resources.account_managers import service
from plankeeper.resources.account_managers.schemas import AccountManagerCreate
from support.client import Client
from support.console import Account, Browser
from support.importing import import_records
from support.server import RunningServer

PAGE = "/console/account-managers"
AMA = {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com"}
SCRIPT = "<script>alert(1)</script>"


class AccountManagerRow(Struct):
    """A row."""

    id: UUID
    first_name: str | None
    last_name: str | None
    email: str | None
    active: bool


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    actor_kind: str
    data: str
    previous: str | None


@pytest.fixture
def stored_managers(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[AccountManagerRow]]:
    statement = """
        select manager.id, first_name, last_name, email, active
        from account_managers manager join users using (plan_manager_id, id)
        where plan_manager_id = $1 order by 1
    """
    return lambda: server.run(server.db.rows(AccountManagerRow, statement, plan_manager_id))


@pytest.fixture
def recorded_events(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[EventRow]]:
    statement = """
        select type, actor_kind, data::text, previous::text from events
        where plan_manager_id = $1 and resource_kind = 'account_manager' order by id
    """
    return lambda: server.run(server.db.rows(EventRow, statement, plan_manager_id))


@pytest.fixture
def manager(owner: Browser, stored_managers: Callable[[], list[AccountManagerRow]]) -> AccountManagerRow:
    assert owner.submit(PAGE, AMA).status_code == 303
    return stored_managers()[0]


def version_token(browser: Browser, path: str) -> str:
    match = re.search(r'name="was" value="([^"]+)"', browser.get(path).text)
    assert match, path
    return match[1]


def test_an_account_manager_is_created_edited_deactivated_and_reactivated(
    server: RunningServer,
    owner: Browser,
    stored_managers: Callable[[], list[AccountManagerRow]],
    recorded_events: Callable[[], list[EventRow]],
    new_key: Callable[..., str],
    plan_manager_id: UUID,
) -> None:
    assert "There are no account managers yet." in owner.get(PAGE).text
    assert owner.submit(PAGE, AMA).headers["location"] == PAGE
    (made,) = stored_managers()
    path = f"{PAGE}/{made.id}"
    form = {
        "first_name": SCRIPT,
        "last_name": "",
        "email": "AMA@example.org",
        "was": version_token(owner, f"{path}/edit"),
    }
    assert owner.submit(f"{path}/edit", form).headers["location"] == PAGE
    assert stored_managers() == [AccountManagerRow(made.id, SCRIPT, None, "AMA@example.org", True)]
    for page in (owner.get(PAGE).text, owner.get(f"{path}/edit").text):
        assert (SCRIPT in page, "&lt;script&gt;alert(1)" in page) == (False, True)
    assert owner.submit(f"{path}/deactivate").headers["location"] == PAGE
    assert "deactivated" in owner.get(PAGE).text
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    assert client.get(f"/account-managers/{made.id}").json()["active"] is False
    assert owner.submit(f"{path}/activate").headers["location"] == PAGE
    assert owner.submit(f"{path}/activate").status_code == 303
    shown = client.get(f"/account-managers/{made.id}").json()
    client.http.close()
    events = recorded_events()
    assert [each.type.partition(".")[2] for each in events] == ["created", "updated", "updated", "updated"]
    assert {each.actor_kind for each in events} == {"user"}
    assert json.loads(events[-1].data or "") == shown | {"is_internal": False, "deleted": False}
    assert json.loads(events[1].previous or "").keys() == {"first_name", "last_name", "name", "email"}
    assert events[2].previous == '{"active":true}'


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict.fromkeys(AMA, ""), "At least one of first name, last name and email is required"),
        ({"email": "x"}, "Email must be an email address"),
        ({"first_name": "x" * 256}, "First name must be at most 255"),
        ({"email": "TAKEN@example.com"}, "Email belongs to another account manager"),
        ({"email": "kim@mail.plankeeper.example"}, "Email belongs to the operator"),
        ({"email": "hidden@example.com"}, "Email belongs to another account manager"),
    ],
)  # fmt: skip
def test_an_invalid_account_manager_shows_the_form_again(
    server: RunningServer,
    owner: Browser,
    plan_manager_id: UUID,
    stored_managers: Callable[[], list[AccountManagerRow]],
    recorded_events: Callable[[], list[EventRow]],
    wrong: dict[str, str],
    message: str,
) -> None:
    assert owner.submit(PAGE, AMA | {"email": "taken@example.com"}).status_code == 303
    hidden = [{"email": "hidden@example.com", "deleted": True}]
    server.run(import_records(server, plan_manager_id, "account-managers", hidden))
    before = stored_managers(), recorded_events()
    response = owner.submit(PAGE, AMA | wrong)
    assert (response.status_code, message in unescape(response.text)) == (422, True), response.text
    assert ('value="Owusu"' in response.text) == bool(wrong.get("last_name", "Owusu"))
    assert (stored_managers(), recorded_events()) == before


def test_an_edit_follows_the_rules_of_an_import(
    server: RunningServer,
    owner: Browser,
    manager: AccountManagerRow,
    stored_managers: Callable[[], list[AccountManagerRow]],
    plan_manager_id: UUID,
) -> None:
    assert owner.submit(PAGE, AMA | {"email": "other@example.com"}).status_code == 303
    path = f"{PAGE}/{manager.id}/edit"
    seen = {"was": version_token(owner, path)}
    for email, problem in {
        "": "Email cannot be cleared",
        "OTHER@example.com": "Email belongs to another user",
        "kim@plankeeper.example": "Email belongs to the operator",
    }.items():
        response = owner.submit(path, AMA | seen | {"email": email})
        assert (response.status_code, problem in unescape(response.text)) == (422, True)
    assert stored_managers()[0] == manager
    assert owner.submit(path, AMA | seen | {"last_name": "Mensah"}).status_code == 303
    late = owner.submit(path, AMA | seen | {"last_name": "Late"})
    assert (late.status_code, "Someone else changed this" in late.text, 'value="Late"' in late.text) == (
        409,
        True,
        True,
    )
    assert "Last name: Mensah" in late.text
    assert stored_managers()[0].last_name == "Mensah"


def test_a_team_member_becomes_an_account_manager_with_the_same_id(
    server: RunningServer,
    owner: Browser,
    plan_manager_id: UUID,
    stored_managers: Callable[[], list[AccountManagerRow]],
    new_key: Callable[..., str],
) -> None:
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    team = f"/participants/{client.create('/participants', {})['id']}/team-members"
    member = client.create(team, {"email": "ama@example.com"})
    client.http.close()
    assert owner.submit(PAGE, AMA | {"email": "AMA@example.com"}).status_code == 303
    assert [str(each.id) for each in stored_managers()] == [member["id"]]


def test_concurrent_creates_make_one_account_manager(
    server: RunningServer, plan_manager_id: UUID, stored_managers: Callable[[], list[AccountManagerRow]]
) -> None:
    async def create() -> Any:
        async with server.db.transaction() as tx:
            new = AccountManagerCreate(first_name="Ama", email=Email("ama@example.com"))
            return await service.create(WriteContext(tx, plan_manager_id, server.settings, SYSTEM), new)

    async def create_concurrently() -> list[Any]:
        return await asyncio.gather(create(), create(), return_exceptions=True)

    assert sorted(isinstance(each, ValidationError) for each in server.run(create_concurrently())) == [False, True]
    assert len(stored_managers()) == 1


def test_hidden_account_managers_are_not_shown(
    server: RunningServer, owner: Browser, manager: AccountManagerRow, plan_manager_id: UUID
) -> None:
    hidden = [
        {"id": str(uuid7()), "first_name": "Gone", "deleted": True},
        {"id": str(uuid7()), "first_name": "Inner", "is_internal": True},
        {"id": str(uuid7()), "first_name": "Staff", "email": "x@plankeeper.example"},
    ]
    report = server.run(import_records(server, plan_manager_id, "account-managers", hidden))
    assert report.counts.created == 3
    page = owner.get(PAGE).text
    assert [name in page for name in ("Ama", "Gone", "Inner", "Staff")] == [True, False, False, False]
    for each in hidden:
        assert owner.get(f"{PAGE}/{each['id']}/edit").status_code == 404
        for step in ("edit", "deactivate", "activate"):
            assert owner.submit(f"{PAGE}/{each['id']}/{step}", AMA).status_code == 404


def test_a_viewer_sees_account_managers_and_another_plan_manager_does_not(
    manager: AccountManagerRow, new_plan_manager: Callable[[], UUID], new_browser: Callable[..., Browser],
    new_account: Callable[..., Account], stored_managers: Callable[[], list[AccountManagerRow]],
) -> None:  # fmt: skip
    viewer, other = new_browser(new_account("viewer")), new_browser(new_account("owner", new_plan_manager()))
    page = viewer.get(PAGE).text
    assert ("Ama Owusu" in page, "/edit" in page, "/deactivate" in page, "/new" in page) == (True, False, False, False)
    assert "Owusu" not in other.get(PAGE).text
    for browser, status in ((viewer, 403), (other, 404)):
        assert browser.get(f"{PAGE}/{manager.id}/edit").status_code == status
        for step in ("edit", "deactivate", "activate"):
            assert browser.submit(f"{PAGE}/{manager.id}/{step}", AMA | {"last_name": "X"}).status_code == status
    assert viewer.submit(PAGE, AMA).status_code == 403
    assert stored_managers() == [manager]


def test_the_list_is_filtered_and_paginated(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    rows = [{"first_name": f"N{at:02}", "email": f"n{at}@example.com", "active": at < 55} for at in range(60)]
    assert server.run(import_records(server, plan_manager_id, "account-managers", rows)).counts.created == 60
    first = owner.get(PAGE, params={"active": "true"}).text
    following = re.search(r'href="([^"]+)" rel="next"', first)
    assert following
    second = owner.get(unescape(following[1])).text
    found = [re.findall(r">(N\d\d)<", page) for page in (first, second)]
    assert found == [[f"N{at:02}" for at in range(50)], [f"N{at:02}" for at in range(50, 55)]]
    assert f'href="{PAGE}?active=true"' in second
    assert re.findall(r">(N\d\d)<", owner.get(PAGE, params={"active": "false"}).text) == [
        f"N{at}" for at in range(55, 60)
    ]
    assert re.findall(r">(N\d\d)<", owner.get(PAGE, params={"email": "N7@example.com"}).text) == ["N07"]
    assert "No account managers match." in owner.get(PAGE, params={"email": "nobody"}).text
