"""Sends what is due. Any number of workers on any number of machines share the work through the database."""

import asyncio
import logging
import random
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.database.client import Database, unavailable
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue, payload
from plankeeper.webhooks.attempts import settle
from plankeeper.webhooks.client import Outcome, Sender
from plankeeper.webhooks.cpu_backoff import Manners
from plankeeper.webhooks.figures import ATTEMPTS
from plankeeper.webhooks.policy import GONE, next_wait
from plankeeper.webhooks.schemas import Attempt, Claim, Settlement

log = logging.getLogger("plankeeper")

PERIOD = 0.05  # seconds between two looks when nothing was due
SOON = 0.005  # seconds between two looks when places became free
GATHERED = 0.02  # seconds for which what came of attempts is gathered
PER_ENDPOINT = 8  # attempts at a time to one endpoint: a slow one delays nobody else's
AT_ONCE = 400  # attempts at a time in all
DRAIN = 10.0  # seconds


class Worker:
    """Claims deliveries, sends them, and writes down what came of them. `skew` moves its clock, in tests; with
    `manners` it steps back where others need the processor.
    """

    def __init__(
        self, db: Database, sender: Sender, settings: Settings, skew: timedelta = timedelta(),
        manners: Manners | None = None,
    ) -> None:  # fmt: skip
        self._manners = manners
        self._db = db
        self._sender = sender
        self._settings = settings
        self._skew = skew
        self._sending: Counter[UUID] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._settlements: list[Settlement] = []
        self._freed = asyncio.Event()
        self._is_drained = False
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Until `stopping` is set; what is being sent then is finished, for up to DRAIN seconds. The database may come
        and go.
        """
        settling = asyncio.create_task(self._keep_settling())
        while not self.stopping.is_set():
            try:
                self._freed.clear()
                if not await self.look():
                    await self._pause()
                elif self._manners:
                    await asyncio.sleep(self._manners.rest())
            except Exception as error:
                if not unavailable(error):
                    log.exception("deliveries cannot be claimed")
                await asyncio.sleep(1)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN)  # what is left comes up again when its lease runs out
        self._is_drained = True
        await settling  # not cancelled: what is being written down would be lost
        await self.write_down()

    async def look(self) -> int:
        """Claim what is due and there is room for, and begin to send it: how many."""
        room = AT_ONCE - len(self._tasks)
        if room <= 0:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            return 1
        claimed = await delivery_queue.claim(self._db, self._sending, PER_ENDPOINT, room, self._skew)
        for claim in await delivery_queue.claims(self._db, claimed, self._skew) if claimed else []:
            self._sending[claim.webhook_endpoint_id] += 1
            task = asyncio.create_task(self._deliver(claim))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(claimed)

    async def write_down(self) -> None:
        """Settle what has been sent. What cannot be written in time is sent again: its lease runs out."""
        settlements, self._settlements = self._settlements, []
        if not settlements:
            return
        try:
            await settle(self._db, self._settings, settlements, self._skew)
        except Exception as error:
            if unavailable(error):
                self._settlements = settlements + self._settlements
            else:
                log.exception("what came of deliveries cannot be written down")

    async def _pause(self) -> None:
        """Until it is time to look again; where there is a place again, that is soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PERIOD):
                await self._freed.wait()
                await asyncio.sleep(SOON)

    async def _keep_settling(self) -> None:
        while not self._is_drained:
            await asyncio.sleep(GATHERED)
            await self.write_down()

    async def _deliver(self, claim: Claim) -> None:
        try:
            body = body_of(claim)
            secrets = [each for each in (claim.secret, claim.old_secret) if each]
            now = int(time.time() + self._skew.total_seconds())
            headers = payload.headers_of(str(claim.event_id), now, body, secrets)
            outcome = await self._sender.post(claim.url, headers, body)
            ATTEMPTS.labels("succeeded" if outcome.succeeded else "failed").inc()
            self._settlements.append(settlement_of(claim, outcome, datetime.now(UTC) + self._skew))
        except Exception:
            log.exception("a delivery failed")  # its lease runs out in a minute, and it is tried again
        finally:
            self._freed.set()
            self._sending[claim.webhook_endpoint_id] -= 1
            if not self._sending[claim.webhook_endpoint_id]:
                del self._sending[claim.webhook_endpoint_id]


def body_of(claim: Claim) -> bytes:
    """The same bytes on every attempt, as long as the endpoint asks for the same."""
    return payload.body_of(
        claim.event_type, claim.event_created_at, claim.plan_manager_id, claim.resource_kind, claim.resource_id,
        claim.payload, claim.data,
    )  # fmt: skip


def settlement_of(claim: Claim, outcome: Outcome, now: datetime) -> Settlement:
    attempt = Attempt(now, outcome.status, outcome.error, outcome.milliseconds)
    if outcome.succeeded:
        return Settlement(claim, "succeeded", attempt, None)
    wait = next_wait(claim.made + 1, random.random(), outcome.retry_after)  # noqa: S311 - jitter
    if wait is None or outcome.status == GONE:
        return Settlement(claim, "failed", attempt, None)
    return Settlement(claim, "pending", attempt, wait)
