"""Every operation of the API, and a request of each about the records of a plan manager."""

import re
from typing import Any, get_origin

import httpx

from plankeeper.core.lists import Page
from plankeeper.http.routing import PREFIX, Operation
from plankeeper.server.app import operations
from support.claimed_records import CLAIMED_INVOICE_ID, PAID_INVOICE_ID
from support.client import Client
from support.factories import (
    ADJUSTED_LINE_ID,
    INVOICE_NUMBER,
    NOTED_PROVIDER_ID,
    NOTED_TYPE_ID,
    PROVIDER_EMAIL,
)
from support.fees import FEE_INVOICE_ID


def operation_name(operation: Operation) -> str:
    """`PUT /participants/{participant_id}`: also the name of the test of an operation."""
    return f"{operation.method} {operation.path.removeprefix(PREFIX)}"


# Those that act for a plan manager. `GET /me` is about the key: tests/api/access/api_keys/test_current_key.py.
ALL_OPERATIONS = {operation_name(operation): operation for operation in operations()}
OPERATIONS = {name: each for name, each in ALL_OPERATIONS.items() if not each.is_for_key}
WRITES = {name: operation for name, operation in OPERATIONS.items() if operation.writes}
READS = {name: each for name, each in OPERATIONS.items() if not each.writes and each.required_scopes}
LISTS = {name: each for name, each in READS.items() if each.method == "GET" and get_origin(each.response_type) is Page}

# The contract's endpoint table (section 4.2).
CONTRACT = {
    "GET /participants", "POST /participants", "GET /participants/{participant_id}",
    "PUT /participants/{participant_id}", "DELETE /participants/{participant_id}",
    "GET /participants/{participant_id}/team-members",
    "PUT /participants/{participant_id}/team-members/{team_member_id}",
    "GET /account-managers", "GET /account-managers/{account_manager_id}",
    "POST /note-types", "GET /note-types/{note_type_id}",
    "POST /providers", "GET /providers/{provider_id}", "DELETE /providers/{provider_id}",
    "GET /invoice-view-sessions/{session_id}",
}  # fmt: skip

BANK_DETAILS = {"bsb": "062-000", "account_number": "12345678", "account_name": "Amber Physio"}
# A body that each operation takes. One that a new operation lacks fails the sweeps: add it here.
BODIES: dict[str, dict[str, Any]] = {
    "POST /participants": {"first_name": "Robin", "email": "robin@example.com"},
    "POST /participants/bulk": {"items": [{"first_name": "Robin"}]},
    "PUT /participants/{participant_id}": {"last_name": "Changed"},
    "POST /participants/{participant_id}/plans": {
        "components": [{"name": "Core", "kind": "flexible", "categories": [1], "amount": 100}],
        "start_date": "2030-07-01",
        "end_date": "2031-06-30",
    },
    "PUT /participants/{participant_id}/plans/{plan_id}": {
        "end_date": "2029-12-30",
        "components": [{"name": "Core", "kind": "flexible", "categories": [1], "amount": 100}],
    },
    "POST /participants/{participant_id}/statements": {"month": "2026-01"},
    "POST /participants/{participant_id}/team-members": {"first_name": "New", "email": "new@example.com"},
    "PUT /participants/{participant_id}/team-members/{team_member_id}": {"role": "Changed"},
    "POST /exit-reasons": {"name": "Moved"},
    "PUT /exit-reasons/{exit_reason_id}": {"name": "Changed"},
    "POST /note-types": {"note_type": "Visit"},
    "PUT /note-types/{note_type_id}": {"badge_color": "changed"},
    "POST /notes": {
        "text": "New note",
        "resource": {"kind": "provider", "id": NOTED_PROVIDER_ID},
        "note_type_id": NOTED_TYPE_ID,
    },
    "PUT /notes/{note_id}": {"text": "Changed"},
    "POST /providers": {"entity_name": "New provider"},
    "POST /providers/bulk": {"items": [{"entity_name": "New provider"}]},
    "PUT /providers/{provider_id}": {"entity_name": "Changed"},
    "PUT /providers/{provider_id}/bank-details": BANK_DETAILS,
    "PUT /participants/{participant_id}/bank-details": BANK_DETAILS,
    "POST /invoices": {"invoice_number": "INV-9", "line_items": [{"description": "New line"}]},
    "POST /invoices/bulk": {"items": [{"invoice_number": "INV-9"}]},
    "PUT /invoices/{invoice_id}": {"due_date": "2026-02-28"},
    "POST /webhook-endpoints": {"url": "https://example.com/hooks"},
    "PUT /webhook-endpoints/{webhook_endpoint_id}": {"description": "Changed"},
    "POST /webhook-endpoints/{webhook_endpoint_id}/test": {"type": "participant.created"},
    "POST /webhook-endpoints/{webhook_endpoint_id}/replay": {"since": "2026-01-02T03:04:05Z"},
    "POST /invoices/{invoice_id}/hold": {"reason": "Price above limit"},
    "POST /invoices/{invoice_id}/cancel": {"reason": "Sent twice"},
    "POST /invoices/{invoice_id}/wont-claim": {"reason": "Paid privately"},
    "POST /invoices/{invoice_id}/approve": {"reason": "Said so on the phone"},
    "POST /invoices/{invoice_id}/reject": {"reason": "Not delivered"},
    "POST /invoices/{invoice_id}/ignore-warning": {"code": "check_dates", "reason": "Known"},
    "POST /invoices/{invoice_id}/restore-warning": {"code": "check_dates"},
    "POST /invoices/{invoice_id}/lines/{line_id}/cancel": {"reason": "Wrong day"},
    "POST /invoices/{invoice_id}/lines/{line_id}/split": {"date": "2026-01-15", "quantities": [1, 2]},
    "POST /claim-batches": {"invoice_ids": [CLAIMED_INVOICE_ID]},
    "POST /payment-runs": {"invoice_ids": [PAID_INVOICE_ID], "process_date": "2026-10-15"},
    "POST /payment-runs/{payment_run_id}/mark-paid": {"paid_on": "2026-10-16"},
    "POST /payment-runs/{payment_run_id}/cancel": {"reason": "The date is wrong"},
    "POST /payment-runs/{payment_run_id}/payments/{payment_id}/returned": {
        "date": "2026-10-17",
        "reason": "The account is closed",
    },
    "POST /statement-runs": {"month": "2026-03"},
    "POST /statement-runs/{statement_run_id}/retry": {},
    "POST /fees": {"month": "2026-07"},
    "POST /fee-takings": {"invoice_ids": [FEE_INVOICE_ID]},
    "POST /claim-batches/{claim_batch_id}/cancel": {"reason": "A line is wrong"},
    "POST /claim-batches/{claim_batch_id}/receipts": {"date": "2026-01-15", "amount": 100},
    "POST /invoices/{invoice_id}/claimed-elsewhere": {"reference": "PORTAL-1"},
    "POST /invoices/{invoice_id}/lines/{line_id}/claim-result": {"outcome": "rejected", "reason": "Not in the plan"},
    "POST /invoices/{invoice_id}/adjustments": {
        "date": "2026-01-15",
        "line_id": ADJUSTED_LINE_ID,
        "kind": "agency_reversal",
        "amount": 10,
    },
    "POST /invoices/status": {"provider_email": PROVIDER_EMAIL, "invoice_number": INVOICE_NUMBER},
}


