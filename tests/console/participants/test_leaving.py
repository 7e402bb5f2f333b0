"""A participant leaves: one form with status, exit date and reasons, statements and open invoices."""

from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Browser, main_text
from support.form_helpers import event_summaries, form_fields, save_anyway
from support.server import RunningServer

PEOPLE = "/console/participants"
REASONS = {name: str(uuid7()) for name in ("Dissatisfied", "Fees", "Slow", "Died", "Deceased", "Moved")}
NO_DATE = "Exit date is missing, although the participant is Inactive."
NO_REASON = "Exit reason is missing, although the participant is Inactive."

NOT_DISSATISFIED = (
    "Specific exit reason “Deceased” belongs to “Died”, not to “Dissatisfied”."
    " For “Dissatisfied”, choose “Fees”, “Slow”, or leave it empty."
)


@pytest.fixture
def reasons(client: Client, import_rows: Callable[..., Any]) -> None:
    parents = {"Fees": "Dissatisfied", "Slow": "Dissatisfied", "Deceased": "Died"}
    rows = [
        {"id": id_, "name": name, "parent_id": REASONS[parents[name]] if name in parents else None}
        for name, id_ in REASONS.items()
    ]
    assert not import_rows(client, "exit-reasons", rows).errors


@pytest.fixture
def person(client: Client) -> str:
    body = {"first_name": "Ann", "participant_receives_statements": True, "postal_statement": True}
    return client.create("/participants", body)["id"]


def reason_ids(category: str, specific: str) -> dict[str, str]:
    return {
        "exit_reason_category_id": REASONS.get(category, ""), "exit_reason_subcategory_id": REASONS.get(specific, ""),
    }  # fmt: skip


