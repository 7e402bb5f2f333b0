"""The approval of invoices: requests by staff, and decisions by link, through the API or recorded by staff."""

from datetime import UTC, datetime
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from plankeeper.access.tokens import hash_token
from plankeeper.core.context import Actor, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor, Transaction
from plankeeper.events.recorder import record_event
from plankeeper.resources.invoices import approval_store, store
from plankeeper.resources.invoices.approval_requests import (
    Asked,
    ask_again,
    content_hash,
    is_ready,
    read_requests,
    update_requests,
)
from plankeeper.resources.invoices.approval_schemas import OpenedLink, RequestState
from plankeeper.resources.invoices.changes import Draft, to_line_rows, to_row, to_state
from plankeeper.resources.invoices.schemas import ApprovalDecider, Invoice
from plankeeper.resources.invoices.service import save_draft
from plankeeper.resources.invoices.states import ApprovalAction, act_on_invoice

Decision = Literal["approve", "reject"]
BY_LINK = Actor("system", None, "approval link")
_EVENTS = {
    "approve": "invoice.approved",
    "reject": "invoice.rejected",
    "request_approval": "invoice.approval_requested",
}
_HEX_DIGITS = 32  # of the plan manager's id, with which a link's token begins


async def request_approval(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """Ask for the approval of an invoice that requires none so far, or that was rejected.

    Raises NotFound, and DomainError `invalid_transition`.
    """
    return await _act(ctx, invoice_id, "request_approval")


async def decide(
    ctx: WriteContext, invoice_id: UUID, decision: Decision, team_member_id: UUID | None, reason: str | None
) -> Invoice:
    """Record a decision of the participant, or of a team member.

    Raises NotFound, ValidationError for a member who may not approve, and DomainError `invalid_transition`.
    """
    by: ApprovalDecider = "team_member" if team_member_id else "participant"
    return await _act(ctx, invoice_id, decision, (by, team_member_id, reason))


async def approve_automatically(ctx: WriteContext, invoice_id: UUID, reason: str) -> Invoice:
    """Approve an invoice that nobody has decided about."""
    return await _act(ctx, invoice_id, "approve", ("automatic", None, reason))


async def _act(
    ctx: WriteContext,
    invoice_id: UUID,
    action: ApprovalAction,
    decision: tuple[ApprovalDecider | None, UUID | None, str | None] = (None, None, None),
) -> Invoice:
    before = or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, invoice_id))
    by, team_member_id, reason = decision
    if team_member_id:
        await _require_approver(ctx, before, team_member_id)
    row, lines = to_row(before), to_line_rows(before)
    state = act_on_invoice(to_state(row, lines), action)
    row = replace(
        row,
        approval_status=state.approval_status,
        approval_decided_at=datetime.now(UTC) if by else None,
        approval_decided_by=by,
        approval_team_member_id=team_member_id,
        approval_reason=reason,
    )
    return await save_draft(ctx, Draft(before, row, lines, [], event_type=_EVENTS[action]))


async def _require_approver(ctx: WriteContext, invoice: Invoice, member_id: UUID) -> None:
    members = []
    if invoice.participant_id:
        members = await approval_store.list_approving_members(
            ctx.tx.reader, ctx.plan_manager_id, invoice.participant_id
        )
    if member_id not in {each.id for each in members}:
        message = "must be the id of a team member of the invoice's participant with the permission approve_invoices"
        raise ValidationError(FieldError("team_member_id", message, "not_found"))


# What staff do with the links


async def send_again(ctx: WriteContext, invoice_id: UUID) -> Asked:
    """Mail new links for an invoice that waits for approval, in place of earlier ones.

    Raises NotFound, and DomainError `invalid_transition` for an invoice that waits for something else.
    """
    [(invoice, state)] = await _lock(ctx, invoice_id)
    if not is_ready(invoice, state):
        detail = "The invoice waits for something else than approval, so nobody can be asked."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("invoice", str(invoice_id)))
    asked = await ask_again(ctx, invoice, state)
    if asked.people:
        await record_event(ctx, "invoice.approval_requested", None, invoice)
    return asked


