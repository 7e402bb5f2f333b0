"""Each operation declares its error codes: each of them can be provoked, and the tests' clients accept no other."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from uuid_utils.compat import uuid7

from contract.conftest import ChangedTenant
from contract.operations import ALL_OPERATIONS, BODIES, OPERATIONS, RESULTS, content_of, ids_of, operation_name
from plankeeper.access.api_keys import service
from plankeeper.core.context import SYSTEM, IdempotencyKey, WriteContext
from plankeeper.core.errors import CODES, ErrorCode
from plankeeper.http.idempotency.service import get_or_claim
from plankeeper.http.openapi.document import error_codes
from plankeeper.http.routing import PREFIX, Operation
from support.claimed_records import CLAIMED_INVOICE_ID
from support.client import ALL_SCOPES, DOCUMENT, Client
from support.cluster import execute
from support.factories import Tenant, absent_ids, filled, import_invoice
from support.importing import import_records
from support.payments import PayingOffice
from support.server import RunningServer
from support.sweeps import sweep

# Servers with other settings, which all tests of this module share, by those settings.
OTHER_SERVERS: dict[str, RunningServer] = {}


@pytest.fixture(scope="module", autouse=True)
def other_servers() -> Iterator[None]:
    yield
    while OTHER_SERVERS:
        OTHER_SERVERS.popitem()[1].stop()


class Requests:
    """Sends the request of an operation, right in all but what the arguments say."""

    def __init__(self, tenant: Tenant, name: str) -> None:
        self.tenant = tenant
        self.operation: Operation = ALL_OPERATIONS[name]
        self.body: dict[str, Any] | None = BODIES.get(name)

    def send(
        self,
        *,
        headers: dict[str, str | None] | None = None,
        ids: dict[str, str] | None = None,
        client: Client | None = None,
        **more: Any,
    ) -> httpx.Response:
        ids = ids_of(operation_name(self.operation), self.tenant.ids | (ids or {}))
        path = self.operation.path.removeprefix(PREFIX).format(**ids)
        if "content" not in more and "json" not in more:
            more |= content_of(operation_name(self.operation)) if self.operation.method != "GET" else {}
        return (client or self.tenant.client).request(self.operation.method, path, headers=headers or {}, **more)

    def new_key(
        self, scopes: Sequence[str] | None = None, lifetime: timedelta | None = None, **more: Any
    ) -> dict[str, Any]:
        """The header of a new key."""

        async def make() -> str:
            server, plan_manager_id = self.tenant.server, self.tenant.plan_manager_id
            async with server.db.transaction() as tx:
                ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
                return await service.create(ctx, "test", [plan_manager_id], scopes or ALL_SCOPES, lifetime, **more)

        return {"Authorization": f"Bearer {self.tenant.server.run(make())}"}

    def without_handler(self, error: Exception) -> httpx.Response:
        """The response if the handler raises an exception."""

        async def fail(*_: Any, **__: Any) -> None:
            raise error

        handler = self.operation.handler
        object.__setattr__(self.operation, "handler", fail)
        try:
            return self.send()
        finally:
            object.__setattr__(self.operation, "handler", handler)

    @contextmanager
    def server_with(self, **changes: Any) -> Iterator[Client]:
        """A client of another server with the same database."""
        name = repr(changes)
        if name not in OTHER_SERVERS:
            OTHER_SERVERS[name] = RunningServer(self.tenant.server.dsn, **changes).start()
        client = Client(OTHER_SERVERS[name].url, self.tenant.client.key, self.tenant.client.plan_manager_id)
        yield client
        client.http.close()


def json_content(content: bytes, kind: str = "application/json") -> dict[str, Any]:
    return {"content": content, "headers": {"Content-Type": kind}}


def other_scope(requests: Requests) -> httpx.Response:
    scope = "read" if "write" in requests.operation.required_scopes else "write"
    return requests.send(headers=requests.new_key([scope]))


# The header of a key that may send one request in a minute, by plan manager.
LIMITED_KEYS: dict[UUID, dict[str, Any]] = {}


def second_in_a_minute(requests: Requests) -> httpx.Response:
    """Requests without effect, of a key that all operations share: up to three, because a minute can end meanwhile."""
    plan_manager_id = requests.tenant.plan_manager_id
    if plan_manager_id not in LIMITED_KEYS:
        LIMITED_KEYS[plan_manager_id] = requests.new_key(rate_limit=1)
    for _ in range(3):
        response = requests.send(headers=LIMITED_KEYS[plan_manager_id], params={"unknown": "1"})
        if response.status_code == 429:
            break
    return response


def absent(requests: Requests) -> httpx.Response:
    if requests.operation.path_ids:
        return requests.send(ids=absent_ids(requests.tenant))
    return requests.send(json=(requests.body or {}) | {"invoice_number": "none"})


def reused_key(requests: Requests) -> httpx.Response:
    headers = {"Idempotency-Key": str(uuid7())}
    assert requests.send(headers=headers).is_success
    if requests.operation.receive_file:
        return requests.send(headers=headers, content=RESULTS + b"430000001,X,,ERROR")
    [name, value] = next(iter((requests.body or {"item_ids": []}).items()))
    other = value + "x" if isinstance(value, str) else [*value, {}]
    others = {
        "since": "2026-01-02T03:04:06Z",
        "code": "missing_participant",
        "date": "2026-01-16",
        "paid_on": "2026-10-18",
        "month": "2026-02",
        "item_ids": [str(uuid7())],
        "invoice_ids": [CLAIMED_INVOICE_ID] * 2,
        "outcome": "cancelled",
    }
    other = others.get(name, other)
    return requests.send(headers=headers, json=(requests.body or {}) | {name: other})


def without_secret_key(requests: Requests) -> httpx.Response:
    if requests.operation.path.endswith("/payment-runs"):  # the invoice of the usual request is paid by now
        invoice = PayingOffice(requests.tenant.server, requests.tenant.client).invoice("5.00")
        with requests.server_with(secret_key_file=None) as client:
            return requests.send(client=client, json=(requests.body or {}) | {"invoice_ids": [invoice]})
    with requests.server_with(secret_key_file=None) as client:
        return requests.send(client=client)


def no_more_endpoints(requests: Requests) -> httpx.Response:
    with requests.server_with(max_webhook_endpoints=0) as client:
        return requests.send(client=client)


def inactive(requests: Requests) -> httpx.Response:
    path = f"/webhook-endpoints/{requests.tenant.ids['webhook_endpoint_id']}"
    requests.tenant.client.put(path, {"active": False}).raise_for_status()
    return requests.send()


def taken_priority(requests: Requests) -> httpx.Response:
    team = f"/participants/{requests.tenant.ids['participant_id']}/team-members"
    requests.tenant.client.create(team, {"first_name": "Bo", "contact_priority": 2})
    return requests.send(json={"first_name": "Cy", "contact_priority": 2})


def without_email(requests: Requests) -> httpx.Response:
    team = f"/participants/{requests.tenant.ids['participant_id']}/team-members"
    member = requests.tenant.client.create(team, {"first_name": "Bo"})["id"]
    return requests.send(ids={"team_member_id": member}, json={"first_name": "Bo", "permissions": ["view_budget"]})


def used_exit_reason(requests: Requests) -> httpx.Response:
    reason = {"exit_reason_subcategory_id": requests.tenant.ids["exit_reason_id"]}
    requests.tenant.client.create("/participants", reason)
    return requests.send()


def used_note_type(requests: Requests) -> httpx.Response:
    note = BODIES["POST /notes"] | {"note_type_id": int(requests.tenant.ids["note_type_id"])}
    requests.tenant.client.create("/notes", note)
    return requests.send()


def set_line(requests: Requests, line_id: str, change: str) -> None:
    place = f"plan_manager_id = '{requests.tenant.plan_manager_id}' and id = '{line_id}'"
    execute(requests.tenant.server.dsn, f"update invoice_lines set {change} where {place}")


def locked_invoice(requests: Requests) -> httpx.Response:
    if requests.operation.path.endswith("/submit"):
        batch = requests.tenant.client.create("/claim-batches", {"invoice_ids": [CLAIMED_INVOICE_ID]})
        [claim] = requests.tenant.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]
        set_line(requests, claim["line_id"], "open_payment_run = 'P000001'")
        return requests.send(ids={"submit_claim_batch_id": batch["id"]})
    invoice = {"id": requests.tenant.ids["invoice_id"], "line_items": [{"claim_status": "paid"}]}
    server, plan_manager_id = requests.tenant.server, requests.tenant.plan_manager_id
    assert not server.run(import_records(server, plan_manager_id, "invoices", [invoice])).errors
    action = ids_of(operation_name(requests.operation), requests.tenant.ids)
    if requests.operation.path.endswith("/claim-result"):
        set_line(requests, action["line_id"], "open_payment_run = 'P000001'")
        return requests.send(json=content_of(operation_name(requests.operation))["json"] | {"replaces_result": True})
    if requests.operation.path.endswith(
        ("/claimed-elsewhere", "/claim-rest", "/adjustments", "/retry", "/lines/{line_id}/reopen")
    ):
        state = "claim_status = 'new', " if requests.operation.path.endswith("/claimed-elsewhere") else ""
        set_line(requests, action["line_id"], f"{state}open_payment_run = 'P000001'")
        return requests.send()
    if action is not requests.tenant.ids:
        line = {"id": action["line_id"], "claim_status": "pending"}
        invoice = {"id": action["invoice_id"], "claim_status": "pending", "line_items": [line]}
        assert not server.run(import_records(server, plan_manager_id, "invoices", [invoice])).errors
        return requests.send()
    change = {"line_items": list[Any]()}
    is_bulk = requests.operation.path.endswith("/bulk")
    return requests.send(json={"items": [change | {"id": invoice["id"]}]} if is_bulk else change)


def invalid_transition(requests: Requests) -> httpx.Response:
    """A second time: a line that was split can be split again, so it is cancelled first."""
    if operation_name(requests.operation) in AFTER_RESTORE:
        return after_restore(requests)
    if requests.operation.path.endswith("/statements/{statement_id}"):
        return unprintable_statement(requests)
    if requests.operation.path.endswith("/split"):
        ids = ids_of(operation_name(requests.operation), requests.tenant.ids)
        path = f"/invoices/{ids['invoice_id']}/lines/{ids['line_id']}/cancel"
        requests.tenant.client.post(path, {"reason": "Wrong"}).raise_for_status()
    elif requests.operation.path.endswith("/file"):
        ids, _ = new_run(requests)
        [run_id] = ids.values()
        requests.tenant.client.post(f"/payment-runs/{run_id}/cancel", {}).raise_for_status()
        return requests.send(ids=ids)
    elif requests.operation.path.endswith("/payment-runs/{payment_run_id}/cancel"):
        body = {"not_sent_to_bank": True, "reason": "Wrong"}
        requests.send(json=body)
    elif requests.operation.path.endswith("/adjustments"):
        set_line(requests, requests.body["line_id"] if requests.body else "", "claim_status = 'new'")
    elif requests.operation.path.endswith(("/results", "/receipts")):
        path = requests.operation.path.format(claim_batch_id=requests.tenant.ids["claim_batch_id"])
        content = content_of(operation_name(requests.operation))
        return requests.tenant.client.post(path.removeprefix(PREFIX), content.pop("json", None), **content)
    else:
        requests.send()
    return requests.send()


def unprintable_statement(requests: Requests) -> httpx.Response:
    """The PDF of a statement about a name that no font has."""
    client, participant_id = requests.tenant.client, requests.tenant.ids["participant_id"]
    client.put(f"/participants/{participant_id}", {"first_name": "𓀀"}).raise_for_status()
    month = client.get(f"/participants/{participant_id}/statements").json()["data"][0]["month"]
    statement = client.post(f"/participants/{participant_id}/statements", {"month": month}).json()
    return requests.send(ids={"statement_id": statement["id"]}, headers={"Accept": "application/pdf"})


# Requests that have the code only while an owner hasn't confirmed a restore.
AFTER_RESTORE = {
    "POST /claim-batches", "GET /claim-batches/{claim_batch_id}/file", "POST /payment-runs", "POST /fee-takings",
    "POST /statement-runs", "POST /statement-runs/{statement_run_id}/retry",
}  # fmt: skip


def after_restore(requests: Requests) -> httpx.Response:
    server, plan_manager_id = requests.tenant.server, UUID(requests.tenant.client.plan_manager_id)
    server.execute_as_owner("insert into restores (plan_manager_id, restored_at) values ($1, now())", plan_manager_id)
    response = requests.send()
    server.execute_as_owner("delete from restores where plan_manager_id = $1", plan_manager_id)
    return response


def claimed_line(requests: Requests) -> httpx.Response:
    tenant = requests.tenant
    ids = {"participant": tenant.ids["participant_id"], "provider": tenant.ids["provider_id"]}
    plan = tenant.client.get(f"/participants/{ids['participant']}/plans/{tenant.ids['plan_id']}").json()
    line = {"claim_status": "pending", "service_date_from": plan["start_date"]}
    line["component_id"] = plan["components"][0]["id"]
    import_invoice(tenant.server, tenant.client, ids, line_items=[line])
    return requests.send(**({"json": {"components": []}} if requests.operation.body else {}))


def again(requests: Requests) -> httpx.Response:
    requests.send()
    return requests.send()


def new_run(requests: Requests) -> tuple[dict[str, str], str]:
    """The ids of a request about a new draft, and the path of the invoice that it pays."""
    office = PayingOffice(requests.tenant.server, requests.tenant.client)
    invoice = office.invoice("5.00")
    action = requests.operation.path.rpartition("/")[2].replace("-", "_")
    return {f"{action}_payment_run_id": office.run(invoice)["id"]}, f"/invoices/{invoice}"


def outdated_run(requests: Requests) -> httpx.Response:
    ids, invoice = new_run(requests)
    requests.tenant.client.post(f"{invoice}/hold", {"reason": "Wait"}).raise_for_status()
    return requests.send(ids=ids)


def same_person(requests: Requests) -> httpx.Response:
    """The key that has made the run. A cancellation needs another person only after a download, so it is downloaded."""
    ids, _ = new_run(requests)
    office = PayingOffice(requests.tenant.server, requests.tenant.client)
    office.set(needs_second_person=True)
    body = dict[str, Any]()
    if requests.operation.path.endswith("/cancel"):
        [run_id] = ids.values()
        requests.tenant.client.get(f"/payment-runs/{run_id}/file").raise_for_status()
        body = {"not_sent_to_bank": True, "reason": "Wrong"}
    response = requests.send(ids=ids, json=body)
    office.set(needs_second_person=False)
    return response


PROVOCATIONS: dict[ErrorCode, Callable[[Requests], httpx.Response]] = {
    "invalid_request": lambda requests: requests.send(params={"unknown": "1"}),
    "invalid_json": lambda requests: requests.send(**json_content(b"{")),
    "missing_plan_manager_id": lambda requests: requests.send(headers={"X-Plan-Manager-Id": None}),
    "invalid_plan_manager_id": lambda requests: requests.send(headers={"X-Plan-Manager-Id": "1234"}),
    "permission_requires_email": without_email,
    "cursor_expired": lambda requests: requests.send(params={"after": str(uuid7())}),
    "missing_api_key": lambda requests: requests.send(headers={"Authorization": None}),
    "invalid_api_key": lambda requests: requests.send(headers={"Authorization": "Bearer plk_junk"}),
    "expired_api_key": lambda requests: requests.send(headers=requests.new_key(lifetime=timedelta(seconds=-1))),
    "plan_manager_not_allowed": lambda requests: requests.send(headers={"X-Plan-Manager-Id": str(uuid7())}),
    "insufficient_scope": other_scope,
    "not_found": absent,
    "too_many_webhook_endpoints": no_more_endpoints,
    "webhook_endpoint_inactive": inactive,
    "contact_priority_taken": taken_priority,
    "team_member_exists": again,
    "exit_reason_in_use": used_exit_reason,
    "second_person_required": same_person,
    "run_outdated": outdated_run,
    "invalid_transition": invalid_transition,
    "invoice_locked": locked_invoice,
    "plan_in_use": claimed_line,
    "note_type_in_use": used_note_type,
    "precondition_failed": lambda requests: requests.send(headers={"If-Match": '"other"'}),
    "body_too_large": lambda requests: requests.send(**json_content(b" " * (requests.operation.max_body_bytes + 1))),
    "unsupported_media_type": lambda requests: requests.send(**json_content(b"{}", "text/plain")),
    "idempotency_key_reused": reused_key,
    "rate_limit_exceeded": second_in_a_minute,
    "internal_error": lambda requests: requests.without_handler(RuntimeError("a fault of the test")),
    "secret_key_missing": without_secret_key,
    "service_unavailable": lambda requests: requests.without_handler(asyncpg.CannotConnectNowError("a fault")),
}

# What these requests leave behind would be in the way of others.
CHANGING: set[ErrorCode] = {
    "team_member_exists", "contact_priority_taken", "webhook_endpoint_inactive", "exit_reason_in_use",
    "invalid_transition", "invoice_locked", "plan_in_use", "note_type_in_use", "run_outdated",
    "second_person_required",
}  # fmt: skip
# test_credentials.py has a request with each of them for every operation of a plan manager.
OF_CREDENTIALS: set[ErrorCode] = {
    "missing_api_key", "invalid_api_key", "expired_api_key", "missing_plan_manager_id", "invalid_plan_manager_id",
    "plan_manager_not_allowed", "insufficient_scope",
}  # fmt: skip
CASES = [(name, code) for name, each in ALL_OPERATIONS.items() for code in error_codes(each)]
CHANGING_OPERATIONS = [name for name, each in ALL_OPERATIONS.items() if CHANGING & set(error_codes(each))]


@sweep("name", sorted(ALL_OPERATIONS))
def test_each_declared_code_can_be_provoked(fresh_tenant: Tenant, name: str) -> None:
    elsewhere = CHANGING | OF_CREDENTIALS if name in OPERATIONS else CHANGING
    provoke_all(fresh_tenant, name, [code for each, code in CASES if each == name and code not in elsewhere])


@sweep("name", CHANGING_OPERATIONS)
def test_each_declared_code_that_changes_others_can_be_provoked(changed_tenant: ChangedTenant, name: str) -> None:
    codes = [code for each, code in CASES if each == name and code in CHANGING]
    changed_tenant.check(lambda tenant: provoke_all(tenant, name, codes))


def provoke_all(tenant: Tenant, name: str, codes: list[ErrorCode]) -> None:
    requests = Requests(tenant, name)
    codes = [code for code in codes if code in PROVOCATIONS]
    responses = [PROVOCATIONS[code](requests) for code in codes]
    assert [each.json().get("error") for each in responses] == codes
    assert [each.status_code for each in responses] == [CODES[code].status for code in codes]


def test_a_request_with_the_key_of_a_running_one_is_rejected(server: RunningServer, api: Client) -> None:
    tenant = filled(server, api)
    names = [name for name, code in CASES if code == "idempotency_in_progress"]
    api_key_id = UUID(api.get("/me").json()["id"])

    async def hold(sent: Callable[[], list[httpx.Response]]) -> list[httpx.Response]:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, tenant.plan_manager_id, server.settings, SYSTEM)
            for name in names:
                path = ALL_OPERATIONS[name].path.format(**ids_of(name, tenant.ids)).lower()
                await get_or_claim(ctx, IdempotencyKey(api_key_id, path, "busy", b""))
            return await server.loop.run_in_executor(None, sent)

    with Requests(tenant, names[0]).server_with(statement_timeout=6, pool_size=25) as client:  # 3 s for a lock

        def send(name: str) -> httpx.Response:
            return Requests(tenant, name).send(headers={"Idempotency-Key": "busy"}, client=client)

        def send_all() -> list[httpx.Response]:
            with ThreadPoolExecutor(25) as pool:
                return list(pool.map(send, names))

        responses = server.run(hold(send_all))
    assert [(each.status_code, each.json()["error"]) for each in responses] == [
        (409, "idempotency_in_progress") for _ in names
    ]


def test_each_code_belongs_to_an_operation_or_to_none() -> None:
    declared = {code for _, code in CASES}
    # No operation acts on the states of invoices yet.
    assert set(CODES) - declared == {"path_not_found", "method_not_allowed"}
    assert set(PROVOCATIONS) | {"idempotency_in_progress"} == declared


def test_the_document_has_the_codes_of_each_operation() -> None:
    for name, operation in ALL_OPERATIONS.items():
        entry = DOCUMENT["paths"][operation.path][operation.method.lower()]
        assert entry["x-error-codes"] == error_codes(operation), name
        everywhere = DOCUMENT["info"]["description"]
        assert all(f"`{code}`" in entry["description"] or f"`{code}`" in everywhere for code in error_codes(operation))
        statuses = {status for status in entry["responses"] if status >= "400"}
        assert statuses == {str(CODES[code].status) for code in error_codes(operation)}
        assert json.dumps(entry["responses"]).count("#/components/responses/") == len(statuses)
