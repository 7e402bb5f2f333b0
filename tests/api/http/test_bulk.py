"""Creating and updating many participants or providers at once: all of them or none, with an event each."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import TIMES, assert_changed, times_of
from support.server import wait_until

Import = Callable[..., Any]

KINDS = {
    "participants": ("first_name", {"first_name": "New", "email": "new@example.com"}),
    "providers": ("entity_name", {"entity_name": "New", "abn": "51824753556"}),
}
in_both = pytest.mark.parametrize("kind", KINDS)


def field_errors(response: Any) -> list[tuple[str, str]]:
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in response.json()["errors"]]


def recorded_events(api: Client, kind: str) -> list[tuple[str, str]]:
    """The types and resources of the events in the feed."""
    events = api.get("/events", limit=1000, type=f"{kind}.*").json()["data"]
    return [(each["type"], each["resource"]["id"]) for each in events]


@in_both
def test_items_are_created_and_updated_in_their_order(api: Client, kind: str) -> None:
    name, body = KINDS[kind]
    first, second = (api.create(f"/{kind}", {name: text}) for text in ("First", "Second"))
    items = [
        {"id": second["id"].upper(), name: "Changed"},
        body,
        {"id": first["id"]},  # unchanged
        {},
    ]
    response = api.post(f"/{kind}/bulk", {"items": items})
    assert response.status_code == 200
    assert list(response.json()) == ["data"]
    changed, new, unchanged, empty = response.json()["data"]
    assert_changed(second, {name: "Changed"}, changed)
    unset = {field: value for field, value in second.items() if field not in TIMES} | {name: None}
    assert new == unset | body | {"id": new["id"]} | times_of(new)
    assert unchanged == first
    assert empty == unset | {"id": empty["id"]} | times_of(empty)
    stored = {each["id"]: each for each in api.get(f"/{kind}").json()["data"]}
    assert all(stored[each["id"]].items() >= each.items() for each in response.json()["data"])
    word = kind.removesuffix("s")
    assert wait_until(lambda: (events := recorded_events(api, word))[4:] and events)[2:] == [
        (f"{word}.updated", second["id"]), (f"{word}.created", new["id"]), (f"{word}.created", empty["id"]),
    ]  # fmt: skip


@in_both
def test_the_response_has_whole_resources(api: Client, kind: str) -> None:
    name, body = KINDS[kind]
    one = api.create(f"/{kind}", {name: "First"})
    response = api.post(f"/{kind}/bulk", {"items": [body, {"id": one["id"], "city": "Perth"}]})
    for each in response.json()["data"]:
        assert each == api.get(f"/{kind}/{each['id']}").json()
    assert [each["city"] for each in response.json()["data"]] == [None, "Perth"]


@in_both
def test_all_errors_are_reported_and_nothing_is_written(api: Client, kind: str) -> None:
    name, body = KINDS[kind]
    one = api.create(f"/{kind}", {name: "First"})
    items = [body, {"id": one["id"], "email": "wrong", name: 5}, {"nickname": "x"}, "text", {"id": "abc"}]
    response = api.post(f"/{kind}/bulk", {"items": items})
    errors = field_errors(response)
    assert [field for field, _ in errors] == [
        f"items[1].{name}", "items[1].email", "items[2].nickname", "items[3]", "items[4].id",
    ]  # fmt: skip
    assert dict(errors)["items[3]"] == "must be an object, not a string"
    assert api.get(f"/{kind}").json()["pagination"]["total"] == 1
    last = api.create(f"/{kind}", {})["id"]
    word = kind.removesuffix("s")
    created = [(f"{word}.created", one["id"]), (f"{word}.created", last)]
    assert wait_until(lambda: (events := recorded_events(api, word))[1:] and events) == created


@in_both
def test_ids_must_exist_and_occur_once(api: Client, other: Client, kind: str) -> None:
    name, _ = KINDS[kind]
    own, foreign = (client.create(f"/{kind}", {name: "One"})["id"] for client in (api, other))
    items = [{"id": own}, {"id": str(uuid7())}, {"id": foreign}, {"id": own.upper(), name: "Twice"}, {name: "New"}]
    missing = f"must be the id of an existing {kind.removesuffix('s')}"
    assert field_errors(api.post(f"/{kind}/bulk", {"items": items})) == [
        ("items[1].id", missing), ("items[2].id", missing), ("items[3].id", "is a duplicate of an earlier item"),
    ]  # fmt: skip
    response = api.post(f"/{kind}/bulk", {"items": items, "notify2": 1})
    assert [field for field, _ in field_errors(response)] == ["notify2", "items[1].id", "items[2].id", "items[3].id"]
    many = {f"x{number}": 1 for number in range(300)}
    assert [field for field, _ in field_errors(api.post(f"/{kind}/bulk", {"items": items, **many}))] == ["body"]
    assert api.get(f"/{kind}").json()["pagination"]["total"] == 1


@in_both
def test_resources_that_were_got_can_be_sent_back(api: Client, kind: str) -> None:
    name, body = KINDS[kind]
    for _ in range(2):
        api.create(f"/{kind}", body)
    got = api.get(f"/{kind}").json()["data"]
    response = api.post(f"/{kind}/bulk", {"items": [each | {name: "Changed"} for each in got]})
    assert response.status_code == 200, response.text
    for before, after in zip(got, response.json()["data"], strict=True):
        assert_changed(before, {name: "Changed"}, after)
    items = [got[0] | {"created_at": "2020-01-01T00:00:00Z"}, {"created_at": got[0]["created_at"], "updated_at": 5}]
    [same, new] = api.post(f"/{kind}/bulk", {"items": items}).json()["data"]
    assert same["created_at"] == got[0]["created_at"] < new["created_at"]


@in_both
def test_a_request_has_1_to_500_items(api: Client, kind: str) -> None:
    assert field_errors(api.post(f"/{kind}/bulk", {})) == [("items", "is required")]
    assert field_errors(api.post(f"/{kind}/bulk", {"items": {}})) == [("items", "must be a list, not an object")]
    assert field_errors(api.post(f"/{kind}/bulk", {"items": []})) == [("items", "must have at least 1 item")]
    assert field_errors(api.post(f"/{kind}/bulk", {"items": [{}] * 501})) == [("items", "must have at most 500 items")]
    response = api.post(f"/{kind}/bulk", {"items": [{}] * 500})
    assert len({each["id"] for each in response.json()["data"]}) == 500


def test_a_body_may_have_5_mib(api: Client) -> None:
    items = [{"reason_for_leaving": "x" * 9_900}] * 500
    assert api.post("/participants/bulk", {"items": items}).status_code == 200
    too_large = api.request("POST", "/participants/bulk", content=b" " * (5 * 1024**2 + 1), headers=JSON)
    assert (too_large.status_code, too_large.json()["detail"]) == (413, "The body is larger than 5 MiB.")
    one = api.request("POST", "/participants", content=b" " * (1024**2 + 1), headers=JSON)
    assert (one.status_code, one.json()["detail"]) == (413, "The body is larger than 1 MiB.")


JSON = {"Content-Type": "application/json"}


def test_references_are_checked_with_their_index(api: Client, other: Client, import_rows: Import) -> None:
    manager, reason, hidden, foreign = (str(uuid7()) for _ in range(4))
    rows = [{"id": manager, "first_name": "Max"}, {"id": hidden, "first_name": "Al", "is_internal": True}]
    assert not import_rows(api, "account-managers", rows).errors
    assert not import_rows(other, "account-managers", [{"id": foreign, "first_name": "Bo"}]).errors
    assert not import_rows(api, "exit-reasons", [{"id": reason, "name": "Moved"}]).errors
    items = [
        {"account_manager_id": manager, "exit_reason_category_id": reason},
        {"account_manager_id": reason},
        {"account_manager_id": hidden, "exit_reason_subcategory_id": manager},
        {"account_manager_id": foreign},
        {"exit_reason_category_id": str(uuid7())},
    ]
    of_manager = "must be the id of an account manager of this plan manager"
    of_reason = "must be the id of an exit reason of this plan manager"
    assert sorted(field_errors(api.post("/participants/bulk", {"items": items}))) == [
        ("items[1].account_manager_id", of_manager),
        ("items[2].account_manager_id", of_manager),
        ("items[2].exit_reason_subcategory_id", of_reason),
        ("items[3].account_manager_id", of_manager),
        ("items[4].exit_reason_category_id", of_reason),
    ]
    [saved] = api.post("/participants/bulk", {"items": items[:1]}).json()["data"]
    assert saved["account_manager"] == {"id": manager, "name": "Max"}
    assert saved["exit_reason_category"] == {"id": reason, "name": "Moved"}
    assert api.get("/participants").json()["data"] == [saved]


@in_both
def test_a_retry_with_the_same_key_creates_nothing_again(api: Client, kind: str) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    first = api.post(f"/{kind}/bulk", {"items": [{}, {}]}, headers=key)
    again = api.post(f"/{kind}/bulk", {"items": [{}, {}]}, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    assert api.get(f"/{kind}").json()["pagination"]["total"] == 2
    assert api.post(f"/{kind}/bulk", {"items": [{}]}, headers=key).status_code == 422


@in_both
def test_other_methods_answer_as_for_an_invalid_id(api: Client, kind: str) -> None:
    for method, body in (("GET", None), ("PUT", {}), ("DELETE", None)):
        response, invalid = (api.request(method, f"/{kind}/{name}", json=body) for name in ("bulk", "x"))
        assert (
            field_errors(response)
            == field_errors(invalid)
            == [(f"{kind.removesuffix('s')}_id", "must be a UUID with hyphens")]
        )
    patched = api.request("PATCH", f"/{kind}/bulk")
    assert (patched.status_code, patched.headers["allow"]) == (405, "OPTIONS, POST")
    assert api.request("OPTIONS", f"/{kind}/bulk").headers["allow"] == "OPTIONS, POST"


def test_the_totals_by_status_and_state_stay_right(api: Client) -> None:
    one = api.create("/participants", {"status": "Lead", "state": "NSW"})
    items = [{"id": one["id"], "status": "Active"}, {"state": "vic"}, {"state": "VIC", "status": "Inactive"}]
    assert api.post("/participants/bulk", {"items": items}).status_code == 200
    totals = {
        (status, state): api.get("/participants", status=status, state=state).json()["pagination"]["total"]
        for status in ("Active", "Inactive", "Lead")
        for state in ("nsw", "vic")
    }
    assert {key: total for key, total in totals.items() if total} == {
        ("Active", "nsw"): 1, ("Active", "vic"): 1, ("Inactive", "vic"): 1,
    }  # fmt: skip
