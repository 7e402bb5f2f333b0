"""Operations on webhook endpoints and deliveries that the API and the console share."""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, ValidationError
from plankeeper.core.fields import apply_patch, unset_to_none
from plankeeper.core.ids import uuid7_lower_bound, uuid7_upper_bound
from plankeeper.events.event_types import SENT_PATTERNS, SENT_TYPES, find_unknown_types, require_event_types
from plankeeper.events.order_store import latest_position
from plankeeper.events.recorder import is_changed, record_event
from plankeeper.webhooks import delivery_queue, delivery_store, endpoint_store
from plankeeper.webhooks.messages import OLD_SECRET_GRACE_PERIOD, new_secret
from plankeeper.webhooks.schemas import (
    TEST_TYPE,
    ReplayRequest,
    ReplayResponse,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointRow,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
    WebhookTestResponse,
    without_secrets,
)
from plankeeper.webhooks.url_policy import validate_url

EARLIEST_REPLAY = datetime(2, 1, 1, tzinfo=UTC)  # an earlier time can leave PostgreSQL's range in another time zone


async def select_for_update(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookEndpointRow | None:
    """Lock an endpoint until the transaction ends."""
    return await endpoint_store.select_for_update(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)


def _require_valid(ctx: WriteContext, change: WebhookEndpointCreate | WebhookEndpointUpdate) -> None:
    """Raise a ValidationError with all errors."""
    errors = list[FieldError]()
    if isinstance(change.url, str) and (error := validate_url(change.url, ctx.settings.webhook_allowed_networks)):
        errors.append(FieldError("url", error, "invalid_format"))
    event_types = unset_to_none(change.event_types) or ()
    errors += find_unknown_types(((f"event_types[{at}]", each) for at, each in enumerate(event_types)), SENT_PATTERNS)
    if errors:
        raise ValidationError(*errors)


async def create(ctx: WriteContext, new: WebhookEndpointCreate) -> WebhookEndpointWithSecret:
    """Create an endpoint, which receives the events from now on. Only this result contains the secret.

    Raises SecretKeyMissingError if no key encrypts.
    """
    _require_valid(ctx, new)
    await endpoint_store.lock_plan_manager(ctx.tx, ctx.plan_manager_id)
    if await endpoint_store.count(ctx.tx, ctx.plan_manager_id) >= ctx.settings.max_webhook_endpoints:
        raise DomainError("too_many_webhook_endpoints")
    id_, secret, now = uuid7(), new_secret(), datetime.now(UTC)
    defaults = WebhookEndpointRow(
        id=id_,
        url=new.url,
        event_types=["*"],
        created_at=now,
        updated_at=now,
        secret=secret_cipher(ctx.settings).encrypt(secret, id_.bytes),
        last_position=await latest_position(ctx.tx, ctx.plan_manager_id),
    )
    endpoint = apply_patch(new, defaults)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, endpoint)
    await record_event(ctx, "webhook_endpoint.created", None, without_secrets(endpoint))
    _disclose(ctx, endpoint, "created")
    return _with_secret(endpoint, secret)


async def update(ctx: WriteContext, webhook_endpoint_id: UUID, change: WebhookEndpointUpdate) -> WebhookEndpoint:
    """Apply the fields that are set; raises NotFound. Pausing an endpoint cancels its pending deliveries."""
    _require_valid(ctx, change)
    old = or_404(await select_for_update(ctx, webhook_endpoint_id))
    new = apply_patch(change, old)
    if not is_changed(old, new):
        return without_secrets(old)
    if new.active and not old.active:
        # Events during the pause are only sent by a replay.
        position = await latest_position(ctx.tx, ctx.plan_manager_id)
        new = msgspec.structs.replace(new, disabled_reason=None, failing_since=None, last_position=position)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, new)
    if old.active and not new.active:
        await delivery_queue.cancel_pending(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id)
    await record_event(ctx, "webhook_endpoint.updated", without_secrets(old), without_secrets(new))
    if new.active:
        _disclose(ctx, new, "changed")
    return without_secrets(new)


async def delete(ctx: WriteContext, webhook_endpoint_id: UUID) -> None:
    """Delete an endpoint with its deliveries; raises NotFound."""
    before = or_404(await endpoint_store.delete(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id))
    await record_event(ctx, "webhook_endpoint.deleted", before, None)


