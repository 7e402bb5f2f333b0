"""Requests that are sent again: one write, and whoever gets a success gets the same one."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service
from plankeeper.api_keys.format import hash_key
from plankeeper.api_keys.store import get_by_hash, select_for_update
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.idempotency.store import purge
from support.client import Client
from support.server import RunningServer

CREATES: dict[str, dict[str, Any]] = {
    "/participants": {"first_name": "Una", "last_name": "Retry"},
    "/providers": {"entity_name": "Once Ltd"},
    "/note-types": {"note_type": "Once"},
}


def keyed(key: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key}}


def total(api: Client, path: str) -> int:
    return api.get(path, limit=1).json()["pagination"]["total"]


def ids_of_events(api: Client) -> list[str]:
    """The resources of all events, read past the feed, which is a moment behind."""
    return [each["resource"]["id"] for each in api.get("/events", limit=1000).json()["data"]]


@pytest.mark.parametrize("path", CREATES)
def test_the_same_request_again_gets_the_same_answer_and_writes_nothing(api: Client, path: str) -> None:
    key = str(uuid7())
    first, again = (api.post(path, CREATES[path], **keyed(key)) for _ in range(2))
    assert first.status_code in (200, 201)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert total(api, path) == 1


def test_a_team_member_too(api: Client) -> None:
    participant = api.made("/participants", {})["id"]
    path = f"/participants/{participant}/team-members"
    new = {"first_name": "Tia", "email": "tia@example.com", "permissions": ["view_budget"]}
    first, again = (api.post(path, new, **keyed("tia")) for _ in range(2))
    assert (first.status_code, first.content) == (201, again.content)
    # Without the key the constraint answers.
    assert api.post(path, new).status_code == 409


def test_fifty_at_once_make_one_row_and_all_get_it(api: Client) -> None:
    barrier = threading.Barrier(50)

    def send(_number: int) -> Any:
        client = Client(str(api.http.base_url), api.key, api.plan_manager_id)
        barrier.wait()
        with client.http:
            return client.post("/participants", CREATES["/participants"], **keyed("at-once"))

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(send, range(50)))
    successes = [each for each in answers if each.status_code == 200]
    assert {each.status_code for each in answers} <= {200, 409, 503}
    assert successes
    assert len({each.content for each in successes}) == 1
    assert total(api, "/participants") == 1


def test_another_request_under_the_same_key_is_refused(api: Client) -> None:
    api.post("/participants", {"first_name": "One"}, **keyed("shared"))
    other_body = api.post("/participants", {"first_name": "Two"}, **keyed("shared"))
    other_query = api.post("/participants?view=full", {"first_name": "One"}, **keyed("shared"))
    assert [(each.status_code, each.json()["error"]) for each in (other_body, other_query)] == [
        (422, "idempotency_key_reused")
    ] * 2
    assert total(api, "/participants") == 1


def test_a_refusal_is_not_kept(api: Client) -> None:
    participant = api.made("/participants", {})["id"]
    path = f"/participants/{participant}/team-members"
    held = api.made(path, {"first_name": "Holder", "contact_priority": 1})
    new = {"first_name": "Late", "contact_priority": 1}
    assert api.post(path, new, **keyed("late")).status_code == 409
    api.delete(f"{path}/{held['id']}")
    assert api.post(path, new, **keyed("late")).status_code == 201


def test_a_key_counts_for_a_path_a_plan_manager_and_an_api_key(
    api: Client, other: Client, new_key: Callable[..., str]
) -> None:
    made = [api.post(path, CREATES[path], **keyed("same")).json()["id"] for path in ("/participants", "/providers")]
    made.append(other.post("/participants", CREATES["/participants"], **keyed("same")).json()["id"])
    second = Client(str(api.http.base_url), new_key(UUID(api.plan_manager_id)), api.plan_manager_id)
    with second.http:
        made.append(second.post("/participants", CREATES["/participants"], **keyed("same")).json()["id"])
    assert len(set(made)) == 4


def test_a_rotated_key_goes_on_with_the_retries_of_the_old_one(server: RunningServer, api: Client) -> None:
    first = api.post("/participants", CREATES["/participants"], **keyed("rotated"))

    async def rotate() -> str:
        async with server.db.transaction() as tx:
            known = await get_by_hash(tx, hash_key(api.key))
            assert known
            old = await select_for_update(tx, known.id)
            assert old
            from datetime import timedelta

            return await service.rotate(
                WriteContext(tx, known.id, server.settings, SYSTEM), old, timedelta(hours=1), None
            )

    again = Client(str(api.http.base_url), server.run(rotate()), api.plan_manager_id)
    with again.http:
        assert again.post("/participants", CREATES["/participants"], **keyed("rotated")).content == first.content


@pytest.mark.parametrize("key", ["", "with space", "ü", "x" * 256, "tab\there"])
def test_a_key_that_is_none_is_refused(api: Client, key: str) -> None:
    answer = api.request("POST", "/participants", json={}, headers={"Idempotency-Key": key.encode()})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "Idempotency-Key")
    assert total(api, "/participants") == 0


def test_after_a_day_a_key_is_new(server: RunningServer, api: Client) -> None:
    first = api.post("/participants", CREATES["/participants"], **keyed("daily")).json()
    server.run(
        server.db.execute(
            "update idempotency_records set created_at = created_at - interval '25 hours' where plan_manager_id = $1",
            api.plan_manager_id,
        )
    )
    again = api.post("/participants", {"first_name": "Another"}, **keyed("daily")).json()
    assert again["id"] != first["id"]
    assert total(api, "/participants") == 2


def test_old_records_are_forgotten_and_young_ones_kept(server: RunningServer, api: Client) -> None:
    for key in ("old", "young"):
        api.post("/participants", CREATES["/participants"], **keyed(key))
    age = (
        "update idempotency_records set created_at = created_at - interval '25 hours'"
        " where plan_manager_id = $1 and idempotency_key = 'old'"
    )
    server.run(server.db.execute(age, api.plan_manager_id))
    server.run(purge(server.db))
    left = "select idempotency_key from idempotency_records where plan_manager_id = $1"
    assert server.run(server.db.rows(str, left, api.plan_manager_id)) == ["young"]


def test_one_that_still_runs_is_waited_for_and_then_told_of(server: RunningServer, api: Client) -> None:
    """The first request's transaction is held open by a lock on the row of the plan manager that it refers to."""
    body = json.dumps(CREATES["/participants"])

    async def held() -> list[Any]:
        async with server.db.transaction() as tx:
            await tx.execute(
                "insert into idempotency_records (plan_manager_id, original_key_id, path, idempotency_key,"
                " request_hash, created_at) select $1, original_id, '/api/public/v1/participants', 'slow', '', now()"
                " from api_keys where key_hash = $2",
                api.plan_manager_id, hash_key(api.key),
            )  # fmt: skip
            import asyncio

            return await asyncio.to_thread(lambda: [api.request("POST", "/participants", content=body, headers=SLOW)])

    [answer] = server.run(held())
    assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_in_progress")
    assert answer.headers["retry-after"] == "1"
    assert total(api, "/participants") == 0


SLOW = {"Idempotency-Key": "slow", "Content-Type": "application/json"}
