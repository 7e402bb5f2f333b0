"""Every route with invalid credentials of every code, and headers that select a stored or a conditional response."""

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from contract.leaks import (
    ERROR_HEADERS,
    RATE_LIMIT_HEADERS,
    assert_error_leaks_nothing,
    assert_no_data_of,
    without_volatile_parts,
)
from contract.operations import OPERATIONS, READS, WRITES, send
from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import CODES
from plankeeper.http.routing import PREFIX, Operation
from plankeeper.server.embedded_postgres import binaries
from support.cluster import SharedCluster
from support.factories import Tenant, create_client, filled
from support.server import RunningServer, wait_until
from support.sweeps import sweep

ReadTenantData = Callable[[UUID | str], Any]
POSTS = [name for name, each in WRITES.items() if each.method == "POST"]
HAS_ETAG = [name for name, each in OPERATIONS.items() if each.has_etag]

# What each credential gets on every route.
CREDENTIAL_ERRORS = {
    "no key": (401, "missing_api_key"),
    "junk": (401, "invalid_api_key"),
    "a key that nobody has": (401, "invalid_api_key"),
    "a revoked key": (401, "invalid_api_key"),
    "an expired key": (401, "expired_api_key"),
    "a rotated key after its overlap": (401, "expired_api_key"),
    "another plan manager's key": (403, "plan_manager_not_allowed"),
    "the own key for another plan manager": (403, "plan_manager_not_allowed"),
    "the own key for an unknown plan manager": (403, "plan_manager_not_allowed"),
    "the own key without a plan manager": (400, "missing_plan_manager_id"),
    "the own key with a malformed plan manager": (400, "invalid_plan_manager_id"),
    "a key without the scope": (403, "insufficient_scope"),
    "a key with another scope": (403, "insufficient_scope"),
}
# The credentials that are told from one another before the operation is known, by the code that they get.
SAME_FOR_ALL_ROUTES = [
    [name for name, (_, each) in CREDENTIAL_ERRORS.items() if each == code]
    for code in dict.fromkeys(code for _, code in CREDENTIAL_ERRORS.values())
    if code != "insufficient_scope"
]


def credentials_of(name: str) -> list[str]:
    """What a route is tried with: a key without its scope, and one credential of each code, which differs by route."""
    turn = [*OPERATIONS].index(name)
    scopes = [each for each, (_, code) in CREDENTIAL_ERRORS.items() if code == "insufficient_scope"]
    return [*(group[turn % len(group)] for group in SAME_FOR_ALL_ROUTES), *scopes]


class KeyFactory:
    """Keys of a plan manager: created, ended and rotated."""

    def __init__(self, server: RunningServer, owner: UUID) -> None:
        self._server, self._owner = server, owner

    def key(self, *scopes: str, lasts: timedelta | None = None) -> str:
        return self._run(lambda ctx: service.create(ctx, "test", [self._owner], scopes or ("read", "write"), lasts))

    def revoke(self, key: str) -> None:
        ident = self._id(key)
        self._run(lambda ctx: service.revoke(ctx, ident))

    def rotate(self, key: str, overlap: timedelta) -> str:
        ident = self._id(key)

        async def work(ctx: WriteContext) -> str:
            old = await store.select_for_update(ctx.tx, ident)
            assert old
            return await service.rotate(ctx, old, overlap, None)

        return self._run(work)

    def _id(self, key: str) -> UUID:
        api_key = self._server.run(store.get_by_hash(self._server.db, hash_token(key)))
        assert api_key
        return api_key.id

    def _run(self, operation: Callable[[WriteContext], Any]) -> Any:
        async def run() -> Any:
            async with self._server.db.transaction() as tx:
                return await operation(WriteContext(tx, self._owner, self._server.settings, SYSTEM))

        return self._server.run(run())


