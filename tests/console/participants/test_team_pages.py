"""Team members: the tab of the participant's team, add, look at, edit, remove."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.console import Account, Browser, main_text
from support.form_helpers import event_summaries, form_fields, require_linked_errors, save_anyway, shown_warnings
from support.server import RunningServer
from support.sweeps import sweep

SCRIPT = "<script>alert(1)</script>"
FULL_MEMBER = {
    "first_name": "Pat", "last_name": "Lee", "email": "pat@example.com", "role": "Sister", "contact_priority": 1,
    "permissions": ["view_budget", "view_invoices"], "phone_number": "0400 111 111", "note": "Rings\nback",
    "secondary_email": "p@example.net", "secondary_phone_number": "03 6200 0000", "address_line_1": "1 Example St",
    "city": "Hobart", "state": "TAS", "postcode": "7000",
}  # fmt: skip
TEXT_FIELDS = [name for name in FULL_MEMBER if name not in ("email", "permissions")]


@pytest.fixture
def participant_id(client: Client) -> str:
    """The id of a participant."""
    return client.create("/participants", {"first_name": "Ann", "last_name": "Lee", "email": "ann@example.com"})["id"]


@pytest.fixture
def page_path(participant_id: str) -> str:
    return f"/console/participants/{participant_id}"


@pytest.fixture
def team_path(page_path: str) -> str:
    """The tab of the team, where the forms lead back to."""
    return f"{page_path}/team"


@pytest.fixture
def team_api(client: Client, participant_id: str) -> Callable[..., Any]:
    """Makes a member by the API, or reads them all."""

    def create_or_list(**body: Any) -> Any:
        path = f"/participants/{participant_id}/team-members"
        return client.create(path, body)["id"] if body else client.get(path).json()["data"]

    return create_or_list


def granted_permissions(page: str) -> list[str]:
    """The permissions that the grid shows as granted."""
    return re.findall(r'data-label="([^"]+)" class="tick-cell">(?:(?!</td>).)*>Yes<', page)


def permission_names(member: dict[str, Any]) -> list[str]:
    return [each["name"] for each in member["permissions"]]


def test_a_member_is_added_with_every_field(
    server: RunningServer, owner: Browser, page_path: str, team_path: str, team_api: Any
) -> None:
    assert "There are no team members yet." in owner.get(team_path).text
    response = owner.submit(
        f"{page_path}/team-members", form_fields(owner, f"{page_path}/team-members/new") | FULL_MEMBER
    )
    assert (response.status_code, response.headers["location"]) == (303, team_path)
    page = owner.get(team_path).text
    assert ("Pat Lee added to the team." in page, ">Primary contact<" in page) == (True, True)
    assert granted_permissions(page) == ["View budget", "View invoices"]
    (member,) = team_api()
    assert {name: member[name] for name in (*TEXT_FIELDS, "email")} == {
        name: FULL_MEMBER[name] for name in (*TEXT_FIELDS, "email")
    }
    assert permission_names(member) == FULL_MEMBER["permissions"]
    assert event_summaries(server, member["id"]) == ["team_member.created by user Robin Hale"]
    page = owner.get(f"{page_path}/team-members/{member['id']}").text
    assert all(f"<dd>{unescape(text)}</dd>" in page for text in ("Primary contact", "Sister", "0400 111 111"))


def test_a_member_without_an_email_has_no_access(owner: Browser, page_path: str, team_api: Any) -> None:
    response = owner.submit(f"{page_path}/team-members", {"last_name": "Ray", "permissions": "view_budget"})
    assert (response.status_code, require_linked_errors(response.text)) == (422, ["email"])
    assert "Email is required for permissions other than “No access”." in response.text
    assert 'value="view_budget" checked' in response.text
    assert owner.submit(f"{page_path}/team-members", {"last_name": "Ray"}).status_code == 303
    (member,) = team_api()
    assert (permission_names(member), member["email"]) == (["no_access"], None)
    path = f"{page_path}/team-members/{member['id']}/edit"
    assert "no access, because the team member has no email" in owner.get(path).text
    assert owner.submit(path, form_fields(owner, path) | {"role": "Carer"}).status_code == 303
    assert (team_api()[0]["role"], permission_names(team_api()[0])) == ("Carer", ["no_access"])


@sweep(
    "form, message",
    [
        ({}, "Enter a first name, a last name or an email."),
        ({"email": "x"}, "Email must be an email address"),
        ({"email": "ANN@example.com"}, "Email must differ from the participant’s own email"),
        ({"first_name": "x", "contact_priority": "3"}, "Contact priority must be one of 1, 2"),
        ({"first_name": "x", "state": "tas"}, "State must be one of ACT"),
        ({"email": "b@example.com", "permissions": ["view_all"]}, "must be one of view_budget"),
    ],
)
def test_an_invalid_field_shows_the_form_again(
    owner: Browser, page_path: str, team_api: Any, form: dict[str, Any], message: str
) -> None:
    response = owner.submit(f"{page_path}/team-members", {"city": "Burnie", **form})
    assert (response.status_code, message in response.text) == (422, True), response.text
    assert 'name="city" type="text" value="Burnie"' in response.text
    assert team_api() == []


def test_no_access_is_an_alternative_to_permissions(owner: Browser, page_path: str, team_api: Any) -> None:
    path, pat = f"{page_path}/team-members", {"email": "pat@example.com"}
    contradiction = owner.submit(path, pat | {"access": "none", "permissions": ["view_budget"]})
    assert (contradiction.status_code, require_linked_errors(contradiction.text)) == (422, ["access"])
    nothing = owner.submit(path, pat | {"access": "some"})
    assert (nothing.status_code, require_linked_errors(nothing.text)) == (422, ["permissions"])
    assert team_api() == []
    assert owner.submit(path, pat | {"access": "none"}).status_code == 303
    assert permission_names(team_api()[0]) == ["no_access"]
    edit_path = f"{path}/{team_api()[0]['id']}/edit"
    form = form_fields(owner, edit_path)
    assert form["access"] == ["none"]
    assert owner.submit(edit_path, form | {"access": "some", "permissions": ["view_budget"]}).status_code == 303
    assert permission_names(team_api()[0]) == ["view_budget"]
    assert form_fields(owner, edit_path)["access"] == ["some"]


def test_all_faults_are_shown_at_once(owner: Browser, page_path: str, team_api: Any) -> None:
    team_api(**FULL_MEMBER)
    form = {
        "email": "PAT@example.com", "contact_priority": "1", "access": "some", "state": "XX",
        "phone_number": "abc", "secondary_email": "nobody",
    }  # fmt: skip
    response = owner.submit(f"{page_path}/team-members", form)
    assert response.status_code == 422
    assert require_linked_errors(response.text) == ["email", "contact_priority", "permissions", "state"]
    assert [f'<a href="#{name}">' in response.text for name in ("phone_number", "secondary_email")] == [True, True]
    assert 'value="PAT@example.com"' in response.text


def test_roles_are_suggested(owner: Browser, page_path: str, team_api: Any) -> None:
    team_api(first_name="Bo", role="Kinship <carer>")
    page = owner.get(f"{page_path}/team-members/new").text
    assert 'list="role-suggestions"' in page
    for role in ("Plan nominee", "Kinship &lt;carer&gt;"):
        assert f'<option value="{role}"></option>' in page


def test_a_right_to_approve_without_effect_is_pointed_out(
    owner: Browser, client: Client, page_path: str, participant_id: str
) -> None:
    path, note = f"{page_path}/team-members/new", "“Approve invoices” has no effect now"
    assert note in owner.get(path).text
    client.put(f"/participants/{participant_id}", {"approval_required": True})
    assert note not in owner.get(path).text


def test_permissions_and_priority_are_edited(
    server: RunningServer, owner: Browser, page_path: str, team_path: str, team_api: Any
) -> None:
    path = f"{page_path}/team-members/{team_api(**FULL_MEMBER)}/edit"
    assert owner.submit(path, form_fields(owner, path)).headers["location"] == team_path
    form = form_fields(owner, path) | {
        "permissions": ["view_documents", "approve_invoices"],
        "contact_priority": "",
        "city": "",
        "access": "some",
    }
    response = owner.submit(path, form)
    assert (response.status_code, len(shown_warnings(response.text))) == (422, 1)
    assert "People can’t approve what they can’t see." in response.text
    assert save_anyway(owner, path, form).status_code == 303
    (member,) = team_api()
    assert (permission_names(member), member["contact_priority"]) == (["approve_invoices", "view_documents"], None)
    stored = {**FULL_MEMBER, "contact_priority": None, "city": None}
    assert {name: member[name] for name in TEXT_FIELDS} == {name: stored[name] for name in TEXT_FIELDS}
    assert [each.split(" by ")[0] for each in event_summaries(server, member["id"])] == [
        "team_member.created", "team_member.updated",
    ]  # fmt: skip
    form = form_fields(owner, path) | {"access": "none"}
    del form["permissions"]
    assert owner.submit(path, form).status_code == 303
    assert permission_names(team_api()[0]) == ["no_access"]


def test_a_taken_priority_names_its_holder(owner: Browser, page_path: str, team_api: Any) -> None:
    """For a form that was filled before the priority was given away."""
    kim = team_api(first_name="Kim", last_name="<i>Ray")
    path, new_path = f"{page_path}/team-members/{kim}/edit", f"{page_path}/team-members"
    form, new_form = form_fields(owner, path), form_fields(owner, f"{new_path}/new")
    team_api(**FULL_MEMBER)
    team_api(email="sam@example.com", contact_priority=2)
    response = owner.submit(path, form | {"contact_priority": "1", "role": "Aunt"})
    assert (response.status_code, require_linked_errors(response.text)) == (422, ["contact_priority"])
    assert "Contact priority is used by Pat Lee now: check the choice, and save again." in response.text
    assert ('value="Aunt"' in response.text, "Primary contact, instead of Pat Lee" in response.text) == (True, True)
    response = owner.submit(new_path, new_form | {"first_name": "Lou", "contact_priority": "2"})
    assert (response.status_code, "Contact priority is used by sam@example.com now" in response.text) == (422, True)
    assert 'value="2" checked' in response.text
    names = [(each["first_name"], each["contact_priority"]) for each in team_api()]
    assert names == [("Kim", None), ("Pat", 1), (None, 2)]


def test_an_email_already_on_the_team_names_its_member(owner: Browser, page_path: str, team_api: Any) -> None:
    team_api(**FULL_MEMBER)
    response = owner.submit(f"{page_path}/team-members", {"email": "PAT@example.com", "first_name": "Patricia"})
    assert (response.status_code, "Email is already used by Pat Lee on this team" in response.text) == (
        422,
        True,
    )
    assert len(team_api()) == 1


def test_a_concurrent_change_is_not_overwritten(
    owner: Browser, client: Client, participant_id: str, page_path: str, team_api: Any
) -> None:
    member = team_api(**FULL_MEMBER)
    path = f"{page_path}/team-members/{member}/edit"
    form = form_fields(owner, path)
    client.put(
        f"/participants/{participant_id}/team-members/{member}", {"permissions": ["view_documents", "view_budget"]}
    )
    response = owner.submit(path, form | {"city": "Burnie"})
    assert (response.status_code, "Someone else changed this" in response.text) == (409, True)
    assert "Permissions: view_budget, view_documents" in response.text
    assert (team_api()[0]["city"], permission_names(team_api()[0])) == ("Hobart", ["view_budget", "view_documents"])


def test_a_member_is_removed(
    server: RunningServer, owner: Browser, page_path: str, team_path: str, team_api: Any
) -> None:
    member = team_api(**FULL_MEMBER)
    path = f"{page_path}/team-members/{member}/remove"
    assert "This removes Pat Lee from the team of Ann Lee" in owner.get(path).text
    assert owner.submit(path).headers["location"] == team_path
    assert "Pat Lee removed from the team." in owner.get(team_path).text
    assert team_api() == []
    assert event_summaries(server, member)[-1] == "team_member.deleted by user Robin Hale"
    assert owner.submit(path).status_code == 404


def test_a_large_team_is_paginated(owner: Browser, team_path: str, team_api: Any) -> None:
    for number in range(60):
        team_api(first_name=f"N{number:02}.")
    first = owner.get(team_path).text
    assert [f"N{number:02}." in first for number in (0, 49, 50)] == [True, True, False]
    onward = unescape(first.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = owner.get(onward).text
    assert [f"N{number:02}." in second for number in (49, 50, 59)] == [False, True, True]


def test_a_viewer_sees_no_links_to_changes(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], page_path: str, team_path: str,
    team_api: Any,
) -> None:  # fmt: skip
    viewer, member = new_browser(new_account("viewer")), team_api(**FULL_MEMBER)
    assert ("Pat Lee" in viewer.get(team_path).text, "Remove" in viewer.get(team_path).text) == (True, False)
    page = viewer.get(f"{page_path}/team-members/{member}").text
    assert ("p@example.net" in main_text(page), "/edit" in page, "Remove" in page) == (True, False, False)


def test_a_member_of_another_plan_manager_or_participant_is_not_found(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID],
    owner: Browser, client: Client, page_path: str, team_api: Any,
) -> None:  # fmt: skip
    other, member = new_browser(new_account("owner", new_plan_manager())), team_api(**FULL_MEMBER)
    second = client.create("/participants", {"first_name": "Bo"})["id"]
    for browser, base in ((other, page_path), (owner, f"/console/participants/{second}")):
        for path in (f"/{member}", f"/{member}/edit", f"/{member}/remove"):
            assert browser.get(f"{base}/team-members{path}").status_code == 404
        for path in (f"/{member}/edit", f"/{member}/remove"):
            assert browser.submit(f"{base}/team-members{path}", {"was": "x", "first_name": "x"}).status_code == 404
    assert other.get(f"{page_path}/team-members/new").status_code == 404
    assert other.submit(f"{page_path}/team-members", {"first_name": "x"}).status_code == 404
    assert [each["first_name"] for each in team_api()] == ["Pat"]


def test_texts_are_shown_verbatim(owner: Browser, page_path: str, team_path: str, team_api: Any) -> None:
    names = ("first_name", "last_name", "role", "phone_number", "note", "secondary_email", "address_line_1", "city")
    member = team_api(**dict.fromkeys(names, SCRIPT))
    for path in (team_path, *(f"{page_path}/team-members/{member}{step}" for step in ("", "/edit", "/remove"))):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
