"""An office with its own fee: a support catalogue with its item, the office's provider record, and its settings."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.resources.fees import store
from plankeeper.resources.fees.schemas import FeeTaking
from support.catalogues import THERAPY, import_catalogue
from support.client import Client
from support.cluster import SharedCluster
from support.payments import PayingOffice
from support.results import results_csv
from support.server import RunningServer

FEE_ITEM = THERAPY | {
    "Support Item Number": "14_034_0127_8_3",
    "Support Item Name": "Plan management - monthly sample",
    "Support Category Number": "14",
    "Support Category Number (PACE)": "14",
    "Unit": "MON",
    "Start date": "20200101",
    "ACT": "$104.45", "NSW": "$104.45", "NT": "$104.45", "QLD": "$104.45", "SA": "$104.45", "TAS": "$104.45",
    "VIC": "$104.45", "WA": "$104.45", "Remote": "$146.23", "Very Remote": "$156.68",
}  # fmt: skip
FEE = 104.45
FEE_INVOICE_ID = "01900000-0000-7000-8000-0000000000ad"  # the fee of `make_fees` that can be taken
OWN_ABN = "51824753556"
# Of the latest month whose fees can be made: from its last day on.
LAST_DAY = (Settings.read({}).today + timedelta(days=1)).replace(day=1) - timedelta(days=1)
FIRST_DAY = LAST_DAY.replace(day=1)
MONTH = f"{LAST_DAY:%Y-%m}"


@contextmanager
def running_fee_server(cluster: SharedCluster) -> Generator[RunningServer]:
    """A server on a database of its own, because all plan managers of a database share the catalogue."""
    dsn = cluster.new_database()
    import_catalogue(dsn, FEE_ITEM)
    running = RunningServer(dsn).start()
    try:
        yield running
    finally:
        running.stop()


class FeeOffice(PayingOffice):
    """An office whose catalogue has FEE_ITEM. Its participants have a plan of two years around the month."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        super().__init__(server, client)
        self.own_provider = self.provider_with("Harbour Plans", abn=OWN_ABN)
        self.set(
            registration_number="4050000000",
            abn=OWN_ABN,
            fee_item_number=FEE_ITEM["Support Item Number"],
            fee_provider_id=UUID(self.own_provider),
        )
        self._ndis_number = 430_000_100

    def managed(self, **values: Any) -> str:
        """A participant who gets a fee unless the values say otherwise."""
        self._ndis_number += 1
        plan = {"plan_start_date": date(LAST_DAY.year - 1, 1, 1), "plan_end_date": date(LAST_DAY.year + 1, 1, 1)}
        row = {"id": str(uuid7()), "first_name": "Robin", "last_name": f"Hale {self._ndis_number}", "status": "Active"}
        row |= {"participant_number": str(self._ndis_number), "state": "NSW"}
        days = {name: each.isoformat() if isinstance(each, date) else each for name, each in (plan | values).items()}
        self.import_rows("participants", row | days)
        return row["id"]

    def make(self, month: str = MONTH, *, dry_run: bool = False) -> httpx.Response:
        return self.client.post("/fees?dry_run=true" if dry_run else "/fees", {"month": month})

    def made(self) -> dict[str, Any]:
        response = self.make()
        assert response.status_code == 201, response.text
        return response.json()

    def take(self, *invoice_ids: str, dry_run: bool = False, **values: Any) -> httpx.Response:
        chosen: dict[str, Any] = {"invoice_ids": [*invoice_ids]} if invoice_ids else {"all": True}
        return self.client.post("/fee-takings?dry_run=true" if dry_run else "/fee-takings", chosen | values)

    def claim_and_pay(self, *invoice_ids: str, paid: float | None = None) -> None:
        """Claim invoices with one line each, and apply the agency's results: the whole amount, or another one."""
        batch = self.client.create("/claim-batches", {"invoice_ids": [*invoice_ids]})
        assert batch["lines"] == len(invoice_ids), batch
        self.client.create(f"/claim-batches/{batch['id']}/submit", None)
        self.answer(batch["id"], paid)

    def answer(self, batch_id: str, paid: float | None = None) -> None:
        """Apply the agency's results to a submitted batch of fees: the whole amounts, or another one for each."""
        claims = self.client.get(f"/claim-batches/{batch_id}/lines", limit=1000).json()["data"]
        numbers = {each["id"]: each["participant_number"] for each in self._people()}
        rows = [
            {
                "NDISNumber": numbers[self.read(each["invoice_id"])["participant_id"]],
                "ClaimReference": each["reference"],
                "Paid Total Amount": each["amount"] if paid is None else paid,
                "Payment Request Number": f"9{index}",
                "Payment Request Status": "SUCCESSFUL",
            }
            for index, each in enumerate(claims)
        ]
        headers = {"Content-Type": "text/csv"}
        path = f"/claim-batches/{batch_id}/results"
        self.client.request("POST", path, content=results_csv(rows), headers=headers).raise_for_status()

    def _people(self) -> list[dict[str, Any]]:
        return self.client.get("/participants", limit=1000).json()["data"]


def make_fees(server: RunningServer, client: Client) -> dict[str, str]:
    """The settings of fees, a fee that can be taken, and the id of a taking of another one."""
    office = FeeOffice(server, client)
    office.invoice("20.00", id=FEE_INVOICE_ID, pm_provider_id=office.own_provider, number="FEE-2026-07")
    taken = office.invoice("5.00", pm_provider_id=office.own_provider, number="FEE-2026-06")
    for month, invoice in (("2026-06", taken), ("2026-07", FEE_INVOICE_ID)):
        statement = "insert into fees values ($1, $2::text::uuid, $3, $4::text::uuid, '2026-08-01', '2026-08-01')"
        office.execute(statement, office.plan_manager_id, office.participant, month, invoice)
    return {"fee_taking_id": client.create("/fee-takings", {"invoice_ids": [taken]})["id"]}


def take_fee(server: RunningServer, client: Client) -> str:
    """The id of a taking, in an office without the settings of fees."""
    taking_id, now = uuid7(), datetime.now(UTC)
    taking = FeeTaking(
        id=taking_id, number="F000001", taken_on=date(2026, 12, 15), total=Decimal(5), lines=1, created_at=now,
        created_by="Alex", updated_at=now,
    )  # fmt: skip

    async def work() -> None:
        async with server.db.transaction() as tx:
            await store.insert_taking(tx, UUID(client.plan_manager_id), taking_id, to_json(taking), "[]")

    server.run(work())
    return str(taking_id)
