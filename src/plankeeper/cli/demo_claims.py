"""The claims and payments of `serve --demo`, in each state. They are made by the services that the API uses."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.cli.sample_data import DemoPlanManager, plan_managers
from plankeeper.core.context import Actor, WriteContext, or_404
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.bank_text import MAX_ACCOUNT_NAME, to_bank_text
from plankeeper.resources.bank_details.store import list_contacts
from plankeeper.resources.claims import (
    adjustments,
    candidate_store,
    receipts,
    result_service,
    result_store,
    service,
    store,
)
from plankeeper.resources.claims.adjustment_schemas import NewAdjustment
from plankeeper.resources.claims.result_rules import ClaimState
from plankeeper.resources.claims.result_schemas import NewReceipt
from plankeeper.resources.claims.results_file import ResultRow, ResultsFile
from plankeeper.resources.claims.schemas import ClaimBatch, ClaimBatchListQuery, NewClaimBatch
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.office_settings.parsers import CLAIMS_AND_PAYMENTS, parse_claims_and_payments, to_texts
from plankeeper.resources.office_settings.service import set_claims_and_payments
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.payments import files
from plankeeper.resources.payments import service as payments
from plankeeper.resources.payments.planning import READY
from plankeeper.resources.payments.queries import list_payments_page
from plankeeper.resources.payments.schemas import NewPaymentRun, PaymentListQuery, PaymentReturn, PaymentRun

SETTINGS = {
    "registration_number": "4050001234",
    "prices_include_gst": "yes",
    "bank_letters": "BQL",
    "bank_bsb": "999-002",
    "bank_account_number": "87654321",
    "bank_account_name": "Plan funds account",
    "direct_entry_user_id": "301500",
    "direct_entry_description": "PROVIDERS",
}
MIN_INVOICES = 10  # that can be claimed and become claims
PAYEE_BSB = "999001"  # of no bank
FIRST_ACCOUNT = 10_000_101  # the account number of the first payee
# Of ten claims of a batch, in the order of its file: this one is rejected, and the other one is paid in part.
REJECTED, PAID_LESS, GROUP = 3, 6, 10
REJECTION = "The support isn't in the participant's plan."


async def add_demo_claims(db: Database, settings: Settings) -> None:
    """Add claims and payments to the sample invoices of each plan manager, unless it has a claim batch.

    Half of the invoices that can be claimed stay as they are. Raises DomainError 503 if the server has no key to
    encrypt bank details with.
    """
    for manager in plan_managers():
        async with db.transaction() as tx:
            if await store.LIST.count_matching(tx, manager.id, ClaimBatchListQuery()):
                continue
            actor = Actor("system", None, "plankeeper serve --demo")
            await _add(WriteContext(tx, manager.id, settings, actor, notify=False), manager)


async def _add(ctx: WriteContext, manager: DemoPlanManager) -> None:
    await _set_office(ctx, manager.name.partition(" (")[0])
    invoices = (await _list_claimable(ctx))[::2]
    if len(invoices) < MIN_INVOICES:
        return
    first, second = len(invoices) * 6 // 10, len(invoices) * 8 // 10
    batch = await claim(ctx, invoices[:first])
    await apply_results(ctx, batch)
    await _pay(ctx, await _set_accounts(ctx, invoices[:first]))
    await claim(ctx, invoices[first:second])
    await service.create(ctx, NewClaimBatch(invoice_ids=[str(each) for each in invoices[second:]]))


async def _set_office(ctx: WriteContext, name: str) -> None:
    texts = to_texts(await get_settings(ctx.tx, ctx.plan_manager_id), CLAIMS_AND_PAYMENTS) | SETTINGS
    texts |= {"direct_entry_user_name": name, "remitter": name}
    await set_claims_and_payments(ctx, parse_claims_and_payments(texts, has_account=False))


async def _list_claimable(ctx: WriteContext) -> list[UUID]:
    """The invoices of which no line would be left out of a batch, the first received first."""
    would = await service.create(ctx, NewClaimBatch(all=True), is_dry_run=True)
    left_out = {each.invoice_id for each in would.left_out or []}
    lines = await candidate_store.list_open(ctx.tx, ctx.plan_manager_id, [], service.MAX_CANDIDATES)
    return [each for each in dict.fromkeys(line.invoice_id for line in lines) if each not in left_out]


async def _set_accounts(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> dict[Payee, list[UUID]]:
    """Set bank details of the payees of invoices that are ready to be paid. Returns the payees with these invoices."""
    payees = dict[Payee, list[UUID]]()
    for each in await invoice_store.get_many(ctx.tx, ctx.plan_manager_id, invoice_ids):
        if each.claim_status not in READY:
            continue
        id_ = each.participant_id if each.payee == "participant" else each.pm_provider_id
        payees.setdefault(Payee(each.payee, or_404(id_)), []).append(each.id)
    contacts = await list_contacts(ctx.tx, ctx.plan_manager_id, [*payees])
    for number, payee in enumerate(payees, FIRST_ACCOUNT):
        name = to_bank_text(contacts[payee].name or "", MAX_ACCOUNT_NAME).text
        await bank_details.set_accounts(ctx, payee.kind, {payee.id: BankAccount(PAYEE_BSB, str(number), name)})
    return payees


async def claim(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> ClaimBatch:
    """A submitted batch of invoices."""
    batch = await service.create(ctx, NewClaimBatch(invoice_ids=[str(each) for each in invoice_ids]))
    await service.download(ctx, or_404(batch.id))
    return await service.submit(ctx, or_404(batch.id))


async def apply_results(ctx: WriteContext, batch: ClaimBatch, group: int = GROUP) -> None:
    """Apply the agency's results to all claims of a batch, and record that the money has arrived in two parts.

    One claim in each `group` is rejected, and one is paid in part.
    """
    id_ = or_404(batch.id)
    references = [each.reference for each in await store.list_of_batch(ctx.tx, ctx.plan_manager_id, id_)]
    claims = await result_store.list_by_references(ctx.tx, ctx.plan_manager_id, references)
    claims.sort(key=lambda each: references.index(each.reference))
    rows = [_result(number, each, group) for number, each in enumerate(claims)]
    await result_service.apply_results(ctx, id_, ResultsFile(rows, sha256=""), dry_run=False)
    received = sum((each.amount or Decimal(0) for each in rows), Decimal(0))
    first = round(received / 2, 2)
    for number, amount in enumerate((first, received - first), 1):
        receipt = NewReceipt(date=ctx.settings.today, amount=amount, reference=f"{batch.number}/{number}")
        await receipts.record(ctx, id_, receipt)


def _result(number: int, claim: ClaimState, group: int) -> ResultRow:
    """The row of a results file for the claim with this number, from 0."""
    status, amount, message = "SUCCESSFUL", claim.amount, None
    if number % group == REJECTED:
        status, amount, message = "ERROR", Decimal(0), REJECTION
    elif number % group == PAID_LESS:
        amount = round(claim.amount * 3 / 4, 2)
    agency_number = f"{88_000_000 + number}"
    return ResultRow(number + 2, claim.ndis_number or "", claim.reference, status, amount, agency_number, message)


class _Turns(NamedTuple):
    """The payees that a run pays, by the state of the run. Those of no run have lines that are ready to be paid."""

    paid: Sequence[Payee]
    downloaded: Sequence[Payee]
    draft: Sequence[Payee]
    none: Sequence[Payee]


async def _pay(ctx: WriteContext, payees: dict[Payee, list[UUID]]) -> None:
    """A run in each state, a payment that is returned, money to recover, and a change of bank details that waits."""
    if len(payees) < len(_Turns._fields):
        return
    turns = _Turns(*([*payees][turn::4] for turn in range(4)))
    await _pay_out(ctx, await _make_run(ctx, turns.paid, payees))
    downloaded = await _make_run(ctx, turns.downloaded, payees)
    await files.download(ctx, or_404(downloaded.id))
    await _make_run(ctx, turns.draft, payees)
    account = BankAccount(PAYEE_BSB, str(FIRST_ACCOUNT - 1), "New account")
    await bank_details.propose(ctx, turns.none[0], account)


async def _make_run(ctx: WriteContext, some: Sequence[Payee], payees: dict[Payee, list[UUID]]) -> PaymentRun:
    ids = [str(invoice_id) for payee in some for invoice_id in payees[payee]]
    return await payments.create(ctx, NewPaymentRun(invoice_ids=ids, process_date=_bank_day(ctx)))


async def _pay_out(ctx: WriteContext, run: PaymentRun) -> None:
    """Mark a run as paid. The bank returns the last payment, and the agency takes a part of the first one back."""
    run_id, today = or_404(run.id), ctx.settings.today
    await files.download(ctx, run_id)
    await payments.mark_paid(ctx, run_id, today)
    made = await list_payments_page(ctx.tx, ctx.plan_manager_id, run_id, PaymentListQuery())
    if len(made) > 1:
        sent_back = PaymentReturn(date=today, reference="R0457", reason="The account is closed.")
        await payments.record_return(ctx, run_id, made[-1].id, sent_back)
    paid = made[0].lines[0]
    reversed_ = NewAdjustment(
        line_id=str(paid.line_id),
        kind="agency_reversal",
        amount=round(paid.amount / 2, 2),
        date=today,
        reason="The agency has found a second claim for the same service.",
    )
    await adjustments.record(ctx, paid.invoice_id, reversed_)


def _bank_day(ctx: WriteContext) -> date:
    """Today, or the Monday after it."""
    today = ctx.settings.today
    return today + timedelta(days=7 - today.weekday()) if today.weekday() >= 5 else today
