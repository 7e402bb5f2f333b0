"""Sends what is due. Any number of workers on any number of machines share the work through the database."""

import asyncio
import logging
import random
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.database.client import Database, is_unavailable
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue, payload
from plankeeper.webhooks.attempts import record_attempts
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from plankeeper.webhooks.cpu_backoff import CpuBackoff
from plankeeper.webhooks.figures import ATTEMPTS
from plankeeper.webhooks.policy import HTTP_GONE, retry_delay
from plankeeper.webhooks.schemas import Attempt, DeliveryJob, DeliveryUpdate

log = logging.getLogger("plankeeper")

POLL_INTERVAL = 0.05  # seconds between two looks when nothing was due
MIN_POLL_INTERVAL = 0.005  # seconds between two looks when places became free
FLUSH_INTERVAL = 0.02  # seconds for which what came of attempts is gathered
MAX_PER_ENDPOINT = 8  # attempts at a time to one endpoint: a slow one delays nobody else's
MAX_IN_FLIGHT = 400  # attempts at a time in all
DRAIN_TIMEOUT = 10.0  # seconds


class Worker:
    """Claims deliveries, sends them, and writes down what came of them. `clock_offset` moves its clock, in tests; with
    `cpu_backoff` it steps back where others need the processor.
    """

    def __init__(
        self,
        db: Database,
        client: WebhookClient,
        settings: Settings,
        clock_offset: timedelta = timedelta(),
        cpu_backoff: CpuBackoff | None = None,
    ) -> None:
        self._cpu_backoff = cpu_backoff
        self._db = db
        self._client = client
        self._settings = settings
        self._clock_offset = clock_offset
        self._in_flight: Counter[UUID] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._updates: list[DeliveryUpdate] = []
        self._slot_freed = asyncio.Event()
        self._is_drained = False
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Until `stopping` is set; what is being sent then is finished, for up to DRAIN_TIMEOUT. The database may come
        and go.
        """
        flush_task = asyncio.create_task(self._flush_periodically())
        while not self.stopping.is_set():
            try:
                self._slot_freed.clear()
                if not await self.poll():
                    await self._wait_for_work()
                elif self._cpu_backoff:
                    await asyncio.sleep(self._cpu_backoff.delay())
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("deliveries cannot be claimed")
                await asyncio.sleep(1)
        if self._tasks:
            await asyncio.wait(
                self._tasks, timeout=DRAIN_TIMEOUT
            )  # what is left comes up again when its lease runs out
        self._is_drained = True
        await flush_task  # not cancelled: what is being written down would be lost
        await self.flush()

    async def poll(self) -> int:
        """Claim what is due and there is room for, and begin to send it: how many."""
        capacity = MAX_IN_FLIGHT - len(self._tasks)
        if capacity <= 0:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            return 1
        keys = await delivery_queue.claim_due(self._db, self._in_flight, MAX_PER_ENDPOINT, capacity, self._clock_offset)
        for job in await delivery_queue.load_jobs(self._db, keys, self._clock_offset) if keys else []:
            self._in_flight[job.webhook_endpoint_id] += 1
            task = asyncio.create_task(self._deliver(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(keys)

    async def flush(self) -> None:
        """Settle what has been sent. What cannot be written in time is sent again: its lease runs out."""
        updates, self._updates = self._updates, []
        if not updates:
            return
        try:
            await record_attempts(self._db, self._settings, updates, self._clock_offset)
        except Exception as error:
            if is_unavailable(error):
                self._updates = updates + self._updates
            else:
                log.exception("what came of deliveries cannot be written down")

    async def _wait_for_work(self) -> None:
        """Until it is time to look again; where there is a place again, that is soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL):
                await self._slot_freed.wait()
                await asyncio.sleep(MIN_POLL_INTERVAL)

    async def _flush_periodically(self) -> None:
        while not self._is_drained:
            await asyncio.sleep(FLUSH_INTERVAL)
            await self.flush()

    async def _deliver(self, job: DeliveryJob) -> None:
        try:
            body = build_job_body(job)
            secrets = [each for each in (job.secret, job.old_secret) if each]
            timestamp = int(time.time() + self._clock_offset.total_seconds())
            headers = payload.build_headers(str(job.event_id), timestamp, body, secrets)
            result = await self._client.post(job.url, headers, body)
            ATTEMPTS.labels("succeeded" if result.succeeded else "failed").inc()
            self._updates.append(build_delivery_update(job, result, datetime.now(UTC) + self._clock_offset))
        except Exception:
            log.exception("a delivery failed")  # its lease runs out in a minute, and it is tried again
        finally:
            self._slot_freed.set()
            self._in_flight[job.webhook_endpoint_id] -= 1
            if not self._in_flight[job.webhook_endpoint_id]:
                del self._in_flight[job.webhook_endpoint_id]


def build_job_body(job: DeliveryJob) -> bytes:
    """The same bytes on every attempt, as long as the endpoint asks for the same."""
    return payload.build_body(
        job.event_type,
        job.event_created_at,
        job.plan_manager_id,
        job.resource_kind,
        job.resource_id,
        job.payload,
        job.data,
    )


def build_delivery_update(job: DeliveryJob, result: AttemptResult, now: datetime) -> DeliveryUpdate:
    attempt = Attempt(now, result.status_code, result.error, result.duration_ms)
    if result.succeeded:
        return DeliveryUpdate(job, "succeeded", attempt, None)
    delay = retry_delay(job.attempt_count + 1, random.random(), result.retry_after)  # noqa: S311 - jitter
    if delay is None or result.status_code == HTTP_GONE:
        return DeliveryUpdate(job, "failed", attempt, None)
    return DeliveryUpdate(job, "pending", attempt, delay)
