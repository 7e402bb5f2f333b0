"""The content of an event for readers: the name of its record, and the changed fields with their labels and values."""

import json
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import Raw

from plankeeper.console.components.labels import TECHNICAL_FIELDS, field_label, format_field, humanize, program_name
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.context import ActorKind
from plankeeper.core.formatting import format_date, format_money, truncate
from plankeeper.events.event_types import NEVER_SENT, VERBS
from plankeeper.events.schemas import Event, HistoryEvent
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.resource import event_key
from plankeeper.resources.trash.store import TrashEntry

NAME_FIELDS = ("name", "entity_name", "note_type", "invoice_number", "number", "user_name", "url", "email", "month")
# Pages of records, by the ids of their keys.
RECORD_PATHS = {
    "participant": "/participants/{}",
    "provider": "/providers/{}",
    "invoice": "/invoices/{}",
    "note": "/notes/{}/edit",
    "note_type": "/note-types/{}/edit",
    "account_manager": "/account-managers/{}/edit",
    "plan": "/participants/{}/plans/{}/edit",
    "statement": "/participants/{}/statements/{}",
    "team_member": "/participants/{}/team-members/{}",
    "webhook_endpoint": "/settings/webhooks/{}",
    "claim_batch": "/claims/{}",
    "payment_run": "/payments/{}",
    "statement_run": "/statements/{}",
}


class FieldChange(NamedTuple):
    """A field of a record: null if it did not exist before, or does not exist after."""

    name: str
    label: str
    before: str | None
    after: str | None


def fields_of(raw: Raw | None) -> dict[str, Any]:
    """The fields of `data` or `previous` of an event; numbers keep their digits."""
    return {} if raw is None else json.loads(bytes(raw), parse_float=Decimal) or {}


def field_changes(event: Event, zone: ZoneInfo) -> list[FieldChange]:
    """The changed fields of an update; for other events, all fields of the record."""
    after, before = fields_of(event.data), fields_of(event.previous)
    names = before or after
    return [
        FieldChange(
            name,
            field_label(name),
            format_field(name, before[name], zone) if before else None,
            format_field(name, after.get(name), zone) if after else None,
        )
        for name in names
    ]


def without_technical(changes: list[FieldChange]) -> list[FieldChange]:
    """The changes without ids and other fields that only programs need."""
    return [each for each in changes if each.name not in TECHNICAL_FIELDS]


def resource_name(event: Event) -> str:
    """The name of the event's record after the change; empty if it has none."""
    fields = fields_of(event.previous) | fields_of(event.data)
    if event.resource.kind == "export":
        return humanize(str(fields.get("what") or "").replace("-", "_")).replace("Access records", "Access log")
    if event.resource.kind == "claim_batch":
        return str(fields.get("number") or "")
    if event.resource.kind == "plan":
        days = [fields[name] for name in ("start_date", "end_date") if fields.get(name)]
        return " to ".join(format_date(date.fromisoformat(each)) for each in days)
    if event.resource.kind == "note":
        return truncate(" ".join((fields.get("text") or "").split()), MAX_NOTE_LENGTH)
    if event.resource.kind == "statement":
        return str(fields.get("month") or "")
    full_name = " ".join(filter(None, (fields.get("first_name"), fields.get("last_name"))))
    return full_name or next((str(fields[name]) for name in NAME_FIELDS if fields.get(name)), "")


def resource_url(event: Event) -> str | None:
    """The path of the record's page; null if it has none or was deleted."""
    return None if event.data is None else record_path(event.resource.kind, event_key(event))


def record_path(kind: str, key: str) -> str | None:
    """The path of a record's page; null if it has none."""
    return PREFIX + RECORD_PATHS[kind].format(*quote(key).split("/")) if kind in RECORD_PATHS else None


def truncate_change(change: FieldChange, max_length: int) -> FieldChange:
    """The change with its values cut to a length."""
    before, after = (each and truncate(each, max_length) for each in (change.before, change.after))
    return change._replace(before=before, after=after)


TRASH_URL = f"{PREFIX}/trash"


def retention(request: PageRequest) -> dict[str, int | None]:
    return {"retention_days": request.settings.trash_retention}


def trash_path(entry: TrashEntry) -> str:
    """The page from which an entry can be restored."""
    return f"{TRASH_URL}/{entry.id}"


