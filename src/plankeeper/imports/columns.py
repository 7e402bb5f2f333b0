"""Guesses the resource of a file, and the field of each of its columns, from common names of columns."""

from collections.abc import Mapping, Sequence
from functools import cache

from plankeeper.resources.registry import RESOURCES

IGNORED = ""  # the field of a column that isn't imported
# The column that is added to a file of rejected rows.
PROBLEM_COLUMN = "Problem"

_PERSON = {
    "first_name": ("Given name", "Given names", "First", "Forename", "Christian name"),
    "last_name": ("Surname", "Family name", "Last"),
    "email": ("Email address", "E-mail", "E-mail address", "Mail", "Contact email"),
    "phone_number": ("Mobile", "Mobile number", "Mobile phone", "Phone", "Phone no", "Telephone", "Contact number"),
    "city": ("Suburb", "Town", "Suburb or town", "Locality"),
    "postcode": ("Post code", "Postal code", "Zip", "Zip code", "PCode"),
    "state": ("State or territory", "State/Territory"),
    "address_line_1": ("Address", "Street", "Street address", "Address 1", "Residential address", "Home address"),
    "address_line_2": ("Address 2", "Unit"),
}
_NDIS_NUMBER = ("NDIS number", "NDIS no", "NDIS", "NDIS participant number", "Participant no", "NDIS ID", "NDIS #")
_EXTERNAL_ID = ("ID in other system", "CRM ID", "Reference")
_ALIASES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "participants": {
        **_PERSON,
        "middle_name": ("Middle names", "Second name"),
        "preferred_name": ("Known as", "Nickname", "Preferred"),
        "participant_number": _NDIS_NUMBER,
        "external_id": _EXTERNAL_ID,
        "date_of_birth": ("DOB", "Birth date", "Birthday", "Birthdate", "Born"),
        "gender": ("Sex",),
        "status": ("Participant status",),
        "service_region_id": ("Region", "Service region"),
        "approval_required": (
            "Invoices require approval",
            "Approval needed",
            "Invoices need approval",
            "Requires approval",
        ),
        "onboard_date": ("Onboarded", "Joined", "Start date", "Date joined", "Onboarding date"),
        "created_at": ("Created", "Created on"),
        "date_ceased": ("Ceased", "Exit date", "Date left", "Left"),
        "deceased_on": ("Date of death", "Death date", "Died", "DOD"),
        "exit_reason_category_id": ("Exit reason", "Exit category", "Exit reason category", "Reason category"),
        "exit_reason_subcategory_id": ("Exit subcategory", "Exit reason subcategory", "Exit sub-reason"),
        "account_manager_id": ("Account manager", "Plan manager contact", "Manager", "Case manager", "Coordinator"),
        "is_pace_plan": ("PACE", "PACE plan"),
        "plan_start_date": ("Plan start", "Plan begins", "Plan from", "NDIS plan start", "Plan start date"),
        "plan_end_date": ("Plan end", "Plan ends", "Plan to", "Plan expiry", "NDIS plan end", "Plan review date"),
        "postal_statement": ("Statements by post", "Postal statements"),
        "participant_receives_statements": ("Receives statements", "Email statements"),
    },
    "providers": {
        "entity_name": (
            "Name",
            "Provider",
            "Provider name",
            "Business name",
            "Company",
            "Organisation",
            "Trading name",
        ),
        "abn": ("ABN number", "Australian Business Number", "Business number"),
        "external_id": _EXTERNAL_ID,
        "email": _PERSON["email"],
        "active": ("Is active", "Status"),
        "primary_phone_number": (*_PERSON["phone_number"], "Phone number"),
        "address": (*_PERSON["address_line_1"], "Address line 1"),
        "city": _PERSON["city"],
        "postcode": _PERSON["postcode"],
        "state": _PERSON["state"],
        "bank_bsb": ("BSB", "BSB number", "Bank BSB"),
        "bank_account_number": ("Account number", "Bank account", "Account no", "Bank account no"),
        "bank_account_name": ("Account name", "Name of account", "Account title"),
        "ndis_provider_number": ("NDIS registration number", "Registration number", "NDIS provider no"),
    },
    "team-members": {
        **{name: aliases for name, aliases in _PERSON.items() if name != "address_line_2"},
        "participant_number": ("Participant", *_NDIS_NUMBER),
        "role": ("Relationship", "Relation", "Position"),
        "note": ("Notes", "Comment", "Comments"),
        "contact_priority": ("Priority", "Primary contact", "Contact order"),
        "permissions": ("Access", "Rights"),
        "secondary_email": ("Other email", "Second email"),
        "secondary_phone_number": ("Other phone", "Second phone", "Home phone"),
    },
    "plans": {
        "participant_number": ("Participant", *_NDIS_NUMBER),
        "start_date": ("Plan start", "Plan start date", "From"),
        "end_date": ("Plan end", "Plan end date", "To"),
        "is_pace_plan": ("PACE plan", "PACE"),
        "external_id": _EXTERNAL_ID,
    },
    "account-managers": {
        **{name: _PERSON[name] for name in ("first_name", "last_name", "email")},
        "active": ("Is active", "Status"),
        "is_internal": ("Internal",),
    },
    "exit-reasons": {"name": ("Reason", "Exit reason"), "parent_id": ("Parent", "Category", "Parent reason")},
    "note-types": {
        "note_type": ("Name", "Type"),
        "badge_color": ("Badge colour", "Colour", "Color"),
        "highlight_color": ("Highlight colour",),
    },
    "notes": {
        "participant_number": ("Participant", *_NDIS_NUMBER),
        "note_type": ("Type", "Note type", "Category"),
        "text": ("Note", "Notes", "Comment", "Comments"),
        "author_name": ("Author", "Written by", "Created by"),
        "created_at": ("Created", "Date", "Written on"),
    },
    "invoices": {
        "invoice_number": ("Invoice no", "Invoice #", "Number"),
        "invoice_date": ("Date", "Date of invoice"),
        "total": ("Amount", "Total amount"),
        "tax": ("GST",),
        # The names of both, which files of the console have, too, aren't enough to import an invoice.
        "pm_provider_id": ("Provider ID",),
    },
}
# The most likely one first, for columns of several resources.
_LIKELY_RESOURCES = (
    "participants",
    "providers",
    "team-members",
    "account-managers",
    "invoices",
    "plans",
    "note-types",
    "exit-reasons",
    "notes",
)  # fmt: skip - one line for each is too long
_LEAST_SHARE = 0.5  # the share of recognised columns that a guess of the resource requires


