"""The examples of the OpenAPI document, as a server with the sample data responds: `make examples`."""

import json
import os
from typing import Any

import httpx

from plankeeper.cli.demo import load_demo_data
from plankeeper.core.examples import EXAMPLES
from support.client import Client
from support.cluster import SharedCluster, shared_cluster
from support.pages import PROJECT
from support.sample_data import new_sample_database
from support.server import RunningServer

FILE = PROJECT / "src/plankeeper/core/examples.json"

# The request for each example of a response. `{participant_id}` is an example of an id. Reads come first, so that they
# show the sample data as it is loaded. The example of a resource is the first one that contains it.
SOURCES = {
    "Participant": "GET /participants/{participant_id}",
    "ParticipantPage": "GET /participants?status=Inactive&limit=1&offset=3",
    "PlanPage": "GET /participants/{participant_id}/plans?limit=1&on=2026-10-30",
    "TeamMemberPage": "GET /participants/{participant_id}/team-members?limit=1",
    "AccountManagerPage": "GET /account-managers?limit=1",
    "ExitReason": "GET /exit-reasons/{exit_reason_id}",
    "ExitReasonPage": "GET /exit-reasons?limit=1",
    "NoteTypePage": "GET /note-types?limit=1",
    "NotePage": "GET /notes?q=morning&limit=1",
    "ProviderPage": "GET /providers?limit=1",
    "Invoice": "GET /invoices/{invoice_id}",
    "InvoicePage": "GET /invoices?id=019f97c6-2c98-74be-adcc-61559e3c2117&include=warnings",
    "InvoiceStatusResponse": "POST /invoices/status",
    "InvoiceViewSessionPage": "GET /invoice-view-sessions?limit=1",
    "EventPage": "GET /events?type=participant.created&limit=1",
    "SupportItemPage": "GET /support-items?q=therapy&limit=1",
    "ErrorCatalogueEntryPage": "GET /error-catalogue?limit=1",
    "CurrentApiKey": "GET /me",
    "WebhookEndpointPage": "GET /webhook-endpoints?limit=1",
    "WebhookEndpointWithSecret": "POST /webhook-endpoints",
    "ReplayResponse": "POST /webhook-endpoints/{webhook_endpoint_id}/replay",
    "WebhookTestResponse": "POST /webhook-endpoints/{webhook_endpoint_id}/test",
    "ParticipantBulkResult": "POST /participants/bulk",
    "ProviderBulkResult": "POST /providers/bulk",
    "SavedInvoice": "POST /invoices?include=warnings",
    "SavedInvoiceBulkResult": "POST /invoices/bulk",
}
# Operations that return a resource of which there is an example. Their own examples show what their requests return.
WRITES = {
    "POST /participants": "ParticipantCreate",
    "PUT /participants/{participant_id}": "ParticipantUpdate",
    "POST /participants/{participant_id}/plans": "PlanCreate",
    "PUT /participants/{participant_id}/plans/{plan_id}": "PlanUpdate",
    "POST /participants/{participant_id}/team-members": "TeamMemberCreate",
    "PUT /participants/{participant_id}/team-members/{team_member_id}": "TeamMemberUpdate",
    "POST /exit-reasons": "ExitReasonCreate",
    "PUT /exit-reasons/{exit_reason_id}": "ExitReasonUpdate",
    "POST /note-types": "NoteTypeCreate",
    "PUT /note-types/{note_type_id}": "NoteTypeUpdate",
    "POST /notes": "NoteCreate",
    "PUT /notes/{note_id}": "NoteUpdate",
    "POST /providers": "ProviderCreate",
    "PUT /providers/{provider_id}": "ProviderUpdate",
    "POST /invoices": "InvoiceCreate",
    "PUT /invoices/{invoice_id}": "InvoiceUpdate",
    "PUT /webhook-endpoints/{webhook_endpoint_id}": "WebhookEndpointUpdate",
}
# Examples that no request returns, with the reason.
WRITTEN_BY_HAND = {
    "BankDetails": "the key of the sample data doesn't have the scope `payments`",
    **dict.fromkeys(
        (
            "Adjustment",
            "AdjustmentPage",
            "ClaimBatch",
            "ClaimBatchPage",
            "ClaimPage",
            "ClaimResults",
            "MonthFees",
            "FeePage",
            "FeeTaking",
            "FeeTakingPage",
            "TakenLinePage",
            "Payment",
            "PaymentPage",
            "PaymentRun",
            "PaymentRunPage",
            "Receipt",
            "ReceiptPage",
            "Reconciliation",
            "RecoveryPage",
            "StatementRun",
            "StatementRunItemPage",
            "StatementRunPage",
            "Statement",
            "StatementSummaryPage",
        ),
        "claims and payments are made when the sample data is loaded, with new ids and the dates of the day",
    ),
    "Document": "the sample data has no documents",
    "EmptyResponse": "it is always the same",
    "WebhookDeliveryPage": "the server of the tests doesn't send webhooks, so deliveries have no attempts",
}
# What differs from one load of the sample data to the next.
VARYING = {
    "CurrentApiKey": {"id", "expires_at", "rate_limit"},
    "EventPage": {"id", "created_at", "next_cursor", "sequence"},
    "ReplayResponse": {"events"},
    "ParticipantBulkResult": {"id", "created_at"},
    "ProviderBulkResult": {"id", "created_at"},
    "SavedInvoice": {"id", "invoice", "created_at", "received_at", "line_id"},
    "SavedInvoiceBulkResult": {"id", "invoice", "created_at", "received_at"},
    "WebhookEndpointPage": {"id", "created_at"},
    "WebhookEndpointWithSecret": {"id", "created_at", "secret"},
    "WebhookTestResponse": {"event_id"},
    "POST /exit-reasons": {"id"},
    "POST /invoices": {"id", "invoice", "created_at", "received_at"},
    "POST /participants": {"id", "created_at"},
    "POST /participants/{participant_id}/plans": {"id", "created_at"},
    "POST /participants/{participant_id}/team-members": {"id", "user_id"},
    "POST /notes": {"id", "created_at"},
    "POST /providers": {"id", "created_at"},
    "PUT /participants/{participant_id}/plans/{plan_id}": {"released", "paid", "pending", "waiting", "available"},
    "PUT /webhook-endpoints/{webhook_endpoint_id}": {"id", "created_at"},
}