VIEW_TYPES = frozenset(f"invoice_view_session.{verb}" for verb in VERBS["invoice_view_session"])
MAX_NOTE_LENGTH = 80  # of the text of a note as its name
MAX_LABELS = 4  # changed fields that a sentence names
_TITLES = {
    "account.invited": "Person invited",
    "account.invitation_withdrawn": "Invitation withdrawn",
    "account.joined": "Joined the team",
    "account.role_changed": "Role changed",
    "account.account_manager_changed": "Linked account manager changed",
    "account.removed": "Removed from the team",
    "account.renamed": "Own name changed",
    "account.signed_in": "Signed in",
    "account.sign_in_failed": "Sign-in failed",
    "account.session_revoked": "Signed out a device",
    "account.totp_enabled": "Two-factor authentication turned on",
    "account.totp_disabled": "Two-factor authentication turned off",
    "account.recovery_codes_renewed": "Recovery codes renewed",
    "account.password_changed": "Password changed",
    "account.password_reset": "Password reset",
    "account.single_sign_on_linked": "Single sign-on linked",
    "account.single_sign_on_unlinked": "Single sign-on unlinked",
    "claim_batch.downloaded": "File of a claim batch downloaded",
    "export.created": "Data downloaded",
    "invoice.approval_requested": "Invoice sent for approval",
    "invoice.created": "Invoice received",
    "invoice.document_added": "Document added",
    "invoice.held": "Invoice put on hold",
    "invoice.line_changed": "Line of an invoice changed",
    "invoice.warning_ignored": "Warning ignored",
    "invoice.warning_restored": "Warning restored",
    "invoice.wont_claim": "Invoice excluded from claims",
    "invoice_view_session.started": "Invoice opened",
    "invoice_view_session.ended": "Invoice closed",
    "payment_run.created": "Payment run made",
    "payment_run.downloaded": "File of a payment run downloaded",
    "payment_run.paid": "Payment run marked as paid",
    "payment_run.payment_returned": "Returned payment recorded",
    "statement.created": "Statement made",
    "statement.sent": "Statement sent",
    "statement_run.started": "Run of statements started",
    "statement_run.ended": "Run of statements ended",
    "statement_run.retried": "Statements of a run tried again",
    "participant.erased": "Personal data erased",
    "participant.hold_placed": "Legal hold placed",
    "participant.hold_released": "Legal hold released",
    "participant.purged": "Participant deleted permanently",
    "provider.purged": "Provider deleted permanently",
    "team_member.deleted": "Team member removed",
}
# The actions on invoices, with the field of their reason.
_INVOICE_ACTIONS = {
    "invoice.held": "hold_reason",
    "invoice.released": "",
    "invoice.cancelled": "closing_reason",
    "invoice.reopened": "",
    "invoice.wont_claim": "closing_reason",
    "invoice.approval_requested": "",
    "invoice.approval_links_revoked": "",
    "invoice.approved": "approval_reason",
    "invoice.rejected": "approval_reason",
}
_VERBS = {"created": "added", "updated": "changed"}
_CREATED_BY_PEOPLE = ("api_key", "webhook_endpoint", "plan_manager", "claim_batch", "payment_run")


def event_title(type_: str) -> str:
    """The name of a type of event: `Participant changed`."""
    if type_ in _TITLES:
        return _TITLES[type_]
    kind, _, verb = type_.partition(".")
    return humanize(f"{kind} {verb if kind in _CREATED_BY_PEOPLE else _VERBS.get(verb, verb)}")


def actor_name(name: str | None, kind: ActorKind) -> str:
    """The name of an event's actor."""
    return program_name(name or "") if kind == "system" else name or humanize(kind)


def type_groups() -> dict[str, dict[str, str]]:
    """The titles of all types by the kind of the record, for a select. `participant.*` stands for all of a kind."""
    groups = dict[str, dict[str, str]]()
    for kind, verbs in VERBS.items():
        types = {f"{kind}.{verb}": event_title(f"{kind}.{verb}") for verb in verbs}
        groups[humanize(kind)] = ({f"{kind}.*": f"{humanize(kind)}: all"} if len(types) > 1 else {}) | types
    return groups


def describe_event(event: Event, zone: ZoneInfo) -> str:
    """A sentence about the change of a record, in the history of a participant, a provider or an invoice."""
    if event.resource.kind in ("plan", "team_member"):
        return _describe_part(event, zone)
    if event.resource.kind in ("note", "statement"):
        return f"{event_title(event.type)}: {resource_name(event)}"
    if event.resource.kind == "invoice":
        return _describe_invoice(event, zone)
    if event.resource.kind == "claim_batch":
        return _describe_claim_batch(event)
    if event.type.endswith(".updated"):
        return f"{list_labels(field_changes(event, zone))} changed"
    return event_title(event.type)


def _describe_part(event: Event, zone: ZoneInfo) -> str:
    subject = f"{humanize(event.resource.kind)} {resource_name(event)}"
    if event.type.endswith(".updated"):
        return f"{subject}: {list_labels(field_changes(event, zone))} changed"
    return f"{subject} {'added' if event.type.endswith('.created') else 'removed'}"


