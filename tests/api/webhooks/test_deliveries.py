"""Deliveries: which events become one, what is sent, tests, replays and retries, and the list of them."""

import asyncio
import io
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.examples import EXAMPLES
from plankeeper.events.event_types import EVENT_TYPES, NEVER_SENT
from plankeeper.imports.importer import import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from support.client import Client
from support.receiver import Receiver, ResponseTuple
from support.server import RunningServer, wait_until
from support.sweeps import sweep
from support.webhooks import (
    NO_OFFSET,
    NewEndpoint,
    emit_events,
    list_deliveries,
    parse_time,
    poll_once,
    received_bodies,
    received_subject_ids,
    running_worker,
    wait_for_deliveries,
    wait_for_events,
)

TYPES = ["note_type.created", "note_type.updated", "participant.created", "participant.updated", "provider.created"]


def endpoint_path(endpoint: dict[str, Any], action: str) -> str:
    return f"/webhook-endpoints/{endpoint['id']}/{action}"


def replay(api: Client, endpoint: dict[str, Any], since: str) -> Any:
    return api.post(endpoint_path(endpoint, "replay"), {"since": since})


def retry(api: Client, delivery: dict[str, Any]) -> Any:
    return api.request("POST", f"/webhook-deliveries/{delivery['id']}/retry")


@pytest.mark.parametrize(
    "event_types, received",
    [
        (["participant.*"], ["participant.created", "participant.updated"]),
        (["note_type.updated"], ["note_type.updated"]),
        (["provider.created", "note_type.*", "provider.*"], ["note_type.created", "note_type.updated", TYPES[-1]]),
        (["team_member.*", "note_type.deleted", "invoice.updated"], []),
    ],
)
def test_an_endpoint_receives_the_subscribed_event_types(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, event_types: list[str], received: list[str]
) -> None:
    made, everything = new_endpoint(event_types=event_types), new_endpoint(event_types=["*"])
    for type_ in TYPES:
        emit_events(server, api, type_=type_)
    wait_until(lambda: list_deliveries(api, everything, event_type=TYPES[-1]))
    assert set(TYPES) < {each["event_type"] for each in list_deliveries(api, everything)}
    assert sorted(each["event_type"] for each in list_deliveries(api, made)) == received


