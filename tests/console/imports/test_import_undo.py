"""Undoing an import: what it restores, and what prevents it."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from support.client import Client
from support.console import Browser
from support.importing import import_records
from support.imports import confirm, import_path, upload
from support.locks import wait_for_locks
from support.resources import assert_changed
from support.server import RunningServer


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    actor_kind: str
    notify: bool


@pytest.fixture
def events(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[EventRow]]:
    """All events of participants, in their order."""
    statement = """
        select type, actor_kind, notify from events
        where plan_manager_id = $1 and resource_kind = 'participant' order by id
    """
    return lambda: server.run(server.db.rows(EventRow, statement, plan_manager_id))


def import_file(browser: Browser, content: str, **form: str) -> str:
    path = import_path(upload(browser, content.encode()))
    assert confirm(browser, path, form).status_code == 200
    return path


def test_an_undo_deletes_new_people_and_restores_the_others(
    owner: Browser, client: Client, events: Callable[[], list[EventRow]]
) -> None:
    bee = client.create(
        "/participants", {"first_name": "Bee", "participant_number": "430205410", "plan_end_date": "2027-06-30"}
    )
    before = client.get(f"/participants/{bee['id']}").json()
    path = import_file(
        owner, "First name,NDIS number,Plan end,Suburb\nBeatrice,430205410,30/6/2028,Perth\nCy,430205412,,Perth\n"
    )
    assert len(client.get("/participants").json()["data"]) == 2
    page = owner.get(f"{path}/undo")
    assert ("1 new record is deleted." in page.text, "1 changed record gets its previous" in page.text) == (True, True)
    assert owner.submit(f"{path}/undo").status_code == 303
    after = client.get(f"/participants/{bee['id']}").json()
    assert after | {"updated_at": None} == before | {"updated_at": None}
    assert [each["id"] for each in client.get("/participants").json()["data"]] == [bee["id"]]
    assert [(each.type, each.actor_kind, each.notify) for each in events()[1:]] == [
        ("participant.updated", "user", False),
        ("participant.created", "user", False),
        ("participant.deleted", "user", False),
        ("participant.updated", "user", False),
    ]
    shown = owner.get(path).text
    assert ("Undone" in shown, "Undo this import" in shown) == (True, False)
    # A second undo is impossible, and the file can be imported again.
    assert (owner.get(f"{path}/undo").status_code, owner.submit(f"{path}/undo").status_code) == (404, 404)


def test_references_and_teams_are_restored(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    manager = {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [manager])).errors
    person = client.create("/participants", {"first_name": "Bee", "participant_number": "430205410"})
    team = f"/participants/{person['id']}/team-members"
    member = client.create(
        team, {"first_name": "Lee", "email": "lee@example.com", "permissions": ["view_budget"], "contact_priority": 1}
    )
    first = import_file(owner, "NDIS number,Account manager\n430205410,ama owusu\n")
    second = import_file(
        owner,
        "NDIS number,First name,Email,Permissions,Priority,Role\n"
        "430205410,Leigh,lee@example.com,View invoices; view budget,secondary,Parent\n"
        "430205410,Kim,kim@example.com,no access,primary,Carer\n",
    )
    assert [each["first_name"] for each in client.get(team).json()["data"]] == ["Leigh", "Kim"]
    for path in (second, first):
        assert owner.submit(f"{path}/undo").status_code == 303
    [restored] = client.get(team).json()["data"]
    assert_changed(member, {}, restored)
    full = client.get(f"/participants/{person['id']}").json()
    assert full["account_manager"] == {"id": None, "name": None}


def test_changed_records_prevent_an_undo_and_are_listed(
    owner: Browser, client: Client, events: Callable[[], list[EventRow]]
) -> None:
    path = import_file(owner, "First name,NDIS number\nBee,430205410\nCy,430205411\nDi,430205412\nEd,430205413\n")
    people = {each["first_name"]: each["id"] for each in client.get("/participants").json()["data"]}
    client.put(f"/participants/{people['Bee']}", {"last_name": "Lee"}).raise_for_status()
    client.delete(f"/participants/{people['Cy']}").raise_for_status()
    client.create(f"/participants/{people['Di']}/team-members", {"first_name": "Lee"})
    count = len(events())
    for page in (owner.get(f"{path}/undo"), owner.submit(f"{path}/undo")):
        assert "can’t be undone because of 3 of its records" in page.text
        for text in ("has changed", "was deleted", "has team members now", f"/console/participants/{people['Bee']}"):
            assert text in page.text
        assert people["Ed"] not in page.text
    assert owner.submit(f"{path}/undo").status_code == 409
    assert (len(events()), len(client.get("/participants").json()["data"])) == (count, 3)


def test_a_later_change_of_another_field_prevents_an_undo(owner: Browser, client: Client) -> None:
    person = client.create("/participants", {"first_name": "Bee", "participant_number": "430205410", "city": "Perth"})
    path = import_file(owner, "NDIS number,Suburb\n430205410,Hobart\n")
    client.put(f"/participants/{person['id']}", {"last_name": "Lee"}).raise_for_status()
    page = owner.submit(f"{path}/undo")
    assert (page.status_code, "has changed since" in page.text) == (409, True)


def test_a_change_that_was_taken_back_prevents_an_undo(owner: Browser, client: Client) -> None:
    path = import_file(owner, "First name\nBee\n")
    [person] = client.get("/participants").json()["data"]
    for name in ("Cy", "Bee"):
        client.put(f"/participants/{person['id']}", {"first_name": name}).raise_for_status()
    assert owner.submit(f"{path}/undo").status_code == 409


def test_a_change_that_is_not_committed_yet_prevents_an_undo(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    client.create("/participants", {"first_name": "Bee", "participant_number": "430205410"})
    path = import_file(owner, "First name,NDIS number\nBeatrice,430205410\n")
    owner.csrf()

    async def undo_during_a_change() -> int:
        async with server.db.transaction() as tx:
            await tx.execute("update participants set city = 'Perth' where plan_manager_id = $1", plan_manager_id)
            undo = asyncio.create_task(asyncio.to_thread(owner.submit, f"{path}/undo"))
            await wait_for_locks(tx)
        return (await undo).status_code

    assert server.run(undo_during_a_change()) == 409
    [person] = client.get("/participants").json()["data"]
    assert (person["first_name"], person["city"]) == ("Beatrice", "Perth")


def test_invoices_of_new_people_and_providers_prevent_an_undo(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    first = import_file(owner, "First name,NDIS number\nBee,430205410\n")
    second = import_file(owner, "Provider,ABN\nCopper Quokka,51824753556\n")
    [person] = client.get("/participants").json()["data"]
    [provider] = client.get("/providers").json()["data"]
    invoice = {"participant_id": person["id"], "pm_provider_id": provider["id"], "invoice_number": "1"}
    assert not server.run(import_records(server, plan_manager_id, "invoices", [invoice])).errors
    for path in (first, second):
        page = owner.submit(f"{path}/undo")
        assert (page.status_code, "has invoices now" in page.text) == (409, True)


def test_the_name_of_a_manager_prevents_no_undo(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    manager = {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [manager])).errors
    path = import_file(owner, "First name,Account manager\nBee,Ama Owusu\n", notify="yes")
    assert not server.run(
        import_records(server, plan_manager_id, "account-managers", [manager | {"last_name": "Mensah"}])
    ).errors
    assert owner.submit(f"{path}/undo").status_code == 303
    assert client.get("/participants").json()["data"] == []


def test_note_types_and_providers_are_restored(owner: Browser, client: Client) -> None:
    provider = client.create("/providers", {"entity_name": "Quokka", "abn": "51824753556", "city": "Perth"})
    note_type = client.create("/note-types", {"note_type": "Call"})
    paths = [
        import_file(owner, "Provider,ABN,Suburb\nCopper Quokka,51824753556,Hobart\nOther,,\n"),
        import_file(owner, f"id,Name,Badge colour\n{note_type['id']},Calls,red\n,Visit,blue\n"),
    ]
    for path in paths:
        assert owner.submit(f"{path}/undo").status_code == 303
    for path, before in (("/providers", provider), ("/note-types", note_type)):
        [restored] = client.get(path).json()["data"]
        assert_changed(before, {}, restored)


@pytest.mark.parametrize("content", ["Reason\nMoved\n", "First name,Email\nKim,kim@example.com\n"])
def test_an_import_with_new_records_that_cannot_be_deleted_has_no_undo(owner: Browser, content: str) -> None:
    kind = "account-managers" if "Email" in content else "exit-reasons"
    check = upload(owner, content.encode(), kind)
    assert "You can’t undo it afterwards, because new records of this type can’t be deleted." in check.text
    path = import_path(check)
    assert confirm(owner, path).status_code == 200
    assert ("Undo" in owner.get(path).text, owner.get(f"{path}/undo").status_code) == (False, 404)
    assert owner.submit(f"{path}/undo").status_code == 404


def test_account_managers_and_exit_reasons_get_their_values_back(
    server: RunningServer, owner: Browser, plan_manager_id: UUID
) -> None:
    kim, moved = str(uuid7()), str(uuid7())
    for resource, row in (
        ("account-managers", {"id": kim, "first_name": "Kim", "last_name": "Lee"}),
        ("exit-reasons", {"id": moved, "name": "Moved"}),
    ):
        assert not server.run(import_records(server, plan_manager_id, resource, [row])).errors
    statement = """
        select first_name || ' ' || last_name || ' ' || active || ' ' || (select name from exit_reasons where id = $2)
        from account_managers where id = $1
    """

    def stored() -> str:
        return server.run(server.db.one(str, statement, UUID(kim), UUID(moved)))

    paths = list[str]()
    for resource, content in (
        ("account-managers", f"id,last_name,active\n{kim},Ray,no\n"),
        ("exit-reasons", f"id,name\n{moved},Moved away\n"),
    ):
        paths.append(import_path(upload(owner, content.encode(), resource)))
        assert confirm(owner, paths[-1]).status_code == 200
    assert stored() == "Kim Ray false Moved away"
    for path in paths:
        assert "Undo this import" in owner.get(path).text
        assert owner.submit(f"{path}/undo").status_code == 303
    assert stored() == "Kim Lee true Moved"
    # An email that an import has added stays: nothing of that import is undone.
    more = import_path(upload(owner, f"id,last_name,email\n{kim},Ray,kim@example.com\n".encode(), "account-managers"))
    assert confirm(owner, more).status_code == 200
    page = owner.submit(f"{more}/undo")
    assert (page.status_code, "an email can’t be removed" in page.text) == (409, True)
    assert stored() == "Kim Ray true Moved"


def test_invoices_get_their_values_back_and_new_ones_are_marked_as_deleted(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    provider = client.create("/providers", {"entity_name": "Amber & Sons"})["id"]
    line = {"id": str(uuid7()), "description": "Mowing", "quantity": 2, "unit_price": 10.25, "total_price": 20.5}
    row = {
        "id": str(uuid7()), "invoice_number": "N1", "total": 20.5, "subtotal": 20.5, "tax": 0, "line_items": [line],
        "pm_provider_id": provider,
    }  # fmt: skip
    assert not server.run(import_records(server, plan_manager_id, "invoices", [row])).errors
    before = client.get(f"/invoices/{row['id']}").json()
    rows = [
        row | {"total": 30, "line_items": [{"description": "Weeding", "total_price": 30}]},
        {"invoice_number": "N1", "total": 20.5, "pm_provider_id": provider},  # a duplicate of the other one
    ]
    path = import_path(upload(owner, b"".join(to_json(each).encode() + b"\n" for each in rows), "invoices"))
    assert confirm(owner, path).status_code == 200
    assert client.get(f"/invoices/{row['id']}").json()["total"] == 30
    assert "1 new record is marked as deleted." in owner.get(f"{path}/undo").text
    assert owner.submit(f"{path}/undo").status_code == 303
    after = client.get(f"/invoices/{row['id']}").json()
    assert [without_times(each) for each in (after, *after["line_items"])] == [
        without_times(each) for each in (before, *before["line_items"])
    ]
    states = {each["id"]: each["is_deleted"] for each in client.get("/invoices").json()["data"]}
    assert (states.pop(row["id"]), list(states.values())) == (False, [True])
    # The pages of the events name the import, and those of its undo say so.
    statement = "select id from events where plan_manager_id = $1 and resource_kind = 'invoice' order by id"
    first, second, *_, last = server.run(server.db.rows(UUID, statement, plan_manager_id))
    pages = [owner.get(f"/console/activity/{each}").text for each in (first, second, last)]
    assert [f'<a href="{path}">' in each for each in pages] == [False, True, True]
    assert ["<dt>Undo of the import</dt>" in each for each in pages] == [False, False, True]


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("updated_at", "line_items")}


def test_an_imported_invoice_with_a_rejected_line_is_in_the_review_queue_until_the_import_is_undone(
    owner: Browser,
) -> None:
    lines = [
        {"description": "Mowing", "total_price": 20, "claim_status": "paid", "paid_amount": 20},
        {"description": "Weeding", "total_price": 10, "claim_status": "rejected", "rejection_reason": "C11"},
    ]
    row = {"id": str(uuid7()), "claim_status": "partially_paid", "line_items": lines}
    path = import_path(upload(owner, to_json(row).encode(), "invoices"))
    assert confirm(owner, path).status_code == 200
    queue = "/console/review?queue=rejected"
    assert owner.get(queue).headers["location"] == f"/console/review/{row['id']}?queue=rejected"
    assert owner.submit(f"{path}/undo").status_code == 303
    assert "No invoice is left in this part of the queue." in owner.get(queue).text
