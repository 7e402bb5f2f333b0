"""A minimal Python server: Plankeeper's statements over asyncpg, without authentication or validation."""

import os
from typing import Any

import asyncpg
import msgspec

from benchmarks.statements import get_statement, list_statement

_GET, _LIST = get_statement(), list_statement()
# The session settings of Plankeeper.
_SESSION = {"jit": "off", "random_page_cost": "1.1", "timezone": "UTC", "plan_cache_mode": "force_generic_plan"}
_encoder = msgspec.json.Encoder()
_OK: dict[str, Any] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json")],
}


async def _no_reset(_connection: object) -> None:
    """Skip the reset: no statement changes the state of a connection."""


class StructCache:
    """Struct types by number of columns, defined on first use."""

    def __init__(self) -> None:
        self._structs: dict[int, type[msgspec.Struct]] = {}

    def get(self, record: asyncpg.Record) -> type[msgspec.Struct]:
        struct = self._structs.get(len(record))
        if struct is None:
            columns: list[str] = list(record.keys())
            struct = self._structs[len(record)] = msgspec.defstruct("Row", [(name, Any) for name in columns])
        return struct


class App:
    """`/participants/<id>`, `/participants?limit=<n>&after=<id>`."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._structs = StructCache()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["query_string"]:
            limit, after = (part.partition("=")[2] for part in scope["query_string"].decode().split("&"))
            body = await self._list(int(limit), after)
        else:
            body = await self._get(scope["path"].rpartition("/")[2])
        await send(_OK | {"headers": [*_OK["headers"], (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    async def _get(self, id_: str) -> bytes:
        record = await self._pool.fetchrow(_GET.text, *_GET.bind(id_))
        return _encoder.encode(record and self._structs.get(record)(*record))

    async def _list(self, limit: int, after: str) -> bytes:
        records = await self._pool.fetch(_LIST.text, *_LIST.bind(after, limit))
        struct = self._structs.get(records[0]) if records else None
        return _encoder.encode([struct(*record) for record in records[:limit]] if struct else [])

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        dsn = os.environ["DATABASE_URL"]
        self._pool = await asyncpg.create_pool(dsn, min_size=0, max_size=10, reset=_no_reset, server_settings=_SESSION)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._pool.terminate()
        await send({"type": "lifespan.shutdown.complete"})


app = App()
