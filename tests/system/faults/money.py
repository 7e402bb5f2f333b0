"""Claims and payments under faults: a load that claims, applies results and pays, and what the database must have."""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from support.client import PREFIX
from support.money_rules import RULES
from support.program import run_program
from support.results import results_csv
from system.faults.access import Credentials, query
from system.faults.load import Load, Writer

Row = dict[str, Any]
NDIS_NUMBER = "430000001"
PRICES = (10_010, 5_005)  # cents of the lines of an invoice
OFFICE = {
    "registration-number": "4050000000", "bank-letters": "BQL", "bsb": "999-002", "account-number": "87654321",
    "account-name": "Harbour Plans", "direct-entry-user-name": "Harbour Plans", "remitter": "Harbour Plans",
    "direct-entry-description": "PROVIDERS",
}  # fmt: skip


class MoneyOffice:
    """A plan manager with its settings, a participant, and a provider with an account, by the operator's commands."""

    def __init__(self, address: Callable[[], str], access: Credentials, folder: Path, **settings: str) -> None:
        settings = {"PLANKEEPER_DATA_DIR": str(folder)} | settings
        options = [text for name, value in OFFICE.items() for text in (f"--{name}", value)]
        done = run_program("plan-managers", "update", access.plan_manager_id, *options, **settings)
        assert done.returncode == 0, done
        file = folder / "providers.jsonl"
        provider = {
            "entity_name": "Coral Test Physio", "abn": "89000000019", "bank_bsb": "999001",
            "bank_account_number": "12345678", "bank_account_name": "Coral Test Physio",
        }  # fmt: skip
        file.write_text(json.dumps(provider))
        done = run_program("import", "providers", str(file), "--plan-manager", access.plan_manager_id, **settings)
        assert done.returncode == 0, done
        with httpx.Client(base_url=address() + PREFIX, headers=access.headers) as http:
            participant = {"first_name": "Robin", "participant_number": NDIS_NUMBER, "status": "Active"}
            self.participant = http.post("/participants", json=participant).raise_for_status().json()["id"]
            self.provider = http.get("/providers").raise_for_status().json()["data"][0]["id"]

    def new_writer(self, load: Load, name: str, chance: random.Random) -> "MoneyWriter":
        return MoneyWriter(self, load, name, chance)


