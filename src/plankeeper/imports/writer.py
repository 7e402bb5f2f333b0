"""Writes records as a file, from which `reader` reads the same records."""

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any, cast
from uuid import UUID

import msgspec
from msgspec import Struct

from plankeeper.core.fields import Email, StateCode
from plankeeper.core.json import encode_lines, to_json
from plankeeper.imports.cells import FORMULA_PREFIXES
from plankeeper.imports.reader import is_only_quotes
from plankeeper.resources.account_managers.schemas import AccountManagerImport
from plankeeper.resources.exit_reasons.schemas import ExitReasonImport
from plankeeper.resources.invoices.import_schemas import InvoiceImport, InvoiceLineImport
from plankeeper.resources.note_types.schemas import NoteTypeImport
from plankeeper.resources.notes.schemas import NoteImport
from plankeeper.resources.participants.schemas import ParticipantImport
from plankeeper.resources.plans.schemas import PlanComponentChange, PlanImport
from plankeeper.resources.providers.schemas import ProviderImport
from plankeeper.resources.team_members.schemas import TeamMemberImport


class JsonLinesWriter:
    """One JSON object per line."""

    def header(self) -> bytes:
        return b""

    def lines(self, records: Sequence[Struct]) -> bytes:
        return encode_lines(records)


class CsvWriter:
    """A header, then one row per record. Null is an empty cell; lists of words are separated by `;`.

    Values are written exactly, so that they can be imported again. `formula_count` counts the texts that a
    spreadsheet would run as formulas.
    """

    def __init__(self, schema: type[Struct], exclude: Collection[str] = ()) -> None:
        self._columns = [name for name in schema.__struct_encode_fields__ if name not in exclude]
        self._values: Callable[[Struct], tuple[Any, ...]] = attrgetter(*self._columns)
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer)
        self.formula_count = 0

    def header(self) -> bytes:
        return self._format_rows([self._columns])

    def lines(self, records: Sequence[Struct]) -> bytes:
        return self._format_rows([[self._cell(each) for each in self._values(record)] for record in records])

    def _format_rows(self, rows: Sequence[Sequence[Any]]) -> bytes:
        self._writer.writerows(rows)
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()

    def _cell(self, value: Any) -> Any:
        """The value as text, or null, an id or a date, which csv writes as it should be."""
        if value is None:
            return None
        if isinstance(value, str):
            if value.startswith(FORMULA_PREFIXES):
                self.formula_count += 1
            return value + '""' if value[:1] in ("", '"') and is_only_quotes(value) else value
        return value if isinstance(value, UUID) or type(value) is date else _format_cell(value)


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is msgspec.UNSET:
        return ""
    if isinstance(value, list) and (strings := [each for each in cast("list[object]", value) if isinstance(each, str)]):
        return ";".join(strings)
    text = to_json(cast("object", value))
    return text[1:-1] if text.startswith('"') else text


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
    "plans": PlanImport(
        participant_number="430000001",
        start_date=date(2026, 7, 1),
        end_date=date(2027, 6, 30),
        is_pace_plan=True,
        components=[
            PlanComponentChange(name="Core supports", kind="flexible", categories=[1, 2, 3, 4], amount=Decimal(20_000))
        ],
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
    "notes": NoteImport(
        participant_number="430000001",
        note_type="Phone call",
        text="Prefers a call in the morning.",
        pinned=True,
        author_name="Alex Ng",
    ),
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
