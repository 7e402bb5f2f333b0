"""Providers over HTTP: list, create, get, update, delete."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client

BASIC = {"entity_name": "Good Care Pty Ltd", "abn": "51824753556", "email": "Billing@GoodCare.example"}
UNSET = dict.fromkeys((
    "entity_name", "abn", "email", "primary_phone_number", "address", "city", "state", "postcode",
    "ndis_provider_number",
)) | {"active": True}  # fmt: skip
RICH = BASIC | {
    "active": False, "primary_phone_number": "02 5550 1234", "address": "1 High St", "city": "Perth", "state": "WA",
    "postcode": "6000", "ndis_provider_number": "4050000001",
}  # fmt: skip
LENGTHS = {
    "entity_name": 255, "abn": 50, "primary_phone_number": 50, "address": 500, "city": 255, "postcode": 20,
    "ndis_provider_number": 255,
}  # fmt: skip


def faults(answer: Any) -> list[tuple[str, str]]:
    body = answer.json()
    assert (answer.status_code, body["error"]) == (400, "invalid_request"), answer.text
    return [(each["field"], each["message"]) for each in body["errors"]]


def found(api: Client, **filters: Any) -> list[str]:
    """The names that a filter finds, in both modes, with the total that it states."""
    page = api.get("/providers", **filters)
    assert page.status_code == 200, page.text
    assert api.get("/providers", **filters, after="0").json()["data"] == page.json()["data"]
    names = [each["entity_name"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(names)
    return names


def test_a_new_provider_is_answered_with_its_four_fields_and_can_be_read(api: Client) -> None:
    answer = api.post("/providers", BASIC)
    made = answer.json()
    assert answer.status_code == 200
    assert made == BASIC | {"id": made["id"]}
    assert list(made) == ["id", "entity_name", "abn", "email"]
    got = api.get(f"/providers/{made['id']}")
    assert (got.status_code, got.json()) == (200, made)


def test_a_provider_needs_nothing_and_null_is_as_good_as_nothing(api: Client) -> None:
    for body in ({}, dict.fromkeys(BASIC)):
        made = api.made("/providers", body)
        assert made == {"id": made["id"], "entity_name": None, "abn": None, "email": None}
        seen = api.get(f"/providers/{made['id']}", view="full").json()
        assert seen == UNSET | {"id": made["id"], "created_at": seen["created_at"]}


def test_the_full_view_has_every_member(api: Client) -> None:
    answer = api.post("/providers?view=full", RICH)
    made = answer.json()
    assert answer.status_code == 200
    assert made == RICH | {"id": made["id"], "created_at": made["created_at"]}
    path = f"/providers/{made['id']}"
    basic = BASIC | {"id": made["id"]}
    assert api.get(path, view="full").json() == api.put(f"{path}?view=full", {}).json() == made
    assert api.get(path).json() == api.put(path, {}).json() == basic
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/providers").json() == {"data": [basic], "pagination": meta}
    assert api.get("/providers", view="full").json() == {"data": [made], "pagination": meta}


def test_there_is_no_view_but_full(api: Client) -> None:
    path = f"/providers/{api.made('/providers', {})['id']}"
    says = [("view", "must be one of full")]
    for answer in (api.get(path, view="basic"), api.get("/providers", view="x"), api.put(f"{path}?view=Full", {})):
        assert faults(answer) == says
    assert faults(api.delete(f"{path}?view=full")) == [("view", "is not known; none is taken")]


def test_an_update_changes_what_it_names_and_null_clears(api: Client) -> None:
    made = api.post("/providers?view=full", RICH).json()
    path = f"/providers/{made['id']}"
    for change in (
        {"entity_name": "Better Care"},
        {"active": True, "state": "VIC"},
        {"abn": "", "address": ""},
        {name: None for name, value in UNSET.items() if value is None},
        {},
    ):
        made |= change
        answer = api.put(f"{path}?view=full", change)
        assert (answer.status_code, answer.json()) == (200, made)
        assert api.get(path, view="full").json() == made


def test_a_state_is_kept_in_upper_case(api: Client) -> None:
    made = api.post("/providers?view=full", {"state": "qld"}).json()
    assert made["state"] == "QLD"
    assert api.put(f"/providers/{made['id']}?view=full", {"state": "nt"}).json() == made | {"state": "NT"}


def test_what_was_got_can_be_put_back(api: Client) -> None:
    made = api.made("/providers", BASIC)
    path = f"/providers/{made['id']}"
    assert api.put(path, made).json() == made
    assert api.put(path, made | {"id": made["id"].upper(), "abn": "1"}).json() == made | {"abn": "1"}
    [(field, _)] = faults(api.put(path, made | {"id": str(uuid7())}))
    assert field == "id"
    [(field, _)] = faults(api.post("/providers", made))
    assert field == "id"
    assert api.get(path).json() == made | {"abn": "1"}


@pytest.mark.parametrize(
    "body", [{"active": None}, {"active": "true"}, {"created_at": None}, {"name": "x"}, {"abn": 51}]
)
def test_what_cannot_be_written_is_named(api: Client, body: dict[str, Any]) -> None:
    made = api.made("/providers", BASIC)
    for answer in (api.put(f"/providers/{made['id']}", body), api.post("/providers", body)):
        assert [field for field, _ in faults(answer)] == list(body)
    assert api.get("/providers").json()["data"] == [made]


def test_texts_have_a_length(api: Client) -> None:
    longest = {name: "é" * most for name, most in LENGTHS.items()}
    made = api.post("/providers?view=full", longest).json()
    assert {name: made[name] for name in LENGTHS} == longest
    refused = api.post("/providers", {name: text + "é" for name, text in longest.items()})
    assert dict(faults(refused)) == {name: f"must be at most {most} characters long" for name, most in LENGTHS.items()}


def test_any_abn_is_taken_and_two_providers_may_share_everything(api: Client) -> None:
    for abn in ("51824753556", "51 824 753 556", "1", "not a number"):
        pair = [api.made("/providers", BASIC | {"abn": abn}) for _ in range(2)]
        assert [each["abn"] for each in pair] == [abn, abn]
        assert [each["id"] for each in api.get("/providers", abn=abn).json()["data"]] == [each["id"] for each in pair]


def test_a_deleted_provider_is_gone_and_keeps_its_invoices(api: Client, import_rows: Callable[..., Any]) -> None:
    made, stays = api.made("/providers", BASIC), api.made("/providers", BASIC)
    invoice = str(uuid7())
    assert not import_rows(api, "invoices", [{"id": invoice, "pm_provider_id": made["id"], "invoice_number": "1"}]).bad
    before = api.get(f"/invoices/{invoice}").json()
    path = f"/providers/{made['id']}"
    answer = api.delete(path)
    assert (answer.status_code, answer.json()) == (200, {})
    for again in (api.delete(path), api.get(path), api.put(path, {"abn": "1"})):
        assert (again.status_code, again.json()["error"]) == (404, "not_found")
    assert api.get("/providers").json()["data"] == [stays]
    assert api.get(f"/invoices/{invoice}").json() == before
    assert api.get("/invoices", provider_id=made["id"]).json()["data"][0]["pm_provider_id"] == made["id"]


def test_the_filters_are_exact_and_combine_with_and(api: Client) -> None:
    for name, abn, email in (
        ("a", "1", "A@x.example"), ("b", "1", "b@x.example"), ("c", "2", "a@x.example"), ("d", None, None),
    ):  # fmt: skip
        api.made("/providers", {"entity_name": name, "abn": abn, "email": email})
    assert found(api) == ["a", "b", "c", "d"]
    assert found(api, abn="1") == ["a", "b"]
    assert found(api, email="a@X.example") == ["a", "c"]
    assert found(api, abn="1", email="a@x.example", updated_since="2020-01-01T00:00:00Z") == ["a"]
    assert found(api, abn="%") == found(api, email="x.example") == []
    for name in ("abn", "email", "updated_since", "view"):
        assert faults(api.get("/providers", **{name: ""})) == [(name, "must not be empty")]
    [(field, _)] = faults(api.get("/providers", entity_name="a"))
    assert field == "entity_name"


def test_updated_since_finds_what_was_changed(api: Client) -> None:
    made = {name: api.made("/providers", {"entity_name": name, "abn": "1"}) for name in "abc"}
    clock = api.post("/providers?view=full", {"entity_name": "d", "abn": "2"}).json()["created_at"]
    assert found(api, updated_since=clock) == ["d"]
    assert api.put(f"/providers/{made['b']['id']}", {"email": "b@x.example"}).status_code == 200
    assert api.put(f"/providers/{made['c']['id']}", made["c"]).status_code == 200
    assert found(api, updated_since=clock) == ["b", "d"]
