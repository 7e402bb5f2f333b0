"""Notes over HTTP."""

from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import assert_changed, times_of
from support.server import wait_until


@pytest.fixture
def note_type(api: Client) -> dict[str, Any]:
    return api.create("/note-types", {"note_type": "Phone call", "badge_color": "#0b7285", "highlight_color": "teal"})


@pytest.fixture
def participant(api: Client) -> dict[str, Any]:
    return api.create("/participants", {"first_name": "Ada"})


def body(note_type: dict[str, Any], record: dict[str, Any], kind: str = "participant", **more: Any) -> dict[str, Any]:
    resource = {"kind": kind, "id": record["id"]}
    return {"resource": resource, "note_type_id": note_type["id"], "text": "Prefers mornings.", **more}


def events(api: Client, type_: str, count: int = 1) -> list[dict[str, Any]]:
    """The events of a type, as soon as the feed has so many."""

    def read() -> list[dict[str, Any]]:
        found = api.get("/events", after="0", type=type_).json()["data"]
        return found if len(found) >= count else []

    return wait_until(read)


def errors_of(api: Client, method: str, path: str, values: dict[str, Any]) -> list[tuple[str, str, str]]:
    rejected = api.request(method, path, json=values)
    assert rejected.status_code == 400, rejected.text
    return [(each["field"], each["code"], each["message"]) for each in rejected.json()["errors"]]


