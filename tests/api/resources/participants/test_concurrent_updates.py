"""Updates read without a lock: none of them undoes another, and each event starts from the one before it."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Transaction
from plankeeper.resources.participants import store
from support.client import Client
from support.server import RunningServer, wait_until

ROUNDS = 12
FIELDS = ("first_name", "middle_name", "last_name", "preferred_name", "city", "postcode")


def updates_of(api: Client, participant_id: str) -> list[dict[str, Any]]:
    params = {"resource_id": participant_id, "type": "participant.updated", "limit": 1000, "after": "0"}
    return api.get("/events", **params).json()["data"]


class Attempts:
    """The updates that are written: the number of those with and without a lock. `before` runs before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.locked, self.unlocked = 0, 0
        update = store.update

        async def count_and_update(tx: Transaction, *given: Any) -> None:
            if tx.reader is tx:
                self.locked += 1
            else:
                self.unlocked += 1
                if before:
                    await before()
            await update(tx, *given)

        monkeypatch.setattr(store, "update", count_and_update)


def test_concurrent_updates_of_a_participant_keep_each_other(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch)
    participant_id = api.create("/participants", {"state": "NSW"})["id"]

    def update(field: str) -> None:
        for number in range(ROUNDS):
            assert api.put(f"/participants/{participant_id}", {field: f"{number}"}).status_code == 200

    with ThreadPoolExecutor(len(FIELDS)) as threads:
        list(threads.map(update, FIELDS))
    stored = api.get(f"/participants/{participant_id}").json()
    assert {field: stored[field] for field in FIELDS} == dict.fromkeys(FIELDS, str(ROUNDS - 1))
    assert attempts.unlocked == ROUNDS * len(FIELDS)
    events = wait_until(lambda: len(found := updates_of(api, participant_id)) == attempts.unlocked and found)
    values = dict[str, Any].fromkeys(FIELDS)
    for each in events:
        assert each["previous"] == {field: values[field] for field in each["previous"]}
        values = {field: each["data"][field] for field in FIELDS}


def test_an_update_that_another_one_overtakes_starts_again_with_a_lock(
    server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = UUID(api.create("/participants", {"state": "NSW"})["id"])
    statement = "update participants set city = 'Hobart', updated_at = clock_timestamp() where id = $1"
    attempts = Attempts(monkeypatch, lambda: server.db.execute(statement, made))
    updated = api.put(f"/participants/{made}", {"postcode": "7000"}).json()
    assert (updated["city"], updated["postcode"], updated["state"]) == ("Hobart", "7000", "NSW")
    assert (attempts.unlocked, attempts.locked) == (1, 1)
    [event] = wait_until(lambda: updates_of(api, str(made)))
    assert event["previous"] == {"postcode": None}


def test_an_update_with_if_match_locks_the_participant(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = api.create("/participants", {"state": "NSW"})["id"]
    tag = api.get(f"/participants/{made}").headers["etag"]
    attempts = Attempts(monkeypatch)
    response = api.put(f"/participants/{made}", {"city": "Perth", "state": "WA"}, headers={"If-Match": tag})
    assert (response.status_code, response.headers["content-location"]) == (200, f"/api/public/v1/participants/{made}")
    totals = [api.get("/participants", state=state).json()["pagination"]["total"] for state in ("NSW", "WA")]
    assert totals == [0, 1]
    assert (attempts.unlocked, attempts.locked) == (0, 1)
