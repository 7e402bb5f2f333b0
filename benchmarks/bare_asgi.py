"""The least that a Python server can do: Plankeeper's statements over asyncpg, no authentication, no checks."""

import os
from typing import Any

import asyncpg
import msgspec

from benchmarks.statements import get_one, page

_GET, _PAGE = get_one(), page()
# As in Plankeeper's own sessions.
_SESSION = {"jit": "off", "random_page_cost": "1.1", "timezone": "UTC", "plan_cache_mode": "force_generic_plan"}
_encoder = msgspec.json.Encoder()
_OK: dict[str, Any] = {
    "type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]
}  # fmt: skip


async def _keep(_connection: object) -> None:
    """Nothing to reset: no statement leaves anything on a connection."""


class Shapes:
    """A struct for each set of columns, made when it is first seen."""

    def __init__(self) -> None:
        self._known: dict[int, type[msgspec.Struct]] = {}

    def of(self, record: asyncpg.Record) -> type[msgspec.Struct]:
        found = self._known.get(len(record))
        if found is None:
            columns: list[str] = list(record.keys())
            found = self._known[len(record)] = msgspec.defstruct("Row", [(name, Any) for name in columns])
        return found


class App:
    """`/participants/<id>`, `/participants?limit=<n>&after=<id>`."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._shapes = Shapes()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["query_string"]:
            limit, after = (part.partition("=")[2] for part in scope["query_string"].decode().split("&"))
            body = await self._list(int(limit), after)
        else:
            body = await self._get(scope["path"].rpartition("/")[2])
        await send(_OK | {"headers": [*_OK["headers"], (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    async def _get(self, id_: str) -> bytes:
        record = await self._pool.fetchrow(_GET.text, *_GET.filled(id_))
        return _encoder.encode(record and self._shapes.of(record)(*record))

    async def _list(self, limit: int, after: str) -> bytes:
        records = await self._pool.fetch(_PAGE.text, *_PAGE.filled(after, limit))
        make = self._shapes.of(records[0]) if records else None
        return _encoder.encode([make(*record) for record in records[:limit]] if make else [])

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        dsn = os.environ["DATABASE_URL"]
        self._pool = await asyncpg.create_pool(dsn, min_size=0, max_size=10, reset=_keep, server_settings=_SESSION)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._pool.terminate()
        await send({"type": "lifespan.shutdown.complete"})


app = App()