def test_a_new_note_returns_201_with_its_type_and_author(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    made = api.post("/notes", body(note_type, participant, pinned=True))
    assert made.status_code == 201
    note = made.json()
    [event] = events(api, "note.created")
    assert note == {
        "id": note["id"], "resource": {"kind": "participant", "id": participant["id"]},
        "note_type_id": note_type["id"], "note_type": "Phone call", "badge_color": "#0b7285",
        "highlight_color": "teal", "text": "Prefers mornings.", "pinned": True, "alert": False,
        "author": event["actor"], "created_at": note["created_at"], **times_of(note),
    }  # fmt: skip
    assert event["actor"]["kind"] == "api_key"
    assert event["data"] == note
    got = api.get(f"/notes/{note['id']}")
    assert got.json() == note
    assert api.get("/notes/x").status_code == 400


def test_a_note_can_be_on_each_kind_of_record(api: Client, note_type: dict[str, Any]) -> None:
    provider = api.create("/providers", {"entity_name": "Quokka"})
    invoice = api.create("/invoices", {"invoice_number": "1"})
    notes = [
        api.create("/notes", body(note_type, record, kind))
        for kind, record in {"provider": provider, "invoice": invoice}.items()
    ]
    assert [each["resource"] for each in notes] == [
        {"kind": "provider", "id": provider["id"]},
        {"kind": "invoice", "id": invoice["id"]},
    ]


def test_an_unknown_record_or_type_is_not_found(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    for kind, article in {"participant": "a participant", "provider": "a provider", "invoice": "an invoice"}.items():
        values = body({"id": 987654}, {"id": str(uuid7())}, kind)
        assert errors_of(api, "POST", "/notes", values) == [
            ("resource.id", "not_found", f"must be the id of {article} of this plan manager"),
            ("note_type_id", "not_found", "must be the id of a note type of this plan manager"),
        ]
    note = api.create("/notes", body(note_type, participant))
    assert errors_of(api, "PUT", f"/notes/{note['id']}", {"note_type_id": 987654}) == [
        ("note_type_id", "not_found", "must be the id of a note type of this plan manager")
    ]
    assert errors_of(api, "POST", "/notes", body(note_type, participant, text=" ")) == [
        ("text", "invalid_format", "must not be blank")
    ]


def test_an_update_changes_the_fields_that_it_has(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    note = api.create("/notes", body(note_type, participant))
    other = api.create("/note-types", {"note_type": "Visit"})
    change = {"note_type_id": other["id"], "alert": True}
    updated = api.put(f"/notes/{note['id']}", change)
    assert updated.status_code == 200
    shown = {"note_type": "Visit", "badge_color": None, "highlight_color": None}
    assert_changed(note, change | shown, updated.json())
    assert api.put(f"/notes/{note['id']}", change).json() == updated.json()
    [event] = events(api, "note.updated")
    assert event["previous"] == {
        "note_type_id": note_type["id"], "note_type": "Phone call", "badge_color": "#0b7285",
        "highlight_color": "teal", "alert": False,
    }  # fmt: skip
    stale = api.request("PUT", f"/notes/{note['id']}", json={"text": "x"}, headers={"If-Match": '"1-x"'})
    assert stale.status_code == 412


def test_a_deleted_note_is_gone(api: Client, note_type: dict[str, Any], participant: dict[str, Any]) -> None:
    note = api.create("/notes", body(note_type, participant))
    assert api.delete(f"/notes/{note['id']}").json() == {}
    assert api.get(f"/notes/{note['id']}").status_code == 404
    assert api.delete(f"/notes/{note['id']}").status_code == 404
    [event] = events(api, "note.deleted")
    assert event["previous"] == note


def test_the_list_has_filters_orders_and_a_search(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    other = api.create("/note-types", {"note_type": "Visit"})
    provider = api.create("/providers", {"entity_name": "Quokka"})
    notes = [
        api.create("/notes", body(note_type, participant, text="The café is near, call 0491 570 006.")),
        api.create("/notes", body(other, participant, pinned=True)),
        api.create("/notes", body(note_type, provider, "provider", alert=True, text="Вопрос о счёте")),
    ]
    pagination = {"limit": 20, "offset": 0, "has_more": False, "total": 3, "next_cursor": None}
    assert api.get("/notes").json() == {"data": notes, "pagination": pagination}
    before = datetime.now(UTC).isoformat()

    def positions(**query: Any) -> list[int]:
        return [notes.index(each) for each in api.get("/notes", **query).json()["data"]]

    assert positions(resource_kind="provider") == [2]
    assert positions(resource_kind="participant", resource_id=participant["id"]) == [0, 1]
    assert positions(note_type_id=other["id"]) == [1]
    assert positions(pinned="true") == [1]
    assert positions(alert="false") == [0, 1]
    assert positions(q="CAFE") == [0]
    assert positions(q="0491570006") == [0]
    assert positions(q="mornings prefers") == [1]
    assert positions(q="вопрос") == [2]
    assert positions(q="nowhere") == positions(q="?") == []
    assert positions(sort="-id", limit=2) == [2, 1]
    assert positions(after=notes[1]["id"]) == [2]
    assert positions(updated_since=before) == []
    assert api.get("/notes", q="mornings").json()["pagination"]["total"] == 1


def test_a_note_type_that_notes_have_cannot_be_deleted(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    notes = [api.create("/notes", body(note_type, participant))]
    rejected = api.delete(f"/note-types/{note_type['id']}")
    assert (rejected.status_code, rejected.json()["error"], rejected.json()["detail"]) == (
        409, "note_type_in_use", "1 note has this note type, so it cannot be deleted.",
    )  # fmt: skip
    notes.append(api.create("/notes", body(note_type, participant)))
    detail = api.delete(f"/note-types/{note_type['id']}").json()["detail"]
    assert detail == "2 notes have this note type, so it cannot be deleted."
    for each in notes:
        api.delete(f"/notes/{each['id']}").raise_for_status()
    assert api.delete(f"/note-types/{note_type['id']}").json() == {}


def test_notes_are_deleted_with_their_participant_or_provider(
    api: Client, note_type: dict[str, Any], participant: dict[str, Any]
) -> None:
    provider = api.create("/providers", {"entity_name": "Quokka"})
    notes = [
        api.create("/notes", body(note_type, participant)),
        api.create("/notes", body(note_type, provider, "provider")),
    ]
    api.delete(f"/participants/{participant['id']}").raise_for_status()
    api.delete(f"/providers/{provider['id']}").raise_for_status()
    assert api.get("/notes").json()["data"] == []
    deleted = events(api, "note.deleted", 2)
    assert [each["previous"] for each in deleted] == notes
