"""Labels of form fields. Pages show them beside the fields, and error messages name the fields by them."""

import re

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
