"""Repeated requests: there is one write, and every successful response is the same."""

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.api_keys.store import get_by_hash, select_for_update
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.http.idempotency.store import purge
from support.client import Client
from support.cluster import ADDRESS
from support.server import RunningServer

CREATES: dict[str, dict[str, Any]] = {
    "/participants": {"first_name": "Una", "last_name": "Retry"},
    "/providers": {"entity_name": "Once Ltd"},
    "/note-types": {"note_type": "Once"},
}


def with_key(key: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key}}


def total(api: Client, path: str) -> int:
    return api.get(path, limit=1).json()["pagination"]["total"]


@pytest.mark.parametrize("path", CREATES)
def test_a_repeated_request_gets_the_same_response_and_writes_nothing(api: Client, path: str) -> None:
    key = str(uuid7())
    first, again = (api.post(path, CREATES[path], **with_key(key)) for _ in range(2))
    assert first.status_code in (200, 201)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert total(api, path) == 1


def test_a_repeated_create_of_a_team_member_writes_nothing(api: Client) -> None:
    participant = api.create("/participants", {})["id"]
    path = f"/participants/{participant}/team-members"
    new = {"first_name": "Tia", "email": "tia@example.com", "permissions": ["view_budget"]}
    first, again = (api.post(path, new, **with_key("tia")) for _ in range(2))
    assert (first.status_code, first.content) == (201, again.content)
    # Without the key the constraint answers.
    assert api.post(path, new).status_code == 409


def test_fifty_concurrent_requests_create_one_row_and_get_the_same_response(api: Client) -> None:
    barrier = threading.Barrier(50)

    def send(_number: int) -> Any:
        client = Client(str(api.http.base_url), api.key, api.plan_manager_id)
        barrier.wait()
        with client.http:
            return client.post("/participants", CREATES["/participants"], **with_key("at-once"))

    with ThreadPoolExecutor(50) as pool:
        responses = list(pool.map(send, range(50)))
    successes = [each for each in responses if each.status_code == 200]
    assert {each.status_code for each in responses} <= {200, 409, 503}
    assert successes
    assert len({each.content for each in successes}) == 1
    assert total(api, "/participants") == 1


def test_a_different_request_with_the_same_key_is_rejected(api: Client) -> None:
    api.post("/participants", {"first_name": "One"}, **with_key("shared"))
    other_body = api.post("/participants", {"first_name": "Two"}, **with_key("shared"))
    assert (other_body.status_code, other_body.json()["error"]) == (422, "idempotency_key_reused")
    assert total(api, "/participants") == 1


def test_another_query_is_a_different_request(api: Client) -> None:
    bulk = {"items": [{"external_id": "E-1", "first_name": "One"}]}
    api.post("/participants/bulk", bulk, **with_key("shared")).raise_for_status()
    other_query = api.post("/participants/bulk?match=external_id", bulk, **with_key("shared"))
    assert (other_query.status_code, other_query.json()["error"]) == (422, "idempotency_key_reused")


def test_the_same_json_in_another_form_is_the_same_request(api: Client) -> None:
    bodies = (
        b'{"first_name": "Ann", "last_name": "Ng"}',
        b'{"last_name":"Ng","first_name":"Ann"}',
        b'\xef\xbb\xbf{\n  "first_name": "\\u0041nn",\n  "last_name": "Ng"\n}\n',
    )
    headers = {"Idempotency-Key": "same", "Content-Type": "application/json"}
    responses = [api.request("POST", "/participants", content=each, headers=headers) for each in bodies]
    assert len({each.text for each in responses}) == 1
    assert [each.headers.get("idempotent-replayed") for each in responses] == [None, "true", "true"]
    different = api.request("POST", "/participants", content=b'{"first_name": "Ann"}', headers=headers)
    assert different.status_code == 422


def test_an_error_response_is_not_stored(api: Client) -> None:
    participant = api.create("/participants", {})["id"]
    path = f"/participants/{participant}/team-members"
    held = api.create(path, {"first_name": "Holder", "contact_priority": 1})
    new = {"first_name": "Late", "contact_priority": 1}
    assert api.post(path, new, **with_key("late")).status_code == 409
    api.delete(f"{path}/{held['id']}")
    assert api.post(path, new, **with_key("late")).status_code == 201


