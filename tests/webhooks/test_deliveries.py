"""Deliveries: which events become one, what is sent, tests, replays and retries, and the list of them."""

import asyncio
import io
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.import_export.constraint_errors import CONSTRAINT_ERRORS
from plankeeper.import_export.importer import import_file
from plankeeper.import_export.registry import RESOURCES
from plankeeper.webhooks import delivery_queue
from support.client import Client
from support.receiver import Answer, Receiver
from support.server import RunningServer, wait_until
from webhooks.conftest import Hook
from webhooks.work import (
    NOW,
    bodies,
    deliveries,
    events,
    fanned_out,
    happen,
    look,
    moment,
    subjects,
    working,
)

TYPES = ["note_type.created", "note_type.updated", "participant.created", "participant.updated", "provider.created"]


def endpoint_path(endpoint: dict[str, Any], action: str) -> str:
    return f"/webhook-endpoints/{endpoint['id']}/{action}"


def replay(api: Client, endpoint: dict[str, Any], since: str) -> Any:
    return api.post(endpoint_path(endpoint, "replay"), {"since": since})


def retry(api: Client, delivery: dict[str, Any]) -> Any:
    return api.request("POST", f"/webhook-deliveries/{delivery['id']}/retry")


@pytest.mark.parametrize(
    "wanted, got",
    [
        (["participant.*"], ["participant.created", "participant.updated"]),
        (["note_type.updated"], ["note_type.updated"]),
        (["provider.created", "note_type.*", "provider.*"], ["note_type.created", "note_type.updated", TYPES[-1]]),
        (["participants.*", "note_type.create", "invoice.updated"], []),
    ],
)
def test_an_endpoint_gets_the_types_it_wants(
    server: RunningServer, api: Client, hook: Hook, wanted: list[str], got: list[str]
) -> None:
    made, everything = hook(event_types=wanted), hook(event_types=["*"])
    for type_ in TYPES:
        happen(server, api, type_=type_)
    wait_until(lambda: deliveries(api, everything, event_type=TYPES[-1]))
    assert set(TYPES) < {each["event_type"] for each in deliveries(api, everything)}
    assert sorted(each["event_type"] for each in deliveries(api, made)) == got


