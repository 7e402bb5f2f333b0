"""Records of claims and payments, one for each action."""

from datetime import date

from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext, or_404
from plankeeper.resources.payments import service as payments
from plankeeper.resources.payments import store as payment_store
from plankeeper.resources.payments.schemas import NewPaymentRun
from support.claims import Office
from support.client import Client
from support.payments import PayingOffice
from support.server import RunningServer

CLAIMED_INVOICE_ID = "01900000-0000-7000-8000-0000000000ab"  # one that can be claimed, of each plan manager
PAID_INVOICE_ID = "01900000-0000-7000-8000-0000000000ac"  # one that can be paid, of each plan manager


def make_claim_batches(server: RunningServer, client: Client) -> dict[str, str]:
    """The ids of drafts: one that is read, and one for each action."""
    office = Office(server, client)
    office.import_invoice(CLAIMED_INVOICE_ID, "CLAIMED")
    ids = {"claimed_participant_id": office.participant, "claimed_invoice_id": CLAIMED_INVOICE_ID}
    for name in ("claim_batch_id", "submit_claim_batch_id", "cancel_claim_batch_id"):
        invoice = office.import_invoice(str(uuid7()), name)
        ids |= {name: office.batch(invoice)["id"], f"{name}_of_invoice_id": invoice["id"]}
    [claim] = client.get(f"/claim-batches/{ids['claim_batch_id']}/lines").json()["data"]
    for name in ("results_claim_batch_id", "receipts_claim_batch_id"):
        ids |= {name: office.batch(office.import_invoice(str(uuid7()), name))["id"]}
        client.create(f"/claim-batches/{ids[name]}/submit", None)
    return ids | {"claim_id": claim["id"]}


def make_payment_runs(server: RunningServer, client: Client) -> dict[str, str]:
    """The ids of drafts: one that is read, and one for each action; and those of a paid run with its payment."""
    office = PayingOffice(server, client)
    office.invoice("30.00", id=PAID_INVOICE_ID)
    names = ("payment_run_id", "file_payment_run_id", "mark_paid_payment_run_id", "cancel_payment_run_id")
    runs = {name: office.run(office.invoice("10.00", number=name)) for name in (*names, "returned_payment_run_id")}
    office.act(runs["returned_payment_run_id"], "mark-paid").raise_for_status()
    ids = {name: run["id"] for name, run in runs.items()}
    for prefix in ("", "returned_"):
        [payment] = office.payments(runs[f"{prefix}payment_run_id"])
        ids[f"{prefix}payment_id"] = payment["id"]
    return ids


def import_claimed(server: RunningServer, client: Client) -> str:
    """The id of an invoice that can be claimed."""
    return Office(server, client).import_invoice(str(uuid7()), "CLAIMED")["id"]


def make_paid_run(server: RunningServer, client: Client) -> dict[str, str]:
    """The ids of a run that is paid, and of its payment."""
    office = PayingOffice(server, client)
    office.invoice("10.00")

    async def work() -> dict[str, str]:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, server.settings, SYSTEM)
            run = await payments.create(ctx, NewPaymentRun(all=True, process_date=date(2026, 10, 15)))
            await payments.mark_paid(ctx, or_404(run.id), None)
            [payment] = await payment_store.list_of_run(tx, office.plan_manager_id, or_404(run.id))
        return {"payment_run_id": str(run.id), "payment_id": str(payment.id)}

    return server.run(work())
