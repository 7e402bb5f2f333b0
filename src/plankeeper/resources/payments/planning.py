"""What a payment run contains, decided from the stored lines: first without locks, then again under them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET, UnsetType

from plankeeper.core.context import WriteContext
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.payable import PayeeAccount, find_payable
from plankeeper.resources.invoices.line_moves import LineMove, lock
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.payments import store
from plankeeper.resources.payments.rules import (
    READY,
    PayeeKey,
    PlannedPayment,
    amounts_due,
    left_out,
    payee_of,
    plan_payments,
    reason_left_out,
)
from plankeeper.resources.payments.schemas import PayableLine, UnpaidLine, UnpaidReason


class RunPlan(NamedTuple):
    """The payments of a run, the accounts of their payees, the locked invoices, and the lines that are left out."""

    payments: Sequence[PlannedPayment]
    accounts: Mapping[Payee, PayeeAccount]
    locked: Mapping[UUID, Invoice]
    left_out: Sequence[UnpaidLine]


async def make_plan(
    ctx: WriteContext,
    settings: OfficeSettings,
    invoice_ids: Collection[UUID] | None,
    *,
    is_by_invoice: bool,
    is_dry_run: bool,
) -> RunPlan:
    """The plan of a run for some invoices, or for all. Unless it is dry, what it pays is locked."""
    if invoice_ids is None:
        lines = await store.list_ready(ctx.tx, ctx.plan_manager_id, READY)
    else:
        lines = await store.list_of_invoices(ctx.tx, ctx.plan_manager_id, [*invoice_ids])
    plan = await _plan(ctx, settings, lines, is_by_invoice=is_by_invoice, locks=False)
    if is_dry_run or not plan.payments:
        return plan
    # A line's id is unique only in its invoice.
    chosen = {(each.line.invoice_id, each.line.line_id) for payment in plan.payments for each in payment.lines}
    # Bank details are locked before invoices.
    await find_payable(ctx.tx, ctx.plan_manager_id, _payees(plan.payments), for_update=True)
    locked = await lock(ctx, {invoice_id for invoice_id, _ in chosen})
    again = await store.list_of_invoices(ctx.tx, ctx.plan_manager_id, [*locked])
    lines = [each for each in again if (each.invoice_id, each.line_id) in chosen]
    final = await _plan(ctx, settings, lines, is_by_invoice=is_by_invoice, locks=True)
    return final._replace(locked=locked, left_out=[*plan.left_out, *final.left_out])


async def list_reasons(ctx: WriteContext, invoice_id: UUID) -> list[UnpaidReason]:
    """Why the next run wouldn't pay lines of an invoice for which the agency has paid, each reason once."""
    settings = await get_settings(ctx.tx, ctx.plan_manager_id)
    plan = await make_plan(ctx, settings, [invoice_id], is_by_invoice=False, is_dry_run=True)
    return list(dict.fromkeys(each.reason for each in plan.left_out if each.reason != "not_ready"))


def _payees(payments: Iterable[PlannedPayment]) -> list[Payee]:
    return [Payee(*each) for each in dict.fromkeys(payment.payee for payment in payments)]


async def _plan(
    ctx: WriteContext, settings: OfficeSettings, lines: Sequence[PayableLine], *, is_by_invoice: bool, locks: bool
) -> RunPlan:
    payees = {Payee(*key) for line in lines if (key := payee_of(line))}
    accounts = await find_payable(ctx.tx, ctx.plan_manager_id, payees, for_update=locks)
    bank_reasons: dict[PayeeKey, UnpaidReason | None] = {
        PayeeKey(*payee): account.reason for payee, account in accounts.items()
    }
    estates = frozenset(PayeeKey(*payee) for payee, account in accounts.items() if account.estate_payee)
    uncovered = await find_uncovered(ctx, lines) if settings.needs_receipts else frozenset[UUID]()
    paid, unpaid = list[PayableLine](), list[UnpaidLine]()
    for line in lines:
        reason = reason_left_out(
            line, own_abn=settings.abn, uncovered_batches=uncovered, bank_reasons=bank_reasons, estates=estates
        )
        if reason:
            unpaid.append(left_out(line, reason))
        else:
            paid.append(line)
    # A balancing record is one of the file's records.
    limit = settings.max_payments_in_file - settings.has_balancing_record
    payments = plan_payments(paid, is_by_invoice=is_by_invoice)
    unpaid += [left_out(each.line, "batch_full") for payment in payments[limit:] for each in payment.lines]
    return RunPlan([_for_estate(each, accounts) for each in payments[:limit]], accounts, {}, unpaid)


def _for_estate(payment: PlannedPayment, accounts: Mapping[Payee, PayeeAccount]) -> PlannedPayment:
    """The payment with the name of who gets it: of a participant who has died, the payee of the estate."""
    return payment._replace(name=accounts[Payee(*payment.payee)].estate_payee or payment.name)


async def with_returns(ctx: WriteContext, moves: Sequence[LineMove]) -> list[LineMove]:
    """The moves of lines whose claim or run ends, and then what is due again after a return in the meantime."""
    moved = {(each.invoice_id, each.line_id) for each in moves}
    returned = await store.list_returned(ctx.tx, ctx.plan_manager_id, sorted({each.invoice_id for each in moves}))
    keys = moved.intersection((each.invoice_id, each.line_id) for each in returned)
    ids = sorted({invoice_id for invoice_id, _ in keys})
    lines = await store.list_of_invoices(ctx.tx, ctx.plan_manager_id, ids) if ids else []
    due = [key for each in lines if (key := (each.invoice_id, each.line_id)) in keys and amounts_due(each)]
    return [*moves, *(LineMove(*key, "return_payment") for key in due)]


async def find_uncovered(ctx: WriteContext, lines: Iterable[PayableLine]) -> frozenset[UUID]:
    """The claim batches whose money hasn't arrived."""
    batches = {each.batch_id for line in lines for each in line.claims if each.batch_id}
    return frozenset(await store.list_uncovered(ctx.tx, ctx.plan_manager_id, sorted(batches)) if batches else ())


async def find_invoices(
    ctx: WriteContext, invoice_ids: Sequence[str] | UnsetType, is_all: bool | UnsetType
) -> list[UUID] | None:
    """The ids of the invoices in a request with `invoice_ids` or `all`, or None for all. Raises ValidationError."""
    if (invoice_ids is UNSET) == (is_all is not True):
        message = "must be set if `all` isn't true, and only then"
        raise ValidationError(FieldError("invoice_ids", message, "inconsistent"))
    if isinstance(invoice_ids, UnsetType):
        return None
    ids = [UUID(each) for each in invoice_ids]
    existing = set(await store.list_existing(ctx.tx, ctx.plan_manager_id, ids))
    message = "must be the id of an invoice of this plan manager"
    errors = [FieldError(f"invoice_ids[{i}]", message, "not_found") for i, id_ in enumerate(ids) if id_ not in existing]
    if errors:
        raise ValidationError(*errors)
    return list(dict.fromkeys(ids))
