"""Tenancy: another plan manager's id in every path, body and filter, with all conditional and idempotency headers.

The cases are made from the table of routes. An id for which there is no case fails a test.
"""

import json
import re
from collections.abc import Callable, Iterable
from itertools import product
from types import UnionType
from typing import Any, Union, get_args, get_origin
from uuid import UUID

import httpx
import msgspec
import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from contract.leaks import assert_error_leaks_nothing, assert_no_data_of, without_volatile_parts
from contract.operations import BODIES, OPERATIONS, operation_name, send
from plankeeper.core.context import WriteContext
from plankeeper.core.fields import (
    UUID_PATTERN,
    EmptyResponse,
    Query,
    UuidText,
    custom_schema,
)
from plankeeper.http.routing import PREFIX, WRITE, Operation, Router
from support.factories import Tenant, absent_ids
from support.importing import import_records
from support.sweeps import sweep

ReadTenantData = Callable[[UUID | str], Any]

# Whose id a parameter or a field takes, where the world calls it otherwise.
ID_SOURCES = {
    "account_manager": "account_manager_id", "resource_id": "participant_id", "user_id": "team_member_id",
    "parent_id": "exit_reason_category_id", "pm_provider_id": "provider_id",
}  # fmt: skip
# What the filter `id` of a list takes.
LIST_IDS = {
    "GET /participants": "participant_id",
    "GET /participants/{participant_id}/plans": "plan_id",
    "GET /participants/{participant_id}/team-members": "team_member_id",
    "GET /participants/{participant_id}/statements": "statement_id",
    "GET /team-members": "team_member_id",
    "GET /account-managers": "account_manager_id",
    "GET /exit-reasons": "exit_reason_id",
    "GET /note-types": "note_type_id",
    "GET /notes": "note_id",
    "GET /providers": "provider_id",
    "GET /invoices": "invoice_id",
    "GET /payment-runs": "payment_run_id",
    "GET /payment-runs/{payment_run_id}/payments": "payment_id",
    "GET /statement-runs": "statement_run_id",
    "GET /statement-runs/{statement_run_id}/items": "statement_item_id",
    "GET /claim-batches": "claim_batch_id",
    "GET /claim-batches/{claim_batch_id}/lines": "claim_id",
    "GET /fee-takings": "fee_taking_id",
    "GET /invoice-view-sessions": "session_id",
    "GET /webhook-endpoints": "webhook_endpoint_id",
}
# What looks like an id, and is none of a resource.
NO_IDS = {
    ("POST /participants", "service_region_id"): "a kind of region, the same for all",
    ("PUT /participants/{participant_id}", "service_region_id"): "a kind of region, the same for all",
    **dict.fromkeys(
        (
            ("GET /claim-batches/{claim_batch_id}/receipts", "id"),
            ("GET /invoices/{invoice_id}/adjustments", "id"),
            ("GET /fees", "id"),
            ("GET /fee-takings/{fee_taking_id}/lines", "id"),
        ),
        "the plan managers have none of these: test_tenancy_in_sql.py shows that the list is of one plan manager",
    ),
    ("POST /participants/{participant_id}/plans", "components"): "of this plan: test_plans.py tries other ids",
    ("PUT /participants/{participant_id}/plans/{plan_id}", "components"): "of this plan: test_plans.py tries other ids",
    **dict.fromkeys(
        (
            ("POST /notes", "resource"),
            ("POST /notes", "note_type_id"),
            ("PUT /notes/{note_id}", "note_type_id"),
            ("GET /notes", "resource_id"),
            ("GET /notes", "note_type_id"),
        ),
        "tests/api/resources/notes tries others'",
    ),
    ("POST /statement-runs/{statement_run_id}/retry", "item_ids"): "of this run: test_statement_runs.py tries others",
    ("POST /payment-runs", "invoice_ids"): "tests/api/resources/payments tries others'",
    ("POST /fee-takings", "invoice_ids"): "tests/api/resources/fees tries others'",
    ("POST /invoices/{invoice_id}/adjustments", "line_id"): "of this invoice: test_line_claims.py tries another",
    ("POST /invoices/{invoice_id}/claimed-elsewhere", "line_ids"): "of this invoice: test_line_claims.py tries another",
    ("POST /claim-batches", "invoice_ids"): "tests/api/resources/claims/test_batches.py tries others'",
    ("POST /participants/{participant_id}/team-members", "permissions"): "names, the same for all",
    ("PUT /participants/{participant_id}/team-members/{team_member_id}", "permissions"): "names, the same for all",
    **dict.fromkeys(
        (
            ("GET /invoices", "assigned_to"),
            *product(("POST /invoices", "PUT /invoices/{invoice_id}"), ("assigned_to", "line_items")),
        ),
        "tests/api/resources/invoices/test_saving.py tries others'",
    ),
    **{
        (f"{method} {path}", "external_id"): "each plan manager's own: tests/api/http/test_matching.py tries others'"
        for method, path in (
            *product(
                ("GET", "POST"),
                ("/participants", "/participants/{participant_id}/team-members", "/providers", "/invoices"),
            ),
            *product(("GET", "POST"), ("/participants/{participant_id}/plans",)),
            ("PUT", "/participants/{participant_id}/plans/{plan_id}"),
            ("GET", "/team-members"),
            ("PUT", "/participants/{participant_id}"),
            ("PUT", "/participants/{participant_id}/team-members/{team_member_id}"),
            ("PUT", "/providers/{provider_id}"),
            ("PUT", "/invoices/{invoice_id}"),
        )
    },
}
# Requests about several resources: tests/api/http/test_bulk.py sends other plan managers' ids in their items.
BULK = ("POST /participants/bulk", "POST /providers/bulk", "POST /invoices/bulk")
# Fields that no body has, unless they are those of the response.
OTHER_FIELDS = {"plan_manager", "plan_manager_id", "created_by", "user_id", "scopes", "actor"}

