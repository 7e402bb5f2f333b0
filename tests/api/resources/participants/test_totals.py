"""Totals are sums of what writes appended: they must equal a count, whatever happened."""

import threading
from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from plankeeper.database import stored_counts
from plankeeper.resources.participants import store
from plankeeper.resources.participants.schemas import ParticipantRow
from support.client import Client
from support.server import RunningServer

STATUSES = ["Active", "Inactive", "Lead"]
STATES = ["NSW", "VIC", None]

operations = st.lists(
    st.tuples(
        st.sampled_from(["create", "update", "delete", "import", "bad import", "fold"]),
        st.integers(0, 9), st.sampled_from(STATUSES), st.sampled_from(STATES),
    ),
    min_size=5, max_size=25,
)  # fmt: skip


def assert_totals(server: RunningServer, api: Client) -> None:
    """Every total that the list can state, beside a count of the rows."""
    for status in (None, *STATUSES):
        for state in (None, "nsw", "vic"):
            params = {"limit": 1} | ({"status": status} if status else {}) | ({"state": state} if state else {})
            stated = api.get("/participants", **params).json()["pagination"]["total"]
            counted = server.run(
                server.db.one(
                    int,
                    "select count(*) from participants where plan_manager_id = $1"
                    " and ($2::text is null or status = $2) and ($3::text is null or state = upper($3))",
                    UUID(api.plan_manager_id), status, state,
                )
            )  # fmt: skip
            assert stated == counted, (status, state)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations)
def test_totals_equal_a_count_after_any_writes(
    server: RunningServer, new_client: Callable[..., Client], import_rows: Callable[..., Any], operations_: list[Any]
) -> None:
    api = new_client()
    ids: list[str] = []
    for what, which, status, state in operations_:
        body = {"status": status, "state": state}
        chosen = ids[which % len(ids)] if ids else str(uuid7())
        if what == "create":
            ids.append(api.create("/participants", body)["id"])
        elif what == "update":
            api.put(f"/participants/{chosen}", body)
        elif what == "delete":
            api.delete(f"/participants/{chosen}")
        elif what == "import":
            ids.append(str(uuid7()))
            assert import_rows(api, "participants", [body | {"id": chosen}, body | {"id": ids[-1]}]).errors == []
        elif what == "bad import":
            assert import_rows(api, "participants", [body, body | {"account_manager_id": str(uuid7())}]).errors
        else:
            server.run(stored_counts.compact(server.db))
    assert_totals(server, api)


def test_totals_are_correct_after_concurrent_writes_and_compactions(server: RunningServer, api: Client) -> None:
    def write(number: int) -> None:
        for turn in range(6):
            body = {"status": STATUSES[(number + turn) % 3], "state": STATES[number % 3]}
            made = api.create("/participants", body)
            api.put(f"/participants/{made['id']}", {"status": STATUSES[number % 3]})
            if turn % 3 == 0:
                api.delete(f"/participants/{made['id']}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        server.run(stored_counts.compact(server.db))
    for writer in writers:
        writer.join()
    assert_totals(server, api)
    assert api.get("/participants").json()["pagination"]["total"] == 16 * 4


def test_a_total_is_that_of_the_statuses_and_states_of_its_request(api: Client) -> None:
    people = [
        {"status": status, "state": state}
        for number, (status, state) in enumerate(product(STATUSES, STATES))
        for _ in range(number + 1)
    ]
    api.post("/participants/bulk", {"items": people}).raise_for_status()
    filters = [*product(STATUSES, ("nsw", "VIC")), ("Active", ""), ("", "NSW"), ("", ""), ("Active,Lead", "nsw,vic")]
    totals = [
        api.get("/participants", **{name: text for name, text in zip(("status", "state"), each, strict=True) if text})
        for each in filters
    ]
    assert [each.json()["pagination"]["total"] for each in totals] == [1, 2, 4, 5, 7, 8, 6, 12, 45, 18]


def test_compaction_leaves_few_rows(server: RunningServer, api: Client) -> None:
    for _ in range(60):
        api.create("/participants", {"state": "NSW"})

    async def rows() -> int:
        return await server.db.one(
            int, "select count(*) from stored_counts where plan_manager_id = $1", UUID(api.plan_manager_id)
        )

    server.run(stored_counts.compact(server.db))
    assert server.run(rows()) <= 50
    assert_totals(server, api)


def test_writers_of_one_plan_manager_do_not_block_each_other(server: RunningServer, api: Client) -> None:
    """Two transactions add to the same total, and neither has committed: a row that both updated would hold one up."""
    owner = UUID(api.plan_manager_id)

    async def write_concurrently() -> None:
        async with server.db.transaction() as one, server.db.transaction() as two:
            for tx in (one, two):
                await tx.execute("set local lock_timeout = '1s'")
                record = ParticipantRow(id=uuid7(), created_at=(await tx.one(Any, "select now()")), state="NSW")
                await store.insert(tx, owner, to_json([record]))

    server.run(write_concurrently())
    assert_totals(server, api)
