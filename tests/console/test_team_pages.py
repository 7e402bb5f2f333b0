"""Team members: the list on the participant's page, add, look at, edit, remove."""

from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from uuid import UUID

import pytest

from console.forms_of import events_of, form_on
from console.people import Browser, Person
from support.client import Client
from support.server import RunningServer

SCRIPT = "<script>alert(1)</script>"
PAT = {
    "first_name": "Pat", "last_name": "Lee", "email": "pat@example.com", "role": "Sister", "contact_priority": 1,
    "permissions": ["view_budget", "view_invoices"], "phone_number": "0400 111 111", "note": "Rings\nback",
    "secondary_email": "p@example.net", "secondary_phone_number": "03 6200 0000", "address_line_1": "1 Example St",
    "city": "Hobart", "state": "TAS", "postcode": "7000",
}  # fmt: skip
PLAIN = [name for name in PAT if name not in ("email", "permissions")]


@pytest.fixture
def client(server: RunningServer, new_key: Callable[..., str], plan_manager_id: UUID) -> Iterator[Client]:
    made = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    yield made
    made.http.close()


@pytest.fixture
def ann(client: Client) -> str:
    """The id of a participant."""
    return client.made("/participants", {"first_name": "Ann", "last_name": "Lee", "email": "ann@example.com"})["id"]


@pytest.fixture
def here(ann: str) -> str:
    return f"/console/participants/{ann}"


@pytest.fixture
def team(client: Client, ann: str) -> Callable[..., Any]:
    """Makes a member by the API, or reads them all."""

    def work(**body: Any) -> Any:
        path = f"/participants/{ann}/team-members"
        return client.made(path, body)["id"] if body else client.get(path).json()["data"]

    return work


def held(member: dict[str, Any]) -> list[str]:
    return [each["name"] for each in member["permissions"]]


def test_a_member_is_added_with_every_field(server: RunningServer, owner: Browser, here: str, team: Any) -> None:
    assert "Nobody is on this team yet." in owner.get(here).text
    answer = owner.send(f"{here}/team-members", form_on(owner, f"{here}/team-members/new") | PAT)
    assert (answer.status_code, answer.headers["location"]) == (303, here)
    page = owner.get(here).text
    assert ("Pat Lee is on the team now." in page, "1: primary" in page) == (True, True)
    assert "View budget, View invoices" in page
    (member,) = team()
    assert {name: member[name] for name in (*PLAIN, "email")} == {name: PAT[name] for name in (*PLAIN, "email")}
    assert held(member) == PAT["permissions"]
    assert events_of(server, member["id"]) == ["team_member.created by user Robin Hale"]
    page = owner.get(f"{here}/team-members/{member['id']}").text
    assert all(f"<dd>{unescape(text)}</dd>" in page for text in ("1: primary contact", "Sister", "0400 111 111"))


def test_a_member_without_an_email_has_no_access(owner: Browser, here: str, team: Any) -> None:
    answer = owner.send(f"{here}/team-members", {"last_name": "Ray", "permissions": "view_budget"})
    assert (answer.status_code, "Permissions: a member without an email can have" in answer.text) == (422, True)
    assert 'value="view_budget" checked' in answer.text
    assert owner.send(f"{here}/team-members", {"last_name": "Ray"}).status_code == 303
    (member,) = team()
    assert (held(member), member["email"]) == (["no_access"], None)
    path = f"{here}/team-members/{member['id']}/edit"
    assert "no access, as there is no email" in owner.get(path).text
    assert owner.send(path, form_on(owner, path) | {"role": "Carer"}).status_code == 303
    assert (team()[0]["role"], held(team()[0])) == ("Carer", ["no_access"])


@pytest.mark.parametrize(
    "form, told",
    [
        ({}, "First name: at least one of"),
        ({"email": "x"}, "Email: must be an email address"),
        ({"email": "ANN@example.com"}, "Email: must differ from the participant&#39;s own email"),
        ({"first_name": "x", "contact_priority": "3"}, "Contact priority: must be one of 1, 2"),
        ({"first_name": "x", "state": "tas"}, "State: must be one of ACT"),
        ({"email": "b@example.com", "permissions": ["view_all"]}, "must be one of view_budget"),
    ],
)
def test_a_wrong_field_shows_the_form_again(
    owner: Browser, here: str, team: Any, form: dict[str, Any], told: str
) -> None:
    answer = owner.send(f"{here}/team-members", {"city": "Burnie", **form})
    assert (answer.status_code, told in answer.text) == (422, True), answer.text
    assert 'name="city" type="text" value="Burnie"' in answer.text
    assert team() == []


def test_no_access_outweighs_the_others(owner: Browser, here: str, team: Any) -> None:
    form = {"email": "pat@example.com", "permissions": ["view_budget", "no_access"]}
    assert owner.send(f"{here}/team-members", form).status_code == 303
    assert held(team()[0]) == ["no_access"]
    assert "outweighs the others" in owner.get(f"{here}/team-members/new").text


def test_permissions_and_priority_are_edited(server: RunningServer, owner: Browser, here: str, team: Any) -> None:
    path = f"{here}/team-members/{team(**PAT)}/edit"
    assert owner.send(path, form_on(owner, path)).headers["location"] == here
    form = form_on(owner, path) | {
        "permissions": ["view_documents", "approve_invoices"],
        "contact_priority": "",
        "city": "",
    }
    assert owner.send(path, form).status_code == 303
    (member,) = team()
    assert (held(member), member["contact_priority"]) == (["approve_invoices", "view_documents"], None)
    kept = {**PAT, "contact_priority": None, "city": None}
    assert {name: member[name] for name in PLAIN} == {name: kept[name] for name in PLAIN}
    assert [each.split(" by ")[0] for each in events_of(server, member["id"])] == [
        "team_member.created", "team_member.updated",
    ]  # fmt: skip
    form = form_on(owner, path)
    del form["permissions"]
    assert owner.send(path, form).status_code == 303
    assert held(team()[0]) == ["no_access"]


