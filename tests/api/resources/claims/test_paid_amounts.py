"""Whatever happens to a line, what is paid are its claims less its reversals."""

import json
from random import Random
from uuid import UUID

import pytest

from support.claims import Office
from support.client import Client
from support.results import SubmittedBatch
from support.server import RunningServer

SUMS = """
    select json_build_object('line', coalesce(line.paid_amount, 0), 'claims', (
        select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and line_id = line.id
    ), 'reversed', (
        select coalesce(sum(amount), 0) from adjustments
        where plan_manager_id = $1 and line_id = line.id and kind = 'agency_reversal'
    ), 'amount', line.total_price)::text
    from invoice_lines line where plan_manager_id = $1
"""


@pytest.mark.parametrize("seed", range(4))
def test_paid_amounts_are_claims_less_reversals(server: RunningServer, api: Client, seed: int) -> None:
    rng, office = Random(seed), Office(server, api)
    invoice = office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14"))
    for _ in range(4):
        if office.claim(invoice, params={"dry_run": "true"}).json()["lines"] == 0:
            break
        batch = SubmittedBatch(office, invoice)
        for index, claim in enumerate(batch.claims):
            path = f"/invoices/{claim['invoice_id']}/lines/{claim['line_id']}"
            match rng.choice(("paid", "part", "reject", "cancel", "wrong")):
                case "paid":
                    batch.apply(batch.paid(index))
                case "part":
                    batch.apply(batch.paid(index, rng.randint(1, int(claim["amount"] * 100)) / 100))
                case "reject":
                    batch.apply(batch.rejected(index))
                case "cancel":
                    api.post(f"{path}/claim-result", {"outcome": "cancelled"})
                case _:
                    batch.apply(batch.paid(index, claim["amount"] + 1), batch.row(index, "X", 1))
            body = {"line_id": claim["line_id"], "kind": "agency_reversal", "date": "2026-06-01"}
            api.post(f"/invoices/{claim['invoice_id']}/adjustments", body | {"amount": rng.randint(1, 30000) / 100})
            api.post(f"{path}/retry", None)
            change = "update invoice_lines set claim_status = 'partially_paid', has_payment = true"
            where = " where plan_manager_id = $1 and id = $2 and claim_status = 'partially_ready'"
            office.execute(change + where, office.plan_manager_id, UUID(claim["line_id"]))
            api.post(f"{path}/claim-rest", None)
            api.post(f"{path}/claim-result", {"outcome": "rejected"})
        check(office)


def check(office: Office) -> None:
    for text in office.server.run(office.server.db.rows(str, SUMS, office.plan_manager_id)):
        sums = json.loads(text)
        assert round(sums["claims"] - sums["reversed"], 2) == sums["line"]
        assert 0 <= sums["line"] <= sums["amount"]