def test_a_write_over_the_api_arrives_thin_or_full(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    thin, full = new_endpoint(), new_endpoint(payload="full")
    with running_worker(server):
        made = api.create("/note-types", {"note_type": "Visit"})
        wait_until(lambda: len(receiver.received) == 2)
    [event] = wait_for_events(api, "note_type.created")
    about = {"plan_manager_id": api.plan_manager_id, "resource": {"kind": "note_type", "id": str(made["id"])}}
    first, second = sorted(received_bodies(receiver), key=lambda each: "object" in each["data"])
    shared = {name: event[name] for name in ("type", "sequence", "actor", "request_id")}
    assert first == shared | {"timestamp": event["created_at"], "data": about}
    assert second == first | {"data": about | {"object": made, "previous": None}}
    assert {each.headers["webhook-id"] for each in receiver.received} == {event["id"]}
    assert {each.headers["content-type"] for each in receiver.received} == {"application/json"}
    for endpoint in (thin, full):
        [delivery] = wait_until(lambda endpoint=endpoint: list_deliveries(api, endpoint, status="succeeded"))
        [attempt] = delivery["attempts"]
        took = attempt["duration_ms"]
        assert delivery == {
            "id": delivery["id"], "webhook_endpoint_id": endpoint["id"], "event_id": event["id"],
            "event_type": "note_type.created", "status": "succeeded", "next_attempt_at": None,
            "created_at": delivery["created_at"],
            "attempts": [{"at": attempt["at"], "status_code": 204, "error": None, "duration_ms": took}],
        }  # fmt: skip
        assert parse_time(event["created_at"]) <= parse_time(delivery["created_at"]) <= parse_time(attempt["at"])
        assert took >= 0


def test_the_full_payload_of_a_deletion_has_no_data(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    made = api.create("/note-types", {"note_type": "Visit"})
    wait_for_events(api, "note_type.created")
    endpoint = new_endpoint(payload="full")
    api.delete(f"/note-types/{made['id']}")
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    [body] = received_bodies(receiver)
    assert (body["type"], body["data"]["object"], body["data"]["resource"]["id"]) == (
        "note_type.deleted", None, str(made["id"]),
    )  # fmt: skip


def import_provider(server: RunningServer, api: Client, notify: bool) -> str:
    """The id of a provider that was imported as the command line does it."""
    ident = str(uuid7())
    line = f'{{"id": "{ident}", "entity_name": "Care"}}\n'.encode()

    async def work() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM, notify=notify)
            report = await import_file(
                ctx, RESOURCES["providers"], io.BytesIO(line), CONSTRAINT_ERRORS, lambda _lines: None
            )
            assert not report.errors

    server.run(work())
    return ident


def test_an_import_sends_webhooks_only_on_request(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint(event_types=["provider.*"])
    import_provider(server, api, notify=False)
    reported = import_provider(server, api, notify=True)
    written = api.create("/providers", {"entity_name": "Written"})["id"]
    wait_for_deliveries(api, endpoint, 2)
    assert poll_once(server) == 2
    assert sorted(received_subject_ids(receiver)) == sorted([reported, written])
    # Nor does a replay: it sends what would have been sent.
    assert replay(api, endpoint, endpoint["created_at"]).json() == {"events": 2}
    wait_for_deliveries(api, endpoint, 4)


def test_the_earliest_due_delivery_is_claimed_first(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    endpoint = new_endpoint()
    made = [ident for _ in range(4) for ident in emit_events(server, api, 5)]
    wait_for_deliveries(api, endpoint, 20)
    ids, claimed = [UUID(api.plan_manager_id)], list[str]()

    async def claim() -> None:
        for each in (7, 5, 4, 3, 2):
            jobs = await delivery_queue.claim_due(server.db, ids, {}, each, 100, NO_OFFSET)
            claimed.extend(job.event.resource.id for job in jobs)

    server.run(claim())
    assert claimed == made[: len(claimed)]
    assert len(claimed) == 20


def test_a_claimed_delivery_is_not_claimed_again(server: RunningServer, api: Client, new_endpoint: NewEndpoint) -> None:
    endpoint = new_endpoint()
    emit_events(server, api, 7)
    wait_for_deliveries(api, endpoint, 7)
    ids = [UUID(api.plan_manager_id)]

    async def claim() -> list[int]:
        async with server.db.transaction() as tx:
            first = await delivery_queue.claim_due(tx, ids, {}, 3, 100, NO_OFFSET)
            second = await delivery_queue.claim_due(server.db, ids, {}, 3, 100, NO_OFFSET)  # doesn't wait
        third = await delivery_queue.claim_due(server.db, ids, {}, 3, 100, NO_OFFSET)
        claimed = {each.id for found in (first, second, third) for each in found}
        return [len(first), len(second), len(third), len(claimed)]

    assert server.run(claim()) == [3, 3, 1, 7]


def test_first_attempts_follow_the_order_of_the_feed(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With one place nothing overtakes: what is sent at the same time may arrive in any order.
    monkeypatch.setattr("plankeeper.webhooks.worker.MAX_PER_ENDPOINT", 1)
    new_endpoint()
    with running_worker(server):
        made = [ident for count in (1, 5, 1, 9, 2, 12) for ident in emit_events(server, api, count)]
        wait_until(lambda: len(receiver.received) >= 30)
    assert received_subject_ids(receiver) == made


def test_a_test_event_goes_once_to_its_endpoint_only(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    tested, other = new_endpoint(), new_endpoint(event_types=["*"], url=receiver.url + "/other")
    answer = api.request("POST", endpoint_path(tested, "test"))
    assert answer.status_code == 200
    [event] = wait_for_events(api, "webhook_endpoint.tested")
    assert answer.json() == {"event_id": event["id"]}
    emit_events(server, api)  # behind it: when this one is there, the test has had its turn
    wait_until(lambda: [each for each in list_deliveries(api, other) if each["event_type"] == "note_type.created"])
    assert [each["event_type"] for each in list_deliveries(api, tested)] == [
        "webhook_endpoint.tested",
        "note_type.created",
    ]
    assert "webhook_endpoint.tested" not in {each["event_type"] for each in list_deliveries(api, other)}
    api.delete(f"/webhook-endpoints/{other['id']}")
    assert poll_once(server) == 2
    assert sorted(each["type"] for each in received_bodies(receiver)) == [
        "note_type.created",
        "webhook_endpoint.tested",
    ]
    assert poll_once(server) == 0


def test_a_test_sends_the_example_of_a_type(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint(event_types=["note_type.*"], payload="full")
    path = endpoint_path(endpoint, "test")
    event_id = api.post(path, {"type": "participant.created"}).json()["event_id"]
    # The feed has no such event.
    [event] = wait_for_events(api, "webhook_endpoint.tested")
    assert (event["id"], event["data"]["id"]) == (event_id, endpoint["id"])
    assert api.get("/events", type="participant.*").json()["data"] == []
    [delivery] = list_deliveries(api, endpoint)
    assert (delivery["event_id"], delivery["event_type"]) == (event_id, "participant.created")
    assert poll_once(server) == 1
    assert retry(api, delivery).status_code == 200
    assert poll_once(server) == 1
    [message, again] = received_bodies(receiver)
    example = EXAMPLES["responses"]["ParticipantPage"]["data"][0]
    assert message == again
    assert message == {
        "type": "participant.created", "timestamp": event["created_at"], "sequence": None, "actor": event["actor"],
        "request_id": event["request_id"], "data": {
            "plan_manager_id": api.plan_manager_id, "resource": {"kind": "participant", "id": example["id"]},
            "object": example, "previous": None,
        },
    }  # fmt: skip
    assert {each.headers["webhook-id"] for each in receiver.received} == {event_id}


def test_a_test_without_a_type_is_about_the_endpoint(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    path = endpoint_path(endpoint, "test")
    for answer in (
        api.post(path),
        api.post(path, {}),
        api.request("POST", path, headers={"Content-Type": "application/json"}),
    ):
        assert answer.status_code == 200, answer.text
    assert poll_once(server) == 3
    for each in received_bodies(receiver):
        assert (each["type"], each["data"]["resource"]["id"]) == ("webhook_endpoint.tested", endpoint["id"])


@sweep(
    "type_, message",
    [
        ("participant.create", "did you mean participant.created?"),
        ("participant.*", "is not an event type"),
        ("*", "is not an event type"),
        ("", "is not an event type"),
        ("plan_manager.created", "is never sent to webhook endpoints"),
        ("webhook_delivery.retried", "is never sent to webhook endpoints"),
    ],
)
def test_a_test_of_a_type_that_is_never_sent_is_rejected(
    api: Client, new_endpoint: NewEndpoint, type_: str, message: str
) -> None:
    endpoint = new_endpoint()
    answer = api.post(endpoint_path(endpoint, "test"), {"type": type_})
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"], error["code"]) == (400, "type", "not_allowed")
    assert message in error["message"]
    assert error["allowed"] == sorted(EVENT_TYPES - NEVER_SENT)
    assert list_deliveries(api, endpoint) == []


def test_a_replay_resends_subscribed_events_followed_by_new_ones(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.worker.MAX_PER_ENDPOINT", 1)
    early = emit_events(server, api, 2)
    between = wait_for_events(api, "note_type.created", 2)[-1]
    endpoint = new_endpoint()
    emit_events(server, api, 1, "provider.created")
    late = emit_events(server, api, 3)
    wait_for_deliveries(api, endpoint, 3)
    with running_worker(server):
        wait_until(lambda: len(receiver.received) == 3)
        assert replay(api, endpoint, between["created_at"]).json()["events"] >= 4
        new = emit_events(server, api, 2)
        wait_until(lambda: new[-1] in received_subject_ids(receiver))
        again = received_subject_ids(receiver)[3:]
        wait_until(lambda: not list_deliveries(api, endpoint, status="pending"))
    assert again[-5:] == [*late, *new]
    assert set(again[:-5]) <= set(early)
    assert early[-1] in again
    assert received_subject_ids(receiver) == late + again
    # The same event has the same id, so that who got it before knows it.
    ids = {each.headers["webhook-id"] for each in receiver.received}
    assert len(ids) == len(set(received_subject_ids(receiver)))


def test_a_replay_of_nothing_sends_nothing(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    [first] = emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    assert replay(api, endpoint, "2099-01-01T00:00:00Z").json() == {"events": 0}
    [second] = emit_events(server, api)
    wait_for_deliveries(api, endpoint, 2)
    for body in ({}, {"since": "yesterday"}, {"since": None}, {"since": "2026-01-01T00:00:00"}):
        answer = api.post(endpoint_path(endpoint, "replay"), body)
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, ["since"])
    poll_once(server)
    assert sorted(received_subject_ids(receiver)) == sorted([first, second])


def test_a_delivery_can_be_retried_whatever_its_result(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api)
    [delivery] = wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    statuses = ["succeeded"]
    for before in ("succeeded", "failed", "cancelled", "pending"):
        [delivery] = list_deliveries(api, endpoint)
        server.run(server.db.execute("update webhook_deliveries set status = $1, next_attempt_at = null", before))
        answer = retry(api, delivery)
        assert (answer.status_code, answer.json()["status"]) == (200, "pending")
        assert answer.json()["attempts"] == delivery["attempts"]
        assert poll_once(server) == 1
        [delivery] = list_deliveries(api, endpoint)
        assert len(delivery["attempts"]) == len(statuses) + 1
        statuses.append(delivery["status"])
    assert statuses == ["succeeded"] * 5
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 1
    assert retry(api, {"id": uuid7()}).status_code == 404


def test_a_retry_after_the_last_attempt_is_one_attempt(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    receiver.respond = lambda *_: (500, {}, b"")
    endpoint = new_endpoint()
    emit_events(server, api)
    [delivery] = wait_for_deliveries(api, endpoint, 1)
    server.run(
        server.db.execute("update webhook_deliveries set status = 'failed', attempt_count = 10, next_attempt_at = null")
    )
    retry(api, delivery)
    assert poll_once(server) == 1
    [delivery] = list_deliveries(api, endpoint)
    assert (delivery["status"], delivery["next_attempt_at"], len(delivery["attempts"])) == ("failed", None, 1)


def test_nothing_can_be_sent_to_a_paused_endpoint(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api)
    [delivery] = wait_for_deliveries(api, endpoint, 1)
    api.put(f"/webhook-endpoints/{endpoint['id']}", {"active": False})
    rejected = [
        api.request("POST", endpoint_path(endpoint, "test")), replay(api, endpoint, endpoint["created_at"]),
        retry(api, delivery),
    ]  # fmt: skip
    assert [(each.status_code, each.json()["error"]) for each in rejected] == [(409, "webhook_endpoint_inactive")] * 3
    assert [each["status"] for each in list_deliveries(api, endpoint)] == ["cancelled"]
    assert api.get("/events", type="webhook_endpoint.tested").json()["data"] == []


def test_the_list_of_deliveries_is_filtered_and_paged(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint(event_types=["note_type.*", "provider.created"])
    emit_events(server, api, 3)
    wait_for_deliveries(api, endpoint, 3)
    poll_once(server)
    emit_events(server, api, 2, "provider.created")
    path = endpoint_path(endpoint, "deliveries")
    found = wait_for_deliveries(api, endpoint, 5)
    assert found == sorted(found, key=lambda each: each["id"])
    assert [each["id"] for each in list_deliveries(api, endpoint, status="succeeded")] == [
        each["id"] for each in found[:3]
    ]
    assert list_deliveries(api, endpoint, event_type="provider.created", status="pending") == found[3:]
    assert list_deliveries(api, endpoint, event_type="provider.created", status="failed") == []
    assert list_deliveries(api, endpoint, event_type="provider.created", status="failed,pending") == found[3:]
    assert list_deliveries(api, endpoint, status="pending,succeeded") == found
    [error] = api.get(path, status="pending,gone").json()["errors"]
    assert (error["field"], error["allowed"]) == ("status[1]", ["pending", "succeeded", "failed", "cancelled"])
    page = api.get(path, limit=2).json()
    next_cursor = found[1]["id"]
    assert page["pagination"] == {"limit": 2, "offset": 0, "has_more": True, "total": None, "next_cursor": next_cursor}
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


def create_deliveries(server: RunningServer, api: Client, endpoint: dict[str, Any]) -> list[dict[str, Any]]:
    """Five deliveries that were created at different times, in order. A transaction gives all of its own the same."""
    emit_events(server, api, 5)
    for number, each in enumerate(wait_for_deliveries(api, endpoint, 5)):
        shift = "update webhook_deliveries set created_at = $2 where id = $1"
        moment = datetime.fromisoformat(each["created_at"]) + timedelta(seconds=number)
        server.run(server.db.execute(shift, UUID(each["id"]), moment))
    return list_deliveries(api, endpoint)


def test_deliveries_are_listed_newest_first(server: RunningServer, api: Client, new_endpoint: NewEndpoint) -> None:
    endpoint = new_endpoint()
    found = create_deliveries(server, api, endpoint)
    path = endpoint_path(endpoint, "deliveries")
    assert api.get(path, sort="created_at").json()["data"] == found
    walked: list[Any] = []
    after = "0"
    while after is not None:
        page = api.get(path, sort="-created_at", limit=2, after=after).json()
        walked, after = walked + page["data"], page["pagination"]["next_cursor"]
    assert walked == found[::-1]
    assert api.get(path, sort="-created_at", event_id=found[3]["event_id"]).json()["data"] == found[3:4]
    until = found[4]["created_at"]
    before = api.get(path, sort="-created_at", created_until=until, after=found[3]["id"]).json()["data"]
    assert before == found[:3][::-1]


def test_deliveries_are_filtered_by_time_and_by_event(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    endpoint = new_endpoint()
    found = create_deliveries(server, api, endpoint)
    path = endpoint_path(endpoint, "deliveries")
    times = [each["created_at"] for each in found]
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"created_since": times[1]}, found[1:]),
        ({"created_until": times[1]}, found[:1]),
        ({"created_since": times[1], "created_until": times[3]}, found[1:3]),
        ({"created_since": times[1], "after": found[2]["id"]}, found[3:]),
        ({"created_since": "0001-01-01T00:00:00Z", "created_until": "9999-12-31T23:59:59Z"}, found),
        ({"created_until": "0001-01-01T00:00:00Z"}, []),
        ({"event_id": found[3]["event_id"].upper()}, found[3:4]),
        ({"event_id": found[3]["event_id"], "created_until": times[3]}, []),
        ({"event_id": uuid7()}, []),
    ]
    for filters, expected in cases:
        page = api.get(path, **filters).json()
        assert page["data"] == expected
        assert page["pagination"]["total"] in (None, len(expected))
    assert [each["field"] for each in api.get(path, event_id="x").json()["errors"]] == ["event_id"]


def test_one_delivery_can_be_read(
    server: RunningServer, api: Client, other: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    [delivery] = list_deliveries(api, endpoint)
    response = api.get(f"/webhook-deliveries/{delivery['id']}")
    assert (response.status_code, response.json()) == (200, delivery)
    assert [each["status_code"] for each in response.json()["attempts"]] == [204]
    for client, id_ in ((api, uuid7()), (other, delivery["id"])):
        missing = client.get(f"/webhook-deliveries/{id_}")
        assert (missing.status_code, missing.json()["resource"]["kind"]) == (404, "webhook_delivery")


def test_a_burst_of_events_waits_in_the_feed_without_loss(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.fan_out.MAX_PENDING", 20)
    endpoint = new_endpoint()
    made = emit_events(server, api, 150)
    wait_for_events(api, "note_type.created", 150)
    wait_until(lambda: len(list_deliveries(api, endpoint)) > 10)
    [behind] = emit_events(server, api)
    wait_for_events(api, "note_type.created", 151)
    assert len(list_deliveries(api, endpoint)) <= 20
    with running_worker(server):
        wait_until(lambda: len(receiver.received) >= 151)
    assert sorted(received_subject_ids(receiver)) == sorted([*made, behind])


def test_deliveries_are_deleted_with_their_endpoint_even_while_one_is_sent(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    is_deleted = False

    async def answer(*_: Any) -> ResponseTuple:
        while not is_deleted:
            await asyncio.sleep(0.01)
        return 204, {}, b""

    receiver.respond = answer
    endpoint = new_endpoint()
    with running_worker(server):
        emit_events(server, api, 3)
        wait_until(lambda: len(receiver.received) == 3)
        assert api.delete(f"/webhook-endpoints/{endpoint['id']}").status_code == 200
        is_deleted = True
        new_endpoint(url=receiver.url + "/other")
        [later] = emit_events(server, api)
        wait_until(lambda: later in received_subject_ids(receiver))
    assert server.run(server.db.one(int, "select count(*) from webhook_deliveries")) == 1
    assert not [each for each in caplog.records if each.levelname == "ERROR" and each.name.startswith("plankeeper")]
    assert len(receiver.received) == 4


def test_a_worker_looks_up_names_for_the_plan_manager_of_the_endpoint(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plan manager has its own limit of look-ups."""
    plan_managers: list[UUID | None] = []

    async def post(
        _client: WebhookClient, _url: str, _headers: Any, _body: bytes, plan_manager_id: UUID | None = None
    ) -> AttemptResult:
        plan_managers.append(plan_manager_id)
        return AttemptResult(204, None, 0)

    monkeypatch.setattr(WebhookClient, "post", post)
    endpoint = new_endpoint()
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    assert poll_once(server) == 1
    assert plan_managers == [UUID(api.plan_manager_id)]
