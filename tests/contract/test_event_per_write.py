"""A write and its event are in one transaction, which is committed before the response."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec import Struct

from contract.conftest import ChangedTenant
from contract.operations import BODIES, OPERATIONS, WRITES, content_of, ids_of, send
from plankeeper.http.routing import PREFIX
from support.cluster import execute
from support.factories import Tenant, absent_ids
from support.fees import FEE_INVOICE_ID
from support.sweeps import sweep

ReadTenantData = Callable[[UUID], Any]

# The events that each write makes. One that a new operation lacks fails the sweep: say here what it records.
EVENTS = {
    "POST /participants": ["participant.created"],
    "POST /participants/bulk": ["participant.created"],
    "PUT /participants/{participant_id}": ["participant.updated"],
    "DELETE /participants/{participant_id}": ["participant.deleted", "plan.deleted", "team_member.deleted"],
    "POST /participants/{participant_id}/plans": ["plan.created"],
    "PUT /participants/{participant_id}/plans/{plan_id}": ["participant.updated", "plan.updated"],
    "DELETE /participants/{participant_id}/plans/{plan_id}": ["participant.updated", "plan.deleted"],
    "POST /participants/{participant_id}/team-members": ["team_member.created"],
    "PUT /participants/{participant_id}/team-members/{team_member_id}": ["team_member.updated"],
    "DELETE /participants/{participant_id}/team-members/{team_member_id}": ["team_member.deleted"],
    "POST /exit-reasons": ["exit_reason.created"],
    "PUT /exit-reasons/{exit_reason_id}": ["exit_reason.updated"],
    "DELETE /exit-reasons/{exit_reason_id}": ["exit_reason.deleted"],
    "POST /note-types": ["note_type.created"],
    "PUT /note-types/{note_type_id}": ["note_type.updated"],
    "DELETE /note-types/{note_type_id}": ["note_type.deleted"],
    "POST /notes": ["note.created"],
    "PUT /notes/{note_id}": ["note.updated"],
    "DELETE /notes/{note_id}": ["note.deleted"],
    "POST /providers": ["provider.created"],
    "POST /providers/bulk": ["provider.created"],
    "POST /invoices": ["invoice.created"],
    "POST /invoices/bulk": ["invoice.created"],
    "PUT /invoices/{invoice_id}": ["invoice.updated"],
    "PUT /providers/{provider_id}": ["provider.updated"],
    "POST /invoices/{invoice_id}/hold": ["invoice.held"],
    "POST /invoices/{invoice_id}/release": ["invoice.released"],
    "POST /invoices/{invoice_id}/cancel": ["invoice.cancelled"],
    "POST /invoices/{invoice_id}/reopen": ["invoice.reopened"],
    "POST /invoices/{invoice_id}/wont-claim": ["invoice.wont_claim"],
    "POST /invoices/{invoice_id}/request-approval": ["invoice.approval_requested"],
    "POST /invoices/{invoice_id}/approve": ["invoice.approved"],
    "POST /invoices/{invoice_id}/reject": ["invoice.rejected"],
    "POST /invoices/{invoice_id}/ignore-warning": ["invoice.warning_ignored"],
    "POST /invoices/{invoice_id}/restore-warning": ["invoice.warning_restored"],
    "POST /invoices/{invoice_id}/lines/{line_id}/cancel": ["invoice.line_changed"],
    "POST /invoices/{invoice_id}/lines/{line_id}/reopen": ["invoice.line_changed"],
    "POST /invoices/{invoice_id}/lines/{line_id}/retry": ["invoice.line_changed"],
    "POST /invoices/{invoice_id}/lines/{line_id}/split": ["invoice.line_changed"],
    "PUT /invoices/{invoice_id}/document": ["invoice.document_added"],
    "POST /participants/{participant_id}/statements": ["statement.created"],
    "POST /webhook-endpoints": ["webhook_endpoint.created"],
    "PUT /webhook-endpoints/{webhook_endpoint_id}": ["webhook_endpoint.updated"],
    "DELETE /webhook-endpoints/{webhook_endpoint_id}": ["webhook_endpoint.deleted"],
    "POST /webhook-endpoints/{webhook_endpoint_id}/rotate-secret": ["webhook_endpoint.secret_rotated"],
    "POST /webhook-endpoints/{webhook_endpoint_id}/test": ["webhook_endpoint.tested"],
    "POST /webhook-endpoints/{webhook_endpoint_id}/replay": ["webhook_endpoint.replayed"],
    "POST /webhook-deliveries/{webhook_delivery_id}/retry": ["webhook_delivery.retried"],
    "POST /claim-batches": ["claim_batch.created", "invoice.line_changed"],
    "GET /claim-batches/{claim_batch_id}/file": ["claim_batch.downloaded"],
    "POST /claim-batches/{claim_batch_id}/submit": ["claim_batch.submitted", "invoice.line_changed"],
    "POST /claim-batches/{claim_batch_id}/cancel": ["claim_batch.cancelled", "invoice.line_changed"],
    "POST /statement-runs": ["statement_run.started"],
    "POST /statement-runs/{statement_run_id}/retry": ["statement_run.retried"],
    "POST /payment-runs": ["invoice.line_changed", "payment_run.created"],
    "POST /fees": [],  # without a support catalogue, no fee is made: tests/api/resources/fees has one
    "POST /fee-takings": ["invoice.line_changed"],
    "GET /payment-runs/{payment_run_id}/file": ["payment_run.downloaded"],
    "POST /payment-runs/{payment_run_id}/mark-paid": ["invoice.line_changed", "payment_run.paid"],
    "POST /payment-runs/{payment_run_id}/cancel": ["invoice.line_changed", "payment_run.cancelled"],
    "POST /payment-runs/{payment_run_id}/payments/{payment_id}/returned": [
        "bank_details.proposed",
        "invoice.line_changed",
        "payment_run.payment_returned",
    ],
    "PUT /providers/{provider_id}/bank-details": ["bank_details.proposed"],
    "PUT /participants/{participant_id}/bank-details": ["bank_details.proposed"],
    "POST /claim-batches/{claim_batch_id}/results": ["claim_batch.results_applied", "invoice.line_changed"],
    "POST /claim-batches/{claim_batch_id}/receipts": ["claim_batch.receipt_recorded"],
    "POST /invoices/{invoice_id}/claimed-elsewhere": ["invoice.claimed_elsewhere"],
    "POST /invoices/{invoice_id}/lines/{line_id}/claim-result": ["invoice.line_changed"],
    "POST /invoices/{invoice_id}/lines/{line_id}/claim-rest": ["invoice.line_changed"],
    "POST /invoices/{invoice_id}/adjustments": ["invoice.adjusted"],
    "DELETE /providers/{provider_id}": ["provider.deleted"],
}
# Writes whose response is a new record of the one in the path.
ABOUT_THE_PATH = {
    "GET /claim-batches/{claim_batch_id}/file",
    "POST /claim-batches/{claim_batch_id}/receipts",
    "POST /invoices/{invoice_id}/adjustments",
}
# Writes that touch another table than their tag's.
RECORDED_ELSEWHERE = {
    "POST /webhook-endpoints/{webhook_endpoint_id}/test": "webhook_deliveries",
    "POST /claim-batches/{claim_batch_id}/receipts": "claim_receipts",
}

RECORDING = [name for name, types in EVENTS.items() if types]
UPDATES = [name for name, operation in WRITES.items() if operation.method == "PUT"]


def table_of(name: str) -> str:
    return RECORDED_ELSEWHERE.get(name, WRITES[name].tag)


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    resource_kind: str
    resource_id: str
    actor_kind: str
    data: str | None
    previous: str | None


def recorded_events(tenant: Tenant, request_id: str) -> list[EventRow]:
    return tenant.server.run(
        tenant.server.db.rows(
            EventRow,
            """
            select type, resource_kind, resource_id, actor_kind, data::text, previous::text
            from events where plan_manager_id = $1 and request_id = $2 order by type
            """,
            tenant.plan_manager_id,
            request_id,
        )
    )


def rejecting_writes(tenant: Tenant, how: str, table: str) -> AbstractContextManager[None]:
    """Writes to a table fail in the database: at once, or when the transaction commits."""
    what = "insert or update or delete"
    kind, when = {
        "at once": ("trigger", f"before {what} on {table}"),
        "at the commit": ("constraint trigger", f"after {what} on {table} deferrable initially deferred"),
    }[how]
    return _rejecting_trigger(
        tenant,
        f"create {kind} refusing {when} for each row execute function refuse()",
        f"drop trigger refusing on {table}",
    )


@contextmanager
def _rejecting_trigger(tenant: Tenant, begin: str, end: str) -> Iterator[None]:
    create_function = """
        create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'refused by the test' using errcode = 'P0001'; end $$
    """
    execute(tenant.server.dsn, create_function, begin)
    try:
        yield
    finally:
        execute(tenant.server.dsn, end, "drop function refuse()")


def _singular_end(found: re.Match[str]) -> str:
    return {"che": "ch", "ie": "y"}[found[1]]


def test_every_write_declares_the_events_it_records() -> None:
    assert set(EVENTS) == set(WRITES)
    assert {name for name in WRITES if OPERATIONS[name].body} <= set(BODIES)


# What deletes records comes last: the others need them.
@sweep("name", sorted(RECORDING, key=lambda name: name.startswith("DELETE")))
def test_a_write_records_its_events(changed_tenant: ChangedTenant, name: str) -> None:
    changed_tenant.check(lambda tenant: check_events(tenant, name))


def check_events(tenant: Tenant, name: str) -> None:
    """A write succeeds, and records the events that it declares."""
    response = send(tenant.client, name, tenant.ids)
    assert response.status_code == WRITES[name].status
    check_location(tenant, name, response)
    events = recorded_events(tenant, response.headers["x-request-id"])
    assert [each.type for each in events] == EVENTS[name]
    assert {each.actor_kind for each in events} == {"api_key"}
    kind = re.sub("(che|ie)$", _singular_end, WRITES[name].tag.removesuffix("s"))
    kinds = (kind, WRITES[name].tag)  # bank details have no singular
    if name == "POST /fee-takings":  # it has no event of its own besides those of its invoices
        assert [each.resource_id for each in events] == [FEE_INVOICE_ID]
        return
    main = next(each for each in events if each.resource_kind in kinds)
    ids = ids_of(name, tenant.ids)
    assert main.resource_id == own_id(name, response, ids)
    reported = (main.data is not None, main.previous is not None)
    expected = {"POST": (True, False), "PUT": (True, True), "DELETE": (False, True)}.get(WRITES[name].method)
    is_action = ids is not tenant.ids and not name.endswith("/receipts")
    assert reported == ((True, True) if is_action else expected)


# Writes that return no resource with a path of its own.
WITHOUT_LOCATION = {
    "POST /claim-batches/{claim_batch_id}/receipts", "POST /claim-batches/{claim_batch_id}/results", "POST /fees",
    "POST /invoices/{invoice_id}/adjustments", "POST /invoices/bulk", "POST /participants/bulk", "POST /providers/bulk",
    "POST /payment-runs/{payment_run_id}/payments/{payment_id}/returned",
    "POST /webhook-endpoints/{webhook_endpoint_id}/replay", "POST /webhook-endpoints/{webhook_endpoint_id}/test",
    # The response has a secret, which a GET of the resource doesn't return.
    "POST /webhook-endpoints", "POST /webhook-endpoints/{webhook_endpoint_id}/rotate-secret",
    "PUT /invoices/{invoice_id}/document",
}  # fmt: skip
# Responses with more fields than that of a GET: only the version of their tag is the same.
WITH_MORE_FIELDS = {"POST /invoices", "PUT /invoices/{invoice_id}", "POST /fee-takings"}


def check_location(tenant: Tenant, name: str, response: httpx.Response) -> None:
    """A GET of the resource that a write returns has the same tag."""
    headers = response.headers
    expected = WRITES[name].method in ("POST", "PUT") and name not in WITHOUT_LOCATION
    has_file_tag = name == "PUT /invoices/{invoice_id}/document"  # that of the file, which the response describes
    assert ("content-location" in headers, "etag" in headers) == (expected, expected or has_file_tag)
    if expected:
        read = tenant.client.get(headers["content-location"].removeprefix(PREFIX))
        versions = (read.headers["etag"].partition("-")[0], headers["etag"].partition("-")[0])
        assert read.headers["etag"] == headers["etag"] or (name in WITH_MORE_FIELDS and versions[0] == versions[1])


def own_id(name: str, response: httpx.Response, ids: dict[str, str]) -> str:
    """The id of the resource of a write, from its response or its path. A returned payment is a change of its run."""
    operation = WRITES[name]
    path_id = ids[list(operation.path_ids)[-1]] if operation.path_ids else ""
    if operation.tag == "payment_runs" and operation.path_ids:
        return ids["payment_run_id"]
    if operation.receive_file or name in ABOUT_THE_PATH:
        return path_id
    created = response.json()["data"][0] if name.endswith("/bulk") else response.json()
    return str(created.get("id") or path_id)


@pytest.fixture
def unchanged(tenant: Tenant, tenant_data: ReadTenantData) -> Iterator[None]:
    """The plan manager's data is the same after all cases of a sweep as before."""
    before = tenant_data(tenant.plan_manager_id)
    yield
    assert tenant_data(tenant.plan_manager_id) == before


