"""Note types over HTTP."""

from collections.abc import Callable

import pytest

from support.client import Client
from support.resources import assert_changed, times_of


def test_a_new_note_type_returns_201_and_can_be_read(api: Client) -> None:
    made = api.post("/note-types", {"note_type": "Phone call", "badge_color": "#0b7285"})
    assert made.status_code == 201
    body = made.json()
    assert body == {
        "id": body["id"], "note_type": "Phone call", "plan_manager_id": api.plan_manager_id,
        "badge_color": "#0b7285", "highlight_color": None, **times_of(body),
    }  # fmt: skip
    assert isinstance(body["id"], int)
    assert api.get(f"/note-types/{body['id']}").json() == body


@pytest.mark.parametrize("title", ["", "   ", "\t\n"])
def test_a_note_type_must_not_be_blank(api: Client, title: str) -> None:
    rejected = api.post("/note-types", {"note_type": title})
    assert rejected.status_code == 400
    assert [(each["field"], each["message"]) for each in rejected.json()["errors"]] == [
        ("note_type", "must not be blank")
    ]
    assert api.get("/note-types").json()["pagination"]["total"] == 0


def test_an_update_changes_only_the_given_fields_and_null_clears_a_colour(api: Client) -> None:
    made = api.create("/note-types", {"note_type": "Email", "badge_color": "red", "highlight_color": "blue"})
    changed = api.put(f"/note-types/{made['id']}", {"badge_color": None})
    assert changed.status_code == 200
    assert_changed(made, {"badge_color": None}, changed.json())
    assert api.put(f"/note-types/{made['id']}", {"note_type": None}).status_code == 400


def test_a_deleted_note_type_is_not_found(api: Client) -> None:
    made = api.create("/note-types", {"note_type": "Email"})
    gone = api.delete(f"/note-types/{made['id']}")
    assert (gone.status_code, gone.json()) == (200, {})
    assert api.get(f"/note-types/{made['id']}").status_code == 404
    assert api.delete(f"/note-types/{made['id']}").status_code == 404


def test_the_list_is_paginated_by_number(api: Client, new_client: Callable[..., Client]) -> None:
    new_client().create("/note-types", {"note_type": "someone else's"})
    ids = [api.create("/note-types", {"note_type": f"kind {n}"})["id"] for n in range(5)]
    assert ids == sorted(ids)
    walked: list[int] = []
    after = "0"
    while after is not None:
        page = api.get("/note-types", limit=2, after=after).json()
        walked += [each["id"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    assert walked == ids
    assert api.get("/note-types", after="abc").status_code == 400
