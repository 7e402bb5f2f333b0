"""Account managers: list, create, edit, deactivate."""

import asyncio
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from console.people import Browser, Person
from plankeeper.account_managers import service
from plankeeper.account_managers.schemas import AccountManagerCreate
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.errors import ValidationError
from plankeeper.http.schemas import Email
from support.client import Client
from support.importing import import_all
from support.server import RunningServer

HERE = "/console/account-managers"
AMA = {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com"}
SCRIPT = "<script>alert(1)</script>"


class Kept(Struct):
    """A row."""

    id: UUID
    first_name: str | None
    last_name: str | None
    email: str | None
    active: bool


class Told(Struct):
    """An event, as it is kept."""

    type: str
    actor_kind: str
    data: str
    previous: str | None


@pytest.fixture
def kept(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Kept]]:
    statement = """
        select manager.id, first_name, last_name, email, active
        from account_managers manager join users using (plan_manager_id, id)
        where plan_manager_id = $1 order by 1
    """
    return lambda: server.run(server.db.rows(Kept, statement, plan_manager_id))


@pytest.fixture
def told(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Told]]:
    statement = """
        select type, actor_kind, data::text, previous::text from events
        where plan_manager_id = $1 and resource_kind = 'account_manager' order by id
    """
    return lambda: server.run(server.db.rows(Told, statement, plan_manager_id))


@pytest.fixture
def ama(owner: Browser, kept: Callable[[], list[Kept]]) -> Kept:
    assert owner.send(HERE, AMA).status_code == 303
    return kept()[0]


def mark(browser: Browser, path: str) -> str:
    found = re.search(r'name="was" value="([^"]+)"', browser.get(path).text)
    assert found, path
    return found[1]


def test_an_account_manager_is_made_edited_deactivated_and_back(
    server: RunningServer, owner: Browser, kept: Callable[[], list[Kept]], told: Callable[[], list[Told]],
    new_key: Callable[..., str], plan_manager_id: UUID,
) -> None:  # fmt: skip
    assert "There are no account managers yet." in owner.get(HERE).text
    assert owner.send(HERE, AMA).headers["location"] == HERE
    (made,) = kept()
    path = f"{HERE}/{made.id}"
    form = {"first_name": SCRIPT, "last_name": "", "email": "AMA@example.org", "was": mark(owner, f"{path}/edit")}
    assert owner.send(f"{path}/edit", form).headers["location"] == HERE
    assert kept() == [Kept(made.id, SCRIPT, None, "AMA@example.org", True)]
    for page in (owner.get(HERE).text, owner.get(f"{path}/edit").text):
        assert (SCRIPT in page, "&lt;script&gt;alert(1)" in page) == (False, True)
    assert owner.send(f"{path}/deactivate").headers["location"] == HERE
    assert "not active any more" in owner.get(HERE).text
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    assert client.get(f"/account-managers/{made.id}").json()["active"] is False
    client.http.close()
    assert owner.send(f"{path}/activate").headers["location"] == HERE
    assert owner.send(f"{path}/activate").status_code == 303
    events = told()
    assert [each.type.partition(".")[2] for each in events] == ["created", "updated", "updated", "updated"]
    assert {each.actor_kind for each in events} == {"user"}
    assert '"is_internal":false' in events[0].data
    assert events[2].previous == '{"active":true}'


@pytest.mark.parametrize(
    "wrong, fault",
    [
        (dict.fromkeys(AMA, ""), "First name: or a last name or an email is required"),
        ({"email": "x"}, "Email: must be an email address"),
        ({"first_name": "x" * 256}, "First name: must be at most 255"),
        ({"email": "TAKEN@example.com"}, "Email: is another account manager"),
        ({"email": "kim@mail.plankeeper.example"}, "Email: is of the operator"),
        ({"email": "hidden@example.com"}, "Email: is another account manager"),
    ],
)  # fmt: skip
def test_a_wrong_account_manager_shows_the_form_again(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, kept: Callable[[], list[Kept]],
    told: Callable[[], list[Told]], wrong: dict[str, str], fault: str,
) -> None:  # fmt: skip
    assert owner.send(HERE, AMA | {"email": "taken@example.com"}).status_code == 303
    hidden = [{"email": "hidden@example.com", "deleted": True}]
    server.run(import_all(server, plan_manager_id, "account-managers", hidden))
    before = kept(), told()
    answer = owner.send(HERE, AMA | wrong)
    assert (answer.status_code, fault in unescape(answer.text)) == (422, True), answer.text
    assert ('value="Owusu"' in answer.text) == bool(wrong.get("last_name", "Owusu"))
    assert (kept(), told()) == before


