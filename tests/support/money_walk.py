"""Random work of an office on its invoices, claims and payments: each step is a request, a command or an import."""

from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import httpx
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.resources.claims import line_claims
from support.client import Client
from support.console import Browser, create_account
from support.fees import OWN_ABN
from support.importing import import_records
from support.payments import PayingOffice
from support.results import results_csv
from support.server import RunningServer

NDIS_NUMBER = "430000001"
STATES = ("new", "flagged", "pending", "payment_ready", "partially_ready", "paid", "partially_paid", "rejected")
OFTEN = {
    "_step_enter": 2, "_step_claim": 3, "_step_submit": 3, "_step_results": 5, "_step_pay": 3, "_step_mark_paid": 4,
    "_step_claim_rest": 2, "_step_take_fees": 2, "_step_approve_accounts": 2, "_step_receipt": 2,
    "_step_adjust": 2, "_step_return": 2, "_step_replace_result": 2,
}  # fmt: skip
Row = dict[str, Any]


class _Line(Struct):
    invoice_id: UUID
    id: UUID
    claim_status: str
    paid_amount: float | None


class MoneyWalk:
    """`step` does something; `done` counts what succeeded by its name."""

    def __init__(self, server: RunningServer, client: Client, seed: int) -> None:
        self.server, self.client, self.random = server, client, Random(seed)
        self.office = PayingOffice(server, client)
        self.needs_receipts = seed % 2 == 1
        self.own_provider = self.office.provider_with("Harbour Plans", abn=OWN_ABN)
        self.office.set(registration_number="4050000000", needs_receipts=self.needs_receipts, abn=OWN_ABN)
        self.plan_manager_id = UUID(client.plan_manager_id)
        client.put(f"/participants/{self.office.participant}", {"participant_number": NDIS_NUMBER}).raise_for_status()
        self.today = datetime.now(server.settings.time_zone).date()
        self.day = str(self.today - timedelta(days=20))
        self.done: dict[str, int] = {}
        self._number = 0
        self.browser = Browser(server.url)
        self.browser.sign_in(server.run(create_account(server, self.plan_manager_id, "owner")))
        steps = {name: each for name, each in vars(MoneyWalk).items() if name.startswith("_step_")}
        self._steps = [each for name, each in steps.items() for _ in range(OFTEN.get(name, 1))]

    def finish(self) -> None:
        """Mark each draft run as paid, or cancel it, and submit each draft batch: no line prevents that."""
        for run in self._all("/payment-runs", "draft"):
            paid = self.client.post(f"/payment-runs/{run['id']}/mark-paid", {})
            if paid.status_code != 200:
                assert paid.json()["error"] == "run_outdated", paid.text
                body = {"not_sent_to_bank": True, "reason": "Again"}
                self.client.post(f"/payment-runs/{run['id']}/cancel", body).raise_for_status()
        for batch in self._all("/claim-batches", "draft"):
            response = self.client.post(f"/claim-batches/{batch['id']}/submit")
            assert response.is_success, response.text

    def close(self) -> None:
        self.browser.http.close()

    def step(self) -> bool:
        """Do something. Returns false if there was nothing to do it with, so that nothing has been written."""
        chosen = self.random.choice(self._steps)
        response = chosen(self)
        is_done = response is not None
        if isinstance(response, httpx.Response):
            assert response.status_code < 500, (chosen.__name__, response.text)
            response = response.is_success or response.status_code == 303
        if response:
            self.done[chosen.__name__] = self.done.get(chosen.__name__, 0) + 1
        return is_done

    # Choices

    def _all(self, path: str, *states: str) -> list[Row]:
        return [each for each in self.client.get(path, limit=1000).json()["data"] if each["state"] in states]

    def _one(self, path: str, *states: str) -> Row | None:
        found = self._all(path, *states)
        return self.random.choice(found) if found else None

    def _line(self, *states: str) -> _Line | None:
        """Mostly a line in one of these states."""
        statement = """
            select invoice_id, id, claim_status, paid_amount::float8
            from invoice_lines where plan_manager_id = $1 order by id
        """
        lines = self.server.run(self.server.db.rows(_Line, statement, self.plan_manager_id))
        fitting = [each for each in lines if each.claim_status in states]
        chosen = lines if self.random.random() < 0.1 else fitting
        return self.random.choice(chosen) if chosen else None

    def _cents(self, most: int = 30_000) -> float:
        return self.random.randint(1, most) / 100

    def _line_action(self, action: str, body: Row, *states: str) -> httpx.Response | None:
        line = self._line(*states)
        return line and self.client.post(f"/invoices/{line.invoice_id}/lines/{line.id}/{action}", body)

    def _invoice_action(self, action: str, body: Row) -> httpx.Response | None:
        line = self._line(*STATES)
        return line and self.client.post(f"/invoices/{line.invoice_id}/{action}", body)

    # Invoices

    def _items(self) -> list[Row]:
        price = [self._cents() for _ in range(self.random.randint(1, 3))]
        return [
            {
                "description": "Physiotherapy", "service_item_number": "15_056_0128_1_3", "service_date_from": self.day,
                "service_date_to": self.day, "quantity": 1, "unit_price": each, "total_price": each,
            }
            for each in price
        ]  # fmt: skip

    def _values(self) -> Row:
        self._number += 1
        items = self._items()
        total = round(sum(each["total_price"] for each in items), 2)
        return {
            "invoice_number": f"W-{self._number}", "invoice_date": self.day, "participant_id": self.office.participant,
            "pm_provider_id": self.random.choice((self.office.provider, self.office.provider, self.own_provider)),
            "subtotal": total, "tax": 0, "total": total, "line_items": items,
            "payee": self.random.choice(("provider", "provider", "participant")),
        }  # fmt: skip

    def _step_enter(self) -> httpx.Response:
        return self.client.post("/invoices", self._values())

    def _step_enter_many(self) -> httpx.Response:
        return self.client.post("/invoices/bulk", {"items": [self._values()]})

    def _step_reprice(self) -> httpx.Response | None:
        """Change a price. Through the API, a state or a paid amount can't be written."""
        line = self._line("new", "flagged", "rejected", "paid")
        if not line:
            return None
        invoice = self.office.read(str(line.invoice_id))
        names = ("id", *self._items()[0])
        items = [{name: each[name] for name in names} for each in invoice["line_items"] if not each["is_deleted"]]
        price = self._cents()
        items = [
            each | ({"unit_price": price, "total_price": price} if each["id"] == str(line.id) else {}) for each in items
        ]
        total = round(sum(each["total_price"] for each in items), 2)
        return self.client.put(f"/invoices/{line.invoice_id}", {"line_items": items, "subtotal": total, "total": total})

    def _step_write_state(self) -> httpx.Response | None:
        line = self._line("new", "payment_ready")
        body = {"line_items": [{"id": str(line.id), "claim_status": "payment_ready", "paid_amount": 9}]} if line else {}
        return line and self.client.put(f"/invoices/{line.invoice_id}", body)

    def _step_import(self) -> bool:
        """Import new invoices with any states, or states of existing ones."""
        row = self._values() | {"id": str(uuid7())}
        del row["payee"]
        if (line := self._line(*STATES)) and self.random.random() < 0.5:
            row["id"] = str(line.invoice_id)
            row["line_items"][0]["id"] = str(line.id)
        for each in row["line_items"]:
            each["claim_status"] = self.random.choice(STATES)
            if self.random.random() < 0.5:
                each["paid_amount"] = each["total_price"]
        report = self.server.run(import_records(self.server, self.plan_manager_id, "invoices", [row]))
        return not report.errors

    def _step_undo(self) -> Any:
        """Undo one of the latest changes of an invoice in the console."""
        statement = """
            select id from events where plan_manager_id = $1 and resource_kind = 'invoice' order by id desc limit 15
        """
        ids = self.server.run(self.server.db.rows(UUID, statement, self.plan_manager_id))
        return self.browser.submit(f"/console/activity/{self.random.choice(ids)}/undo") if ids else None

    def _step_hold(self) -> httpx.Response | None:
        return self._invoice_action("hold", {"reason": "Wait"})

    def _step_release(self) -> httpx.Response | None:
        return self._invoice_action("release", {})

    def _step_cancel_line(self) -> httpx.Response | None:
        return self._line_action("cancel", {"reason": "Wrong"}, "rejected", "flagged")

    def _step_reopen_line(self) -> httpx.Response | None:
        return self._line_action("reopen", {}, "cancelled")

    def _step_retry(self) -> httpx.Response | None:
        return self._line_action("retry", {}, "rejected")

    def _step_claim_rest(self) -> httpx.Response | None:
        return self._line_action("claim-rest", {}, "partially_paid")

    # Claims

    def _step_claim(self) -> httpx.Response:
        return self.client.post("/claim-batches", {"all": True})

    def _step_claim_some(self) -> httpx.Response | None:
        line = self._line("new", "partially_paid")
        return line and self.client.post("/claim-batches", {"invoice_ids": [str(line.invoice_id)]})

    def _step_submit(self) -> httpx.Response | None:
        batch = self._one("/claim-batches", "draft")
        return batch and self.client.post(f"/claim-batches/{batch['id']}/submit")

    def _step_cancel_batch(self) -> httpx.Response | None:
        batch = self._one("/claim-batches", "draft", "submitted") if self.random.random() < 0.5 else None
        body = {"uploaded": False, "reason": "Again"} if batch and batch["state"] == "submitted" else {}
        return batch and self.client.post(f"/claim-batches/{batch['id']}/cancel", body)

    def _step_results(self) -> httpx.Response | None:
        batch = self._one("/claim-batches", "submitted", "submitted", "part_processed", "processed", "cancelled")
        if not batch:
            return None
        claims = self.client.get(f"/claim-batches/{batch['id']}/lines", limit=1000).json()["data"]
        rows = [self._answer(each) for each in claims if self.random.random() < 0.8]
        if self.random.random() < 0.2:
            rows += rows[:1]
        return self.client.request("POST", f"/claim-batches/{batch['id']}/results", content=results_csv(rows))

    def _answer(self, claim: Row) -> Row:
        amount = claim["amount"]
        paid = self.random.choice((amount, amount, round(amount / 2, 2), amount - 0.01, amount + 1, 0, -1, ""))
        status = "SUCCESSFUL" if paid and self.random.random() < 0.9 else self.random.choice(("ERROR", "OPEN"))
        return {
            "NDISNumber": NDIS_NUMBER, "ClaimReference": claim["reference"], "Payment Request Status": status,
            "Paid Total Amount": f"{paid:.2f}" if paid != "" else "",
        }  # fmt: skip

    def _step_result_by_hand(self) -> httpx.Response | None:
        outcome = self.random.choice(("paid", "paid", "rejected", "cancelled"))
        body: Row = {"outcome": outcome} | ({"amount": self._cents()} if outcome == "paid" else {})
        return self._line_action("claim-result", body, "pending")

    def _step_replace_result(self) -> httpx.Response | None:
        outcome = self.random.choice(("paid", "paid", "rejected", "cancelled"))
        body: Row = {"outcome": outcome, "replaces_result": True}
        body |= {"amount": self._cents()} if outcome == "paid" else {}
        return self._line_action("claim-result", body, "payment_ready", "partially_ready", "partially_paid", "rejected")

    def _step_claim_elsewhere(self) -> httpx.Response | None:
        line = self._line("new")
        return line and self.client.post(f"/invoices/{line.invoice_id}/claimed-elsewhere", {"reference": "PORTAL-17"})

    def _step_receipt(self) -> httpx.Response | None:
        batch = self._one("/claim-batches", "submitted", "part_processed", "processed")
        amount = self.random.choice((batch["total"], self._cents(), -self._cents(500))) if batch else 0
        body = {"date": str(self.today), "amount": amount}
        return batch and self.client.post(f"/claim-batches/{batch['id']}/receipts", body)

    def _step_confirm(self) -> bool:
        """A second person confirms what an import says that the agency has paid."""
        line = self._line("payment_ready", "partially_ready")

        async def confirm(line: _Line) -> None:
            async with self.server.db.transaction() as tx:
                ctx = WriteContext(tx, self.plan_manager_id, self.server.settings, SYSTEM)
                await line_claims.confirm_result(ctx, line.invoice_id, line.id)

        try:
            if line:
                self.server.run(confirm(line))
        except (DomainError, NotFound):
            return False
        return line is not None

    def _step_adjust(self) -> httpx.Response | None:
        line = self._line("paid", "partially_paid", "payment_ready", "partially_ready", "rejected", "pending")
        if not line:
            return None
        kind = self.random.choice(("agency_reversal", "agency_reversal", "provider_refund", "repaid_to_agency"))
        amount = self.random.choice((self._cents(8_000), line.paid_amount or 1))  # often all of it
        body = {"line_id": str(line.id), "kind": kind, "amount": amount, "date": str(self.today)}
        return self.client.post(f"/invoices/{line.invoice_id}/adjustments", body)

    # Payments

    def _step_pay(self) -> httpx.Response:
        body = {"all": True, "process_date": str(self.today), "group_by": self.random.choice(("payee", "invoice"))}
        return self.client.post("/payment-runs", body)

    def _step_pay_some(self) -> httpx.Response | None:
        line = self._line("payment_ready", "partially_ready")
        body = {"invoice_ids": [str(line.invoice_id)], "process_date": str(self.today)} if line else {}
        return line and self.client.post("/payment-runs", body)

    def _step_download(self) -> httpx.Response | None:
        run = self._one("/payment-runs", "draft", "paid")
        return run and self.client.get(f"/payment-runs/{run['id']}/file")

    def _step_mark_paid(self) -> httpx.Response | None:
        run = self._one("/payment-runs", "draft")
        return run and self.client.post(f"/payment-runs/{run['id']}/mark-paid", {})

    def _step_cancel_run(self) -> httpx.Response | None:
        run = self._one("/payment-runs", "draft", "paid") if self.random.random() < 0.5 else None
        body = {"not_sent_to_bank": True, "reason": "Again"}
        return run and self.client.post(f"/payment-runs/{run['id']}/cancel", body)

    def _step_take_fees(self) -> httpx.Response | None:
        line = self._line("payment_ready", "partially_ready")
        chosen: Row = {"invoice_ids": [str(line.invoice_id)]} if line else {"all": True}
        return self.client.post("/fee-takings", self.random.choice((chosen, {"all": True})))

    def _step_return(self) -> httpx.Response | None:
        run = self._one("/payment-runs", "paid")
        payments = self.office.payments(run) if run else []
        if not run or not payments:
            return None
        body = {"date": str(self.today), "reason": "Closed"}
        return self.client.post(
            f"/payment-runs/{run['id']}/payments/{self.random.choice(payments)['id']}/returned", body
        )

    def _step_approve_accounts(self) -> bool:
        self.office.set_account("provider", self.office.provider, "Amber Physio")
        self.office.set_account("participant", self.office.participant, "Robin Hale")
        return True
