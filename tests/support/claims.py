"""Invoices that can be claimed, and the settings that claim files need."""

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.resources.office_settings import store as settings_store
from support.client import Client
from support.importing import import_records
from support.server import RunningServer

REGISTRATION_NUMBER = "4050000000"
NDIS_NUMBER, ABN = "430000001", "89000000019"
SERVICE_DAY = date(2026, 1, 15)


def set_office(server: RunningServer, client: Client, **values: Any) -> None:
    """Change the settings of a plan manager; by default it gets a registration number."""

    async def work() -> None:
        plan_manager_id = UUID(client.plan_manager_id)
        async with server.db.transaction() as tx:
            settings = await settings_store.get_for_update(tx, plan_manager_id)
            for name, value in ({"registration_number": REGISTRATION_NUMBER} | values).items():
                setattr(settings, name, value)
            await settings_store.upsert(tx, plan_manager_id, settings)

    server.run(work())


class Office:
    """A plan manager whose invoices can be claimed: a participant and a provider."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        self.server, self.client = server, client
        self.plan_manager_id = UUID(client.plan_manager_id)
        set_office(server, client)
        self.participant = self._import("participants", participant_number=NDIS_NUMBER, status="Active")
        self.provider = self._import("providers", entity_name="Amber Physio", abn=ABN)

    def _import(self, resource: str, **values: Any) -> str:
        row = {"id": str(uuid7())} | values
        self.import_rows(resource, row)
        return row["id"]

    def import_rows(self, resource: str, *rows: dict[str, Any]) -> None:
        report = self.server.run(import_records(self.server, self.plan_manager_id, resource, [*rows]))
        assert not report.errors, report.errors

    def participant_with(self, **values: Any) -> str:
        return self._import("participants", **({"status": "Active"} | values))

    def provider_with(self, **values: Any) -> str:
        return self._import("providers", **values)

    def line(self, **values: Any) -> dict[str, Any]:
        """A line that can be claimed: 1.5 × 193.99."""
        return {
            "description": "Physiotherapy", "service_item_number": "15_056_0128_1_3",
            "service_date_from": SERVICE_DAY.isoformat(), "service_date_to": SERVICE_DAY.isoformat(),
            "quantity": 1.5, "unit_price": 193.99, "total_price": 290.99,
        } | values  # fmt: skip

    def values(self, number: str, *lines: dict[str, Any], **values: Any) -> dict[str, Any]:
        """An invoice whose lines can be claimed; without lines it has one."""
        items = [*lines] or [self.line()]
        total = round(sum(each["total_price"] for each in items), 2)
        return {
            "invoice_number": number, "invoice_date": (SERVICE_DAY + timedelta(days=1)).isoformat(),
            "participant_id": self.participant, "pm_provider_id": self.provider,
            "subtotal": total, "tax": 0, "total": total, "line_items": items,
        } | values  # fmt: skip

    def invoice(self, number: str, *lines: dict[str, Any], **values: Any) -> dict[str, Any]:
        return self.client.create("/invoices", self.values(number, *lines, **values))

    def import_invoice(self, id_: str, number: str) -> dict[str, Any]:
        """An invoice with an id."""
        self._import("invoices", **self.values(number, id=id_))
        return {"id": id_}

    def claim(self, *invoices: dict[str, Any], **more: Any) -> Any:
        """The response to a request for a batch of these invoices, or of all."""
        body = {"invoice_ids": [each["id"] for each in invoices]} if invoices else {"all": True}
        return self.client.post("/claim-batches", body, **more)

    def batch(self, *invoices: dict[str, Any]) -> dict[str, Any]:
        response = self.claim(*invoices)
        assert response.status_code == 201, response.text
        return response.json()

    def read(self, invoice: dict[str, Any]) -> dict[str, Any]:
        return self.client.get(f"/invoices/{invoice['id']}").json()

    def execute(self, statement: str, *values: object) -> None:
        """A statement about rows that no request writes yet."""

        async def work() -> None:
            async with self.server.db.transaction() as tx:
                await tx.execute(statement, *values)  # pyright: ignore[reportArgumentType]

        self.server.run(work())
