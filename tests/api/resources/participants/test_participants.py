"""Participants over HTTP: create, get, update, delete."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import assert_changed, times_of

Import = Callable[..., Any]

SUMMARY = {"first_name": None, "last_name": None, "participant_number": None, "email": None, "state": None}
ANN = {
    "first_name": "Ann", "last_name": "Lee", "participant_number": "431234567", "email": "Ann.Lee@Example.com",
    "state": "NSW",
}  # fmt: skip
UNSET = SUMMARY | {
    "middle_name": None, "preferred_name": None, "phone_number": None, "date_of_birth": None, "gender": None,
    "pronouns": None, "postcode": None, "address_line_1": None, "address_line_2": None, "city": None,
    "service_region_id": None, "status": "Active", "approval_required": False, "onboard_date": None,
    "date_ceased": None, "reason_for_leaving": None, "account_manager": {"id": None, "name": None},
    "external_id": None, "managed_from": None, "managed_until": None, "deceased_on": None, "remoteness": None,
    "is_pace_plan": False, "plan_start_date": None, "plan_end_date": None, "postal_statement": False,
    "participant_receives_statements": False,
}  # fmt: skip
FULL_PARTICIPANT = ANN | {
    "middle_name": "Mary", "preferred_name": "Annie", "phone_number": "+61 2 5550 1234", "date_of_birth": "1990-02-28",
    "gender": "female", "pronouns": "she/her", "postcode": "2000", "address_line_1": "1 High St", "address_line_2": "",
    "city": "Sydney", "service_region_id": "very_remote", "status": "Inactive", "approval_required": True,
    "onboard_date": "2020-01-01", "date_ceased": "2026-01-31", "reason_for_leaving": "Moved\naway",
    "external_id": "crm-17", "managed_from": "2025-07-01", "managed_until": "2026-01-31",
    "deceased_on": "2026-01-31", "remoteness": "very_remote",
    "is_pace_plan": True, "plan_start_date": "2025-07-01", "plan_end_date": "2026-06-30", "postal_statement": True,
    "participant_receives_statements": True,
}  # fmt: skip


@pytest.fixture
def manager(api: Client, import_rows: Import) -> str:
    """An account manager that the list shows."""
    ident = str(uuid7())
    import_rows(
        api, "account-managers", [{"id": ident, "first_name": "Max", "last_name": "Ng", "email": "m@pm.example"}]
    )
    return ident


@pytest.fixture
def exit_reasons(api: Client, import_rows: Import) -> tuple[str, str]:
    """An exit reason with one below it."""
    parent, child = str(uuid7()), str(uuid7())
    rows = [{"id": parent, "name": "Moved"}, {"id": child, "name": "Interstate", "parent_id": parent}]
    import_rows(api, "exit-reasons", rows)
    return parent, child


def field_errors(response: Any) -> list[tuple[str, str]]:
    body = response.json()
    assert (response.status_code, body["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in body["errors"]]


def get_one(api: Client, ident: str) -> dict[str, Any]:
    return api.get(f"/participants/{ident}").json()


def test_a_new_participant_is_returned_and_can_be_read(api: Client) -> None:
    response = api.post("/participants", ANN)
    made = response.json()
    assert response.status_code == 200
    assert made == UNSET | ANN | {"id": made["id"]} | times_of(made)
    got = api.get(f"/participants/{made['id']}")
    assert (got.status_code, got.json()) == (200, made)


def test_every_field_is_optional_and_null_means_unset(api: Client) -> None:
    for body in ({}, SUMMARY):
        made = api.create("/participants", body)
        assert made == UNSET | {"id": made["id"]} | times_of(made)


def test_a_participant_has_every_field_and_exit_reasons_only_when_set(
    api: Client, manager: str, exit_reasons: tuple[str, str]
) -> None:
    parent, child = exit_reasons
    references = {
        "account_manager_id": manager, "exit_reason_category_id": parent, "exit_reason_subcategory_id": child,
    }  # fmt: skip
    response = api.post("/participants", FULL_PARTICIPANT | references)
    made = response.json()
    assert response.status_code == 200
    expected = FULL_PARTICIPANT | times_of(made) | {
        "id": made["id"],
        "account_manager": {"id": manager, "name": "Max Ng"},
        "exit_reason_category": {"id": parent, "name": "Moved"},
        "exit_reason_subcategory": {"id": child, "name": "Interstate"},
    }  # fmt: skip
    assert made == expected == get_one(api, made["id"])
    assert api.get("/participants").json()["data"] == [made]
    cleared = api.put(f"/participants/{made['id']}", dict.fromkeys(references)).json()
    unset = {"account_manager": {"id": None, "name": None}}
    left = {name: value for name, value in made.items() if not name.startswith("exit_reason")} | unset
    assert_changed(left, {}, cleared)
    assert cleared == get_one(api, made["id"])


def test_an_update_changes_only_the_given_fields(api: Client) -> None:
    before = api.create("/participants", FULL_PARTICIPANT)
    for change in ({"first_name": "Anna"}, {"status": "Lead", "is_pace_plan": False}, {"date_of_birth": "1991-03-01"}):
        after = api.put(f"/participants/{before['id']}", change).json()
        assert_changed(before, change, after)
        before = get_one(api, before["id"])
        assert after == before


def test_null_clears_a_field_and_an_empty_string_is_stored(api: Client) -> None:
    before = api.create("/participants", FULL_PARTICIPANT)
    nullable = [name for name, value in UNSET.items() if value is None]
    emptied = dict.fromkeys(("first_name", "participant_number", "gender", "reason_for_leaving"), "")
    assert_changed(before, emptied, api.put(f"/participants/{before['id']}", emptied).json())
    cleared = dict.fromkeys(nullable)
    assert_changed(before, cleared, api.put(f"/participants/{before['id']}", cleared).json())


@pytest.mark.parametrize(
    "name", ["status", "approval_required", "is_pace_plan", "postal_statement", "participant_receives_statements"]
)
def test_null_is_rejected_for_statuses_and_flags(api: Client, name: str) -> None:
    made = api.create("/participants", FULL_PARTICIPANT)
    before = get_one(api, made["id"])
    must = "one of Active, Inactive, Lead" if name == "status" else "true or false"
    for response in (api.put(f"/participants/{made['id']}", {name: None}), api.post("/participants", {name: None})):
        assert field_errors(response) == [(name, f"must be {must}, not null")]
    assert api.get("/participants").json()["data"] == [before]


def test_a_read_participant_can_be_written_back(api: Client) -> None:
    made = api.create("/participants", ANN)
    path = f"/participants/{made['id']}"
    assert api.put(path, made).json() == made
    changed = api.put(path, made | {"first_name": "Anna", "id": made["id"].upper()})
    assert_changed(made, {"first_name": "Anna"}, changed.json())
    again = api.put(path.upper().replace("/PARTICIPANTS", "/participants"), made).json()
    assert_changed(made, {}, again)
    [(field, _)] = field_errors(api.put(path, made | {"id": str(uuid7()), "first_name": "Bob"}))
    assert field == "id"
    assert [field for field, _ in field_errors(api.post("/participants", made))] == ["id"]
    assert api.get(path).json() == again


def test_the_last_value_of_a_repeated_field_wins(api: Client) -> None:
    headers = {"Content-Type": "application/json"}
    for body, name in (
        (b'{"first_name": "Ann", "first_name": "Bob"}', "Bob"),
        (b'{"first_name": 5, "first_name": "Cat"}', "Cat"),
        (b'{"first_name": "Dan", "first_name": null}', None),
    ):
        response = api.request("POST", "/participants", content=body, headers=headers)
        assert (response.status_code, response.json()["first_name"]) == (200, name)
    rejected = api.request("POST", "/participants", content=b'{"first_name": "Ann", "first_name": 5}', headers=headers)
    assert field_errors(rejected) == [("first_name", "must be a string or null, not a whole number")]


LENGTHS = {
    "first_name": 255, "middle_name": 255, "last_name": 255, "preferred_name": 255, "participant_number": 50,
    "phone_number": 50, "gender": 255, "pronouns": 255, "postcode": 20, "address_line_1": 500, "address_line_2": 500,
    "city": 255, "service_region_id": 255, "reason_for_leaving": 10_000,
}  # fmt: skip


@pytest.mark.parametrize("character", ["a", "😀"])
def test_texts_have_a_length_in_characters(api: Client, character: str) -> None:
    longest = {name: character * most for name, most in LENGTHS.items()}
    stored = api.post("/participants", longest).json()
    assert {name: stored[name] for name in LENGTHS} == longest
    rejected = api.post("/participants", {name: text + character for name, text in longest.items()})
    assert dict(field_errors(rejected)) == {
        name: f"must be at most {most} characters long" for name, most in LENGTHS.items()
    }


def test_an_email_has_at_most_254_characters(api: Client) -> None:
    def email(length: int) -> str:
        local, *labels = "a" * 64, "b" * 60, "c" * 60, "d" * 60
        return f"{local}@{'.'.join(labels)}.com"[: length - 4].rstrip(".") + ".com"

    assert len(email(250)) == 250
    assert api.create("/participants", {"email": email(250)})["email"] == email(250)
    says = [("email", "must be at most 254 characters long")]
    assert field_errors(api.post("/participants", {"email": "a" * 245 + "@pm.example"})) == says


def test_an_email_is_stored_unchanged_and_any_number_is_accepted(api: Client) -> None:
    for body in (
        {"email": "Ann.O'Lee+ndis@Mail.Example.COM.au"},
        {"participant_number": "not a number at all"},
        {"participant_number": "000"},
    ):
        made = api.create("/participants", body)
        assert made == UNSET | body | {"id": made["id"]} | times_of(made)


def test_two_participants_may_share_a_number_and_an_email(api: Client) -> None:
    first, second = api.create("/participants", ANN), api.create("/participants", ANN)
    assert first["id"] < second["id"]
    listed = api.get("/participants", participant_number=ANN["participant_number"]).json()
    assert [each["id"] for each in listed["data"]] == [first["id"], second["id"]]


def test_an_account_manager_must_be_visible(api: Client, other: Client, manager: str, import_rows: Import) -> None:
    hidden: list[dict[str, Any]] = [{"deleted": True}, {"is_internal": True}, {"email": "x@PlanKeeper.example"}]
    rows = [{"id": str(uuid7()), "first_name": "Hidden"} | why for why in hidden]
    import_rows(api, "account-managers", rows)
    theirs = str(uuid7())
    import_rows(other, "account-managers", [{"id": theirs, "first_name": "Other"}])
    made = api.create("/participants", {"account_manager_id": manager.upper()})
    assert get_one(api, made["id"])["account_manager"] == {"id": manager, "name": "Max Ng"}
    says = [("account_manager_id", "must be the id of an account manager of this plan manager")]
    for wrong in (*(row["id"] for row in rows), theirs, str(uuid7())):
        assert field_errors(api.post("/participants", {"account_manager_id": wrong})) == says
        assert field_errors(api.put(f"/participants/{made['id']}", {"account_manager_id": wrong})) == says
    [listed] = api.get("/participants").json()["data"]
    assert listed["account_manager"] == {"id": manager, "name": "Max Ng"}


def test_errors_that_require_the_database_are_reported_with_the_others(api: Client) -> None:
    body = {name: str(uuid7()) for name in ("account_manager_id", "exit_reason_category_id")}
    body |= {"deceased_on": "2999-01-01", "exit_reason_subcategory_id": str(uuid7())}
    path = f"/participants/{api.create('/participants', {})['id']}"
    for response in (api.post("/participants", body), api.put(path, body)):
        assert sorted(field for field, _ in field_errors(response)) == sorted(body)


def test_a_hidden_account_manager_may_stay_assigned(api: Client, manager: str, import_rows: Import) -> None:
    made = api.create("/participants", {"account_manager_id": manager})
    import_rows(api, "account-managers", [{"id": manager, "deleted": True}])
    path = f"/participants/{made['id']}"
    assert_changed(made, {"first_name": "Ann"}, api.put(path, {"first_name": "Ann"}).json())
    assert api.put(path, {"account_manager_id": manager}).status_code == 200


@pytest.mark.parametrize("name", ["exit_reason_category_id", "exit_reason_subcategory_id"])
def test_an_exit_reason_must_belong_to_the_plan_manager(
    api: Client, other: Client, import_rows: Import, name: str
) -> None:
    theirs = str(uuid7())
    import_rows(other, "exit-reasons", [{"id": theirs, "name": "Moved"}])
    made = api.create("/participants", ANN)
    for wrong in (theirs, str(uuid7())):
        says = [(name, "must be the id of an exit reason of this plan manager")]
        assert field_errors(api.put(f"/participants/{made['id']}", {name: wrong, "first_name": "Bob"})) == says
        assert field_errors(api.post("/participants", {name: wrong})) == says
    assert api.get("/participants").json()["pagination"]["total"] == 1
    assert api.get(f"/participants/{made['id']}").json() == made


def test_a_deleted_participant_is_not_found(api: Client) -> None:
    made, stays = api.create("/participants", ANN), api.create("/participants", ANN)
    path = f"/participants/{made['id']}"
    response = api.delete(path)
    assert (response.status_code, response.json()) == (200, {})
    for again in (
        api.get(path),
        api.put(path, {"first_name": "Bob"}),
        api.delete(path),
        api.get(f"{path}/team-members"),
    ):
        assert (again.status_code, again.json()["error"]) == (404, "not_found")
    assert [each["id"] for each in api.get("/participants").json()["data"]] == [stays["id"]]


def test_deleting_a_participant_removes_its_team_and_keeps_its_invoices(api: Client, import_rows: Import) -> None:
    first, second = (api.create("/participants", {}) for _ in range(2))
    for each in (first, second):
        api.create(f"/participants/{each['id']}/team-members", {"email": "carer@example.com", "contact_priority": 1})
    invoice = str(uuid7())
    import_rows(api, "invoices", [{"id": invoice, "participant_id": first["id"], "invoice_number": "1"}])
    before = api.get(f"/invoices/{invoice}").json()
    assert api.delete(f"/participants/{first['id']}").json() == {}
    assert api.get(f"/invoices/{invoice}").json() == before
    assert before["participant_id"] == first["id"]
    assert api.get("/invoices", participant_id=first["id"]).json()["pagination"]["total"] == 1
    assert api.get(f"/participants/{second['id']}/team-members").json()["pagination"]["total"] == 1
