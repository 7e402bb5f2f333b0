"""Tenancy in the API: the ids of another plan manager are treated as unknown, wherever they are sent."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from contract.operations import BODIES, LISTS
from plankeeper.http.routing import PREFIX
from support.client import Client
from support.factories import INVOICE_NUMBER, MEMBER_EMAIL, PROVIDER_EMAIL, Tenant
from support.sweeps import sweep

ReadTenantData = Callable[[UUID | str], Any]

# An endpoint that wants what never happens: it has no deliveries, also of what happened just before it was made.
SILENT_ENDPOINT = BODIES["POST /webhook-endpoints"] | {"event_types": ["exit_reason.created"]}
# One's own of what a list belongs to.
CREATE_IN_LIST: dict[str, Callable[[Client], str]] = {
    "participant_id": lambda api: api.create("/participants", {})["id"],
    "webhook_endpoint_id": lambda api: api.create("/webhook-endpoints", SILENT_ENDPOINT)["id"],
}
# Lists that are the same for every plan manager.
SHARED_LISTS = {
    "GET /error-catalogue": "the catalogue explains the API, and holds nobody's data",
    "GET /support-items": "the agency's published table",
}

# Lists of a part of a resource that always has one.
NEVER_EMPTY = {
    "GET /fee-takings/{fee_taking_id}/lines",
    "GET /statement-runs/{statement_run_id}/items",
    "GET /claim-batches/{claim_batch_id}/lines",
    "GET /payment-runs/{payment_run_id}/payments",
}
# Lists that are empty before money has moved. Their statements are in the sweep of test_tenancy_in_sql.py.
EMPTY_AT_FIRST = {
    "GET /claim-batches/{claim_batch_id}/receipts",
    "GET /invoices/{invoice_id}/adjustments",
    "GET /recoveries",
}
WITHOUT_TOTAL = {"GET /events", "GET /webhook-endpoints/{webhook_endpoint_id}/deliveries"}  # they support only cursors


@pytest.mark.parametrize("params", [{}, {"after": "0"}], ids=["offset", "cursor"])
@sweep("name", [name for name in LISTS if name not in SHARED_LISTS.keys() | NEVER_EMPTY | EMPTY_AT_FIRST])
def test_a_list_shows_nothing_of_another_plan_manager(
    new_client: Callable[..., Client], other_tenant: Tenant, name: str, params: dict[str, str]
) -> None:
    api = new_client()
    theirs = {each["id"] for each in _items(other_tenant.client, LISTS[name].path, other_tenant.ids)}
    assert theirs
    ids = {path_id: CREATE_IN_LIST[path_id](api) for path_id in LISTS[name].path_ids}
    response = api.get(LISTS[name].path.removeprefix(PREFIX).format(**ids), limit="1000", **params).json()
    shown = {each["id"] for each in response["data"]}
    assert not shown & theirs
    if name != "GET /events":  # where its key's own event may stand by now
        assert response["data"] == []
    assert response["pagination"]["total"] == (None if params or name in WITHOUT_TOTAL else 0)


def test_the_shared_lists_still_exist() -> None:
    assert SHARED_LISTS.keys() | NEVER_EMPTY <= LISTS.keys()


def _items(client: Client, path: str, ids: dict[str, str]) -> list[Any]:
    items: list[Any] = client.get(path.removeprefix(PREFIX).format(**ids), limit="1000").json()["data"]
    return items


@sweep("name", sorted(LISTS.keys() - EMPTY_AT_FIRST))
def test_a_foreign_cursor_is_only_a_position(tenant: Tenant, other_tenant: Tenant, name: str) -> None:
    """An id need not exist to begin behind it; whose it is must make no difference to what is shown."""
    path = LISTS[name].path
    # The cursors of the former are opaque, and there is no catalogue: tests/api has tests of their own.
    if name in ("GET /team-members", "GET /support-items"):
        return
    own = _items(tenant.client, path, tenant.ids)
    cursor = "error_code" if name in SHARED_LISTS else "id"
    foreign = _items(other_tenant.client, path, other_tenant.ids)[0][cursor]
    response = tenant.client.get(path.removeprefix(PREFIX).format(**tenant.ids), after=str(foreign))
    if name == "GET /events":  # whose cursors have to be events of this plan manager
        assert response.status_code == 400
        return
    assert response.status_code == 200
    assert all(each in own for each in response.json()["data"])


def test_the_status_of_a_foreign_invoice_is_not_revealed(api: Client, other_tenant: Tenant) -> None:
    question = {"provider_email": PROVIDER_EMAIL, "invoice_number": INVOICE_NUMBER}
    assert other_tenant.client.post("/invoices/status", question).status_code == 200
    assert api.post("/invoices/status", question).status_code == 404


def test_one_email_can_be_a_user_of_two_plan_managers(tenant: Tenant, other_tenant: Tenant) -> None:
    team = f"/participants/{tenant.ids['participant_id']}/team-members"
    assert [each["email"] for each in tenant.client.get(team).json()["data"]] == [MEMBER_EMAIL]
    [theirs] = _items(other_tenant.client, f"/participants/{other_tenant.ids['participant_id']}/team-members", {})
    assert theirs["email"] == MEMBER_EMAIL
    assert theirs["user_id"] != tenant.ids["team_member_id"]


@pytest.mark.parametrize(
    "resource, row, field",
    [
        ("participants", {"account_manager_id": "account_manager_id"}, "account_manager_id"),
        ("participants", {"exit_reason_category_id": "exit_reason_category_id"}, "exit_reason_category_id"),
        ("team-members", {"participant_id": "participant_id", "first_name": ""}, "participant_id"),
        ("exit-reasons", {"parent_id": "exit_reason_category_id", "name": ""}, "parent_id"),
        (
            "notes",
            {
                "resource_kind": "=participant",
                "resource_id": "participant_id",
                "note_type": "=noted_type.note_type",
                "text": "",
            },
            "resource_id",
        ),
    ],
)
def test_an_import_cannot_reference_a_foreign_row(
    tenant: Tenant, other_tenant: Tenant, tenant_data: ReadTenantData, import_rows: Callable[..., Any],
    resource: str, row: dict[str, str], field: str,
) -> None:  # fmt: skip
    before = tenant_data(tenant.plan_manager_id)
    line = {
        name: value[1:] if value.startswith("=") else other_tenant.ids[value] if value else "Name"
        for name, value in row.items()
    }
    report = import_rows(tenant.client, resource, [line])
    assert [each.field for each in report.errors] == [field]
    assert tenant_data(tenant.plan_manager_id) == before


@pytest.mark.parametrize(
    "resource, whose, more",
    [
        ("participants", "participant_id", {"first_name": "Taken"}),
        ("providers", "provider_id", {"entity_name": "Taken"}),
        ("note-types", "note_type_id", {"note_type": "Taken"}),
        ("account-managers", "account_manager_id", {"first_name": "Taken"}),
        ("exit-reasons", "exit_reason_category_id", {"name": "Taken"}),
        ("invoices", "invoice_id", {"invoice_number": "Taken"}),
        (
            "invoice-view-sessions",
            "session_id",
            {"invoice_id": "", "user_id": "u", "user_name": "U", "session_started": "2026-01-02T03:04:05Z"},
        ),
    ],
)
def test_an_import_with_a_foreign_id_creates_its_own_row(
    api: Client, other_tenant: Tenant, tenant_data: ReadTenantData, import_rows: Callable[..., Any],
    resource: str, whose: str, more: dict[str, str],
) -> None:  # fmt: skip
    before = tenant_data(other_tenant.plan_manager_id)
    line = {name: value or str(uuid7()) for name, value in more.items()}
    ident: Any = other_tenant.ids[whose] if whose != "note_type_id" else int(other_tenant.ids[whose])
    report = import_rows(api, resource, [{"id": ident, **line}])
    assert (report.errors, report.counts.created, report.counts.changed) == ([], 1, 0)
    assert tenant_data(other_tenant.plan_manager_id) == before


def test_an_invoice_with_a_foreign_participant_and_provider_has_neither(
    api: Client, other_tenant: Tenant, import_rows: Callable[..., Any]
) -> None:
    line = {
        "invoice_number": "N-2", "invoice_date": "2026-01-02",
        "participant_id": other_tenant.ids["participant_id"], "pm_provider_id": other_tenant.ids["provider_id"],
    }  # fmt: skip
    assert not import_rows(api, "invoices", [line]).errors
    [invoice] = api.get("/invoices", invoice_number="N-2").json()["data"]
    assert invoice["state_management"]["errors"] == ["missing_participant", "missing_provider"]
