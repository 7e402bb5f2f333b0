"""The trash: deleted participants and providers are listed there, restored with their teams, or deleted permanently."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from plankeeper.events.retention import AgeRetention
from plankeeper.resources.trash import store as trash_store
from support.client import Client
from support.cluster import execute
from support.console import Account, Browser
from support.form_helpers import event_summaries
from support.importing import import_records
from support.resources import without_updated_at
from support.server import RunningServer

TRASH = "/console/trash"
PARTICIPANTS, PROVIDERS = "/console/participants", "/console/providers"
PERSON = {"first_name": "Ann", "last_name": "Lee", "participant_number": "430123456", "date_of_birth": "1975-06-22"}
NOMINEE = {
    "first_name": "Deirdre", "email": "deirdre@example.com", "contact_priority": 1, "role": "Nominee",
    "permissions": ["approve_invoices", "view_invoices"],
}  # fmt: skip


@pytest.fixture
def person(client: Client) -> str:
    """The id of a participant with two team members."""
    id_ = client.create("/participants", PERSON)["id"]
    client.create(f"/participants/{id_}/team-members", NOMINEE)
    client.create(f"/participants/{id_}/team-members", {"first_name": "Nils", "note": "Calls on Mondays"})
    return id_


def delete(browser: Browser, path: str) -> str:
    """Delete a record in the console, and return the page of its entry in the trash."""
    response = browser.submit(f"{path}/delete")
    assert response.status_code == 303
    page = browser.get(response.headers["location"]).text
    [undo] = re.findall(r'moved to the trash\.</span> <a href="(/console/trash/[0-9a-f-]{36})">Undo</a>', page)
    return undo


def restore(browser: Browser, entry: str) -> str:
    """Restore an entry, and return the page that follows."""
    response = browser.submit(f"{entry}/restore")
    assert response.status_code == 303, response.text
    return browser.get(response.headers["location"]).text


def team(client: Client, participant_id: str) -> list[dict[str, Any]]:
    """The members of a team, without the times of their last changes."""
    members = client.get(f"/participants/{participant_id}/team-members", after="0").json()["data"]
    return [without_updated_at(each) for each in members]


def test_a_participant_comes_back_as_it_was(server: RunningServer, owner: Browser, client: Client, person: str) -> None:
    before = client.get(f"/participants/{person}").json()
    team_before = team(client, person)
    entry = delete(owner, f"{PARTICIPANTS}/{person}")
    assert client.get(f"/participants/{person}").status_code == 404
    listed = owner.get(TRASH).text
    assert (f'<a href="{entry}">Ann Lee</a>' in listed, "2 team members" in listed) == (True, True)
    assert ("Robin Hale" in listed, "in 29 days" in listed) == (True, True)
    assert f'<a href="{entry}">Restore…<span class="unseen"> Ann Lee</span></a>' in listed
    page = owner.get(entry).text
    for text in ("22 Jun 1975", "430 123 456", "Deirdre", "Calls on Mondays", "Primary contact", "Approve invoices"):
        assert text in page
    assert re.findall(r"<dt>([^<]+)</dt>", page.partition("<h2>Team")[0]) == [
        "First name", "Last name", "NDIS number", "Date of birth", "Receives statements", "Statements by post",
        "PACE plan", "Invoices require approval", "Status", "Created at",
    ]  # fmt: skip
    nominee = page.partition('aria-label="Team member 1"')[2].partition("</section>")[0]
    assert re.findall(r"<dt>([^<]+)</dt>", nominee) == [
        "First name", "Role", "Contact priority", "Permissions", "Email",
    ]  # fmt: skip
    assert "Ann Lee restored." in restore(owner, entry)
    after = client.get(f"/participants/{person}").json()
    assert without_updated_at(after) == without_updated_at(before)
    assert team(client, person) == team_before
    assert event_summaries(server, person)[-2:] == [
        "participant.deleted by user Robin Hale", "participant.restored by user Robin Hale",
    ]  # fmt: skip
    for member in team_before:
        assert event_summaries(server, member["id"])[-2:] == [
            "team_member.deleted by user Robin Hale", "team_member.created by user Robin Hale",
        ]  # fmt: skip
    assert "The trash is empty." in owner.get(TRASH).text


def test_a_provider_comes_back_as_it_was(server: RunningServer, owner: Browser, client: Client) -> None:
    before = client.create("/providers", {"entity_name": "Banksia Care", "abn": "26502811788", "state": "NSW"})
    entry = delete(owner, f"{PROVIDERS}/{before['id']}")
    assert client.get(f"/providers/{before['id']}").status_code == 404
    assert "26 502 811 788" in owner.get(entry).text
    assert "Banksia Care restored." in restore(owner, entry)
    assert without_updated_at(client.get(f"/providers/{before['id']}").json()) == without_updated_at(before)
    assert event_summaries(server, before["id"])[-1] == "provider.restored by user Robin Hale"


def test_a_deletion_through_the_api_is_permanent(owner: Browser, client: Client, person: str) -> None:
    client.delete(f"/participants/{person}").raise_for_status()
    assert "The trash is empty." in owner.get(TRASH).text


def test_a_record_is_restored_once(owner: Browser, client: Client, person: str) -> None:
    entry = delete(owner, f"{PARTICIPANTS}/{person}")
    owner.csrf()
    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(pool.map(lambda _: owner.submit(f"{entry}/restore").status_code, range(2)))
    assert statuses == [303, 404]
    assert len(team(client, person)) == 2


def test_an_id_that_is_in_use_again_is_not_overwritten(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, person: str
) -> None:
    provider = client.create("/providers", {"entity_name": "Banksia Care"})["id"]
    entries = [delete(owner, f"{PARTICIPANTS}/{person}"), delete(owner, f"{PROVIDERS}/{provider}")]
    rows = {
        "participants": {"id": person, "first_name": "Other"},
        "providers": {"id": provider, "entity_name": "Other"},
    }
    for resource, row in rows.items():
        assert not server.run(import_records(server, plan_manager_id, resource, [row])).errors
    for entry, kind in zip(entries, ("participant", "provider"), strict=True):
        response = owner.submit(f"{entry}/restore")
        assert response.status_code == 409
        assert f"Another {kind} has the same ID" in response.text
        assert owner.get(entry).status_code == 200
    assert client.get(f"/participants/{person}").json()["first_name"] == "Other"
    assert client.get(f"/providers/{provider}").json()["entity_name"] == "Other"
    assert team(client, person) == []


def test_what_does_not_fit_any_more_is_left_out_and_named(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    manager = {"id": "01900000-0000-7000-8000-000000000001", "first_name": "Mia", "last_name": "Chen"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [manager])).errors
    person = client.create("/participants", {**PERSON, "account_manager_id": manager["id"]})["id"]
    member = client.create(f"/participants/{person}/team-members", NOMINEE)
    entry = delete(owner, f"{PARTICIPANTS}/{person}")
    execute(
        server.dsn,
        f"delete from account_managers where id = '{manager['id']}'",
        f"delete from users where id = '{member['id']}'",
    )
    other = client.create("/participants", {"first_name": "Other"})["id"]
    holder = client.create(f"/participants/{other}/team-members", {"email": "DEIRDRE@example.com"})
    page = restore(owner, entry)
    assert "The account manager Mia Chen no longer exists." in page
    assert "Deirdre has another id: the email deirdre@example.com belongs to another user now." in page
    [restored] = team(client, person)
    assert (restored["id"], restored["contact_priority"]) == (holder["id"], 1)
    assert client.get(f"/participants/{person}").json()["account_manager"] == {"id": None, "name": None}


def test_a_user_who_was_deleted_since_is_created_again(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, person: str
) -> None:
    before = team(client, person)
    entry = delete(owner, f"{PARTICIPANTS}/{person}")
    server.run(server.db.execute("delete from users where plan_manager_id = $1", plan_manager_id))
    restore(owner, entry)
    assert team(client, person) == before


def test_actions_depend_on_the_role(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], client: Client
) -> None:
    provider = client.create("/providers", {"entity_name": "Banksia Care"})["id"]
    manager, viewer = (new_browser(new_account(role)) for role in ("manager", "viewer"))
    entry = delete(manager, f"{PROVIDERS}/{provider}")
    page = viewer.get(entry)
    assert (page.status_code, "Restore" in page.text) == (200, False)
    shown = manager.get(entry).text
    assert ("Restore provider" in shown, f"{entry}/delete" in shown) == (True, False)


def test_an_owner_deletes_permanently(server: RunningServer, owner: Browser, person: str) -> None:
    entry = delete(owner, f"{PARTICIPANTS}/{person}")
    assert "Delete Ann Lee permanently?" in owner.get(f"{entry}/delete").text
    response = owner.submit(f"{entry}/delete")
    assert (response.status_code, response.headers["location"]) == (303, TRASH)
    assert "Ann Lee permanently deleted." in owner.get(TRASH).text
    assert owner.submit(f"{entry}/restore").status_code == 404
    assert event_summaries(server, person)[-1] == "participant.purged by user Robin Hale"


def test_the_trash_is_paged(owner: Browser, client: Client) -> None:
    for number in range(52):
        provider = client.create("/providers", {"entity_name": f"Provider {number}"})["id"]
        owner.submit(f"{PROVIDERS}/{provider}/delete")
    first = owner.get(TRASH).text
    assert (first.count('class="lead"'), "Provider 51<" in first, "Provider 1<" in first) == (50, True, False)
    [older] = re.findall(r'href="(/console/trash\?before=[^"]+)"', first)
    assert re.findall(r"(?<=\">)Provider [0-9]+(?=</a>)", owner.get(older).text) == ["Provider 1", "Provider 0"]


def test_entries_expire(server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID) -> None:
    ids = [client.create("/providers", {"entity_name": f"Provider {number}"})["id"] for number in range(2)]
    old, recent = (delete(owner, f"{PROVIDERS}/{each}") for each in ids)
    age = """
        update trash set id = overlay(id::text placing '01890000-0000' from 1 for 13)::uuid where id = '{}'
    """
    execute(server.dsn, age.format(old.rpartition("/")[2]))
    retention = AgeRetention(30, trash_store.purge, 1000)

    async def purge() -> None:
        await retention(server.db)
        while retention._due._due:  # noqa: SLF001 - a run deletes those of one plan manager
            await retention(server.db)

    server.run(purge())
    listed = owner.get(TRASH).text
    assert (recent in listed, "Provider 0" in listed) == (True, False)