def _describe_claim_batch(event: Event) -> str:
    """The numbers of applied results, and the amount of money that has arrived; otherwise the title."""
    after = fields_of(event.data)
    if results := after.get("results"):
        names = {"paid": "paid", "partially_paid": "paid in part", "rejected": "rejected"}
        text = "Results recorded: " + ", ".join(f"{results[name]:,} {label}" for name, label in names.items())
        if results["held"]:
            text += f"; {results['held']:,} {'invoice' if results['held'] == 1 else 'invoices'} put on hold"
        if count := results["unmatched"]:
            text += f"; {count:,} {'row' if count == 1 else 'rows'} changed nothing"
        return text
    if receipt := after.get("receipt"):
        return f"{format_money(receipt['amount'])} received"
    return event_title(event.type)


def _describe_invoice(event: Event, zone: ZoneInfo) -> str:
    after, before = fields_of(event.data), fields_of(event.previous)
    label = f"Invoice {after.get('invoice_number') or 'without a number'}"
    if event.type == "invoice.created":
        total = after.get("total")
        return f"{label} received" + (f", {format_money(total)}" if total is not None else "")
    if event.type == "invoice.document_added":
        return f"{label}: document added"
    if event.type in _INVOICE_ACTIONS:
        reason = after.get(_INVOICE_ACTIONS[event.type]) or ""
        return f"{label} {event_title(event.type).removeprefix('Invoice ')}" + (f": {reason}" if reason else "")
    states: list[dict[str, Any]] = [each.get("state_management") or {} for each in (before, after)]
    ignored = [set[str](each.get("ignored_errors") or ()) for each in states]
    if "state_management" in before and ignored[0] != ignored[1]:
        added = sorted(ignored[1] - ignored[0]) or sorted(ignored[0] - ignored[1])
        titles = ", ".join(WARNINGS[each].title if each in WARNINGS else each for each in added)
        return f"{label}: warning {'ignored' if ignored[1] - ignored[0] else 'brought back'} ({titles})"
    return f"{label}: {list_labels(field_changes(event, zone))} changed"


def list_labels(changes: Sequence[FieldChange]) -> str:
    """The labels of the changed fields as a list in words."""
    labels = [each.label for each in without_technical(list(changes))] or [each.label for each in changes]
    if len(labels) > MAX_LABELS:
        labels = [*labels[: MAX_LABELS - 1], f"{len(labels) - MAX_LABELS + 1} other fields"]
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1]))) if labels else "Nothing"


class EventGroup(NamedTuple):
    """Events of one type that belong together, in the order of the list; most groups have one."""

    events: Sequence[HistoryEvent]

    @property
    def first(self) -> HistoryEvent:
        return self.events[0]

    @property
    def title(self) -> str:
        """`Participant added`; `50 participants added` for several."""
        title, count = event_title(self.first.type), len(self.events)
        if count == 1:
            return title
        kind = humanize(self.first.resource.kind)
        rest = title.removeprefix(kind)
        plural = f"{kind[:1].lower()}{kind[1:]}s".replace("aPI", "API")
        return f"{count} {plural}{rest}" if rest != title else f"{title} ({count})"


def group_events(events: Sequence[HistoryEvent]) -> list[EventGroup]:
    """Neighbours of one type from the same import or the same request."""
    return [EventGroup(list(group)) for _, group in groupby(events, key=_origin)]


def _origin(event: HistoryEvent) -> tuple[str, UUID | str]:
    return event.type, event.import_id or event.request_id or event.id


ALL = "*"


class EventTypeGroup(NamedTuple):
    """The types of one resource; `pattern` selects all of them, also types of later versions."""

    name: str
    pattern: str
    types: list[str]


def event_type_groups() -> list[EventTypeGroup]:
    """Without the types that no endpoint receives."""
    types = {kind: [f"{kind}.{verb}" for verb in verbs] for kind, verbs in VERBS.items()}
    sent = {kind: [each for each in types_of_kind if each not in NEVER_SENT] for kind, types_of_kind in types.items()}
    return [EventTypeGroup(humanize(kind), f"{kind}.*", each) for kind, each in sent.items() if each]


def simplify_patterns(selected: Sequence[str]) -> list[str]:
    """The patterns without those that others include: `*` includes all, and `participant.*` each type of a participant.

    The order is that of the form. Unknown patterns stay, so that they are rejected.
    """
    if ALL in selected:
        return [ALL]
    groups = event_type_groups()
    known = {each for group in groups for each in (group.pattern, *group.types)}
    kept: list[str] = []
    for group in groups:
        kept += [group.pattern] if group.pattern in selected else [each for each in group.types if each in selected]
    return kept + [each for each in selected if each not in known]
