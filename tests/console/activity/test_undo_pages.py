"""Undoing changes: what an event changed is set back, and nothing is overwritten without a choice."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.cluster import execute
from support.console import Account, Browser
from support.form_helpers import event_summaries, form_fields
from support.importing import import_records
from support.server import RunningServer

PARTICIPANTS = "/console/participants"


@pytest.fixture
def person(client: Client) -> str:
    values = {"first_name": "Ann", "last_name": "Lee", "city": "Hobart", "postcode": "7000", "status": "Lead"}
    return client.create("/participants", values)["id"]


def last_event(server: RunningServer, resource_id: str, type_: str) -> str:
    """The path of the page that undoes the latest event of a type."""
    statement = "select id from events where resource_id = $1 and type = $2 order by id desc limit 1"
    return f"/console/activity/{server.run(server.db.one(UUID, statement, resource_id, type_))}/undo"


def get_person(client: Client, id_: str) -> dict[str, Any]:
    return client.get(f"/participants/{id_}").json()


def undo(browser: Browser, path: str, **choices: str) -> Any:
    fields = {name: texts[0] for name, texts in form_fields(browser, path).items() if texts}
    chosen = {name.replace("choice_", "choice-", 1): choice for name, choice in choices.items()}
    return browser.submit(path, fields | chosen)


def test_an_update_is_undone_as_a_new_event(server: RunningServer, owner: Browser, client: Client, person: str) -> None:
    client.put(f"/participants/{person}", {"city": "Perth", "postcode": "6000", "date_of_birth": "1975-06-22"})
    path = last_event(server, person, "participant.updated")
    page = owner.get(path).text
    for text in ("Undo this change?", "Perth", "Hobart", "22 Jun 1975", "Ann Lee"):
        assert text in page
    response = undo(owner, path)
    assert (response.status_code, response.headers["location"]) == (303, f"{PARTICIPANTS}/{person}/timeline")
    after = get_person(client, person)
    assert (after["city"], after["postcode"], after["date_of_birth"]) == ("Hobart", "7000", None)
    shown = owner.get(response.headers["location"]).text
    assert "Undone: Date of birth, Postcode, Suburb." in shown
    assert event_summaries(server, person) == [
        "participant.created by api_key test", "participant.updated by api_key test",
        "participant.updated by user Robin Hale",
    ]  # fmt: skip
    again = last_event(server, person, "participant.updated")
    assert f'href="{again}">Undo</a>' in shown
    assert undo(owner, again).status_code == 303
    assert get_person(client, person)["city"] == "Perth"


def test_a_field_that_has_changed_since_needs_a_choice(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    client.put(f"/participants/{person}", {"city": "Perth", "postcode": "6000"})
    path = last_event(server, person, "participant.updated")
    client.put(f"/participants/{person}", {"city": "Broome"})
    page = owner.get(path).text
    assert "Some values have changed since." in page
    assert [text in page for text in ("Hobart", "Perth", "Broome")] == [True, True, True]
    without = undo(owner, path)
    assert (without.status_code, "Suburb has changed since: choose a value" in unescape(without.text)) == (422, True)
    assert get_person(client, person)["postcode"] == "6000"
    for choice, city in (("now", "Broome"), ("event", "Perth"), ("before", "Hobart")):
        assert undo(owner, path, choice_city=choice).status_code == 303
        assert (get_person(client, person)["city"], get_person(client, person)["postcode"]) == (city, "7000")
        client.put(f"/participants/{person}", {"city": "Broome", "postcode": "6000"})


def test_a_change_between_page_and_form_is_not_overwritten(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    client.put(f"/participants/{person}", {"city": "Perth"})
    path = last_event(server, person, "participant.updated")
    fields = {name: texts[0] for name, texts in form_fields(owner, path).items()}
    client.put(f"/participants/{person}", {"city": "Broome"})
    response = owner.submit(path, fields)
    assert (response.status_code, "Someone else changed the record while you were editing." in response.text) == (
        409,
        True,
    )
    assert "Broome" in response.text
    assert get_person(client, person)["city"] == "Broome"


def test_an_undo_ignores_no_blocking_warning(server: RunningServer, owner: Browser, client: Client) -> None:
    invoice = client.create("/invoices", {"line_items": [{"total_price": 10}]})["id"]
    page = f"/console/invoices/{invoice}/warnings"

    def ignored() -> list[str]:
        return client.get(f"/invoices/{invoice}").json()["state_management"]["ignored_errors"]

    for code in ("missing_participant", "check_dates"):
        assert owner.submit(f"{page}/{code}/ignore", {"reason": "Known from the provider"}).status_code == 303
    for code, status, expected in (
        ("missing_participant", 409, ["check_dates"]),
        ("check_dates", 303, ["check_dates"]),
    ):
        assert owner.submit(f"{page}/{code}/warn").status_code == 303
        response = undo(owner, last_event(server, invoice, "invoice.warning_restored"))
        assert (response.status_code, ignored()) == (status, expected)
        assert ("Ignore it on the page of the invoice, with a reason." in response.text) == (status == 409)


def test_references_permissions_and_flags_are_undone(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    manager = owner.submit("/console/account-managers", {"first_name": "Mia", "last_name": "Chen"})
    assert manager.status_code == 303
    [found] = client.get("/account-managers").json()["data"]
    client.put(f"/participants/{person}", {"account_manager_id": found["id"], "approval_required": True})
    path = last_event(server, person, "participant.updated")
    assert "Mia Chen" in owner.get(path).text
    undo(owner, path)
    after = get_person(client, person)
    assert (after["account_manager"]["id"], after["approval_required"]) == (None, False)
    team = f"/participants/{person}/team-members"
    member = client.create(team, {"first_name": "Pat", "email": "pat@example.com", "permissions": ["view_budget"]})
    client.put(f"{team}/{member['id']}", {"permissions": ["view_invoices", "approve_invoices"], "role": "Nominee"})
    path = last_event(server, member["id"], "team_member.updated")
    assert "Approve invoices" in owner.get(path).text
    assert undo(owner, path).status_code == 303
    [shown] = client.get(team).json()["data"]
    assert ([each["name"] for each in shown["permissions"]], shown["role"]) == (["view_budget"], None)


def test_a_swap_of_contacts_is_undone(server: RunningServer, owner: Browser, client: Client, person: str) -> None:
    team = f"/participants/{person}/team-members"
    first = client.create(team, {"first_name": "First", "contact_priority": 1})["id"]
    second = client.create(team, {"first_name": "Second", "contact_priority": 2})["id"]
    owner.submit(f"{PARTICIPANTS}/{person}/team-members/{second}/make-primary")
    path = last_event(server, second, "team_member.updated")
    assert "the two swap" in owner.get(path).text
    assert undo(owner, path).status_code == 303
    priorities = {each["id"]: each["contact_priority"] for each in client.get(team).json()["data"]}
    assert priorities == {first: 1, second: 2}


def test_small_records_are_undone(server: RunningServer, owner: Browser, client: Client) -> None:
    note = client.create("/note-types", {"note_type": "Visit", "badge_color": "teal"})["id"]
    client.put(f"/note-types/{note}", {"note_type": "Call"})
    assert undo(owner, last_event(server, str(note), "note_type.updated")).status_code == 303
    assert client.get(f"/note-types/{note}").json()["note_type"] == "Visit"
    provider = client.create("/providers", {"entity_name": "Banksia Care", "active": True})["id"]
    client.put(f"/providers/{provider}", {"active": False, "abn": "26502811788"})
    response = undo(owner, last_event(server, provider, "provider.updated"))
    assert response.headers["location"] == f"/console/providers/{provider}"
    after = client.get(f"/providers/{provider}").json()
    assert (after["active"], after["abn"]) == (True, None)
    owner.submit("/console/account-managers", {"first_name": "Mia"})
    [manager] = client.get("/account-managers").json()["data"]
    owner.submit(f"/console/account-managers/{manager['id']}/deactivate")
    assert undo(owner, last_event(server, manager["id"], "account_manager.updated")).status_code == 303
    assert client.get(f"/account-managers/{manager['id']}").json()["active"] is True


def test_a_deleted_account_manager_is_not_changed(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    owner.submit("/console/account-managers", {"first_name": "Mia"})
    [manager] = client.get("/account-managers").json()["data"]
    owner.submit(f"/console/account-managers/{manager['id']}/deactivate")
    path = last_event(server, manager["id"], "account_manager.updated")
    deleted = {"id": manager["id"], "deleted": True}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [deleted])).errors
    assert "The record no longer exists." in owner.get(path).text
    assert owner.submit(path).status_code == 404


def test_an_account_manager_of_the_operator_is_not_changed(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    owner.submit("/console/account-managers", {"first_name": "Mia"})
    [manager] = client.get("/account-managers").json()["data"]
    owner.submit(f"/console/account-managers/{manager['id']}/deactivate")
    path = last_event(server, manager["id"], "account_manager.updated")
    staff = {"id": manager["id"], "email": "mia@plankeeper.example"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [staff])).errors
    assert "The record no longer exists." in owner.get(path).text
    assert owner.submit(path).status_code == 404


def test_a_creation_leads_to_the_delete_page_and_a_deletion_to_the_trash(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    created = last_event(server, person, "participant.created")
    assert owner.get(created).headers["location"] == f"{PARTICIPANTS}/{person}/delete"
    member = client.create(f"/participants/{person}/team-members", {"first_name": "Pat"})["id"]
    added = last_event(server, member, "team_member.created")
    assert owner.get(added).headers["location"] == f"{PARTICIPANTS}/{person}/team-members/{member}/remove"
    owner.submit(f"{PARTICIPANTS}/{person}/delete")
    entry = owner.get(last_event(server, person, "participant.deleted")).headers["location"]
    assert re.fullmatch(r"/console/trash/[0-9a-f-]{36}", entry)
    assert owner.get(last_event(server, member, "team_member.deleted")).headers["location"] == entry
    assert "The record no longer exists." in owner.get(created).text
    assert owner.submit(f"{entry}/restore").status_code == 303
    assert "The record exists again." in owner.get(last_event(server, person, "participant.deleted")).text
    client.delete(f"/participants/{person}")
    assert "isn’t in the trash" in owner.get(last_event(server, person, "participant.deleted")).text
    note = client.create("/note-types", {"note_type": "Visit"})["id"]
    assert owner.get(last_event(server, str(note), "note_type.created")).headers["location"].endswith(f"/{note}/delete")


def test_a_removed_team_member_is_added_again(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    team = f"/participants/{person}/team-members"
    values = {"first_name": "Pat", "email": "pat@example.com", "contact_priority": 1, "permissions": ["view_budget"]}
    member = client.create(team, values)
    removed = owner.submit(f"{PARTICIPANTS}/{person}/team-members/{member['id']}/remove")
    path = last_event(server, member["id"], "team_member.deleted")
    assert f'<a href="{path}">Undo</a>' in owner.get(removed.headers["location"]).text
    other = client.create(team, {"first_name": "Kim", "contact_priority": 1})["id"]
    page = owner.get(path).text
    assert ("Add Pat again?" in page, "View budget" in page) == (True, True)
    response = owner.submit(path)
    assert response.status_code == 303
    shown = owner.get(response.headers["location"]).text
    assert "Pat is on the team again. Pat isn’t the primary contact: Kim is." in shown
    after = {each["id"]: each for each in client.get(team).json()["data"]}
    assert (after[other]["contact_priority"], after[member["id"]]["contact_priority"]) == (1, None)
    assert [each["name"] for each in after[member["id"]]["permissions"]] == ["view_budget"]
    again = owner.submit(path)
    assert (again.status_code, "The record exists again." in again.text) == (409, True)


def test_erased_values_are_not_undone(server: RunningServer, owner: Browser, client: Client, person: str) -> None:
    client.put(f"/participants/{person}", {"reason_for_leaving": "moved", "city": "Perth"})
    path = last_event(server, person, "participant.updated")
    event_id = path.split("/")[3]
    execute(
        server.dsn,
        'update events set previous = (previous::jsonb || \'{"reason_for_leaving": "[erased]"}\')::json'
        f" where id = '{event_id}'",
    )
    assert "Can’t be undone: the value was erased" in owner.get(path).text
    assert undo(owner, path).status_code == 303
    after = get_person(client, person)
    assert (after["reason_for_leaving"], after["city"]) == ("moved", "Hobart")


def test_other_events_can_not_be_undone(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    statement = "select id from events where plan_manager_id = $1 and type = 'account.joined' limit 1"
    event_id = server.run(server.db.one(UUID, statement, plan_manager_id))
    page = owner.get(f"/console/activity/{event_id}").text
    assert f"/console/activity/{event_id}/undo" not in page
    path = f"/console/activity/{event_id}/undo"
    for response in (owner.get(path), owner.submit(path)):
        assert "This kind of event can’t be undone." in response.text


def test_viewers_and_strangers_undo_nothing(
    server: RunningServer,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
    client: Client,
    person: str,
) -> None:
    client.put(f"/participants/{person}", {"city": "Perth"})
    path = last_event(server, person, "participant.updated")
    viewer, stranger = new_browser(new_account("viewer")), new_browser(new_account("owner", new_plan_manager()))
    assert ">Undo<" not in viewer.get(path.removesuffix("/undo")).text
    assert [viewer.get(path).status_code, viewer.submit(path).status_code] == [403, 403]
    assert [stranger.get(path).status_code, stranger.submit(path).status_code] == [404, 404]
    assert viewer.get(f"{PARTICIPANTS}/{person}/timeline").text.count("/undo") == 0
    assert get_person(client, person)["city"] == "Perth"
