"""Payment runs: made, marked as paid, cancelled, and payments that the bank sends back.

Locks are always taken in this order: the run, bank details, invoices in order of id, the counter of numbers.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys.service import responsible_account
from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_date
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.bank_details.accounts import Payee, decrypt_account
from plankeeper.resources.bank_details.bank_text import MAX_ACCOUNT_NAME, to_bank_text
from plankeeper.resources.bank_details.service import require_approval_again
from plankeeper.resources.invoices.line_moves import LineMove, lock, move_lines
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.states import Cause
from plankeeper.resources.office_settings.number_store import next_number
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.payments import store
from plankeeper.resources.payments.aba_file import MAX_AMOUNT
from plankeeper.resources.payments.files import get_office, require_current, text_changed
from plankeeper.resources.payments.people import require_second_person
from plankeeper.resources.payments.planning import RunPlan, find_invoices, make_plan, with_returns
from plankeeper.resources.payments.remittance_mails import queue_mails, sends_mails
from plankeeper.resources.payments.rules import (
    PlannedPayment,
    amounts_due,
    date_warnings,
    lodgement_reference,
    paid_out,
    payment_number,
)
from plankeeper.resources.payments.schemas import (
    MAX_LEFT_OUT,
    NewPaymentRun,
    PayableLine,
    Payment,
    PaymentReturn,
    PaymentRun,
    PaymentRunCancel,
    RunWarning,
    StoredPayment,
    StoredPaymentLine,
    StoredRun,
    UnpaidLine,
)
from plankeeper.resources.payments.store import RunLine

LINE_EVENT = "invoice.line_changed"
MAX_WARNINGS = 100


async def create(ctx: WriteContext, new: NewPaymentRun, *, is_dry_run: bool = False) -> PaymentRun:
    """Make a run, or say what it would contain. Raises ValidationError, also for a run without a payment."""
    if is_dry_run:
        return (await preview(ctx, new)).run
    invoice_ids = await find_invoices(ctx, new.invoice_ids, new.all)
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    planned = await _plan_run(ctx, new, invoice_ids, is_dry_run=False)
    if not planned.plan.payments:
        name = "all" if invoice_ids is None else "invoice_ids"
        raise ValidationError(FieldError(name, _nothing_to_pay(planned.plan)))
    return await _save(ctx, planned.run, planned.plan, planned.titles)


class PreviewPayment(NamedTuple):
    """A payment that a run would make. `title` is the name of the payee's account as the file has it."""

    payee: Payee
    name: str
    title: str
    account_ending: str
    planned: PlannedPayment


class RunPreview(NamedTuple):
    """What a run would contain: its payments in the order of the file, and all lines that are left out."""

    run: PaymentRun
    payments: Sequence[PreviewPayment]
    left_out: Sequence[UnpaidLine]


async def preview(ctx: WriteContext, new: NewPaymentRun) -> RunPreview:
    """What a run would contain, and each of its payments. Nothing is stored or locked. Raises ValidationError."""
    run, plan, titles = await _plan_run(ctx, new, await find_invoices(ctx, new.invoice_ids, new.all), is_dry_run=True)
    payments = list[PreviewPayment]()
    for each in plan.payments:
        payee = Payee(*each.payee)
        payments.append(
            PreviewPayment(payee, each.name, titles[payee].shown, str(plan.accounts[payee].account_ending), each)
        )
    return RunPreview(_to_run(run), payments, plan.left_out)


class _PlannedRun(NamedTuple):
    """A run that isn't stored, with its plan and the names of its payees' accounts."""

    run: StoredRun
    plan: RunPlan
    titles: Mapping[Payee, "_Title"]


