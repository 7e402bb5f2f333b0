"""Helpers for tests of webhooks: create events, run workers, read received messages."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec import Struct
from standardwebhooks import Webhook
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.events.recorder import record_events
from plankeeper.events.sequencer import BATCH_SIZE, assign_positions
from plankeeper.webhooks.client import WebhookClient
from plankeeper.webhooks.fan_out import fan_out
from plankeeper.webhooks.worker import Worker
from support.client import NO_TLS, Client
from support.receiver import ReceivedRequest, Receiver
from support.server import RunningServer, wait_until

NO_OFFSET = timedelta()
NewEndpoint = Callable[..., dict[str, Any]]  # makes an endpoint


class EventSubject(Struct):
    """The resource of the sample events."""

    id: UUID


def new_worker(server: RunningServer, clock_offset: timedelta = NO_OFFSET) -> tuple[Worker, WebhookClient]:
    sender = WebhookClient(server.settings.webhook_allowed_networks, ssl_context=NO_TLS)
    return Worker(server.db, sender, server.settings, clock_offset), sender


def poll_once(server: RunningServer, clock_offset: timedelta = NO_OFFSET) -> int:
    """A worker with its clock moved looks once, sends what it found, writes it down, and ends: how many it sent.

    It waits for the attempts however long they take: a worker that stops gives up after ten seconds.
    """

    async def work() -> int:
        worker, sender = new_worker(server, clock_offset)
        found = await worker.poll()
        await asyncio.gather(*worker._tasks)  # noqa: SLF001 - the attempts of this poll
        worker.stopping.set()
        await worker.run()
        await sender.close()
        return found

    return server.run(work())


@contextmanager
def running_worker(server: RunningServer, clock_offset: timedelta = NO_OFFSET) -> Iterator[Worker]:
    """A worker that runs during the block."""

    async def begin() -> Any:
        worker, sender = new_worker(server, clock_offset)
        return worker, sender, server.loop.create_task(worker.run())

    async def end() -> None:
        worker.stopping.set()
        await running
        await sender.close()

    worker, sender, running = server.run(begin())
    try:
        yield worker
    finally:
        server.run(end())


def emit_events(server: RunningServer, api: Client, count: int = 1, type_: str = "note_type.created") -> list[str]:
    """That many events in one transaction: the ids of what they are about, in the order of the feed.

    The events are in the feed when it returns, and the endpoints' deliveries are usually created.
    """

    async def work() -> list[str]:
        things = [EventSubject(uuid7()) for _ in range(count)]
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            await record_events(ctx, [(type_, None, each) for each in things])
        await deliver_soon(server, UUID(api.plan_manager_id))
        return [str(each.id) for each in things]

    return server.run(work())


async def deliver_soon(server: RunningServer, plan_manager_id: UUID) -> None:
    """Do what a server does with events when it looks for those of other processes, once or twice a second."""
    while await assign_positions(server.db, plan_manager_id, BATCH_SIZE) is None:
        await asyncio.sleep(0.005)  # the server is doing it
    await fan_out(server.db, plan_manager_id)


def list_deliveries(api: Client, endpoint: dict[str, Any], **filters: Any) -> list[dict[str, Any]]:
    return api.get(f"/webhook-endpoints/{endpoint['id']}/deliveries", limit=1000, **filters).json()["data"]


def wait_for_deliveries(api: Client, endpoint: dict[str, Any], count: int, **filters: Any) -> list[dict[str, Any]]:
    """The deliveries to an endpoint, once there are as many."""
    found = wait_until(lambda: len(listed := list_deliveries(api, endpoint, **filters)) >= count and listed)
    assert len(found) == count, found
    return found


def wait_for_events(api: Client, type_: str, count: int = 1) -> list[dict[str, Any]]:
    """The events of a type, once they are in the feed and as many."""
    found = wait_until(
        lambda: len(listed := api.get("/events", limit=1000, type=type_).json()["data"]) >= count and listed
    )
    assert len(found) == count, found
    return found


def received_bodies(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in receiver.received]


def received_subject_ids(receiver: Receiver) -> list[str]:
    """The ids of the resources of the received events, in their order of arrival."""
    return [each["data"]["resource"]["id"] for each in received_bodies(receiver)]


def signature_of(secret: str, request: ReceivedRequest) -> str:
    """The signature of a request by a secret, as Standard Webhooks says it."""
    content = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def clock_offset_to(text: str, **by: float) -> timedelta:
    """How far a clock must be moved to show a moment, or so much later: `ahead(text, seconds=1)`."""
    return parse_time(text) + timedelta(**by) - datetime.now(UTC)


def event_types(receiver: Receiver) -> list[str]:
    return [json.loads(each.body)["type"] for each in receiver.received]


def verify(each: ReceivedRequest, secret: str) -> Any:
    return Webhook(secret).verify(each.body.decode(), each.headers)
