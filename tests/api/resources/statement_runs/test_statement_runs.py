"""Runs of statements over HTTP: who gets a statement, who doesn't and why, and runs that are started again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plankeeper.core.pdf import documents
from support.client import Client
from support.server import RunningServer
from support.statement_runs import ADDRESS, MONTH, StatementOffice


@pytest.fixture
def office(server: RunningServer, api: Client) -> StatementOffice:
    return StatementOffice(server, api)


def outcomes(items: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str | None]]:
    return {participant: (each["state"], each["reason"]) for participant, each in items.items()}


def test_each_plan_of_the_month_has_an_item(office: StatementOffice) -> None:
    posted = office.participant("Post", postal_statement=True, **ADDRESS)
    run = office.start()
    expected = {
        "month": MONTH, "state": "running", "plans": 1, "made": 0, "sent": 0, "to_print": 0, "skipped": 0, "failed": 0,
        "problem": None, "created_by": "test", "ended_at": None,
    }  # fmt: skip
    assert {name: run[name] for name in expected} == expected
    assert set(run) == set(expected) | {"id", "run_date", "created_at", "started_at", "updated_at"}
    ended = office.ended_by_server(run)
    assert (ended["to_print"], ended["problem"]) == (1, None)
    [item] = office.items(run).values()
    [statement] = office.client.get(f"/participants/{posted}/statements").json()["data"]
    expected = {
        "run_id": run["id"], "participant_id": posted, "plan_id": statement["plan_id"], "state": "to_print",
        "statement_id": statement["id"], "reason": None, "message": None,
        "recipients": [{"kind": "participant", "id": posted, "way": "post", "state": "to_print", "message": None}],
    }  # fmt: skip
    assert {name: item[name] for name in expected} == expected
    assert set(item) == set(expected) | {"id", "created_at", "updated_at"}
    assert office.client.get("/statement-runs", state="ended").json()["data"] == [ended]
    assert office.client.get("/statement-runs", state="running").json()["data"] == []
    assert office.items(run, state="failed") == {}


def test_who_gets_a_statement(office: StatementOffice) -> None:
    email = {"email": "robin@example.com", "participant_receives_statements": True}
    ids = {
        "opted out": office.participant(email="x@example.com"),
        "no email": office.participant(participant_receives_statements=True),
        "no address": office.participant(postal_statement=True),
        "died": office.participant(**email, deceased_on="2026-02-01"),
        "left": office.participant(**email, managed_until="2026-02-28"),
        "not yet": office.participant(**email, managed_from="2026-04-01"),
        "lead": office.participant(**email) and office.participant(**(email | {"status": "Lead"})),
        "mail": office.participant(**email),
        "no access": office.participant(),
    }
    office.member(ids["no access"], "kim@example.com", "email_statements", "no_access")
    items = office.items(office.ended(office.start()))
    found = outcomes(items)
    assert {name: found[id_] for name, id_ in ids.items()} == {
        "opted out": ("skipped", "opted_out"),
        "no email": ("skipped", "no_recipient"),
        "no address": ("failed", "no_postal_address"),
        "died": ("skipped", "deceased"),
        "left": ("skipped", "not_managed"),
        "not yet": ("skipped", "not_managed"),
        "lead": ("skipped", "not_managed"),
        "mail": ("failed", "no_mail_server"),  # this server sends none
        "no access": ("skipped", "opted_out"),
    }
    made = {name for name, id_ in ids.items() if items[id_]["statement_id"]}
    assert made == {"opted out", "no email", "no address", "mail", "no access"}
    assert "PLANKEEPER_SMTP_URL" in items[ids["mail"]]["message"]


def test_a_run_that_is_started_twice_is_the_same_run(office: StatementOffice) -> None:
    first = office.participant(postal_statement=True, **ADDRESS)
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: office.start(), range(8)))
    assert len({each["id"] for each in runs}) == 1
    ended = office.ended(runs[0])
    second = office.participant(postal_statement=True, **ADDRESS)
    again = office.start()
    assert (again["id"], again["state"], again["plans"]) == (ended["id"], "running", 2)
    assert (again["run_date"], again["created_at"]) == (ended["run_date"], ended["created_at"])
    items = office.items(office.ended(again))
    assert outcomes(items) == {first: ("to_print", None), second: ("to_print", None)}
    for each in (first, second):
        assert len(office.client.get(f"/participants/{each}/statements").json()["data"]) == 1


def test_a_month_must_have_ended(office: StatementOffice) -> None:
    response = office.client.post("/statement-runs", {"month": "2099-01"})
    assert response.status_code == 400
    [error] = response.json()["errors"]
    assert (error["field"], error["code"], error["message"]) == ("month", "too_large", "must have ended")
    assert office.client.post("/statement-runs", {"month": "2026-13"}).status_code == 400


def test_what_failed_is_tried_again(office: StatementOffice) -> None:
    robin = office.participant(postal_statement=True)
    nobody = office.participant(participant_receives_statements=True)
    done = office.participant(postal_statement=True, **ADDRESS)
    run = office.ended(office.start())
    before = office.items(run)
    path = f"/statement-runs/{run['id']}/retry"
    response = office.client.post(path, {"item_ids": [before[done]["id"]]})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "item_ids[0]")
    office.client.put(f"/participants/{robin}", ADDRESS).raise_for_status()
    office.client.post(path, {"item_ids": [before[robin]["id"]]}).raise_for_status()
    items = office.items(office.ended(run))
    assert outcomes(items) == {
        robin: ("to_print", None), nobody: ("skipped", "no_recipient"), done: ("to_print", None)
    }  # fmt: skip
    assert items[robin]["statement_id"] == before[robin]["statement_id"]
    assert items[done] == before[done]
    office.client.put(f"/participants/{nobody}", ADDRESS | {"postal_statement": True}).raise_for_status()
    office.client.post(path).raise_for_status()
    assert outcomes(office.items(office.ended(run)))[nobody] == ("to_print", None)


def test_a_letter_that_no_font_has(office: StatementOffice) -> None:
    tengwar = office.participant("\ue000", postal_statement=True, **ADDRESS)
    run = office.ended(office.start())
    item = office.items(run)[tengwar]
    assert (item["state"], item["reason"]) == ("failed", "unprintable")
    assert "U+E000" in item["message"]


def test_a_statement_with_too_many_lines_fails(office: StatementOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_CONTENT_IN_WORKER", 0)
    monkeypatch.setattr(documents, "MAX_TIME", 0.01)  # as if it took too much time or memory
    long = office.participant(postal_statement=True, **ADDRESS)
    run = office.ended(office.start())
    item = office.items(run)[long]
    message = "The document can't be printed: no PDF can have so many lines."
    assert (item["state"], item["reason"], item["message"]) == ("failed", "unprintable", message)
