"""Recognises API keys without a query a request: what is known of a key is confirmed every half second."""

import asyncio
import logging
import time
from collections import OrderedDict
from datetime import UTC, datetime
from uuid import UUID

from plankeeper.api_keys import store
from plankeeper.api_keys.format import hash_of, well_formed
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.database.client import Database, Queries, unavailable
from plankeeper.http.auth import Grant, unauthorised
from plankeeper.http.context import Actor

log = logging.getLogger("plankeeper")

PERIOD = 0.5  # seconds between two questions for the version
TRUSTED_FOR = 1.0  # seconds for which an answer counts, from the moment of its question
REPORT_PERIOD = 20.0  # seconds between two reports of when keys were used
CAPACITY = 10_000  # keys remembered by a worker


class Keyring:
    """One worker's memory of keys. Nothing that was not confirmed within the last second is used."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: OrderedDict[str, tuple[ApiKey, Grant]] = OrderedDict()
        self._version: int | None = None
        self._confirmed = float("-inf")
        self._generation = 0
        self._reported = time.monotonic()
        self._used: dict[UUID, float] = {}  # seconds since 1970, of keys used since the last report

    async def authenticate(self, key: str) -> Grant:
        """The grant of a key; raises a Refusal with status 401."""
        if time.monotonic() - self._confirmed > TRUSTED_FOR:
            self._forget()
        known = self._known.get(key)
        if known is None:
            if not well_formed(key):
                raise unauthorised("invalid_api_key")
            known = await self._look_up(key)
        kept, grant = known
        if kept.expires_at is not None and kept.expires_at <= datetime.now(UTC):
            raise unauthorised("expired_api_key")
        self._used[kept.id] = time.time()
        return grant

    async def watch(self) -> None:
        """Until cancelled: ask for the version of keys and grants, and forget all of them when it has changed."""
        while True:
            try:
                # A connection of its own: a busy pool must not make known keys look unconfirmed.
                async with self._db.session() as session:
                    while True:
                        await self._confirm(session)
                        await self._report(session)
                        await asyncio.sleep(PERIOD)
            except Exception as error:
                self._forget()
                if not unavailable(error):
                    log.exception("the version of keys and grants cannot be read")
            await asyncio.sleep(PERIOD)

    async def _confirm(self, session: Queries) -> None:
        asked = time.monotonic()
        # Longer than the trust lasts it is not worth waiting: the cache is useless by then. (Not `wait_for`: in
        # Python 3.11 it can swallow the cancellation that ends the watch, and the server would never stop.)
        async with asyncio.timeout(TRUSTED_FOR):
            version = await store.version(session)
        if version != self._version:
            self._forget()
            self._version = version
        self._confirmed = asked

    async def _report(self, session: Queries) -> None:
        """Tell when keys were last used, a few times a minute."""
        if time.monotonic() - self._reported < REPORT_PERIOD:
            return
        self._reported = time.monotonic()
        used, self._used = self._used, {}
        if used:
            moments = [datetime.fromtimestamp(moment, UTC) for moment in used.values()]
            await store.used(session, list(used), moments)

    async def _look_up(self, key: str) -> tuple[ApiKey, Grant]:
        generation = self._generation
        kept = await store.by_hash(self._db, hash_of(key))
        if kept is None or kept.revoked_at is not None:
            raise unauthorised("invalid_api_key")
        found = kept, _grant(kept)
        # A change that was noticed meanwhile may be newer than what was read.
        if generation == self._generation:
            self._known[key] = found
            if len(self._known) > CAPACITY:
                self._known.popitem(last=False)
        return found

    def _forget(self) -> None:
        self._known.clear()
        self._generation += 1


def _grant(key: ApiKey) -> Grant:
    return Grant(
        actor=Actor("api_key", str(key.id), key.name),
        plan_managers={str(each).encode(): each for each in key.plan_managers},
        scopes=frozenset(key.scopes),
        original_key_id=key.original_id,
        rate_limit=key.rate_limit,
        subject=f"key:{key.id}",
    )
