"""Requests for the approval of invoices: who is asked, when, and by which links.

People are asked as soon as an invoice waits for nothing but their approval, and again when what it bills changes. A
link belongs to that content, so it can't approve anything else.
"""

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.access.policy import MAX_DELAY, login_delay
from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.core.json import to_json
from plankeeper.mail import store as mail_store
from plankeeper.resources.invoices import approval_store, store
from plankeeper.resources.invoices.approval_schemas import NewLink, RequestRow, RequestState, RevocationCause
from plankeeper.resources.invoices.changes import LINE_FIELDS
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import Level, level_of

APPROVED_FIELDS = ("participant_id", "pm_provider_id", "payee", "total", "tax", "subtotal")
FREE_MAILS = 3  # to each person about an invoice in a day; further ones are delayed
MAIL_FIRST_DELAY = 60.0  # seconds; it doubles up to MAX_DELAY
_OPEN = ("new", "flagged", "rejected")
_CLOSED = ("on_hold", "paid", "cancelled")


class ApprovalMail(Struct, tag_field="kind", tag="approval"):
    """The mail with a link to approve an invoice."""

    plan_manager_id: UUID
    invoice_id: UUID
    link_id: UUID


def content_hash(invoice: Invoice) -> str:
    """The SHA-256 of what people approve: the amounts, lines, participant, provider and payee."""
    lines = [each for each in unset_to_none(invoice.line_items) or [] if not each.is_deleted]
    content = [
        [getattr(invoice, name) for name in APPROVED_FIELDS],
        [[getattr(line, name) for name in ("id", *LINE_FIELDS)] for line in lines],
    ]
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def blocking_codes(invoice: Invoice, state: RequestState) -> list[str]:
    """The warnings that block claims and aren't ignored."""
    levels: dict[str, Level] = {each.code: each.level for each in state.levels}
    ignored = invoice.state_management.ignored_errors
    return [
        code for code in invoice.state_management.errors if code not in ignored and level_of(code, levels) == "block"
    ]


def has_open_line(invoice: Invoice) -> bool:
    """Whether an invoice that isn't on hold has a line to claim, also beside lines that were claimed before."""
    if invoice.claim_status in _CLOSED:
        return False
    lines = [each for each in unset_to_none(invoice.line_items) or [] if not each.is_deleted]
    return invoice.claim_status in _OPEN or any(each.claim_status in _OPEN for each in lines)


def is_ready(invoice: Invoice, state: RequestState) -> bool:
    """Whether an invoice that is pending for approval waits for nothing else."""
    return (
        invoice.approval_status == "pending"
        and has_open_line(invoice)
        and not invoice.is_deleted
        and not invoice.wont_claim
        and not blocking_codes(invoice, state)
    )


def _mail_at(state: RequestState, now: datetime) -> datetime:
    """When the next mail about an invoice is sent: later if there were several within a day."""
    delay = min(MAIL_FIRST_DELAY * login_delay(state.recent_requests + 1, FREE_MAILS), MAX_DELAY)
    return max(now, state.last_asked_at + timedelta(seconds=delay)) if state.last_asked_at else now


class Asked(NamedTuple):
    """How many people are mailed, and when."""

    people: int
    at: datetime


class _Changes:
    """What the requests of some invoices need."""

    def __init__(self, ctx: WriteContext) -> None:
        self.now = datetime.now(UTC)
        self.sends_mail = ctx.settings.smtp_server is not None
        self.requests: list[RequestRow] = []
        self.closed: list[UUID] = []
        self.revoked: dict[RevocationCause, list[UUID]] = {}
        self.links: list[NewLink] = []
        self.mails_at: dict[UUID, datetime] = {}

    def revoke(self, cause: RevocationCause, invoice_id: UUID) -> None:
        self.revoked.setdefault(cause, []).append(invoice_id)

    def ask(self, invoice: Invoice, state: RequestState, *, is_reminder: bool = False) -> None:
        """Create a link for each person who may approve the invoice. Without a mail server, nobody can be asked."""
        if invoice.participant_id is None or not self.sends_mail:
            return
        self.mails_at[invoice.id] = _mail_at(state, self.now)
        content = (content_hash(invoice), is_reminder, self.now)
        for each in state.approvers:
            self.links.append(NewLink(invoice.id, uuid7(), invoice.participant_id, each.team_member_id, *content))


