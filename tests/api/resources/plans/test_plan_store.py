"""The amounts of lines in SQL, compared with the rules of invoices."""

from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace

from plankeeper.resources.invoices.states import InvoiceAmounts, LineAmount, line_amounts
from plankeeper.resources.plans import store
from support.client import Client
from support.import_samples import Import
from support.server import RunningServer


def test_amounts_are_those_of_the_states_of_lines(server: RunningServer, api: Client, import_rows: Import) -> None:
    participant_id = api.create("/participants", {})["id"]
    rng = Random(7)
    rows = [random_invoice(rng, participant_id) for _ in range(200)]
    assert not import_rows(api, "invoices", rows).errors
    stored = api.get("/invoices", participant_id=participant_id, include="line_items", limit=1000).json()["data"]
    expected = {str(id_): amount for each in stored for id_, amount in line_amounts(amounts_of(each)).items()}
    lines = server.run(store.list_lines(server.db, UUID(api.plan_manager_id), [UUID(participant_id)]))
    assert {str(each.id): each.amount for each in lines} == expected
    without_tax = [line_amounts(replace(amounts_of(each), tax=None)) for each in stored]
    assert expected != {str(id_): amount for each in without_tax for id_, amount in each.items()}


def random_invoice(rng: Random, participant_id: str) -> dict[str, Any]:
    lines = [
        {
            "id": str(uuid4()),
            "gst_code": rng.choice(("P1", "P1", "P2", "P5")),
            "total_price": rng.choice((None, rng.randint(-500, 90_000) / 100)),
            "is_deleted": rng.random() < 0.1,
        }
        for _ in range(rng.randint(1, 4))
    ]
    subtotal = sum(Decimal(str(each["total_price"] or 0)) for each in lines if not each["is_deleted"])
    taxed = [each for each in lines if each["gst_code"] == "P1" and not each["is_deleted"]]
    tax = sum((Decimal(str(each["total_price"] or 0)) / 10).quantize(Decimal("0.01")) for each in taxed)
    tax = rng.choice((None, tax, tax, tax + Decimal(rng.randint(-5, 5)) / 100))
    totals = {"tax": tax, "subtotal": subtotal, "total": subtotal + (tax or 0) + rng.choice((0, 0, 0, 5))}
    return totals | {"id": str(uuid4()), "participant_id": participant_id, "line_items": lines}


def amounts_of(invoice: dict[str, Any]) -> InvoiceAmounts:
    def exact(value: float | None) -> Decimal | None:
        return None if value is None else Decimal(str(value))

    lines = [
        LineAmount(
            id=UUID(each["id"]),
            total_price=exact(each["total_price"]),
            gst_code=each["gst_code"],
            is_deleted=each["is_deleted"],
        )
        for each in invoice["line_items"]
    ]
    return InvoiceAmounts(
        total=exact(invoice["total"]),
        tax=exact(invoice["tax"]),
        subtotal=exact(invoice["subtotal"]),
        lines=tuple(lines),
        has_wrong_total="check_total" in invoice["state_management"]["errors"],
    )
