"""Webhook endpoints: list, create, get, update, delete, rotate the secret, test, replay."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_event
from plankeeper.http.context import Read, Write, found
from plankeeper.http.errors import Invalid, Refusal
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import first_id_at
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, UuidListQuery, applied, json_text
from plankeeper.webhooks import delivery_queue, delivery_store, endpoint_store
from plankeeper.webhooks.policy import OLD_SECRET_GRACE_PERIOD, validate_url, new_secret
from plankeeper.webhooks.schemas import (
    ReplayRequest,
    ReplayResponse,
    WebhookEndpoint,
    WebhookEndpointUpdate,
    WebhookEndpointCreate,
    WebhookEndpointRow,
    WebhookEndpointWithSecret,
    WebhookTestResponse,
    without_secrets,
)


async def _get_for_update(ctx: Write, webhook_endpoint_id: UUID) -> WebhookEndpointRow | None:
    return await endpoint_store.select_for_update(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)


EARLIEST_REPLAY = datetime(2, 1, 1, tzinfo=UTC)  # before it a zone could lead out of what can be kept

routes = Routes("webhook_endpoints", lock=_get_for_update)


@routes.get("/webhook-endpoints", need=READ, extension=True)
async def list_(ctx: Read, query: UuidListQuery) -> Page[WebhookEndpoint]:
    """List webhook endpoints."""
    rows = await endpoint_store.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.by_cursor else await endpoint_store.count(ctx.db, ctx.plan_manager_id)
    return page_of(query, rows, total)


@routes.post("/webhook-endpoints", need=WRITE, extension=True, status=201, conflicts=True)
async def create(ctx: Write, new: WebhookEndpointCreate) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint. It gets the events from now on. Its secret is in this answer, and in no other."""
    _require_valid_url(ctx, new.url)
    await endpoint_store.lock_plan_manager(ctx.tx, ctx.plan_manager_id)
    if await endpoint_store.count(ctx.tx, ctx.plan_manager_id) >= ctx.settings.max_webhook_endpoints:
        raise Refusal("too_many_webhook_endpoints")
    defaults = WebhookEndpointRow(
        id=uuid7(), url=new.url, event_types=["*"], created_at=datetime.now(UTC), secret=new_secret(),
        fanned_out_to=await endpoint_store.latest_position(ctx.tx),
    )  # fmt: skip
    endpoint = applied(new, defaults)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, json_text([endpoint]))
    await record_event(ctx, "webhook_endpoint.created", None, without_secrets(endpoint))
    return _with_secret(endpoint)


@routes.get("/webhook-endpoints/{webhook_endpoint_id}", need=READ, extension=True)
async def get(ctx: Read, webhook_endpoint_id: UUID) -> WebhookEndpoint:
    """Get a webhook endpoint."""
    return found(await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id))


@routes.put("/webhook-endpoints/{webhook_endpoint_id}", need=WRITE, extension=True)
async def update(ctx: Write, webhook_endpoint_id: UUID, change: WebhookEndpointUpdate) -> WebhookEndpoint:
    """Update a webhook endpoint. Absent members stay as they are. One that is paused gets no new deliveries."""
    old = found(await _get_for_update(ctx, webhook_endpoint_id))
    if isinstance(change.url, str):
        _require_valid_url(ctx, change.url)
    new = applied(change, old)
    if new.active and not old.active:
        # What happened in the pause is sent by a replay only.
        position = await endpoint_store.latest_position(ctx.tx)
        new = msgspec.structs.replace(new, disabled_reason=None, failing_since=None, fanned_out_to=position)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, json_text([new]))
    if old.active and not new.active:
        await delivery_queue.cancel_pending(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)
    await record_event(ctx, "webhook_endpoint.updated", without_secrets(old), without_secrets(new))
    return without_secrets(new)


@routes.delete("/webhook-endpoints/{webhook_endpoint_id}", need=WRITE, extension=True)
async def delete(ctx: Write, webhook_endpoint_id: UUID) -> Empty:
    """Delete a webhook endpoint for good, with its deliveries."""
    before = found(await endpoint_store.delete(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id))
    await record_event(ctx, "webhook_endpoint.deleted", before, None)
    return Empty()


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/rotate-secret", need=WRITE, extension=True)
async def rotate_secret(ctx: Write, webhook_endpoint_id: UUID) -> WebhookEndpointWithSecret:
    """Make a new secret. For a day both sign, so that receivers can change over."""
    old = found(await _get_for_update(ctx, webhook_endpoint_id))
    until = datetime.now(UTC) + OLD_SECRET_GRACE_PERIOD
    new = msgspec.structs.replace(old, secret=new_secret(), old_secret=old.secret, old_secret_until=until)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, json_text([new]))
    await record_event(ctx, "webhook_endpoint.secret_rotated", None, without_secrets(new))
    return _with_secret(new)


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/test", need=WRITE, extension=True, conflicts=True)
async def test(ctx: Write, webhook_endpoint_id: UUID) -> WebhookTestResponse:
    """Send an event of the type `webhook_endpoint.tested` to this endpoint alone, whatever it asked for."""
    endpoint = require_active(found(await _get_for_update(ctx, webhook_endpoint_id)))
    type_ = "webhook_endpoint.tested"
    event_id = found(await record_event(replace(ctx, notify=False), type_, None, without_secrets(endpoint)))
    await delivery_store.insert(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, event_id, type_)
    return WebhookTestResponse(event_id)


@routes.post("/webhook-endpoints/{webhook_endpoint_id}/replay", need=WRITE, extension=True, conflicts=True)
async def replay(ctx: Write, webhook_endpoint_id: UUID, request: ReplayRequest) -> ReplayResponse:
    """Send again every event since a moment that the endpoint wants; what happens meanwhile comes behind them."""
    if request.since < EARLIEST_REPLAY:
        raise Invalid(since="must be a datetime of the years from 2 on")
    endpoint = require_active(found(await _get_for_update(ctx, webhook_endpoint_id)))
    min_event_id = first_id_at(request.since)
    start = await endpoint_store.find_replay_start(
        ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, request.since, min_event_id
    )
    position = min(start.position, endpoint.fanned_out_to) if start.events else endpoint.fanned_out_to
    await endpoint_store.upsert(
        ctx.tx, ctx.plan_manager_id, json_text([msgspec.structs.replace(endpoint, fanned_out_to=position)])
    )
    await record_event(replace(ctx, notify=False), "webhook_endpoint.replayed", None, without_secrets(endpoint))
    return ReplayResponse(start.events)


def require_active(endpoint: WebhookEndpointRow) -> WebhookEndpointRow:
    """The endpoint; raises Refusal where nothing is sent to it."""
    if not endpoint.active:
        raise Refusal("webhook_endpoint_inactive")
    return endpoint


def _require_valid_url(ctx: Write, url: str) -> None:
    error = validate_url(url, ctx.settings.webhook_allowed_networks)
    if error:
        raise Invalid(url=error)


def _with_secret(row: WebhookEndpointRow) -> WebhookEndpointWithSecret:
    return msgspec.convert(row, WebhookEndpointWithSecret, from_attributes=True)
