"""The totals of invoices are sums of what writes appended: they must equal a count, whatever happened."""

import asyncio
from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.json import to_json
from plankeeper.database import stored_counts
from plankeeper.imports.importer import ImportReport, import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from support.client import Client
from support.importing import import_records
from support.locks import wait_for_locks
from support.server import RunningServer

CLAIM_STATUSES = ["new", "paid", "on_hold"]
APPROVAL_STATUSES = ["pending", "approved"]
few_examples = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def count_rows(server: RunningServer, api: Client, table: str, **values: str) -> int:
    conditions = "".join(f" and {name} = '{value}'" for name, value in values.items())
    statement: Any = f"select count(*) from {table} where plan_manager_id = $1{conditions}"
    return server.run(server.db.one(int, statement, UUID(api.plan_manager_id)))


def assert_totals(server: RunningServer, api: Client) -> None:
    """Every stored total, beside a count of the rows."""
    for claim_status, approval_status in product((None, *CLAIM_STATUSES), (None, *APPROVAL_STATUSES)):
        given_values = {"claim_status": claim_status, "approval_status": approval_status}
        values = {name: value for name, value in given_values.items() if value}
        total = api.get("/invoices", limit=1, **values).json()["pagination"]["total"]
        assert total == count_rows(server, api, "invoices", **values), values


@few_examples
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["import", "import twice", "bad import", "compact"]),
            st.integers(0, 9), st.sampled_from(CLAIM_STATUSES), st.sampled_from(APPROVAL_STATUSES),
        ),
        min_size=3, max_size=12,
    )
)  # fmt: skip
def test_totals_of_invoices_equal_a_count_after_any_writes(
    server: RunningServer, new_client: Callable[..., Client], import_rows: Callable[..., Any], operations: list[Any]
) -> None:
    api = new_client()
    ids: list[str] = []
    for operation, which, claim_status, approval_status in operations:
        statuses = {"claim_status": claim_status, "approval_status": approval_status}
        chosen, new = ids[which % len(ids)] if ids else str(uuid7()), str(uuid7())
        if operation == "import":
            assert import_rows(api, "invoices", [{"id": chosen, **statuses}, {"id": new, **statuses}]).errors == []
            ids += [chosen, new]
        elif operation == "import twice":
            rows = [{"id": new, **statuses}, {"id": new, "claim_status": "paid"}]
            assert import_rows(api, "invoices", rows).errors == []
            ids.append(new)
        elif operation == "bad import":
            assert import_rows(api, "invoices", [statuses, {"total": 10**13}]).errors
        else:
            server.run(stored_counts.compact(server.db))
    assert_totals(server, api)


def test_compaction_leaves_few_rows(server: RunningServer, api: Client, import_rows: Callable[..., Any]) -> None:
    for _ in range(60):
        import_rows(api, "invoices", [{}])
    server.run(stored_counts.compact(server.db))
    assert count_rows(server, api, "stored_counts") <= 50
    assert_totals(server, api)


@pytest.mark.parametrize("count", [1, 2])
def test_two_imports_that_create_the_same_invoice_count_it_once(server: RunningServer, api: Client, count: int) -> None:
    """The second one updates it, or reports it if it is the only row, which isn't repeated."""
    owner = UUID(api.plan_manager_id)
    rows = [{"id": str(uuid7()), "claim_status": "new"} for _ in range(count)]

    async def import_both() -> ImportReport:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, owner, server.settings, SYSTEM)
            lines = [f"{to_json(each)}\n".encode() for each in rows]
            await import_file(ctx, RESOURCES["invoices"], lines, CONSTRAINT_ERRORS, lambda _lines: None)
            paid = [each | {"claim_status": "paid"} for each in rows]
            second = asyncio.create_task(import_records(server, owner, "invoices", paid))
            await wait_for_locks(server.db, second)
        return await second

    errors = server.run(import_both()).errors
    assert [each.field for each in errors] == (["id"] if count == 1 else [])
    assert_totals(server, api)
    assert api.get("/invoices").json()["pagination"]["total"] == count
