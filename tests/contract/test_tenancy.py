"""Law 1, the API's half: another plan manager's ids are as good as none, wherever they are sent."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from contract.operations import BODIES, LISTS, OPERATIONS, READS, operation_name, send
from plankeeper.http.routing import PREFIX
from support.client import Client
from support.factories import INVOICE_NUMBER, MEMBER_EMAIL, PROVIDER_EMAIL, Tenant, absent_ids

ReadTenantData = Callable[[UUID | str], Any]

WITH_ID = [name for name, operation in OPERATIONS.items() if operation.path_ids]
READS_WITH_ID = [name for name in WITH_ID if name in READS]
# An endpoint that wants what never happens: it has no deliveries, also of what happened just before it was made.
SILENT_ENDPOINT = BODIES["POST /webhook-endpoints"] | {"event_types": ["exit_reason.created"]}
# One's own of what a list belongs to.
CREATE_IN_LIST: dict[str, Callable[[Client], str]] = {
    "participant_id": lambda api: api.create("/participants", {})["id"],
    "webhook_endpoint_id": lambda api: api.create("/webhook-endpoints", SILENT_ENDPOINT)["id"],
}
# Lists that are the same for every plan manager.
SHARED_LISTS = {"GET /error-catalogue": "the catalogue explains the API, and holds nobody's data"}


def stable_response(response: httpx.Response) -> tuple[int, dict[str, Any]]:
    """Without the request's id, and without the id that the request itself has sent."""
    volatile = ("request_id", "resource")
    return response.status_code, {name: value for name, value in response.json().items() if name not in volatile}


@pytest.mark.parametrize("name", WITH_ID)
def test_a_foreign_id_returns_the_same_response_as_an_unknown_id(
    tenant: Tenant, other_tenant: Tenant, tenant_data: ReadTenantData, name: str
) -> None:
    before = tenant_data(other_tenant.plan_manager_id), tenant_data(tenant.plan_manager_id)
    absent = stable_response(send(tenant.client, name, absent_ids(tenant)))
    assert absent[0] == 404
    assert absent[1]["error"] == "not_found"
    assert stable_response(send(tenant.client, name, other_tenant.ids)) == absent
    for own in OPERATIONS[name].path_ids if len(OPERATIONS[name].path_ids) > 1 else ():
        mixed = other_tenant.ids | {own: tenant.ids[own]}
        assert stable_response(send(tenant.client, name, mixed)) == absent
    assert (tenant_data(other_tenant.plan_manager_id), tenant_data(tenant.plan_manager_id)) == before


@pytest.mark.parametrize("name", READS_WITH_ID)
def test_each_id_is_found_by_its_own_plan_manager(tenant: Tenant, name: str) -> None:
    assert send(tenant.client, name, tenant.ids).status_code == 200


@pytest.mark.parametrize("name", [name for name in LISTS if name not in SHARED_LISTS])
@pytest.mark.parametrize("params", [{}, {"after": "0"}], ids=["offset", "cursor"])
def test_a_list_shows_nothing_of_another_plan_manager(
    api: Client, other_tenant: Tenant, name: str, params: dict[str, str]
) -> None:
    theirs = {each["id"] for each in _items(other_tenant.client, LISTS[name].path, other_tenant.ids)}
    assert theirs
    ids = {path_id: CREATE_IN_LIST[path_id](api) for path_id in LISTS[name].path_ids}
    response = api.get(LISTS[name].path.removeprefix(PREFIX).format(**ids), limit="1000", **params).json()
    shown = {each["id"] for each in response["data"]}
    assert not shown & theirs
    if name != "GET /events":  # where its key's own event may stand by now
        assert response["data"] == []
    assert response["pagination"]["total"] == (None if params or name == "GET /events" else 0)


def test_the_shared_lists_still_exist() -> None:
    assert set(SHARED_LISTS) <= set(LISTS)


