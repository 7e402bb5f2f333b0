"""Transaction ids as the commit watermark needs them."""

from collections.abc import AsyncIterator

import pytest

from plankeeper.database.client import Database
from plankeeper.database.server import get_transaction_ids
from support.cluster import SharedCluster

TAKE_ID = "select pg_current_xact_id()::text::bigint"


@pytest.fixture
async def db(cluster: SharedCluster) -> AsyncIterator[Database]:
    async with Database(cluster.dsn, pool_size=2).open() as opened:
        yield opened


async def test_an_id_that_is_in_use_is_not_the_next_one(db: Database) -> None:
    """Even if no transaction with a later id has ended yet."""
    for _ in range(20):
        async with db.transaction() as tx:
            taken = await tx.one(int, TAKE_ID)
            ids = await get_transaction_ids(db)
        assert ids.oldest_open <= taken < ids.next_id


async def test_ids_that_are_taken_later_are_not_below_the_next_one(db: Database) -> None:
    ids = await get_transaction_ids(db)
    assert await db.one(int, TAKE_ID) > ids.next_id
    assert (await get_transaction_ids(db)).next_id > ids.next_id
