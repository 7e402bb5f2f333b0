"""Save the results of attempts, and disable endpoints that fail permanently."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.events.recorder import record_event
from plankeeper.mail import store as mail_store
from plankeeper.mail.schemas import WebhookDisabledMail
from plankeeper.webhooks import delivery_queue, endpoint_store
from plankeeper.webhooks.retry_policy import DISABLE_AFTER, HTTP_GONE
from plankeeper.webhooks.schemas import DeliveryUpdate, WebhookEndpointRow, without_secrets

_GONE_REASON = "it responded with 410 Gone"
_FAILING_REASON = f"every attempt has failed for {DISABLE_AFTER.days} days"


async def record_attempts(
    db: Database, settings: Settings, updates: Sequence[DeliveryUpdate], clock_offset: timedelta
) -> None:
    """Save many attempts in one transaction, and disable the endpoints that fail permanently."""
    plan_manager_ids: dict[UUID, UUID] = {
        update.job.webhook_endpoint_id: update.job.plan_manager_id for update in updates
    }
    succeeded_ids = {update.job.webhook_endpoint_id for update in updates if update.status == "succeeded"}
    gone_ids = {update.job.webhook_endpoint_id for update in updates if update.attempt.status_code == HTTP_GONE}
    endpoint_ids = list(plan_manager_ids)
    async with db.transaction() as tx:
        # Lock endpoints before their deliveries, as every request does: otherwise the two could deadlock.
        failing_ids = await delivery_queue.update_endpoint_health(
            tx,
            [plan_manager_ids[id_] for id_ in endpoint_ids],
            endpoint_ids,
            [id_ in succeeded_ids for id_ in endpoint_ids],
            [id_ in gone_ids for id_ in endpoint_ids],
            DISABLE_AFTER,
            clock_offset,
        )
        reasons = dict.fromkeys(failing_ids, _FAILING_REASON) | dict.fromkeys(gone_ids, _GONE_REASON)
        endpoints = [await endpoint_store.select_for_update(tx, plan_manager_ids[id_], id_) for id_ in sorted(reasons)]
        await delivery_queue.save_attempts(tx, updates, clock_offset)
        for endpoint in endpoints:
            if endpoint and endpoint.active:
                await _disable(
                    WriteContext(tx, plan_manager_ids[endpoint.id], settings, SYSTEM), endpoint, reasons[endpoint.id]
                )


async def _disable(ctx: WriteContext, endpoint: WebhookEndpointRow, reason: str) -> None:
    """Disable an endpoint, cancel its pending deliveries, record an event and notify the owners."""
    disabled = msgspec.structs.replace(endpoint, active=False, disabled_reason=reason)
    await endpoint_store.upsert(ctx.tx, ctx.plan_manager_id, disabled)
    await delivery_queue.cancel_pending(ctx.tx, ctx.plan_manager_id, endpoint.id)
    await record_event(ctx, "webhook_endpoint.disabled", without_secrets(endpoint), without_secrets(disabled))
    if ctx.settings.smtp_server:
        mail = WebhookDisabledMail(ctx.plan_manager_id, endpoint.id, endpoint.url, reason)
        await mail_store.insert_for_owners(ctx.tx, mail, datetime.now(UTC))