@pytest.fixture(scope="module")
def credentials(
    server: RunningServer, tenant: Tenant, other_tenant: Tenant, keys_by_scope: dict[str, dict[str, str]]
) -> dict[str, Callable[[Operation], Any]]:
    """The headers of each credential. Keys that have ended were used before, so that servers remember them."""
    owner, makes = tenant.client.plan_manager_id, KeyFactory(server, tenant.plan_manager_id)
    revoked, rotated, expired = makes.key(), makes.key(), makes.key(lasts=timedelta(seconds=5))

    def headers(key: str | None, whose: str | None = owner) -> Callable[[Operation], dict[str, str]]:
        found = {"X-Plan-Manager-Id": whose, "Authorization": f"Bearer {key}" if key else None}
        sent = {name: value for name, value in found.items() if value is not None}
        return lambda _operation: sent

    def status(key: str) -> int:
        return tenant.client.send(
            "GET", "/participants", headers=headers(key)(OPERATIONS["GET /participants"])
        ).status_code

    assert [status(key) for key in (expired, revoked, rotated)] == [200] * 3
    makes.revoke(revoked)
    makes.rotate(rotated, timedelta(0))
    wait_until(lambda: [status(key) for key in (revoked, rotated, expired)] == [401] * 3)
    return {
        "no key": headers(None),
        "junk": headers("plk_junk"),
        "a key that nobody has": headers(new_key()),
        "a revoked key": headers(revoked),
        "an expired key": headers(expired),
        "a rotated key after its overlap": headers(rotated),
        "another plan manager's key": headers(other_tenant.client.key),
        "the own key for another plan manager": headers(tenant.client.key, other_tenant.client.plan_manager_id),
        "the own key for an unknown plan manager": headers(tenant.client.key, str(uuid7())),
        "the own key without a plan manager": headers(tenant.client.key, None),
        "the own key with a malformed plan manager": headers(tenant.client.key, "1234"),
        "a key without the scope": lambda each: keys_by_scope["read" if "write" in each.required_scopes else "write"],
        "a key with another scope": lambda each: keys_by_scope[
            next(scope for scope in ("claims", "payments", "read") if scope not in each.required_scopes)
        ],
    }


@pytest.fixture(scope="module")
def keys_by_scope(server: RunningServer, tenant: Tenant) -> dict[str, dict[str, str]]:
    """The headers of a key for each scope, which has only this scope."""
    makes, owner = KeyFactory(server, tenant.plan_manager_id), tenant.client.plan_manager_id
    return {
        scope: {"X-Plan-Manager-Id": owner, "Authorization": f"Bearer {makes.key(scope)}"}
        for scope in ("read", "write", "claims", "payments")
    }


@pytest.fixture(scope="module")
def owner_headers(tenant: Tenant) -> dict[str, dict[str, str]]:
    """For each route the headers with which its owner would get a stored response, or meet a condition."""
    idempotency_key = f"kept-{uuid7()}"
    for name in POSTS:
        assert send(
            tenant.client, name, tenant.ids, tenant.client.headers() | {"Idempotency-Key": idempotency_key}
        ).is_success
    tags: dict[str, str] = {}
    for name in HAS_ETAG:
        tags[OPERATIONS[name].path] = send(tenant.client, name, tenant.ids).headers["etag"]
    return {
        name: {"Idempotency-Key": idempotency_key}
        | ({"If-None-Match": tags[each.path], "If-Match": tags[each.path]} if each.path in tags else {})
        for name, each in OPERATIONS.items()
    }


@pytest.fixture
def unchanged(tenant: Tenant, other_tenant: Tenant, tenant_data: ReadTenantData) -> Iterator[None]:
    """The data of both is the same after all cases of a sweep as before. To read it takes as long as five requests."""
    before = tenant_data(tenant.plan_manager_id), tenant_data(other_tenant.plan_manager_id)
    yield
    assert (tenant_data(tenant.plan_manager_id), tenant_data(other_tenant.plan_manager_id)) == before


def test_every_credential_is_expected_to_fail(credentials: dict[str, Any]) -> None:
    assert set(credentials) == set(CREDENTIAL_ERRORS)


@sweep("name", [*POSTS, *HAS_ETAG])
def test_the_owner_headers_have_an_effect_for_the_owner(
    tenant: Tenant, owner_headers: dict[str, dict[str, str]], name: str
) -> None:
    """Otherwise, the sweep below would prove nothing about them."""
    response = send(tenant.client, name, tenant.ids, tenant.client.headers() | owner_headers[name])
    assert response.status_code == 304 if name in HAS_ETAG else response.headers["idempotent-replayed"] == "true"


@pytest.mark.usefixtures("unchanged")
@sweep("name", OPERATIONS)
def test_no_invalid_credential_opens_a_route(
    tenant: Tenant, other_tenant: Tenant, name: str,
    credentials: dict[str, Callable[[Operation], Any]], owner_headers: dict[str, dict[str, str]],
) -> None:  # fmt: skip
    for credential in credentials_of(name):
        status, code = CREDENTIAL_ERRORS[credential]
        headers = credentials[credential](OPERATIONS[name]) | owner_headers[name]
        response = send(tenant.client, name, tenant.ids, headers)
        assert (response.status_code, response.json()["error"]) == (status, code), credential
        _assert_leaks_nothing(response, tenant, other_tenant)
        if code != "insufficient_scope":
            assert response.json()["detail"] == CODES[code].description


