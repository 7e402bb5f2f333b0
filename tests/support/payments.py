"""An office that pays: its settings, payees with bank accounts, and invoices whose claims the agency has paid."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.bank_details.accounts import Payee, PayeeKind
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.office_settings.own_account import encrypt_number
from plankeeper.resources.payments import service as payments
from support.client import Client
from support.importing import import_records
from support.server import RunningServer

PROCESS_DATE = "2026-10-15"
SETTINGS: dict[str, Any] = {
    "bank_letters": "BQL",
    "bank_bsb": "999002",
    "bank_account_ending": "321",
    "bank_account_name": "Harbour Plan Office",
    "direct_entry_user_name": "Harbour Plan Office",
    "direct_entry_description": "PROVIDERS",
    "remitter": "Harbour Plans",
}
OWN_NUMBER = "87654321"
_numbers = count(10_000_001)


class PayingOffice:
    """A plan manager with a provider and a participant that can be paid."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        self.server, self.client = server, client
        self.plan_manager_id = UUID(client.plan_manager_id)
        self.set(**SETTINGS)
        self.set_own_account(OWN_NUMBER)
        self.provider = self.provider_with("Amber Physio", abn="89000000019")
        self.participant = self.participant_with("Robin", "Hale")

    # Settings

    def set(self, **values: Any) -> None:
        async def work() -> None:
            async with self.server.db.transaction() as tx:
                settings = await settings_store.get_for_update(tx, self.plan_manager_id)
                for name, value in values.items():
                    setattr(settings, name, value)
                await settings_store.upsert(tx, self.plan_manager_id, settings)

        self.server.run(work())

    def set_own_account(self, number: str | None) -> None:
        stored = encrypt_number(self.server.settings, self.plan_manager_id, number) if number else None
        statement = "update office_settings set bank_account = $2 where plan_manager_id = $1"
        self.execute(statement, self.plan_manager_id, stored)

    def mark_paid_with(self, settings: Settings, run: dict[str, Any], paid_on: date | None = None) -> None:
        """Mark a run as paid on a server with other settings, for example with another mail server."""

        async def work() -> None:
            async with self.server.db.transaction() as tx:
                ctx = WriteContext(tx, self.plan_manager_id, settings, SYSTEM)
                await payments.mark_paid(ctx, UUID(run["id"]), paid_on)

        self.server.run(work())

    # Payees

    def import_rows(self, resource: str, *rows: dict[str, Any]) -> None:
        report = self.server.run(import_records(self.server, self.plan_manager_id, resource, [*rows]))
        assert not report.errors, report.errors

    def provider_with(self, name: str, account_name: str | None = None, **values: Any) -> str:
        id_ = str(uuid7())
        self.import_rows("providers", {"id": id_, "entity_name": name} | values)
        self.set_account("provider", id_, account_name or name)
        return id_

    def participant_with(self, first_name: str, last_name: str, **values: Any) -> str:
        id_ = str(uuid7())
        self.import_rows("participants", {"id": id_, "first_name": first_name, "last_name": last_name} | values)
        self.set_account("participant", id_, f"{first_name} {last_name}")
        return id_

    def set_account(self, kind: PayeeKind, id_: str, name: str, number: str | None = None) -> None:
        """Set bank details as the operator does, so that they take effect at once."""
        account = BankAccount("999001", number or str(next(_numbers)), name)

        async def work() -> None:
            async with self.server.db.transaction() as tx:
                ctx = WriteContext(tx, self.plan_manager_id, self.server.settings, SYSTEM)
                await bank_details.set_accounts(ctx, kind, {UUID(id_): account})

        self.server.run(work())

    def propose(self, id_: str, kind: PayeeKind = "provider") -> None:
        """Propose other bank details, which wait for approval."""

        async def work() -> None:
            async with self.server.db.transaction() as tx:
                ctx = WriteContext(tx, self.plan_manager_id, self.server.settings, SYSTEM)
                account = BankAccount("999003", "555", "Somebody Else")
                await bank_details.propose(ctx, Payee(kind, UUID(id_)), account)

        self.server.run(work())

    # Invoices

    def invoice(self, *paid: str, number: str = "2026/442", status: str = "payment_ready", **values: Any) -> str:
        """An invoice with a line for each amount that the agency has paid. Returns its id."""
        [id_] = self.invoices([(number, paid)], status=status, **values)
        return id_

    def invoices(
        self, numbers: Sequence[tuple[str, Sequence[str]]], status: str = "payment_ready", **values: Any
    ) -> list[str]:
        rows: list[dict[str, Any]] = []
        for number, paid in numbers:
            lines = [
                {"id": str(uuid7()), "total_price": float(each), "paid_amount": float(each), "claim_status": status}
                for each in paid
            ]
            row = {
                "id": str(uuid7()), "invoice_number": number, "pm_provider_id": self.provider,
                "participant_id": self.participant, "claim_status": status, "line_items": lines,
            }  # fmt: skip
            rows.append(row | values)
        self.import_rows("invoices", *rows)
        self.insert_claims(
            [
                (row["id"], line["id"], Decimal(amount))
                for row, (_, paid) in zip(rows, numbers, strict=True)
                for line, amount in zip(row["line_items"], paid, strict=True)
            ]
        )
        return [row["id"] for row in rows]

    def insert_claims(
        self, claims: Sequence[tuple[str, str, Decimal]], state: str = "paid", day: str = "2026-10-01"
    ) -> list[str]:
        """Claims of lines that the agency has paid: invoice, line, amount."""
        records = [
            {
                "id": str(uuid7()), "invoice_id": invoice, "line_id": line, "source": "elsewhere", "reference": "R1",
                "amount": amount, "state": state, "paid": amount, "result_date": day, "is_rest": False,
                "created_at": "2026-10-01T00:00:00Z", "updated_at": "2026-10-01T00:00:00Z",
            }
            for invoice, line, amount in claims
        ]  # fmt: skip
        statement = """
            insert into claims (plan_manager_id, id, invoice_id, line_id, source, reference, is_rest, amount, state,
                paid, result_date, created_at, updated_at)
            select $1, id, invoice_id, line_id, source, reference, is_rest, amount, state, paid, result_date,
                created_at, updated_at
            from json_populate_recordset(null::claims, $2)
        """
        self.execute(statement, self.plan_manager_id, to_json(records))
        return [str(each["id"]) for each in records]

    def line_ids(self, invoice_id: str) -> list[str]:
        return [each["id"] for each in self.read(invoice_id)["line_items"]]

    def read(self, invoice_id: str) -> dict[str, Any]:
        return self.client.get(f"/invoices/{invoice_id}").json()

    # Runs

    def post(self, *invoice_ids: str, dry_run: bool = False, **values: Any) -> Any:
        """The response to a request for a run of these invoices, or of all."""
        chosen: dict[str, Any] = {"invoice_ids": [*invoice_ids]} if invoice_ids else {"all": True}
        path = "/payment-runs?dry_run=true" if dry_run else "/payment-runs"
        return self.client.post(path, {"process_date": PROCESS_DATE} | chosen | values)

    def run(self, *invoice_ids: str, **values: Any) -> dict[str, Any]:
        response = self.post(*invoice_ids, **values)
        assert response.status_code == 201, response.text
        return response.json()

    def act(self, run: dict[str, Any], action: str, **body: Any) -> Any:
        return self.client.post(f"/payment-runs/{run['id']}/{action}", body)

    def download(self, run: dict[str, Any]) -> Any:
        return self.client.get(f"/payment-runs/{run['id']}/file")

    def payments(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        return self.client.get(f"/payment-runs/{run['id']}/payments", limit=1000).json()["data"]

    def execute(self, statement: str, *values: object) -> None:
        async def work() -> None:
            async with self.server.db.transaction() as tx:
                await tx.execute(statement, *values)  # pyright: ignore[reportArgumentType]

        self.server.run(work())
