"""The worker: its schedule, what disables an endpoint, and what it does beside others. Its clock is moved by `skew`."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from plankeeper.database.client import Database
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.attempts import record_attempts
from support.client import Client
from support.receiver import Answer, Receiver
from support.server import RunningServer, wait_until
from webhooks.conftest import Hook
from webhooks.work import (
    NOW,
    ahead,
    deliveries,
    events,
    fanned_out,
    happen,
    look,
    moment,
    new_worker,
    signed_by,
    subjects,
    working,
)

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
# Seconds from one attempt to the next, as they were decided.
WAITS = (0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)


def answering(status: int, **headers: str) -> Callable[..., Answer]:
    return lambda *_: (status, {name.replace("_", "-"): value for name, value in headers.items()}, b"body")


class Gate:
    """Lets attempts wait until it is opened; counts those that are in, and how many were at most."""

    def __init__(self, status: int = 204) -> None:
        self.status, self.open = status, False
        self.inside = self.most = 0

    async def answer(self, *_: Any) -> Answer:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            while not self.open:
                await asyncio.sleep(0.005)
        finally:
            self.inside -= 1
        return self.status, {}, b""


@contextmanager
def held(receiver: Receiver, status: int = 204) -> Iterator[Gate]:
    """Meanwhile a receiver lets attempts wait."""
    gate = Gate(status)
    receiver.answer = gate.answer
    try:
        yield gate
    finally:
        gate.open = True


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    [one] = found
    return one


def test_a_delivery_that_always_fails_has_ten_attempts_each_at_its_time(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    receiver.answer = answering(500)
    endpoint = hook()
    happen(server, api)
    delivery = only(fanned_out(api, endpoint, 1))
    for made, wait in enumerate(WAITS, start=1):
        due = delivery["next_attempt_at"]
        assert delivery["status"] == "pending"
        assert made == 1 or look(server, ahead(due, seconds=-2)) == 0
        skew = ahead(due, seconds=0.1)
        assert look(server, skew) == 1
        was, delivery = delivery, only(deliveries(api, endpoint))
        assert len(delivery["attempts"]) == len(receiver.received) == made
        attempt = delivery["attempts"][-1]
        assert (attempt["status_code"], attempt["error"]) == (500, "the answer was 500")
        assert moment(attempt["at"]) >= moment(due)
        if made > 1:
            waited = moment(due) - moment(was["attempts"][-1]["at"])
            assert wait <= waited.total_seconds() <= wait * 1.1 + 5
        told = int(receiver.received[-1].headers["webhook-timestamp"])
        assert abs(told - receiver.received[-1].moment - skew.total_seconds()) < 5
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert look(server, 30 * DAY) == 0
    assert len({(each.headers["webhook-id"], each.body) for each in receiver.received}) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True


@pytest.mark.parametrize("asked, least, most", [("1000", 1000, 1010), ("1", 5, 10), ("999999", 86400, 86410)])
def test_a_receiver_may_ask_for_a_longer_wait(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, asked: str, least: int, most: int
) -> None:
    receiver.answer = answering(503, retry_after=asked)
    endpoint = hook()
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)
    delivery = only(deliveries(api, endpoint))
    waits = moment(delivery["next_attempt_at"]) - moment(delivery["attempts"][0]["at"])
    assert least <= waits.total_seconds() <= most
    assert look(server, ahead(delivery["next_attempt_at"], seconds=-2)) == 0
    assert look(server, ahead(delivery["next_attempt_at"], seconds=0.1)) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 429, 500, 503])
def test_whatever_is_not_2xx_is_a_failure_and_no_redirect_is_followed(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, receivers: Callable[[], Receiver], status: int
) -> None:
    elsewhere = receivers()
    receiver.answer = answering(status, location=elsewhere.url)
    endpoint = hook()
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)
    delivery = only(deliveries(api, endpoint))
    attempt = only(delivery["attempts"])
    assert (delivery["status"], attempt["status_code"], attempt["error"]) == (
        "pending", status, f"the answer was {status}",
    )  # fmt: skip
    assert (len(receiver.received), elsewhere.connections) == (1, 0)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226])
def test_every_2xx_is_success(server: RunningServer, api: Client, hook: Hook, receiver: Receiver, status: int) -> None:
    receiver.answer = lambda *_: (status, {}, b"")
    endpoint = hook()
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)
    delivery = only(deliveries(api, endpoint))
    assert (delivery["status"], delivery["next_attempt_at"]) == ("succeeded", None)
    assert look(server, DAY) == 0


def test_an_attempt_without_an_answer_says_so(
    server: RunningServer, api: Client, hook: Hook, receivers: Callable[[], Receiver]
) -> None:
    closed = Receiver()
    with closed:
        pass
    endpoint = hook(url=closed.url)
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)
    attempt = only(only(deliveries(api, endpoint))["attempts"])
    assert (attempt["status_code"], attempt["error"]) == (None, "the connection failed")
    assert 0 <= attempt["duration_ms"] < 15_000


def disabled(api: Client, endpoint: dict[str, Any], reason: str) -> None:
    """It is, and there is the event of it."""
    now = api.get(f"/webhook-endpoints/{endpoint['id']}").json()
    shown = {name: value for name, value in endpoint.items() if name != "secret"}
    assert now == shown | {"active": False, "disabled_reason": reason}
    event = only(events(api, "webhook_endpoint.disabled"))
    assert (event["data"], event["previous"]) == (now, {"active": True, "disabled_reason": None})
    assert event["actor"] == {"kind": "system", "id": None, "name": "plankeeper"}
    assert event["resource"] == {"kind": "webhook_endpoint", "id": endpoint["id"]}


def test_410_fails_the_delivery_and_disables_the_endpoint(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    beside = receivers()
    endpoint, healthy = hook(), hook(url=beside.url, event_types=["webhook_endpoint.disabled"])
    receiver.answer = answering(500)
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)  # now it fails, and has one place
    receiver.answer = answering(410)
    happen(server, api, 5)
    fanned_out(api, endpoint, 6)
    assert look(server) == 1
    gone = only(deliveries(api, endpoint, status="failed"))
    assert (gone["next_attempt_at"], [each["status_code"] for each in gone["attempts"]]) == (None, [410])
    rest = deliveries(api, endpoint, status="cancelled")
    assert [each["next_attempt_at"] for each in rest] == [None] * 5
    disabled(api, endpoint, "it answered 410 Gone")
    happen(server, api)
    fanned_out(api, healthy, 1)
    assert look(server, DAY) == 1
    assert (len(receiver.received), len(beside.received)) == (2, 1)
    assert len(deliveries(api, endpoint)) == 6


def test_what_has_only_failed_for_five_days_is_disabled(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    receiver.answer = answering(500)
    endpoint = hook()
    happen(server, api, 3)
    fanned_out(api, endpoint, 3)
    look(server)
    assert look(server, 5 * DAY - MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True
    assert look(server, 5 * DAY + MINUTE) == 1
    disabled(api, endpoint, "it has only failed for 5 days")
    assert {each["status"] for each in deliveries(api, endpoint)} == {"cancelled"}
    # What was attempted is still told.
    assert sum(len(each["attempts"]) for each in deliveries(api, endpoint)) == len(receiver.received)
    # Started again, it has another five days.
    api.put(f"/webhook-endpoints/{endpoint['id']}", {"active": True})
    happen(server, api)
    fanned_out(api, endpoint, 4)
    assert look(server, 5 * DAY + MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True


def test_one_success_begins_the_five_days_anew(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook()
    for status, skew in ((500, NOW), (204, 4 * DAY), (500, 5 * DAY + MINUTE), (500, 9 * DAY)):
        receiver.answer = answering(status)
        happen(server, api)
        wait_until(lambda: deliveries(api, endpoint, status="pending"))
        assert look(server, skew) >= 1
        assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is True
    assert look(server, 10 * DAY + 2 * MINUTE) == 1
    assert api.get(f"/webhook-endpoints/{endpoint['id']}").json()["active"] is False


def test_both_secrets_sign_for_a_day(server: RunningServer, api: Client, hook: Hook, receiver: Receiver) -> None:
    endpoint = hook()
    old = endpoint["secret"]
    happen(server, api)
    fanned_out(api, endpoint, 1)
    look(server)
    new = api.request("POST", f"/webhook-endpoints/{endpoint['id']}/rotate-secret").json()["secret"]
    for count, skew in enumerate((NOW, DAY - MINUTE, DAY + MINUTE), start=2):
        happen(server, api)
        fanned_out(api, endpoint, count)
        look(server, skew)
    signatures = [each.headers["webhook-signature"].split() for each in receiver.received]
    signing = [[old], [new, old], [new, old], [new]]
    assert signatures == [
        [signed_by(secret, got) for secret in secrets]
        for secrets, got in zip(signing, receiver.received, strict=True)
    ]  # fmt: skip


def test_two_workers_send_each_delivery_once(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoints = [hook(url=f"{receiver.url}/{number}") for number in range(5)]
    with working(server), working(server), working(server):
        made = [ident for _ in range(5) for ident in happen(server, api, 12)]
        wait_until(lambda: len(receiver.received) >= 300, 15)
        for each in endpoints:
            wait_until(lambda each=each: len(deliveries(api, each, status="succeeded")) == 60, 10)
    assert sorted(subjects(receiver)) == sorted(made * 5)
    assert {len(each["attempts"]) for endpoint in endpoints for each in deliveries(api, endpoint)} == {1}


def test_what_a_dead_worker_had_is_taken_over_after_a_minute(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook()
    happen(server, api, 3)
    fanned_out(api, endpoint, 3)
    claimed = server.run(delivery_queue.claim_due(server.db, {}, 8, 100, NOW))
    assert len(claimed) == 3
    assert look(server) == look(server, timedelta(seconds=50)) == 0
    assert look(server, timedelta(seconds=61)) == 3
    assert {each["status"] for each in deliveries(api, endpoint)} == {"succeeded"}
    assert len(receiver.received) == 3


def test_what_came_twice_is_told_once(server: RunningServer, api: Client, hook: Hook, receiver: Receiver) -> None:
    """A worker that was away for more than a minute comes back with what another has settled meanwhile."""
    endpoint = hook()
    happen(server, api)
    fanned_out(api, endpoint, 1)

    async def claimed_by_one() -> Any:
        worker, sender = new_worker(server)
        await worker.poll()
        return worker, sender

    with held(receiver, 500) as gate:
        worker, sender = server.run(claimed_by_one())
        wait_until(lambda: gate.inside)
        receiver.answer = answering(204)
        assert look(server, timedelta(seconds=61)) == 1

    async def end() -> None:
        worker.stopping.set()
        await worker.run()
        await sender.close()

    server.run(end())
    delivery = only(deliveries(api, endpoint))
    assert (delivery["status"], [each["status_code"] for each in delivery["attempts"]]) == ("succeeded", [204])
    assert len(receiver.received) == 2


def test_a_worker_that_is_told_to_stop_sends_and_writes_down_what_it_has(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver
) -> None:
    endpoint = hook()
    with held(receiver) as gate, working(server) as worker:
        happen(server, api, 8)
        wait_until(lambda: gate.inside == 8)
        server.loop.call_soon_threadsafe(worker.stopping.set)
        gate.open = True
    assert [each["status"] for each in deliveries(api, endpoint)] == ["succeeded"] * 8


def test_what_is_being_written_down_when_a_worker_stops_is_kept(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    async def slow(*arguments: Any) -> None:
        begun.set()
        await asyncio.sleep(0.2)
        await record_attempts(*arguments)

    monkeypatch.setattr("plankeeper.webhooks.worker.record_attempts", slow)
    endpoint = hook()
    with working(server):
        happen(server, api)
        assert begun.wait(10)
    assert only(deliveries(api, endpoint))["status"] == "succeeded"
    assert len(receiver.received) == 1


def test_endpoints_are_locked_in_one_order(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    """What came of attempts is written down beside the sequencer, which locks the same endpoints by their ids."""
    beside = receivers()
    receiver.answer = answering(500)
    failing, mended = hook(), hook(url=beside.url)
    server.run(server.db.execute("update webhook_endpoints set failing_since = now() where id = $1", mended["id"]))
    happen(server, api)
    fanned_out(api, failing, 1)

    async def look_beside() -> int:
        waiting = (
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%failing_since%'"
        )
        lock = "select id from webhook_endpoints where id = $1 for update nowait"
        worker, sender = new_worker(server)
        async with server.db.transaction() as tx:
            await tx.execute(lock, failing["id"])
            found = await worker.poll()
            worker.stopping.set()
            running = asyncio.create_task(worker.run())
            async with asyncio.timeout(10):
                while not await server.db.one(int, waiting):
                    await asyncio.sleep(0.01)
            await tx.execute(lock, mended["id"])  # refused at once where it is locked
        await running
        await sender.close()
        return found

    assert server.run(look_beside()) == 2
    assert [len(only(deliveries(api, each))["attempts"]) for each in (failing, mended)] == [1, 1]


def test_neither_a_slow_nor_a_dead_endpoint_delays_a_healthy_one(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, receivers: Callable[[], Receiver]
) -> None:
    slow, dead = receivers(), Receiver()
    with dead:
        pass
    hook()
    stuck, gone = hook(url=slow.url), hook(url=dead.url)
    with held(slow) as gate, working(server):
        made = happen(server, api, 100)
        wait_until(lambda: len(receiver.received) == 100, 15)
        assert gate.inside == 8
        gate.open = True
        wait_until(lambda: len(deliveries(api, stuck, status="succeeded")) == 100, 15)
    assert sorted(subjects(receiver)) == sorted(subjects(slow)) == sorted(made)
    assert {each["status"] for each in deliveries(api, gone)} == {"pending"}


@pytest.mark.parametrize("fails, places", [(False, 8), (True, 1)])
def test_an_endpoint_has_eight_places_and_one_while_it_only_fails(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, receivers: Callable[[], Receiver],
    fails: bool, places: int,
) -> None:  # fmt: skip
    beside = receivers()
    endpoint = hook(event_types=["provider.*"])
    hook(url=beside.url)
    if fails:
        receiver.answer = answering(500)
        happen(server, api, type_="provider.created")
        fanned_out(api, endpoint, 1)
        look(server)
    with held(receiver) as gate, working(server):
        happen(server, api, 30, "provider.created")
        wait_until(lambda: gate.inside == places)
        happen(server, api)
        wait_until(lambda: beside.received)  # so it has looked again meanwhile
        assert gate.most == gate.inside == places
        gate.open = True
        wait_until(lambda: len(deliveries(api, endpoint, status="succeeded")) >= 30, 10)
    assert gate.most <= 8


def test_a_worker_finds_the_database_again(
    server: RunningServer, api: Client, hook: Hook, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = hook()

    async def cut_off() -> int:
        """End all connections, that of a worker which waits for an answer among them."""
        claiming = """
            select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%recursive pending%'
        """
        ended = """
            select count(pg_terminate_backend(pid)) from pg_stat_activity
            where application_name = 'plankeeper' and pid <> pg_backend_pid()
        """
        async with Database(server.dsn).open() as db, db.transaction() as tx:
            await tx.execute("lock table webhook_deliveries")
            async with asyncio.timeout(10):
                while not await server.db.one(int, claiming):
                    await asyncio.sleep(0.01)
            return await tx.one(int, ended)

    with working(server):
        first = happen(server, api, 3)
        wait_until(lambda: len(deliveries(api, endpoint, status="succeeded")) == 3)
        assert server.run(cut_off()) > 1
        made = wait_until(lambda: written(server, api), 10)
        wait_until(lambda: len(receiver.received) >= 6, 15)
        wait_until(lambda: len(deliveries(api, endpoint, status="succeeded")) == 6, 10)
    assert sorted(subjects(receiver)) == sorted(first + made)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def written(server: RunningServer, api: Client) -> list[str] | None:
    try:
        return happen(server, api, 3)
    except Exception:  # noqa: BLE001 - the connection that it was lent may be one of those that were ended
        return None
