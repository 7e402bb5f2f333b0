"""Webhook endpoints: list, create, get, update, delete, rotate the secret, test, replay."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_event
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.errors import ApiError, ValidationError
from plankeeper.http.json import to_json
from plankeeper.http.pagination import Page, UuidListQuery, build_page
from plankeeper.http.parsing import uuid7_lower_bound
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse, apply_patch
from plankeeper.webhooks import delivery_queue, delivery_store, endpoint_store
from plankeeper.webhooks.policy import OLD_SECRET_GRACE_PERIOD, new_secret, validate_url
from plankeeper.webhooks.schemas import (
    ReplayRequest,
    ReplayResponse,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointRow,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
    WebhookTestResponse,
    without_secrets,
)


async def _get_for_update(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookEndpointRow | None:
    return await endpoint_store.select_for_update(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)


EARLIEST_REPLAY = datetime(2, 1, 1, tzinfo=UTC)  # before it a zone could lead out of what can be kept

router = Router("webhook_endpoints", lock=_get_for_update)


@router.get("/webhook-endpoints", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: UuidListQuery) -> Page[WebhookEndpoint]:
    """List webhook endpoints."""
    rows = await endpoint_store.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await endpoint_store.count(ctx.db, ctx.plan_manager_id)
    return build_page(query, rows, total)


@router.post("/webhook-endpoints", scope=WRITE, extension=True, status=201, conflicts=True)
async def create(ctx: WriteContext, new: WebhookEndpointCreate) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint. It gets the events from now on. Its secret is in this answer, and in no other."""
    _require_valid_url(ctx, new.url)
    await endpoint_store.lock_plan_manager(ctx.tx, ctx.plan_manager_id)
    if await endpoint_store.count(ctx.tx, ctx.plan_manager_id) >= ctx.settings.max_webhook_endpoints:
        raise ApiError("too_many_webhook_endpoints")
    defaults = WebhookEndpointRow(
        id=uuid7(),
        url=new.url,
        event_types=["*"],
        created_at=datetime.now(UTC),
        secret=new_secret(),
        last_position=await endpoint_store.latest_position(ctx.tx),
    )
    endpoint = apply_patch(new, defaults)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, to_json([endpoint]))
    await record_event(ctx, "webhook_endpoint.created", None, without_secrets(endpoint))
    return _with_secret(endpoint)


@router.get("/webhook-endpoints/{webhook_endpoint_id}", scope=READ, extension=True, etag=True)
async def get(ctx: ReadContext, webhook_endpoint_id: UUID) -> WebhookEndpoint:
    """Get a webhook endpoint."""
    return or_404(await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id))


@router.put("/webhook-endpoints/{webhook_endpoint_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, webhook_endpoint_id: UUID, change: WebhookEndpointUpdate) -> WebhookEndpoint:
    """Update a webhook endpoint. Absent members stay as they are. One that is paused gets no new deliveries."""
    old = or_404(await _get_for_update(ctx, webhook_endpoint_id))
    if isinstance(change.url, str):
        _require_valid_url(ctx, change.url)
    new = apply_patch(change, old)
    if new.active and not old.active:
        # What happened in the pause is sent by a replay only.
        position = await endpoint_store.latest_position(ctx.tx)
        new = msgspec.structs.replace(new, disabled_reason=None, failing_since=None, last_position=position)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, to_json([new]))
    if old.active and not new.active:
        await delivery_queue.cancel_pending(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)
    await record_event(ctx, "webhook_endpoint.updated", without_secrets(old), without_secrets(new))
    return without_secrets(new)


@router.delete("/webhook-endpoints/{webhook_endpoint_id}", scope=WRITE, extension=True)
async def delete(ctx: WriteContext, webhook_endpoint_id: UUID) -> EmptyResponse:
    """Delete a webhook endpoint for good, with its deliveries."""
    before = or_404(await endpoint_store.delete(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id))
    await record_event(ctx, "webhook_endpoint.deleted", before, None)
    return EmptyResponse()


@router.post("/webhook-endpoints/{webhook_endpoint_id}/rotate-secret", scope=WRITE, extension=True)
async def rotate_secret(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookEndpointWithSecret:
    """Make a new secret. For a day both sign, so that receivers can change over."""
    old = or_404(await _get_for_update(ctx, webhook_endpoint_id))
    until = datetime.now(UTC) + OLD_SECRET_GRACE_PERIOD
    new = msgspec.structs.replace(old, secret=new_secret(), old_secret=old.secret, old_secret_until=until)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, to_json([new]))
    await record_event(ctx, "webhook_endpoint.secret_rotated", None, without_secrets(new))
    return _with_secret(new)


@router.post("/webhook-endpoints/{webhook_endpoint_id}/test", scope=WRITE, extension=True, conflicts=True)
async def test(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookTestResponse:
    """Send an event of the type `webhook_endpoint.tested` to this endpoint alone, whatever it asked for."""
    endpoint = require_active(or_404(await _get_for_update(ctx, webhook_endpoint_id)))
    type_ = "webhook_endpoint.tested"
    event_id = or_404(await record_event(replace(ctx, notify=False), type_, None, without_secrets(endpoint)))
    await delivery_store.insert(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, event_id, type_)
    return WebhookTestResponse(event_id)


@router.post("/webhook-endpoints/{webhook_endpoint_id}/replay", scope=WRITE, extension=True, conflicts=True)
async def replay(ctx: WriteContext, webhook_endpoint_id: UUID, request: ReplayRequest) -> ReplayResponse:
    """Send again every event since a moment that the endpoint wants; what happens meanwhile comes behind them."""
    if request.since < EARLIEST_REPLAY:
        raise ValidationError(since="must be a datetime of the years from 2 on")
    endpoint = require_active(or_404(await _get_for_update(ctx, webhook_endpoint_id)))
    min_event_id = uuid7_lower_bound(request.since)
    start = await endpoint_store.find_replay_start(
        ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, request.since, min_event_id
    )
    position = min(start.position, endpoint.last_position) if start.events else endpoint.last_position
    await endpoint_store.upsert(
        ctx.tx, ctx.plan_manager_id, to_json([msgspec.structs.replace(endpoint, last_position=position)])
    )
    await record_event(replace(ctx, notify=False), "webhook_endpoint.replayed", None, without_secrets(endpoint))
    return ReplayResponse(start.events)


def require_active(endpoint: WebhookEndpointRow) -> WebhookEndpointRow:
    """The endpoint; raises ApiError where nothing is sent to it."""
    if not endpoint.active:
        raise ApiError("webhook_endpoint_inactive")
    return endpoint


def _require_valid_url(ctx: WriteContext, url: str) -> None:
    error = validate_url(url, ctx.settings.webhook_allowed_networks)
    if error:
        raise ValidationError(url=error)


def _with_secret(row: WebhookEndpointRow) -> WebhookEndpointWithSecret:
    return msgspec.convert(row, WebhookEndpointWithSecret, from_attributes=True)
