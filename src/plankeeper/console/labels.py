"""Labels of form fields. Pages show them beside the fields, and error messages name the fields by them."""

import re
from typing import Any, Protocol

import tinycss2
import tinycss2.color4

# Labels that differ from the humanised field name.
FIELD_LABELS = {
    "abn": "ABN",
    "account_manager_id": "Account manager",
    "approval_required": "Invoices require approval",
    "badge_color": "Badge colour",
    "city": "Suburb",
    "created_by_account_id": "Account ID",
    "date_ceased": "Exit date",
    "entity_name": "Name",
    "event_types": "Events",
    "exit_reason_category": "Exit reason",
    "exit_reason_category_id": "Exit reason",
    "exit_reason_subcategory": "Specific exit reason",
    "exit_reason_subcategory_id": "Specific exit reason",
    "highlight_color": "Highlight colour",
    "id": "ID",
    "is_pace_plan": "PACE plan",
    "lasts": "Expires",
    "line_items": "Lines",
    "ndis_provider_number": "NDIS provider number",
    "note_type": "Name",
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
    names = [each.strip() for each in (person.first_name, person.last_name) if each and each.strip()]
    return " ".join(names) or default or "No name"
