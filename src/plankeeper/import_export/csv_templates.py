"""CSV templates for the console: all columns of a resource, and one example row."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cache

from msgspec import Struct

from plankeeper.account_managers.schemas import AccountManagerImport
from plankeeper.core.fields import Email, StateCode
from plankeeper.exit_reasons.schemas import ExitReasonImport
from plankeeper.import_export.writer import CsvWriter
from plankeeper.invoices.schemas import InvoiceImport, InvoiceLineImport
from plankeeper.note_types.schemas import NoteTypeImport
from plankeeper.participants.schemas import ParticipantImport
from plankeeper.providers.schemas import ProviderImport
from plankeeper.team_members.schemas import TeamMemberImport

BOM = "\ufeff"  # with it, spreadsheets read and write the file as UTF-8

# Columns that an import accepts in exported files, but computes itself.
_COMPUTED_COLUMNS = {"invoices": {"plan_manager", "errors", "is_duplicate", "state_management"}}

_EXAMPLES: Mapping[str, Struct] = {
    "exit-reasons": ExitReasonImport(name="Moved away"),
    "account-managers": AccountManagerImport(
        first_name="Ama", last_name="Owusu", email=Email("ama@example.com"), active=True
    ),
    "participants": ParticipantImport(
        first_name="Ada",
        last_name="Lindqvist",
        participant_number="430000001",
        email=Email("ada@example.com"),
        phone_number="0491 570 006",
        date_of_birth=date(1990, 1, 31),
        state=StateCode("NSW"),
        postcode="2000",
        address_line_1="1 Example Street",
        city="Sydney",
        status="Active",
        plan_start_date=date(2026, 7, 1),
        plan_end_date=date(2027, 6, 30),
    ),
    "providers": ProviderImport(
        entity_name="Copper Quokka Therapy",
        abn="51824753556",
        email=Email("accounts@example.com"),
        active=True,
        primary_phone_number="02 5550 0000",
        city="Perth",
        state=StateCode("WA"),
        postcode="6000",
    ),
    "note-types": NoteTypeImport(note_type="Phone call", badge_color="#0b7285", highlight_color="teal"),
    "team-members": TeamMemberImport(
        participant_number="430000001",
        first_name="Lee",
        last_name="Ng",
        email=Email("lee@example.com"),
        role="Support coordinator",
        contact_priority=1,
        permissions=["view_budget", "view_invoices"],
    ),
    "invoices": InvoiceImport(
        invoice_number="INV-1",
        invoice_date=date(2026, 7, 15),
        total=Decimal("110.00"),
        tax=Decimal("10.00"),
        subtotal=Decimal("100.00"),
        claim_status="new",
        approval_status="not_required",
        line_items=[
            InvoiceLineImport(
                description="Session",
                service_item_number="15_056_0128_1_3",
                quantity=Decimal(1),
                unit_price=Decimal(100),
                total_price=Decimal(100),
            )
        ],
    ),
}


@cache
def csv_template(resource: str) -> str:
    """A CSV file with all columns of a resource and one example row without an id, so that it creates a record."""
    example = _EXAMPLES[resource]
    writer = CsvWriter(type(example), exclude=_COMPUTED_COLUMNS.get(resource, ()))
    return BOM + (writer.header() + writer.lines([example])).decode()
