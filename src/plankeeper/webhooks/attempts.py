"""What came of attempts is written down, and an endpoint that cannot be reached for good is disabled."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from plankeeper.database.client import Database
from plankeeper.events.recorder import record_event
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.json import to_json
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue, endpoint_store
from plankeeper.webhooks.policy import DISABLE_AFTER, HTTP_GONE
from plankeeper.webhooks.schemas import DeliveryUpdate, WebhookEndpointRow, without_secrets

_GONE_REASON = "it answered 410 Gone"
_FAILING_REASON = f"it has only failed for {DISABLE_AFTER.days} days"


async def record_attempts(
    db: Database, settings: Settings, updates: Sequence[DeliveryUpdate], clock_offset: timedelta
) -> None:
    """Write down many attempts in one transaction."""
    plan_manager_ids: dict[UUID, UUID] = {each.job.webhook_endpoint_id: each.job.plan_manager_id for each in updates}
    succeeded_ids = {each.job.webhook_endpoint_id for each in updates if each.status == "succeeded"}
    gone_ids = {each.job.webhook_endpoint_id for each in updates if each.attempt.status_code == HTTP_GONE}
    endpoint_ids = list(plan_manager_ids)
    async with db.transaction() as tx:
        # Endpoints are locked before their deliveries, here as in every request.
        failing_ids = await delivery_queue.update_endpoint_health(
            tx,
            [plan_manager_ids[each] for each in endpoint_ids],
            endpoint_ids,
            [each in succeeded_ids for each in endpoint_ids],
            [each in gone_ids for each in endpoint_ids],
            DISABLE_AFTER,
            clock_offset,
        )
        reasons = dict.fromkeys(failing_ids, _FAILING_REASON) | dict.fromkeys(gone_ids, _GONE_REASON)
        endpoints = [
            await endpoint_store.select_for_update(tx, plan_manager_ids[each], each) for each in sorted(reasons)
        ]
        await delivery_queue.save_attempts(tx, updates, clock_offset)
        for endpoint in endpoints:
            if endpoint and endpoint.active:
                await _disable(
                    WriteContext(tx, plan_manager_ids[endpoint.id], settings, SYSTEM), endpoint, reasons[endpoint.id]
                )


async def _disable(ctx: WriteContext, endpoint: WebhookEndpointRow, reason: str) -> None:
    """Stop sending to an endpoint, and tell of it by an event."""
    disabled = msgspec.structs.replace(endpoint, active=False, disabled_reason=reason)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, to_json([disabled]))
    await delivery_queue.cancel_pending(ctx.tx, ctx.plan_manager_id, endpoint.id)
    await record_event(ctx, "webhook_endpoint.disabled", without_secrets(endpoint), without_secrets(disabled))
