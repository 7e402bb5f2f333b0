"""Plan managers that have one of everything; and what a plan manager has, to see whether it changed."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest

from contract.world import Tenant, new_client, seed_tenant
from support.client import Client
from support.server import RunningServer, wait_until


@pytest.fixture(scope="module")
def tenant(server: RunningServer) -> Iterator[Tenant]:
    """One of everything, for tests that leave it as it is."""
    yield from _new_tenant(server)


@pytest.fixture(scope="module")
def other_tenant(server: RunningServer) -> Iterator[Tenant]:
    """Another plan manager with one of everything."""
    yield from _new_tenant(server)


def _new_tenant(server: RunningServer) -> Iterator[Tenant]:
    client = server.run(new_client(server))
    with closing(client.http):
        tenant = seed_tenant(server, client)
        wait_until(lambda: len(client.get("/events").json()["data"]) >= 8)
        yield tenant


@pytest.fixture
def fresh_tenant(server: RunningServer, api: Client) -> Tenant:
    """One of everything, to be changed."""
    return seed_tenant(server, api)


@pytest.fixture(scope="session")
def tenant_tables(server: RunningServer) -> list[str]:
    return server.run(
        server.db.rows(
            str,
            """
            select table_name::text from information_schema.columns
            where table_schema = 'public' and column_name = 'plan_manager_id' order by 1
            """,
        )
    )


@pytest.fixture(scope="session")
def tenant_data(server: RunningServer, tenant_tables: list[str]) -> Callable[[UUID | str], Any]:
    """All that a plan manager has, row by row: `contents(plan_manager_id)`. Not the log of what was asked."""

    async def read(plan_manager_id: UUID | str) -> dict[str, list[str]]:
        async with server.db.transaction(snapshot=True) as tx:
            return {
                # The names are the catalogue's own.
                table: await tx.rows(
                    str,
                    f"""
                    select (to_jsonb(t) - 'position' - 'fanned_out_to')::text from {table} t
                    where plan_manager_id = $1 order by 1
                    """,  # noqa: S608
                    plan_manager_id,
                )
                for table in tenant_tables
                if table != "api_request_batches"
            }

    return lambda plan_manager_id: server.run(read(plan_manager_id))
