"""Payment runs at the same time, on PostgreSQL: nothing is paid twice, and only one of two transitions succeeds."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec import Struct, convert

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.payments import service
from plankeeper.resources.payments.schemas import PaymentReturn, PaymentRunCancel
from support.locks import wait_for_locks
from support.payments import PayingOffice

RETURN = {"date": "2026-10-17", "reason": "Closed account"}


class ClaimMoney(Struct):
    """What the agency has paid for a claim, and what its open payments pay."""

    id: UUID
    paid: Decimal
    payments: int
    amount: Decimal


class RunMoney(Struct):
    """The total of a run, and the sums of its payments and of their lines."""

    total: Decimal
    payments: Decimal
    lines: Decimal


def require_sound_money(office: PayingOffice) -> None:
    """Each claim has at most one open payment, of at most what the agency has paid, and all sums agree."""
    statement = """
        select claim.id, claim.paid, count(paid.amount)::int as payments, coalesce(sum(paid.amount), 0) as amount
        from claims claim
        left join payment_lines paid
            on paid.plan_manager_id = claim.plan_manager_id and paid.claim_id = claim.id and paid.is_open
        where claim.plan_manager_id = $1
        group by claim.id, claim.paid
    """
    for each in office.server.run(office.server.db.rows(ClaimMoney, statement, office.plan_manager_id)):
        assert each.payments <= 1
        assert each.amount <= each.paid
    statement = """
        select run.total, (
                select sum(amount) from payments where plan_manager_id = $1 and run_id = run.id
            ) as payments, (
                select sum(line.amount) from payment_lines line
                join payments payment on payment.plan_manager_id = $1 and payment.id = line.payment_id
                where line.plan_manager_id = $1 and payment.run_id = run.id
            ) as lines
        from payment_runs run
        where run.plan_manager_id = $1
    """
    for run in office.server.run(office.server.db.rows(RunMoney, statement, office.plan_manager_id)):
        assert run.total == run.payments == run.lines


def at_once(*requests: Callable[[], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(requests)) as executor:
        return [each.result() for each in [executor.submit(request) for request in requests]]


def codes(responses: list[httpx.Response]) -> list[str]:
    return sorted(each.json()["error"] if each.status_code >= 400 else "done" for each in responses)


@pytest.mark.parametrize("is_all", [True, False])
def test_runs_at_the_same_time_pay_each_claim_once(office: PayingOffice, is_all: bool) -> None:
    invoices = office.invoices([(f"INV-{number}", ["10.00", "5.00"]) for number in range(20)])
    chosen = [] if is_all else invoices
    responses = at_once(*[lambda: office.post(*chosen)] * 4)
    made = [each.json() for each in responses if each.status_code == 201]
    assert [each["total"] for each in made] == [300]
    assert codes(responses) == ["done", *["invalid_request"] * 3]
    assert made[0]["number"] == "P000001"
    require_sound_money(office)


def test_runs_of_different_lines_have_different_numbers(office: PayingOffice) -> None:
    invoices = office.invoices([(f"INV-{number}", ["10.00"]) for number in range(4)])
    responses = at_once(*[lambda id_=id_: office.post(id_) for id_ in invoices])
    assert sorted(each.json()["number"] for each in responses) == [f"P{number:06}" for number in range(1, 5)]
    require_sound_money(office)


def test_a_run_is_marked_as_paid_once(office: PayingOffice) -> None:
    run = office.run(office.invoice("10.00"))
    responses = at_once(*[lambda: office.act(run, "mark-paid")] * 4)
    assert codes(responses) == ["done", *["invalid_transition"] * 3]
    require_sound_money(office)


def test_a_run_is_cancelled_or_paid(office: PayingOffice) -> None:
    invoice = office.invoice("10.00")
    for _ in range(5):
        run = office.run(invoice)
        paid, cancelled = at_once(
            lambda run=run: office.act(run, "mark-paid"), lambda run=run: office.act(run, "cancel")
        )
        assert codes([paid, cancelled]) == ["done", "invalid_transition"]
        state = office.client.get(f"/payment-runs/{run['id']}").json()["state"]
        assert state == ("paid" if paid.is_success else "cancelled")
        require_sound_money(office)
        if paid.is_success:
            assert office.read(invoice)["claim_status"] == "paid"
            return_payment(office, run)
            office.set_account("provider", office.provider, "Amber Physio")
        assert office.read(invoice)["claim_status"] == "payment_ready"


def return_payment(office: PayingOffice, run: dict[str, Any]) -> httpx.Response:
    [payment] = office.payments(run)
    return office.client.post(f"/payment-runs/{run['id']}/payments/{payment['id']}/returned", RETURN)


def test_a_payment_is_returned_once(office: PayingOffice) -> None:
    run = office.run(office.invoice("10.00"))
    office.act(run, "mark-paid").raise_for_status()
    responses = at_once(*[lambda: return_payment(office, run)] * 4)
    assert codes(responses) == ["done", *["invalid_transition"] * 3]
    assert office.client.get(f"/payment-runs/{run['id']}").json()["returned"] == 1
    require_sound_money(office)


def test_a_return_and_a_cancellation_at_the_same_time_leave_a_line_without_a_payment(office: PayingOffice) -> None:
    """Both wait for the invoice, whose line has the payment of one run and is in the other."""
    db, plan_manager_id = office.server.db, office.plan_manager_id
    invoice = office.invoice("20.00", status="partially_ready")
    first = office.run(invoice)
    office.act(first, "mark-paid").raise_for_status()
    [payment], [line] = office.payments(first), office.line_ids(invoice)
    office.insert_claims([(invoice, line, Decimal("10.00"))])
    statement = "update invoice_lines set claim_status = 'payment_ready', paid_amount = 30 where plan_manager_id = $1"
    office.execute(statement, plan_manager_id)
    second = office.run(invoice)

    async def write(operation: Callable[[WriteContext], Any]) -> None:
        async with db.transaction() as tx:
            await operation(WriteContext(tx, plan_manager_id, office.server.settings, SYSTEM))

    async def interleave() -> None:
        body, ids = convert(RETURN, PaymentReturn), (UUID(first["id"]), UUID(payment["id"]))
        async with db.transaction() as tx:
            lock = "select from invoices where plan_manager_id = $1 and id = $2 for update"
            await tx.execute(lock, plan_manager_id, UUID(invoice))
            returning = asyncio.create_task(write(lambda ctx: service.record_return(ctx, *ids, body)))
            cancelling = asyncio.create_task(
                write(lambda ctx: service.cancel(ctx, UUID(second["id"]), PaymentRunCancel()))
            )
            await wait_for_locks(db, count=2)
        await asyncio.gather(returning, cancelling)

    office.server.run(interleave())
    [shown] = office.read(invoice)["line_items"]
    assert (shown["claim_status"], shown["has_payment"], shown["payment_ref"]) == ("payment_ready", False, None)


def test_a_hold_comes_before_or_after_the_first_download(office: PayingOffice) -> None:
    invoice = office.invoice("10.00")
    for _ in range(5):
        run = office.run(invoice)
        hold, download = at_once(
            lambda: office.client.post(f"/invoices/{invoice}/hold", {"reason": "Wait"}),
            lambda run=run: office.download(run),
        )
        assert hold.status_code == 200
        recorded = office.client.get(f"/payment-runs/{run['id']}").json()["downloaded_at"]
        assert (download.status_code, recorded is None) in ((200, False), (409, True))
        office.client.post(f"/invoices/{invoice}/release", {}).raise_for_status()
        office.act(run, "cancel", not_sent_to_bank=True, reason="Again").raise_for_status()


def test_only_one_download_is_the_first(office: PayingOffice) -> None:
    run = office.run(office.invoice("10.00"))
    responses = at_once(*[lambda: office.download(run)] * 4)
    assert len({each.content for each in responses}) == 1
    statement = "select type from events where plan_manager_id = $1 and type like 'payment_run.%'"
    types = office.server.run(office.server.db.rows(str, statement, office.plan_manager_id))
    assert Counter(types) == {"payment_run.created": 1, "payment_run.downloaded": 1}


@pytest.mark.parametrize("seed", range(3))
def test_money_stays_sound_whatever_people_do_at_the_same_time(office: PayingOffice, seed: int) -> None:
    random = Random(seed)
    invoices = office.invoices([(f"INV-{number}", ["10.00"]) for number in range(6)])

    def act() -> httpx.Response:
        runs = office.client.get("/payment-runs", limit=100).json()["data"]
        run, kind = (random.choice(runs) if runs else None), random.randrange(6)
        if run is None or kind == 0:
            return office.post(*random.sample(invoices, 3))
        if kind == 1:
            return office.download(run)
        if kind in (2, 3):
            return office.act(run, "mark-paid")
        if kind == 4:
            return office.act(run, "cancel", not_sent_to_bank=True, reason="Wrong")
        payments = office.payments(run)
        return office.client.post(f"/payment-runs/{run['id']}/payments/{payments[0]['id']}/returned", RETURN)

    for _ in range(8):
        responses = at_once(*[act] * 4)
        allowed = {"done", "invalid_transition", "invalid_request", "run_outdated"}
        assert {("done" if each.is_success else each.json()["error"]) for each in responses} <= allowed
        office.set_account("provider", office.provider, "Amber Physio")
        require_sound_money(office)
