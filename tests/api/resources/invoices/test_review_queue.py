"""The review queue: which invoices wait for somebody, and that no two people get the same one."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoices import review_store
from plankeeper.resources.invoices.review_store import LEASE_TIME, MAX_CANDIDATES, QueueCounts, ReviewFilter
from support.client import Client
from support.locks import wait_for_locks
from support.server import RunningServer

NOW = datetime(2026, 11, 24, 1, tzinfo=UTC)
ALL = ReviewFilter()
CLOSE = "update invoices set wont_claim = true where plan_manager_id = $1 and id = $2"
Import = Callable[..., UUID]


@pytest.fixture
def api(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    return new_client(plan_manager_id)


@pytest.fixture
def import_invoice(api: Client, import_rows: Callable[..., Any]) -> Import:
    """Import an invoice, which has warnings: it has no participant."""

    def import_one(number: str = "INV-1", day: int = 1, **values: Any) -> UUID:
        row = {"id": str(uuid7()), "invoice_number": number, "total": 10, "received_at": f"2026-11-{day:02}T00:00:00Z"}
        report = import_rows(api, "invoices", [row | values])
        assert not report.errors, report.errors
        return UUID(row["id"])

    return import_one


@pytest.fixture
def take(server: RunningServer, plan_manager_id: UUID) -> Callable[..., UUID | None]:
    def take_one(
        account: UUID, after: UUID | None = None, wanted: ReviewFilter = ALL, now: datetime = NOW
    ) -> UUID | None:
        return server.run(review_store.take_next(server.db, plan_manager_id, account, wanted, after, now))

    return take_one


def list_part(server: RunningServer, plan_manager_id: UUID, wanted: ReviewFilter) -> list[UUID]:
    return server.run(review_store.list_candidates(server.db, plan_manager_id, uuid7(), wanted, None, NOW))


def test_an_invoice_waits_for_somebody_to_decide(
    server: RunningServer, plan_manager_id: UUID, import_invoice: Import
) -> None:
    me = uuid7()
    warned = import_invoice("WARNED", 3)
    not_approved = import_invoice("REJECTED", 2, approval_status="rejected")
    flagged, rejected = (import_invoice(each, 4, claim_status=each) for each in ("flagged", "rejected"))
    held = import_invoice("HELD", 1, claim_status="on_hold")
    pending = import_invoice("PENDING", 5, approval_status="pending")
    for index, values in enumerate((
        {"is_deleted": True}, {"wont_claim": True}, {"claim_status": "paid"}, {"claim_status": "pending"},
        {"claim_status": "cancelled"}, {"claim_status": "partially_paid"},
    )):  # fmt: skip
        import_invoice(f"CLOSED-{index}", **values)
    assert list_part(server, plan_manager_id, ALL) == [not_approved, warned, flagged, rejected, pending]
    assert list_part(server, plan_manager_id, ALL._replace(queue="held")) == [held]
    assert list_part(server, plan_manager_id, ALL._replace(queue="approval")) == [pending]
    assert list_part(server, plan_manager_id, ALL._replace(queue="rejected")) == [rejected]
    assert list_part(server, plan_manager_id, ALL._replace(assigned_to=me)) == []
    assert len(list_part(server, plan_manager_id, ALL._replace(is_unassigned=True))) == 5
    assert len(list_part(server, plan_manager_id, ALL._replace(warning="missing_participant"))) == 5
    assert list_part(server, plan_manager_id, ALL._replace(warning="missing_invoice_number")) == []
    counts = server.run(review_store.count(server.db, plan_manager_id, me))
    assert counts == QueueCounts(waiting=5, mine=0, unassigned=5, held=1, approval=1, rejected=1)
    warnings = server.run(review_store.count_warnings(server.db, plan_manager_id))
    assert {each.code: each.count for each in warnings}["missing_participant"] == 5


def test_the_next_invoice_follows_the_present_one_and_begins_again_at_the_end(
    import_invoice: Import, take: Callable[..., UUID | None]
) -> None:
    first, second, third = (import_invoice(f"INV-{day}", day) for day in (1, 2, 3))
    me, colleague = uuid7(), uuid7()
    assert take(me) == first
    assert take(colleague) == second
    assert take(me, first) == third
    assert take(me, third) == first
    assert take(colleague, second) == third
    assert take(colleague, third) == second  # the first one is leased
    assert take(uuid7()) == third
    assert take(uuid7()) is None


def test_a_lease_ends_after_ten_minutes_unless_it_is_renewed(
    server: RunningServer, plan_manager_id: UUID, import_invoice: Import, take: Callable[..., UUID | None]
) -> None:
    invoice_id = import_invoice()
    me, colleague = uuid7(), uuid7()
    place = (server.db, plan_manager_id)
    assert take(me) == invoice_id
    assert take(me, invoice_id) == invoice_id  # the only one
    almost = NOW + LEASE_TIME
    assert take(colleague, now=almost) is None
    assert server.run(review_store.get_holder(*place, invoice_id, almost)) == me
    assert server.run(review_store.renew(*place, me, invoice_id, almost))
    assert not server.run(review_store.renew(*place, colleague, invoice_id, almost + LEASE_TIME))
    later = almost + LEASE_TIME + timedelta(microseconds=1)
    assert server.run(review_store.get_holder(*place, invoice_id, later)) is None
    assert take(colleague, now=later) == invoice_id
    assert not server.run(review_store.renew(*place, me, invoice_id, later))


def test_ten_people_who_work_at_once_never_get_the_same_invoice(
    server: RunningServer, plan_manager_id: UUID, import_invoice: Import
) -> None:
    ids = {import_invoice(f"INV-{index}", 1 + index % 20) for index in range(MAX_CANDIDATES + 15)}
    held, seen = dict[UUID, UUID](), list[UUID]()

    async def skip(account: UUID) -> None:
        """Look at four invoices, and decide nothing."""
        position = None
        for _ in range(4):
            held.pop(account, None)  # asking for the next one gives up this one
            position = await review_store.take_next(server.db, plan_manager_id, account, ALL, position, NOW)
            assert position
            assert position not in held.values(), "two people look at the same invoice"
            held[account] = position

    async def decide(account: UUID) -> None:
        """Decide about each invoice, until none is left."""
        position = None
        while position := await review_store.take_next(server.db, plan_manager_id, account, ALL, position, NOW):
            seen.append(position)
            await server.db.execute(CLOSE, plan_manager_id, position)

    async def work_together(work: Callable[[UUID], Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*(work(each) for each in people))

    people = [uuid7() for _ in range(10)]
    server.run(work_together(skip))
    server.run(work_together(decide))
    assert (len(seen), set(seen)) == (len(ids), ids)


def test_an_invoice_that_is_decided_while_somebody_takes_it_stays_decided(
    server: RunningServer, plan_manager_id: UUID, import_invoice: Import
) -> None:
    """The colleague who decides about it gives it up while the statement that takes it waits."""
    db, first, second = server.db, import_invoice("INV-1", 1), import_invoice("INV-2", 2)
    lease = "insert into review_leases (plan_manager_id, invoice_id, account_id, expires_at) values ($1, $2, $3, $4)"
    give_up = "delete from review_leases where plan_manager_id = $1 and invoice_id = $2"

    async def interleave() -> UUID | None:
        async with db.transaction() as colleague:
            await colleague.execute(lease, plan_manager_id, first, uuid7(), NOW + LEASE_TIME)
            taking = asyncio.create_task(review_store.take_next(db, plan_manager_id, uuid7(), ALL, None, NOW))
            await wait_for_locks(db, taking)
            await db.execute(CLOSE, plan_manager_id, first)
            await colleague.execute(give_up, plan_manager_id, first)
        return await taking

    assert server.run(interleave()) == second


def test_two_windows_of_a_person_have_one_invoice_between_them(
    server: RunningServer, plan_manager_id: UUID, import_invoice: Import
) -> None:
    for index in range(8):
        import_invoice(f"INV-{index}", 1 + index)
    me = uuid7()

    async def take_in_both() -> list[UUID | None]:
        taken = (review_store.take_next(server.db, plan_manager_id, me, ALL, None, NOW) for _ in range(4))
        return await asyncio.gather(*taken)

    assert None not in server.run(take_in_both())
    others = server.run(review_store.list_candidates(server.db, plan_manager_id, uuid7(), ALL, None, NOW))
    assert len(others) == 7