class MoneyWriter(Writer):
    """Enters invoices, claims them, applies results and pays, and sometimes cancels and starts again."""

    def __init__(self, office: MoneyOffice, load: Load, name: str, chance: random.Random) -> None:
        super().__init__(load, name, chance)
        self.office = office
        self.paid: dict[str, tuple[str, int]] = {}  # the state and the paid cents of each line
        self.counts: Counter[str] = Counter()  # of acknowledged batches and runs, and cents that were paid out
        today = datetime.now(UTC).date()
        self.day, self.process_date = str(today - timedelta(days=20)), str(today)

    def work(self) -> None:
        while not self.load.stopping.is_set():
            invoices = [self._enter() for _ in range(2)]
            self._apply(self._submit(invoices))
            self._pay(invoices)

    def _enter(self) -> Row:
        items = [
            {
                "description": "Physiotherapy", "service_item_number": "15_056_0128_1_3", "service_date_from": self.day,
                "service_date_to": self.day, "quantity": 1, "unit_price": price / 100, "total_price": price / 100,
            }
            for price in PRICES
        ]  # fmt: skip
        total = sum(PRICES) / 100
        body = {
            "invoice_number": self.new_name(), "invoice_date": self.day, "participant_id": self.office.participant,
            "pm_provider_id": self.office.provider, "subtotal": total, "tax": 0, "total": total, "line_items": items,
        }  # fmt: skip
        return self.write("POST", "/invoices", body)

    def _submit(self, invoices: list[Row]) -> Row:
        body = {"invoice_ids": [each["id"] for each in invoices]}
        while True:
            batch = self.write("POST", "/claim-batches", body)
            assert (batch["lines"], batch["left_out"]) == (2 * len(PRICES), []), batch
            self.counts["batches"] += 1
            self.write("POST", f"/claim-batches/{batch['id']}/submit")
            if self.random.random() < 0.8:
                return batch
            reason = {"uploaded": False, "reason": "Again"}
            self.write("POST", f"/claim-batches/{batch['id']}/cancel", reason)

    def _read(self, path: str) -> httpx.Response:
        response, _ = self._send_until_answered("GET", path)
        assert response.status_code == 200, response.text
        return response

    def _apply(self, batch: Row) -> None:
        rows = list[Row]()
        for claim in self._read(f"/claim-batches/{batch['id']}/lines").json()["data"]:
            amount = round(claim["amount"] * 100)
            paid = self.random.choice((amount, amount, amount // 2, 0))
            state = "rejected" if not paid else "paid" if paid == amount else "partially_paid"
            self.paid[claim["line_id"]] = (state, paid)
            rows.append({
                "NDISNumber": NDIS_NUMBER, "ClaimReference": claim["reference"],
                "Paid Total Amount": f"{paid / 100:.2f}" if paid else "",
                "Payment Request Status": "SUCCESSFUL" if paid else "ERROR",
            })  # fmt: skip
        # Under another key, as a person who sends a file again: it changes nothing.
        for _ in range(2):
            result = self.write("POST", f"/claim-batches/{batch['id']}/results", content=results_csv(rows))
            assert (result["state"], result["unmatched"]) == ("processed", []), result

    def _pay(self, invoices: list[Row]) -> None:
        due = sum(self.paid[line["id"]][1] for each in invoices for line in each["line_items"])
        if not due:
            return
        body = {"invoice_ids": [each["id"] for each in invoices], "process_date": self.process_date}
        while True:
            run = self.write("POST", "/payment-runs", body)
            assert round(run["total"] * 100) == due, run
            self.counts["runs"] += 1
            if self.random.random() < 0.8:
                break
            self.write("POST", f"/payment-runs/{run['id']}/cancel", {})
        file = self._read(f"/payment-runs/{run['id']}/file").content
        self.write("POST", f"/payment-runs/{run['id']}/mark-paid", {})
        assert self._read(f"/payment-runs/{run['id']}/file").content == file
        self.counts["cents"] += due


@dataclass
class MoneyComparison:
    """Differences, of which there must be none."""

    acknowledged: int
    lines: int
    paid_out: int  # in cents
    differing_lines: dict[str, Any]
    broken_rules: dict[str, Any]
    differing_counts: dict[str, Any]


def compare_money(load: Load, dsn: str) -> MoneyComparison:
    """End the load, and compare what was acknowledged with the database, in which the rules of money hold."""
    load.finish(lambda: query(dsn, "select count(*) from event_queue") == [(0,)])
    writers = [each for each in load.writers if isinstance(each, MoneyWriter)]
    expected = {line_id: state for each in writers for line_id, state in each.paid.items()}
    counts = sum((each.counts for each in writers), Counter[str]())
    id_ = load.access.plan_manager_id
    rows = query(
        dsn,
        """
        select id::text, claim_status, (coalesce(paid_amount, 0) * 100)::int from invoice_lines
        where plan_manager_id = $1
        """,
        id_,
    )
    stored = {line_id: (state, paid) for line_id, state, paid in rows}
    [found] = query(
        dsn,
        """
        select (select count(*) from claim_batches where plan_manager_id = $1) as batches,
            (select count(*) from payment_runs where plan_manager_id = $1) as runs,
            (
                select (coalesce(sum(amount), 0) * 100)::bigint from payments
                where plan_manager_id = $1 and state = 'paid'
            ) as cents
        """,
        id_,
    )
    broken = {name: list(map(tuple, query(dsn, rule, id_))) for name, rule in RULES.items()}
    return MoneyComparison(
        acknowledged=load.acknowledged,
        lines=len(stored),
        paid_out=counts["cents"],
        differing_lines={
            each: (expected.get(each), stored.get(each))
            for each in expected.keys() | stored.keys()
            if expected.get(each) != stored.get(each)
        },
        broken_rules={name: found for name, found in broken.items() if found},
        differing_counts={name: (counts[name], found[name]) for name in counts if counts[name] != found[name]},
    )