async def update_requests(ctx: WriteContext, invoice_ids: Collection[UUID], *, creates: bool) -> None:
    """Bring the requests of written or checked invoices up to date, and mail those who are to decide.

    `creates`: invoices that are pending without a request get one; otherwise they were imported so.
    """
    if not invoice_ids:
        return
    invoices, changes = await read_requests(ctx, invoice_ids), _Changes(ctx)
    for invoice, state in invoices:
        _update_request(changes, invoice, state, creates=creates)
    await _save(ctx, changes)


async def read_requests(ctx: WriteContext, invoice_ids: Collection[UUID]) -> list[tuple[Invoice, RequestState]]:
    """The invoices with their requests."""
    ids = sorted(invoice_ids)
    invoices = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    states = await approval_store.list_states(ctx.tx, ctx.plan_manager_id, ids)
    return [(invoices[each.invoice_id], each) for each in states]


def _update_request(changes: _Changes, invoice: Invoice, state: RequestState, *, creates: bool) -> None:
    if invoice.approval_status != "pending":
        if state.requested_at:
            changes.closed.append(invoice.id)
        if state.has_open_links:
            changes.revoke("decided", invoice.id)
        return
    if state.requested_at is None and not creates:
        return
    hash_, is_asked = content_hash(invoice), state.content_hash is not None
    is_changed = is_asked and state.content_hash != hash_
    if state.has_open_links and (is_changed or not state.approvers):
        changes.revoke("changed" if is_changed else "unavailable", invoice.id)
    request = RequestRow(invoice.id, state.requested_at or changes.now)
    if is_ready(invoice, state) and (is_changed or not is_asked):
        changes.ask(invoice, state)
        changes.requests.append(replace(request, content_hash=hash_, asked_at=changes.now))
    elif is_changed or state.requested_at is None:
        changes.requests.append(request)


async def ask_again(ctx: WriteContext, invoice: Invoice, state: RequestState, *, is_reminder: bool = False) -> Asked:
    """Replace the links of an invoice that is ready by new ones.

    A reminder keeps the time of the request.
    """
    changes = _Changes(ctx)
    changes.revoke("replaced", invoice.id)
    changes.ask(invoice, state, is_reminder=is_reminder)
    asked_at = state.asked_at if is_reminder else changes.now
    reminded_at = changes.now if is_reminder else None
    requested_at = state.requested_at or changes.now
    request = RequestRow(invoice.id, requested_at, content_hash(invoice), asked_at, reminded_at)
    changes.requests.append(request)
    await _save(ctx, changes)
    return Asked(len(changes.links), changes.mails_at.get(invoice.id, changes.now))


async def _save(ctx: WriteContext, changes: _Changes) -> None:
    place = (ctx.tx, ctx.plan_manager_id)
    for cause, invoice_ids in changes.revoked.items():
        await approval_store.revoke_links(*place, invoice_ids, cause, changes.now)
    if changes.closed:
        await approval_store.delete_requests(*place, changes.closed)
    if changes.requests:
        await approval_store.upsert_requests(*place, changes.requests)
    if changes.links:
        await approval_store.insert_links(*place, changes.links)
        await _queue_mails(ctx, changes)


async def _queue_mails(ctx: WriteContext, changes: _Changes) -> None:
    """Insert the mails of links, instead of those that are still waiting, whose links no longer work."""
    await mail_store.delete_approvals(ctx.tx, ctx.plan_manager_id, [*changes.mails_at])
    for each in changes.links:
        mail = ApprovalMail(ctx.plan_manager_id, each.invoice_id, each.id)
        await mail_store.insert(ctx.tx, mail, changes.mails_at[each.invoice_id])
