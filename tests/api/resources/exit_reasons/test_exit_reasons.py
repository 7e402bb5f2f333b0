"""Exit reasons over HTTP."""

from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.import_samples import Import
from support.resources import assert_changed, times_of


def create(api: Client, name: str, parent: dict[str, Any] | None = None) -> dict[str, Any]:
    return api.create("/exit-reasons", {"name": name} | ({"parent_id": parent["id"]} if parent else {}))


def errors_of(api: Client, method: str, path: str, body: dict[str, Any]) -> list[tuple[str, str, str]]:
    rejected = api.request(method, path, json=body)
    assert rejected.status_code == 400, rejected.text
    return [(each["field"], each["code"], each["message"]) for each in rejected.json()["errors"]]


def test_a_new_exit_reason_returns_201_and_can_be_read(api: Client) -> None:
    made = api.post("/exit-reasons", {"name": "Moved"})
    assert made.status_code == 201
    category = made.json()
    assert category == {"id": category["id"], "name": "Moved", "parent_id": None, **times_of(category)}
    subcategory = create(api, "Interstate", category)
    assert subcategory["parent_id"] == category["id"]
    assert [api.get(f"/exit-reasons/{each['id']}").json() for each in (category, subcategory)] == [
        category,
        subcategory,
    ]
    assert api.get("/exit-reasons/x").status_code == 400


def test_the_list_has_a_total_a_cursor_orders_and_filters(api: Client) -> None:
    reasons = [create(api, each) for each in ("Moved", "Died", "Other")]
    ids = [each["id"] for each in reasons]
    page = api.get("/exit-reasons").json()
    assert page == {
        "data": reasons,
        "pagination": {"limit": 20, "offset": 0, "has_more": False, "total": 3, "next_cursor": None},
    }
    walked = api.get("/exit-reasons", limit=2, after="0").json()
    assert walked["pagination"]["next_cursor"] == ids[1]
    assert api.get("/exit-reasons", after=ids[1]).json()["data"] == reasons[2:]
    before = datetime.now(UTC).isoformat()
    api.put(f"/exit-reasons/{ids[0]}", {"name": "Moved away"}).raise_for_status()

    def list_ids(**query: Any) -> list[str]:
        return [each["id"] for each in api.get("/exit-reasons", **query).json()["data"]]

    assert list_ids(updated_since=before) == ids[:1]
    assert list_ids(sort="-updated_at") == [ids[0], ids[2], ids[1]]
    assert list_ids(id=f"{ids[2]},{ids[1]},{uuid7()}") == ids[1:]
    assert "synced-until" in api.get("/exit-reasons").headers


def test_an_update_changes_only_the_given_fields(api: Client) -> None:
    category, other = create(api, "Moved"), create(api, "Other")
    subcategory = create(api, "Overseas", category)
    path = f"/exit-reasons/{subcategory['id']}"
    renamed = api.put(path, {"name": "Abroad"})
    assert_changed(subcategory, {"name": "Abroad"}, renamed.json())
    moved = api.put(path, {"parent_id": other["id"]})
    assert_changed(renamed.json(), {"parent_id": other["id"]}, moved.json())
    assert api.put(path, {"parent_id": None}).json()["parent_id"] is None
    assert errors_of(api, "PUT", path, {"name": None})[0][0] == "name"


def test_there_are_only_categories_and_subcategories(api: Client) -> None:
    category, other = create(api, "Moved"), create(api, "Other")
    subcategory = create(api, "Overseas", category)
    absent = [("parent_id", "not_found", "must be the id of an exit reason of this plan manager")]
    deep = [("parent_id", "inconsistent", "must be the id of a category: of another exit reason, without a parent")]
    own = [("parent_id", "inconsistent", "must be null, because this exit reason is the parent of others")]
    for method, path in (("POST", "/exit-reasons"), ("PUT", f"/exit-reasons/{other['id']}")):
        assert errors_of(api, method, path, {"name": "x", "parent_id": str(uuid7())}) == absent
        assert errors_of(api, method, path, {"name": "x", "parent_id": subcategory["id"]}) == deep
    path = f"/exit-reasons/{category['id']}"
    assert errors_of(api, "PUT", path, {"parent_id": category["id"]}) == deep
    assert errors_of(api, "PUT", path, {"parent_id": other["id"]}) == own
    assert api.get("/exit-reasons").json()["data"] == [category, other, subcategory]


@pytest.mark.parametrize("column", ["exit_reason_category_id", "exit_reason_subcategory_id"])
def test_an_exit_reason_that_a_participant_has_cannot_be_deleted(api: Client, column: str) -> None:
    reason = create(api, "Moved")
    path = f"/exit-reasons/{reason['id']}"
    participant = api.create("/participants", {column: reason["id"]})
    rejected = api.delete(path)
    assert (rejected.status_code, rejected.json()["error"], rejected.json()["detail"]) == (
        409, "exit_reason_in_use", "A participant has this exit reason, so it cannot be deleted.",
    )  # fmt: skip
    assert api.get(path).json() == reason
    api.put(f"/participants/{participant['id']}", {column: None}).raise_for_status()
    gone = api.delete(path)
    assert (gone.status_code, gone.json()) == (200, {})
    assert (api.get(path).status_code, api.delete(path).status_code) == (404, 404)


def test_a_category_with_subcategories_cannot_be_deleted(api: Client) -> None:
    category = create(api, "Moved")
    subcategory = create(api, "Overseas", category)
    rejected = api.delete(f"/exit-reasons/{category['id']}")
    assert (rejected.status_code, rejected.json()["error"], rejected.json()["detail"]) == (
        409, "exit_reason_in_use", "Other exit reasons belong to this category, so it cannot be deleted.",
    )  # fmt: skip
    for each in (subcategory, category):
        assert api.delete(f"/exit-reasons/{each['id']}").status_code == 200


def test_an_import_moves_the_time_of_the_last_change(api: Client, import_rows: Import) -> None:
    reason = create(api, "Moved")
    assert not import_rows(api, "exit-reasons", [{"id": reason["id"], "name": "Died"}]).errors
    assert_changed(reason, {"name": "Died"}, api.get(f"/exit-reasons/{reason['id']}").json())


def test_a_participant_shows_the_new_name(api: Client) -> None:
    reason = create(api, "Moved")
    made = api.create("/participants", {"exit_reason_category_id": reason["id"]})
    api.put(f"/exit-reasons/{reason['id']}", {"name": "Moved away"}).raise_for_status()
    shown = api.get(f"/participants/{made['id']}").json()["exit_reason_category"]
    assert shown == {"id": reason["id"], "name": "Moved away"}