Case = tuple[str, str]


def id_fields(shape: type[Struct] | None) -> list[str]:
    """The fields of a shape that take ids, by name or by form; and nested objects, which someone has to look at."""
    if shape is None:
        return []
    _, components = msgspec.json.schema_components([shape], schema_hook=custom_schema)
    properties: dict[str, Any] = components[shape.__name__]["properties"]
    return [name for name, each in properties.items() if name != "after" and _takes_an_id(name, json.dumps(each))]


def _takes_an_id(name: str, schema: str) -> bool:
    is_named = bool(re.search(r"(^|_)(ids?|uuid|key|ref)$", name))
    return is_named or '"format": "uuid"' in schema or UUID_PATTERN in schema or '"$ref"' in schema


def body_cases(operations: Iterable[Operation]) -> list[Case]:
    return [(operation_name(each), field) for each in operations for field in id_fields(each.body)]


def query_cases(operations: Iterable[Operation]) -> list[Case]:
    """All but `after`, which is a position: see test_tenancy.py."""
    return [(operation_name(each), field) for each in operations for field in id_fields(each.query)]


def path_cases(operations: Iterable[Operation]) -> list[Case]:
    return [(operation_name(each), field) for each in operations for field in each.path_ids]


def id_source(name: str, field: str) -> str:
    """The name of the id that a parameter or a field takes."""
    return LIST_IDS[name] if field == "id" and name in LIST_IDS else ID_SOURCES.get(field, field)


def cases_without_id(cases: Iterable[Case], tenant: Tenant) -> set[Case]:
    """The cases for which the plan manager has no id to try."""
    return {case for case in cases if case not in NO_IDS and case[0] not in BULK and id_source(*case) not in tenant.ids}


BODY_CASES = [case for case in body_cases(OPERATIONS.values()) if case not in NO_IDS and case[0] not in BULK]
QUERY_CASES = [case for case in query_cases(OPERATIONS.values()) if case not in NO_IDS]
WITH_ID = [name for name, operation in OPERATIONS.items() if operation.path_ids]


@pytest.fixture(scope="module")
def owner(other_tenant: Tenant) -> Tenant:
    """The other plan manager, which has used every filter and every reference."""
    names = [name for operation, name in BODY_CASES if operation == "PUT /participants/{participant_id}"]
    refers = {name: other_tenant.ids[name] for name in names}
    assert other_tenant.client.put(f"/participants/{other_tenant.ids['participant_id']}", refers).is_success
    seen = {
        "invoice_id": other_tenant.ids["invoice_id"],
        "user_id": other_tenant.ids["team_member_id"],
        "user_name": "Viewer",
        "session_started": "2026-01-02T03:04:05Z",
    }
    server = other_tenant.server
    assert not server.run(import_records(server, other_tenant.plan_manager_id, "invoice-view-sessions", [seen])).errors
    return other_tenant


