"""Rotating a key: the rights of the new one, the overlap with the old one, and the events."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import Actor, WriteContext
from support.client import Client
from support.server import RunningServer, wait_until

pytestmark = pytest.mark.usefixtures("frequent_sweeps")

ACTOR = Actor("system", None, "a test")
HOUR = timedelta(hours=1)
POLL_INTERVAL = 0.05


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches poll more often, so that the tests needn't wait."""
    monkeypatch.setattr("plankeeper.access.api_keys.cache.POLL_INTERVAL", POLL_INTERVAL)


class KeyHelper:
    """Makes, rotates and looks up keys."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def create(self, *owners: UUID, scopes: tuple[str, ...] = ("read", "write"), **more: Any) -> str:
        async def work() -> str:
            async with self._server.db.transaction() as tx:
                ctx = WriteContext(tx, owners[0], self._server.settings, ACTOR)
                return await service.create(ctx, "nightly", owners, scopes, more.get("lasts"), more.get("rate_limit"))

        return self._server.run(work())

    def rotate(self, key: str, overlap: timedelta, lasts: timedelta | None = None) -> str:
        return self._server.run(self.rotating(self.get(key).id, overlap, lasts))

    async def rotating(self, key_id: UUID, overlap: timedelta, lasts: timedelta | None = None) -> str:
        async with self._server.db.transaction() as tx:
            old = await store.select_for_update(tx, key_id)
            assert old
            expiry = datetime.now(UTC) + lasts if lasts else None
            return await service.rotate(WriteContext(tx, key_id, self._server.settings, ACTOR), old, overlap, expiry)

    def revoke(self, key: str) -> None:
        async def work() -> None:
            async with self._server.db.transaction() as tx:
                await service.revoke(WriteContext(tx, stored.id, self._server.settings, ACTOR), stored.id)

        stored = self.get(key)
        self._server.run(work())

    def get(self, key: str) -> ApiKey:
        api_key = self._server.run(store.get_by_hash(self._server.db, hash_token(key)))
        assert api_key
        return api_key


@pytest.fixture
def keys(server: RunningServer) -> KeyHelper:
    return KeyHelper(server)


@pytest.fixture
def client_with(server: RunningServer) -> Iterator[Callable[[str, UUID], Client]]:
    """A client with a key for a plan manager: `using(key, plan_manager_id)`."""
    made: list[Client] = []

    def make(key: str, owner: UUID) -> Client:
        made.append(Client(server.url, key, owner))
        return made[-1]

    yield make
    for each in made:
        each.http.close()


def key_events(api: Client, key: ApiKey) -> list[dict[str, Any]]:
    """The events of a key, in the feed's order, but for the warning that it expires soon."""
    events = api.get("/events", resource_id=str(key.id)).json()["data"]
    return [each for each in events if each["type"] != "api_key.expiring"]


def test_the_new_key_has_the_same_permissions_as_the_old_one(
    keys: KeyHelper, new_plan_manager: Callable[[], UUID], client_with: Callable[..., Client]
) -> None:
    owners = sorted([new_plan_manager(), new_plan_manager()])
    old = keys.create(*owners, scopes=("read",), rate_limit=77)
    new = keys.rotate(old, HOUR)
    before, after = keys.get(old), keys.get(new)
    assert (after.name, after.scopes, after.plan_managers, after.rate_limit) == ("nightly", ["read"], owners, 77)
    assert after.original_id == before.id
    assert (after.last_four, after.created_by) == (new[-4:], "a test")
    assert (after.expires_at, after.revoked_at, after.last_used_at) == (None, None, None)
    assert after.id > before.id
    for owner in owners:
        client = client_with(new, owner)
        allowed = client.get("/participants")
        assert (allowed.status_code, allowed.headers["ratelimit-policy"]) == (200, '"default";q=77;w=60')
        assert client.post("/participants", {}).json()["error"] == "insufficient_scope"
    elsewhere = client_with(new, new_plan_manager())
    assert elsewhere.get("/participants").json()["error"] == "plan_manager_not_allowed"


def test_each_of_the_two_keys_has_the_full_rate_limit(
    keys: KeyHelper, api: Client, client_with: Callable[..., Client]
) -> None:
    owner = UUID(api.plan_manager_id)
    old = keys.create(owner, rate_limit=1)
    new = keys.rotate(old, HOUR)
    assert [client_with(key, owner).get("/note-types").status_code for key in (old, new)] == [200, 200]


def test_the_old_key_works_only_during_the_overlap(
    keys: KeyHelper, api: Client, client_with: Callable[..., Client]
) -> None:
    owner = UUID(api.plan_manager_id)
    old_key = keys.create(owner)
    old = client_with(old_key, owner)
    assert old.get("/participants").status_code == 200
    new = client_with(keys.rotate(old_key, HOUR), owner)
    assert [each.get("/participants").status_code for each in (old, new)] == [200, 200]
    keys.rotate(old_key, timedelta(seconds=0.5))  # the shortest overlap applies
    rejected = wait_until(lambda: (got := old.get("/participants")).status_code != 200 and got)
    assert (rejected.status_code, rejected.json()["error"]) == (401, "expired_api_key")
    ends = keys.get(old_key).expires_at
    assert ends
    assert ends <= datetime.now(UTC)
    assert new.get("/participants").status_code == 200


