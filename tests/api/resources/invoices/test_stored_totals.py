"""The totals of invoices and providers are sums of what writes appended: they must equal a count, whatever happened."""

from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import store as invoice_counts
from plankeeper.resources.providers import store as provider_counts
from plankeeper.resources.trash import service as bin_service
from plankeeper.server.background import TotalCorrection
from support.client import Client
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
    total = api.get("/providers", limit=1).json()["pagination"]["total"]
    assert total == count_rows(server, api, "providers")


@few_examples
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["import", "import twice", "bad import", "compact", "correct"]),
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
        elif operation == "compact":
            server.run(invoice_counts.compact_counts(server.db))
        else:
            assert not server.run(invoice_counts.correct_counts(server.db, UUID(api.plan_manager_id)))
    assert_totals(server, api)


@few_examples
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["create", "update", "delete", "bulk", "import", "bad import", "bin", "compact", "correct"]
            ),
            st.integers(0, 9),
        ),
        min_size=4,
        max_size=20,
    )
)
def test_the_total_of_providers_equals_a_count_after_any_writes(
    server: RunningServer, new_client: Callable[..., Client], import_rows: Callable[..., Any], operations: list[Any]
) -> None:
    api = new_client()
    ids: list[str] = []
    for operation, which in operations:
        chosen = ids[which % len(ids)] if ids else str(uuid7())
        if operation == "create":
            ids.append(api.create("/providers", {"entity_name": "Care"})["id"])
        elif operation == "update":
            api.put(f"/providers/{chosen}", {"entity_name": f"Care {which}"})
        elif operation == "delete":
            api.delete(f"/providers/{chosen}")
        elif operation == "bulk":
            items = [{"entity_name": "New"}, {"entity_name": "Other"}]
            ids += [each["id"] for each in api.post("/providers/bulk", {"items": items}).json()["data"]]
        elif operation == "import":
            ids.append(str(uuid7()))
            assert import_rows(api, "providers", [{"id": chosen}, {"id": ids[-1]}]).errors == []
        elif operation == "bad import":
            assert import_rows(api, "providers", [{}, {"abn": 5}]).errors
        elif operation == "bin":
            ids.append(api.create("/providers", {})["id"])
            delete_and_restore(server, api, UUID(ids[-1]))
        elif operation == "compact":
            server.run(provider_counts.compact_counts(server.db))
        else:
            assert not server.run(provider_counts.correct_counts(server.db, UUID(api.plan_manager_id)))
    assert_totals(server, api)


def delete_and_restore(server: RunningServer, api: Client, provider_id: UUID) -> None:
    async def run() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            entry = await bin_service.delete_provider(ctx, provider_id)
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            await bin_service.restore(ctx, entry.id)

    server.run(run())


def test_compaction_leaves_few_rows(server: RunningServer, api: Client, import_rows: Callable[..., Any]) -> None:
    for _ in range(60):
        api.create("/providers", {})
        import_rows(api, "invoices", [{}])
    server.run(provider_counts.compact_counts(server.db))
    server.run(invoice_counts.compact_counts(server.db))
    assert count_rows(server, api, "provider_counts") <= 50
    assert count_rows(server, api, "invoice_counts") <= 50
    assert_totals(server, api)


def test_totals_of_a_server_of_an_earlier_release_are_corrected(server: RunningServer, api: Client) -> None:
    """It writes the rows without their totals."""
    owner = UUID(api.plan_manager_id)
    api.create("/providers", {})
    server.run(
        server.db.execute(
            "insert into providers (plan_manager_id, id, active, created_at) values ($1, $2, true, now())",
            owner,
            uuid7(),
        )
    )
    server.run(
        server.db.execute(
            """
            insert into invoices (plan_manager_id, id, claim_status, approval_status, created_at, is_deleted,
                wont_claim, is_reimbursement)
            values ($1, $2, 'paid', 'approved', now(), false, false, false)
            """,
            owner, uuid7(),
        )
    )  # fmt: skip
    assert api.get("/providers").json()["pagination"]["total"] == 1
    assert api.get("/invoices", claim_status="paid").json()["pagination"]["total"] == 0

    async def correct_all() -> None:
        task = TotalCorrection({"invoices": invoice_counts.correct_counts, "providers": provider_counts.correct_counts})
        for _ in range(await server.db.one(int, "select count(*) from plan_managers")):
            await task(server.db)

    server.run(correct_all())
    assert_totals(server, api)
    assert api.get("/providers").json()["pagination"]["total"] == 2
    assert api.get("/invoices", claim_status="paid").json()["pagination"]["total"] == 1