def test_a_write_over_the_api_arrives_thin_or_full(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    thin, full = hook(), hook(payload="full")
    with working(server):
        made = api.made("/note-types", {"note_type": "Visit"})
        wait_until(lambda: len(receiver.received) == 2)
    [event] = events(api, "note_type.created")
    about = {"plan_manager_id": api.plan_manager_id, "resource": {"kind": "note_type", "id": str(made["id"])}}
    first, second = sorted(bodies(receiver), key=lambda each: "object" in each["data"])
    assert first == {"type": "note_type.created", "timestamp": event["created_at"], "data": about}
    assert second == first | {"data": about | {"object": made}}
    assert {each.headers["webhook-id"] for each in receiver.received} == {event["id"]}
    assert {each.headers["content-type"] for each in receiver.received} == {"application/json"}
    for endpoint in (thin, full):
        [delivery] = wait_until(lambda endpoint=endpoint: deliveries(api, endpoint, status="succeeded"))
        [attempt] = delivery["attempts"]
        took = attempt["duration_ms"]
        assert delivery == {
            "id": delivery["id"], "webhook_endpoint_id": endpoint["id"], "event_id": event["id"],
            "event_type": "note_type.created", "status": "succeeded", "next_attempt_at": None,
            "created_at": delivery["created_at"],
            "attempts": [{"at": attempt["at"], "status_code": 204, "error": None, "duration_ms": took}],
        }  # fmt: skip
        assert moment(event["created_at"]) <= moment(delivery["created_at"]) <= moment(attempt["at"])
        assert took >= 0


def test_the_full_body_of_a_deletion_says_that_nothing_is_left(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    made = api.made("/note-types", {"note_type": "Visit"})
    events(api, "note_type.created")
    endpoint = hook(payload="full")
    api.delete(f"/note-types/{made['id']}")
    fanned_out(api, endpoint, 1)
    look(server)
    [body] = bodies(receiver)
    assert (body["type"], body["data"]["object"], body["data"]["resource"]["id"]) == (
        "note_type.deleted", None, str(made["id"]),
    )  # fmt: skip


def imported(server: RunningServer, api: Client, notify: bool) -> str:
    """The id of a provider that was imported as the command line does it."""
    ident = str(uuid7())
    line = f'{{"id": "{ident}", "entity_name": "Care"}}\n'.encode()

    async def work() -> None:
        async with server.db.transaction() as tx:
            call = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM, notify=notify)
            report = await import_file(
                call, RESOURCES["providers"], io.BytesIO(line), CONSTRAINT_ERRORS, lambda _lines: None
            )
            assert not report.errors

    server.run(work())
    return ident


def test_an_import_sends_nothing_unless_it_is_told_to(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook(event_types=["provider.*"])
    imported(server, api, notify=False)
    told = imported(server, api, notify=True)
    written = api.made("/providers", {"entity_name": "Written"})["id"]
    fanned_out(api, endpoint, 2)
    assert look(server) == 2
    assert sorted(subjects(receiver)) == sorted([told, written])
    # Nor does a replay: it sends what would have been sent.
    assert replay(api, endpoint, endpoint["created_at"]).json() == {"events": 2}
    fanned_out(api, endpoint, 4)


def test_what_is_due_first_is_claimed_first(server: RunningServer, api: Client, hook: Hook) -> None:
    endpoint = hook()
    made = [ident for _ in range(4) for ident in happen(server, api, 5)]
    fanned_out(api, endpoint, 20)
    claimed: list[str] = []

    async def claim() -> None:
        for each in (7, 5, 4, 3, 2):
            found = await delivery_queue.claim_due(server.db, {}, each, 100, NOW)
            claimed.extend(claim.resource_id for claim in await delivery_queue.load_jobs(server.db, found, NOW))

    server.run(claim())
    assert claimed == made[: len(claimed)]
    assert len(claimed) == 20


def test_what_one_claims_another_leaves_alone(server: RunningServer, api: Client, hook: Hook) -> None:
    endpoint = hook()
    happen(server, api, 7)
    fanned_out(api, endpoint, 7)

    async def claim() -> list[int]:
        async with server.db.transaction() as tx:
            first = await delivery_queue.claim_due(tx, {}, 3, 100, NOW)
            second = await delivery_queue.claim_due(server.db, {}, 3, 100, NOW)  # neither waits for the first one
        third = await delivery_queue.claim_due(server.db, {}, 3, 100, NOW)
        claimed = {each.id for found in (first, second, third) for each in found}
        return [len(first), len(second), len(third), len(claimed)]

    assert server.run(claim()) == [3, 3, 1, 7]


def test_first_attempts_are_made_in_the_order_of_the_feed(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With one place nothing overtakes: what is sent at the same time may arrive in any order.
    monkeypatch.setattr("plankeeper.webhooks.worker.MAX_PER_ENDPOINT", 1)
    hook()
    with working(server):
        made = [ident for count in (1, 5, 1, 9, 2, 12) for ident in happen(server, api, count)]
        wait_until(lambda: len(receiver.received) >= 30, 10)
    assert subjects(receiver) == made


def test_a_test_goes_to_its_endpoint_alone_and_once(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    tested, other = hook(), hook(event_types=["*"], url=receiver.url + "/other")
    answer = api.request("POST", endpoint_path(tested, "test"))
    assert answer.status_code == 200
    [event] = events(api, "webhook_endpoint.tested")
    assert answer.json() == {"event_id": event["id"]}
    happen(server, api)  # behind it: when this one is there, the test has had its turn
    wait_until(lambda: [each for each in deliveries(api, other) if each["event_type"] == "note_type.created"])
    assert [each["event_type"] for each in deliveries(api, tested)] == ["webhook_endpoint.tested", "note_type.created"]
    assert "webhook_endpoint.tested" not in {each["event_type"] for each in deliveries(api, other)}
    api.delete(f"/webhook-endpoints/{other['id']}")
    assert look(server) == 2
    assert sorted(each["type"] for each in bodies(receiver)) == ["note_type.created", "webhook_endpoint.tested"]
    assert look(server) == 0


def test_a_replay_sends_each_wanted_event_again_and_what_is_new_behind_them(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.worker.MAX_PER_ENDPOINT", 1)
    early = happen(server, api, 2)
    between = events(api, "note_type.created", 2)[-1]
    endpoint = hook()
    happen(server, api, 1, "provider.created")
    late = happen(server, api, 3)
    fanned_out(api, endpoint, 3)
    with working(server):
        wait_until(lambda: len(receiver.received) == 3)
        assert replay(api, endpoint, between["created_at"]).json()["events"] >= 4
        new = happen(server, api, 2)
        wait_until(lambda: new[-1] in subjects(receiver))
        again = subjects(receiver)[3:]
        wait_until(lambda: not deliveries(api, endpoint, status="pending"))
    assert again[-5:] == [*late, *new]
    assert set(again[:-5]) <= set(early)
    assert early[-1] in again
    assert subjects(receiver) == late + again
    # The same event has the same id, so that who got it before knows it.
    ids = {each.headers["webhook-id"] for each in receiver.received}
    assert len(ids) == len(set(subjects(receiver)))


def test_a_replay_of_nothing_sends_nothing(server: RunningServer, api: Client, hook: Hook, receiver: Receiver) -> None:
    endpoint = hook()
    [first] = happen(server, api)
    fanned_out(api, endpoint, 1)
    assert replay(api, endpoint, "2099-01-01T00:00:00Z").json() == {"events": 0}
    [second] = happen(server, api)
    fanned_out(api, endpoint, 2)
    for body in ({}, {"since": "yesterday"}, {"since": None}, {"since": "2026-01-01T00:00:00"}):
        answer = api.post(endpoint_path(endpoint, "replay"), body)
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, ["since"])
    look(server)
    assert sorted(subjects(receiver)) == sorted([first, second])


def test_a_delivery_is_retried_whatever_came_of_it(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook()
    happen(server, api)
    [delivery] = fanned_out(api, endpoint, 1)
    look(server)
    statuses = ["succeeded"]
    for before in ("succeeded", "failed", "cancelled", "pending"):
        [delivery] = deliveries(api, endpoint)
        server.run(server.db.execute("update webhook_deliveries set status = $1, next_attempt_at = null", before))
        answer = retry(api, delivery)
        assert (answer.status_code, answer.json()["status"]) == (200, "pending")
        assert answer.json()["attempts"] == delivery["attempts"]
        assert look(server) == 1
        [delivery] = deliveries(api, endpoint)
        assert len(delivery["attempts"]) == len(statuses) + 1
        statuses.append(delivery["status"])
    assert statuses == ["succeeded"] * 5
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 1
    assert retry(api, {"id": uuid7()}).status_code == 404


def test_a_retry_after_the_last_attempt_is_one_attempt(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    receiver.answer = lambda *_: (500, {}, b"")
    endpoint = hook()
    happen(server, api)
    [delivery] = fanned_out(api, endpoint, 1)
    server.run(server.db.execute("update webhook_deliveries set status = 'failed', made = 10, next_attempt_at = null"))
    retry(api, delivery)
    assert look(server) == 1
    [delivery] = deliveries(api, endpoint)
    assert (delivery["status"], delivery["next_attempt_at"], len(delivery["attempts"])) == ("failed", None, 1)


def test_nothing_can_be_sent_to_an_endpoint_that_is_paused(server: RunningServer, api: Client, hook: Hook) -> None:
    endpoint = hook()
    happen(server, api)
    [delivery] = fanned_out(api, endpoint, 1)
    api.put(f"/webhook-endpoints/{endpoint['id']}", {"active": False})
    refused = [
        api.request("POST", endpoint_path(endpoint, "test")), replay(api, endpoint, endpoint["created_at"]),
        retry(api, delivery),
    ]  # fmt: skip
    assert [(each.status_code, each.json()["error"]) for each in refused] == [(409, "webhook_endpoint_inactive")] * 3
    assert [each["status"] for each in deliveries(api, endpoint)] == ["cancelled"]
    assert api.get("/events", type="webhook_endpoint.tested").json()["data"] == []


def test_the_list_of_deliveries_is_filtered_and_paged(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook(event_types=["note_type.*", "provider.created"])
    happen(server, api, 3)
    fanned_out(api, endpoint, 3)
    look(server)
    happen(server, api, 2, "provider.created")
    path = endpoint_path(endpoint, "deliveries")
    found = fanned_out(api, endpoint, 5)
    assert found == sorted(found, key=lambda each: each["id"])
    assert [each["id"] for each in deliveries(api, endpoint, status="succeeded")] == [each["id"] for each in found[:3]]
    assert deliveries(api, endpoint, event_type="provider.created", status="pending") == found[3:]
    assert deliveries(api, endpoint, event_type="provider.created", status="failed") == []
    page = api.get(path, limit=2, offset=3).json()
    assert page["data"] == found[3:]
    assert page["pagination"] == {"limit": 2, "offset": 3, "has_more": False, "total": 5, "next_cursor": None}
    assert api.get(path, status="pending", limit=1).json()["pagination"]["total"] == 2
    walked: list[Any] = []
    after = "0"
    while after is not None:
        page = api.get(path, limit=2, after=after).json()
        walked, after = walked + page["data"], page["pagination"]["next_cursor"]
    assert walked == found
    for field in ("status", "event_type"):
        answer = api.get(path, **{field: ""})
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [field])
    assert api.get(f"/webhook-endpoints/{uuid7()}/deliveries").status_code == 404
    assert api.get(path, after=found[-1]["id"]).json()["data"] == []


def test_a_flood_waits_in_the_feed_and_none_of_it_is_lost(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.fan_out.MAX_PENDING", 20)
    endpoint = hook()
    made = happen(server, api, 150)
    events(api, "note_type.created", 150)
    wait_until(lambda: len(deliveries(api, endpoint)) > 10)
    [behind] = happen(server, api)
    events(api, "note_type.created", 151)
    assert len(deliveries(api, endpoint)) <= 20
    with working(server):
        wait_until(lambda: len(receiver.received) >= 151, 15)
    assert sorted(subjects(receiver)) == sorted([*made, behind])


def test_deliveries_go_with_their_endpoint_also_while_one_is_sent(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    is_deleted = False

    async def answer(*_: Any) -> Answer:
        while not is_deleted:
            await asyncio.sleep(0.01)
        return 204, {}, b""

    receiver.answer = answer
    endpoint = hook()
    with working(server):
        happen(server, api, 3)
        wait_until(lambda: len(receiver.received) == 3)
        assert api.delete(f"/webhook-endpoints/{endpoint['id']}").status_code == 200
        is_deleted = True
        hook(url=receiver.url + "/other")
        [later] = happen(server, api)
        wait_until(lambda: later in subjects(receiver))
    assert server.run(server.db.one(int, "select count(*) from webhook_deliveries")) == 1
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
    assert len(receiver.received) == 4
