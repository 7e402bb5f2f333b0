"""Webhook endpoints: list, create, get, update, delete, rotate the secret, test, replay."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record
from plankeeper.http.context import Read, Write, found
from plankeeper.http.errors import Invalid, Refusal
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import first_id_at
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, UuidListQuery, applied, json_text
from plankeeper.webhooks import delivery_queue, delivery_store, endpoint_store
from plankeeper.webhooks.policy import OLD_SECRET_SIGNS, fault_of_url, new_secret
from plankeeper.webhooks.schemas import (
    Replay,
    ReplayAnswer,
    WebhookEndpoint,
    WebhookEndpointChange,
    WebhookEndpointCreate,
    WebhookEndpointRecord,
    WebhookEndpointWithSecret,
    WebhookTest,
    shown,
)


async def _locked(call: Write, webhook_endpoint_id: UUID) -> WebhookEndpointRecord | None:
    return await endpoint_store.record_for_update(call.tx, call.plan_manager_id, webhook_endpoint_id)


EARLIEST = datetime(2, 1, 1, tzinfo=UTC)  # before it a zone could lead out of what can be kept

routes = Routes("webhook_endpoints", lock=_locked)


@routes.get("/webhook-endpoints", need=READ, extension=True)
async def list_(call: Read, query: UuidListQuery) -> Page[WebhookEndpoint]:
    """List webhook endpoints."""
    rows = await endpoint_store.page(call.db, call.plan_manager_id, query)
    total = None if query.by_cursor else await endpoint_store.count(call.db, call.plan_manager_id)
    return page_of(query, rows, total)


@routes.post("/webhook-endpoints", need=WRITE, extension=True, status=201, conflicts=True)
async def create(call: Write, new: WebhookEndpointCreate) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint. It gets the events from now on. Its secret is in this answer, and in no other."""
    _require_good_url(call, new.url)
    await endpoint_store.lock_owner(call.tx, call.plan_manager_id)
    if await endpoint_store.count(call.tx, call.plan_manager_id) >= call.settings.webhook_endpoints:
        raise Refusal("too_many_webhook_endpoints")
    started = WebhookEndpointRecord(
        id=uuid7(), url=new.url, event_types=["*"], created_at=datetime.now(UTC), secret=new_secret(),
        fanned_out_to=await endpoint_store.newest_position(call.tx),
    )  # fmt: skip
    kept = applied(new, started)
    await endpoint_store.put(call.tx, call.plan_manager_id, json_text([kept]))
    await record(call, "webhook_endpoint.created", None, shown(kept))
    return _with_secret(kept)


@routes.get("/webhook-endpoints/{webhook_endpoint_id}", need=READ, extension=True)
async def get(call: Read, webhook_endpoint_id: UUID) -> WebhookEndpoint:
    """Get a webhook endpoint."""
    return found(await endpoint_store.fetch(call.db, call.plan_manager_id, webhook_endpoint_id))


@routes.put("/webhook-endpoints/{webhook_endpoint_id}", need=WRITE, extension=True)
async def update(call: Write, webhook_endpoint_id: UUID, change: WebhookEndpointChange) -> WebhookEndpoint:
    """Update a webhook endpoint. Absent members stay as they are. One that is paused gets no new deliveries."""
    old = found(await _locked(call, webhook_endpoint_id))
    if isinstance(change.url, str):
        _require_good_url(call, change.url)
    new = applied(change, old)
    if new.active and not old.active:
        # What happened in the pause is sent by a replay only.
        newest = await endpoint_store.newest_position(call.tx)
        new = msgspec.structs.replace(new, disabled_reason=None, failing_since=None, fanned_out_to=newest)
    await endpoint_store.put(call.tx, call.plan_manager_id, json_text([new]))
    if old.active and not new.active:
        await delivery_queue.cancel(call.tx, call.plan_manager_id, webhook_endpoint_id)
    await record(call, "webhook_endpoint.updated", shown(old), shown(new))
    return shown(new)


@routes.delete("/webhook-endpoints/{webhook_endpoint_id}", need=WRITE, extension=True)
async def delete(call: Write, webhook_endpoint_id: UUID) -> Empty:
    """Delete a webhook endpoint for good, with its deliveries."""
    before = found(await endpoint_store.remove(call.tx, call.plan_manager_id, webhook_endpoint_id))
    await record(call, "webhook_endpoint.deleted", before, None)
    return Empty()


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/rotate-secret", need=WRITE, extension=True)
async def rotate_secret(call: Write, webhook_endpoint_id: UUID) -> WebhookEndpointWithSecret:
    """Make a new secret. For a day both sign, so that receivers can change over."""
    old = found(await _locked(call, webhook_endpoint_id))
    until = datetime.now(UTC) + OLD_SECRET_SIGNS
    new = msgspec.structs.replace(old, secret=new_secret(), old_secret=old.secret, old_secret_until=until)
    await endpoint_store.put(call.tx, call.plan_manager_id, json_text([new]))
    await record(call, "webhook_endpoint.secret_rotated", None, shown(new))
    return _with_secret(new)


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/test", need=WRITE, extension=True, conflicts=True)
async def test(call: Write, webhook_endpoint_id: UUID) -> WebhookTest:
    """Send an event of the type `webhook_endpoint.tested` to this endpoint alone, whatever it asked for."""
    kept = require_active(found(await _locked(call, webhook_endpoint_id)))
    type_ = "webhook_endpoint.tested"
    event_id = found(await record(replace(call, notify=False), type_, None, shown(kept)))
    await delivery_store.add(call.tx, call.plan_manager_id, webhook_endpoint_id, event_id, type_)
    return WebhookTest(event_id)


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/replay", need=WRITE, extension=True, conflicts=True)
async def replay(call: Write, webhook_endpoint_id: UUID, wanted: Replay) -> ReplayAnswer:
    """Send again every event since a moment that the endpoint wants; what happens meanwhile comes behind them."""
    if wanted.since < EARLIEST:
        raise Invalid(since="must be a datetime of the years from 2 on")
    kept = require_active(found(await _locked(call, webhook_endpoint_id)))
    floor = first_id_at(wanted.since)
    begins = await endpoint_store.beginning(call.tx, call.plan_manager_id, webhook_endpoint_id, wanted.since, floor)
    position = min(begins.position, kept.fanned_out_to) if begins.events else kept.fanned_out_to
    await endpoint_store.put(
        call.tx, call.plan_manager_id, json_text([msgspec.structs.replace(kept, fanned_out_to=position)])
    )
    await record(replace(call, notify=False), "webhook_endpoint.replayed", None, shown(kept))
    return ReplayAnswer(begins.events)


def require_active(kept: WebhookEndpointRecord) -> WebhookEndpointRecord:
    """The endpoint; raises Refusal where nothing is sent to it."""
    if not kept.active:
        raise Refusal("webhook_endpoint_inactive")
    return kept


def _require_good_url(call: Write, url: str) -> None:
    fault = fault_of_url(url, call.settings.webhook_allowed_networks)
    if fault:
        raise Invalid(url=fault)


def _with_secret(kept: WebhookEndpointRecord) -> WebhookEndpointWithSecret:
    return msgspec.convert(kept, WebhookEndpointWithSecret, from_attributes=True)
