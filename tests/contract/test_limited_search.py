"""The searches of limited viewers: each statement about people has the condition, and fits the schema."""

import asyncpg

from plankeeper.resources.search import store
from plankeeper.resources.search.limits import LIMITED, UNLIMITED
from support.cluster import SharedCluster

# Statements of the store that aren't searches of names, numbers and dates.
OTHERS = {store.FOLD: "reads no records", store.FIND_BY_ID: "its results are checked by their ids"}


def test_every_search_is_limited_or_about_providers() -> None:
    texts = [each for name, each in vars(store).items() if name.isupper() and isinstance(each, str)]
    statements = {each for each in texts if "$1" in each and ("limit $" in each or each in OTHERS)}
    parts = {store.FROM_PARTICIPANTS, store.FROM_MEMBERS, store.FROM_PROVIDERS}
    assert statements - parts == {*LIMITED, *UNLIMITED, *OTHERS}
    assert not {*LIMITED} & UNLIMITED


async def test_a_limited_search_has_one_more_value_and_the_condition(cluster: SharedCluster) -> None:
    connection = await asyncpg.connect(cluster.dsn, statement_cache_size=0)
    problems = list[str]()
    for statement, limited in LIMITED.items():
        count = len((await connection.prepare(statement)).get_parameters())
        types = [each.name for each in (await connection.prepare(limited)).get_parameters()]
        inner = f"account_manager_id = ${count + 1}::uuid" in limited
        if len(types) != count + 1 or types[-1] != "uuid" or not inner:
            problems.append(limited)
    await connection.close()
    assert problems == []