def test_a_priority_that_is_taken_is_told_with_its_holder(owner: Browser, here: str, team: Any) -> None:
    pat, kim = team(**PAT), team(first_name="Kim", last_name="<i>Ray")
    team(email="sam@example.com", contact_priority=2)
    path = f"{here}/team-members/{kim}/edit"
    answer = owner.send(path, form_on(owner, path) | {"contact_priority": "1", "role": "Aunt"})
    assert (answer.status_code, "Contact priority: Pat Lee holds it" in answer.text) == (409, True)
    assert (pat in answer.text, 'value="Aunt"' in answer.text) == (False, True)
    answer = owner.send(f"{here}/team-members", {"first_name": "Lou", "contact_priority": "2"})
    assert (answer.status_code, "Contact priority: sam@example.com holds it" in answer.text) == (409, True)
    assert '<option value="2" selected>' in answer.text
    assert [(each["first_name"], each["contact_priority"]) for each in team()] == [("Pat", 1), ("Kim", None), (None, 2)]


def test_an_email_that_is_on_the_team_is_told_with_its_name(owner: Browser, here: str, team: Any) -> None:
    team(**PAT)
    answer = owner.send(f"{here}/team-members", {"email": "PAT@example.com", "first_name": "Patricia"})
    assert (answer.status_code, "Email: Pat Lee is on this team with it already" in answer.text) == (409, True)
    assert len(team()) == 1


def test_another_s_change_is_not_overwritten_unseen(
    owner: Browser, client: Client, ann: str, here: str, team: Any
) -> None:
    member = team(**PAT)
    path = f"{here}/team-members/{member}/edit"
    form = form_on(owner, path)
    client.put(f"/participants/{ann}/team-members/{member}", {"permissions": ["view_documents", "view_budget"]})
    answer = owner.send(path, form | {"city": "Burnie"})
    assert (answer.status_code, "changed by somebody else meanwhile" in answer.text) == (409, True)
    assert "Permissions: view_budget, view_documents" in answer.text
    assert (team()[0]["city"], held(team()[0])) == ("Hobart", ["view_budget", "view_documents"])


def test_a_member_is_removed(server: RunningServer, owner: Browser, here: str, team: Any) -> None:
    member = team(**PAT)
    path = f"{here}/team-members/{member}/remove"
    assert "Pat Lee is no longer on the team of Ann Lee" in owner.get(path).text
    assert owner.send(path).headers["location"] == here
    assert "Pat Lee is off the team." in owner.get(here).text
    assert team() == []
    assert events_of(server, member)[-1] == "team_member.deleted by user Robin Hale"
    assert owner.send(path).status_code == 404


def test_a_large_team_goes_on_page_by_page(owner: Browser, here: str, team: Any) -> None:
    for number in range(60):
        team(first_name=f"N{number:02}.")
    first = owner.get(here).text
    assert [f"N{number:02}." in first for number in (0, 49, 50)] == [True, True, False]
    onward = unescape(first.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = owner.get(onward).text
    assert [f"N{number:02}." in second for number in (49, 50, 59)] == [False, True, True]


def test_a_viewer_reads_and_changes_nothing(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], here: str, team: Any
) -> None:
    viewer, member = new_browser(new_person("viewer")), team(**PAT)
    assert ("Pat Lee" in viewer.get(here).text, "Remove" in viewer.get(here).text) == (True, False)
    page = viewer.get(f"{here}/team-members/{member}").text
    assert ("p@example.net" in page, "Edit" in page, "Remove" in page) == (True, False, False)
    for path in ("new", f"{member}/edit", f"{member}/remove"):
        assert viewer.get(f"{here}/team-members/{path}").status_code == 403
    for path in ("", f"/{member}/edit", f"/{member}/remove"):
        assert viewer.send(f"{here}/team-members{path}", {"first_name": "x"}).status_code == 403
    assert [each["first_name"] for each in team()] == ["Pat"]


def test_a_member_of_another_plan_manager_or_participant_is_not_there(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], new_plan_manager: Callable[[], UUID],
    owner: Browser, client: Client, here: str, team: Any,
) -> None:  # fmt: skip
    other, member = new_browser(new_person("owner", new_plan_manager())), team(**PAT)
    second = client.made("/participants", {"first_name": "Bo"})["id"]
    for browser, base in ((other, here), (owner, f"/console/participants/{second}")):
        for path in (f"/{member}", f"/{member}/edit", f"/{member}/remove"):
            assert browser.get(f"{base}/team-members{path}").status_code == 404
        for path in (f"/{member}/edit", f"/{member}/remove"):
            assert browser.send(f"{base}/team-members{path}", {"was": "x", "first_name": "x"}).status_code == 404
    assert other.get(f"{here}/team-members/new").status_code == 404
    assert other.send(f"{here}/team-members", {"first_name": "x"}).status_code == 404
    assert [each["first_name"] for each in team()] == ["Pat"]


def test_texts_are_shown_as_they_are(owner: Browser, here: str, team: Any) -> None:
    names = ("first_name", "last_name", "role", "phone_number", "note", "secondary_email", "address_line_1", "city")
    member = team(**dict.fromkeys(names, SCRIPT))
    for path in (here, *(f"{here}/team-members/{member}{step}" for step in ("", "/edit", "/remove"))):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
