"""The sizes of lists with 100 rows, all columns and full charts: each page is less than 100,000 bytes before gzip."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import (
    LoggedFieldError,
    LoggedRequest,
    MinuteCount,
    RequestBatchInsert,
)
from plankeeper.console.views.pages import LISTS
from plankeeper.core.json import to_json
from support.client import Client
from support.console import Browser
from support.server import RunningServer, wait_until

ROWS = 100
AGENT = "acme-sync/4.12.0 (+https://acme.example) python-httpx/0.27.2"
MAX_SIZE = 100_000  # bytes
NOW = datetime.now(UTC)
PATHS = {
    "participants": "/console/participants?size=100&status=Active&state=VIC&sort=-plan_end_date",
    "providers": "/console/providers?size=100&active=yes&state=NSW&sort=-updated_at",
    "invoices": "/console/invoices?size=100&claim_status=unpaid&warning=any&sort=-total",
}


def participant(number: int) -> dict[str, Any]:
    return {
        "id": str(uuid7()), "first_name": "Alexandra", "last_name": f"Papadopoulos-{number}", "status": "Active",
        "preferred_name": "Alexandra", "participant_number": f"430205{number:03}", "plan_start_date": "2026-02-01",
        "plan_end_date": "2027-01-31", "date_of_birth": "1975-06-22", "phone_number": "0400000000",
        "email": f"alexandra.papadopoulos{number}@example.com", "city": "Wagga Wagga North", "state": "VIC",
        "postcode": "2650", "approval_required": True,
    }  # fmt: skip


def provider(number: int) -> dict[str, Any]:
    return {
        "id": str(uuid7()), "entity_name": f"Riverina Community Support Services {number}", "abn": "26502811788",
        "active": True, "city": "Wagga Wagga North", "state": "NSW", "address": "Unit 12, 104 Fitzmaurice Street",
        "postcode": "2650", "primary_phone_number": "0269210000", "ndis_provider_number": f"4050{number:06}",
        "email": f"accounts{number}@riverina-community.example.com",
    }  # fmt: skip


def invoice(number: int, participant_id: str, provider_id: str) -> dict[str, Any]:
    return {
        "id": str(uuid7()), "invoice_number": f"INV-2026-{number:06}", "invoice_date": "2026-11-02",
        "total": 1234.5 + number, "subtotal": 1200, "tax": 34.5, "participant_id": participant_id,
        "pm_provider_id": provider_id,
    }  # fmt: skip


def seed_records(api: Client, import_rows: Callable[..., Any]) -> None:
    """Records with a value in nearly every column, as long as those of an office."""
    participants = [participant(number) for number in range(ROWS)]
    providers = [provider(number) for number in range(ROWS)]
    invoices = [invoice(number, participants[number]["id"], providers[number]["id"]) for number in range(ROWS)]
    for resource, rows in (("participants", participants), ("providers", providers), ("invoices", invoices)):
        report = import_rows(api, resource, rows)
        assert not report.errors, report.errors


@pytest.mark.parametrize("density", ["compact", "comfortable"])
def test_lists_with_all_columns(
    owner: Browser,
    new_client: Callable[..., Client],
    plan_manager_id: UUID,
    import_rows: Callable[..., Any],
    density: str,
) -> None:
    seed_records(new_client(plan_manager_id), import_rows)
    for kind, path in PATHS.items():
        columns = [each.name for each in LISTS[kind].columns]
        assert owner.submit(
            "/console/list-settings", {"list": kind, "columns": columns, "density": density}
        ).is_redirect
        page = owner.get(path)
        assert page.text.count('class="lead"') == ROWS
        assert page.text.count('<th scope="col"') >= len(columns)
        assert len(page.content) < MAX_SIZE, kind


def seed_requests(server: RunningServer, plan_manager_id: UUID, key_id: str) -> None:
    """Requests in every minute and hour of the charts, a tenth of them with errors."""
    errors = [LoggedFieldError("body", "email", "invalid_format")] * 4

    def succeeded() -> tuple[int, float, str, None, str]:
        return 200, 12.75, str(uuid7()), None, AGENT

    requests = [
        LoggedRequest(
            NOW.timestamp() - number,
            key_id,
            "PUT",
            "/api/public/v1/participants/{id}",
            f"/api/public/v1/participants/{uuid7()}",
            *((422, 12.75, str(uuid7()), "validation_failed", AGENT, errors, 4) if number % 3 else succeeded()),
        )
        for number in reversed(range(ROWS))
    ]
    minutes = [
        MinuteCount(
            plan_manager_id, NOW.replace(second=0, microsecond=0) - timedelta(minutes=each), 1234 + each, 100, 23
        )
        for each in reversed(range(24 * 60))
    ]

    async def insert() -> None:
        async with server.db.transaction() as tx:
            await store.insert(tx, [RequestBatchInsert(plan_manager_id, uuid7(), NOW, ROWS, to_json(requests))])
            await store.add_minutes(tx, minutes)

    server.run(insert())


def test_requests_with_full_charts(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, new_key: Callable[..., str]
) -> None:
    new_key(plan_manager_id)
    key_id = str(
        server.run(
            server.db.one(
                UUID, "select api_key_id from api_key_plan_managers where plan_manager_id = $1", plan_manager_id
            )
        )
    )
    seed_requests(server, plan_manager_id, key_id)
    page = owner.get("/console/requests?size=100")
    assert page.text.count("validation_failed") == 66
    assert len(page.content) < MAX_SIZE


def test_activity_with_changes(
    server: RunningServer, owner: Browser, new_client: Callable[..., Client], plan_manager_id: UUID
) -> None:
    client = new_client(plan_manager_id)
    for number in range(ROWS // 2):
        person = client.create("/participants", {"first_name": "Alexandra", "last_name": f"Papadopoulos-{number}"})[
            "id"
        ]
        client.put(
            f"/participants/{person}",
            {"phone_number": "0400 000 002", "email": f"alexandra.{number}@example.com", "postcode": "2650"},
        )
    path = "/console/activity?size=100&type=participant.*&actor=api_key"
    page = wait_until(lambda: (found := owner.get(path)).text.count("<li><details>") == ROWS and found)
    assert len(page.content) < MAX_SIZE


def test_deliveries_with_several_attempts(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    values = {"url": "https://ledger.riverina-community.example.com/hooks", "event_types": ["note_type.deleted"]}
    assert owner.submit("/console/settings/webhooks", values | {"payload": "thin"}).status_code == 200
    endpoint_of = "select id from webhook_endpoints where plan_manager_id = $1"
    endpoint_id = server.run(server.db.one(UUID, endpoint_of, plan_manager_id))
    statement = """
        insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
            attempts, next_attempt_at, created_at)
        select $1, time_ordered_uuid(), $2, time_ordered_uuid(), 'single_sign_on_provider.created', 'pending',
            jsonb_build_array(
                jsonb_build_object('at', $3::text, 'status_code', 503, 'error', null, 'duration_ms', 12),
                jsonb_build_object('at', $3::text, 'status_code', null, 'error', $4::text, 'duration_ms', 12)
            ),
            clock_timestamp() + interval '1 day', clock_timestamp()
        from generate_series(1, 200)
    """
    refused = "the connection was refused, or the address is in a private network"
    server.run(server.db.execute(statement, plan_manager_id, endpoint_id, NOW.isoformat(), refused))
    path = f"/console/settings/webhooks/{endpoint_id}/deliveries?size=100&status=pending&date=last_30_days"
    page = owner.get(f"{path}&event_type=single_sign_on_provider.created")
    assert page.text.count('class="lead"') == ROWS
    assert len(page.content) < MAX_SIZE
    server.run(server.db.execute("delete from webhook_endpoints where id = $1", endpoint_id))