def sample_client(server: RunningServer) -> Client:
    """A client for the plan manager of the sample data, with a new key."""
    credentials = server.run(load_demo_data(server.db, server.settings))
    return Client(server.url, credentials.key, credentials.plan_manager_id)


def send_example(client: Client, request: str, ids: dict[str, str], body: Any) -> httpx.Response:
    method, path = request.split(" ")
    return client.request(method, path.format(**ids), **({"json": body} if body is not None else {}))


def read_examples(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """The responses to the requests of SOURCES, and of WRITES."""
    ids = EXAMPLES["path_ids"] | {
        "webhook_endpoint_id": client.create("/webhook-endpoints", EXAMPLES["bodies"]["WebhookEndpointCreate"])["id"]
    }
    bodies = {
        "InvoiceStatusResponse": EXAMPLES["bodies"]["InvoiceStatusRequest"],
        "WebhookEndpointWithSecret": EXAMPLES["bodies"]["WebhookEndpointCreate"],
        "ReplayResponse": EXAMPLES["bodies"]["ReplayRequest"],
        "ParticipantBulkResult": EXAMPLES["bodies"]["ParticipantBulk"],
        "ProviderBulkResult": EXAMPLES["bodies"]["ProviderBulk"],
        "SavedInvoice": EXAMPLES["bodies"]["InvoiceCreate"],
        "SavedInvoiceBulkResult": EXAMPLES["bodies"]["InvoiceBulk"],
    }
    responses: dict[str, Any] = {}
    for name, request in SOURCES.items():
        response = send_example(client, request, ids, bodies.get(name))
        assert response.is_success, (request, response.text)
        responses[name] = response.json()
    operations: dict[str, Any] = {}
    for request, body in WRITES.items():
        response = send_example(client, request, ids, EXAMPLES["bodies"][body])
        assert response.is_success, (request, response.text)
        operations[request] = response.json()
    return responses, operations


def keep_varying(name: str, old: Any, new: Any) -> Any:
    """The new example with the old one's values of what varies, so that an update changes only what has changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        varying = VARYING.get(name, set()) | {"updated_at"}
        return {
            key: old[key] if key in old and key in varying else keep_varying(name, old.get(key), value)
            for key, value in new.items()
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [keep_varying(name, *pair) for pair in zip(old, new, strict=True)]
    return new


def updated_examples(client: Client) -> dict[str, Any]:
    """The content of the file as it should be."""
    old = EXAMPLES["responses"]
    responses, operations = read_examples(client)
    new = {name: keep_varying(name, old.get(name), each) for name, each in responses.items()}
    return EXAMPLES | {
        "responses": new | {name: old[name] for name in WRITTEN_BY_HAND},
        "operations": {
            name: keep_varying(name, EXAMPLES["operations"].get(name), each) for name, each in operations.items()
        },
    }


def render(examples: dict[str, Any]) -> str:
    return json.dumps(examples, indent=2, ensure_ascii=False) + "\n"


def _update(cluster: SharedCluster) -> None:
    server = RunningServer(new_sample_database(cluster)).start()
    client = sample_client(server)
    FILE.write_text(render(updated_examples(client)))
    client.http.close()
    server.stop()


if __name__ == "__main__":
    with shared_cluster(f"examples-{os.getpid()}") as shared:
        _update(shared)
