"""Labels of form fields. Pages show them beside the fields, and error messages name the fields by them."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol, cast
from zoneinfo import ZoneInfo

import tinycss2
import tinycss2.color4

from plankeeper.core.formatting import (
    format_abn,
    format_date,
    format_datetime,
    format_money,
    format_ndis_number,
    format_phone,
)
from plankeeper.resources.invoices.warnings import WARNINGS

# Labels that differ from the humanised field name.
FIELD_LABELS = {
    "abn": "ABN",
    "account_manager_id": "Account manager",
    "approval_required": "Invoices require approval",
    "badge_color": "Badge colour",
    "bank_bsb": "BSB",
    "bsb": "BSB",
    "city": "Suburb",
    "created_by_account_id": "Account ID",
    "date_ceased": "Exit date",
    "deceased_on": "Date of death",
    "entity_name": "Name",
    "event_types": "Events",
    "exit_reason_category": "Exit reason",
    "fee_item_number": "Support item",
    "fee_provider_id": "Your office among the providers",
    "exit_reason_category_id": "Exit reason",
    "exit_reason_subcategory": "Specific exit reason",
    "exit_reason_subcategory_id": "Specific exit reason",
    "gst_code": "GST code",
    "highlight_color": "Highlight colour",
    "id": "ID",
    "is_pace_plan": "PACE plan",
    "lasts": "Expires",
    "line_ids": "Lines",
    "line_items": "Lines",
    "ndis_provider_number": "NDIS provider number",
    "note_type": "Note type",
    "note_type_id": "Note type",
    "onboard_date": "Onboarding date",
    "original_id": "First key ID",
    "overlap": "Old key expires",
    "participant_id": "Participant ID",
    "participant_number": "NDIS number",
    "participant_receives_statements": "Receives statements",
    "phone_number": "Phone",
    "plan_manager_id": "Plan managers",
    "pm_profile_id": "Profile ID",
    "pm_provider_id": "Provider ID",
    "postal_statement": "Statements by post",
    "primary_phone_number": "Phone",
    "provider_id": "Provider ID",
    "reason_for_leaving": "Reason details",
    "q": "Search",
    "resource": "Record type",
    "s3_key": "Document",
    "scope": "Permissions",
    "secondary_phone_number": "Secondary phone",
    "service_region_id": "Service region",
    "since_time": "Time",
    "state_management": "Warnings",
    "url": "URL",
    "wont_claim": "Won’t claim",
}


def field_label(name: str) -> str:
    return FIELD_LABELS.get(name) or re.sub(r"\bid$", "ID", humanize(name))


def humanize(name: str) -> str:
    """The words of an identifier: `API key created` for `api_key.created`."""
    text = (
        name.replace("totp", "two_factor")
        .replace("sign_on", "sign-on")
        .replace(".", " ")
        .replace("_", " ")
        .removesuffix(" ")
    )
    return (text[:1].upper() + text[1:]).replace("Api ", "API ")


def program_name(name: str) -> str:
    """The name of a person or a program; a command has a name in words."""
    if name in ("", "plankeeper"):
        return "Plankeeper"
    if not name.startswith("plankeeper "):
        return name
    return "Sample data" if name.endswith(" --demo") else "Command line"


def error_sentence(name: str, message: str) -> str:
    """The message about a field as a sentence. A message in lower case, or with a value first, continues its label."""
    label = "The form" if name == "form" else field_label(name)
    if message.startswith("at least one"):
        message = message.capitalize()  # it isn't about this field alone
    text = message if message[:1].isupper() else f"{label} {message}"
    return text if text.endswith((".", "?", "!")) else f"{text}."


_FUNCTIONS = ("rgb", "rgba", "hsl", "hsla", "hwb")  # colour spaces that convert to RGB without a colour profile


def parse_color(text: str | None) -> str | None:
    """The colour as `#rrggbb`, or `#rrggbbaa` if translucent; null if the text is not a colour in RGB, HSL or HWB."""
    token: Any = tinycss2.parse_one_component_value(text or "", skip_comments=True)
    if token.type == "function" and token.lower_name not in _FUNCTIONS:
        return None
    color: Any = tinycss2.color4.parse_color(token)
    if color is None or isinstance(color, str):  # a string is `currentcolor`, which has no value of its own
        return None
    channels = [*color.to("srgb").coordinates, *([color.alpha] if color.alpha < 1 else [])]
    return "#" + "".join(f"{round(min(1.0, max(0.0, each)) * 255):02x}" for each in channels)


class HasPersonName(Protocol):
    """A person with an optional first and last name."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...


def sortable_name(person: HasPersonName) -> str | None:
    """`Kavanagh, Róisín`: the last name first, as lists are sorted; null for a person without a name."""
    names = [each.strip() for each in (person.last_name, person.first_name) if each and each.strip()]
    return ", ".join(names) or None


def display_name(person: HasPersonName, default: str | None = None) -> str:
    """A person's first and last name, or else the default."""
    return full_name(person.first_name, person.last_name) or default or "No name"


def full_name(first: str | None, last: str | None) -> str:
    """A first and a last name, either of which may be missing."""
    return " ".join(each.strip() for each in (first, last) if each and each.strip())


NOT_SET = "not set"
# Ids and other fields that only programs need: pages show them under "Technical details".
TECHNICAL_FIELDS = (
    *("id", "user_id", "pm_profile_id", "participant_id", "plan_manager_id", "plan_manager", "pm_provider_id"),
    *("plan_managers", "original_id", "created_by_account_id", "note_type_id", "proposal_id"),
    *("account_id", "invoice_id", "s3_key", "email_message_id", "is_duplicate", "errors", "is_internal", "resource"),
)
_DATE_FIELDS = ("date_of_birth", "date_ceased", "managed_from", "managed_until", "deceased_on")
_STATUS_FIELDS = ("claim_status", "approval_status", "service_region_id", "remoteness")
PRIORITIES = {1: "Primary contact", 2: "Secondary contact"}
PAYMENT_GROUPINGS = {"payee": "One payment for each payee", "invoice": "One payment for each invoice"}
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
        return PRIORITIES.get(int(value), str(value))
    return format_money(Decimal(value)) if name in ("total", "tax", "subtotal") else str(value)


def _format_object(value: dict[str, Any], zone: ZoneInfo) -> str:
    """A reference to another record by its name, a document by that of its file; the fields of any other object."""
    if "file_name" in value:
        return str(value["file_name"])
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