def fold(name: str) -> str:
    """A column's name in lower case, with only its letters and digits: `NDIS No.` is `ndisno`."""
    return "".join(each for each in name.casefold() if each.isalnum())


def field_names(resource: str) -> list[str]:
    """The fields that a column can be mapped to."""
    return list(RESOURCES[resource].import_schema.__struct_encode_fields__)


def guess_mapping(resource: str, columns: Sequence[str], remembered: Mapping[str, str]) -> list[str]:
    """The field of each column, or an empty string. Each field is used once.

    `remembered` are earlier choices by folded name, which come before the guesses.
    """
    known, used = {**_known_columns(resource), **remembered}, set[str]()
    mapping: list[str] = []
    for column in columns:
        field = known.get(fold(column), IGNORED)
        mapping.append(IGNORED if field in used else field)
        used.add(field)
    return mapping


def is_certain(columns: Sequence[str], mapping: Sequence[str], remembered: Mapping[str, str]) -> bool:
    """Whether the mapping needs no review: each column has a field, or was left out on purpose."""
    pairs = [(fold(column), field) for column, field in zip(columns, mapping, strict=True)]
    left_out = {fold(PROBLEM_COLUMN), *(name for name, field in remembered.items() if field == IGNORED)}
    return all(field or name in left_out for name, field in pairs) and bool(set(mapping) - {IGNORED, "id"})


def guess_resource(columns: Sequence[str], remembered: Mapping[str, Mapping[str, str]]) -> str | None:
    """The resource with fields for most of the columns; None if no resource has fields for half of them.

    `remembered` has the earlier choices by resource and folded name.
    """
    names = [fold(each) for each in columns]
    best = max(_LIKELY_RESOURCES, key=lambda each: _share(each, names, remembered))  # the first of several
    return best if _share(best, names, remembered) >= _LEAST_SHARE else None


def _share(resource: str, names: Sequence[str], remembered: Mapping[str, Mapping[str, str]]) -> float:
    fields = {fold(each) for each in field_names(resource)}
    known = {*_known_columns(resource), *remembered.get(resource, ())}
    # A field's own name counts a little more than an alias, so that templates are never ambiguous.
    return sum(1.01 if name in fields else name in known for name in names) / max(1, len(names))


@cache
def folded_names(field: str) -> frozenset[str]:
    """A field's own name and its common names in the files of any resource, folded."""
    aliases = (name for fields in _ALIASES.values() for name in fields.get(field, ()))
    return frozenset(map(fold, (field, *aliases)))


@cache
def _known_columns(resource: str) -> dict[str, str]:
    aliases = _ALIASES.get(resource, {})
    known = {fold(alias): field for field, names in aliases.items() for alias in names}
    return known | {fold(field): field for field in field_names(resource)}