async def _plan_run(
    ctx: WriteContext, new: NewPaymentRun, invoice_ids: Collection[UUID] | None, *, is_dry_run: bool
) -> _PlannedRun:
    """Raises ValidationError for missing settings, and for amounts that a file can't have."""
    settings = await get_settings(ctx.tx, ctx.plan_manager_id)
    office = await get_office(ctx, settings)
    group_by = settings.group_payments_by if isinstance(new.group_by, UnsetType) else new.group_by
    plan = await make_plan(ctx, settings, invoice_ids, is_by_invoice=group_by == "invoice", is_dry_run=is_dry_run)
    total = _require_amounts(plan.payments)
    titles = _find_titles(ctx, plan)
    now = datetime.now(UTC)
    warnings = date_warnings(new.process_date, now.astimezone(ctx.settings.time_zone).date())
    run = StoredRun(
        id=None if is_dry_run else uuid7(),
        number=None,
        state="draft",
        process_date=new.process_date,
        group_by=group_by,
        total=total,
        payments=len(plan.payments),
        warnings=[*warnings, *office.warnings, *_title_warnings(titles)][:MAX_WARNINGS],
        left_out=[*plan.left_out[:MAX_LEFT_OUT]],
        left_out_count=len(plan.left_out),
        created_at=now,
        created_by=ctx.actor.display_name,
        updated_at=now,
        header=office.header,
        account=office.account,
        created_by_account=await responsible_account(ctx),
    )
    return _PlannedRun(run, plan, titles)


def _nothing_to_pay(plan: RunPlan) -> str:
    """Why a run has no payment, with the reasons of lines that are left out."""
    reasons = Counter(each.reason for each in plan.left_out)
    if not reasons:
        return "has no line that is ready to be paid"
    listed = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    return f"has no line that can be paid. Lines are left out for these reasons: {listed}"


def _require_amounts(payments: Sequence[PlannedPayment]) -> Decimal:
    """The total. Raises ValidationError for an amount that the file of a bank can't have."""
    total = sum((each.amount for each in payments), Decimal(0))
    largest = max((each.amount for each in payments), default=Decimal(0))
    if max(total, largest) > MAX_AMOUNT:
        message = f"adds up to {total:,.2f}: a file can have at most {MAX_AMOUNT:,.2f}, so pay fewer invoices at a time"
        raise ValidationError(FieldError("invoice_ids", message, "too_large"))
    return total


class _Title(NamedTuple):
    """The name of a payee's account, and as the file has it."""

    name: str
    shown: str


def _find_titles(ctx: WriteContext, plan: RunPlan) -> dict[Payee, _Title]:
    titles = dict[Payee, _Title]()
    for payee in dict.fromkeys(Payee(*each.payee) for each in plan.payments):
        stored = str(plan.accounts[payee].account)
        name = decrypt_account(ctx.settings, ctx.plan_manager_id, payee, stored).name
        titles[payee] = _Title(name, to_bank_text(name, MAX_ACCOUNT_NAME).text)
    return titles


def _title_warnings(titles: Mapping[Payee, _Title]) -> list[RunWarning]:
    return [text_changed(name, shown) for name, shown in titles.values() if name != shown]


async def _save(ctx: WriteContext, run: StoredRun, plan: RunPlan, titles: Mapping[Payee, _Title]) -> PaymentRun:
    """Write a new run with its payments. The number is taken last."""
    number = await next_number(ctx.tx, ctx.plan_manager_id, "payment_run")
    run.number, run_id = number, or_404(run.id)
    payments, lines = list[StoredPayment](), list[StoredPaymentLine]()
    for position, planned in enumerate(plan.payments, 1):
        payment = _to_payment(run, position, planned, plan, titles)
        payments.append(payment)
        lines += [
            StoredPaymentLine(
                payment_id=payment.id,
                claim_id=each.claim_id,
                invoice_id=each.invoice_id,
                line_id=each.line_id,
                amount=each.amount,
            )
            for each in planned.paid_lines()
        ]
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json(run))
    await store.insert_payments(ctx.tx, ctx.plan_manager_id, to_json(payments), to_json(lines))
    values = {"open_payment_run": number, "has_payment": True}
    paid = dict.fromkeys((each.invoice_id, each.line_id) for each in lines)
    await move_lines(ctx, plan.locked, [LineMove(*each, None, values) for each in paid], LINE_EVENT)
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, run_id))
    await record_event(ctx, "payment_run.created", None, replace(after, warnings=UNSET, left_out=UNSET))
    return after