def test_an_edit_keeps_to_the_rules_of_an_import(
    server: RunningServer, owner: Browser, ama: Kept, kept: Callable[[], list[Kept]], plan_manager_id: UUID
) -> None:
    assert owner.send(HERE, AMA | {"email": "other@example.com"}).status_code == 303
    path = f"{HERE}/{ama.id}/edit"
    seen = {"was": mark(owner, path)}
    for email, fault in {
        "": "Email: cannot be cleared",
        "OTHER@example.com": "Email: is another user",
        "kim@plankeeper.example": "Email: is of the operator",
    }.items():
        answer = owner.send(path, AMA | seen | {"email": email})
        assert (answer.status_code, fault in unescape(answer.text)) == (422, True)
    assert kept()[0] == ama
    assert owner.send(path, AMA | seen | {"last_name": "Mensah"}).status_code == 303
    late = owner.send(path, AMA | seen | {"last_name": "Late"})
    assert (late.status_code, "meanwhile" in late.text, 'value="Late"' in late.text) == (409, True, True)
    assert "Last name: Mensah" in late.text
    assert kept()[0].last_name == "Mensah"


def test_who_is_on_a_team_becomes_an_account_manager_with_the_same_id(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, kept: Callable[[], list[Kept]],
    new_key: Callable[..., str],
) -> None:  # fmt: skip
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    team = f"/participants/{client.made('/participants', {})['id']}/team-members"
    member = client.made(team, {"email": "ama@example.com"})
    client.http.close()
    assert owner.send(HERE, AMA | {"email": "AMA@example.com"}).status_code == 303
    assert [str(each.id) for each in kept()] == [member["id"]]


def test_two_at_once_make_one(server: RunningServer, plan_manager_id: UUID, kept: Callable[[], list[Kept]]) -> None:
    async def make() -> Any:
        async with server.db.transaction() as tx:
            new = AccountManagerCreate(first_name="Ama", email=Email("ama@example.com"))
            return await service.create(WriteContext(tx, plan_manager_id, server.settings, SYSTEM), new)

    async def both() -> list[Any]:
        return await asyncio.gather(make(), make(), return_exceptions=True)

    assert sorted(isinstance(each, ValidationError) for each in server.run(both())) == [False, True]
    assert len(kept()) == 1


def test_hidden_ones_are_not_there(server: RunningServer, owner: Browser, ama: Kept, plan_manager_id: UUID) -> None:
    hidden = [
        {"id": str(uuid7()), "first_name": "Gone", "deleted": True},
        {"id": str(uuid7()), "first_name": "Inner", "is_internal": True},
        {"id": str(uuid7()), "first_name": "Staff", "email": "x@plankeeper.example"},
    ]
    report = server.run(import_all(server, plan_manager_id, "account-managers", hidden))
    assert report.counts.created == 3
    page = owner.get(HERE).text
    assert [name in page for name in ("Ama", "Gone", "Inner", "Staff")] == [True, False, False, False]
    for each in hidden:
        assert owner.get(f"{HERE}/{each['id']}/edit").status_code == 404
        for step in ("edit", "deactivate", "activate"):
            assert owner.send(f"{HERE}/{each['id']}/{step}", AMA).status_code == 404


def test_a_viewer_sees_and_another_plan_manager_does_not(
    ama: Kept, new_plan_manager: Callable[[], UUID], new_browser: Callable[..., Browser],
    new_person: Callable[..., Person], kept: Callable[[], list[Kept]],
) -> None:  # fmt: skip
    viewer, other = new_browser(new_person("viewer")), new_browser(new_person("owner", new_plan_manager()))
    page = viewer.get(HERE).text
    assert ("Ama Owusu" in page, "/edit" in page, "/deactivate" in page, "/new" in page) == (True, False, False, False)
    assert "Owusu" not in other.get(HERE).text
    for browser, status in ((viewer, 403), (other, 404)):
        assert browser.get(f"{HERE}/{ama.id}/edit").status_code == status
        for step in ("edit", "deactivate", "activate"):
            assert browser.send(f"{HERE}/{ama.id}/{step}", AMA | {"last_name": "X"}).status_code == status
    assert viewer.send(HERE, AMA).status_code == 403
    assert kept() == [ama]


def test_the_list_is_filtered_and_goes_on(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    rows = [{"first_name": f"N{at:02}", "email": f"n{at}@example.com", "active": at < 55} for at in range(60)]
    assert server.run(import_all(server, plan_manager_id, "account-managers", rows)).counts.created == 60
    first = owner.get(HERE, params={"active": "true"}).text
    following = re.search(r'href="([^"]+)" rel="next"', first)
    assert following
    second = owner.get(unescape(following[1])).text
    found = [re.findall(r">(N\d\d)<", page) for page in (first, second)]
    assert found == [[f"N{at:02}" for at in range(50)], [f"N{at:02}" for at in range(50, 55)]]
    assert f'href="{HERE}?active=true"' in second
    assert re.findall(r">(N\d\d)<", owner.get(HERE, params={"active": "false"}).text) == [
        f"N{at}" for at in range(55, 60)
    ]
    assert re.findall(r">(N\d\d)<", owner.get(HERE, params={"email": "N7@example.com"}).text) == ["N07"]
    assert "Nobody is like that." in owner.get(HERE, params={"email": "nobody"}).text