@pytest.fixture(scope="module")
def owner_headers(owner: Tenant) -> dict[str, dict[str, str]]:
    """For each route with an id the headers with which its owner gets a stored response, or meets a condition."""
    idempotency_key = f"used-{uuid7()}"
    headers_by_route: dict[str, dict[str, str]] = {}
    for name in WITH_ID:
        operation = OPERATIONS[name]
        path = operation.path.removeprefix(PREFIX).format(**owner.ids)
        if operation.method == "POST":
            assert send(
                owner.client, name, owner.ids, owner.client.headers() | {"Idempotency-Key": idempotency_key}
            ).is_success
        headers_by_route[name] = {"Idempotency-Key": idempotency_key}
        if (
            "GET " + operation.path.removeprefix(PREFIX) in OPERATIONS
            and "etag" in (got := owner.client.get(path)).headers
        ):
            headers_by_route[name] |= {"If-Match": got.headers["etag"], "If-None-Match": got.headers["etag"]}
    return headers_by_route


@pytest.fixture
def unchanged(tenant: Tenant, owner: Tenant, tenant_data: ReadTenantData) -> Any:
    """The data of both, with events and stored responses, is the same after a test as before."""
    before = tenant_data(tenant.plan_manager_id), tenant_data(owner.plan_manager_id)
    yield
    assert (tenant_data(tenant.plan_manager_id), tenant_data(owner.plan_manager_id)) == before


def test_every_id_of_every_route_has_a_test_case(tenant: Tenant) -> None:
    known = [*path_cases(OPERATIONS.values()), *body_cases(OPERATIONS.values()), *query_cases(OPERATIONS.values())]
    assert cases_without_id(known, tenant) == set()
    assert len(WITH_ID) > 10
    assert {field for _, field in BODY_CASES} >= {"account_manager_id", "exit_reason_category_id"}
    assert {field for _, field in QUERY_CASES} >= {"account_manager", "resource_id", "user_id", "provider_id"}


def test_the_exceptions_are_still_needed() -> None:
    known = {*body_cases(OPERATIONS.values()), *query_cases(OPERATIONS.values())}
    assert set(NO_IDS) <= known
    assert set(ID_SOURCES) <= {field for _, field in known}


def test_a_new_route_without_test_cases_is_detected(tenant: Tenant) -> None:
    class Inner(Struct):
        thing: UUID

    class Filters(Query):
        branch: UuidText | msgspec.UnsetType = msgspec.UNSET
        colour: str = ""

    class Change(Struct):
        budget_id: str
        successor: UUID
        others: list[UuidText]
        nested: Inner
        account_manager_id: UUID
        name: str

    new = Router("new")

    @new.put("/things/{thing_id}", scope=WRITE)
    async def update(ctx: WriteContext, thing_id: UUID, change: Change, query: Filters) -> EmptyResponse:
        raise NotImplementedError

    route = "PUT /things/{thing_id}"
    assert cases_without_id(path_cases(new.operations), tenant) == {(route, "thing_id")}
    assert cases_without_id(query_cases(new.operations), tenant) == {(route, "branch")}
    fields = ("budget_id", "successor", "others", "nested")
    assert cases_without_id(body_cases(new.operations), tenant) == {(route, each) for each in fields}


@pytest.mark.usefixtures("unchanged")
@sweep("name", WITH_ID)
def test_a_foreign_id_in_a_path_is_not_found_whatever_else_is_sent(
    tenant: Tenant, owner: Tenant, owner_headers: dict[str, dict[str, str]], name: str
) -> None:
    operation, absent = OPERATIONS[name], absent_ids(tenant)
    mixed = [{each: tenant.ids[each]} for each in operation.path_ids] if len(operation.path_ids) > 1 else []
    for own, more in product([{}, *mixed], ({}, owner_headers[name])):
        headers = tenant.client.headers() | more
        responses = [
            send(tenant.client, name, ids | own, headers) for ids in (absent, owner.ids, uppercased(owner.ids))
        ]
        for answer in responses:
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
            assert without_volatile_parts(answer) == without_volatile_parts(responses[0])
            assert_no_leak(owner, answer)
        if operation.method == "GET" and not operation.writes:
            path = operation.path.removeprefix(PREFIX).format(**(owner.ids | own))
            head = tenant.client.send("HEAD", path, headers=headers)
            assert (head.status_code, head.content) == (404, b"")
            assert_no_leak(owner, head)


def uppercased(ids: dict[str, str]) -> dict[str, str]:
    return {name: each.upper() for name, each in ids.items()}


