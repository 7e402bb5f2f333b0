"""The worker: its schedule, what disables an endpoint, and what it does beside others. Its clock is moved by `skew`."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, repeat
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.attempts import record_attempts
from support.client import Client
from support.receiver import Receiver, ResponseTuple
from support.resources import assert_changed
from support.server import RunningServer, wait_until
from support.webhooks import (
    NO_OFFSET,
    NewEndpoint,
    clock_offset_to,
    emit_events,
    list_deliveries,
    new_worker,
    parse_time,
    poll_once,
    received_subject_ids,
    running_worker,
    signature_of,
    wait_for_deliveries,
    wait_for_events,
)

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
# Seconds from one attempt to the next, as they were decided.
RETRY_DELAYS = (0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)


def respond_with(status: int, **headers: str) -> Callable[..., ResponseTuple]:
    return lambda *_: (status, {name.replace("_", "-"): value for name, value in headers.items()}, b"body")


def once(respond: Callable[..., ResponseTuple]) -> Callable[..., ResponseTuple]:
    """Responds so to the first request, and with 204 to the others."""
    others = chain([respond], repeat(respond_with(204)))
    return lambda *request: next(others)(*request)  # noqa: PLW0108 - another one for each request


class Gate:
    """Lets attempts wait until it is opened; counts those that are in, and how many were at most."""

    def __init__(self, status: int = 204) -> None:
        self.status, self.open = status, False
        self.in_flight = self.max_in_flight = 0

    async def answer(self, *_: Any) -> ResponseTuple:
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            while not self.open:
                await asyncio.sleep(0.005)
        finally:
            self.in_flight -= 1
        return self.status, {}, b""


@contextmanager
def gated(receiver: Receiver, status: int = 204) -> Iterator[Gate]:
    """Meanwhile a receiver lets attempts wait."""
    gate = Gate(status)
    receiver.respond = gate.answer
    try:
        yield gate
    finally:
        gate.open = True


def single(items: list[dict[str, Any]]) -> dict[str, Any]:
    [one] = items
    return one


def test_a_failing_delivery_has_ten_attempts_on_schedule(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    receiver.respond = respond_with(500)
    endpoint = new_endpoint()
    emit_events(server, api)
    delivery = single(wait_for_deliveries(api, endpoint, 1))
    for made, wait in enumerate(RETRY_DELAYS, start=1):
        due = delivery["next_attempt_at"]
        assert delivery["status"] == "pending"
        assert made == 1 or poll_once(server, clock_offset_to(due, seconds=-4)) == 0
        skew = clock_offset_to(due, seconds=0.1)
        assert poll_once(server, skew) == 1
        was, delivery = delivery, single(list_deliveries(api, endpoint))
        assert len(delivery["attempts"]) == len(receiver.received) == made
        attempt = delivery["attempts"][-1]
        assert (attempt["status_code"], attempt["error"]) == (500, "the response status was 500")
        assert parse_time(attempt["at"]) >= parse_time(due)
        if made > 1:
            waited = parse_time(due) - parse_time(was["attempts"][-1]["at"])
            assert wait <= waited.total_seconds() <= wait * 1.1 + 5
        reported = int(receiver.received[-1].headers["webhook-timestamp"])
        assert abs(reported - receiver.received[-1].timestamp - skew.total_seconds()) < 5
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert poll_once(server, 30 * DAY) == 0
    assert len({(each.headers["webhook-id"], each.body) for each in receiver.received}) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True


def test_retry_after_lengthens_the_delay(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receivers: Callable[[], Receiver]
) -> None:
    bounds = {"1": (5, 10), "1000": (1000, 1010), "999999": (86400, 86410)}
    endpoints: dict[str, dict[str, Any]] = {}
    for requested in bounds:
        receiver = receivers()
        receiver.respond = once(respond_with(503, retry_after=requested))
        endpoints[requested] = new_endpoint(url=receiver.url)
    emit_events(server, api)
    for endpoint in endpoints.values():
        wait_for_deliveries(api, endpoint, 1)
    assert poll_once(server) == 3
    for requested, (minimum, maximum) in bounds.items():
        delivery = single(list_deliveries(api, endpoints[requested]))
        waits = parse_time(delivery["next_attempt_at"]) - parse_time(delivery["attempts"][0]["at"])
        assert minimum <= waits.total_seconds() <= maximum, requested
        assert poll_once(server, clock_offset_to(delivery["next_attempt_at"], seconds=-4)) == 0, requested
        assert poll_once(server, clock_offset_to(delivery["next_attempt_at"], seconds=0.1)) == 1, requested


def test_2xx_is_success_and_any_other_status_a_failure_and_redirects_are_not_followed(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receivers: Callable[[], Receiver]
) -> None:
    elsewhere = receivers()
    successes, failures = [200, 201, 202, 204, 226], [301, 302, 307, 308, 400, 404, 429, 500, 503]
    sent = {status: receivers() for status in (*successes, *failures)}
    for status, receiver in sent.items():
        receiver.respond = respond_with(status, location=elsewhere.url)
    endpoints = {status: new_endpoint(url=receiver.url) for status, receiver in sent.items()}
    emit_events(server, api)
    for endpoint in endpoints.values():
        wait_for_deliveries(api, endpoint, 1)
    assert poll_once(server) == len(sent)
    deliveries = {status: single(list_deliveries(api, endpoint)) for status, endpoint in endpoints.items()}
    found = {status: (each["status"], single(each["attempts"])["error"]) for status, each in deliveries.items()}
    assert found == {
        **dict.fromkeys(successes, ("succeeded", None)),
        **{status: ("pending", f"the response status was {status}") for status in failures},
    }
    assert {status: each["attempts"][0]["status_code"] for status, each in deliveries.items()} == {
        status: status for status in sent
    }
    assert {status for status, each in deliveries.items() if each["next_attempt_at"] is None} == set(successes)
    assert (elsewhere.connections, {len(each.received) for each in sent.values()}) == (0, {1})
    assert poll_once(server, DAY) == len(failures)


def test_an_attempt_without_a_response_records_the_error(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receivers: Callable[[], Receiver]
) -> None:
    closed = Receiver()
    with closed:
        pass
    endpoint = new_endpoint(url=closed.url)
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    attempt = single(single(list_deliveries(api, endpoint))["attempts"])
    assert (attempt["status_code"], attempt["error"]) == (None, "the connection failed")
    assert 0 <= attempt["duration_ms"] < 15_000


def assert_disabled(api: Client, endpoint: dict[str, Any], reason: str) -> None:
    """The endpoint is disabled, and an event records it."""
    now = api.get(f"/webhook-endpoints/{endpoint['id']}").json()
    shown = {name: value for name, value in endpoint.items() if name != "secret"}
    assert_changed(shown, {"active": False, "disabled_reason": reason}, now)
    event = single(wait_for_events(api, "webhook_endpoint.disabled"))
    assert (event["data"], event["previous"]) == (now, {"active": True, "disabled_reason": None})
    assert event["actor"] == {"kind": "system", "id": None, "name": "plankeeper"}
    assert event["resource"] == {"kind": "webhook_endpoint", "id": endpoint["id"]}


def test_410_fails_the_delivery_and_disables_the_endpoint(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    beside = receivers()
    endpoint, healthy = new_endpoint(), new_endpoint(url=beside.url, event_types=["webhook_endpoint.disabled"])
    receiver.respond = respond_with(500)
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)  # now it fails, and has one place
    receiver.respond = respond_with(410)
    emit_events(server, api, 5)
    wait_for_deliveries(api, endpoint, 6)
    assert poll_once(server) == 1
    gone = single(list_deliveries(api, endpoint, status="failed"))
    assert (gone["next_attempt_at"], [each["status_code"] for each in gone["attempts"]]) == (None, [410])
    rest = list_deliveries(api, endpoint, status="cancelled")
    assert [each["next_attempt_at"] for each in rest] == [None] * 5
    assert_disabled(api, endpoint, "it responded with 410 Gone")
    emit_events(server, api)
    wait_for_deliveries(api, healthy, 1)
    assert poll_once(server, DAY) == 1
    assert (len(receiver.received), len(beside.received)) == (2, 1)
    assert len(list_deliveries(api, endpoint)) == 6


def test_an_endpoint_that_fails_for_five_days_is_disabled(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    receiver.respond = respond_with(500)
    endpoint = new_endpoint()
    emit_events(server, api, 3)
    wait_for_deliveries(api, endpoint, 3)
    poll_once(server)
    assert poll_once(server, 5 * DAY - MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True
    assert poll_once(server, 5 * DAY + MINUTE) == 1
    assert_disabled(api, endpoint, "every attempt has failed for 5 days")
    assert {each["status"] for each in list_deliveries(api, endpoint)} == {"cancelled"}
    # The attempts are still listed.
    assert sum(len(each["attempts"]) for each in list_deliveries(api, endpoint)) == len(receiver.received)
    # Started again, it has another five days.
    api.put(f"/webhook-endpoints/{endpoint['id']}", {"active": True})
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 4)
    assert poll_once(server, 5 * DAY + MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True


def test_one_success_resets_the_five_days(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    for status, skew in ((500, NO_OFFSET), (204, 4 * DAY), (500, 5 * DAY + MINUTE), (500, 9 * DAY)):
        receiver.respond = respond_with(status)
        emit_events(server, api)
        wait_until(lambda: list_deliveries(api, endpoint, status="pending"))
        assert poll_once(server, skew) >= 1
        assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True
    assert poll_once(server, 10 * DAY + 2 * MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is False


def test_both_secrets_sign_for_a_day(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    old = endpoint["secret"]
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    new = api.request("POST", f"/webhook-endpoints/{endpoint['id']}/rotate-secret").json()["secret"]
    for count, skew in enumerate((NO_OFFSET, DAY - MINUTE, DAY + MINUTE), start=2):
        emit_events(server, api)
        wait_for_deliveries(api, endpoint, count)
        poll_once(server, skew)
    signatures = [each.headers["webhook-signature"].split() for each in receiver.received]
    signing = [[old], [new, old], [new, old], [new]]
    assert signatures == [
        [signature_of(secret, got) for secret in secrets]
        for secrets, got in zip(signing, receiver.received, strict=True)
    ]  # fmt: skip


def test_two_workers_send_each_delivery_once(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoints = [new_endpoint(url=f"{receiver.url}/{number}") for number in range(5)]
    with running_worker(server), running_worker(server), running_worker(server):
        made = [ident for _ in range(5) for ident in emit_events(server, api, 12)]
        wait_until(lambda: len(receiver.received) >= 300)
        for each in endpoints:
            wait_until(lambda each=each: len(list_deliveries(api, each, status="succeeded")) == 60)
    assert sorted(received_subject_ids(receiver)) == sorted(made * 5)
    assert {len(each["attempts"]) for endpoint in endpoints for each in list_deliveries(api, endpoint)} == {1}


def test_deliveries_of_a_dead_worker_are_taken_over_after_a_minute(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api, 3)
    wait_for_deliveries(api, endpoint, 3)
    claimed = server.run(delivery_queue.claim_due(server.db, [UUID(api.plan_manager_id)], {}, 8, 100, NO_OFFSET))
    assert len(claimed) == 3
    assert poll_once(server) == poll_once(server, timedelta(seconds=50)) == 0
    assert poll_once(server, timedelta(seconds=61)) == 3
    assert {each["status"] for each in list_deliveries(api, endpoint)} == {"succeeded"}
    assert len(receiver.received) == 3


def test_a_delivery_sent_twice_is_recorded_once(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    """A worker that was away for more than a minute comes back with what another has settled meanwhile."""
    endpoint = new_endpoint()
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)

    async def claimed_by_one() -> Any:
        worker, sender = new_worker(server)
        await worker.poll()
        return worker, sender

    with gated(receiver, 500) as gate:
        worker, sender = server.run(claimed_by_one())
        wait_until(lambda: gate.in_flight)
        receiver.respond = respond_with(204)
        assert poll_once(server, timedelta(seconds=61)) == 1

    async def finish() -> None:
        worker.stopping.set()
        await worker.run()
        await sender.close()

    server.run(finish())
    delivery = single(list_deliveries(api, endpoint))
    assert (delivery["status"], [each["status_code"] for each in delivery["attempts"]]) == ("succeeded", [204])
    assert len(receiver.received) == 2


def test_a_stopping_worker_sends_and_records_its_deliveries(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    with gated(receiver) as gate, running_worker(server) as worker:
        emit_events(server, api, 8)
        wait_until(lambda: gate.in_flight == 8)
        server.loop.call_soon_threadsafe(worker.stopping.set)
        gate.open = True
    assert [each["status"] for each in list_deliveries(api, endpoint)] == ["succeeded"] * 8


def test_attempts_being_recorded_when_a_worker_stops_are_kept(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    async def slow(*arguments: Any) -> None:
        begun.set()
        await asyncio.sleep(0.2)
        await record_attempts(*arguments)

    monkeypatch.setattr("plankeeper.webhooks.worker.record_attempts", slow)
    endpoint = new_endpoint()
    with running_worker(server):
        emit_events(server, api)
        assert begun.wait(10)
    assert single(list_deliveries(api, endpoint))["status"] == "succeeded"
    assert len(receiver.received) == 1


def test_endpoints_are_locked_in_a_consistent_order(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    """The results of attempts are saved while the sequencer locks the same endpoints, in order of their ids."""
    beside = receivers()
    receiver.respond = respond_with(500)
    failing, mended = new_endpoint(), new_endpoint(url=beside.url)
    server.run(server.db.execute("update webhook_endpoints set failing_since = now() where id = $1", mended["id"]))
    emit_events(server, api)
    wait_for_deliveries(api, failing, 1)

    async def poll_while_locked() -> int:
        waiting = (
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and wait_event_type = 'Lock' and query like '%failing_since%'"
        )
        lock = "select id from webhook_endpoints where id = $1 for update"
        worker, sender = new_worker(server)
        async with server.db.transaction() as tx:
            await tx.execute(lock, failing["id"])  # may wait for the sequencer
            found = await worker.poll()
            worker.stopping.set()
            running = asyncio.create_task(worker.run())
            async with asyncio.timeout(60):
                while not await server.db.one(int, waiting):
                    await asyncio.sleep(0.01)
                # Whoever waits holds no lock on it. Its own result may be saved at this moment.
                while not await tx.one_or_none(UUID, lock + " skip locked", mended["id"]):
                    await asyncio.sleep(0.01)
        await running
        await sender.close()
        return found

    assert server.run(poll_while_locked()) == 2
    assert [len(single(list_deliveries(api, each))["attempts"]) for each in (failing, mended)] == [1, 1]


def test_neither_a_slow_nor_a_dead_endpoint_delays_a_healthy_one(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    slow, dead = receivers(), Receiver()
    with dead:
        pass
    new_endpoint()
    stuck, gone = new_endpoint(url=slow.url), new_endpoint(url=dead.url)
    with gated(slow) as gate, running_worker(server):
        made = emit_events(server, api, 100)
        wait_until(lambda: len(receiver.received) == 100)
        assert gate.in_flight == 8
        gate.open = True
        wait_until(lambda: len(list_deliveries(api, stuck, status="succeeded")) == 100)
    assert sorted(received_subject_ids(receiver)) == sorted(received_subject_ids(slow)) == sorted(made)
    assert {each["status"] for each in list_deliveries(api, gone)} == {"pending"}


@pytest.mark.parametrize("failing, slots", [(False, 8), (True, 1)])
def test_an_endpoint_has_eight_slots_and_one_while_it_fails(
    server: RunningServer,
    api: Client,
    new_endpoint: NewEndpoint,
    receiver: Receiver,
    receivers: Callable[[], Receiver],
    failing: bool,
    slots: int,
) -> None:
    beside = receivers()
    endpoint = new_endpoint(event_types=["provider.*"])
    new_endpoint(url=beside.url)
    if failing:
        receiver.respond = respond_with(500)
        emit_events(server, api, type_="provider.created")
        wait_for_deliveries(api, endpoint, 1)
        poll_once(server)
    with gated(receiver) as gate, running_worker(server):
        emit_events(server, api, 30, "provider.created")
        wait_until(lambda: gate.in_flight == slots)
        emit_events(server, api)
        wait_until(lambda: beside.received)  # so it has looked again meanwhile
        assert gate.max_in_flight == gate.in_flight == slots
        gate.open = True
        wait_until(lambda: len(list_deliveries(api, endpoint, status="succeeded")) >= 30)
    assert gate.max_in_flight <= 8


def test_a_worker_recovers_from_a_lost_database_connection(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = new_endpoint()

    async def terminate_connections() -> int:
        """End all connections, also that of a worker that waits for a result."""
        claiming = """
            select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%recursive pending%'
        """
        ended = """
            select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and application_name = 'plankeeper' and pid <> pg_backend_pid()
        """
        async with Database(server.dsn).open() as db, db.transaction() as tx:
            await tx.execute("lock table webhook_deliveries")
            async with asyncio.timeout(60):
                while not await server.db.one(int, claiming):
                    await asyncio.sleep(0.01)
            return await tx.one(int, ended)

    with running_worker(server):
        first = emit_events(server, api, 3)
        wait_until(lambda: len(list_deliveries(api, endpoint, status="succeeded")) == 3)
        assert server.run(terminate_connections()) > 1
        made = wait_until(lambda: write_events(server, api))
        wait_until(lambda: len(receiver.received) >= 6)
        wait_until(lambda: len(list_deliveries(api, endpoint, status="succeeded")) == 6)
    assert sorted(received_subject_ids(receiver)) == sorted(first + made)
    assert not [each for each in caplog.records if each.levelname == "ERROR" and each.name.startswith("plankeeper")]


def write_events(server: RunningServer, api: Client) -> list[str] | None:
    try:
        return emit_events(server, api, 3)
    except Exception:  # noqa: BLE001 - the connection that it was lent may be one of those that were ended
        return None
