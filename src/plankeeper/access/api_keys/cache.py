"""Authenticates API keys from memory. The cache is revalidated every half second."""

import asyncio
import logging
import time
from collections import OrderedDict
from datetime import UTC, datetime
from uuid import UUID

from plankeeper.access.api_keys import store
from plankeeper.access.api_keys.format import is_well_formed
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import Actor, Principal
from plankeeper.core.errors import DomainError, RejectedKeyError
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable

log = logging.getLogger("plankeeper")

POLL_INTERVAL = 0.5  # seconds between two queries of the version
CACHE_TTL = 1.0  # seconds for which a version is trusted, from the start of its query
REPORT_INTERVAL = 20.0  # seconds between two updates of `last_used_at`
CAPACITY = 10_000  # keys in a worker's cache


class ApiKeyCache:
    """One worker's cache of keys. Entries that weren't revalidated within the last second are discarded."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._entries: OrderedDict[str, tuple[ApiKey, Principal]] = OrderedDict()
        self._version: int | None = None
        self._confirmed_at = float("-inf")
        self._generation = 0
        self._reported_at = time.monotonic()
        self._last_used: dict[UUID, float] = {}  # seconds since 1970, of keys used since the last report

    async def authenticate(self, key: str) -> Principal:
        """The principal of a key. Raises a DomainError with status 401."""
        if time.monotonic() - self._confirmed_at > CACHE_TTL:
            self._clear()
        entry = self._entries.get(key)
        if entry is None:
            if not is_well_formed(key):
                raise DomainError("invalid_api_key")
            entry = await self._load(key)
        api_key, principal = entry
        if api_key.expires_at is not None and api_key.expires_at <= datetime.now(UTC):
            raise RejectedKeyError("expired_api_key", api_key.id, "expired_api_key")
        self._last_used[api_key.id] = time.time()
        return principal

    async def watch(self) -> None:
        """Poll the version of keys and plan managers until cancelled, and clear the cache whenever it changes."""
        while True:
            try:
                # Outside the pool: a busy pool must not expire the cache.
                async with self._db.dedicated_connection() as connection:
                    while True:
                        await self._revalidate(connection)
                        await self._report_usage(connection)
                        await asyncio.sleep(POLL_INTERVAL)
            except Exception as error:
                self._clear()
                if not is_unavailable(error):
                    log.exception("cannot read the version of the API keys")
            await asyncio.sleep(POLL_INTERVAL)

    async def _revalidate(self, connection: Executor) -> None:
        started_at = time.monotonic()
        # After CACHE_TTL the cache has expired, so a late result is useless. (Not `wait_for`: in Python 3.11 it can
        # swallow the cancellation that ends `watch`, and the server would never stop.)
        async with asyncio.timeout(CACHE_TTL):
            version = await store.get_version(connection)
        if version != self._version:
            self._clear()
            self._version = version
        self._confirmed_at = started_at

    async def _report_usage(self, connection: Executor) -> None:
        """Update `last_used_at` a few times a minute."""
        if time.monotonic() - self._reported_at < REPORT_INTERVAL:
            return
        self._reported_at = time.monotonic()
        last_used, self._last_used = self._last_used, {}
        if last_used:
            used_at = [datetime.fromtimestamp(timestamp, UTC) for timestamp in last_used.values()]
            await store.record_usage(connection, list(last_used), used_at)

    async def _load(self, key: str) -> tuple[ApiKey, Principal]:
        generation = self._generation
        api_key = await store.get_by_hash(self._db, hash_token(key))
        if api_key is None:
            raise DomainError("invalid_api_key")
        if api_key.revoked_at is not None:
            raise RejectedKeyError("invalid_api_key", api_key.id, "revoked_api_key")
        entry = api_key, _principal(api_key)
        # If the cache was cleared during the query, the row may be older than the change.
        if generation == self._generation:
            self._entries[key] = entry
            if len(self._entries) > CAPACITY:
                self._entries.popitem(last=False)
        return entry

    def _clear(self) -> None:
        self._entries.clear()
        self._generation += 1


def _principal(key: ApiKey) -> Principal:
    return Principal(
        actor=Actor("api_key", str(key.id), key.name),
        plan_managers={str(plan_manager_id).encode(): plan_manager_id for plan_manager_id in key.plan_managers},
        scopes=frozenset(key.scopes),
        original_key_id=key.original_id,
        rate_limit=key.rate_limit,
        subject=f"key:{key.id}",
    )