def _assert_leaks_nothing(response: httpx.Response, *worlds: Tenant) -> None:
    assert_error_leaks_nothing(response)
    for each in worlds:
        assert_no_data_of(each, response)
    # Only a response to a valid key can have rate limit headers; only a response without one has a challenge.
    more = {"www-authenticate"} if response.status_code == 401 else RATE_LIMIT_HEADERS
    assert set(response.headers) <= ERROR_HEADERS | more
    assert response.headers.get("www-authenticate") == ("Bearer" if response.status_code == 401 else None)


@sweep("name", READS)
def test_a_key_with_the_scope_of_a_read_may_read(
    tenant: Tenant, keys_by_scope: dict[str, dict[str, str]], name: str
) -> None:
    assert send(tenant.client, name, tenant.ids, keys_by_scope[READS[name].required_scopes[0]]).status_code == 200


@pytest.mark.usefixtures("unchanged")
@sweep("name", OPERATIONS)
def test_a_key_with_only_one_scope_is_rejected_and_the_missing_scope_is_named(
    tenant: Tenant, keys_by_scope: dict[str, dict[str, str]], name: str
) -> None:
    required = set(OPERATIONS[name].required_scopes)
    if OPERATIONS[name].one_scope:  # the response names the first one
        required = set(OPERATIONS[name].required_scopes[:1])
    for scope in required if len(required) > 1 else {"read", "write"} - required:
        response = send(tenant.client, name, tenant.ids, keys_by_scope[scope])
        assert (response.status_code, response.json()["error"]) == (403, "insufficient_scope")
        [missing] = required - {scope}
        assert f"the scope `{missing}`" in response.json()["detail"]


@sweep("name", [name for name, each in OPERATIONS.items() if each.method == "GET" and not each.writes])
def test_a_head_request_is_rejected_like_its_get(
    tenant: Tenant, name: str, credentials: dict[str, Callable[[Operation], Any]]
) -> None:
    path = OPERATIONS[name].path.removeprefix(PREFIX).format(**tenant.ids)
    # A HEAD request has the operation of its GET. Each credential is tried with some routes.
    credential = list(CREDENTIAL_ERRORS)[[*OPERATIONS].index(name) % len(CREDENTIAL_ERRORS)]
    for each in {credential, "another plan manager's key", "a key without the scope"}:
        response = tenant.client.send("HEAD", path, headers=credentials[each](OPERATIONS[name]))
        assert (response.status_code, response.content) == (CREDENTIAL_ERRORS[each][0], b"")
        assert_error_leaks_nothing(response)


@sweep("name", OPERATIONS)
def test_an_existing_plan_manager_is_rejected_like_an_unknown_one(
    tenant: Tenant, other_tenant: Tenant, name: str
) -> None:
    def request_as(plan_manager_id: str) -> httpx.Response:
        return send(tenant.client, name, tenant.ids, tenant.client.headers() | {"X-Plan-Manager-Id": plan_manager_id})

    assert without_volatile_parts(request_as(other_tenant.client.plan_manager_id)) == without_volatile_parts(
        request_as(str(uuid7()))
    )


# Requests that are wrong in ways that tempt a server to tell of itself: query, body, headers.
MALFORMED_REQUESTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "a quote in the query": ("limit=1'%20or%201=1--", b"{}", {}),
    "a null byte in the query": ("limit=%00", b"{}", {}),
    "bytes that are no UTF-8 in the query": ("limit=%ff%fe", b"{}", {}),
    "a number beyond all bounds": ("limit=" + "9" * 400, b"{}", {}),
    "an offset beyond all rows": ("offset=" + "9" * 18 + "&limit=0", b"{}", {}),
    "no JSON": ("", b"{", {}),
    "no UTF-8": ("", b'{"a": "\xff"}', {}),
    "a list": ("", b"[]", {}),
    "far too deep": ("", b"[" * 5000, {}),
    "a lone surrogate": ("", b'{"first_name": "\\ud800"}', {}),
    "a null byte in a text": ("", b'{"first_name": "\\u0000"}', {}),
    "another type": ("", b"<a/>", {"Content-Type": "application/xml"}),
    "an idempotency key that is none": ("", b'{"x": 1}', {"Idempotency-Key": "a b"}),
    "a tag that is none": ("", b"{}", {"If-Match": '"', "If-None-Match": "W/*"}),
    "a request id that breaks the line": ("limit=0", b"{", {"X-Request-Id": "a b\tc"}),
}


ODD_IDS = ("1'--", "%00", "%ff", "9" * 40, "a%0Ab", "..%2f")


