"""Errors in the request log: fields and codes, the user agent, and rejected requests of known keys."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import httpx
import pytest
from msgspec import json
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.api_keys.format import new_key as new_key_text
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.request_log import store
from plankeeper.access.request_log.buffer import DAY_RETENTION, RequestLogBuffer, RequestLogRetention
from plankeeper.access.request_log.schemas import KeyRejection, LoggedFieldError, LoggedRequest
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import RejectedRequest
from plankeeper.core.errors import RejectionReason
from plankeeper.core.validation import HIDDEN_NAME, MAX_LOGGED_ERRORS
from plankeeper.database import write_buffer
from plankeeper.database.client import Database
from support.client import NO_TLS, PREFIX, Client
from support.cluster import SharedCluster
from support.server import RunningServer, wait_until

PERSON = "zebulonia@quartermaine.example"
NOW = datetime.now(UTC)

pytestmark = pytest.mark.usefixtures("soon_written")


@pytest.fixture
def logged(server: RunningServer, api: Client) -> Callable[[int], list[LoggedRequest]]:
    """Waits until the log of the plan manager has so many requests."""
    plan_manager_id = UUID(api.plan_manager_id)

    def read() -> list[LoggedRequest]:
        batches = server.run(store.list_latest(server.db, plan_manager_id, None, 1000))
        found = [request for batch in batches for request in batch.requests]
        return sorted(found, key=lambda each: each.timestamp)

    return lambda count: wait_until(lambda: len(found := read()) == count and found)


@pytest.fixture
def key_of(server: RunningServer) -> Callable[[str], ApiKey]:
    """The key with a secret."""

    def get(secret: str) -> ApiKey:
        key = server.run(api_key_store.get_by_hash(server.db, hash_token(secret)))
        assert key
        return key

    return get


@pytest.fixture
def rejections_of(server: RunningServer) -> Callable[[UUID], dict[str, KeyRejection]]:
    """The rejected requests of a key, by reason."""
    return lambda key_id: {each.reason: each for each in server.run(store.list_rejections(server.db, key_id))}


def test_the_fields_and_codes_of_an_error_are_kept_without_messages_and_values(
    api: Client, logged: Callable[[int], list[LoggedRequest]]
) -> None:
    api.post("/providers", {"entity_name": 7, "email": PERSON[:8], "active": None})
    api.get("/participants", status=PERSON, limit="x")
    api.get("/participants/x")
    api.get(f"/participants/{uuid7()}")
    assert [(each.error_code, each.field_errors, each.errors_total) for each in logged(4)] == [
        (
            "invalid_request",
            [
                LoggedFieldError("body", "entity_name", "invalid_type"),
                LoggedFieldError("body", "email", "invalid_format"),
                LoggedFieldError("body", "active", "invalid_type"),
            ],
            3,
        ),
        (
            "invalid_request",
            [
                LoggedFieldError("query", "limit", "invalid_type"),
                LoggedFieldError("query", "status[0]", "not_allowed"),
            ],
            2,
        ),
        ("invalid_request", [LoggedFieldError("path", "participant_id", "invalid_format")], 1),
        ("not_found", [], 0),
    ]


def test_names_that_a_client_has_chosen_are_hidden_unless_they_are_misspelt_fields(
    server: RunningServer, api: Client, logged: Callable[[int], list[LoggedRequest]]
) -> None:
    api.post(
        "/providers", {PERSON: 1, "items[1]." + PERSON: 1, "entity_nam": "x", "plan_manager_id": "x", "é" * 500: 1}
    )
    api.post("/providers/bulk", {"items": [{"id": str(uuid7())}, {PERSON: 1, "emial": "x"}]})
    api.get("/participants", **{PERSON: "1"})
    api.http.get(f"{PREFIX}/participants?{PERSON}=1&{PERSON}=2", headers=api.headers())
    body, items, once, twice = logged(4)
    assert [(each.field, each.code) for each in body.field_errors if each.code == "unknown"] == [
        (HIDDEN_NAME, "unknown"),
        (f"items[1].{HIDDEN_NAME}", "unknown"),
        ("entity_nam", "unknown"),
        ("plan_manager_id", "unknown"),
        (HIDDEN_NAME, "unknown"),
    ]
    assert [each.field for each in items.field_errors if each.code == "unknown"] == [
        f"items[1].{HIDDEN_NAME}",
        "items[1].emial",
    ]
    assert once.field_errors == twice.field_errors == [LoggedFieldError("query", HIDDEN_NAME, "unknown")]
    statement = "select requests::text from api_request_batches where plan_manager_id = $1"
    stored = server.run(server.db.rows(str, statement, UUID(api.plan_manager_id)))
    assert [each for each in stored if "quartermaine" in each] == []


def test_a_bounded_number_of_errors_is_kept(api: Client, logged: Callable[[int], list[LoggedRequest]]) -> None:
    response = api.post("/providers/bulk", {"items": [{"email": 1, "active": 1} for _ in range(60)]})
    [request] = logged(1)
    assert len(request.field_errors) == MAX_LOGGED_ERRORS
    assert request.errors_total == response.json()["errors_total"] > 100


def test_the_user_agent_is_kept_up_to_a_length_and_without_control_characters(
    api: Client, logged: Callable[[int], list[LoggedRequest]]
) -> None:
    for user_agent in (b"Sync/1.2 (\tcaf\xe9\x85)", b"x" * 5000, b"\x80"):
        api.request("GET", "/participants", headers={"User-Agent": user_agent})
    assert [each.user_agent for each in logged(3)] == ["Sync/1.2 (café)", "x" * 200, None]


def test_rows_of_servers_of_the_release_before_are_read_and_they_read_newer_ones() -> None:
    old = '[1.5,"key","GET","/x","/x",200,1.23,"r7",null]'
    request = json.decode(old, type=LoggedRequest)
    assert (request.user_agent, request.field_errors, request.errors_total) == (None, [], 0)
    newer = json.encode(request)[:-1] + b',{"more":[1]}]'
    assert json.decode(newer, type=LoggedRequest) == request


@pytest.fixture
def revoked_key(
    server: RunningServer, new_key: Callable[..., str], key_of: Callable[[str], ApiKey]
) -> Callable[[UUID], str]:
    """Makes a key that is revoked."""

    def make(plan_manager_id: UUID) -> str:
        secret = new_key(plan_manager_id)
        key = key_of(secret)

        async def revoke() -> None:
            async with server.db.transaction() as tx:
                await api_key_store.revoke(tx, key.id, datetime.now(UTC))
                await api_key_store.bump_version(tx)

        server.run(revoke())
        return secret

    return make


def request_error(client: httpx.Client, secret: str, plan_manager: object) -> tuple[int, str]:
    """The status and the code of the response to a request with a key."""
    headers = {"Authorization": f"Bearer {secret}", "User-Agent": "Sync/1.2"}
    if plan_manager:
        headers["X-Plan-Manager-Id"] = str(plan_manager)
    response = client.get(f"{PREFIX}/participants/{uuid7()}", headers=headers)
    return response.status_code, response.json()["error"]


def test_rejected_requests_of_known_keys_are_counted_by_reason(
    server: RunningServer,
    new_key: Callable[..., str],
    revoked_key: Callable[[UUID], str],
    new_plan_manager: Callable[[], UUID],
    key_of: Callable[[str], ApiKey],
    rejections_of: Callable[[UUID], dict[str, KeyRejection]],
) -> None:
    owner, elsewhere = new_plan_manager(), new_plan_manager()
    expired, revoked, valid = new_key(owner, lasts=timedelta(seconds=-1)), revoked_key(owner), new_key(owner)
    with httpx.Client(base_url=server.url, verify=NO_TLS) as client:
        for secret, plan_manager, response in (
            (expired, owner, (401, "expired_api_key")),
            (expired, elsewhere, (401, "expired_api_key")),
            (revoked, owner, (401, "invalid_api_key")),
            (valid, elsewhere, (403, "plan_manager_not_allowed")),
            (valid, None, (400, "missing_plan_manager_id")),
            (valid, "x", (400, "invalid_plan_manager_id")),
            (valid, owner, (404, "not_found")),
            (new_key_text(), owner, (401, "invalid_api_key")),
        ):
            assert request_error(client, secret, plan_manager) == response
    expected: dict[str, dict[str, int]] = {
        expired: {"expired_api_key": 2},
        revoked: {"revoked_api_key": 1},
        valid: {"plan_manager_not_allowed": 1, "missing_plan_manager_id": 1, "invalid_plan_manager_id": 1},
    }

    def count_by_reason(secret: str) -> dict[str, int]:
        return {reason: each.requests for reason, each in rejections_of(key_of(secret).id).items()}

    wait_until(lambda: {secret: count_by_reason(secret) for secret in expected} == expected)
    [latest] = rejections_of(key_of(expired).id).values()
    assert (latest.method, latest.user_agent) == ("GET", "Sync/1.2")
    assert latest.route == f"{PREFIX}/participants/{{participant_id}}"
    assert latest.first_at < latest.last_at
    wait_until(lambda: server.run(store.count(server.db, owner)) == 1)
    assert server.run(store.count(server.db, elsewhere)) == 0


def test_rejected_requests_count_beyond_the_limit_of_their_address(
    cluster: SharedCluster,
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    key_of: Callable[[str], ApiKey],
    rejections_of: Callable[[UUID], dict[str, KeyRejection]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The server writes when it stops: a write that it interrupts then is repeated, and counts twice if it was done.
    monkeypatch.setattr(write_buffer, "FLUSH_INTERVAL", 60.0)
    owner = new_plan_manager()
    secret = new_key(owner, lasts=timedelta(seconds=-1))
    limited = RunningServer(cluster.dsn, auth_failure_rate_limit=2).start()
    try:
        with httpx.Client(
            base_url=limited.url, transport=httpx.HTTPTransport(local_address="127.1.9.1", verify=NO_TLS)
        ) as client:
            statuses = [request_error(client, secret, owner)[0] for _ in range(12)]
    finally:
        limited.stop()
    # If the minute ends meanwhile, the limit starts again.
    assert (statuses[0], statuses.count(429) >= 8) == (401, True)
    assert [each.requests for each in rejections_of(key_of(secret).id).values()] == [12]


def rejected(key_id: UUID, number: int, reason: RejectionReason = "expired_api_key") -> RejectedRequest:
    return RejectedRequest(key_id, reason, NOW + timedelta(seconds=number), "GET", "/x", b"curl/8", b"r%d" % number)


@pytest.fixture
def key_ids(
    new_key: Callable[..., str], new_plan_manager: Callable[[], UUID], key_of: Callable[[str], ApiKey]
) -> list[UUID]:
    owner = new_plan_manager()
    return [key_of(new_key(owner)).id for _ in range(2)]


async def test_a_flood_of_rejections_is_one_row_for_each_key_and_reason(
    cluster: SharedCluster, key_ids: list[UUID]
) -> None:
    first, second = key_ids
    async with Database(cluster.dsn).open() as db:
        worker, other = RequestLogBuffer(db, ZoneInfo("UTC")), RequestLogBuffer(db, ZoneInfo("UTC"))
        for number in range(50_000):
            worker.append_rejection(rejected(first, number))
        worker.append_rejection(rejected(second, 1))
        worker.append_rejection(rejected(first, 7, "revoked_api_key"))
        assert len(worker._rejections) == 3  # noqa: SLF001 - the bound of the memory
        other.append_rejection(rejected(first, 60_000))
        await asyncio.gather(worker.flush(), other.flush())
        await worker.flush()
        stored = {each.reason: each for each in await store.list_rejections(db, first)}
        assert {reason: each.requests for reason, each in stored.items()} == {
            "expired_api_key": 50_001,
            "revoked_api_key": 1,
        }
        expired = stored["expired_api_key"]
        assert (expired.first_at, expired.last_at) == (NOW, NOW + timedelta(seconds=60_000))
        assert [each.requests for each in await store.list_rejections(db, second)] == [1]


async def test_rejections_wait_for_the_database(cluster: SharedCluster, key_ids: list[UUID]) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    worker = RequestLogBuffer(away, ZoneInfo("UTC"))
    async with away.open():
        for number in range(3):
            worker.append_rejection(rejected(key_ids[0], number))
            await worker.flush()
    async with Database(cluster.dsn).open() as db:
        worker._db = db  # noqa: SLF001 - the database is back
        await worker.flush()
        [stored] = await store.list_rejections(db, key_ids[0])
    assert (stored.requests, stored.first_at, stored.request_id) == (3, NOW, "r2")


@pytest.mark.parametrize("is_on", [True, False])
async def test_old_rejections_are_deleted_and_all_of_them_when_the_log_is_off(
    cluster: SharedCluster, key_ids: list[UUID], *, is_on: bool
) -> None:
    hour = timedelta(hours=1)
    old, kept = (
        KeyRejection(key_id, "expired_api_key", 1, at, at, "GET", None, None, "r")
        for key_id, at in zip(key_ids, (NOW - DAY_RETENTION - hour, NOW - DAY_RETENTION + hour), strict=True)
    )
    async with Database(cluster.dsn).open() as db:
        async with db.transaction() as tx:
            await store.add_rejections(tx, sorted([old, kept], key=lambda each: each.api_key_id))
        await RequestLogRetention(7 if is_on else 0)(db)
        found = [await store.list_rejections(db, each.api_key_id) for each in (old, kept)]
    assert found == [[], [kept] if is_on else []]
