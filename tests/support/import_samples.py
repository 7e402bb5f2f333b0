"""One or two records of each resource in the import format, and functions that write files."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from plankeeper.imports.importer import ImportReport
from plankeeper.resources.upsert import ImportCounts
from support.client import Client

Row = dict[str, Any]
Import = Callable[..., ImportReport]


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    resource_id: str
    actor: str
    data: str | None
    previous: str | None


Events = Callable[[Client], list[EventRow]]


def new_id() -> str:
    return str(uuid7())


def to_json_lines(rows: list[Row]) -> bytes:
    return "".join(to_json(row) + "\n" for row in rows).encode()


def to_csv(rows: list[Row]) -> bytes:
    file = io.StringIO(newline="")
    table = csv.writer(file)
    table.writerow(rows[0])
    table.writerows([[cell(value) for value in row.values()] for row in rows])
    return file.getvalue().encode()


def cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return '""' if value == "" else value or ""
    if isinstance(value, list) and isinstance(value[0], str):
        return ";".join(value)
    return json.dumps(value)


def assert_imported(report: ImportReport, created: int = 0, changed: int = 0, unchanged: int = 0) -> None:
    assert report.errors == []
    assert report.counts == ImportCounts(created, changed, unchanged)
    assert report.row_count == created + changed + unchanged


def get_json(client: Client, path: str, **params: Any) -> Any:
    response = client.get(path, **params)
    assert response.status_code == 200, response.text
    return response.json()


PERSON, PROVIDER, INVOICE, USER, LINE = (new_id() for _ in range(5))
REASON, SUBREASON, MANAGER, SESSION = (new_id() for _ in range(4))
CREATED_AT = "2026-01-31T10:00:00.123456Z"

REASONS: list[Row] = [
    {"id": REASON, "name": "Moved", "parent_id": None},
    {"id": SUBREASON, "name": "Overseas, for good", "parent_id": REASON},
]
MANAGERS: list[Row] = [
    {
        "id": MANAGER, "first_name": "Ama", "last_name": "Owusu", "email": "Ama@example.com", "active": False,
        "is_internal": True, "deleted": False,
    }
]  # fmt: skip
PARTICIPANT: Row = {
    "id": PERSON, "first_name": "Zoë", "middle_name": "", "last_name": 'O"Dea, the', "preferred_name": None,
    "participant_number": "430000001", "email": "Zoe@Example.com", "phone_number": "0491 570 006",
    "date_of_birth": "1999-12-31", "gender": "Female", "pronouns": "she/her", "state": "NSW", "postcode": "2000",
    "address_line_1": "1 A St\nRear", "address_line_2": None, "city": "Sydney", "service_region_id": "remote",
    "status": "Inactive", "approval_required": True, "onboard_date": "2020-02-29", "created_at": CREATED_AT,
    "date_ceased": "2026-01-31", "reason_for_leaving": "moved", "exit_reason_category_id": REASON,
    "exit_reason_subcategory_id": SUBREASON, "account_manager_id": MANAGER, "is_pace_plan": True,
    "plan_start_date": "2025-02-01", "plan_end_date": "2026-01-31", "managed_from": "2025-02-01",
    "managed_until": "2026-01-30", "deceased_on": "2026-01-30", "remoteness": "very_remote", "postal_statement": True,
    "participant_receives_statements": True, "external_id": "crm-17",
}  # fmt: skip
FULL_PROVIDER: Row = {
    "id": PROVIDER, "entity_name": "Physio", "abn": "53004085616", "email": "p@example.com", "active": False,
    "primary_phone_number": "02 5550 0000", "address": "2 B St", "city": "Perth", "state": "WA", "postcode": "6000",
    "ndis_provider_number": "4050000000", "external_id": "crm-17", "created_at": CREATED_AT,
}  # fmt: skip
MEMBER: Row = {
    "participant_id": PERSON, "id": USER, "user_id": USER, "pm_profile_id": None, "first_name": "Lee",
    "last_name": "Ng", "email": "Lee@example.com", "role": "Support coordinator", "phone_number": "1", "note": "a\r\nb",
    "secondary_email": "not an address", "secondary_phone_number": "2", "address_line_1": "3 C St", "city": "Hobart",
    "state": "TAS", "postcode": "7000", "contact_priority": 2, "permissions": ["view_budget", "view_documents"],
    "external_id": "crm-18",
}  # fmt: skip
ITEM: Row = {
    "id": LINE, "description": 'Hour, "one"', "service_item_number": "15_056_0128_1_3",
    "service_date_from": "2026-01-28", "service_date_to": "2026-01-29", "quantity": 1.5, "unit_price": 100,
    "total_price": 150, "gst_code": "P1", "claim_type": "CANC", "cancellation_reason": "NSDH", "component_id": MANAGER,
    "claim_status": "paid", "claim_batch_ref": "b", "claim_number": "n", "paid_amount": 165,
    "rejection_reason": "r", "payment_ref": "p", "closing_reason": "c", "is_deleted": False, "created_at": CREATED_AT,
}  # fmt: skip
FULL_INVOICE: Row = {
    "id": INVOICE, "invoice_number": "INV-1", "invoice_date": "2026-01-30", "total": 165, "tax": 15, "subtotal": 150,
    "participant_id": PERSON, "claim_status": "paid", "approval_status": "approved", "created_at": CREATED_AT,
    "pm_provider_id": PROVIDER, "s3_key": "k", "email_message_id": "m",
    "state_management": {"errors": [], "ignored_errors": ["inactive_participant", "inactive_provider"]},
    "is_deleted": False,
    "wont_claim": True, "is_reimbursement": True, "payee": "participant", "received_at": CREATED_AT,
    "due_date": "2026-02-28", "assigned_to": MANAGER, "held_at": CREATED_AT, "held_by": "Ama Owusu",
    "hold_reason": "h", "cancelled_at": CREATED_AT, "closing_reason": "c",
    "approval_decided_at": CREATED_AT, "approval_decided_by": "team_member", "approval_team_member_id": MANAGER,
    "approval_reason": "a", "external_id": "crm-19",
    "ambiguous_participant_number": "430205409", "ambiguous_provider_abn": "51824753556", "line_items": [ITEM],
}  # fmt: skip
VIEW_SESSION: Row = {
    "id": SESSION, "invoice_id": INVOICE, "user_id": "user 1", "user_name": "Ama Owusu",
    "session_started": "2026-01-31T10:00:00Z", "session_ended": "2026-01-31T10:01:00Z",
    "last_heartbeat": "2026-01-31T10:00:59Z", "duration_seconds": 60, "created_at": "2026-01-31T10:00:00Z",
    "active_duration_seconds": 50, "engaged_duration_seconds": 0, "idle_count": None,
}  # fmt: skip
NOTE_TYPE: Row = {"id": 7, "note_type": "Phone call", "badge_color": "#0b7285", "highlight_color": None}

ALL_ROWS: dict[str, list[Row]] = {
    "exit-reasons": REASONS,
    "account-managers": MANAGERS,
    "participants": [PARTICIPANT],
    "providers": [FULL_PROVIDER],
    "note-types": [NOTE_TYPE],
    "team-members": [MEMBER],
    "invoices": [FULL_INVOICE],
    "invoice-view-sessions": [VIEW_SESSION],
}
