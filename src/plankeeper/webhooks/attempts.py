"""What came of attempts is written down, and an endpoint that cannot be reached for good is disabled."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from plankeeper.database.client import Database
from plankeeper.events.recorder import record
from plankeeper.http.context import SYSTEM, Write
from plankeeper.http.schemas import json_text
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue, endpoint_store
from plankeeper.webhooks.policy import DISABLED_AFTER, GONE
from plankeeper.webhooks.schemas import Settlement, WebhookEndpointRecord, shown

_GONE = "it answered 410 Gone"
_DEAD = f"it has only failed for {DISABLED_AFTER.days} days"


async def settle(db: Database, settings: Settings, settlements: Sequence[Settlement], skew: timedelta) -> None:
    """Write down many attempts in one transaction."""
    owners: dict[UUID, UUID] = {each.claim.webhook_endpoint_id: each.claim.plan_manager_id for each in settlements}
    good = {each.claim.webhook_endpoint_id for each in settlements if each.status == "succeeded"}
    gone = {each.claim.webhook_endpoint_id for each in settlements if each.attempt.status_code == GONE}
    ids = list(owners)
    async with db.transaction() as tx:
        # Endpoints are locked before their deliveries, here as in every request.
        dead = await delivery_queue.note(
            tx, [owners[each] for each in ids], ids, [each in good for each in ids], [each in gone for each in ids],
            DISABLED_AFTER, skew,
        )  # fmt: skip
        ended = dict.fromkeys(dead, _DEAD) | dict.fromkeys(gone, _GONE)
        locked = [await endpoint_store.record_for_update(tx, owners[each], each) for each in sorted(ended)]
        await delivery_queue.settle(tx, settlements, skew)
        for kept in locked:
            if kept and kept.active:
                await _disable(Write(tx, owners[kept.id], settings, SYSTEM), kept, ended[kept.id])


async def _disable(call: Write, kept: WebhookEndpointRecord, reason: str) -> None:
    """Stop sending to an endpoint, and tell of it by an event."""
    stopped = msgspec.structs.replace(kept, active=False, disabled_reason=reason)
    await endpoint_store.put(call.tx, call.plan_manager_id, json_text([stopped]))
    await delivery_queue.cancel(call.tx, call.plan_manager_id, kept.id)
    await record(call, "webhook_endpoint.disabled", shown(kept), shown(stopped))
