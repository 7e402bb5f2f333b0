"""A minimal Python server: Plankeeper's statements over asyncpg, without authentication or validation."""

import os
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec
from uuid_utils.compat import uuid7

from benchmarks.data import BASIC, COLUMNS, TENANT
from benchmarks.scenarios import CURSOR, GET
from benchmarks.statements import INSERT_EVENT, INSERT_PARTICIPANT, Statement, statement

_GET, _LIST = (statement(each) for each in (GET, CURSOR))
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
    """`/participants/<id>` and `/participants?limit=<n>&after=<id>`.

    `POST /participants` inserts a row and its event in one transaction.
    """

    def __init__(self) -> None:
        self._pool: Any = None
        self._structs = StructCache()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        query = scope["query_string"].decode()
        if scope["method"] == "POST":
            body = await self._create((await receive())["body"])
        elif query.startswith("limit="):
            limit, after = (part.partition("=")[2] for part in query.split("&"))
            body = await self._list(int(limit), after)
        else:
            body = await self._get(_GET, scope["path"].rpartition("/")[2])
        await send(_OK | {"headers": [*_OK["headers"], (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    async def _get(self, get: Statement, id_: str) -> bytes:
        record = await self._pool.fetchrow(get.text, *get.bind(id_))
        return _encoder.encode(record and self._structs.get(record)(*record))

    async def _list(self, limit: int, after: str) -> bytes:
        records = await self._pool.fetch(_LIST.text, *_LIST.bind(after, limit))
        struct = self._structs.get(records[0]) if records else None
        return _encoder.encode([struct(*record) for record in records[:limit]] if struct else [])

    async def _create(self, body: bytes) -> bytes:
        row = msgspec.json.decode(body)
        participant_id, now = uuid7(), datetime.now(UTC)
        created = _encoder.encode({name: row.get(name) for name in COLUMNS} | {"id": participant_id})
        values = [row.get(name) for name in BASIC[1:]]
        event = [TENANT, uuid7(), now, str(participant_id), created.decode()]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(INSERT_PARTICIPANT, TENANT, participant_id, *values, now)
            await connection.execute(INSERT_EVENT, *event)
        return created

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        dsn = os.environ["DATABASE_URL"]
        self._pool = await asyncpg.create_pool(dsn, min_size=0, max_size=10, reset=_no_reset, server_settings=_SESSION)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._pool.terminate()
        await send({"type": "lifespan.shutdown.complete"})


app = App()
