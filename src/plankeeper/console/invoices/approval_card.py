"""The part of an invoice's page about its approval: who was asked, when, and what they decided."""

from datetime import UTC, datetime
from typing import NamedTuple

from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.invoices.approval_requests import blocking_codes, has_open_line, is_ready
from plankeeper.resources.invoices.approval_schemas import RequestState, RevocationCause, SentLink
from plankeeper.resources.invoices.schemas import Invoice

MAX_LINKS = 6
_REVOKED: dict[RevocationCause, str] = {
    "changed": "No longer works: the invoice was changed",
    "decided": "No longer needed: decided",
    "replaced": "Replaced by a new link",
    "staff": "Revoked",
    "unavailable": "Revoked: nobody may approve any more",
}


class LinkRow(NamedTuple):
    """A link as the page shows it."""

    link: SentLink
    state: str


class ApprovalCard(NamedTuple):
    """`note` says in one sentence why nobody is asked now; it is empty if somebody is."""

    note: str
    links: list[LinkRow]
    people: dict[str, str]  # who may decide, for a select
    decided_by: str
    can_ask: bool
    can_send: bool
    can_revoke: bool
    can_record: bool


async def approval_card(request: PageRequest, invoice: Invoice) -> ApprovalCard:
    if invoice.approval_status == "not_required":  # nobody has been asked
        return ApprovalCard("", [], {}, "", _can_ask(invoice), can_send=False, can_revoke=False, can_record=False)
    place = (request.db, request.plan_manager_id)
    [state] = await approval_store.list_states(*place, [invoice.id])
    links = await approval_store.list_newest_links(*place, invoice.id, MAX_LINKS)
    people = {"": "The participant"}
    if invoice.participant_id:
        name = await approval_store.get_name(*place, invoice.participant_id, None)
        people[""] = f"{name or 'No name'} (participant)"
        members = await approval_store.list_approving_members(*place, invoice.participant_id)
        people |= {str(each.id): each.name or "No name" for each in members}
    is_pending = invoice.approval_status == "pending" and not invoice.is_deleted
    sends_mail = request.settings.smtp_server is not None
    can_send = is_ready(invoice, state) and sends_mail and bool(state.approvers)
    return ApprovalCard(
        note=_note(invoice, state, links, sends_mail=sends_mail) if is_pending else "",
        links=[LinkRow(each, _describe(each)) for each in links],
        people=people,
        decided_by=_decider(invoice, people),
        can_ask=_can_ask(invoice),
        can_send=can_send,
        can_revoke=any(_is_open(each) for each in links),
        can_record=is_pending,
    )


def _can_ask(invoice: Invoice) -> bool:
    """Whether an answer could still matter."""
    is_open = (invoice.claim_status == "on_hold" or has_open_line(invoice)) and not invoice.wont_claim
    return invoice.approval_status in ("not_required", "rejected") and is_open and not invoice.is_deleted


def _note(invoice: Invoice, state: RequestState, links: list[SentLink], *, sends_mail: bool) -> str:
    if not sends_mail:
        return "This server sends no mail, so nobody is asked. Ask them yourself, and record the decision."
    if not state.approvers:
        return "Nobody is asked: no one who may approve has an email. Ask them yourself, and record the decision."
    if blocking_codes(invoice, state):
        return "People are asked once no open warning blocks claims."
    if not is_ready(invoice, state):
        return "People are asked once the invoice waits for nothing else."
    return "" if links else "Nobody has been asked yet."


def _is_open(link: SentLink) -> bool:
    has_expired = link.expires_at is not None and link.expires_at <= datetime.now(UTC)
    return link.revoked_at is None and link.used_at is None and not has_expired and not link.has_other_email


def _describe(link: SentLink) -> str:
    if link.used_at:
        return "Used to decide"
    if link.revoked_because:
        return _REVOKED[link.revoked_because]
    if link.sent_at is None:
        return "Waiting to be mailed"
    if link.has_other_email:
        return "No longer works: the email was changed"
    return "" if _is_open(link) else "Expired without an answer"


def _decider(invoice: Invoice, people: dict[str, str]) -> str:
    """Who has decided."""
    if invoice.approval_decided_by == "automatic":
        return "Nobody: approved automatically"
    if invoice.approval_decided_by == "team_member":
        return people.get(str(invoice.approval_team_member_id)) or "A team member"
    return people[""]