def _items(client: Client, path: str, ids: dict[str, str]) -> list[Any]:
    items: list[Any] = client.get(path.removeprefix(PREFIX).format(**ids), limit="1000").json()["data"]
    return items


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_foreign_cursor_is_only_a_position(tenant: Tenant, other_tenant: Tenant, name: str) -> None:
    """An id need not exist to begin behind it; whose it is must make no difference to what is shown."""
    path = LISTS[name].path
    if name == "GET /team-members":  # whose cursors are opaque: tests/api/resources/team_members/test_all_teams.py
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


@pytest.mark.parametrize("member", ["account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id"])
def test_a_reference_to_a_foreign_resource_is_rejected_like_an_unknown_one(
    tenant: Tenant, other_tenant: Tenant, tenant_data: ReadTenantData, member: str
) -> None:
    before = tenant_data(tenant.plan_manager_id)
    own = f"/participants/{tenant.ids['participant_id']}"
    absent = absent_ids(tenant)[member]
    for send_ in (lambda body: tenant.client.post("/participants", body), lambda body: tenant.client.put(own, body)):
        rejected = send_({member: other_tenant.ids[member]})
        assert rejected.status_code == 400
        assert [each["field"] for each in rejected.json()["errors"]] == [member]
        assert stable_response(rejected) == stable_response(send_({member: absent}))
    assert tenant_data(tenant.plan_manager_id) == before
    assert tenant.client.put(own, {member: tenant.ids[member]}).status_code == 200


@pytest.mark.parametrize(
    "path, parameter, whose",
    [
        ("/participants", "account_manager", "account_manager_id"),
        ("/invoices", "participant_id", "participant_id"),
        ("/invoices", "provider_id", "provider_id"),
        ("/invoice-view-sessions", "invoice_id", "invoice_id"),
        ("/events", "resource_id", "participant_id"),
        ("/webhook-endpoints/{webhook_endpoint_id}/deliveries", "event_id", "event_id"),
    ],
)
def test_a_filter_by_a_foreign_id_finds_nothing(
    tenant: Tenant, other_tenant: Tenant, path: str, parameter: str, whose: str
) -> None:
    own, path = f"/participants/{tenant.ids['participant_id']}", path.format(**tenant.ids)
    assert tenant.client.put(own, {"account_manager_id": tenant.ids["account_manager_id"]}).status_code == 200
    for params in ({parameter: other_tenant.ids[whose]}, {parameter: other_tenant.ids[whose], "after": "0"}):
        assert tenant.client.get(path, **params).json()["data"] == []
    if path != "/events":
        assert len(tenant.client.get(path, **{parameter: tenant.ids[whose]}).json()["data"]) == 1


def test_every_id_filter_is_tested() -> None:
    takes_ids = {
        (operation_name(operation), field)
        for operation in LISTS.values()
        if operation.query
        for field in operation.query.__struct_fields__
        if field.endswith("_id") or field == "account_manager"
    }
    assert takes_ids == {
        ("GET /participants", "account_manager"),
        ("GET /team-members", "participant_id"),
        # tests/api/http/test_matching.py tries the external ids of another plan manager
        ("GET /participants", "external_id"),
        ("GET /participants/{participant_id}/team-members", "external_id"),
        ("GET /team-members", "external_id"),
        ("GET /providers", "external_id"),
        ("GET /invoices", "participant_id"),
        ("GET /invoices", "provider_id"),
        ("GET /invoice-view-sessions", "invoice_id"),
        ("GET /invoice-view-sessions", "user_id"),  # what was recorded: not an id of anything
        ("GET /events", "resource_id"),
        ("GET /webhook-endpoints/{webhook_endpoint_id}/deliveries", "event_id"),
    }


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
    ],
)
def test_an_import_cannot_reference_a_foreign_row(
    tenant: Tenant, other_tenant: Tenant, tenant_data: ReadTenantData, import_rows: Callable[..., Any],
    resource: str, row: dict[str, str], field: str,
) -> None:  # fmt: skip
    before = tenant_data(tenant.plan_manager_id)
    line = {name: other_tenant.ids[value] if value else "Name" for name, value in row.items()}
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
