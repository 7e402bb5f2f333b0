"""Sends a statement with its PDF to the participant and to team members, and records what became of each mail."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plankeeper.core.context import SYSTEM, ReadContext, WriteContext
from plankeeper.core.dates import Month
from plankeeper.core.errors import DomainError
from plankeeper.core.formatting import format_date, format_money, single_line
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.mail import store as mail_store
from plankeeper.mail.client import MailError
from plankeeper.mail.messages import AddressedText, Attachment, Text, short_name
from plankeeper.mail.retry_policy import LEASE, MAIL_LIFETIME
from plankeeper.mail.store import MailOutcomes, MailResult, MailWriters
from plankeeper.resources.statement_runs import store
from plankeeper.resources.statement_runs.rules import DIED, sum_up
from plankeeper.resources.statement_runs.schemas import ItemReason, RecipientState
from plankeeper.resources.statements import service as statements
from plankeeper.resources.statements.schemas import StatementContent

EXPIRED_BATCH = 100
EXPIRED = f"The mail server didn't take the mail within {MAIL_LIFETIME.days} days."


class StatementMail(Struct, tag_field="kind", tag="statement"):
    """The mail of a statement to one recipient of a run."""

    plan_manager_id: UUID
    recipient_id: UUID


async def queue_mail(ctx: WriteContext, recipient_id: UUID, at: datetime) -> None:
    """Queue the mail of a recipient, with the transaction that has it wait."""
    await mail_store.insert(ctx.tx, StatementMail(ctx.plan_manager_id, recipient_id), at)


async def _write(db: Executor, settings: Settings, content: StatementMail, _at: datetime) -> AddressedText | None:
    target = await store.get_mail_target(db, content.plan_manager_id, content.recipient_id)
    if target is None or target.state != "waiting" or target.email is None:
        return None
    ctx = ReadContext(db, content.plan_manager_id, settings)
    statement = await get_content(ctx, target.statement_id)
    if statement is None:
        return None
    try:
        pdf = await statements.statement_pdf(ctx, target.statement_id)
    except UnprintableError as error:
        raise MailError(str(error), is_permanent=True) from None
    except DomainError as error:  # the storage of documents fails
        raise MailError(error.detail) from None
    return AddressedText(target.email, statement_text(statement, pdf))


WRITERS: MailWriters = {StatementMail: _write}


async def get_content(ctx: ReadContext, statement_id: UUID) -> StatementContent | None:
    """What a statement says."""
    found = await store.get_content(ctx.db, ctx.plan_manager_id, statement_id)
    return None if found is None else msgspec.json.decode(found, type=StatementContent)


def statement_text(statement: StatementContent, pdf: bytes) -> Text:
    """The mail with the document. The text is a summary: the document lists each service."""
    month = Month.parse(statement.month).title
    office = short_name(statement.office.name)
    days = f"{format_date(statement.plan_start_date)} to {format_date(statement.plan_end_date)}"
    parts = [
        f"- {single_line(each.name, 100)}: {format_money(each.spent)} spent in {month}, {format_money(each.available)}"
        f" of {format_money(each.amount)} left"
        for each in statement.components
    ]
    contact = " or ".join(filter(None, (statement.office.phone, statement.office.email)))
    body = f"""\
This is the statement of {short_name(statement.participant.name)} for {month}, for the plan from {days}.

{chr(10).join(parts) or "- The plan has no budget in our records."}

The attached document lists each service. If something is wrong, or if you have a question, contact
{office}{f": {contact}" if contact else ""}.

{office}
"""
    name = f"statement-{statement.month}.pdf"
    return Text(f"Statement for {month} from {office}", body, attachments=[Attachment(name, "application/pdf", pdf)])


# What became of a mail


async def _record(tx: Transaction, settings: Settings, content: StatementMail, result: MailResult) -> None:
    """Record the end of a mail: sent, failed, or left out because the person doesn't get it any more."""
    ctx = WriteContext(tx, content.plan_manager_id, settings, SYSTEM)
    target = await store.get_mail_target(tx, content.plan_manager_id, content.recipient_id)
    if target is None:
        return
    if result.error is not None:
        message = f"The mail couldn't be sent: {result.error}."
        cause: ItemReason = "unprintable" if result.error.startswith(("no font", "no PDF")) else "mail_failed"
        await settle(ctx, target.item_id, content.recipient_id, "failed", result.at, cause, message)
        return
    if result.recipient is None:
        reason, message = ("deceased", DIED) if target.has_died else (None, None)
        await settle(ctx, target.item_id, content.recipient_id, "cancelled", result.at, reason, message)
    elif await settle(ctx, target.item_id, content.recipient_id, "sent", result.at):
        await statements.record_sent(ctx, target.statement_id, "mail", result.recipient)


OUTCOMES: MailOutcomes = {StatementMail: _record}


async def settle(
    ctx: WriteContext,
    item_id: UUID,
    recipient_id: UUID,
    state: RecipientState,
    now: datetime,
    reason: ItemReason | None = None,
    message: str | None = None,
) -> bool:
    """End the wait of a mail or a letter, and set the state of its item. False if it doesn't wait any more."""
    if await store.lock_item(ctx.tx, ctx.plan_manager_id, item_id) is None:
        return False
    rows = await store.list_recipients(ctx.tx, ctx.plan_manager_id, [item_id])
    current = next((each for each in rows if each.id == recipient_id), None)
    if current is None or current.state not in ("waiting", "to_print"):
        return False
    after = replace(current, state=state, reason=reason, message=message)
    await store.set_recipient(ctx.tx, ctx.plan_manager_id, after, now)
    outcome = sum_up([after if each.id == recipient_id else each for each in rows])
    await store.set_outcome(ctx.tx, ctx.plan_manager_id, item_id, outcome, now)
    return True


async def fail_expired(db: Database, settings: Settings, now: datetime) -> None:
    """List the mails as failed that the queue has given up."""
    before = now - MAIL_LIFETIME - LEASE - timedelta(minutes=1)
    expired = await store.list_expired(db, before, EXPIRED_BATCH)
    for each in expired:
        async with db.transaction() as tx:
            ctx = WriteContext(tx, each.plan_manager_id, settings, SYSTEM)
            await settle(ctx, each.item_id, each.id, "failed", now, "mail_failed", EXPIRED)