def test_every_server_rejects_the_old_key_after_the_overlap(
    server: RunningServer, keys: KeyHelper, api: Client
) -> None:
    beside = RunningServer(server.dsn).start()
    owner = UUID(api.plan_manager_id)
    old_key = keys.create(owner)
    there = Client(beside.url, old_key, owner)
    with closing(there.http):
        # For longer than two of its looks for changes: so it remembers the key as one without an end.
        begun = time.monotonic()
        while time.monotonic() - begun < 2 * POLL_INTERVAL + 0.2:
            assert there.get("/participants").status_code == 200
        keys.rotate(old_key, timedelta(seconds=0.5))
        wait_until(lambda: there.get("/participants").status_code == 401)
        assert there.get("/participants").json()["error"] == "expired_api_key"
    beside.stop()


def test_an_overlap_never_extends_the_expiry_of_the_old_key(keys: KeyHelper, api: Client) -> None:
    old = keys.create(UUID(api.plan_manager_id), lasts=HOUR)
    ends = keys.get(old).expires_at
    assert ends
    new = keys.rotate(old, timedelta(days=1), timedelta(days=90))
    assert keys.get(old).expires_at == ends
    lasts = keys.get(new).expires_at
    assert lasts
    assert timedelta(days=89) < lasts - datetime.now(UTC) <= timedelta(days=90)
    # Rotated once more while both go on: it may end earlier, never later.
    keys.rotate(old, timedelta(days=30))
    assert keys.get(old).expires_at == ends
    keys.rotate(old, timedelta(minutes=1))
    sooner = keys.get(old).expires_at
    assert sooner
    assert sooner < ends


def test_the_original_key_is_recorded_through_every_rotation(keys: KeyHelper, api: Client) -> None:
    first = keys.create(UUID(api.plan_manager_id))
    line = [first]
    for _ in range(3):
        line.append(keys.rotate(line[-1], HOUR))
    assert len(set(line)) == 4
    assert {keys.get(each).original_id for each in line} == {keys.get(first).id}


def test_a_rotation_is_recorded_for_each_plan_manager(
    keys: KeyHelper, new_client: Callable[..., Client], server: RunningServer
) -> None:
    clients = [new_client(), new_client()]
    owners = [UUID(each.plan_manager_id) for each in clients]
    old = keys.create(*owners)
    before = keys.get(old)
    new = keys.rotate(old, HOUR)
    after, made = keys.get(old), keys.get(new)
    for client in clients:
        wait_until(lambda client=client: len(key_events(client, before)) == 2 and key_events(client, made))
        created, rotated = key_events(client, before)
        [born] = key_events(client, made)
        assert [created["type"], rotated["type"], born["type"]] == [
            "api_key.created", "api_key.rotated", "api_key.created",
        ]  # fmt: skip
        assert rotated["previous"] == {"expires_at": None}
        assert after.expires_at
        assert datetime.fromisoformat(rotated["data"]["expires_at"]) == after.expires_at
        assert born["previous"] is None
        assert born["data"]["original_id"] == str(before.id)
        assert {each["actor"]["name"] for each in (created, rotated, born)} == {"a test"}
    stored = "select coalesce(string_agg(events::text, ''), '') from events where plan_manager_id = any ($1)"
    text = server.run(server.db.one(str, stored, owners))
    assert str(made.id) in text
    assert not [key for key in (old, new) if key in text or key[4:-6] in text]


def test_a_rotation_that_keeps_the_old_expiry_is_recorded_too(keys: KeyHelper, api: Client) -> None:
    old = keys.create(UUID(api.plan_manager_id), lasts=HOUR)
    made = keys.get(keys.rotate(old, timedelta(days=1)))
    wait_until(lambda: key_events(api, made))  # written in the same transaction
    assert "api_key.rotated" in [each["type"] for each in key_events(api, keys.get(old))]


def test_revoking_the_old_key_does_not_affect_the_new_one(
    keys: KeyHelper, api: Client, client_with: Callable[..., Client]
) -> None:
    owner = UUID(api.plan_manager_id)
    old_key = keys.create(owner)
    new = client_with(keys.rotate(old_key, HOUR), owner)
    old = client_with(old_key, owner)
    assert [each.get("/participants").status_code for each in (old, new)] == [200, 200]
    keys.revoke(old_key)
    wait_until(lambda: old.get("/participants").status_code == 401)
    assert old.get("/participants").json()["error"] == "invalid_api_key"
    assert new.get("/participants").status_code == 200


def test_concurrent_rotations_each_create_a_key_and_the_shortest_overlap_applies(
    server: RunningServer, keys: KeyHelper, api: Client
) -> None:
    old = keys.create(UUID(api.plan_manager_id))
    overlaps = [timedelta(minutes=each) for each in (50, 10, 40, 20, 30)]
    ident = keys.get(old).id

    async def rotate_concurrently() -> list[str]:
        return await asyncio.gather(*(keys.rotating(ident, each) for each in overlaps))

    made = server.run(rotate_concurrently())
    assert len({keys.get(each).id for each in made}) == len(overlaps)
    ends = keys.get(old).expires_at
    assert ends
    assert ends - datetime.now(UTC) <= timedelta(minutes=10)
