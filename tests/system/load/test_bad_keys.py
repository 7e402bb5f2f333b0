"""Many invalid keys: the server stores nothing about them."""

import asyncio
from types import SimpleNamespace
from typing import Any

from plankeeper.access.api_keys.cache import ApiKeyCache
from plankeeper.access.api_keys.format import checksum
from plankeeper.core.errors import DomainError
from plankeeper.database.client import Database
from plankeeper.http.admission import Admission
from plankeeper.http.rate_limits.limiter import LeasedRateLimiter
from plankeeper.http.requests import RequestState
from support.cluster import SharedCluster


async def test_a_hundred_thousand_bad_keys_leave_nothing_behind(cluster: SharedCluster) -> None:
    """90,000 are rejected by their format alone, and 10,000 are looked up."""
    settings: Any = SimpleNamespace(rate_limit=600, auth_failure_rate_limit=10**6, max_concurrent_requests=200)
    scope: Any = {"type": "http", "client": ("127.1.0.4", 1)}
    operation: Any = SimpleNamespace(required_scopes=("read",), one_scope=False)
    async with Database(cluster.dsn, pool_size=8).open() as db:
        keyring, limiter = ApiKeyCache(db), LeasedRateLimiter(db)
        watching = asyncio.create_task(keyring.watch())
        admission = Admission(keyring.authenticate, limiter, settings)

        async def rejection(keys: list[str]) -> int:
            refusals = 0
            for key in keys:
                visit = RequestState({b"authorization": b"Bearer " + key.encode()}, b"id", 0.0)
                try:
                    await admission.admit(visit, scope, operation)
                except DomainError as refusal:
                    refusals += refusal.status == 401
            return refusals

        bodies = [f"plk_{number:032}" for number in range(10_000)]
        junk = [f"plk_{number:038}" for number in range(90_000)]
        each = [junk[part::8] + [body + checksum(body) for body in bodies[part::8]] for part in range(8)]
        assert sum(await asyncio.gather(*map(rejection, each))) == 100_000
        watching.cancel()
        held = [len(value) for value in vars(keyring).values() if hasattr(value, "__len__")]
        assert held == [0, 0]
        assert list(limiter._states) == ["address:127.1.0.4"]  # noqa: SLF001