FILE = b"%PDF-1.7 a document"
RESULTS = b"""NDISNumber,ClaimReference,PaidTotalAmount,Payment Request Status
430000001,results_claim_batch_id,1.00,SUCCESSFUL
"""


def content_of(name: str) -> dict[str, Any]:
    """The body of a request, as httpx takes it: JSON, or a file."""
    operation = ALL_OPERATIONS[name]
    file = RESULTS if name.endswith("/results") else FILE
    return {"json": BODIES[name]} if operation.body else {"content": file} if operation.receive_file else {}


def ids_of(name: str, ids: dict[str, str]) -> dict[str, str]:
    """The ids of a request: an action is on an invoice whose state allows it."""
    if batch := re.fullmatch(r"POST /claim-batches/\{claim_batch_id\}/(submit|cancel|results|receipts)", name):
        return ids | {"claim_batch_id": ids[f"{batch[1]}_claim_batch_id"]}
    if name == "GET /claim-batches/{claim_batch_id}/file":  # of a draft that wasn't downloaded
        return ids | {"claim_batch_id": ids["submit_claim_batch_id"]}
    if run := re.fullmatch(r"(?:GET|POST) /payment-runs/\{payment_run_id\}.*/(file|mark-paid|cancel|returned)", name):
        action = run[1].replace("-", "_")
        payment_id = ids[f"{action}_payment_id"] if action == "returned" else ids["payment_id"]
        return ids | {"payment_run_id": ids[f"{action}_payment_run_id"], "payment_id": payment_id}
    if name == "POST /statement-runs/{statement_run_id}/retry":
        return ids | {"statement_run_id": ids["retry_statement_run_id"]}
    match = re.fullmatch(r"POST /invoices/\{invoice_id\}/(lines/\{line_id\}/)?([a-z-]+)", name)
    if match is None:
        return ids
    action = match[2].replace("-", "_") + ("_line" if match[1] else "")
    return ids | {"invoice_id": ids[f"{action}_invoice_id"], "line_id": ids[f"{action}_line_id"]}


def send(client: Client, name: str, ids: dict[str, str], headers: dict[str, str] | None = None) -> httpx.Response:
    """The request of an operation, right in all but what `ids` and `headers` say."""
    operation = OPERATIONS[name]
    path = operation.path.removeprefix(PREFIX).format(**ids_of(name, ids))
    more = content_of(name)
    return client.send(operation.method, path, headers=client.headers() if headers is None else headers, **more)