@pytest.mark.usefixtures("reasons")
def test_leaving_is_one_form_and_one_change_that_is_undone_together(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    path = f"{PEOPLE}/{person}/edit/exit"
    before = client.get(f"/participants/{person}").json()
    form = form_fields(owner, path) | reason_ids("Died", "Deceased")
    form |= {"status": "Inactive", "date_ceased": "5/1/2026", "stop_statements": "true"}
    assert owner.submit(path, form).status_code == 303
    page = owner.get(f"{PEOPLE}/{person}").text
    assert "Changes saved: Status, Exit date, Exit reason, Specific exit reason," in unescape(page)
    after = client.get(f"/participants/{person}").json()
    assert {name for name in after if before.get(name) != after[name]} == {
        "status", "date_ceased", "exit_reason_category", "exit_reason_subcategory",
        "participant_receives_statements", "postal_statement", "updated_at",
    }  # fmt: skip
    assert (after["participant_receives_statements"], after["postal_statement"]) == (False, False)
    assert event_summaries(server, person)[1:] == ["participant.updated by user Robin Hale"]
    [undo] = [each for each in page.split('"') if each.endswith("/undo")]
    assert owner.submit(undo, form_fields(owner, undo)).status_code == 303
    restored = client.get(f"/participants/{person}").json()
    assert restored == before | {"updated_at": restored["updated_at"]}


def test_a_death_is_shown_beside_the_name_and_can_be_undone(owner: Browser, client: Client, person: str) -> None:
    client.put(f"/participants/{person}", {"date_of_birth": "1950-01-01"})
    before, path = client.get(f"/participants/{person}").json(), f"{PEOPLE}/{person}/edit/exit"
    assert "If the participant has died. Later services can’t be paid" in owner.get(path).text
    assert owner.submit(path, form_fields(owner, path) | {"deceased_on": "3/11/2025"}).status_code == 303
    page = owner.get(f"{PEOPLE}/{person}").text
    assert "Changes saved: Date of death." in page
    assert "Ann Died 3 Nov 2025" in main_text(page)
    assert "75 years old" in main_text(page)
    assert client.get(f"/participants/{person}").json()["deceased_on"] == "2025-11-03"
    [undo] = [each for each in page.split('"') if each.endswith("/undo")]
    assert "3 Nov 2025" in owner.get(undo).text
    assert owner.submit(undo, form_fields(owner, undo)).status_code == 303
    restored = client.get(f"/participants/{person}").json()
    assert restored == before | {"updated_at": restored["updated_at"]}
    assert "Died" not in main_text(owner.get(f"{PEOPLE}/{person}").text)


def test_only_one_form_changes_the_status(owner: Browser, client: Client, person: str) -> None:
    sections = ("person", "contact", "address", "plan", "manager", "exit")
    forms = {name: form_fields(owner, f"{PEOPLE}/{person}/edit/{name}") for name in sections}
    assert [name for name, form in forms.items() if "status" in form] == ["exit"]
    assert "status" in form_fields(owner, f"{PEOPLE}/new")
    path = f"{PEOPLE}/{person}/edit/plan"
    assert owner.submit(path, forms["plan"] | {"status": "Inactive", "stop_statements": "true"}).status_code == 303
    stored = client.get(f"/participants/{person}").json()
    assert (stored["status"], stored["postal_statement"]) == ("Active", True)


def test_statements_continue_unless_they_are_stopped(owner: Browser, client: Client, person: str) -> None:
    path = f"{PEOPLE}/{person}/edit/exit"
    form = form_fields(owner, path) | {"status": "Inactive", "stop_statements": "true"}
    rejected = owner.submit(path, form).text
    assert 'name="stop_statements" value="true" checked' in rejected  # the choice is kept while values are checked
    del form["stop_statements"]
    assert save_anyway(owner, path, form).status_code == 303
    assert client.get(f"/participants/{person}").json()["postal_statement"] is True
    client.put(f"/participants/{person}", {"postal_statement": False, "participant_receives_statements": False})
    assert "stop_statements" not in owner.get(path).text


@pytest.mark.usefixtures("reasons")
@pytest.mark.parametrize(
    "values, messages",
    [
        ({"status": "Inactive"}, [NO_DATE, NO_REASON]),
        ({"status": "Inactive", "reason_for_leaving": "Moved"}, [NO_DATE]),
        ({"status": "Inactive", "date_ceased": "1/2/2026"}, [NO_REASON]),
        ({"status": "Inactive", "date_ceased": "1/2/2026"} | reason_ids("Died", ""), []),
        ({"status": "Inactive", "date_ceased": "1/2/2026"} | reason_ids("Dissatisfied", "Fees"), []),
        (
            {"status": "Inactive", "date_ceased": "1/2/2026"} | reason_ids("Dissatisfied", "Deceased"),
            [NOT_DISSATISFIED],
        ),
        (
            reason_ids("Moved", "Fees"),
            ["Specific exit reason “Fees” belongs to “Dissatisfied”, not to “Moved”. For “Moved”, leave it empty."],
        ),
        (
            reason_ids("", "Fees"),
            ["Specific exit reason “Fees” belongs to “Dissatisfied”, but no exit reason is chosen."],
        ),
        (
            reason_ids("Moved", "Moved"),
            ["Specific exit reason “Moved” belongs elsewhere, not to “Moved”. For “Moved”, leave it empty."],
        ),
        ({"status": "Lead"}, []),
    ],
)  # fmt: skip
def test_an_incomplete_or_contradictory_exit_is_shown_before_it_is_saved(
    owner: Browser, client: Client, person: str, values: dict[str, str], messages: list[str]
) -> None:
    before = client.get("/participants").json()["data"]
    path = f"{PEOPLE}/{person}/edit/exit"
    for action, page in ((path, path), (PEOPLE, f"{PEOPLE}/new")):
        form = form_fields(owner, page) | ({"first_name": "Bo"} if action == PEOPLE else {}) | values
        response = owner.submit(action, form)
        if not messages:
            assert response.status_code == 303, response.text
            continue
        assert (response.status_code, response.text.count("field-warning")) == (422, len(messages))
        assert [response.text.count(each) for each in messages] == [2] * len(messages)  # also in the summary
        assert client.get("/participants").json()["data"] == before
    if messages:
        form = form_fields(owner, path) | values
        assert save_anyway(owner, path, form).status_code == 303
        assert client.get("/participants").json()["data"] != before


@pytest.mark.usefixtures("reasons")
def test_an_exit_that_was_incomplete_before_is_not_asked_again(owner: Browser, client: Client, person: str) -> None:
    ids = reason_ids("Dissatisfied", "Deceased")
    client.put(f"/participants/{person}", {"status": "Inactive", **ids})
    for section, values in {"exit": {"reason_for_leaving": "See mail"}, "address": {"city": "Hobart"}}.items():
        path = f"{PEOPLE}/{person}/edit/{section}"
        assert owner.submit(path, form_fields(owner, path) | values).status_code == 303
    stored = client.get(f"/participants/{person}").json()
    assert (stored["city"], stored["reason_for_leaving"], stored["date_ceased"]) == ("Hobart", "See mail", None)


def test_open_invoices_are_named_with_their_sum(
    owner: Browser, client: Client, person: str, import_rows: Callable[..., Any]
) -> None:
    path = f"{PEOPLE}/{person}/edit/exit"
    assert "open invoice" not in owner.get(path).text
    other = client.create("/participants", {"first_name": "Bo"})["id"]

    def add(number: str, total: float, **values: object) -> None:
        row = {"id": str(uuid7()), "invoice_number": number, "participant_id": person, "tax": 0, "subtotal": total}
        lines = {"total": total, "line_items": [{"total_price": total}]}
        assert not import_rows(client, "invoices", [row | lines | values]).errors

    for status in ("paid", "rejected", "cancelled"):
        add(f"NOT-{status}", 1, claim_status=status)
    add("NOT-deleted", 1, is_deleted=True)
    add("NOT-hers", 1, participant_id=other)
    assert "open invoice" not in owner.get(path).text
    add("HELD", 1164.95, claim_status="on_hold")
    link = f'<a href="/console/invoices?participant={person}&amp;claim_status=unpaid">'
    assert f"{link}1 open invoice, $1,164.95</a>" in owner.get(path).text
    add("NEW", 35.05)
    page = owner.get(path).text
    assert f"{link}2 open invoices, $1,200.00</a>" in page
    assert "open invoice" not in owner.get(f"{PEOPLE}/{person}/edit/plan").text
    listed = owner.get(f"/console/invoices?participant={person}&claim_status=unpaid").text
    assert ("2 invoices · $1,200.00" in listed, "NOT-" in listed) == (True, False)


def test_the_plan_of_a_participant_who_left_no_longer_runs(
    server: RunningServer, owner: Browser, client: Client, person: str
) -> None:
    today = datetime.now(server.settings.time_zone).date()
    dates = {"plan_start_date": today - timedelta(days=99), "plan_end_date": today + timedelta(days=100)}
    client.put(f"/participants/{person}", {name: str(day) for name, day in dates.items()})
    left = today - timedelta(days=49)
    path = f"{PEOPLE}/{person}"
    assert "100 days left" in main_text(owner.get(path).text)
    client.put(f"/participants/{person}", {"status": "Inactive", "date_ceased": str(left)})
    page = owner.get(path).text
    assert (f"Plan Left {left.day} {left:%b %Y}" in main_text(page), "days left" in page) == (True, False)
    assert 'class="passed" width="25"' in page
    client.put(f"/participants/{person}", {"date_ceased": None})
    page = owner.get(path).text
    assert ("Plan Left, no exit date" in main_text(page), "plan-bar" in page) == (True, False)
    client.put(f"/participants/{person}", dict.fromkeys(dates))
    assert "Plan Left, no exit date No plan dates" in main_text(owner.get(path).text)
