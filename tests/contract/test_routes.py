"""Every route is behind a key with the right scope and in the OpenAPI document, and says if it is the contract's."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from contract.operations import ALL_OPERATIONS, BODIES, CONTRACT, OPERATIONS, READS, WRITES, send
from plankeeper.access.api_keys import service
from plankeeper.access.api_keys.format import new_key
from plankeeper.console.application import page_routes
from plankeeper.core.context import SYSTEM, Scope, WriteContext
from plankeeper.core.errors import CODES
from plankeeper.core.settings import Settings
from plankeeper.core.validation import allowed_values
from plankeeper.http.routing import PREFIX, READ_AND_WRITE, WRITE, PathRouter, Router
from plankeeper.server.app import build_app
from support.client import DOCUMENT
from support.factories import Tenant
from support.server import RunningServer, wait_until

# Routes of the application that need no key, and stand in no OpenAPI document.
PUBLIC_PATHS = {
    "/healthz": "for process managers: the process lives",
    "/readyz": "for load balancers: the database answers",
    "/metrics": "for Prometheus: figures of the server, nothing of a plan manager",
    "/openapi.json": "the document itself",
    "/": "where to find everything else",
    "/docs": "the documentation site, with every page below",
    "/llms.txt": "its index for language models",
    "/docs/api": "the document, to be read and tried",
    "/docs/reference.css": "what that page needs",
    "/docs/reference.js": "what that page needs",
    "/docs/swagger-ui.css": "what that page needs",
    "/docs/swagger-ui-bundle.js": "what that page needs",
}
# The console's, for people with a session: tests/console sweeps over its pages.
CONSOLE_PATHS = {page.path for page in page_routes()} | {"/console/assets/{name}"}
REDIRECTED_PATHS = {"/console/", "/docs/"}


class KeyHeaders:
    """Headers of every kind for one plan manager."""

    def __init__(self, server: RunningServer, tenant: Tenant) -> None:
        self._server, self._tenant = server, tenant
        revoked_key = self.create()
        self.revoke(revoked_key)
        self.good = {
            "read": self.headers(self.create(scopes=["read"])),
            "write": self.headers(self.create(scopes=["write"])),
        }
        self.bad: dict[str, tuple[dict[str, str], int, str]] = {
            "no key": (self.headers(None), 401, "missing_api_key"),
            "junk key": (self.headers("plk_junk"), 401, "invalid_api_key"),
            "unknown key": (self.headers(new_key()), 401, "invalid_api_key"),
            "revoked key": (self.headers(revoked_key), 401, "invalid_api_key"),
            "expired key": (self.headers(self.create(lasts=timedelta(seconds=-1))), 401, "expired_api_key"),
            "no plan manager": (self.headers(self.create(), None), 400, "missing_plan_manager_id"),
            "malformed plan manager": (self.headers(self.create(), "1234"), 400, "invalid_plan_manager_id"),
            "another's plan manager": (self.headers(self.create(), str(uuid7())), 403, "plan_manager_not_allowed"),
        }

    def headers(self, key: str | None, plan_manager_id: str | None = "") -> dict[str, str]:
        tenant_id = self._tenant.client.plan_manager_id if plan_manager_id == "" else plan_manager_id
        found = {"Authorization": f"Bearer {key}" if key else None, "X-Plan-Manager-Id": tenant_id}
        return {name: value for name, value in found.items() if value is not None}

    def create(self, scopes: list[str] | None = None, lasts: timedelta | None = None) -> str:
        async def make() -> str:
            async with self._server.db.transaction() as tx:
                ident = self._tenant.plan_manager_id
                ctx = WriteContext(tx, ident, self._server.settings, SYSTEM)
                return await service.create(ctx, "test", [ident], scopes or ["read", "write"], lasts)

        return self._server.run(make())

    def revoke(self, key: str) -> None:
        """Revoke a key that was used before, and wait until the server knows."""
        assert send(self._tenant.client, "GET /participants", {}, self.headers(key)).status_code == 200

        async def work() -> None:
            async with self._server.db.transaction() as tx:
                ident = await tx.one(UUID, "select id from api_keys where last_four = $1", key[-4:])
                await service.revoke(
                    WriteContext(tx, self._tenant.plan_manager_id, self._server.settings, SYSTEM), ident
                )

        self._server.run(work())
        wait_until(lambda: send(self._tenant.client, "GET /participants", {}, self.headers(key)).status_code == 401)


@pytest.fixture(scope="module")
def keys(server: RunningServer, tenant: Tenant) -> KeyHeaders:
    return KeyHeaders(server, tenant)


def test_every_write_has_a_sample_body() -> None:
    """Without one a sweep could not reach the route: give a new route its example in `operations.BODIES`."""
    assert {name for name, operation in OPERATIONS.items() if operation.body} == set(BODIES)


def test_a_route_cannot_be_defined_without_a_scope() -> None:
    for method in ("get", "post", "put", "delete"):
        with pytest.raises(TypeError, match="scope"):
            getattr(Router("test"), method)("/tests")
    assert {each for operation in OPERATIONS.values() for each in operation.required_scopes} == set(
        allowed_values(Scope)
    )


def test_whatever_opens_a_transaction_needs_the_scope_write() -> None:
    assert {name for name, operation in OPERATIONS.items() if operation.writes} == set(WRITES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_request_without_a_valid_key_is_rejected_and_writes_nothing(
    tenant: Tenant, keys: KeyHeaders, tenant_data: Callable[[UUID], Any], name: str
) -> None:
    before = tenant_data(tenant.plan_manager_id)
    for headers, status, code in keys.bad.values():
        response = send(tenant.client, name, tenant.ids, headers)
        assert (response.status_code, response.json()["error"]) == (status, code)
        assert response.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert tenant_data(tenant.plan_manager_id) == before


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_key_without_the_scope_is_rejected_and_writes_nothing(
    tenant: Tenant, keys: KeyHeaders, tenant_data: Callable[[UUID], Any], name: str
) -> None:
    before = tenant_data(tenant.plan_manager_id)
    required = set(OPERATIONS[name].required_scopes)
    for scope in required if len(required) > 1 else {"read", "write"} - required:
        response = send(tenant.client, name, tenant.ids, keys.good[scope])
        assert (response.status_code, response.json()["error"]) == (403, "insufficient_scope")
        [missing] = required - {scope}
        assert f"the scope `{missing}`" in response.json()["detail"]
    assert tenant_data(tenant.plan_manager_id) == before


def test_webhooks_require_both_scopes_for_every_write() -> None:
    of_webhooks = {name for name in WRITES if "/webhook-" in name}
    assert {name for name, each in OPERATIONS.items() if each.required_scopes == READ_AND_WRITE} == of_webhooks


def test_a_key_with_only_write_sees_only_the_records_that_its_request_names(
    server: RunningServer, fresh_tenant: Tenant
) -> None:
    """There is a second record of each kind, which no request names."""
    client, ids = fresh_tenant.client, fresh_tenant.ids
    key = KeyHeaders(server, fresh_tenant).good["write"]
    member = {"first_name": "Other", "email": "other@example.com"}
    bodies = BODIES | {"POST /participants/{participant_id}/team-members": member}
    others = {
        name: str(client.create(each.path.removeprefix(PREFIX).format(**ids), bodies[name])["id"])
        for name, each in WRITES.items()
        if each.creates
    }
    names = [name for name, each in WRITES.items() if each.required_scopes == WRITE]
    seen: dict[str, list[str]] = {}
    # Deletes come last, that of a participant after those of its team members.
    for name in sorted(names, key=lambda each: (each.startswith("DELETE"), -len(each))):
        response = send(client, name, ids, key)
        assert response.is_success, (name, response.text)
        found = [
            kind for kind, other in others.items() if f'"{other}"' in response.text or f":{other}," in response.text
        ]
        if name.startswith("DELETE") and response.json() != {}:
            found.append("the deleted record")
        seen |= {name: found} if found else {}
    assert seen == {}
    rejected = [send(client, name, ids, key).status_code for name in READS]
    assert rejected == [403] * len(READS)


@pytest.mark.parametrize("name", READS)
def test_a_key_with_the_scope_read_may_read(tenant: Tenant, keys: KeyHeaders, name: str) -> None:
    assert send(tenant.client, name, tenant.ids, keys.good["read"]).status_code == 200


def test_a_single_resource_has_an_etag() -> None:
    for operation in OPERATIONS.values():
        is_single_resource = operation.method == "GET" and operation.path.endswith("}")
        assert operation.has_etag == is_single_resource, operation.path


def documented_operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, entry in methods.items():
            yield f"{method.upper()} {path.removeprefix(PREFIX)}", entry


def routed_paths(settings: Settings) -> Iterator[str]:
    app = build_app(settings)
    assert isinstance(app, PathRouter)
    yield from app.paths


def test_every_route_is_in_the_document_and_the_other_way_round(server: RunningServer) -> None:
    paths = list(routed_paths(server.settings))
    assert len(paths) == len(set(paths))
    assert set(paths) == set(DOCUMENT["paths"]) | set(PUBLIC_PATHS) | CONSOLE_PATHS | REDIRECTED_PATHS
    documented = {name for name, _ in documented_operations()}
    assert documented == set(ALL_OPERATIONS)


def test_public_paths_respond_without_a_key(server: RunningServer, tenant: Tenant) -> None:
    for path in PUBLIC_PATHS:
        assert tenant.client.http.get(path).status_code == 200


def test_every_contract_endpoint_exists_and_all_others_are_marked_as_extensions() -> None:
    marked = {name for name, entry in documented_operations() if entry.get("x-plankeeper-extension") is True}
    assert set(OPERATIONS) >= CONTRACT
    assert marked == set(ALL_OPERATIONS) - CONTRACT


def test_every_path_begins_with_the_version() -> None:
    assert all(path.startswith("/api/public/v1/") for path in DOCUMENT["paths"])


@pytest.mark.parametrize("path", sorted({operation.path for operation in OPERATIONS.values()}))
def test_an_unsupported_method_is_rejected_with_the_allowed_methods(tenant: Tenant, path: str) -> None:
    has = {operation.method for operation in OPERATIONS.values() if operation.path == path}
    allow = sorted(has | ({"HEAD"} if "GET" in has else set()) | {"OPTIONS"})
    url = path.format(**tenant.ids)
    # The path of one resource has the other methods of a path such as /participants/bulk: see test_bulk.py.
    elsewhere = {"GET", "PUT", "DELETE"} if path.endswith("/bulk") else set[str]()
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - has - elsewhere:
        response = tenant.client.http.request(method, url, headers=tenant.client.headers())
        assert (response.status_code, response.headers["allow"]) == (405, ", ".join(allow))
        assert response.json()["error"] == "method_not_allowed"
    asked = tenant.client.http.options(url)
    assert (asked.status_code, asked.headers["allow"]) == (200, ", ".join(allow))


def test_the_catalogue_has_every_code_returned_by_these_tests(keys: KeyHeaders) -> None:
    assert {code for _, _, code in keys.bad.values()} | {"insufficient_scope", "method_not_allowed"} <= set(CODES)