def malformed_requests(operation: Operation) -> Iterator[tuple[dict[str, str], str, bytes | None, dict[str, str]]]:
    """The ids, the query, the body and the headers of each request. An odd id is rejected before all else is read."""
    distinct = dict.fromkeys(
        (query, body if operation.body else None, tuple(more.items()))
        for query, body, more in MALFORMED_REQUESTS.values()
    )
    for query, body, more in distinct:
        yield {each: str(uuid7()) for each in operation.path_ids}, query, body, dict(more)
    if operation.path_ids:
        for (query, body, more), odd in zip(distinct, ODD_IDS, strict=False):
            yield dict.fromkeys(operation.path_ids, odd), query, body, dict(more)


@sweep("name", OPERATIONS)
def test_malformed_requests_do_not_reveal_internals(other_tenant: Tenant, name: str) -> None:
    operation, client = OPERATIONS[name], other_tenant.client
    rejected = 0
    for ids, query, body, more in malformed_requests(operation):
        path = operation.path.format(**ids) + (f"?{query}" if query else "")
        headers = client.headers() | {"Content-Type": "application/json"} | more
        response = client.http.request(operation.method, path, headers=headers, content=body)
        assert response.status_code < 500, (path, body, response.text)
        if response.status_code >= 400:
            rejected += 1
            assert_error_leaks_nothing(response)
    assert rejected >= 5


def encodings_of(secret: str) -> dict[str, re.Pattern[str]]:
    """Every form of a text in a dump: as it is, in hexadecimal, in base64 wherever it begins."""
    patterns = {"as it is": re.escape(secret), "hexadecimal": f"(?i:{secret.encode().hex()})"}
    for shift in range(3):
        # The first and the last characters also depend on what stands around.
        encoded = base64.b64encode(b"\0" * shift + secret.encode()).decode().rstrip("=")
        patterns[f"base64, {shift}"] = re.escape(encoded[4 if shift else 0 : -1])
    return {way: re.compile(pattern) for way, pattern in patterns.items()}


def test_the_secret_search_finds_every_encoding() -> None:
    secret = new_key()
    hidden = [secret, f"\\x{('Bearer ' + secret).encode().hex()}", f"\\x{secret.encode().hex().upper()}"]
    hidden += [base64.b64encode(("a" * shift + secret + "z").encode()).decode() for shift in range(6)]
    for text in hidden:
        assert [way for way, pattern in encodings_of(secret).items() if pattern.search(text)], text


@pytest.fixture
def dumped_server(cluster: SharedCluster) -> Iterator[tuple[RunningServer, Callable[[], str]]]:
    """A server on a database of its own, and its dump."""
    dsn = cluster.new_database()
    running = RunningServer(dsn).start()
    program = binaries.find(None, binaries.server_user(cluster.location)).folder / "pg_dump"

    def dump() -> str:
        return subprocess.run([program, "--dbname", dsn], check=True, capture_output=True, timeout=60).stdout.decode()

    yield running, dump
    running.stop()


def test_a_database_dump_contains_no_credentials(dumped_server: tuple[RunningServer, Callable[[], str]]) -> None:
    server, dump = dumped_server
    client = server.run(create_client(server))
    makes = KeyFactory(server, UUID(client.plan_manager_id))
    with closing(client.http):
        world = filled(server, client)
        revoked, expired, rotated = makes.key(), makes.key(lasts=timedelta(seconds=-1)), makes.key()
        keys = [client.key, revoked, expired, rotated, makes.rotate(rotated, timedelta(hours=1)), makes.key("read")]
        names = [name for name, each in OPERATIONS.items() if each.method != "DELETE"]
        for n, key in enumerate(keys):
            headers = {"Authorization": f"Bearer {key}", "X-Plan-Manager-Id": client.plan_manager_id}
            for name in names if key == client.key else names[n :: len(keys)]:  # a key's way doesn't depend on the key
                send(client, name, world.ids, headers | {"Idempotency-Key": str(uuid7()), "X-Request-Id": "r"})
        makes.revoke(revoked)
        planted = new_key()  # of the right form, and nobody's
        assert client.post("/participants", {"first_name": planted}).is_success
        text = dump()
        assert "COPY public.idempotency_records" in text
        assert {hash_token(key).hex() in text for key in keys} == {True}
        for key in keys:
            for secret in (key, key[:-6], key[4:], key[4:-6]):
                assert not [way for way, pattern in encodings_of(secret).items() if pattern.search(text)]
        tries = set(re.findall(r"plk_[0-9A-Za-z]*", text))
        assert planted in tries
        rows = text.partition("COPY public.api_keys ")[2].partition("\n\\.\n")[0].splitlines()[1:]
        assert len(rows) == len(keys)
        tries |= {value.removeprefix("\\\\x") for row in rows for value in row.split("\t")} | {*rows}
        for each in {*tries, *(f"plk_{each}" for each in tries)}:
            response = client.request("GET", "/participants", headers={"Authorization": f"Bearer {each}".encode()})
            assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key"), each
