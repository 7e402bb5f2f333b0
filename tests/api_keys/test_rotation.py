"""Rotating a key: what the new one may do, how long the old one goes on, and what is told of it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from plankeeper.api_keys import service, store
from plankeeper.api_keys.cache import POLL_INTERVAL
from plankeeper.api_keys.format import hash_key
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.http.context import Actor, WriteContext
from support.client import Client
from support.server import RunningServer, wait_until

BY = Actor("system", None, "a test")
HOUR = timedelta(hours=1)


class Keys:
    """Makes, rotates and looks up keys."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def create(self, *owners: UUID, scopes: tuple[str, ...] = ("read", "write"), **more: Any) -> str:
        async def work() -> str:
            async with self._server.db.transaction() as tx:
                call = WriteContext(tx, owners[0], self._server.settings, BY)
                return await service.create(call, "nightly", owners, scopes, more.get("lasts"), more.get("rate_limit"))

        return self._server.run(work())

    def rotate(self, key: str, overlap: timedelta, lasts: timedelta | None = None) -> str:
        return self._server.run(self.rotating(self.kept(key).id, overlap, lasts))

    async def rotating(self, key_id: UUID, overlap: timedelta, lasts: timedelta | None = None) -> str:
        async with self._server.db.transaction() as tx:
            old = await store.select_for_update(tx, key_id)
            assert old
            return await service.rotate(WriteContext(tx, key_id, self._server.settings, BY), old, overlap, lasts)

    def revoke(self, key: str) -> None:
        async def work() -> None:
            async with self._server.db.transaction() as tx:
                await service.revoke(WriteContext(tx, kept.id, self._server.settings, BY), kept.id)

        kept = self.kept(key)
        self._server.run(work())

    def kept(self, key: str) -> ApiKey:
        found = self._server.run(store.get_by_hash(self._server.db, hash_key(key)))
        assert found
        return found


@pytest.fixture
def keys(server: RunningServer) -> Keys:
    return Keys(server)


@pytest.fixture
def using(server: RunningServer) -> Iterator[Callable[[str, UUID], Client]]:
    """A client with a key for a plan manager: `using(key, plan_manager_id)`."""
    made: list[Client] = []

    def make(key: str, owner: UUID) -> Client:
        made.append(Client(server.url, key, owner))
        return made[-1]

    yield make
    for each in made:
        each.http.close()


def told_of(api: Client, key: ApiKey) -> list[dict[str, Any]]:
    """The events of a key, in the feed's order, but for the warning that it expires soon."""
    events = api.get("/events", resource_id=str(key.id)).json()["data"]
    return [each for each in events if each["type"] != "api_key.expiring"]


def test_the_new_key_may_do_what_the_old_one_may_and_no_more(
    keys: Keys, new_plan_manager: Callable[[], UUID], using: Callable[..., Client]
) -> None:
    owners = sorted([new_plan_manager(), new_plan_manager()])
    old = keys.create(*owners, scopes=("read",), rate_limit=77)
    new = keys.rotate(old, HOUR)
    before, after = keys.kept(old), keys.kept(new)
    assert (after.name, after.scopes, after.plan_managers, after.rate_limit) == ("nightly", ["read"], owners, 77)
    assert after.original_id == before.id
    assert (after.last_four, after.created_by) == (new[-4:], "a test")
    assert (after.expires_at, after.revoked_at, after.last_used_at) == (None, None, None)
    assert after.id > before.id
    for owner in owners:
        client = using(new, owner)
        allowed = client.get("/participants")
        assert (allowed.status_code, allowed.headers["ratelimit-policy"]) == (200, '"default";q=77;w=60')
        assert client.post("/participants", {}).json()["error"] == "insufficient_scope"
    elsewhere = using(new, new_plan_manager())
    assert elsewhere.get("/participants").json()["error"] == "plan_manager_not_allowed"


def test_each_of_the_two_keys_has_the_whole_quota(keys: Keys, api: Client, using: Callable[..., Client]) -> None:
    owner = UUID(api.plan_manager_id)
    old = keys.create(owner, rate_limit=1)
    new = keys.rotate(old, HOUR)
    assert [using(key, owner).get("/note-types").status_code for key in (old, new)] == [200, 200]


def test_the_old_key_works_for_the_overlap_and_the_new_one_after_it(
    keys: Keys, api: Client, using: Callable[..., Client]
) -> None:
    owner = UUID(api.plan_manager_id)
    old_key = keys.create(owner)
    old = using(old_key, owner)
    assert old.get("/participants").status_code == 200
    new = using(keys.rotate(old_key, timedelta(seconds=5)), owner)
    assert [each.get("/participants").status_code for each in (old, new)] == [200, 200]
    refused = wait_until(lambda: (got := old.get("/participants")).status_code != 200 and got, 30)
    assert (refused.status_code, refused.json()["error"]) == (401, "expired_api_key")
    ends = keys.kept(old_key).expires_at
    assert ends
    assert ends <= datetime.now(UTC)
    assert new.get("/participants").status_code == 200


