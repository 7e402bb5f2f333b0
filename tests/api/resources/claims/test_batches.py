"""Claim batches over HTTP: make, submit, cancel, list, and the file."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.resources.claims import service
from plankeeper.resources.claims.batch_file import HEADER, references
from plankeeper.resources.claims.service import Candidates, Search
from support.claims import ABN, NDIS_NUMBER, REGISTRATION_NUMBER, Office, set_office
from support.client import Client
from support.server import RunningServer
from support.webhooks import wait_for_events

Batch = dict[str, Any]


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


def lines(invoice: dict[str, Any], *names: str) -> list[Any]:
    return [tuple(each[name] for name in names) for each in invoice["line_items"]]


def file_of(office: Office, batch: Batch) -> list[dict[str, str]]:
    response = office.client.get(f"/claim-batches/{batch['id']}/file")
    assert response.status_code == 200
    return [*csv.DictReader(io.StringIO(response.text, newline=""))]


def left_out(batch: Batch) -> list[tuple[str, str]]:
    return [(each["invoice_id"], each["reason"]) for each in batch["left_out"]]


def test_a_batch_is_made_submitted_and_read(office: Office) -> None:
    invoice = office.invoice("2026/442", office.line(), office.line(quantity=1, total_price=193.99))
    response = office.claim(invoice)
    assert response.status_code == 201, response.text
    batch = response.json()
    expected = {
        "number": "B000001", "state": "draft", "total": 484.98, "lines": 2, "warned": [], "left_out": [],
        "left_out_count": 0, "created_by": "test", "submitted_at": None, "submitted_by": None, "cancelled_at": None,
        "cancelled_by": None, "cancel_reason": None,
    }  # fmt: skip
    assert {name: batch[name] for name in expected} == expected
    assert response.headers["location"].endswith(f"/claim-batches/{batch['id']}")
    assert office.client.get(f"/claim-batches/{batch['id']}").json() == batch
    draft = office.read(invoice)
    assert draft["claim_status"] == "new"
    assert lines(draft, "claim_status", "open_claim_batch", "claim_batch_ref") == [("new", "B000001", None)] * 2
    locked = office.client.post(f"/invoices/{invoice['id']}/cancel", {"reason": "Twice"})
    assert (locked.status_code, locked.json()["error"]) == (409, "invoice_locked")
    submitted = office.client.post(f"/claim-batches/{batch['id']}/submit").json()
    assert (submitted["state"], submitted["submitted_by"], submitted["left_out"]) == ("submitted", "test", [])
    pending = office.read(invoice)
    assert pending["claim_status"] == "pending"
    names = ("claim_status", "open_claim_batch", "claim_batch_ref")
    assert lines(pending, *names) == [("pending", "B000001", "B000001")] * 2
    again = office.client.post(f"/claim-batches/{batch['id']}/submit")
    assert (again.status_code, again.json()["error"]) == (409, "invalid_transition")
    assert again.json()["detail"] == "The claim batch is submitted, so it can't be submitted."
    types = [each["type"] for each in wait_for_events(office.client, "claim_batch.*", 2)]
    assert types == ["claim_batch.created", "claim_batch.submitted"]
    types = [each["type"] for each in wait_for_events(office.client, "invoice.line_changed", 2)]
    assert types == ["invoice.line_changed"] * 2


def test_the_file_has_the_rows_of_the_batch_and_never_changes(office: Office) -> None:
    invoice = office.invoice(
        "2026/442", office.line(), office.line(quantity=1, total_price=193.99, claim_type="CANC",
        cancellation_reason="NSDO"),
    )  # fmt: skip
    batch = office.batch(invoice)
    path = f"/claim-batches/{batch['id']}/file"
    response = office.client.get(path)
    assert response.headers["content-type"] == "text/csv"
    assert response.headers["content-disposition"] == 'attachment; filename="C000000000001.csv"'
    assert response.content.startswith(b"RegistrationNumber,NDISNumber,")
    assert response.content.count(b"\r\n") == 3
    office.client.put(f"/providers/{office.provider}", {"abn": "11123456780"})
    office.client.put(f"/participants/{office.participant}", {"participant_number": "430000019"})
    assert office.client.get(path).content == response.content
    first, second = file_of(office, batch)
    assert tuple(first) == HEADER
    assert first == {
        "RegistrationNumber": REGISTRATION_NUMBER, "NDISNumber": NDIS_NUMBER, "SupportsDeliveredFrom": "2026-01-15",
        "SupportsDeliveredTo": "2026-01-15", "SupportNumber": "15_056_0128_1_3", "ClaimReference": "2026/442_1",
        "Quantity": "1.50", "Hours": "", "UnitPrice": "193.99", "GSTCode": "P2", "AuthorisedBy": "",
        "ParticipantApproved": "", "InKindFundingProgram": "", "ClaimType": "", "CancellationReason": "",
        "ABN of Support Provider": ABN,
    }  # fmt: skip
    assert (second["ClaimReference"], second["ClaimType"], second["CancellationReason"]) == (
        "2026/442_2", "CANC", "NSDO",
    )  # fmt: skip


def test_the_lines_of_a_batch_are_its_claims(office: Office) -> None:
    invoice = office.invoice("7", office.line(), office.line(quantity=1, total_price=193.99))
    batch = office.batch(invoice)
    path = f"/claim-batches/{batch['id']}/lines"
    first, second = office.client.get(path).json()["data"]
    assert first == {
        "id": first["id"], "invoice_id": invoice["id"], "line_id": invoice["line_items"][0]["id"], "source": "batch",
        "batch_id": batch["id"], "position": 1, "reference": "7_1", "is_rest": False, "amount": 290.99, "paid": None,
        "state": "draft", "reason": None, "agency_number": None, "result_date": None, "result_at": None,
        "result_by": None, "created_at": batch["created_at"], "created_by": "test", "updated_at": first["updated_at"],
    }  # fmt: skip
    page = office.client.get(path, limit=1, after="0").json()
    assert [each["id"] for each in page["data"]] == [first["id"]]
    page = office.client.get(path, limit=1, after=page["pagination"]["next_cursor"]).json()
    assert [each["id"] for each in page["data"]] == [second["id"]]
    assert office.client.get(path, state="submitted").json()["data"] == []
    assert office.client.get(path, sort="-updated_at").json()["pagination"]["total"] == 2


def test_batches_are_listed_by_their_state(office: Office) -> None:
    first = office.batch(office.invoice("1"))
    second = office.batch(office.invoice("2"))
    office.client.post(f"/claim-batches/{first['id']}/submit")
    listed = office.client.get("/claim-batches").json()["data"]
    assert [each["number"] for each in listed] == ["B000001", "B000002"]
    assert all("left_out" not in each and "warned" not in each for each in listed)
    drafts = office.client.get("/claim-batches", state="draft").json()["data"]
    assert [each["id"] for each in drafts] == [second["id"]]
    since = office.client.get("/claim-batches", updated_since=second["updated_at"], sort="-updated_at").json()["data"]
    assert [each["id"] for each in since] == [first["id"], second["id"]]


def test_a_dry_run_stores_nothing_and_says_what_a_batch_would_contain(office: Office) -> None:
    claimable, held = office.invoice("1"), office.invoice("2")
    office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Price"})
    response = office.claim(claimable, held, params={"dry_run": "true"})
    assert response.status_code == 200
    tried = response.json()
    assert (tried["id"], tried["number"], tried["state"], tried["lines"]) == (None, None, "draft", 1)
    assert left_out(tried) == [(held["id"], "held")]
    assert "location" not in response.headers
    assert office.client.get("/claim-batches").json()["data"] == []
    assert lines(office.read(held), "claim_status") == [("new",)]
    nothing = office.claim(held, params={"dry_run": "true"})
    assert (nothing.status_code, nothing.json()["lines"]) == (200, 0)
    rejected = office.claim(held)
    assert (rejected.status_code, rejected.json()["error"]) == (400, "invalid_request")
    assert "held: 1" in rejected.json()["detail"]
    assert lines(office.read(held), "claim_status") == [("new",)]


def test_lines_that_are_left_out_are_flagged(office: Office) -> None:
    claimable, held, excluded = office.invoice("1"), office.invoice("2"), office.invoice("3")
    office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Price"})
    office.client.post(f"/invoices/{excluded['id']}/wont-claim", {"reason": "Private"})
    batch = office.batch()
    assert {*left_out(batch)} == {(held["id"], "held"), (excluded["id"], "wont_claim")}
    assert batch["left_out_count"] == 2
    assert lines(office.read(claimable), "claim_status") == [("new",)]
    assert lines(office.read(held), "claim_status") == [("flagged",)]
    assert lines(office.read(excluded), "claim_status") == [("new",)]
    office.client.post(f"/invoices/{held['id']}/release")
    assert office.batch()["lines"] == 1  # a flagged line can be claimed


def test_lines_whose_invoice_keeps_them_out_never_take_the_place_of_others(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_CANDIDATES", 1)
    day = (datetime.now(UTC).date() + timedelta(days=5)).isoformat()  # a warning that blocks claims
    kept_out = [office.invoice("1", office.line(service_date_from=day, service_date_to=day))]
    for action, body in (
        ("wont-claim", {"reason": "Private"}),
        ("hold", {"reason": "Price"}),
        ("request-approval", None),
    ):
        kept_out.append(office.invoice(action))
        office.client.post(f"/invoices/{kept_out[-1]['id']}/{action}", body).raise_for_status()
    dry_run = {"dry_run": "true"}
    assert office.claim(params=dry_run).json()["left_out_count"] == 1
    claimable = office.invoice("5")
    assert office.claim(*kept_out, claimable, params=dry_run).json()["lines"] == 1
    claims = office.client.get(f"/claim-batches/{office.batch()['id']}/lines").json()["data"]
    assert [each["invoice_id"] for each in claims] == [claimable["id"]]


def test_lines_that_cannot_be_claimed_leave_their_places_to_later_ones(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_LINES", 2)
    monkeypatch.setattr(service, "SEARCHED_AT_ONCE", 2)
    incomplete = [office.invoice(f"X{number}", office.line(service_item_number=None)) for number in range(5)]
    claimable = [
        office.invoice(f"A{number}", office.line(service_date_from=f"2026-01-1{number}")) for number in range(3)
    ]
    tried = office.claim(params={"dry_run": "true"}).json()
    assert (tried["lines"], tried["left_out_count"]) == (2, 6)
    expected = [*((each["id"], "missing_item") for each in incomplete), (claimable[2]["id"], "batch_full")]
    assert left_out(tried) == expected
    batch = office.batch()
    assert (batch["lines"], left_out(batch)) == (2, expected)
    claims = office.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]
    assert [each["invoice_id"] for each in claims] == [each["id"] for each in claimable[:2]]
    states = [office.read(each)["claim_status"] for each in (*incomplete, claimable[2])]
    assert states == ["flagged", "flagged", "new", "new", "new", "new"]  # as many as a batch has lines
    assert office.batch()["lines"] == 1
    assert [office.read(each)["claim_status"] for each in incomplete] == ["flagged"] * 4 + ["new"]
    nothing = office.claim()
    assert (nothing.status_code, "missing_item: 5" in nothing.json()["detail"]) == (400, True)


def test_lines_that_a_search_has_found_are_checked_again_when_they_are_locked(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_LINES", 2)
    office.invoice("X", office.line(service_item_number=None))
    held, claimed = office.invoice("A1"), office.invoice("A2", office.line(service_date_from="2026-01-14"))
    search = service.search

    async def search_and_hold(ctx: WriteContext, found: Candidates) -> Search:
        searched = await search(ctx, found)
        statement: LiteralString = "update invoices set held_at = now() where plan_manager_id = $1 and id = $2"
        async with office.server.db.transaction() as tx:
            await tx.execute(statement, office.plan_manager_id, UUID(held["id"]))
        return searched

    monkeypatch.setattr(service, "search", search_and_hold)
    batch = office.batch()
    claims = office.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]
    assert [each["invoice_id"] for each in claims] == [claimed["id"]]
    assert [why for _, why in left_out(batch)] == ["missing_item", "held"]


def test_without_a_registration_number_no_line_is_searched(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_LINES", 1)
    set_office(office.server, office.client, registration_number=None)
    first, second = office.invoice("A1"), office.invoice("A2")
    tried = office.claim(params={"dry_run": "true"}).json()
    assert left_out(tried) == [(first["id"], "missing_registration_number"), (second["id"], "batch_full")]


def test_a_draft_is_cancelled_and_its_lines_are_claimed_again(office: Office) -> None:
    invoice = office.invoice("001")
    first = office.batch(invoice)
    in_batch = office.claim(invoice, params={"dry_run": "true"}).json()
    assert left_out(in_batch) == [(invoice["id"], "state")]
    assert in_batch["left_out"][0]["message"] == "Line 1 is in claim batch B000001."
    cancelled = office.client.post(f"/claim-batches/{first['id']}/cancel", {})
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert lines(office.read(invoice), "claim_status", "open_claim_batch") == [("new", None)]
    [claim] = office.client.get(f"/claim-batches/{first['id']}/lines").json()["data"]
    assert (claim["state"], claim["reference"]) == ("cancelled", "001")
    second = office.batch(invoice)
    assert [each["ClaimReference"] for each in file_of(office, second)] == ["001-R2"]
    again = office.client.post(f"/claim-batches/{first['id']}/cancel", {})
    assert (again.status_code, again.json()["error"]) == (409, "invalid_transition")


def test_the_first_download_is_recorded_and_a_cancellation_says_that_the_agency_has_not_got_the_file(
    office: Office,
) -> None:
    batch = office.batch(office.invoice("001"))
    path = f"/claim-batches/{batch['id']}"
    head = office.client.request("HEAD", f"{path}/file")
    assert office.client.get(path).json() == batch
    assert (batch["downloaded_at"], batch["downloaded_by"]) == (None, None)
    file = office.client.get(f"{path}/file").content
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(file)))
    first = office.client.get(path).json()
    assert (first["downloaded_at"] == first["updated_at"], first["downloaded_by"]) == (True, "test")
    assert office.client.get(f"{path}/file").content == file
    assert office.client.get(path).json() == first
    types = [each["type"] for each in wait_for_events(office.client, "claim_batch.*", 2)]
    assert types == ["claim_batch.created", "claim_batch.downloaded"]
    missing = office.client.post(f"{path}/cancel", {}).json()["errors"]
    assert [(each["field"], each["code"]) for each in missing] == [("uploaded", "required"), ("reason", "required")]
    cancelled = office.client.post(f"{path}/cancel", {"uploaded": False, "reason": "Wrong"}).json()
    assert (cancelled["state"], cancelled["downloaded_by"]) == ("cancelled", "test")


def test_a_submitted_batch_is_cancelled_only_if_it_was_not_uploaded(office: Office) -> None:
    invoice = office.invoice("001")
    batch = office.batch(invoice)
    path = f"/claim-batches/{batch['id']}"
    office.client.post(f"{path}/submit")
    assert office.client.post(f"{path}/cancel", {}).status_code == 400
    uploaded = office.client.post(f"{path}/cancel", {"uploaded": True, "reason": "Wrong"})
    assert [each["field"] for each in uploaded.json()["errors"]] == ["uploaded"]
    cancelled = office.client.post(f"{path}/cancel", {"uploaded": False, "reason": "Wrong"}).json()
    assert (cancelled["state"], cancelled["cancel_reason"], cancelled["cancelled_by"]) == (
        "cancelled", "Wrong", "test",
    )  # fmt: skip
    after = office.read(invoice)
    assert lines(after, "claim_status", "open_claim_batch", "claim_batch_ref") == [("new", None, None)]
    assert after["claim_status"] == "new"
    [claim] = office.client.get(f"{path}/lines").json()["data"]
    assert (claim["state"], claim["reason"]) == ("cancelled", "Wrong")


def test_a_batch_with_a_result_cannot_be_cancelled(office: Office) -> None:
    batch = office.batch(office.invoice("1"), office.invoice("2"))
    path = f"/claim-batches/{batch['id']}"
    office.client.post(f"{path}/submit")
    office.execute("update claims set state = 'rejected' where plan_manager_id = $1 and position = 1",
                   office.plan_manager_id)  # fmt: skip
    response = office.client.post(f"{path}/cancel", {"uploaded": False, "reason": "Wrong"})
    assert (response.status_code, response.json()["error"]) == (409, "invalid_transition")


def test_two_invoices_with_one_number_have_different_references(office: Office) -> None:
    other = office.provider_with(entity_name="Bright Clean", abn="11123456780")
    first, second = office.invoice("001"), office.invoice("001", pm_provider_id=other)
    assert [each["ClaimReference"] for each in file_of(office, office.batch(first, second))] == ["001", "001-2"]
    third = office.provider_with(entity_name="Third", abn="53004085616")
    batch = office.batch(office.invoice("001", pm_provider_id=third))
    assert [each["ClaimReference"] for each in file_of(office, batch)] == ["001-3"]


def test_many_invoices_with_one_number_get_their_references_one_after_the_other(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[str]()

    def count(*arguments: Any) -> Iterator[str]:
        for each in references(*arguments):
            tried.append(each)
            yield each

    monkeypatch.setattr(service, "references", count)
    set_office(office.server, office.client, warning_levels={"possible_duplicate": "warn"})
    invoices = [office.import_invoice(str(uuid7()), "001") for _ in range(30)]
    batch = office.batch(*invoices)
    names = ["001", *(f"001-{number}" for number in range(2, 31))]
    assert [each["ClaimReference"] for each in file_of(office, batch)] == tried == names
    tried.clear()
    reason = {"uploaded": False, "reason": "Wrong"}
    office.client.post(f"/claim-batches/{batch['id']}/cancel", reason).raise_for_status()
    again = [each["ClaimReference"] for each in file_of(office, office.batch(*invoices))]
    assert again == tried == ["001-R2", *(f"001-{number}-R2" for number in range(2, 31))]


def test_the_rest_of_a_line_is_claimed_with_quantity_1(office: Office) -> None:
    invoice = office.invoice("001")
    office.batch(invoice)
    office.execute(
        "update claims set state = 'partially_paid', paid = 200 where plan_manager_id = $1", office.plan_manager_id
    )
    office.execute(
        """
        update invoice_lines set claim_status = 'partially_paid', paid_amount = 200, is_rest_waiting = true,
            has_payment = true, open_claim_batch = null, claim_batch_ref = 'B000001'
        where plan_manager_id = $1
        """,
        office.plan_manager_id,
    )
    batch = office.batch()
    [row] = file_of(office, batch)
    assert (row["ClaimReference"], row["Quantity"], row["UnitPrice"]) == ("001-G2", "1.00", "90.99")
    assert batch["total"] == 90.99
    draft = office.read(invoice)
    assert lines(draft, "claim_status", "is_rest_waiting") == [("partially_paid", True)]
    path = f"/claim-batches/{batch['id']}"
    office.client.post(f"{path}/submit")
    assert lines(office.read(invoice), "claim_status", "is_rest_waiting") == [("pending", False)]
    office.client.post(f"{path}/cancel", {"uploaded": False, "reason": "Wrong"})
    names = ("claim_status", "is_rest_waiting", "claim_batch_ref", "open_claim_batch")
    assert lines(office.read(invoice), *names) == [("partially_paid", True, "B000001", None)]
    assert [each["ClaimReference"] for each in file_of(office, office.batch())] == ["001-G3"]


def test_invalid_requests_name_what_is_wrong(office: Office, other: Client) -> None:
    invoice, foreign = office.invoice("1"), other.create("/invoices", {"invoice_number": "1"})
    unknown = "01900000-0000-7000-8000-00000000000f"
    for body, *error in (
        ({}, "all", "required"),
        ({"all": False}, "all", "inconsistent"),
        ({"all": True, "invoice_ids": [invoice["id"]]}, "all", "inconsistent"),
        ({"invoice_ids": [invoice["id"], unknown]}, "invoice_ids[1]", "not_found"),
        ({"invoice_ids": [foreign["id"]]}, "invoice_ids[0]", "not_found"),
        ({"invoice_ids": []}, "invoice_ids", "too_short"),
    ):
        response = office.client.post("/claim-batches", body)
        assert response.status_code == 400, body
        assert [[each["field"], each["code"]] for each in response.json()["errors"]] == [error], body


def test_batches_require_the_scope_claims(office: Office, new_client: Any) -> None:
    without = new_client(office.plan_manager_id, scopes=("read", "write"))
    assert without.get("/claim-batches").status_code == 403
    assert without.post("/claim-batches", {"all": True}).status_code == 403
