"""Save the results of attempts, and disable endpoints that fail permanently."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.database.errors import is_unavailable
from plankeeper.database.row_mapping import value_lists
from plankeeper.database.write_buffer import WriteBuffer
from plankeeper.events.recorder import record_event
from plankeeper.mail import store as mail_store
from plankeeper.webhooks import delivery_queue, endpoint_store
from plankeeper.webhooks.mails import WebhookDisabledMail
from plankeeper.webhooks.retry_policy import DISABLE_AFTER, HTTP_GONE
from plankeeper.webhooks.schemas import AttemptHour, DeliveryUpdate, WebhookEndpointRow, without_secrets

ADD = """
    insert into webhook_attempt_hours (plan_manager_id, webhook_endpoint_id, hour, succeeded, failed)
    select plan_manager_id, webhook_endpoint_id, hour, succeeded, failed
    from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::integer[], $5::integer[])
        as added (plan_manager_id, webhook_endpoint_id, hour, succeeded, failed)
    on conflict (plan_manager_id, webhook_endpoint_id, hour) do update set
        succeeded = webhook_attempt_hours.succeeded + excluded.succeeded,
        failed = webhook_attempt_hours.failed + excluded.failed
"""


async def add(tx: Transaction, counts: Sequence[AttemptHour]) -> None:
    """Add counts to those that are stored. They are in order of the primary key, so that workers can't deadlock."""
    await tx.execute(ADD, *value_lists(AttemptHour, counts))


LIST_SINCE = """
    select plan_manager_id, webhook_endpoint_id, hour, succeeded, failed
    from webhook_attempt_hours
    where plan_manager_id = $1 and ($2::uuid is null or webhook_endpoint_id = $2) and hour >= $3
    order by webhook_endpoint_id, hour
"""


async def list_since(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID | None, since: datetime
) -> list[AttemptHour]:
    """The counts of one endpoint or of all endpoints since a time."""
    return await db.rows(AttemptHour, LIST_SINCE, plan_manager_id, endpoint_id, since)


PURGE = "delete from webhook_attempt_hours where hour < statement_timestamp() - interval '25 hours'"


async def purge(db: Executor) -> None:
    """Delete the counts of all plan managers that are too old to be shown on a page."""
    await db.execute(PURGE)


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
        succeeded, gone = ([id_ in chosen for id_ in endpoint_ids] for chosen in (succeeded_ids, gone_ids))
        owners = [plan_manager_ids[id_] for id_ in endpoint_ids]
        failing_ids = await delivery_queue.update_endpoint_health(
            tx, owners, endpoint_ids, succeeded, gone, DISABLE_AFTER, clock_offset
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


log = logging.getLogger("plankeeper")


class AttemptCountBuffer(WriteBuffer):
    """The buffer of one webhook worker."""

    contents = "counts of webhook attempts"

    def __init__(self, db: Database) -> None:
        self._db = db
        self._counts: defaultdict[tuple[UUID, UUID, datetime], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, plan_manager_id: UUID, endpoint_id: UUID, at: datetime, *, succeeded: bool) -> None:
        hour = at.replace(minute=0, second=0, microsecond=0)
        self._counts[plan_manager_id, endpoint_id, hour][0 if succeeded else 1] += 1

    async def flush(self) -> None:
        counts = sorted(self._counts.items())
        self._counts.clear()
        if not counts:
            return
        try:
            async with self._db.transaction() as tx:
                await add(tx, [AttemptHour(*key, *values) for key, values in counts])
        except Exception as error:
            if not is_unavailable(error):
                log.exception("cannot save the counts of webhook attempts")
                return
            for key, (succeeded, failed) in counts:
                self._counts[key][0] += succeeded
                self._counts[key][1] += failed