def assert_no_leak(owner: Tenant, answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        assert_error_leaks_nothing(answer)
    assert_no_data_of(owner, answer)


@pytest.mark.usefixtures("unchanged")
@sweep("name, field", BODY_CASES)
def test_a_foreign_id_in_a_body_is_rejected_whatever_else_is_sent(
    tenant: Tenant, owner: Tenant, owner_headers: dict[str, dict[str, str]], name: str, field: str
) -> None:
    operation, which = OPERATIONS[name], ID_SOURCES.get(field, field)
    path = operation.path.removeprefix(PREFIX).format(**tenant.ids)
    more = {"Idempotency-Key": str(uuid7())}
    if operation.method == "PUT":
        more["If-Match"] = tenant.client.get(path).headers["etag"]
    responses = [
        tenant.client.request(operation.method, path, json=BODIES[name] | {field: value}, headers=more)
        for value in (absent_ids(tenant)[which], owner.ids[which], owner.ids[which].upper())
    ]
    for answer in responses:
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [field])
        assert without_volatile_parts(answer) == without_volatile_parts(responses[0])
        assert_no_leak(owner, answer)


@pytest.mark.usefixtures("unchanged")
@sweep("name, field", QUERY_CASES)
def test_a_foreign_id_in_a_filter_finds_nothing_whatever_else_is_sent(
    tenant: Tenant, owner: Tenant, name: str, field: str
) -> None:
    which, path = id_source(name, field), OPERATIONS[name].path.removeprefix(PREFIX).format(**tenant.ids)
    own_path = OPERATIONS[name].path.removeprefix(PREFIX).format(**owner.ids)
    assert owner.client.get(own_path, **{field: owner.ids[which]}).json()["data"], "or nothing is proved"
    headers = {"If-None-Match": "*", "Idempotency-Key": str(uuid7())}
    for params in ({}, {"after": "0"}, {"limit": "1000"}, {"offset": "0"}):
        responses = [
            tenant.client.request("GET", path, params={field: value} | params, headers=headers)
            for value in (absent_ids(tenant)[which], owner.ids[which], owner.ids[which].upper())
        ]
        for answer in responses:
            assert (answer.status_code, answer.json()["data"]) == (200, [])
            assert without_volatile_parts(answer) == without_volatile_parts(responses[0])
            assert_no_leak(owner, answer)


def fields_of_response(answer: Any) -> set[str]:
    """The fields of a response, in any of its views."""
    if get_origin(answer) in (Union, UnionType):
        return set().union(*(fields_of_response(each) for each in get_args(answer)))
    return set(answer.__struct_encode_fields__)


@pytest.mark.usefixtures("unchanged")
@sweep("name", [name for name, each in OPERATIONS.items() if each.body and name not in BULK])
def test_a_body_accepts_only_its_own_fields(tenant: Tenant, owner: Tenant, name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.body
    foreign = {"id": owner.ids["participant_id"], "plan_manager_id": owner.client.plan_manager_id}
    path = operation.path.removeprefix(PREFIX).format(**tenant.ids)
    answers = fields_of_response(operation.response_type)
    others = (OTHER_FIELDS if operation.read_only else OTHER_FIELDS | answers - {"s3_key"}) | {"id"}
    fields = sorted(others - operation.read_only.difference({"id"}) - set(operation.body.__struct_encode_fields__))
    body = BODIES[name] | {field: foreign.get(field, owner.ids["participant_id"]) for field in fields}
    answer = tenant.client.request(operation.method, path, json=body)
    assert (answer.status_code, sorted(each["field"] for each in answer.json()["errors"])) == (400, fields)
    assert_no_leak(owner, answer)
    assert {"id", "plan_manager_id"} & others


@pytest.mark.usefixtures("unchanged")
# Bank details are sent whole, and what is sent is never what is shown.
@sweep(
    "name",
    [name for name, each in OPERATIONS.items() if each.method == "PUT" and each.body and "bank-details" not in name],
)
def test_a_read_only_field_with_a_foreign_id_changes_nothing(tenant: Tenant, owner: Tenant, name: str) -> None:
    operation = OPERATIONS[name]
    path = operation.path.removeprefix(PREFIX).format(**tenant.ids)
    before = tenant.client.get(path).json()
    foreign = {"plan_manager_id": owner.client.plan_manager_id}
    body = {each: foreign.get(each, owner.ids["participant_id"]) for each in operation.read_only - {"id"}}
    answer = tenant.client.put(path, body)
    assert (answer.status_code, {each: answer.json()[each] for each in before}) == (200, before)
    assert_no_leak(owner, answer)