async def revoke(ctx: WriteContext, invoice_id: UUID) -> None:
    """Revoke the open links of an invoice, if there are any. It waits for approval as before. Raises NotFound."""
    [(invoice, state)] = await _lock(ctx, invoice_id)
    if state.has_open_links:
        await approval_store.revoke_links(ctx.tx, ctx.plan_manager_id, [invoice_id], "staff", datetime.now(UTC))
        await record_event(ctx, "invoice.approval_links_revoked", None, invoice)


async def _lock(ctx: WriteContext, invoice_id: UUID) -> list[tuple[Invoice, RequestState]]:
    or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id]) or None)
    return await read_requests(ctx, [invoice_id])


# Links

LinkState = Literal["open", "decided", "changed"]


class LinkView(NamedTuple):
    """An opened link, and its invoice. `decided_by` is the name of the person who has decided, if it is known."""

    state: LinkState
    plan_manager_id: UUID
    link: OpenedLink
    invoice: Invoice
    decided_by: str | None


def join_token(plan_manager_id: UUID, secret: str) -> str:
    """The token of a link: it names the plan manager, so that its row is found on one node."""
    return f"{plan_manager_id.hex}{secret}"


def split_token(token: str) -> tuple[UUID, bytes] | None:
    """The plan manager, and the hash of the secret; None for a text that can't be a token."""
    try:
        return UUID(hex=token[:_HEX_DIGITS]), hash_token(token[_HEX_DIGITS:])
    except ValueError:
        return None


async def open_link(db: Executor, token: str) -> LinkView | None:
    """The link with a token and its state; None if it is unknown, has expired or was revoked.

    The link of somebody else's decision is `decided`, and that of an invoice that was changed since is `changed`.
    """
    parts = split_token(token)
    link = await approval_store.find_link(db, *parts, datetime.now(UTC)) if parts else None
    if parts is None or link is None:
        return None
    invoice = await store.get(db, parts[0], link.invoice_id)
    if invoice is None or invoice.is_deleted or invoice.participant_id != link.participant_id:
        return None
    state = _state_of(link, invoice)
    if state is None:
        return None
    name = None
    if invoice.approval_decided_by in ("participant", "team_member"):
        name = await approval_store.get_name(db, parts[0], link.participant_id, invoice.approval_team_member_id)
    return LinkView(state, parts[0], link, invoice, name)


def _state_of(link: OpenedLink, invoice: Invoice) -> LinkState | None:
    is_same = link.content_hash == content_hash(invoice)
    if link.used_at or link.revoked_because == "decided":
        return "decided" if invoice.approval_decided_at and is_same else None
    if link.revoked_because == "changed" or (link.revoked_at is None and not is_same):
        return "changed"
    if link.revoked_at:
        return None
    if invoice.approval_status == "pending":
        return "open"
    return "decided" if invoice.approval_decided_at else None


async def decide_by_link(
    tx: Transaction, settings: Settings, token: str, decision: Decision, reason: str | None, request_id: str | None
) -> LinkView | None:
    """Decide with a link. Returns the link as it was when the decision came: only an open one decides.

    Raises DomainError `invalid_transition` if the invoice can't be decided about.
    """
    seen = await open_link(tx, token)
    if seen is None:
        return None
    # First the invoice, then its links, as all other writes do.
    await store.select_for_update(tx, seen.plan_manager_id, [seen.invoice.id])
    view = await open_link(tx, token)
    if view is None or view.state == "decided":
        return view
    ctx = WriteContext(tx, view.plan_manager_id, settings, BY_LINK, request_id)
    if view.state == "changed":
        await update_requests(ctx, [view.invoice.id], creates=False)
        return view
    if not await approval_store.use_link(tx, view.plan_manager_id, view.invoice.id, view.link.id, datetime.now(UTC)):
        return None
    await decide(ctx, view.invoice.id, decision, view.link.team_member_id, reason)
    return view
