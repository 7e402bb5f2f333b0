"""The lists of payment runs and of their payments in SQL."""

from uuid import UUID

from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import Filter, Sort
from plankeeper.resources.payments.schemas import Payment, PaymentListQuery, PaymentRun, PaymentRunListQuery
from plankeeper.resources.payments.store import FULL_PAYMENT, WITHOUT_LISTS, get_many, get_payments

_SORTS = {"updated_at": Sort("updated_at", "timestamptz")}
LIST = FilteredList("payment_runs", PaymentRunListQuery, sorts=_SORTS)
PAYMENTS = FilteredList("payments", PaymentListQuery, {"run_id": Filter("run_id = {}")}, sorts=_SORTS)

PLAIN_PAGE = f"""
    select {WITHOUT_LISTS}
    from payment_runs
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: PaymentRunListQuery) -> PageRows[PaymentRun]:
    if query.is_plain:
        rows = await db.rows(PaymentRun, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
        return cut_page(rows, query.limit)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


async def count(db: Executor, plan_manager_id: UUID, query: PaymentRunListQuery) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query))


PAYMENTS_PAGE = f"""
    select {FULL_PAYMENT}
    from payments
    where plan_manager_id = $1 and run_id = $2 and id > $3
    order by id
    limit $4 offset $5
"""


async def list_payments_page(
    db: Executor, plan_manager_id: UUID, run_id: UUID, query: PaymentListQuery
) -> PageRows[Payment]:
    """A page of the payments of a run. Their ids are in the order of the file."""
    if query.is_plain:
        position = (query.start, query.limit + 1, query.offset)
        rows = await db.rows(Payment, PAYMENTS_PAGE, plan_manager_id, run_id, *position)
        return cut_page(rows, query.limit)
    return await fetch_page(db, plan_manager_id, query, PAYMENTS, get_payments, run_id=run_id)


async def count_payments(db: Executor, plan_manager_id: UUID, run_id: UUID, query: PaymentListQuery) -> int:
    return await PAYMENTS.count(db, plan_manager_id, PAYMENTS.values_of(query, run_id=run_id))
