"""All types of events, and the patterns that select them."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec
from msgspec import Raw

from plankeeper.core.errors import ErrorLocation, FieldError, ValidationError
from plankeeper.core.fields import component
from plankeeper.events.schemas import Event

# The verbs of each kind of resource. docs/api/events.md explains them.
VERBS = {
    "account": (
        "invited",
        "invitation_withdrawn",
        "joined",
        "role_changed",
        "account_manager_changed",
        "removed",
        "renamed",
        "signed_in",
        "sign_in_failed",
        "locked",
        "session_revoked",
        "totp_enabled",
        "totp_disabled",
        "recovery_codes_renewed",
        "password_changed",
        "password_reset",
        "single_sign_on_linked",
        "single_sign_on_unlinked",
    ),
    "account_manager": ("created", "updated"),
    "api_key": ("created", "rotated", "expiring", "revoked", "plan_manager_removed"),
    "bank_details": ("proposed", "approved", "rejected"),
    "claim_batch": ("created", "downloaded", "submitted", "results_applied", "receipt_recorded", "cancelled"),
    "exit_reason": ("created", "updated", "deleted"),
    "export": ("created",),
    "invoice": (
        "created",
        "updated",
        "assigned",
        "held",
        "released",
        "cancelled",
        "reopened",
        "wont_claim",
        "approval_requested",
        "approval_links_revoked",
        "approved",
        "rejected",
        "line_changed",
        "claimed_elsewhere",
        "adjusted",
        "document_added",
        "warning_ignored",
        "warning_restored",
    ),
    "invoice_view_session": ("started", "ended"),
    "note": ("created", "updated", "deleted"),
    "note_type": ("created", "updated", "deleted"),
    "participant": ("created", "updated", "deleted", "restored", "purged", "erased", "hold_placed", "hold_released"),
    "payment_run": ("created", "downloaded", "paid", "payment_returned", "cancelled"),
    "plan": ("created", "updated", "deleted"),
    "plan_manager": ("created", "updated", "restore_confirmed"),
    "provider": ("created", "updated", "deleted", "restored", "purged"),
    "single_sign_on_provider": ("created", "deleted"),
    "statement": ("created", "sent"),
    "statement_run": ("started", "ended", "retried"),
    "team_member": ("created", "updated", "deleted"),
    "webhook_delivery": ("retried",),
    "webhook_endpoint": (
        "created",
        "updated",
        "deleted",
        "secret_rotated",
        "tested",
        "replayed",
        "disabled",
    ),
}
EVENT_TYPES = frozenset(f"{kind}.{verb}" for kind, verbs in VERBS.items() for verb in verbs)  # asked for each event
EVENT_TYPE = component("EventType", "A kind of resource and what happened to it.", sorted(EVENT_TYPES))
# No endpoint receives these: a plan manager has none when it is created, and the others are about one endpoint.
NEVER_SENT = frozenset({"plan_manager.created", "webhook_delivery.retried", "webhook_endpoint.replayed"})
SENT_TYPES = sorted(EVENT_TYPES - NEVER_SENT)


def _patterns(types: Iterable[str]) -> tuple[str, ...]:
    return ("*", *sorted({f"{each.partition('.')[0]}.*" for each in types}), *sorted(types))


EVENT_TYPE_PATTERNS = _patterns(EVENT_TYPES)
SENT_PATTERNS = _patterns(SENT_TYPES)


def find_unknown_types(
    selected: Iterable[tuple[str, str]],
    allowed: Sequence[str] = EVENT_TYPE_PATTERNS,
    location: ErrorLocation = "body",
) -> list[FieldError]:
    """The errors of other types or patterns. Each type comes with its field: `event_types[1]`."""
    return [
        FieldError(field, _message(each, allowed), "not_allowed", location, [*allowed])
        for field, each in selected
        if each not in allowed
    ]


def require_event_types(
    selected: Iterable[tuple[str, str]],
    allowed: Sequence[str] = EVENT_TYPE_PATTERNS,
    location: ErrorLocation = "body",
) -> None:
    """Raise a ValidationError with the errors of `find_unknown_types`."""
    if errors := find_unknown_types(selected, allowed, location):
        raise ValidationError(*errors)


def _message(pattern: str, allowed: Sequence[str]) -> str:
    is_never_sent = pattern in EVENT_TYPE_PATTERNS and pattern not in SENT_PATTERNS
    return "is never sent to webhook endpoints" if is_never_sent else unknown_type_message(pattern, allowed)


def unknown_type_message(pattern: str, allowed: Sequence[str] = EVENT_TYPE_PATTERNS) -> str:
    similar = get_close_matches(pattern, allowed, n=1)
    suggestion = f"; did you mean {similar[0]}?" if similar else ": expected for example participant.created"
    return f"{pattern[:100]!r} is not an event type{suggestion}"


def matching_event_types(patterns: Sequence[str]) -> list[str]:
    """The types that `*`, `participant.*` and exact types select."""
    return [each for each in EVENT_TYPES if not {"*", each, f"{each.partition('.')[0]}.*"}.isdisjoint(patterns)]


_CONSOLE_FIELDS = ("address", "user_agent")


def redact(event: Event) -> Event:
    """The event without the client address and the browser of an account."""
    if event.resource.kind == "account":
        event.data, event.previous = redact_data(event.data), redact_data(event.previous)
    return event


def redact_data(data: Raw | None) -> Raw | None:
    """The data of an event of an account without the client address and the browser."""
    if data is None:
        return None
    fields = msgspec.json.decode(data, type=dict[str, Raw])
    return Raw(msgspec.json.encode({name: each for name, each in fields.items() if name not in _CONSOLE_FIELDS}))
