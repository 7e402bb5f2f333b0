"""Every route is behind a key with the right scope and in the OpenAPI document, and says if it is the contract's."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, get_args
from uuid import UUID

import pytest
from starlette.routing import Route, Router as StarletteRouter
from uuid_utils.compat import uuid7

from contract.world import BODIES, CONTRACT, OPERATIONS, READS, WRITES, World, send
from plankeeper.api_keys import service
from plankeeper.api_keys.format import new_key
from plankeeper.app import build_app
from plankeeper.http.context import SYSTEM, Scope, WriteContext
from plankeeper.http.errors import CODES
from plankeeper.http.path_router import PathRouter
from plankeeper.http.routing import PREFIX, Router
from plankeeper.settings import Settings
from support.client import DOCUMENT
from support.server import RunningServer, wait_until

# Routes of the application that need no key, and stand in no OpenAPI document.
KEYLESS = {
    "/healthz": "for process managers: the process lives",
    "/readyz": "for load balancers: the database answers",
    "/metrics": "for Prometheus: figures of the server, nothing of a plan manager",
    "/openapi.json": "the document itself",
    "/docs": "the document, to be read and tried",
    "/docs/docs.js": "what that page needs",
    "/docs/swagger-ui.css": "what that page needs",
    "/docs/swagger-ui-bundle.js": "what that page needs",
}
# The console's, for people with a session: tests/console sweeps over its pages.
CONSOLE = {"/console", "/console/{rest:path}"}


class Keys:
    """Headers of every kind for one plan manager."""

    def __init__(self, server: RunningServer, world: World) -> None:
        self._server, self._world = server, world
        revoked_key = self.made()
        self.revoke(revoked_key)
        self.good = {
            "read": self.headers(self.made(scopes=["read"])),
            "write": self.headers(self.made(scopes=["write"])),
        }
        self.bad: dict[str, tuple[dict[str, str], int, str]] = {
            "no key": (self.headers(None), 401, "missing_api_key"),
            "junk key": (self.headers("plk_junk"), 401, "invalid_api_key"),
            "unknown key": (self.headers(new_key()), 401, "invalid_api_key"),
            "revoked key": (self.headers(revoked_key), 401, "invalid_api_key"),
            "expired key": (self.headers(self.made(lasts=timedelta(seconds=-1))), 401, "expired_api_key"),
            "no plan manager": (self.headers(self.made(), None), 400, "missing_plan_manager_id"),
            "malformed plan manager": (self.headers(self.made(), "1234"), 400, "invalid_plan_manager_id"),
            "another's plan manager": (self.headers(self.made(), str(uuid7())), 403, "plan_manager_not_allowed"),
        }

    def headers(self, key: str | None, plan_manager_id: str | None = "") -> dict[str, str]:
        own = self._world.client.plan_manager_id if plan_manager_id == "" else plan_manager_id
        found = {"Authorization": f"Bearer {key}" if key else None, "X-Plan-Manager-Id": own}
        return {name: value for name, value in found.items() if value is not None}

    def made(self, scopes: list[str] | None = None, lasts: timedelta | None = None) -> str:
        async def make() -> str:
            async with self._server.db.transaction() as tx:
                ident = self._world.plan_manager_id
                call = WriteContext(tx, ident, self._server.settings, SYSTEM)
                return await service.create(call, "test", [ident], scopes or ["read", "write"], lasts)

        return self._server.run(make())

    def revoke(self, key: str) -> None:
        """Revoke a key that was used before, and wait until the server knows."""
        assert send(self._world.client, "GET /participants", {}, self.headers(key)).status_code == 200

        async def work() -> None:
            async with self._server.db.transaction() as tx:
                ident = await tx.one(UUID, "select id from api_keys where last_four = $1", key[-4:])
                await service.revoke(
                    WriteContext(tx, self._world.plan_manager_id, self._server.settings, SYSTEM), ident
                )

        self._server.run(work())
        wait_until(lambda: send(self._world.client, "GET /participants", {}, self.headers(key)).status_code == 401)


@pytest.fixture(scope="module")
def keys(server: RunningServer, world: World) -> Keys:
    return Keys(server, world)


def test_every_write_has_a_body_to_be_tried_with() -> None:
    """Without one a sweep could not reach the route: give a new route its example in `world.BODIES`."""
    assert {name for name, operation in OPERATIONS.items() if operation.body} == set(BODIES)


def test_a_route_cannot_be_defined_without_saying_its_need() -> None:
    for method in ("get", "post", "put", "delete"):
        with pytest.raises(TypeError, match="scope"):
            getattr(Router("test"), method)("/tests")
    assert {operation.required_scope for operation in OPERATIONS.values()} == set(get_args(Scope))


def test_whatever_opens_a_transaction_needs_the_scope_write() -> None:
    assert {name for name, operation in OPERATIONS.items() if operation.writes} == set(WRITES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_request_without_a_right_key_is_refused_and_writes_nothing(
    world: World, keys: Keys, contents: Callable[[UUID], Any], name: str
) -> None:
    before = contents(world.plan_manager_id)
    for headers, status, code in keys.bad.values():
        answer = send(world.client, name, world.ids, headers)
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert contents(world.plan_manager_id) == before


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_key_that_lacks_the_scope_is_refused_and_writes_nothing(
    world: World, keys: Keys, contents: Callable[[UUID], Any], name: str
) -> None:
    before = contents(world.plan_manager_id)
    lacking = "read" if name in WRITES else "write"
    answer = send(world.client, name, world.ids, keys.good[lacking])
    assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")
    assert contents(world.plan_manager_id) == before


@pytest.mark.parametrize("name", READS)
def test_a_key_with_the_scope_read_may_read(world: World, keys: Keys, name: str) -> None:
    assert send(world.client, name, world.ids, keys.good["read"]).status_code == 200


def documented_operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, entry in methods.items():
            yield f"{method.upper()} {path.removeprefix(PREFIX)}", entry


def paths_of(settings: Settings) -> Iterator[str]:
    found = build_app(settings)
    assert isinstance(found, PathRouter)
    yield from found.paths
    assert isinstance(found.default, StarletteRouter)
    for route in found.default.routes:
        assert isinstance(route, Route)
        yield route.path


def test_every_route_is_in_the_document_and_the_other_way_round(server: RunningServer) -> None:
    paths = list(paths_of(server.settings))
    assert len(paths) == len(set(paths))
    assert set(paths) == set(DOCUMENT["paths"]) | set(KEYLESS) | CONSOLE
    documented = {name for name, _ in documented_operations()}
    assert documented == set(OPERATIONS)


def test_what_needs_no_key_answers_without_one(server: RunningServer, world: World) -> None:
    for path in KEYLESS:
        assert world.client.http.get(path).status_code == 200


def test_the_contracts_endpoints_are_all_there_and_everything_else_is_marked_as_an_extension() -> None:
    marked = {name for name, entry in documented_operations() if entry.get("x-plankeeper-extension") is True}
    assert set(OPERATIONS) >= CONTRACT
    assert marked == set(OPERATIONS) - CONTRACT


def test_every_path_begins_with_the_version() -> None:
    assert all(path.startswith("/api/public/v1/") for path in DOCUMENT["paths"])


@pytest.mark.parametrize("path", sorted({operation.path for operation in OPERATIONS.values()}))
def test_a_method_that_a_path_lacks_is_answered_with_those_that_it_has(world: World, path: str) -> None:
    has = {operation.method for operation in OPERATIONS.values() if operation.path == path}
    allow = sorted(has | ({"HEAD"} if "GET" in has else set()) | {"OPTIONS"})
    url = path.format(**world.ids)
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - has:
        answer = world.client.http.request(method, url, headers=world.client.headers())
        assert (answer.status_code, answer.headers["allow"]) == (405, ", ".join(allow))
        assert answer.json()["error"] == "method_not_allowed"
    asked = world.client.http.options(url)
    assert (asked.status_code, asked.headers["allow"]) == (200, ", ".join(allow))


def test_the_catalogue_holds_every_code_that_was_met_here(keys: Keys) -> None:
    assert {code for _, _, code in keys.bad.values()} | {"insufficient_scope", "method_not_allowed"} <= set(CODES)
