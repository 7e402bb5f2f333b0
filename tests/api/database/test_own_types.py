"""What one connection learns about PostgreSQL's own types, others know; nothing is assumed about created types."""

import asyncio
from collections.abc import Sequence
from typing import Any

from plankeeper.database.connections import connect, connection_options
from support.cluster import SharedCluster

OWN = "select $1::uuid[] as ids, array[1, 2]::int8[] as numbers"


async def statements_of(dsn: str, text: str, *values: object) -> tuple[Any, Sequence[str]]:
    """The first row of a statement on a new connection, and the statements that asyncpg has sent for it."""
    sent: list[str] = []
    connection, _ = await connect(dsn, connection_options(30), None)
    try:
        connection.add_query_logger(lambda record: sent.append(record.query))
        row = await connection.fetchrow(text, *values)
        await asyncio.sleep(0)  # the logger is called soon
        return row, sent
    finally:
        connection.terminate()


async def test_a_connection_knows_the_types_that_another_has_asked_for(cluster: SharedCluster) -> None:
    await statements_of(cluster.dsn, OWN, [])
    row, sent = await statements_of(cluster.dsn, OWN, [])
    assert (row["ids"], row["numbers"]) == ([], [1, 2])
    assert sent == [OWN]


async def test_each_connection_asks_for_types_that_somebody_created(cluster: SharedCluster) -> None:
    statement = "select array[]::participants[] as empty"
    for _ in range(2):
        row, sent = await statements_of(cluster.dsn, statement)
        assert row["empty"] == []
        assert len(sent) > 1
