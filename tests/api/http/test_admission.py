"""Rate limits: their headers on every response to a known key, and failed authentication counted by address."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import CODES
from plankeeper.http.admission import client_network
from support.client import NO_TLS, PREFIX, Client, check_response
from support.cluster import SharedCluster
from support.quotas import hold_minute, within_one_minute
from support.server import RunningServer

POLICY_PATTERN = re.compile(r'"default";q=([1-9][0-9]*);w=60')
LIMIT_PATTERN = re.compile(r'"default";r=([0-9]+);t=([0-9]+)')


def rate_limit_of(response: httpx.Response) -> tuple[int, int, int]:
    """The rate limit, the remaining requests and the seconds until the next minute, according to a response."""
    policy = POLICY_PATTERN.fullmatch(response.headers["ratelimit-policy"])
    limit = LIMIT_PATTERN.fullmatch(response.headers["ratelimit"])
    assert policy, response.headers
    assert limit, response.headers
    return int(policy[1]), int(limit[1]), int(limit[2])


def has_no_rate_limit(response: httpx.Response) -> bool:
    """Whether a response has no headers of a rate limit."""
    return not [name for name in response.headers if name.startswith("ratelimit")]


def seconds_left(server: RunningServer) -> float:
    """Of the database's minute, which is the quotas'."""
    return server.run(server.db.one(float, "select 60 - extract(second from clock_timestamp())::float8"))


@pytest.fixture
def limited_client(server: RunningServer, new_plan_manager: Callable[[], UUID]) -> Iterator[Callable[..., Client]]:
    """Create a client whose key has its own rate limit: `limited(3, scopes=("read",), url=...)`. Its minute
    does not end during a test, unless `held` is false.
    """
    made: list[Client] = []

    def make(
        rate_limit: int | None, scopes: tuple[str, ...] = ("read", "write"), url: str = server.url, *, held: bool = True
    ) -> Client:
        owner = new_plan_manager()

        async def work() -> str:
            async with server.db.transaction() as tx:
                ctx = WriteContext(tx, owner, server.settings, SYSTEM)
                secret = await service.create(ctx, "limited", [owner], scopes, None, rate_limit)
                key = await store.get_by_hash(tx, hash_token(secret))
                assert key is not None
                if held:
                    await hold_minute(tx, f"key:{key.id}")
                return secret

        made.append(Client(url, server.run(work()), owner))
        return made[-1]

    yield make
    for each in made:
        each.http.close()


@pytest.fixture
def start_server(cluster: SharedCluster) -> Iterator[Callable[..., RunningServer]]:
    """Starts a server with settings of its own."""
    started: list[RunningServer] = []

    def start(**changes: Any) -> RunningServer:
        started.append(RunningServer(cluster.dsn, **changes).start())
        return started[-1]

    yield start
    for each in started:
        each.stop()


# Quotas


def test_every_response_to_a_known_key_has_rate_limit_headers(
    limited_client: Callable[..., Client], other: Client
) -> None:
    api = limited_client(100)
    made = api.post("/participants", {"first_name": "Ada"})
    path = f"/participants/{made.json()['id']}"
    note = {"note_type": "Visit"}
    got = api.get(path)
    responses = [
        (200, made),
        (200, got),
        (200, api.request("HEAD", path)),
        (201, api.post("/note-types", note)),
        (200, api.put(path, {"first_name": "Eve"})),
        (304, api.request("GET", path, headers={"If-None-Match": api.get(path).headers["etag"]})),
        (400, api.get("/participants", limit=0)),
        (400, api.get("/participants/no-id")),
        (400, api.request("GET", path, headers={"X-Plan-Manager-Id": None})),
        (400, api.request("GET", path, headers={"X-Plan-Manager-Id": "none"})),
        (400, api.request("POST", "/note-types", content=b"{", headers={"Content-Type": "application/json"})),
        (403, api.request("GET", path, headers={"X-Plan-Manager-Id": other.plan_manager_id})),
        (404, api.get(f"/participants/{uuid7()}")),
        (412, api.request("PUT", path, json={}, headers={"If-Match": got.headers["etag"]})),
        (413, api.post("/note-types", {"note_type": "x" * 2**21})),
        (415, api.request("POST", "/note-types", content=b"{}", headers={"Content-Type": "text/plain"})),
        (201, api.post("/note-types", note, headers={"Idempotency-Key": "one"})),
        (201, api.post("/note-types", note, headers={"Idempotency-Key": "one"})),
        (422, api.post("/note-types", {"note_type": "x"}, headers={"Idempotency-Key": "one"})),
        (200, api.delete(path)),
    ]
    assert [response.status_code for _, response in responses] == [status for status, _ in responses]
    lefts = [99, 98, 97, 96, 95, 93, *range(92, 78, -1)]  # the sixth asked twice
    assert [rate_limit_of(response)[:2] for _, response in responses] == [(100, left) for left in lefts]
    assert all(0 < rate_limit_of(response)[2] <= 60 for _, response in responses)


def test_a_key_without_the_scope_gets_rate_limit_headers_too(limited_client: Callable[..., Client]) -> None:
    rejected = limited_client(10, scopes=("read",)).post("/note-types", {"note_type": "x"})
    assert (rejected.status_code, rate_limit_of(rejected)[:2]) == (403, (10, 9))


def test_responses_before_authentication_have_no_rate_limit_headers(limited_client: Callable[..., Client]) -> None:
    api = limited_client(10)
    before = [
        (404, api.request("GET", "/nothing")),
        (404, api.request("GET", "/participants/a%2Fb")),
        (405, api.request("PATCH", "/participants")),
        (200, api.request("OPTIONS", "/participants")),
    ]
    assert [(response.status_code, has_no_rate_limit(response)) for _, response in before] == [
        (status, True) for status, _ in before
    ]
    assert rate_limit_of(api.get("/participants"))[1] == 9


def test_a_rate_limited_response_says_when_to_retry(
    server: RunningServer, limited_client: Callable[..., Client], new_key: Callable[..., str]
) -> None:

    def until_refused() -> tuple[Client, float, httpx.Response, float, list[int]]:
        api = limited_client(3, held=False)
        lefts = [rate_limit_of(api.get("/participants"))[1] for _ in range(3)]
        before = seconds_left(server)
        rejected = api.post("/participants", {"first_name": "Ada"}, headers={"Idempotency-Key": "one"})
        after = seconds_left(server)
        return api, before, rejected, after, lefts

    api, before, rejected, after, lefts = within_one_minute(server, until_refused)
    assert lefts == [2, 1, 0]
    assert rejected.status_code == 429
    assert rejected.json() == {
        "success": False, "error": "rate_limit_exceeded", "detail": CODES["rate_limit_exceeded"].description,
        "request_id": rejected.headers["x-request-id"],
        "documentation_url": "/docs/api/errors#rate_limit_exceeded",
    }  # fmt: skip
    quota, left, seconds = rate_limit_of(rejected)
    assert (quota, left) == (3, 0)
    assert rejected.headers["retry-after"] == str(seconds)
    assert after - 1 <= seconds <= before + 1

    free = Client(server.url, new_key(UUID(api.plan_manager_id)), api.plan_manager_id)
    assert free.get("/participants").json()["pagination"]["total"] == 0
    assert {each["type"] for each in free.get("/events").json()["data"]} <= {"api_key.created"}
    # A 429 is not stored for the idempotency key: the same request is processed again.
    again = free.post("/participants", {"first_name": "Ada"}, headers={"Idempotency-Key": "one"})
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)
    free.http.close()


def test_the_rate_limit_is_checked_after_the_scope_and_before_the_request(
    limited_client: Callable[..., Client], other: Client
) -> None:
    api = limited_client(1, scopes=("read",))
    assert api.get("/participants").status_code == 200
    assert api.get("/participants", limit=0).status_code == 429
    assert api.get(f"/participants/{uuid7()}").status_code == 429
    assert api.request("GET", "/participants", headers={"X-Plan-Manager-Id": None}).status_code == 400
    assert api.request("GET", "/participants", headers={"X-Plan-Manager-Id": other.plan_manager_id}).status_code == 403
    rejected = api.post("/participants", {})
    assert (rejected.status_code, rejected.json()["error"]) == (403, "insufficient_scope")


def test_each_key_has_a_separate_rate_limit(limited_client: Callable[..., Client]) -> None:
    busy, calm = limited_client(2), limited_client(2)
    assert [busy.get("/participants").status_code for _ in range(4)] == [200, 200, 429, 429]
    assert rate_limit_of(calm.get("/participants"))[:2] == (2, 1)


def test_a_key_has_the_default_rate_limit_unless_it_has_its_own(
    server: RunningServer, limited_client: Callable[..., Client]
) -> None:
    assert rate_limit_of(limited_client(None).get("/participants"))[0] == server.settings.rate_limit
    assert rate_limit_of(limited_client(7).get("/participants"))[0] == 7
    assert rate_limit_of(limited_client(10**9).get("/participants"))[0] == 10**9
    unlimited = limited_client(0)
    assert all(has_no_rate_limit(unlimited.get("/participants")) for _ in range(3))


def test_without_a_rate_limit_there_are_no_headers(
    start_server: Callable[..., RunningServer], limited_client: Callable[..., Client]
) -> None:
    off = start_server(rate_limit=0)
    api = limited_client(None, url=off.url)
    responses = [
        api.get("/participants"),
        api.get("/participants", limit=0),
        api.post("/note-types", {"note_type": "x"}),
    ]
    assert [(each.status_code, has_no_rate_limit(each)) for each in responses] == [
        (200, True),
        (400, True),
        (201, True),
    ]
    assert rate_limit_of(limited_client(7, url=off.url).get("/participants"))[0] == 7


# Bad credentials


def client_from_address(server: RunningServer, address: str) -> httpx.Client:
    """A client at an address of its own: all of 127.0.0.0/8 is this machine."""
    transport = httpx.HTTPTransport(local_address=address, verify=NO_TLS)
    return httpx.Client(base_url=server.url + PREFIX, transport=transport, timeout=30)


def invalid_credentials(expired: str, revoked: str) -> list[dict[str, str]]:
    headers = ["Basic YTpi", "Bearer", *(f"Bearer {key}" for key in (new_key(), "junk", expired, revoked))]
    return [{}, *({"Authorization": each} for each in headers)]


@pytest.fixture
def inactive_keys(
    server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> list[str]:
    """An expired and a revoked key."""
    owner = new_plan_manager()
    expired, revoked = new_key(owner, lasts=timedelta(microseconds=1)), new_key(owner)

    async def revoke() -> None:
        async with server.db.transaction() as tx:
            key = await store.get_by_hash(tx, hash_token(revoked))
            assert key is not None
            await service.revoke(WriteContext(tx, owner, server.settings, SYSTEM), key.id)

    server.run(revoke())
    return [expired, revoked]


def test_invalid_keys_get_no_rate_limit_headers(api: Client, inactive_keys: list[str]) -> None:
    for headers in invalid_credentials(*inactive_keys):
        response = api.send("GET", "/participants", headers=headers)
        assert (response.status_code, response.headers["www-authenticate"], has_no_rate_limit(response)) == (
            401,
            "Bearer",
            True,
        ), headers


def test_an_address_with_too_many_authentication_failures_is_rejected(
    start_server: Callable[..., RunningServer], inactive_keys: list[str]
) -> None:
    limit = len(invalid_credentials(*inactive_keys))
    limited_server = start_server(auth_failure_rate_limit=limit)
    numbers = count(1)

    def until_refused() -> tuple[str, list[int], float, list[httpx.Response], float]:
        address = f"127.1.1.{next(numbers)}"
        with client_from_address(limited_server, address) as bad:
            first = [bad.get("/participants", headers=each).status_code for each in invalid_credentials(*inactive_keys)]
            before = seconds_left(limited_server)
            rejected = [bad.get("/participants", headers=each) for each in invalid_credentials(*inactive_keys)]
            return address, first, before, rejected, seconds_left(limited_server)

    _, first, before, rejected, after = within_one_minute(limited_server, until_refused)
    assert first == [401] * limit
    for response in rejected:
        check_response(response)
        assert (response.status_code, response.json()["error"]) == (429, "rate_limit_exceeded")
        assert has_no_rate_limit(response)
        assert after - 1 <= int(response.headers["retry-after"]) <= before + 1


def test_an_address_that_is_refused_has_its_good_keys_served_and_touches_nobody_else(
    start_server: Callable[..., RunningServer], api: Client
) -> None:
    """A whole office can share an address."""
    limited_server = start_server(auth_failure_rate_limit=1)
    for address in ("127.1.0.1", "127.1.0.2"):
        limited_server.run(hold_minute(limited_server.db, f"address:{address}"))
    with (
        client_from_address(limited_server, "127.1.0.1") as bad,
        client_from_address(limited_server, "127.1.0.2") as beside,
    ):
        assert [bad.get("/participants").status_code for _ in range(2)] == [401, 429]
        good = bad.get("/participants", headers=api.headers())
        assert (good.status_code, rate_limit_of(good)[0]) == (200, limited_server.settings.rate_limit)
        assert bad.get("/participants").status_code == 429
        assert beside.get("/participants").status_code == 401


def test_invalid_requests_with_a_valid_key_are_no_authentication_failures(
    start_server: Callable[..., RunningServer], api: Client
) -> None:
    limited_server = start_server(auth_failure_rate_limit=2)
    limited_server.run(hold_minute(limited_server.db, "address:127.1.0.3"))
    with client_from_address(limited_server, "127.1.0.3") as client:
        for _ in range(5):
            assert client.get("/participants", headers={"Authorization": f"Bearer {api.key}"}).status_code == 400
            outsider = api.headers() | {"X-Plan-Manager-Id": str(uuid7())}
            assert client.get("/participants", headers=outsider).status_code == 403
        assert [client.get("/participants").status_code for _ in range(3)] == [401, 401, 429]


@pytest.mark.parametrize(
    "client, network",
    [
        (("203.0.113.9", 4711), "203.0.113.9"),
        (("2001:db8:1:2:3:4:5:6", 4711), "2001:db8:1:2::/64"),
        (("2001:db8:1:2::", 0), "2001:db8:1:2::/64"),
        (("2001:DB8:1:2:ffff::1", 0), "2001:db8:1:2::/64"),
        (("2001:db8:1:3::1", 0), "2001:db8:1:3::/64"),
        (("fe80::1%eth0", 0), "fe80::/64"),
        (("no:address", 0), "no:address"),
        (("", 0), ""),
        (None, ""),
    ],
)
def test_an_ipv6_address_counts_with_its_network(client: tuple[str, int] | None, network: str) -> None:
    assert client_network({"client": client}) == network
    if client is None:
        assert client_network({}) == network


def test_an_ipv4_mapped_address_counts_as_ipv4() -> None:
    assert client_network({"client": ("::ffff:203.0.113.9", 0)}) == "203.0.113.9"
