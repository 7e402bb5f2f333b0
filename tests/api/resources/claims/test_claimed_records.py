"""What imports, deletions and exports do with invoices that have been claimed."""

from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.json import to_json
from plankeeper.privacy.person_export import export_person
from support.claims import Office
from support.client import Client
from support.import_samples import Import
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


def as_row(invoice: dict[str, Any]) -> dict[str, Any]:
    """An invoice as a row of an import that changes nothing."""
    return {
        "id": invoice["id"],
        "invoice_number": invoice["invoice_number"],
        "line_items": [
            {name: line[name] for name in ("id", "description", "service_item_number", "service_date_from",
             "service_date_to", "quantity", "unit_price", "total_price", "claim_status", "claim_batch_ref")}
            for line in invoice["line_items"]
        ],
    }  # fmt: skip


def test_an_import_does_not_change_what_is_claimed(office: Office, import_rows: Import) -> None:
    invoice = office.invoice("1", office.line(), office.line(quantity=1, total_price=193.99))
    office.client.post(f"/claim-batches/{office.batch(invoice)['id']}/submit")
    row = as_row(office.read(invoice))
    assert not import_rows(office.client, "invoices", [row]).errors
    first = row["line_items"][0]
    for change in (
        {"line_items": [first | {"quantity": 2}, row["line_items"][1]]},
        {"line_items": [first | {"claim_status": "paid"}, row["line_items"][1]]},
        {"line_items": [first]},
        {"invoice_number": "2"},
        {"is_deleted": True},
    ):
        [error] = import_rows(office.client, "invoices", [row | change]).errors
        assert "B000001" in error.message, change
    [error] = import_rows(office.client, "invoices", [row | {"claim_status": "paid"}]).errors
    assert error.message == "must be pending, which follows from the lines with a claim"
    assert office.read(invoice)["claim_status"] == "pending"


def test_a_batch_outlives_its_participant_and_its_provider(office: Office) -> None:
    batch = office.batch(office.invoice("1"))
    path = f"/claim-batches/{batch['id']}"
    content = office.client.get(f"{path}/file").content
    assert office.client.delete(f"/providers/{office.provider}").status_code == 200
    assert office.client.delete(f"/participants/{office.participant}").status_code == 200
    assert office.client.get(f"{path}/file").content == content
    assert office.client.post(f"{path}/submit").json()["state"] == "submitted"


def test_the_export_of_a_person_has_its_claims(office: Office) -> None:
    office.batch(office.invoice("1"))
    exported = office.server.run(export_person(office.server.db, office.plan_manager_id, UUID(office.participant)))
    assert len(exported.claims) == 1
    assert '"claim_reference": "1"' in to_json(exported.claims).replace('":"', '": "')
