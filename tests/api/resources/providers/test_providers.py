"""Providers over HTTP: list, create, get, update, delete."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import assert_changed, times_of

SUMMARY = {"entity_name": "Good Care Pty Ltd", "abn": "51824753556", "email": "Billing@GoodCare.example"}
UNSET = dict.fromkeys((
    "entity_name", "abn", "email", "primary_phone_number", "address", "city", "state", "postcode",
    "ndis_provider_number", "remittance_email", "external_id",
)) | {"active": True, "abn_exempt": False, "abn_statement_date": None}  # fmt: skip
FULL_PROVIDER = SUMMARY | {
    "active": False, "primary_phone_number": "02 5550 1234", "address": "1 High St", "city": "Perth", "state": "WA",
    "postcode": "6000", "ndis_provider_number": "4050000001", "remittance_email": "pay@example.com",
    "external_id": "crm-17",
}  # fmt: skip
LENGTHS = {
    "entity_name": 255, "abn": 50, "primary_phone_number": 50, "address": 500, "city": 255, "postcode": 20,
    "ndis_provider_number": 255,
}  # fmt: skip


def field_errors(response: Any) -> list[tuple[str, str]]:
    body = response.json()
    assert (response.status_code, body["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in body["errors"]]


def list_names(api: Client, **filters: Any) -> list[str]:
    """The names that a filter finds, in both modes, with the total that it states."""
    page = api.get("/providers", **filters)
    assert page.status_code == 200, page.text
    assert api.get("/providers", **filters, after="0").json()["data"] == page.json()["data"]
    names = [each["entity_name"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(names)
    return names


def test_a_new_provider_is_returned_and_can_be_read(api: Client) -> None:
    response = api.post("/providers", SUMMARY)
    made = response.json()
    assert response.status_code == 200
    assert made == UNSET | SUMMARY | {"id": made["id"]} | times_of(made)
    got = api.get(f"/providers/{made['id']}")
    assert (got.status_code, got.json()) == (200, made)


def test_every_field_is_optional_and_null_means_unset(api: Client) -> None:
    for body in ({}, dict.fromkeys(SUMMARY)):
        made = api.create("/providers", body)
        assert made == UNSET | {"id": made["id"]} | times_of(made)


def test_a_provider_has_every_field(api: Client) -> None:
    response = api.post("/providers", FULL_PROVIDER)
    made = response.json()
    assert response.status_code == 200
    assert made == UNSET | FULL_PROVIDER | {"id": made["id"]} | times_of(made)
    path = f"/providers/{made['id']}"
    assert api.get(path).json() == api.put(path, {}).json() == made
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/providers").json() == {"data": [made], "pagination": meta}


def test_an_update_changes_only_the_given_fields_and_null_clears(api: Client) -> None:
    made = api.post("/providers", FULL_PROVIDER).json()
    path = f"/providers/{made['id']}"
    for change in (
        {"entity_name": "Better Care"},
        {"active": True, "state": "VIC"},
        {"abn": "", "address": ""},
        {name: None for name, value in UNSET.items() if value is None},
        {},
    ):
        changed = api.put(path, change).json()
        if change:
            assert_changed(made, change, changed)
            made = changed
        assert api.get(path).json() == changed == made


def test_a_state_is_stored_in_upper_case(api: Client) -> None:
    made = api.post("/providers", {"state": "qld"}).json()
    assert made["state"] == "QLD"
    assert api.put(f"/providers/{made['id']}", {"state": "nt"}).json()["state"] == "NT"


def test_a_read_provider_can_be_written_back(api: Client) -> None:
    made = api.create("/providers", SUMMARY)
    path = f"/providers/{made['id']}"
    assert api.put(path, made).json() == made
    changed = api.put(path, made | {"id": made["id"].upper(), "abn": "1"}).json()
    assert_changed(made, {"abn": "1"}, changed)
    [(field, _)] = field_errors(api.put(path, made | {"id": str(uuid7())}))
    assert field == "id"
    assert "id" in [field for field, _ in field_errors(api.post("/providers", made))]
    assert api.get(path).json() == changed


@pytest.mark.parametrize("body", [{"active": None}, {"active": "true"}, {"name": "x"}, {"abn": 51}])
def test_invalid_fields_are_rejected_by_name(api: Client, body: dict[str, Any]) -> None:
    made = api.create("/providers", SUMMARY)
    for response in (api.put(f"/providers/{made['id']}", body), api.post("/providers", body)):
        assert [field for field, _ in field_errors(response)] == list(body)
    assert api.get("/providers").json()["data"] == [made]


def test_texts_have_a_maximum_length(api: Client) -> None:
    longest = {name: "é" * most for name, most in LENGTHS.items()}
    made = api.post("/providers", longest).json()
    assert {name: made[name] for name in LENGTHS} == longest
    rejected = api.post("/providers", {name: text + "é" for name, text in longest.items()})
    assert dict(field_errors(rejected)) == {
        name: f"must be at most {most} characters long" for name, most in LENGTHS.items()
    }


def test_any_abn_is_accepted_and_providers_may_share_all_values(api: Client) -> None:
    for abn in ("51824753556", "1", "not a number"):
        pair = [api.create("/providers", SUMMARY | {"abn": abn}) for _ in range(2)]
        assert [each["abn"] for each in pair] == [abn, abn]
        assert [each["id"] for each in api.get("/providers", abn=abn).json()["data"]] == [each["id"] for each in pair]


def test_a_deleted_provider_is_not_found_and_its_invoices_are_kept(
    api: Client, import_rows: Callable[..., Any]
) -> None:
    made, stays = api.create("/providers", SUMMARY), api.create("/providers", SUMMARY)
    invoice = str(uuid7())
    assert not import_rows(
        api, "invoices", [{"id": invoice, "pm_provider_id": made["id"], "invoice_number": "1"}]
    ).errors
    before = api.get(f"/invoices/{invoice}").json()
    path = f"/providers/{made['id']}"
    response = api.delete(path)
    assert (response.status_code, response.json()) == (200, {})
    for again in (api.delete(path), api.get(path), api.put(path, {"abn": "1"})):
        assert (again.status_code, again.json()["error"]) == (404, "not_found")
    assert api.get("/providers").json()["data"] == [stays]
    assert api.get(f"/invoices/{invoice}").json() == before
    assert api.get("/invoices", provider_id=made["id"]).json()["data"][0]["pm_provider_id"] == made["id"]


def test_the_filters_are_exact_and_combine_with_and(api: Client) -> None:
    for name, abn, email in (
        ("a", "1", "A@x.example"), ("b", "1", "b@x.example"), ("c", "2", "a@x.example"), ("d", None, None),
    ):  # fmt: skip
        api.create("/providers", {"entity_name": name, "abn": abn, "email": email})
    assert list_names(api) == ["a", "b", "c", "d"]
    assert list_names(api, abn="1") == ["a", "b"]
    assert list_names(api, email="a@X.example") == ["a", "c"]
    assert list_names(api, abn="1", email="a@x.example", updated_since="2020-01-01T00:00:00Z") == ["a"]
    assert list_names(api, abn="%") == list_names(api, email="x.example") == []
    for name in ("abn", "email", "updated_since"):
        assert field_errors(api.get("/providers", **{name: ""})) == [(name, "must not be empty")]
    [(field, _)] = field_errors(api.get("/providers", entity_name="a"))
    assert field == "entity_name"


def test_updated_since_finds_changed_providers(api: Client) -> None:
    made = {name: api.create("/providers", {"entity_name": name, "abn": "1"}) for name in "abc"}
    clock = api.post("/providers", {"entity_name": "d", "abn": "2"}).json()["created_at"]
    assert list_names(api, updated_since=clock) == ["d"]
    assert api.put(f"/providers/{made['b']['id']}", {"email": "b@x.example"}).status_code == 200
    assert api.put(f"/providers/{made['c']['id']}", made["c"]).status_code == 200
    assert list_names(api, updated_since=clock) == ["b", "d"]


def test_an_abn_is_found_with_and_without_spaces_and_hyphens(api: Client) -> None:
    abns = ("51 824 753 556", "51824753556", "51-824-753-556", "AB 12", "518-247")
    *same, other, _ = (api.create("/providers", {"abn": each})["id"] for each in abns)
    for abn in ("51 824 753 556", "51824753556", "5182 4753556", "51-824 753-556"):
        assert [each["id"] for each in api.get("/providers", abn=abn).json()["data"]] == same
    assert api.get("/providers", abn="518247").json()["data"] == []
    assert [each["id"] for each in api.get("/providers", abn="AB 12").json()["data"]] == [other]
    assert api.get("/providers", abn="AB12").json()["data"] == []


def test_the_state_filter_accepts_several_states_in_either_case(api: Client) -> None:
    for name, state in (("a", "NSW"), ("b", "QLD"), ("c", "VIC"), ("d", None)):
        api.create("/providers", {"entity_name": name, "state": state})
    assert list_names(api, state="qld") == list_names(api, state="QLD") == ["b"]
    assert list_names(api, state="vic,NSW") == ["a", "c"]
    [error] = api.get("/providers", state="nsw,xx").json()["errors"]
    assert (error["field"], error["code"], error["allowed"][0]) == ("state[1]", "not_allowed", "act")
