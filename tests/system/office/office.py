"""An office whose people and programs do their work over HTTP: settings, claims, results, payments."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx

from plankeeper.access.api_keys import service as api_keys
from plankeeper.core.context import Actor, WriteContext
from support.client import Client
from support.console import PASSWORD, Account, Browser, create_account
from support.mail import PUBLIC_URL, public_browser
from support.outbox import MailingServer
from support.pdf_files import text_pdf
from support.results import results_csv
from system.office.ledger import Ledger, cents

ORIGIN = {"Origin": PUBLIC_URL}
NDIS_NUMBER = "430000001"
PROVIDER_ACCOUNT = {"bsb": "999-001", "account_number": "12345678", "account_name": "Coral Test Physio"}
PARTICIPANT_ACCOUNT = {"bsb": "999-004", "account_number": "00220011", "account_name": "Robin Hale"}
SETTINGS = {
    "registration_number": "4050000000", "abn": "11 123 456 780", "prices_include_gst": "yes",
    "result_tolerance": "0.01", "days_until_claim_is_late": "5", "bank_letters": "BQL", "bank_bsb": "999-002",
    "bank_account_number": "87654321", "bank_account_name": "Harbour Plans", "direct_entry_user_id": "301",
    "direct_entry_user_name": "Harbour Plans", "direct_entry_description": "PROVIDERS", "remitter": "Harbour Plans",
    "group_payments_by": "payee", "max_payments_in_file": "300", "needs_second_person": "true",
}  # fmt: skip
Row = dict[str, Any]


class People:
    """Two owners with browsers and keys: Ada makes claims and payments, Kim approves and marks as paid."""

    def __init__(self, mailing: MailingServer, plan_manager_id: UUID) -> None:
        self._server, self._plan_manager_id = mailing.server, plan_manager_id
        self.ada, self._ada_browser = self._hire("Ada Okafor")
        self.kim, self.browser = self._hire("Kim Sato")

    def _hire(self, name: str) -> tuple[Client, Browser]:
        account = self._server.run(create_account(self._server, self._plan_manager_id, "owner", name))
        browser = public_browser(self._server.url)
        form = {"email": account.email, "password": PASSWORD}
        assert browser.submit("/console/sign-in", form, "/console/sign-in", headers=ORIGIN).status_code == 303
        return Client(self._server.url, self._server.run(self._make_key(account, name)), self._plan_manager_id), browser

    async def _make_key(self, account: Account, name: str) -> str:
        async with self._server.db.transaction() as tx:
            actor = Actor("user", str(account.account_id), name)
            ctx = WriteContext(tx, self._plan_manager_id, self._server.settings, actor)
            scopes = ("read", "write", "claims", "payments")
            return await api_keys.create(ctx, name, [self._plan_manager_id], scopes, None)

    def close(self) -> None:
        for each in (self.ada, self.kim, self._ada_browser, self.browser):
            each.http.close()

    def approve_accounts(self) -> int:
        """Kim approves the bank details that wait. Returns how many."""
        ids = set(re.findall(r"/console/bank-details/([0-9a-f-]{36})", self.browser.get("/console/bank-details").text))
        for each in ids:
            page = f"/console/bank-details/{each}"
            done = self.browser.submit(
                f"{page}/approve", {"called_back": "Called on 02 5550 1234"}, page, headers=ORIGIN
            )
            assert done.status_code == 303, done.text
        return len(ids)


class Office:
    """The work on the invoices of one participant. `ledger` records each movement of money."""

    def __init__(self, mailing: MailingServer, plan_manager_id: UUID, *, needs_receipts: bool) -> None:
        self.mailing, self.people = mailing, People(mailing, plan_manager_id)
        self.client = self.people.ada
        self.ledger = Ledger(needs_receipts)
        self.today = datetime.now(mailing.server.settings.time_zone).date()
        self.service_day = self.today - timedelta(days=20)
        page, form = (
            "/console/settings/claims-and-payments",
            SETTINGS | ({"needs_receipts": "on"} if needs_receipts else {}),
        )
        assert self.people.browser.submit(page, form, page, headers=ORIGIN).status_code == 303
        self._add_people()

    def _add_people(self) -> None:
        suffix = self.client.plan_manager_id
        self.nominee, self.payee_mail = f"nominee-{suffix}@example.com", f"accounts-{suffix}@example.com"
        participant = {
            "first_name": "Robin", "last_name": "Hale", "participant_number": NDIS_NUMBER, "status": "Active",
            "approval_required": True,
        }  # fmt: skip
        self.participant = self.client.create("/participants", participant)["id"]
        nominee = {
            "first_name": "Lee", "last_name": "Hale", "email": self.nominee,
            "permissions": ["view_invoices", "approve_invoices"],
        }  # fmt: skip
        self.client.create(f"/participants/{self.participant}/team-members", nominee)
        provider = {"entity_name": "Coral Test Physio", "abn": "89000000019", "remittance_email": self.payee_mail}
        self.provider = self.client.create("/providers", provider)["id"]
        component = {"name": "Therapy", "kind": "flexible", "categories": [15], "amount": 5000}
        start, end = (self.today + timedelta(days=each) for each in (-100, 200))
        plan = {"start_date": str(start), "end_date": str(end), "components": [component]}
        self.plan = self.client.create(f"/participants/{self.participant}/plans", plan)["id"]
        self.put(f"/providers/{self.provider}/bank-details", PROVIDER_ACCOUNT)
        self.put(f"/participants/{self.participant}/bank-details", PARTICIPANT_ACCOUNT)

    # Requests

    def post(self, path: str, body: Any = None, *, by: Client | None = None, **more: Any) -> Row:
        response = (by or self.client).post(path, body, **more)
        assert response.is_success, response.text
        return response.json()

    def put(self, path: str, body: Any) -> Row:
        response = self.client.put(path, body)
        assert response.is_success, response.text
        return response.json()

    def refused(self, response: httpx.Response) -> str:
        assert response.is_client_error, response.text
        return response.json()["error"]

    # Invoices

    def item(self, quantity: float, unit_price: float, total: float, **values: Any) -> Row:
        day = str(self.service_day)
        return {
            "description": "Physiotherapy", "service_item_number": "15_056_0128_1_3", "service_date_from": day,
            "service_date_to": day, "quantity": quantity, "unit_price": unit_price, "total_price": total,
        } | values  # fmt: skip

    def enter(self, number: str, *items: Row, **values: Any) -> Row:
        """Upload a document, and enter its invoice."""
        invoice = self.post("/invoices", {})
        path = f"/invoices/{invoice['id']}/document"
        headers = {"Content-Type": "application/pdf", "Content-Disposition": f'attachment; filename="{number}.pdf"'}
        stored = self.client.request("PUT", path, content=text_pdf() + number.encode(), headers=headers)
        assert stored.json()["media_type"] == "application/pdf"
        subtotal = round(sum(each["total_price"] for each in items), 2)
        written = {
            "invoice_number": number, "invoice_date": str(self.service_day), "participant_id": self.participant,
            "pm_provider_id": self.provider, "subtotal": subtotal, "tax": 0, "total": subtotal, "line_items": [*items],
        }  # fmt: skip
        return self.put(f"/invoices/{invoice['id']}", written | values)

    def read(self, invoice: Row) -> Row:
        return self.client.get(f"/invoices/{invoice['id']}").json()

    def states(self, invoice: Row) -> list[str]:
        return [each["claim_status"] for each in self.read(invoice)["line_items"]]

    def approve(self, invoice: Row, mails: int) -> None:
        """The nominee approves with the link of the latest mail, of which there have been `mails`."""
        [link] = self.mailing.mail.wait_for(self.nominee, mails).links
        path, visitor = link.removeprefix(PUBLIC_URL), public_browser(self.mailing.server.url)
        assert visitor.submit(f"{path}/approve", {}, path, headers=ORIGIN).status_code == 303
        visitor.http.close()
        assert self.read(invoice)["approval_status"] == "approved"

    # Claims

    def claim(self, *invoices: Row, **params: Any) -> Row:
        body = {"invoice_ids": [each["id"] for each in invoices]}
        return self.post("/claim-batches", body, params=params or None)

    def left_out(self, *invoices: Row) -> list[str]:
        """The reasons of the lines that a claim batch would leave out."""
        return [each["reason"] for each in self.claim(*invoices, dry_run="true")["left_out"]]

    def claims(self, batch: Row) -> list[Row]:
        return self.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]

    def submit(self, *invoices: Row) -> Row:
        batch = self.claim(*invoices)
        return self.post(f"/claim-batches/{batch['id']}/submit")

    def results(self, batch: Row, answers: Sequence[int | str], *, is_dry: bool = False) -> Row:
        """The agency's answers to the claims of a batch: cents that it pays, or why it pays nothing."""
        rows = [_answer(*each) for each in zip(self.claims(batch), answers, strict=True)]
        path, headers = f"/claim-batches/{batch['id']}/results", {"Content-Type": "text/csv"}
        params = {"dry_run": "true"} if is_dry else None
        response = self.client.request("POST", path, content=results_csv(rows), headers=headers, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def apply(self, batch: Row, answers: Sequence[int | str]) -> Row:
        """Apply results that are new, after a dry run and with a repetition, which says the same."""
        expected = self.results(batch, answers, is_dry=True)
        applied = self.results(batch, answers)
        assert applied == expected == self.results(batch, answers)
        for claim, answer in zip(self.claims(batch), answers, strict=True):
            self.ledger.result(claim["line_id"], answer if isinstance(answer, int) else 0)
        return applied

    def receive(self, batch: Row) -> None:
        """The agency's money arrives."""
        amount = (
            self.ledger.receive()
            if self.ledger.needs_receipts
            else sum(cents(each["paid"]) for each in self.claims(batch))
        )
        body = {"date": str(self.today), "amount": amount / 100, "reference": f"NDIA {batch['number']}"}
        self.post(f"/claim-batches/{batch['id']}/receipts", body)

    # Payments

    def payment_run(self, *invoices: Row, **params: Any) -> Row:
        body = {"invoice_ids": [each["id"] for each in invoices], "process_date": str(self.today)}
        return self.post("/payment-runs", body, params=params or None)

    def unpaid(self, *invoices: Row) -> list[str]:
        """The reasons of the lines that a payment run would leave out."""
        return [each["reason"] for each in self.payment_run(*invoices, dry_run="true")["left_out"]]

    def payments(self, run: Row) -> list[Row]:
        return self.client.get(f"/payment-runs/{run['id']}/payments").json()["data"]

    def file(self, run: Row) -> bytes:
        first = self.client.get(f"/payment-runs/{run['id']}/file")
        assert first.status_code == 200, first.text
        assert first.content == self.client.get(f"/payment-runs/{run['id']}/file").content
        return first.content

    def mark_paid(self, run: Row, amounts: Mapping[str, int]) -> None:
        """Kim marks a run as paid, which pays these amounts by line. Ada can't."""
        path = f"/payment-runs/{run['id']}/mark-paid"
        assert self.refused(self.client.post(path, {})) == "second_person_required"
        assert self.post(path, {}, by=self.people.kim)["state"] == "paid"
        assert self.refused(self.people.kim.post(path, {})) == "invalid_transition"
        self.ledger.pay(amounts)

    def adjust(self, invoice: Row, line: Row, kind: str, amount: int) -> None:
        body = {"line_id": line["id"], "kind": kind, "amount": amount / 100, "date": str(self.today)}
        self.post(f"/invoices/{invoice['id']}/adjustments", body)
        field = {"agency_reversal": "reversed", "provider_refund": "refunded", "repaid_to_agency": "repaid"}[kind]
        money = self.ledger.lines[line["id"]]
        setattr(money, field, getattr(money, field) + amount)

    # Figures

    def reconcile(self, days: int = 30) -> tuple[dict[str, int], dict[str, int]]:
        """The figures of the last days, and the held money by line. The file says the same."""
        path = f"/reconciliation?from={self.today - timedelta(days=days)}&to={self.today}"
        found = self.client.get(path).json()
        held = {each["line_id"]: cents(each["amount"]) for each in found["lines"]}
        figures = {name: cents(found[name]) for name in self.ledger.figures()}
        rows = self.client.request("GET", path, headers={"Accept": "text/csv"}).text.splitlines()[1:]
        in_file = [
            (kind, line, round(float(amount) * 100))
            for kind, _, _, line, _, amount in (each.split(",") for each in rows)
        ]
        assert in_file == [
            *((kind, "", amount) for kind, amount in figures.items()),
            *(("held", line, amount) for line, amount in held.items()),
        ]
        return figures, held

    def component(self) -> dict[str, int]:
        plan = self.client.get(f"/participants/{self.participant}/plans/{self.plan}").json()
        return {name: cents(plan["components"][0][name]) for name in ("paid", "pending", "waiting", "available")}

    def recoveries(self) -> list[tuple[str, int, int]]:
        found = self.client.get("/recoveries").json()["data"]
        return [(each["line_id"], cents(each["to_recover"]), cents(each["to_repay"])) for each in found]


def _answer(claim: Row, answer: int | str) -> Row:
    is_paid = isinstance(answer, int)
    return {
        "NDISNumber": NDIS_NUMBER, "ClaimReference": claim["reference"],
        "Paid Total Amount": f"{answer / 100:.2f}" if is_paid else "", "Payment Request Number": "900000123",
        "Payment Request Status": "SUCCESSFUL" if is_paid else "ERROR", "Error Message": "" if is_paid else answer,
    }  # fmt: skip