def _to_payment(
    run: StoredRun, position: int, planned: PlannedPayment, plan: RunPlan, titles: Mapping[Payee, _Title]
) -> StoredPayment:
    payee = Payee(*planned.payee)
    account = plan.accounts[payee]
    invoice_number = to_bank_text(planned.invoice_number or "").text
    return StoredPayment(
        id=uuid7(),
        run_id=or_404(run.id),
        position=position,
        payee_kind=payee.kind,
        payee_id=payee.id,
        payee_name=planned.name,
        account=str(account.account),
        account_ending=str(account.account_ending),
        account_title=titles[payee].shown,
        reference=lodgement_reference(str(run.number), position, invoice_number),
        amount=planned.amount,
        state="draft",
        created_at=run.created_at,
    )


def _to_run(run: StoredRun) -> PaymentRun:
    return PaymentRun(**{name: getattr(run, name) for name in PaymentRun.__struct_fields__})


# The end of a run


async def mark_paid(ctx: WriteContext, run_id: UUID, paid_on: date | None) -> PaymentRun:
    """The bank has paid: by default, on the process date. A run that wasn't downloaded is checked first.

    Raises NotFound, ValidationError for a day in the future, and DomainError `invalid_transition`, `run_outdated` and
    `second_person_required`.
    """
    run = await _select_draft(ctx, run_id, "marked as paid")
    day = paid_on or run.process_date
    if day > ctx.settings.today:
        message = "must not be in the future" if paid_on else "is required: the process date is in the future"
        raise ValidationError(FieldError("paid_on", message, "too_large" if paid_on else "required"))
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    await require_second_person(ctx, await get_settings(ctx.tx, ctx.plan_manager_id), run)
    if run.downloaded_at is None:
        await require_current(ctx, run, await store.list_of_run(ctx.tx, ctx.plan_manager_id, run_id))
    locked, lines = await _lock_lines(ctx, run_id, None)
    now = datetime.now(UTC)
    before = await store.get_bare(ctx.tx, ctx.plan_manager_id, run_id)
    by = ctx.actor.display_name
    is_mailed = sends_mails(ctx.settings)
    await store.set_paid(ctx.tx, ctx.plan_manager_id, run_id, now, day, by, advices_mailed=is_mailed)
    await store.set_payments_state(ctx.tx, ctx.plan_manager_id, run_id, now, "paid")
    moves = await with_returns(ctx, [_paid(run, each) for each in lines])
    await move_lines(ctx, locked, moves, LINE_EVENT)
    if is_mailed:
        await queue_mails(ctx, run_id, now)
    return await _finish(ctx, "payment_run.paid", run_id, before)


def _paid(run: StoredRun, line: RunLine) -> LineMove:
    reference = payment_number(str(run.number), line.position)
    values = {"open_payment_run": None, "has_payment": True, "payment_ref": reference}
    return LineMove(line.invoice_id, line.line_id, "pay_out", values)


async def cancel(ctx: WriteContext, run_id: UUID, body: PaymentRunCancel) -> PaymentRun:
    """Cancel a draft. After a download, the body must say that the bank hasn't got the file, and why.

    Raises NotFound, ValidationError, and DomainError `invalid_transition` and `second_person_required`.
    """
    run = await _select_draft(ctx, run_id, "cancelled")
    if run.downloaded_at is not None:
        _require_reason(body)
        await require_second_person(ctx, await get_settings(ctx.tx, ctx.plan_manager_id), run)
    locked, lines = await _lock_lines(ctx, run_id, None)
    now = datetime.now(UTC)
    before, reason = await store.get_bare(ctx.tx, ctx.plan_manager_id, run_id), unset_to_none(body.reason)
    by = ctx.actor.display_name
    await store.set_cancelled(ctx.tx, ctx.plan_manager_id, run_id, now, by, reason)
    await store.set_payments_state(ctx.tx, ctx.plan_manager_id, run_id, now, "cancelled")
    await store.close_lines(ctx.tx, ctx.plan_manager_id, run_id, None)
    moves = [
        LineMove(each.invoice_id, each.line_id, None, {"open_payment_run": None, "has_payment": each.other_open > 0})
        for each in lines
    ]
    await move_lines(ctx, locked, moves, LINE_EVENT)
    return await _finish(ctx, "payment_run.cancelled", run_id, before)


def _require_reason(body: PaymentRunCancel) -> None:
    missing = {
        "not_sent_to_bank": "must be true to cancel a run whose file was downloaded",
        "reason": "is required to cancel a run whose file was downloaded",
    }
    is_given = {"not_sent_to_bank": body.not_sent_to_bank is True, "reason": body.reason is not UNSET}
    errors = [FieldError(name, text, "required") for name, text in missing.items() if not is_given[name]]
    if errors:
        raise ValidationError(*errors)


