"""The webhook worker: claims due deliveries and sends them. Any number of workers share the work."""

import asyncio
import logging
import random
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from plankeeper.core.encryption.cipher import SecretCipher, secret_cipher
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.core.metrics import WEBHOOK_ATTEMPTS
from plankeeper.core.settings import Settings
from plankeeper.database import citus
from plankeeper.database.citus import Nodes, statement_groups
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.webhooks import delivery_queue, messages
from plankeeper.webhooks.attempts import AttemptCountBuffer, record_attempts
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from plankeeper.webhooks.retry_policy import HTTP_GONE, retry_delay
from plankeeper.webhooks.schemas import Attempt, DeliveryJob, DeliveryUpdate, build_detail


class AttemptSpan(Protocol):
    """The span of an attempt: the headers that continue its trace, and its result."""

    headers: Mapping[str, str]

    def set_result(self, status_code: int | None, error: str | None) -> None: ...


class Traces(Protocol):
    """Makes the spans of attempts."""

    def attempt(
        self, plan_manager_id: UUID, request_id: str | None, url: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[AttemptSpan]: ...


log = logging.getLogger("plankeeper")

POLL_INTERVAL = 0.05  # seconds between two polls when no delivery is due
MIN_POLL_INTERVAL = 0.005  # seconds between two polls after attempts have finished
FLUSH_INTERVAL = 0.02  # seconds between two writes of results
MAX_PER_ENDPOINT = 8  # concurrent attempts to one endpoint: a slow endpoint does not delay the others
MAX_IN_FLIGHT = 400  # concurrent attempts in all
MISSING_KEY_INTERVAL = 60.0  # seconds until a worker tries an endpoint again whose key it lacks, and logs it again
FLUSH_TIMEOUT = 2.0  # seconds that a stopping worker tries to write its last results
DRAIN_TIMEOUT = 10.0  # seconds that a stopping worker waits for attempts in flight


class Worker:
    """Claims deliveries, sends them and saves the results.

    `clock_offset` shifts the clock in tests. With `traces`, each attempt has a span.
    """

    def __init__(
        self,
        db: Database,
        client: WebhookClient,
        settings: Settings,
        clock_offset: timedelta = timedelta(),
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._db = db
        self._nodes = Nodes()
        self._client = client
        self._settings = settings
        self._cipher = secret_cipher(settings)
        self._missing_key_logged_at = -MISSING_KEY_INTERVAL
        self._missing_key_at: dict[UUID, float] = {}  # by endpoint
        self._clock_offset = clock_offset
        self._in_flight: Counter[UUID] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._updates: list[DeliveryUpdate] = []
        self._counts = AttemptCountBuffer(db)
        self._slot_freed = asyncio.Event()
        self._is_drained = False
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until `stopping` is set, then finish the attempts in flight for up to DRAIN_TIMEOUT seconds.

        Retries while the database is unavailable.
        """
        flush_task = asyncio.create_task(self._flush_periodically())
        count_task = asyncio.create_task(self._counts.watch())
        while not self.stopping.is_set():
            try:
                self._slot_freed.clear()
                if not await self.poll():
                    await self._wait_for_work()
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("cannot claim webhook deliveries")
                await asyncio.sleep(1)
        if self._tasks:
            # Other workers take over unfinished deliveries when their leases expire.
            await asyncio.wait(self._tasks, timeout=DRAIN_TIMEOUT)
        self._is_drained = True
        await flush_task  # not cancelled: that would lose the results of a write in progress
        await self._flush_remaining()
        count_task.cancel()
        await asyncio.gather(count_task, return_exceptions=True)
        await self._counts.close()

    async def poll(self) -> int:
        """Claim due deliveries up to the free capacity, start to send them and return their number."""
        capacity = MAX_IN_FLIGHT - len(self._tasks)
        if capacity <= 0:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            return 1
        if not self._db.stats.open:
            await citus.is_citus(self._db)  # a connection finds out whether the statements below are those for Citus
        due = await delivery_queue.list_due(
            self._db, self._nodes, self._busy_endpoints(), MAX_PER_ENDPOINT, self._clock_offset
        )
        random.shuffle(due)  # so that none is always the last one, for which no capacity is left
        started = 0
        for plan_manager_ids in statement_groups(self._db, due):
            if started < capacity:
                started += await self._claim(plan_manager_ids, capacity - started)
        return started

    async def flush(self) -> None:
        """Save the results of attempts. A delivery without a saved result is sent again when its lease expires."""
        updates, self._updates = self._updates, []
        by_plan_manager: defaultdict[UUID, list[DeliveryUpdate]] = defaultdict(list)
        for each in updates:
            by_plan_manager[each.job.plan_manager_id].append(each)
        for plan_manager_ids in statement_groups(self._db, by_plan_manager):
            group = [update for id_ in plan_manager_ids for update in by_plan_manager[id_]]
            try:
                await record_attempts(self._db, self._settings, group, self._clock_offset)
            except Exception as error:
                if is_unavailable(error):
                    self._updates += group
                else:
                    log.exception("cannot save the results of webhook deliveries")

    async def _flush_remaining(self) -> None:
        """Save the last results. Tries again for up to FLUSH_TIMEOUT seconds while the database is unavailable."""
        deadline = time.monotonic() + FLUSH_TIMEOUT
        await self.flush()
        while self._updates and time.monotonic() < deadline:
            await asyncio.sleep(FLUSH_INTERVAL)
            await self.flush()
        if self._updates:
            log.warning("the last results of webhook deliveries are lost: the database is unavailable")

    async def _claim(self, plan_manager_ids: list[UUID], limit: int) -> int:
        """Claim deliveries of plan managers, start to send them and return their number."""
        jobs = await delivery_queue.claim_due(
            self._db, plan_manager_ids, self._busy_endpoints(), MAX_PER_ENDPOINT, limit, self._clock_offset
        )
        for job in jobs:
            self._in_flight[job.webhook_endpoint_id] += 1
            task = asyncio.create_task(self._send_webhook(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(jobs)

    async def _wait_for_work(self) -> None:
        """Wait for the next poll, which comes early if an attempt finishes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL):
                await self._slot_freed.wait()
                await asyncio.sleep(MIN_POLL_INTERVAL)

    async def _flush_periodically(self) -> None:
        while not self._is_drained:
            await asyncio.sleep(FLUSH_INTERVAL)
            await self.flush()

    async def _send_webhook(self, job: DeliveryJob) -> None:
        """Send a delivery once, and note the result for the next write."""
        try:
            result = await (self._attempt_in_span(job, self._traces) if self._traces else self._attempt(job))
            WEBHOOK_ATTEMPTS.labels("succeeded" if result.succeeded else "failed").inc()
            now = datetime.now(UTC) + self._clock_offset
            self._updates.append(build_delivery_update(job, result, now))
            self._counts.add(job.plan_manager_id, job.webhook_endpoint_id, now, succeeded=result.succeeded)
        # In both cases, the delivery is sent again when its lease of a minute expires.
        except SecretKeyMissingError as error:
            self._leave_to_other_workers(job.webhook_endpoint_id, error)
        except Exception:
            log.exception("a webhook delivery failed")
        finally:
            self._slot_freed.set()
            self._in_flight[job.webhook_endpoint_id] -= 1
            if not self._in_flight[job.webhook_endpoint_id]:
                del self._in_flight[job.webhook_endpoint_id]

    async def _attempt(self, job: DeliveryJob, trace_headers: Mapping[str, str] | None = None) -> AttemptResult:
        # The same bytes for every attempt, unless the endpoint changes its payload format.
        body = messages.build_body(job.event, job.plan_manager_id, job.payload, job.sent_type)
        timestamp = int(time.time() + self._clock_offset.total_seconds())
        headers = messages.build_headers(str(job.event.id), timestamp, body, decrypt_secrets(job, self._cipher))
        if trace_headers:
            headers += trace_headers.items()
        result = await self._client.post(job.url, headers, body, job.plan_manager_id)
        return result._replace(request_headers=tuple(headers))

    async def _attempt_in_span(self, job: DeliveryJob, traces: Traces) -> AttemptResult:
        attributes = {
            "plankeeper.webhook_endpoint_id": str(job.webhook_endpoint_id),
            "plankeeper.event_id": str(job.event.id),
            "plankeeper.event_type": job.sent_type,
            "plankeeper.attempt": job.attempt_count + 1,
        }
        with traces.attempt(job.plan_manager_id, job.event.request_id, job.url, attributes) as span:
            result = await self._attempt(job, span.headers)
            span.set_result(result.status_code, result.error)
            return result

    def _leave_to_other_workers(self, endpoint_id: UUID, error: SecretKeyMissingError) -> None:
        """Claim no deliveries of an endpoint for some time: another worker may have the key."""
        now = time.monotonic()
        self._missing_key_at[endpoint_id] = now
        if now - self._missing_key_logged_at >= MISSING_KEY_INTERVAL:
            self._missing_key_logged_at = now
            log.error("webhook deliveries wait for a secret key", extra={"reason": error.detail})

    def _busy_endpoints(self) -> dict[UUID, int]:
        """The number of attempts in flight by endpoint. Endpoints whose key is missing count as fully busy."""
        since = time.monotonic() - MISSING_KEY_INTERVAL
        self._missing_key_at = {id_: at for id_, at in self._missing_key_at.items() if at > since}
        return {**self._in_flight, **dict.fromkeys(self._missing_key_at, MAX_PER_ENDPOINT)}


def decrypt_secrets(job: DeliveryJob, cipher: SecretCipher) -> list[str]:
    """The secrets that sign a delivery. Raises SecretKeyMissingError if the current one can't be decrypted.

    An old secret whose key is missing is left out, because rotating the secret must help if a key is lost.
    """
    associated_data = job.webhook_endpoint_id.bytes
    secrets = [cipher.decrypt(job.secret, associated_data)]
    if job.old_secret:
        with suppress(SecretKeyMissingError):
            secrets.append(cipher.decrypt(job.old_secret, associated_data))
    return secrets


def build_delivery_update(job: DeliveryJob, result: AttemptResult, now: datetime) -> DeliveryUpdate:
    attempt = Attempt(now, result.status_code, result.error, result.duration_ms)
    number, headers = job.attempt_count + 1, result.request_headers
    detail = build_detail(number, headers, result.status_code, result.response_body)
    if result.succeeded:
        return DeliveryUpdate(job, "succeeded", attempt, detail, None)
    delay = retry_delay(number, random.random(), result.retry_after)  # noqa: S311 - jitter
    if delay is None or result.status_code == HTTP_GONE:
        return DeliveryUpdate(job, "failed", attempt, detail, None)
    return DeliveryUpdate(job, "pending", attempt, detail, delay)
