"""Observed connections, the names of statements, and the log of slow ones."""

import asyncio
import logging
from collections.abc import Iterator
from uuid import UUID

import asyncpg
import pytest
from msgspec import Struct

from plankeeper.core import metrics
from plankeeper.database.client import Database
from plankeeper.database.connections import statement_name
from plankeeper.http.requests import RequestState
from plankeeper.resources.participants import queries
from plankeeper.server.monitoring import log_slow_statements
from support.cluster import SharedCluster

Observed = tuple[str, bool, str | None]  # name, whether it took time, class of the error


class Row(Struct):
    a: int


@pytest.fixture
def observed() -> list[Observed]:
    return []


@pytest.fixture
def db(cluster: SharedCluster, observed: list[Observed]) -> Iterator[Database]:
    def observe(statement: str, seconds: float, error: BaseException | None) -> None:
        observed.append((statement_name(statement), seconds > 0, type(error).__name__ if error else None))

    return Database(cluster.dsn, pool_size=1, on_statement=observe)


def test_every_statement_of_every_connection_is_reported_once(db: Database, observed: list[Observed]) -> None:
    async def work() -> None:
        async with db.open():
            assert await db.one(int, "select 41") == 41
            await db.rows(int, "select $1::int", 1)
            with pytest.raises(asyncpg.DivisionByZeroError):
                await db.execute("select 1 / $1::int", 0)
            async with db.transaction() as tx:
                await tx.execute("create temporary table copied (a int)")
                await tx.insert_rows("copied", Row, [Row(1), Row(2)])
            async with db.dedicated_connection() as connection:
                await connection.one(int, "select 2")

    asyncio.run(work())
    assert observed == [
        ("select 41", True, None),
        ("select $1::int", True, None),
        ("select", True, "DivisionByZeroError"),
        ("begin", True, None),
        ("create", True, None),
        ("copy copied", True, None),
        ("commit", True, None),
        ("select 2", True, None),
    ]


def test_a_statement_has_the_name_of_its_constant_or_of_its_list() -> None:
    assert statement_name(queries.PLAIN_PAGE) == "resources.participants.queries.PLAIN_PAGE"
    tenant, values = UUID(int=1), {"status": "Active"}
    page, count = queries.LIST.page_statement(tenant, values, (20, 0)), queries.LIST.count_statement(tenant, values)
    assert (statement_name(page.text), statement_name(count.text)) == ("participants.page", "participants.count")
    assert statement_name("analyze participants, events") == "analyze"


def test_a_slow_statement_is_logged_without_values(cluster: SharedCluster, caplog: pytest.LogCaptureFixture) -> None:
    counted = metrics.SLOW_STATEMENTS._value.get()  # noqa: SLF001

    async def work() -> None:
        async with Database(cluster.dsn, pool_size=1, on_statement=log_slow_statements(500)).open() as db:
            await db.one(int, "select 1")
            await db.execute("select pg_sleep(0.6), $1::text", "Zebulonia")
            scope = {"type": "http", "headers": [(b"x-request-id", b"order-17")]}
            RequestState.from_scope(scope)
            await db.execute("select pg_sleep(0.6), $1::text", "Zebulonia")
            with pytest.raises(asyncpg.DivisionByZeroError):
                await db.execute("select 1 / (length(pg_sleep(0.6)::text || $1::text) - 9)", "Zebulonia")

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    found = [(each.getMessage(), vars(each)) for each in caplog.records if each.getMessage() == "slow statement"]
    assert [(each["statement"], each["request_id"]) for _, each in found] == [
        ("select", None),
        ("select", "order-17"),
        ("select", "order-17"),
    ]
    assert all(each["duration_ms"] >= 500 for _, each in found)
    assert [bool(each["exc_info"]) for _, each in found] == [False, False, True]
    assert not any("Zebulonia" in str(value) for _, each in found for value in each.values())
    assert metrics.SLOW_STATEMENTS._value.get() == counted + 3  # noqa: SLF001


def test_without_a_threshold_statements_are_not_timed() -> None:
    assert log_slow_statements(None) is None
