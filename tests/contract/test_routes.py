"""Every route is behind a key with the right scope and in the OpenAPI document, and says if it is the contract's."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contract.operations import ALL_OPERATIONS, BODIES, CONTRACT, OPERATIONS, READS, WRITES, send
from plankeeper.console.application import page_routes
from plankeeper.core.context import Scope
from plankeeper.core.settings import Settings
from plankeeper.core.validation import allowed_values
from plankeeper.http.routing import PREFIX, READ_AND_WRITE, WRITE, PathRouter, Router
from plankeeper.server.app import build_app
from support.client import DOCUMENT
from support.factories import Tenant
from support.server import RunningServer

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


def test_every_write_has_a_sample_body() -> None:
    """Without one a sweep could not reach the route: give a new route its example in `operations.BODIES`."""
    assert {name for name, operation in OPERATIONS.items() if operation.body} == set(BODIES)


def test_a_route_cannot_be_defined_without_a_scope() -> None:
    for method in ("get", "post", "put", "delete"):
        with pytest.raises(TypeError, match="scope"):
            getattr(Router("test"), method)("/tests")
    used = {each for operation in OPERATIONS.values() for each in operation.required_scopes}
    assert used == set(allowed_values(Scope))


def test_whatever_opens_a_transaction_needs_the_scope_write() -> None:
    assert {name for name, operation in OPERATIONS.items() if operation.writes} == set(WRITES)


def test_webhooks_require_both_scopes_for_every_write() -> None:
    of_webhooks = {name for name in WRITES if "/webhook-" in name}
    assert {name for name, each in OPERATIONS.items() if each.required_scopes == READ_AND_WRITE} == of_webhooks


def test_a_key_with_only_write_sees_only_the_records_that_its_request_names(
    fresh_tenant: Tenant, new_key: Callable[..., str]
) -> None:
    """There is a second record of each kind, which no request names."""
    client, ids = fresh_tenant.client, fresh_tenant.ids
    key = client.headers() | {"Authorization": f"Bearer {new_key(fresh_tenant.plan_manager_id, scopes=('write',))}"}
    member = {"first_name": "Other", "email": "other@example.com"}
    other_plan = {"start_date": "2040-07-01", "end_date": "2041-06-30"}
    bodies = BODIES | {
        "POST /participants/{participant_id}/team-members": member,
        "POST /participants/{participant_id}/plans": other_plan,
        "POST /statement-runs": {"month": "2026-01"},
    }
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


def test_a_single_resource_has_an_etag() -> None:
    for operation in OPERATIONS.values():
        is_single_resource = operation.method == "GET" and operation.path.endswith(("}", "/bank-details", "/document"))
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
