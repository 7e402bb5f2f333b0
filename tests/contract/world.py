"""A plan manager that has one of everything, and requests to every operation about it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service
from plankeeper.app import operations
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.routing import PREFIX, Operation
from plankeeper.plan_managers import store as plan_managers
from support.client import Client
from support.importing import import_records
from support.server import RunningServer

PROVIDER_EMAIL = "billing@provider.example"
INVOICE_NUMBER = "INV-1"
MEMBER_EMAIL = "member@example.com"


def operation_name(operation: Operation) -> str:
    """`PUT /participants/{participant_id}`: also the name of the test of an operation."""
    return f"{operation.method} {operation.path.removeprefix(PREFIX)}"


OPERATIONS = {operation_name(operation): operation for operation in operations()}
WRITES = {name: operation for name, operation in OPERATIONS.items() if operation.required_scope == "write"}
READS = {name: operation for name, operation in OPERATIONS.items() if operation.required_scope == "read"}
LISTS = {name: each for name, each in READS.items() if each.method == "GET" and not each.path.endswith("}")}

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

# A body that each operation takes. One that a new operation lacks fails the sweeps: add it here.
BODIES: dict[str, dict[str, Any]] = {
    "POST /participants": {"first_name": "Robin", "email": "robin@example.com"},
    "PUT /participants/{participant_id}": {"last_name": "Changed"},
    "POST /participants/{participant_id}/team-members": {"first_name": "New", "email": "new@example.com"},
    "PUT /participants/{participant_id}/team-members/{team_member_id}": {"role": "Changed"},
    "POST /note-types": {"note_type": "Visit"},
    "PUT /note-types/{note_type_id}": {"badge_color": "changed"},
    "POST /providers": {"entity_name": "New provider"},
    "PUT /providers/{provider_id}": {"entity_name": "Changed"},
    "POST /webhook-endpoints": {"url": "https://example.com/hooks"},
    "PUT /webhook-endpoints/{webhook_endpoint_id}": {"description": "Changed"},
    "POST /webhook-endpoints/{webhook_endpoint_id}/replay": {"since": "2026-01-02T03:04:05Z"},
    "POST /invoices/status": {"provider_email": PROVIDER_EMAIL, "invoice_number": INVOICE_NUMBER},
}


@dataclass(frozen=True)
class Tenant:
    """A plan manager with its client. `ids` has one id for each id that a path can hold, and some more."""

    server: RunningServer
    client: Client
    ids: dict[str, str]

    @property
    def plan_manager_id(self) -> UUID:
        return UUID(self.client.plan_manager_id)


def send(client: Client, name: str, ids: dict[str, str], headers: dict[str, str] | None = None) -> httpx.Response:
    """The request of an operation, right in all but what `ids` and `headers` say."""
    operation = OPERATIONS[name]
    path = operation.path.removeprefix(PREFIX).format(**ids)
    more: dict[str, Any] = {"json": BODIES[name]} if operation.body else {}
    return client.send(operation.method, path, headers=client.headers() if headers is None else headers, **more)


async def new_client(server: RunningServer) -> Client:
    """A client with a key that may do everything for a plan manager that has nothing yet."""
    async with server.db.transaction() as tx:
        plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
        assert plan_manager
        ctx = WriteContext(tx, plan_manager.id, server.settings, SYSTEM)
        key = await service.create(ctx, "test", [plan_manager.id], ["read", "write"], None)
    return Client(server.url, key, plan_manager.id)


def seed_tenant(server: RunningServer, client: Client) -> Tenant:
    """Give a plan manager one of everything."""
    manager, category, subcategory = uuid7(), uuid7(), uuid7()
    provider = client.create("/providers", {"entity_name": "Provider", "email": PROVIDER_EMAIL})["id"]
    participant = client.create("/participants", {"first_name": "Sam", "email": "sam@example.com"})["id"]
    member = client.create(f"/participants/{participant}/team-members", {"first_name": "Kim", "email": MEMBER_EMAIL})
    note_type = client.create("/note-types", {"note_type": "Phone call"})["id"]
    invoice, session = uuid7(), uuid7()
    files: dict[str, list[dict[str, Any]]] = {
        "account-managers": [{"id": manager, "first_name": "Alex", "email": "alex@example.com"}],
        "exit-reasons": [{"id": category, "name": "Moved"}, {"id": subcategory, "name": "Far", "parent_id": category}],
        "invoices": [
            {
                "id": invoice, "invoice_number": INVOICE_NUMBER, "participant_id": participant,
                "pm_provider_id": provider, "line_items": [{"description": "Therapy"}],
            },
        ],
        "invoice-view-sessions": [
            {
                "id": session, "invoice_id": invoice, "user_id": "viewer", "user_name": "Viewer",
                "session_started": "2026-01-02T03:04:05Z",
            },
        ],
    }  # fmt: skip
    for resource, rows in files.items():
        report = server.run(import_records(server, UUID(client.plan_manager_id), resource, rows))
        assert not report.errors, report.errors
    [event] = server.run(
        server.db.rows(
            UUID, "select id from events where plan_manager_id = $1 order by id limit 1", client.plan_manager_id
        )
    )
    ids = {
        "participant_id": participant, "team_member_id": member["id"], "account_manager_id": manager,
        "note_type_id": note_type, "provider_id": provider, "invoice_id": invoice, "session_id": session,
        "event_id": event, **create_webhook_delivery(client),
        "exit_reason_category_id": category, "exit_reason_subcategory_id": subcategory,
    }  # fmt: skip
    return Tenant(server, client, {name: str(value) for name, value in ids.items()})


def create_webhook_delivery(client: Client) -> dict[str, str]:
    """An endpoint with a delivery. It wants what never happens: else events would become deliveries while a test looks
    at what there is.
    """
    body = {"url": "https://example.com/hooks", "event_types": ["nothing.happened"]}
    endpoint = client.create("/webhook-endpoints", body)["id"]
    client.post(f"/webhook-endpoints/{endpoint}/test").raise_for_status()
    [delivery] = client.get(f"/webhook-endpoints/{endpoint}/deliveries").json()["data"]
    return {"webhook_endpoint_id": endpoint, "webhook_delivery_id": delivery["id"]}


def unknown_ids(tenant: Tenant) -> dict[str, str]:
    """Ids that nobody has."""
    return {name: "987654321" if name == "note_type_id" else str(uuid7()) for name in tenant.ids}