@pytest.fixture
def rejected_events(tenant: Tenant, how: str) -> Iterator[None]:
    with rejecting_writes(tenant, how, "events"):
        yield


@pytest.mark.parametrize("how", ["at once", "at the commit"])
@pytest.mark.usefixtures("unchanged", "rejected_events")
@sweep("name", RECORDING)
def test_a_write_is_rolled_back_when_its_event_cannot_be_stored(tenant: Tenant, name: str) -> None:
    response = send(tenant.client, name, tenant.ids)
    assert (response.status_code, response.json()["error"]) == (500, "internal_error")
    assert "refused by the test" not in response.text


@pytest.mark.usefixtures("unchanged")
@sweep("table", dict.fromkeys(map(table_of, RECORDING)))
def test_a_write_that_fails_at_commit_leaves_no_event(tenant: Tenant, table: str) -> None:
    names = [name for name in RECORDING if table_of(name) == table]
    with rejecting_writes(tenant, "at the commit", table):
        responses = {name: send(tenant.client, name, tenant.ids) for name in names}
    found = {name: (each.status_code, each.json().get("error")) for name, each in responses.items()}
    assert found == dict.fromkeys(names, (500, "internal_error"))


@pytest.mark.usefixtures("unchanged")
@sweep("name", WRITES)
def test_a_rejected_write_records_no_event(tenant: Tenant, name: str) -> None:
    if WRITES[name].path_ids:
        assert send(tenant.client, name, absent_ids(tenant)).status_code == 404
    if WRITES[name].body:
        path = WRITES[name].path.removeprefix(PREFIX).format(**tenant.ids)
        rejected = tenant.client.request(WRITES[name].method, path, json=BODIES[name] | {"unknown": 1})
        assert rejected.status_code == 400


