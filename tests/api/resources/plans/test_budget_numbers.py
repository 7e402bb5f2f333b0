"""The numbers of components after random writes, compared with a plain computation from the stored records."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from support.client import Client
from support.import_samples import Import

START = date(2026, 1, 1)
STATUSES = (
    "new", "flagged", "pending", "payment_ready", "partially_ready", "partially_paid", "paid", "rejected", "cancelled",
    "on_hold",
)  # fmt: skip
ITEMS = ("01_011_0107_1_1", "04_104_0125_6_1", "15_056_0128_1_3", "07_001_0106_8_3", "99", None)
CENT = Decimal("0.01")
few_examples = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def some_day(rng: Random) -> str:
    return (START + timedelta(days=rng.randint(-20, 200))).isoformat()


def some_components(rng: Random) -> list[dict[str, Any]]:
    core = {"name": "Core", "kind": "flexible", "categories": [1, 4], "amount": rng.randint(0, 9000)}
    therapy = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": rng.randint(0, 900_000) / 100}
    transport = {"name": "Transport", "kind": "stated", "categories": [4], "amount": 100}
    if rng.random() < 0.3:
        therapy["spent_elsewhere"] = {"amount": rng.randint(0, 9000) / 100, "as_of": "2026-01-15"}
    return [each for each in (core, therapy, transport) if rng.random() < 0.7]


class Office:
    """Random writes for one participant. Requests may be rejected: the records are read again at the end."""

    def __init__(self, api: Client, import_rows: Import) -> None:
        self.api, self.import_rows = api, import_rows
        self.participant = api.create("/participants", {})["id"]
        self.plans = f"/participants/{self.participant}/plans"

    def stored_plans(self, **query: Any) -> list[dict[str, Any]]:
        return self.api.get(self.plans, limit=100, **query).json()["data"]

    def stored_invoices(self) -> list[dict[str, Any]]:
        query = {"participant_id": self.participant, "include": "line_items", "limit": 100}
        return self.api.get("/invoices", **query).json()["data"]

    def component_id(self, rng: Random) -> str | None:
        ids = [component["id"] for plan in self.stored_plans() for component in plan["components"]]
        return rng.choice(ids) if ids and rng.random() < 0.3 else None

    def line(self, rng: Random) -> dict[str, Any]:
        return {
            "service_item_number": rng.choice(ITEMS),
            "total_price": rng.choice((rng.randint(0, 90_000) / 100, rng.randint(0, 900))),
            "gst_code": rng.choice(("P1", "P2")),
            "component_id": self.component_id(rng),
            "service_date_from": rng.choice((some_day(rng), some_day(rng), None)),
        }

    def add_plan(self, rng: Random) -> None:
        first = START + timedelta(days=rng.choice((0, 60, 120)))
        dates = {"start_date": first.isoformat(), "end_date": (first + timedelta(days=59)).isoformat()}
        self.api.post(self.plans, dates | {"components": some_components(rng)})

    def change_plan(self, rng: Random) -> None:
        plan = rng.choice(self.stored_plans() or [{}])
        change = {"end_date": some_day(rng)} if rng.random() < 0.5 else {"components": some_components(rng)}
        self.api.put(f"{self.plans}/{plan.get('id')}", change)

    def delete_plan(self, rng: Random) -> None:
        plan = rng.choice(self.stored_plans() or [{}])
        self.api.delete(f"{self.plans}/{plan.get('id')}")

    def add_invoice(self, rng: Random) -> None:
        lines = [self.line(rng) for _ in range(rng.randint(1, 4))]
        row = {"participant_id": self.participant, "invoice_date": some_day(rng), "line_items": lines}
        self.api.create("/invoices", row)

    def change_invoice(self, rng: Random) -> None:
        invoice = rng.choice(self.stored_invoices() or [{"line_items": []}])
        lines: list[dict[str, Any]] = [{"id": each["id"]} for each in invoice["line_items"] if rng.random() < 0.7]
        lines = [each | {"total_price": rng.randint(0, 900)} for each in lines] + [self.line(rng)]
        change = {"invoice_date": some_day(rng)} if rng.random() < 0.3 else {"line_items": lines}
        self.api.put(f"/invoices/{invoice.get('id')}", change)

    def act(self, rng: Random) -> None:
        invoice = rng.choice(self.stored_invoices() or [{}])
        action = rng.choice(("hold", "release", "cancel", "reopen", "wont-claim"))
        body = {} if action in ("release", "reopen") else {"reason": "Test"}
        self.api.post(f"/invoices/{invoice.get('id')}/{action}", body)

    def import_states(self, rng: Random) -> None:
        invoices = self.stored_invoices()
        chosen = rng.choice(invoices) if invoices else {"id": str(uuid7()), "line_items": []}
        lines: list[dict[str, Any]] = []
        for each in [*chosen["line_items"], {"id": str(uuid7()), **self.line(rng)}]:
            status = rng.choice(STATUSES)
            paid = rng.randint(0, 90_000) / 100 if status.startswith(("paid", "partially", "payment")) else None
            lines.append({**self.line(rng), "id": each["id"], "claim_status": status, "paid_amount": paid})
        row = {"id": chosen["id"], "participant_id": self.participant, "invoice_date": some_day(rng)}
        self.import_rows(self.api, "invoices", [row | {"line_items": lines, "wont_claim": rng.random() < 0.2}])


OPERATIONS: tuple[Callable[[Office, Random], None], ...] = (
    Office.add_plan, Office.change_plan, Office.delete_plan, Office.add_invoice, Office.add_invoice,
    Office.change_invoice, Office.act, Office.import_states, Office.import_states,
)  # fmt: skip


def exact(value: float | None) -> Decimal:
    return Decimal(str(value or 0))


def counted_lines(invoices: list[dict[str, Any]], day: str) -> Iterator[tuple[str, dict[str, Any], Decimal, bool]]:
    """The lines up to a day: the day, the line, its amount with tax, and whether it is left out of claims."""
    for invoice in invoices:
        for line in invoice["line_items"]:
            on = line["service_date_from"] or invoice["invoice_date"]
            if on and on <= day and not line["is_deleted"] and not invoice["is_deleted"]:
                price = exact(line["total_price"])
                tax = (price / 10).quantize(CENT, ROUND_HALF_UP) if line["gst_code"] == "P1" else Decimal(0)
                yield on, line, price + tax, invoice["wont_claim"]


def owner_of(plans: list[dict[str, Any]], on: str, line: dict[str, Any]) -> str | None:
    """The id of the component that a line counts for."""
    components = [
        component for plan in plans if plan["start_date"] <= on <= plan["end_date"] for component in plan["components"]
    ]
    prefix, separator, _ = (line["service_item_number"] or "").partition("_")
    fitting = [each for each in components if separator and int(prefix) in each["categories"]]
    named = [each for each in components if each["id"] == line["component_id"]]
    stated = [each for each in fitting if each["kind"] == "stated"]
    return next((each["id"] for each in (*named, *stated, *fitting)), None)


def expected_numbers(plans: list[dict[str, Any]], invoices: list[dict[str, Any]], day: str) -> dict[str, Any]:
    """What is paid, pending and waiting of each component by its id."""
    found: dict[str, list[Decimal]] = {
        component["id"]: [exact((component["spent_elsewhere"] or {}).get("amount")), Decimal(0), Decimal(0)]
        for plan in plans
        for component in plan["components"]
    }
    for on, line, amount, wont_claim in counted_lines(invoices, day):
        if owner := owner_of(plans, on, line):
            paid = exact(line["paid_amount"])
            found[owner][0] += paid
            if line["claim_status"] == "pending":
                found[owner][1] += amount - paid
            elif line["claim_status"] in ("new", "flagged", "rejected", "on_hold") and not wont_claim:
                found[owner][2] += amount - paid
    return found


@few_examples
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**32)), min_size=6, max_size=25))
def test_numbers_equal_a_plain_computation_after_any_writes(
    new_client: Callable[..., Client], import_rows: Import, operations: list[Any]
) -> None:
    office = Office(new_client(), import_rows)
    for operation, seed in ((Office.add_plan, 1), (Office.add_invoice, 2), *operations):
        operation(office, Random(seed))
    plans, invoices = office.stored_plans(), office.stored_invoices()
    for day in ("2025-12-31", "2026-02-10", "2026-05-01", "2027-01-01"):
        expected = expected_numbers(plans, invoices, day)
        shown = [component for plan in office.stored_plans(on=day) for component in plan["components"]]
        numbers = {each["id"]: [exact(each[name]) for name in ("paid", "pending", "waiting")] for each in shown}
        assert numbers == expected, day
        for each in shown:
            assert exact(each["available"]) == exact(each["released"]) - sum(numbers[each["id"]])
