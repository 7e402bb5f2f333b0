"""Results of claim batches over the API."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.claims import Office, set_office
from support.client import Client
from support.results import HEADER, SubmittedBatch, results_csv
from support.server import RunningServer
from support.webhooks import wait_for_events


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


@pytest.fixture
def batch(office: Office) -> SubmittedBatch:
    """A batch with four claims of 290.99, of two invoices."""
    first = office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14"))
    second = office.invoice(
        "A2", office.line(service_date_from="2026-01-13"), office.line(service_date_to="2026-01-16")
    )
    return SubmittedBatch(office, first, second)


def amounts(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["claim_status"], line["paid_amount"], line["claim_number"], line["rejection_reason"]


def events(batch: SubmittedBatch) -> list[str]:
    statement = "select type from events where plan_manager_id = $1 order by id"  # the feed has them a moment later
    return batch.office.server.run(batch.office.server.db.rows(str, statement, batch.office.plan_manager_id))


def test_results_move_the_lines_and_the_batch(batch: SubmittedBatch) -> None:
    first = batch.apply(batch.paid(0), batch.paid(1, 200), batch.rejected(2))
    assert first == {"state": "part_processed", "paid": 1, "partially_paid": 1, "rejected": 1, "unmatched": []}
    assert amounts(batch.line(0)) == ("payment_ready", 290.99, "900000", None)
    assert amounts(batch.line(1)) == ("partially_ready", 200, "900001", None)
    assert amounts(batch.line(2)) == ("rejected", 0, "900002", "C11: not in the plan")
    assert amounts(batch.line(3)) == ("pending", None, None, None)
    assert [batch.line(index)["open_claim_batch"] for index in range(4)] == [None, None, None, batch.number]
    assert [each["state"] for each in batch.read_claims()] == ["paid", "partially_paid", "rejected", "submitted"]
    assert batch.apply(batch.paid(3))["state"] == "processed"
    assert batch.state() == "processed"
    [one, two] = [each for each in wait_for_events(batch.client, "claim_batch.*", 4) if "results" in each["type"]]
    counts = {"paid": 1, "partially_paid": 1, "rejected": 1, "held": 0, "unmatched": 0}
    assert (one["data"]["results"], one["data"]["state"]) == (counts, "part_processed")
    assert two["data"]["results"] == dict.fromkeys(counts, 0) | {"paid": 1}


def test_the_same_file_again_changes_nothing(batch: SubmittedBatch) -> None:
    rows = [batch.paid(0), batch.paid(1, 0.01), batch.rejected(2), batch.paid(3)]
    first = batch.apply(*rows)
    before = [batch.office.read(each) for each in batch.invoices], events(batch), batch.read_claims()
    assert batch.apply(*rows) == first
    assert ([batch.office.read(each) for each in batch.invoices], events(batch), batch.read_claims()) == before


def test_a_dry_run_stores_nothing(batch: SubmittedBatch) -> None:
    before = [batch.office.read(each) for each in batch.invoices], events(batch)
    result = batch.apply(batch.paid(0), batch.rejected(1), batch.row(2, "PENDING", ""), dry_run="true")
    assert (result["state"], result["paid"], result["rejected"]) == ("part_processed", 1, 1)
    assert [each["row"] for each in result["unmatched"]] == [4]
    assert ([batch.office.read(each) for each in batch.invoices], events(batch)) == before


def test_rows_that_are_no_result_are_listed_with_the_reason(batch: SubmittedBatch) -> None:
    other = SubmittedBatch(batch.office, batch.office.invoice("A3"))
    rows = {
        "more than the claimed one": batch.paid(0, 291),
        "empty or zero": batch.paid(1, 0),
        "neither SUCCESSFUL nor ERROR": batch.row(2, "PENDING", ""),
        "must be empty or zero": batch.row(3, "ERROR", 5),
        f"is in claim batch {other.number}": other.paid(0),
        "No claim has the reference 'X'": batch.paid(0) | {"ClaimReference": "X"},
        "is for NDIS number 430000001": batch.paid(0) | {"NDISNumber": "430000002"},
    }
    result = batch.apply(*rows.values())
    assert [each["row"] for each in result["unmatched"]] == [*range(2, 9)]
    for message, found in zip(rows, result["unmatched"], strict=True):
        assert message in found["message"]
    assert result["state"] == "submitted"
    assert "claim_batch.results_applied" not in events(batch)


def test_a_claim_twice_in_a_file_and_another_result_are_unmatched(batch: SubmittedBatch) -> None:
    twice = batch.apply(batch.paid(0), batch.rejected(1), batch.paid(0))
    assert [each["row"] for each in twice["unmatched"]] == [2, 4]
    assert "2 times" in twice["unmatched"][0]["message"]
    assert batch.line(0)["claim_status"] == "pending"
    differs = batch.apply(batch.paid(1))
    assert "already has another result: a rejection" in differs["unmatched"][0]["message"]
    assert batch.line(1)["claim_status"] == "rejected"


def test_a_difference_within_the_tolerance_is_paid_in_full_and_recorded_as_it_is(batch: SubmittedBatch) -> None:
    assert batch.apply(batch.paid(0, 290.98), batch.paid(1, 290.97))["partially_paid"] == 1
    assert amounts(batch.line(0))[:2] == ("payment_ready", 290.98)
    set_office(batch.office.server, batch.client, result_tolerance=1)
    assert batch.apply(batch.paid(2, 290))["paid"] == 1


def test_the_columns_of_a_claim_must_be_those_of_ours(batch: SubmittedBatch) -> None:
    rows = results_csv([batch.paid(0)]).decode().splitlines()
    content = f"{rows[0]},Quantity,UnitPrice\n{rows[1]},2,193.99\n".encode()
    [unmatched] = batch.send(content=content).json()["unmatched"]
    assert "is for $290.985, and the row's quantity and price make $387.98" in unmatched["message"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_files_of_spreadsheets_are_read(batch: SubmittedBatch, encoding: str) -> None:
    text = results_csv([batch.rejected(0, "Détail")]).decode().replace(",", ";")
    assert batch.send(content=text.encode(encoding)).json()["rejected"] == 1
    assert batch.line(0)["rejection_reason"] == "Détail"


def test_other_files_are_refused(batch: SubmittedBatch) -> None:
    for content, message in (
        (b"", "The file is empty"),
        (b"PK\x03\x04", "Excel workbook"),
        (b"a,b\n1,2\n", "lacks these columns: NDISNumber, ClaimReference, Payment Request Status, PaidTotalAmount"),
        (results_csv([], HEADER), "no row after the header"),
        (b"\x81\x8d\x00", "isn't text"),
        (b"," * 1000, "Row 1 of the file has more than 200 cells."),
        (results_csv([]) + b',,"\n"' * 200, "Row 2 of the file has more than 200 cells."),
    ):
        response = batch.send(content=content)
        assert (response.status_code, message in response.json()["detail"]) == (400, True), response.text
    path = f"/claim-batches/{batch.id}/results"
    assert batch.client.post(path, {}).json()["error"] == "unsupported_media_type"


def test_a_repeated_key_must_have_the_same_file(batch: SubmittedBatch) -> None:
    headers = {"Idempotency-Key": "one"}
    path = f"/claim-batches/{batch.id}/results"

    def send(content: bytes) -> Any:
        return batch.client.request("POST", path, content=content, headers=headers)

    first = send(results_csv([batch.paid(0)]))
    again = send(results_csv([batch.paid(0)]))
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert send(results_csv([batch.paid(1)])).json()["error"] == "idempotency_key_reused"


def test_a_draft_has_no_results(office: Office) -> None:
    draft = office.batch(office.invoice("A1"))
    headers = {"Content-Type": "text/csv"}
    content = results_csv([{"NDISNumber": "430000001", "ClaimReference": "A1"}])
    response = office.client.request("POST", f"/claim-batches/{draft['id']}/results", content=content, headers=headers)
    assert (response.status_code, response.json()["error"]) == (409, "invalid_transition")


def test_a_result_after_a_cancellation_holds_the_invoice_once(batch: SubmittedBatch) -> None:
    batch.client.create(f"/claim-batches/{batch.id}/cancel", {"uploaded": False, "reason": "Wrong file"})
    dry = batch.apply(batch.paid(0), dry_run="true")
    assert batch.office.read(batch.invoices[0])["held_at"] is None
    result = batch.apply(batch.paid(0))
    assert result == dry
    assert result["state"] == "cancelled"
    message = f"The claim {batch.claims[0]['reference']} was cancelled, but the agency has paid $290.99."
    assert result["unmatched"] == [{"row": 2, "message": f"{message} Its invoice is on hold."}]
    held = batch.office.read(batch.invoices[0])
    assert (held["claim_status"], held["hold_reason"]) == ("on_hold", message)
    assert batch.line(0)["paid_amount"] is None
    batch.client.create(f"/invoices/{held['id']}/release", None)
    again = batch.apply(batch.paid(0))
    assert again["unmatched"][0]["message"] == f"{message} This was recorded before."
    assert batch.office.read(batch.invoices[0])["held_at"] is None


def test_two_uploads_at_once_apply_a_file_once(batch: SubmittedBatch) -> None:
    rows = [batch.paid(0), batch.paid(1), batch.rejected(2), batch.paid(3)]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: batch.apply(*rows), range(4))]
    assert [json.dumps(each) for each in found] == [json.dumps(found[0])] * 4
    assert batch.line(0)["paid_amount"] == 290.99
    applied = [each for each in wait_for_events(batch.client, "claim_batch.*", 3) if "results" in each["type"]]
    assert len(applied) == 1


def test_a_result_and_a_cancellation_never_both_succeed(office: Office) -> None:
    for number in range(6):
        batch = SubmittedBatch(office, office.invoice(f"R{number}"))
        body = {"uploaded": False, "reason": "Wrong"}
        with ThreadPoolExecutor(2) as pool:
            paid = pool.submit(batch.apply, batch.paid(0))
            cancelled = pool.submit(batch.client.post, f"/claim-batches/{batch.id}/cancel", body)
        is_paid, is_cancelled = paid.result()["paid"] == 1, cancelled.result().status_code == 200
        assert is_paid != is_cancelled
        assert batch.line(0)["claim_status"] == ("payment_ready" if is_paid else "new")
