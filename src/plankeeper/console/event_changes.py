"""The content of an event for readers: the name of its record, and the changed fields with their labels and values."""

import json
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote
from zoneinfo import ZoneInfo

from msgspec import Raw

from plankeeper.console.labels import field_label, humanize
from plankeeper.console.record_values import TECHNICAL_FIELDS, format_field
from plankeeper.console.routing import PREFIX
from plankeeper.events.schemas import Event
from plankeeper.resources.resource import event_key

NAME_FIELDS = ("name", "entity_name", "note_type", "invoice_number", "user_name", "url", "email")
# Pages of records, by the ids of their keys.
RECORD_PATHS = {
    "participant": "/participants/{}",
    "provider": "/providers/{}",
    "invoice": "/invoices/{}",
    "note_type": "/note-types/{}/edit",
    "account_manager": "/account-managers/{}/edit",
    "team_member": "/participants/{}/team-members/{}",
    "webhook_endpoint": "/settings/webhooks/{}",
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


def resource_name(event: Event, *, before_change: bool = False) -> str:
    """The name of the event's record, after the change or before it; empty if it has none."""
    after, before = fields_of(event.data), fields_of(event.previous)
    fields = after | before if before_change else before | after
    if event.resource.kind == "export":
        return humanize(str(fields.get("what") or "").replace("-", "_")).replace("Access records", "Access log")
    full_name = " ".join(filter(None, (fields.get("first_name"), fields.get("last_name"))))
    return full_name or next((str(fields[name]) for name in NAME_FIELDS if fields.get(name)), "")


def resource_url(event: Event) -> str | None:
    """The path of the record's page; null if it has none or was deleted."""
    return None if event.data is None else record_path(event.resource.kind, event_key(event))


def record_path(kind: str, key: str) -> str | None:
    """The path of a record's page; null if it has none."""
    return PREFIX + RECORD_PATHS[kind].format(*quote(key).split("/")) if kind in RECORD_PATHS else None


def truncate(text: str | None, max_length: int) -> str | None:
    return text if text is None or len(text) <= max_length else f"{text[:max_length]}…"