async def record_return(ctx: WriteContext, run_id: UUID, payment_id: UUID, body: PaymentReturn) -> Payment:
    """The bank has sent a payment back: its lines are due again, and its payee's bank details need approval again.

    Of a line, only what the agency still pays for is due. Raises NotFound, ValidationError, and DomainError
    `invalid_transition`, also for a second time.
    """
    found = await store.select_for_update(ctx.tx, ctx.plan_manager_id, run_id)
    run = or_404(found, ErrorResource("payment_run", str(run_id)))
    payment = or_404(await store.get_payment(ctx.tx, ctx.plan_manager_id, run_id, payment_id))
    if payment.state != "paid":
        detail = f"The payment is {_STATES[payment.state]}, so it can't be returned."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("payment", str(payment_id)))
    if run.paid_on and body.date < run.paid_on:
        message = f"must not be before {format_date(run.paid_on)}, the day on which the bank has paid"
        raise ValidationError(FieldError("date", message, "too_small"))
    ctx.require_not_future("date", body.date)
    await require_approval_again(ctx, Payee(payment.payee.kind, payment.payee.id))
    locked, lines = await _lock_lines(ctx, run_id, payment_id)
    now = datetime.now(UTC)
    before = await store.get_bare(ctx.tx, ctx.plan_manager_id, run_id)
    sent_back = (now, body.date, unset_to_none(body.reference), body.reason, ctx.actor.display_name)
    await store.set_returned(ctx.tx, ctx.plan_manager_id, run_id, payment_id, *sent_back)
    await store.close_lines(ctx.tx, ctx.plan_manager_id, run_id, payment_id)
    await store.add_returned(ctx.tx, ctx.plan_manager_id, run_id, now)
    found = await store.list_of_invoices(ctx.tx, ctx.plan_manager_id, [*locked])
    left = {(each.invoice_id, each.line_id): each for each in found}
    moves = [_returned(each, left[each.invoice_id, each.line_id]) for each in lines]
    await move_lines(ctx, locked, moves, LINE_EVENT)
    await _finish(ctx, "payment_run.payment_returned", run_id, before)
    return or_404(await store.get_payment(ctx.tx, ctx.plan_manager_id, run_id, payment_id))


def _returned(line: RunLine, left: PayableLine) -> LineMove:
    """The move of a line of a returned payment. `left`: the line without that payment.

    Nothing is due if the agency has reversed as much.
    """
    has_payment = paid_out(left) > 0
    cause: Cause = "return_payment" if amounts_due(left) else "return_rest" if has_payment else "return_all"
    values = {"has_payment": has_payment, "payment_ref": line.other_ref}
    return LineMove(line.invoice_id, line.line_id, cause, values)


_STATES = {"draft": "a draft", "paid": "paid", "returned": "returned already", "cancelled": "cancelled"}


async def _select_draft(ctx: WriteContext, run_id: UUID, verb: str) -> StoredRun:
    """A draft, locked until the transaction ends. Raises NotFound, and DomainError `invalid_transition`."""
    run = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, run_id))
    if run.state != "draft":
        detail = f"The payment run is {_STATES[run.state]}, so it can't be {verb}."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("payment_run", str(run_id)))
    return run


async def _lock_lines(
    ctx: WriteContext, run_id: UUID, payment_id: UUID | None
) -> tuple[dict[UUID, Invoice], list[RunLine]]:
    """The locked invoices of a run, or of one of its payments, and what it pays of their lines."""
    ids = await store.list_line_ids(ctx.tx, ctx.plan_manager_id, run_id, payment_id)
    locked = await lock(ctx, {each.invoice_id for each in ids})
    return locked, await store.list_lines(ctx.tx, ctx.plan_manager_id, run_id, payment_id)


async def _finish(ctx: WriteContext, event_type: str, run_id: UUID, before: PaymentRun | None) -> PaymentRun:
    """Record the event of a change, and return the run with its lists."""
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, run_id))
    await record_event(ctx, event_type, before, replace(after, warnings=UNSET, left_out=UNSET))
    return after