def test_every_server_learns_that_the_old_key_ends(
    server: RunningServer, keys: Keys, api: Client, using: Callable[..., Client]
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
        keys.rotate(old_key, timedelta(seconds=1))
        wait_until(lambda: there.get("/participants").status_code == 401, 20)
        assert there.get("/participants").json()["error"] == "expired_api_key"
    beside.stop()


def test_no_overlap_ends_the_old_key_later_than_it_would_have_ended(keys: Keys, api: Client) -> None:
    old = keys.create(UUID(api.plan_manager_id), lasts=HOUR)
    ends = keys.kept(old).expires_at
    assert ends
    new = keys.rotate(old, timedelta(days=1), timedelta(days=90))
    assert keys.kept(old).expires_at == ends
    lasts = keys.kept(new).expires_at
    assert lasts
    assert timedelta(days=89) < lasts - datetime.now(UTC) <= timedelta(days=90)
    # Rotated once more while both go on: it may end earlier, never later.
    keys.rotate(old, timedelta(days=30))
    assert keys.kept(old).expires_at == ends
    keys.rotate(old, timedelta(minutes=1))
    sooner = keys.kept(old).expires_at
    assert sooner
    assert sooner < ends


def test_the_first_key_of_a_line_is_remembered_through_every_rotation(keys: Keys, api: Client) -> None:
    first = keys.create(UUID(api.plan_manager_id))
    line = [first]
    for _ in range(3):
        line.append(keys.rotate(line[-1], HOUR))
    assert len(set(line)) == 4
    assert {keys.kept(each).original_id for each in line} == {keys.kept(first).id}


def test_a_rotation_is_told_of_under_each_plan_manager(
    keys: Keys, new_client: Callable[..., Client], server: RunningServer
) -> None:
    clients = [new_client(), new_client()]
    owners = [UUID(each.plan_manager_id) for each in clients]
    old = keys.create(*owners)
    before = keys.kept(old)
    new = keys.rotate(old, HOUR)
    after, made = keys.kept(old), keys.kept(new)
    for client in clients:
        wait_until(lambda client=client: len(told_of(client, before)) == 2 and told_of(client, made))
        created, rotated = told_of(client, before)
        [born] = told_of(client, made)
        assert [created["type"], rotated["type"], born["type"]] == [
            "api_key.created", "api_key.rotated", "api_key.created",
        ]  # fmt: skip
        assert rotated["previous"] == {"expires_at": None}
        assert after.expires_at
        assert datetime.fromisoformat(rotated["data"]["expires_at"]) == after.expires_at
        assert born["previous"] is None
        assert born["data"]["original_id"] == str(before.id)
        assert {each["actor"]["name"] for each in (created, rotated, born)} == {"a test"}
    kept = "select coalesce(string_agg(events::text, ''), '') from events where plan_manager_id = any ($1)"
    text = server.run(server.db.one(str, kept, owners))
    assert str(made.id) in text
    assert not [key for key in (old, new) if key in text or key[4:-6] in text]


def test_a_rotation_that_leaves_the_old_keys_end_as_it_is_is_told_of_too(keys: Keys, api: Client) -> None:
    old = keys.create(UUID(api.plan_manager_id), lasts=HOUR)
    made = keys.kept(keys.rotate(old, timedelta(days=1)))
    wait_until(lambda: told_of(api, made))  # written in the same transaction
    assert "api_key.rotated" in [each["type"] for each in told_of(api, keys.kept(old))]


def test_a_revoked_old_key_takes_nothing_from_the_new_one(
    keys: Keys, api: Client, using: Callable[..., Client]
) -> None:
    owner = UUID(api.plan_manager_id)
    old_key = keys.create(owner)
    new = using(keys.rotate(old_key, HOUR), owner)
    old = using(old_key, owner)
    assert [each.get("/participants").status_code for each in (old, new)] == [200, 200]
    keys.revoke(old_key)
    wait_until(lambda: old.get("/participants").status_code == 401)
    assert old.get("/participants").json()["error"] == "invalid_api_key"
    assert new.get("/participants").status_code == 200


def test_rotations_at_once_each_make_a_key_and_the_old_one_ends_by_the_shortest(
    server: RunningServer, keys: Keys, api: Client
) -> None:
    old = keys.create(UUID(api.plan_manager_id))
    overlaps = [timedelta(minutes=each) for each in (50, 10, 40, 20, 30)]
    ident = keys.kept(old).id

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(keys.rotating(ident, each) for each in overlaps))

    made = server.run(all_at_once())
    assert len({keys.kept(each).id for each in made}) == len(overlaps)
    ends = keys.kept(old).expires_at
    assert ends
    assert ends - datetime.now(UTC) <= timedelta(minutes=10)