async def rotate_secret(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookEndpointWithSecret:
    """Replace the secret; raises NotFound, and SecretKeyMissingError if no key encrypts.

    The old secret also signs until OLD_SECRET_GRACE_PERIOD has passed.
    """
    old = or_404(await select_for_update(ctx, webhook_endpoint_id))
    until, secret = datetime.now(UTC) + OLD_SECRET_GRACE_PERIOD, new_secret()
    encrypted = secret_cipher(ctx.settings).encrypt(secret, webhook_endpoint_id.bytes)
    new = msgspec.structs.replace(old, secret=encrypted, old_secret=old.secret, old_secret_until=until)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, new)
    await record_event(ctx, "webhook_endpoint.secret_rotated", None, without_secrets(new))
    return _with_secret(new, secret)


async def send_test(ctx: WriteContext, webhook_endpoint_id: UUID, type_: str = TEST_TYPE) -> WebhookTestResponse:
    """Deliver a test event to this endpoint only, whatever event types it receives; raises NotFound.

    The delivery has the type whose example is sent, and the event records that the endpoint was tested.
    """
    require_event_types([("type", type_)], SENT_TYPES)
    endpoint = _require_active(or_404(await select_for_update(ctx, webhook_endpoint_id)))
    event_id = or_404(await record_event(replace(ctx, notify=False), TEST_TYPE, None, without_secrets(endpoint)))
    await delivery_store.insert(ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, event_id, type_)
    return WebhookTestResponse(event_id)


async def replay(ctx: WriteContext, webhook_endpoint_id: UUID, request: ReplayRequest) -> ReplayResponse:
    """Move an endpoint back in the feed, so that it receives the events since a time again; raises NotFound."""
    if request.since < EARLIEST_REPLAY:
        raise ValidationError(FieldError("since", "must be a datetime in the year 2 or later", "too_small"))
    endpoint = _require_active(or_404(await select_for_update(ctx, webhook_endpoint_id)))
    min_event_id = uuid7_lower_bound(request.since)
    certain_id = uuid7_upper_bound(request.since)
    start = await endpoint_store.find_replay_start(
        ctx.tx, ctx.plan_manager_id, webhook_endpoint_id, request.since, min_event_id, certain_id
    )
    position = min(start.position, endpoint.last_position) if start.events else endpoint.last_position
    moved = msgspec.structs.replace(endpoint, last_position=position)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, moved)
    await record_event(replace(ctx, notify=False), "webhook_endpoint.replayed", None, without_secrets(moved))
    _disclose(ctx, endpoint, "replayed", since=request.since.isoformat())
    return ReplayResponse(start.events)


async def retry_delivery(ctx: WriteContext, webhook_delivery_id: UUID) -> WebhookDelivery:
    """Attempt a delivery again now, whatever its status; raises NotFound."""
    endpoint_id = or_404(await delivery_store.get_endpoint_id(ctx.tx, ctx.plan_manager_id, webhook_delivery_id))
    endpoint = _require_active(or_404(await select_for_update(ctx, endpoint_id)))
    delivery = or_404(await delivery_store.retry(ctx.tx, ctx.plan_manager_id, webhook_delivery_id))
    await record_event(replace(ctx, notify=False), "webhook_delivery.retried", None, delivery)
    _disclose(ctx, endpoint, "retried", event_id=str(delivery.event_id))
    return delivery


def _disclose(ctx: WriteContext, endpoint: WebhookEndpointRow, cause: str, **details: str) -> None:
    """Messages with the payload `full` contain personal data: the access log records who requested them."""
    if endpoint.payload == "full":
        query = urlencode({"cause": cause, **details})
        ctx.disclosed.append(Disclosure("exported", "webhook_endpoint", endpoint.id, query))


def _require_active(endpoint: WebhookEndpointRow) -> WebhookEndpointRow:
    if not endpoint.active:
        raise DomainError("webhook_endpoint_inactive", resource=ErrorResource("webhook_endpoint", str(endpoint.id)))
    return endpoint


def _with_secret(row: WebhookEndpointRow, secret: str) -> WebhookEndpointWithSecret:
    decrypted = msgspec.structs.replace(row, secret=secret)
    return msgspec.convert(decrypted, WebhookEndpointWithSecret, from_attributes=True)
