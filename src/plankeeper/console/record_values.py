"""The fields of a record as text for readers, by name."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast
from zoneinfo import ZoneInfo

from plankeeper.console.labels import humanize, program_name
from plankeeper.core.formatting import (
    format_abn,
    format_date,
    format_datetime,
    format_money,
    format_ndis_number,
    format_phone,
)
from plankeeper.resources.invoices.warnings import WARNINGS

NOT_SET = "not set"
# Ids and other fields that only programs need: pages show them under "Technical details".
TECHNICAL_FIELDS = (
    *("id", "user_id", "pm_profile_id", "participant_id", "plan_manager_id", "plan_manager", "pm_provider_id"),
    *("plan_managers", "original_id", "created_by_account_id"),
    *("account_id", "invoice_id", "s3_key", "email_message_id", "is_duplicate", "errors", "is_internal"),
)
_DATE_FIELDS = ("date_of_birth", "date_ceased")
_STATUS_FIELDS = ("claim_status", "approval_status", "service_region_id")
_PRIORITIES = {1: "Primary contact", 2: "Secondary contact"}
_OBJECT_LABELS = {"errors": "Warnings", "ignored_errors": "Ignored"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_PAYLOADS = {"thin": "Event and resource ID only", "full": "Full resource"}  # of webhooks
_TEXT_FORMATS: Mapping[str, Callable[[str], str]] = {
    "created_by": program_name,
    "payload": lambda text: _PAYLOADS.get(text, text),
    "participant_number": format_ndis_number,
    "abn": format_abn,
    "phone_number": format_phone,
    "secondary_phone_number": format_phone,
    "primary_phone_number": format_phone,
}


def format_field(name: str, value: Any, zone: ZoneInfo) -> str:
    """The value of a field of a record, as it is in the JSON of an event."""
    if value is None or value in ("", [], {}):
        return NOT_SET
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _format_text(name, value, zone)
    if isinstance(value, int | Decimal):
        return _format_number(name, value)
    if isinstance(value, dict):
        return _format_object(cast("dict[str, Any]", value), zone) or NOT_SET
    return _format_list(name, cast("list[Any]", value))


def _format_text(name: str, text: str, zone: ZoneInfo) -> str:
    try:
        if (name.endswith("_date") or name in _DATE_FIELDS) and _DATE.fullmatch(text):
            return format_date(date.fromisoformat(text))
        if _TIMESTAMP.fullmatch(text):
            return format_datetime(datetime.fromisoformat(text), zone)
    except ValueError:  # a day that does not exist in its month
        return text
    if name in _STATUS_FIELDS:
        return humanize(text)
    if name in ("total", "tax", "subtotal") and re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,10})?", text):
        return format_money(Decimal(text))
    return _TEXT_FORMATS[name](text) if name in _TEXT_FORMATS else text


def _format_number(name: str, value: Decimal | int) -> str:
    if name == "contact_priority":
        return _PRIORITIES.get(int(value), str(value))
    return format_money(Decimal(value)) if name in ("total", "tax", "subtotal") else str(value)


def _format_object(value: dict[str, Any], zone: ZoneInfo) -> str:
    """A reference to another record by its name; the fields of any other object."""
    if set(value) <= {"id", "name"}:
        return str(value.get("name") or value.get("id") or NOT_SET)
    parts = [(each, format_field(each, inner, zone)) for each, inner in value.items()]
    return "\n".join(f"{_OBJECT_LABELS.get(each) or humanize(each)}: {text}" for each, text in parts if text != NOT_SET)


def _format_list(name: str, items: list[Any]) -> str:
    if name == "line_items":
        return "\n".join(_format_line(number, each) for number, each in enumerate(items, 1))
    texts = [_item_text(cast("dict[str, Any]", each)) if isinstance(each, dict) else str(each) for each in items]
    if name in ("errors", "ignored_errors"):
        return ", ".join(WARNINGS[each].title if each in WARNINGS else each for each in texts)
    return ", ".join(humanize(each) if name == "permissions" else each for each in texts)


def _item_text(item: dict[str, Any]) -> str:
    return str(item.get("label") or item.get("name") or json.dumps(item, ensure_ascii=False, default=str))


def _format_line(number: int, line: dict[str, Any]) -> str:
    """A line of an invoice in one line of text."""
    parts = [line.get("description"), line.get("service_item_number")]
    if line.get("quantity") is not None and line.get("unit_price") is not None:
        parts.append(f"{line['quantity']} × {_money(line['unit_price'])}")
    if line.get("total_price") is not None:
        parts.append(_money(line["total_price"]))
    parts += [humanize(line["claim_status"]) if line.get("claim_status") else None]
    parts += [line.get(name) for name in ("claim_batch_ref", "claim_number", "payment_ref")]
    parts += ["deleted" if line.get("is_deleted") else None]
    return f"{number}. " + " · ".join(str(each) for each in parts if each)


def _money(value: Any) -> str:
    return format_money(Decimal(str(value)))