def test_a_write_that_violates_a_constraint_records_no_event(fresh_tenant: Tenant, tenant_data: ReadTenantData) -> None:
    team = f"/participants/{fresh_tenant.ids['participant_id']}/team-members"
    fresh_tenant.client.create(team, {"first_name": "First", "contact_priority": 2})
    before = tenant_data(fresh_tenant.plan_manager_id)
    for taken in ({"first_name": "Second", "contact_priority": 2}, {"email": "member@example.com"}):
        assert fresh_tenant.client.post(team, taken).status_code == 409
    assert (
        fresh_tenant.client.put(f"{team}/{fresh_tenant.ids['team_member_id']}", {"contact_priority": 2}).status_code
        == 409
    )
    assert tenant_data(fresh_tenant.plan_manager_id) == before


@sweep("name", UPDATES)
def test_an_update_that_changes_nothing_writes_neither_row_nor_event(
    changed_tenant: ChangedTenant, tenant_data: ReadTenantData, name: str
) -> None:
    changed_tenant.check(lambda tenant: check_repeated_update(tenant, tenant_data, name))


def check_repeated_update(tenant: Tenant, tenant_data: ReadTenantData, name: str) -> None:
    """An update, repeated, writes nothing."""
    path = WRITES[name].path.removeprefix(PREFIX).format(**tenant.ids)
    changed = send(tenant.client, name, tenant.ids)
    assert changed.status_code == 200
    before = tenant_data(tenant.plan_manager_id)
    has_optional_fields = WRITES[name].body and not name.endswith("/bank-details")
    for content in (content_of(name), {"json": {}}) if has_optional_fields else (content_of(name),):
        with rejecting_writes(tenant, "at once", WRITES[name].tag):
            unchanged = tenant.client.request("PUT", path, **content)
        assert (unchanged.status_code, unchanged.json()) == (200, changed.json())
    assert tenant_data(tenant.plan_manager_id) == before
