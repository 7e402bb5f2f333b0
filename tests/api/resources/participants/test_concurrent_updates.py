"""Updates read without a lock: none of them undoes another, and each event starts from the one before it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from plankeeper.resources.participants import store
from support.client import Client
from support.server import RunningServer, wait_until

ROUNDS = 12
FIELDS = ("first_name", "middle_name", "last_name", "preferred_name", "city", "postcode")


def updates_of(api: Client, participant_id: str) -> list[dict[str, Any]]:
    params = {"resource_id": participant_id, "type": "participant.updated", "limit": 1000, "after": "0"}
    return api.get("/events", **params).json()["data"]


def test_concurrent_updates_of_a_participant_keep_each_other(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, update_version = Counter[str](), store.update_version

    async def count_and_update(*given: Any, **options: Any) -> None:
        sent["without a lock"] += 1
        await update_version(*given, **options)

    monkeypatch.setattr(store, "update_version", count_and_update)
    participant_id = api.create("/participants", {"state": "NSW"})["id"]

    def update(field: str) -> None:
        for number in range(ROUNDS):
            assert api.put(f"/participants/{participant_id}", {field: f"{number}"}).status_code == 200

    with ThreadPoolExecutor(len(FIELDS)) as threads:
        list(threads.map(update, FIELDS))
    stored = api.get(f"/participants/{participant_id}").json()
    assert {field: stored[field] for field in FIELDS} == dict.fromkeys(FIELDS, str(ROUNDS - 1))
    assert sent["without a lock"] == ROUNDS * len(FIELDS)
    events = wait_until(lambda: len(found := updates_of(api, participant_id)) == sent.total() and found)
    values = dict[str, Any].fromkeys(FIELDS)
    for each in events:
        assert each["previous"] == {field: values[field] for field in each["previous"]}
        values = {field: each["data"][field] for field in FIELDS}


def test_an_update_that_another_one_overtakes_starts_again_with_a_lock(
    server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, update_version = UUID(api.create("/participants", {"state": "NSW"})["id"]), store.update_version

    async def be_overtaken(*given: Any, **options: Any) -> None:
        await server.db.execute("update participants set city = 'Hobart' where id = $1", made)
        await update_version(*given, **options)

    monkeypatch.setattr(store, "update_version", be_overtaken)
    updated = api.put(f"/participants/{made}", {"postcode": "7000"}).json()
    assert (updated["city"], updated["postcode"], updated["state"]) == ("Hobart", "7000", "NSW")
    [event] = wait_until(lambda: updates_of(api, str(made)))
    assert event["previous"] == {"postcode": None}


def test_an_update_with_if_match_locks_the_participant(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = api.create("/participants", {"state": "NSW"})["id"]
    tag = api.get(f"/participants/{made}").headers["etag"]

    async def fail(*_given: object, **_options: object) -> None:
        raise AssertionError("it must have a lock")

    monkeypatch.setattr(store, "update_version", fail)
    response = api.put(f"/participants/{made}", {"city": "Perth", "state": "WA"}, headers={"If-Match": tag})
    assert (response.status_code, response.headers["content-location"]) == (200, f"/api/public/v1/participants/{made}")
    totals = [api.get("/participants", state=state).json()["pagination"]["total"] for state in ("NSW", "WA")]
    assert totals == [0, 1]