def test_a_key_is_scoped_to_path_plan_manager_and_api_key(
    api: Client, other: Client, new_key: Callable[..., str]
) -> None:
    made = [api.post(path, CREATES[path], **with_key("same")).json()["id"] for path in ("/participants", "/providers")]
    made.append(other.post("/participants", CREATES["/participants"], **with_key("same")).json()["id"])
    second = Client(str(api.http.base_url), new_key(UUID(api.plan_manager_id)), api.plan_manager_id)
    with second.http:
        made.append(second.post("/participants", CREATES["/participants"], **with_key("same")).json()["id"])
    assert len(set(made)) == 4


def test_a_rotated_api_key_shares_the_idempotency_keys_of_the_old_one(server: RunningServer, api: Client) -> None:
    first = api.post("/participants", CREATES["/participants"], **with_key("rotated"))

    async def rotate() -> str:
        async with server.db.transaction() as tx:
            known = await get_by_hash(tx, hash_token(api.key))
            assert known
            old = await select_for_update(tx, known.id)
            assert old
            from datetime import timedelta

            return await service.rotate(
                WriteContext(tx, known.id, server.settings, SYSTEM), old, timedelta(hours=1), None
            )

    again = Client(str(api.http.base_url), server.run(rotate()), api.plan_manager_id)
    with again.http:
        assert again.post("/participants", CREATES["/participants"], **with_key("rotated")).content == first.content


@pytest.mark.parametrize("key", ["", "with space", "ü", "x" * 256, "tab\there"])
def test_an_invalid_key_is_rejected(api: Client, key: str) -> None:
    response = api.request("POST", "/participants", json={}, headers={"Idempotency-Key": key.encode()})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "Idempotency-Key")
    assert total(api, "/participants") == 0


def test_a_key_can_be_reused_after_a_day(server: RunningServer, api: Client) -> None:
    first = api.post("/participants", CREATES["/participants"], **with_key("daily")).json()
    server.run(
        server.db.execute(
            "update idempotency_records set created_at = statement_timestamp() - interval '25 hours'"
            " where plan_manager_id = $1",
            api.plan_manager_id,
        )
    )
    again = api.post("/participants", {"first_name": "Another"}, **with_key("daily")).json()
    assert again["id"] != first["id"]
    assert total(api, "/participants") == 2


def test_old_records_are_deleted_and_recent_ones_kept(server: RunningServer, api: Client) -> None:
    for key in ("old", "young"):
        api.post("/participants", CREATES["/participants"], **with_key(key))
    age = (
        "update idempotency_records set created_at = statement_timestamp() - interval '25 hours'"
        " where plan_manager_id = $1 and idempotency_key = 'old'"
    )
    server.run(server.db.execute(age, api.plan_manager_id))
    server.run(purge(server.db))
    left = "select idempotency_key from idempotency_records where plan_manager_id = $1"
    assert server.run(server.db.rows(str, left, api.plan_manager_id)) == ["young"]


def test_a_request_in_progress_is_waited_for_and_then_reported(server: RunningServer, api: Client) -> None:
    """The first request's transaction is held open by a lock on the row of the plan manager that it refers to."""
    body = json.dumps(CREATES["/participants"])
    # It waits half as long for a lock, except on Citus, whose workers have a limit of their own.
    second = RunningServer(server.dsn, statement_timeout=30 if ADDRESS in os.environ else 1).start()
    client = Client(second.url, api.key, api.plan_manager_id)

    async def held() -> list[Any]:
        async with server.db.transaction() as tx:
            await tx.execute(
                "insert into idempotency_records (plan_manager_id, original_key_id, path, idempotency_key,"
                " request_hash, created_at) select $1, original_id, '/api/public/v1/participants', 'slow', '', now()"
                " from api_keys where key_hash = $2",
                api.plan_manager_id, hash_token(api.key),
            )  # fmt: skip
            import asyncio

            return await asyncio.to_thread(
                lambda: [client.request("POST", "/participants", content=body, headers=SLOW_HEADERS)]
            )

    [response] = server.run(held())
    assert (response.status_code, response.json()["error"]) == (409, "idempotency_in_progress")
    assert response.headers["retry-after"] == "1"
    assert total(api, "/participants") == 0
    client.http.close()
    second.stop()


SLOW_HEADERS = {"Idempotency-Key": "slow", "Content-Type": "application/json"}
