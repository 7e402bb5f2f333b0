"""Plan managers that have one of everything; and what a plan manager has, to see whether it changed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import LiteralString
from uuid import UUID

import pytest

from support.client import Client
from support.factories import Tenant, create_client, filled
from support.server import RunningServer, wait_until

# A sequencer moves rows from the first to the second, and marks the time in the third.
SEQUENCING_TABLES = {"event_queue", "event_order", "event_marks"}
# Objects to delete, as a rejected upload leaves a row, and invoices to check, all of them at midnight: tasks delete and
# change the rows.
CLEANUP_TABLES = {"object_cleanup", "recheck_queue", "recheck_state"}


@pytest.fixture(scope="module")
def tenant(server: RunningServer) -> Iterator[Tenant]:
    """One of everything, for tests that leave it as it is."""
    yield from _new_tenant(server)


@pytest.fixture(scope="module")
def other_tenant(server: RunningServer) -> Iterator[Tenant]:
    """Another plan manager with one of everything."""
    yield from _new_tenant(server)


def _new_tenant(server: RunningServer) -> Iterator[Tenant]:
    client = server.run(create_client(server))
    with closing(client.http):
        tenant = filled(server, client)
        wait_until(lambda: len(client.get("/events").json()["data"]) >= 8)
        yield tenant


class ChangedTenant:
    """A plan manager with one of everything, for checks that change it: a new one where those before are in the way.

    It takes half a second of processor time to make one.
    """

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._tenant: Tenant | None = None

    def check(self, run: Callable[[Tenant], None]) -> None:
        """Run a check with what the checks before have left, and, if it fails, with a new plan manager."""
        if self._tenant:
            try:
                run(self._tenant)
            except Exception:  # noqa: BLE001 - whatever is wrong counts if it is wrong with a new one, too
                self.close()
            else:
                return
        self._tenant = filled(self._server, self._server.run(create_client(self._server)))
        run(self._tenant)

    def close(self) -> None:
        if self._tenant:
            self._tenant.client.http.close()
            self._tenant = None


@pytest.fixture
def changed_tenant(server: RunningServer) -> Iterator[ChangedTenant]:
    changed = ChangedTenant(server)
    yield changed
    changed.close()


@pytest.fixture
def fresh_tenant(server: RunningServer, api: Client) -> Tenant:
    """One of everything, to be changed."""
    return filled(server, api)


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
def tenant_data(server: RunningServer, tenant_tables: list[str]) -> Callable[..., str]:
    """A digest of what a plan manager has: `contents(plan_manager_id)`, or that of one table.

    The log of requests and the access records are left out. An event that waits for its position counts like one that
    has it. Deliveries of earlier events and runs of statements, which are made in the background, are waited for.
    """

    def digest_of(tables: Sequence[str]) -> str:
        # The names are the catalogue's own.
        rows = " union all ".join(
            [
                *(
                    f"select '{table} ' || (to_jsonb(t) - 'last_position')::text as row from {table} t"
                    " where plan_manager_id = $1"
                    for table in tables
                    if table not in SEQUENCING_TABLES | CLEANUP_TABLES
                ),
                "select 'sequenced ' || event_id from event_order where plan_manager_id = $1",
                "select 'sequenced ' || unnest(event_ids) from event_queue where plan_manager_id = $1",
            ]
        )
        return f"select md5(coalesce(string_agg(row, chr(10) order by row), '')) from ({rows}) as rows"

    logs = ("api_request_batches", "api_request_minutes", "api_key_days", "access_records", "webhook_attempt_hours")
    whole = digest_of([each for each in tenant_tables if each not in logs])

    pending: LiteralString = """
        select exists (select from event_queue where plan_manager_id = $1) or exists (
            select from webhook_endpoints
            where plan_manager_id = $1 and active
                and last_position < (select max(position) from event_order where plan_manager_id = $1)
        ) or exists (select from statement_runs where plan_manager_id = $1 and state = 'running')
    """

    def read(plan_manager_id: UUID | str, table: str | None = None) -> str:
        wait_until(lambda: not server.run(server.db.one(bool, pending, plan_manager_id)))
        return server.run(server.db.one(str, digest_of([table]) if table else whole, plan_manager_id))

    return read
