"""The lists of payment runs and of their payments in SQL."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.groups import GroupKey, GroupSum
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.payments.schemas import (
    PayeeKind,
    Payment,
    PaymentListQuery,
    PaymentRun,
    PaymentRunListQuery,
    PaymentState,
)
from plankeeper.resources.payments.store import get_many, get_payments

LIST = FilteredList("payment_runs", PaymentRunListQuery, sorts=BY_UPDATED_AT)
PAYMENTS = FilteredList("payments", PaymentListQuery, {"run_id": Filter("run_id = {}")}, sorts=BY_UPDATED_AT)
_DAY: LiteralString = "coalesce(paid_on, process_date)"
_OF_RUN: LiteralString = "run_id in (select id from payment_runs where plan_manager_id = $1 and " + _DAY
ALL_PAYMENTS = FilteredList(
    "payments",
    PaymentListQuery,
    {
        "day_from": Filter(_OF_RUN + " >= {})", label="Payment date"),
        "day_to": Filter(_OF_RUN + " <= {})", label="Payment date"),
        "provider_id": Filter("payee_kind = 'provider' and payee_id = {}", label="Provider"),
        "participant_id": Filter("payee_kind = 'participant' and payee_id = {}", label="Participant"),
    },
    amount="case when state <> 'cancelled' then amount end",
    group_keys={
        "month": GroupKey(
            "run_id",
            "select date_trunc('month', " + _DAY + "::timestamp)::date from payment_runs"
            " where plan_manager_id = $1 and id = counted.base",
            is_ordered=True,
        ),
        "state": GroupKey("state"),
        "payee": GroupKey("payee_kind || ' ' || payee_id"),
    },
    # The second to the fourth add up to the first.
    group_sums={
        "amount": GroupSum("case when state <> 'cancelled' then amount end"),
        "paid": GroupSum("case when state = 'paid' then amount end"),
        "draft": GroupSum("case when state = 'draft' then amount end"),
        "returned": GroupSum("case when state = 'returned' then amount end"),
    },
)


class ListedPayment(Struct):
    """A payment with its run. `day` is that on which the bank has paid or is to pay."""

    id: UUID
    run_id: UUID
    run_number: str
    day: date
    payee_kind: PayeeKind
    payee_id: UUID
    payee_name: str
    reference: str
    amount: Decimal
    state: PaymentState
    returned_on: date | None


LIST_PAYMENTS = f"""
    select id, run_id, (
        select number from payment_runs where plan_manager_id = $1 and id = payments.run_id
    ) as run_number, (
        select {_DAY} from payment_runs where plan_manager_id = $1 and id = payments.run_id
    ) as day, payee_kind, payee_id, payee_name, reference, amount, state, returned_on
    from payments
    where plan_manager_id = $1 and {HAS_ID}
    order by id
"""


async def list_payments(db: Executor, plan_manager_id: UUID, payment_ids: Sequence[UUID]) -> list[ListedPayment]:
    """The payments with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(ListedPayment, LIST_PAYMENTS, plan_manager_id, payment_ids)


async def list_page(db: Executor, plan_manager_id: UUID, query: PaymentRunListQuery) -> PageRows[PaymentRun]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


async def list_payments_page(
    db: Executor, plan_manager_id: UUID, run_id: UUID, query: PaymentListQuery
) -> PageRows[Payment]:
    """A page of the payments of a run. Their ids are in the order of the file."""
    return await fetch_page(db, plan_manager_id, query, PAYMENTS, get_payments, run_id=run_id)


async def count_payments(db: Executor, plan_manager_id: UUID, run_id: UUID, query: PaymentListQuery) -> int:
    return await PAYMENTS.count(db, plan_manager_id, PAYMENTS.values_of(query, run_id=run_id))
