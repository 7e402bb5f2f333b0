"""Sends a remittance advice to each payee with an email, once its run is marked as paid."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.formatting import format_abn, format_date, single_line
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail import store as mail_store
from plankeeper.mail.client import MailError
from plankeeper.mail.messages import AddressedText
from plankeeper.mail.store import MailWriters
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.approval_mails import describe_amount, describe_days, describe_service, visible_lines
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.payments import remittance_store
from plankeeper.resources.payments.remittance import (
    RemittanceAdvice,
    RemittanceInvoice,
    RemittanceLine,
    remittance_pdf,
    remittance_text,
)
from plankeeper.resources.payments.schemas import PaymentRun

log = logging.getLogger("plankeeper")

NOTHING = Decimal(0)
PAID_STATES = ("payment_ready", "partially_ready", "partially_paid", "paid")


class RemittanceMail(Struct, tag_field="kind", tag="remittance"):
    """The mail about a payment."""

    plan_manager_id: UUID
    payment_id: UUID


def sends_mails(settings: Settings) -> bool:
    """Whether a run that is marked as paid now mails remittance advices.

    Without a mail server, nobody would send them: the office prints all.
    """
    return settings.smtp_server is not None


async def are_mailed(ctx: ReadContext, run: PaymentRun) -> bool:
    """Whether payees with an email get the remittance advices of a run by mail, or got them when it was paid."""
    if run.state != "paid":
        return sends_mails(ctx.settings)
    return await remittance_store.were_mailed(ctx.db, ctx.plan_manager_id, or_404(run.id))


async def queue_mails(ctx: WriteContext, run_id: UUID, at: datetime) -> None:
    """Queue a mail for each payment of a run whose payee has an email, with the transaction that marks it as paid."""
    for each in await remittance_store.list_with_email(ctx.tx, ctx.plan_manager_id, run_id):
        await mail_store.insert(ctx.tx, RemittanceMail(ctx.plan_manager_id, each), at)


async def get_advice(db: Executor, plan_manager_id: UUID, payment_id: UUID) -> RemittanceAdvice | None:
    """What the payee of a payment was paid for, or None for an unknown payment."""
    payment = await remittance_store.get_payment(db, plan_manager_id, payment_id)
    if payment is None:
        return None
    lines = await remittance_store.list_lines(db, plan_manager_id, payment_id)
    amounts = defaultdict[UUID, dict[UUID, Decimal]](dict)  # by invoice and line
    for each in lines:
        amounts[each.invoice_id][each.line_id] = amounts[each.invoice_id].get(each.line_id, NOTHING) + each.amount
    ids = sorted({each.invoice_id for each in lines})
    people = {each.invoice_id: each.name for each in await remittance_store.list_people(db, plan_manager_id, ids)}
    invoices = await invoice_store.get_many(db, plan_manager_id, ids)
    return RemittanceAdvice(
        office=payment.office,
        office_abn=format_abn(payment.office_abn) if payment.office_abn else None,
        payee=payment.payee_name,
        reference=payment.reference,
        paid_on=format_date(payment.paid_on) if payment.paid_on else "",
        total=describe_amount(payment.amount),
        account_ending=payment.account_ending,
        invoices=[_describe(each, people.get(each.id) or "A participant", amounts[each.id]) for each in invoices],
    )


def _describe(invoice: Invoice, participant: str, paid: Mapping[UUID, Decimal]) -> RemittanceInvoice:
    lines = visible_lines(invoice)
    total = sum((paid.get(each.id, NOTHING) for each in lines), NOTHING)
    number = single_line(invoice.invoice_number or "without a number", 50)
    described = [_describe_line(each, paid.get(each.id)) for each in lines]
    return RemittanceInvoice(number, participant, describe_amount(total), described)


def _describe_line(line: LineItem, paid: Decimal | None) -> RemittanceLine:
    service = describe_service(line)
    dates = describe_days(line.service_date_from, line.service_date_to)
    remark = describe_state(line, paid)
    return RemittanceLine(service, dates, describe_amount(line.amount), describe_amount(paid or NOTHING), remark)


def describe_state(line: LineItem, paid: Decimal | None) -> str | None:
    """What is waiting, short or rejected, as a sentence; None if the line is paid in full by this payment."""
    short = (line.amount or NOTHING) - (line.paid_amount or NOTHING)
    is_part_paid = line.claim_status in ("partially_paid", "partially_ready") and short > 0
    if line.claim_status == "rejected":
        reason = single_line(line.rejection_reason or "no reason was given", 200)
        remark = f"Rejected by the agency: {reason.rstrip('.')}."
    elif line.claim_status == "pending":
        remark = "The rest waits for the agency." if line.paid_amount else "Waits for the agency."
    elif line.claim_status not in PAID_STATES:
        remark = "Not claimed yet."
    elif is_part_paid:
        remark = f"The agency paid {describe_amount(short)} less.{' The rest is claimed again.' * line.is_rest_waiting}"
    elif paid is None:
        remark = f"Was paid with the reference {line.payment_ref}." if line.payment_ref else "Is paid separately."
    else:
        remark = None
    return remark


async def _write(db: Executor, settings: Settings, content: RemittanceMail, at: datetime) -> AddressedText | None:
    payment = await remittance_store.get_payment(db, content.plan_manager_id, content.payment_id)
    advice = await get_advice(db, content.plan_manager_id, content.payment_id)
    if payment is None or advice is None or payment.email is None:
        return None
    try:
        pdf = await remittance_pdf(ReadContext(db, content.plan_manager_id, settings), advice, at)
    except UnprintableError:  # the text of the mail says the same
        log.warning("a remittance advice is sent without its PDF", extra={"payment": content.payment_id})
        pdf = None
    except DomainError as error:  # too many large documents are being made
        raise MailError(error.detail) from None
    return AddressedText(payment.email, remittance_text(advice, pdf))


WRITERS: MailWriters = {RemittanceMail: _write}
