"""A file to begin with for each resource: its columns, and a line as it may be."""

from collections.abc import Mapping
from functools import cache

from msgspec.structs import fields

from plankeeper.import_export.registry import RESOURCES

BOM = "\ufeff"  # without it a spreadsheet takes the file for one in its own encoding, and keeps it so

# Columns that nobody fills in: what the checks find is found anew.
_EXCLUDED_COLUMNS = {"invoices": {"plan_manager", "errors", "is_duplicate", "state_management"}}

_EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "exit-reasons": {"name": "Moved away"},
    "account-managers": {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com", "active": "true"},
    "participants": {
        "first_name": "Ada",
        "last_name": "Lindqvist",
        "participant_number": "430000001",
        "email": "ada@example.com",
        "phone_number": "0491 570 006",
        "date_of_birth": "1990-01-31",
        "state": "NSW",
        "postcode": "2000",
        "address_line_1": "1 Example Street",
        "city": "Sydney",
        "status": "Active",
        "plan_start_date": "2026-07-01",
        "plan_end_date": "2027-06-30",
    },
    "providers": {
        "entity_name": "Copper Quokka Therapy",
        "abn": "51824753556",
        "email": "accounts@example.com",
        "active": "true",
        "primary_phone_number": "02 5550 0000",
        "city": "Perth",
        "state": "WA",
        "postcode": "6000",
    },
    "note-types": {"note_type": "Phone call", "badge_color": "#0b7285", "highlight_color": "teal"},
    "team-members": {
        "participant_number": "430000001",
        "first_name": "Lee",
        "last_name": "Ng",
        "email": "lee@example.com",
        "role": "Support coordinator",
        "contact_priority": "1",
        "permissions": "view_budget;view_invoices",
    },
    "invoices": {
        "invoice_number": "INV-1",
        "invoice_date": "2026-07-15",
        "total": "110.00",
        "tax": "10.00",
        "subtotal": "100.00",
        "claim_status": "new",
        "approval_status": "not_required",
        "line_items": '"[{""description"": ""Session"", ""service_item_number"": ""15_056_0128_1_3"",'
        ' ""quantity"": 1, ""unit_price"": 100, ""total_price"": 100}]"',
    },
}


@cache
def csv_template(resource: str) -> str:
    """A CSV file with all columns of a resource and one line; a line without an id makes a new record."""
    columns = [each.encode_name for each in fields(RESOURCES[resource].import_schema)]
    names = [name for name in columns if name not in _EXCLUDED_COLUMNS.get(resource, ())]
    cells = [_EXAMPLES[resource].get(name, "") for name in names]
    return f"{BOM}{','.join(names)}\r\n{','.join(cells)}\r\n"
