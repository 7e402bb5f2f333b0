"""Plans in SQL. The participants' rows are their locks: see `plankeeper.resources.participants.plans`."""

from collections.abc import AsyncGenerator, Sequence
from datetime import date
from typing import LiteralString
from uuid import UUID

from plankeeper.core.lists import PageRows, UuidListQuery, cut_page, fetch_page
from plankeeper.core.record_matches import ValueHolder
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter, Sort
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import UPDATED_AT, compose_update
from plankeeper.resources.plans.schemas import LineSum, Plan, PlanListQuery, PlanRow, ServiceLine
from plankeeper.resources.viewer_limits import RECORDS_LIMIT

COLUMNS: LiteralString = "participant_id, start_date, end_date, is_pace_plan, external_id, components, created_at"
ROW_COLUMNS: LiteralString = """
    id, participant_id, start_date, end_date, is_pace_plan, external_id, components::json as components, created_at
"""
RECORD_COLUMNS: LiteralString = f"{ROW_COLUMNS}, updated_at"

LIST = FilteredList(
    "plans",
    PlanListQuery,
    {"participant_id": Filter("participant_id = {}")},
    sorts=BY_UPDATED_AT,
)


def _of_participants(condition: LiteralString) -> LiteralString:
    return f"participant_id in (select id from participants where plan_manager_id = $1 and {condition})"


# The plans of all participants, for the console.
ENDS = FilteredList(
    "plans",
    UuidListQuery,
    {
        "end_date_from": Filter("end_date >= {}", label="Plan ends"),
        "end_date_to": Filter("end_date <= {}", label="Plan ends"),
        "account_manager": Filter(_of_participants("account_manager_id = {}::uuid"), label="Account manager"),
        "without_account_manager": Filter(_of_participants("account_manager_id is null and {}::boolean")),
        "status": Filter(_of_participants("status = {}"), label="Status"),
        **RECORDS_LIMIT,
    },
    sorts={"end_date": Sort("end_date", "date", is_nullable=True)},
)
PLAIN_PAGE: LiteralString = f"""
    select {RECORD_COLUMNS}
    from plans
    where plan_manager_id = $1 and participant_id = $2 and id > $3
    order by id
    limit $4 offset $5
"""


async def list_page(db: Executor, plan_manager_id: UUID, participant_id: UUID, query: PlanListQuery) -> PageRows[Plan]:
    if query.is_plain:
        return cut_page(await db.rows(Plan, PLAIN_PAGE, plan_manager_id, participant_id, *query.position), query.limit)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, participant_id=participant_id)


async def count(db: Executor, plan_manager_id: UUID, participant_id: UUID, query: PlanListQuery) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, participant_id=participant_id))


GET_MANY: LiteralString = f"select {RECORD_COLUMNS} from plans where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_many(db: Executor, plan_manager_id: UUID, plan_ids: Sequence[UUID]) -> list[Plan]:
    """The plans with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Plan, GET_MANY, plan_manager_id, plan_ids)


LIST_OF_PARTICIPANTS: LiteralString = f"""
    select {RECORD_COLUMNS}
    from plans
    where plan_manager_id = $1 and {in_array("participant_id", "$2::uuid[]")}
    order by participant_id, start_date, id
"""


async def list_of_participants(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[Plan]:
    """The plans of participants, those of one in the order of their first days."""
    return await db.rows(Plan, LIST_OF_PARTICIPANTS, plan_manager_id, participant_ids)


LIST_IN_FORCE: LiteralString = f"""
    select {RECORD_COLUMNS}
    from plans
    where plan_manager_id = $1 and participant_id > $4 and $3::date between start_date and end_date
        and components <> '[]'
        and exists (
            select from participants
            where plan_manager_id = $1 and id = plans.participant_id and status = 'Active'
                and ($2::uuid is null or account_manager_id = $2)
        )
    order by participant_id
    limit $5
"""


async def list_in_force(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, day: date, after: UUID, limit: int
) -> list[Plan]:
    """Plans with components that are in force on a day, in the order of their participants, after one of these.

    Of active participants: of everyone, or of an account manager. A participant has at most one.
    """
    return await db.rows(Plan, LIST_IN_FORCE, plan_manager_id, account_manager_id, day, after, limit)


INSERT = Write(
    "added_plans as materialized (select * from json_populate_recordset(null::plans, $2))",
    f"""
    insert into plans (plan_manager_id, id, {COLUMNS}, updated_at)
    select $1, id, {COLUMNS}, {UPDATED_AT} from added_plans
    """,
    parameters=2,
)


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert plans. `records` is a JSON list of Plan."""
    await tx.queue_write(INSERT, plan_manager_id, records)


UPDATE = compose_update("plans", COLUMNS)


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Update plans whose participants the caller has locked. `records` is a JSON list of Plan."""
    await tx.queue_write(UPDATE, plan_manager_id, records, None)


DELETE_MANY = f"delete from plans where plan_manager_id = $1 and {HAS_ID}"


async def delete_many(tx: Transaction, plan_manager_id: UUID, plan_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_MANY, plan_manager_id, plan_ids)


EXPORT: LiteralString = f"select {ROW_COLUMNS} from plans where plan_manager_id = $1 order by participant_id, id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[PlanRow]]:
    return tx.stream(PlanRow, EXPORT, plan_manager_id)


LIST_BY_EXTERNAL_IDS = """
    select id, external_id as value
    from plans
    where plan_manager_id = $1 and external_id is not null and external_id = any ($2) -- the index has no nulls
"""


async def list_by_external_ids(db: Executor, plan_manager_id: UUID, external_ids: Sequence[str]) -> list[ValueHolder]:
    return await db.rows(ValueHolder, LIST_BY_EXTERNAL_IDS, plan_manager_id, external_ids)


LIST_PARTICIPANTS_WITH_BUDGETS = """
    select distinct participant_id::text
    from plans
    where plan_manager_id = $1 and participant_id = any ($2) and components <> '[]'
"""


async def list_participants_with_budgets(
    db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[str]:
    """Those of the participants that have a plan with components."""
    return await db.rows(str, LIST_PARTICIPANTS_WITH_BUDGETS, plan_manager_id, participant_ids)


# The first day of the service of a line `line` of an invoice `invoice`, which decides its plan and its catalogue entry.
SERVICE_DATE: LiteralString = "coalesce(line.service_date_from, line.service_date_to, invoice.invoice_date)"
# The amount of the open claim of a pending line `line` of an invoice `invoice`; null if it has none here.
PENDING_AMOUNT: LiteralString = """case when line.claim_status = 'pending' then (
                select amount
                from claims
                where plan_manager_id = $1 and invoice_id = invoice.id and line_id = line.id and state = 'submitted'
            ) end"""
SERVICE_LINES: LiteralString = f"""
    with service_lines as (
        select invoice.participant_id, {SERVICE_DATE} as service_date, line.service_item_number, line.component_id,
            line.claim_status, invoice.wont_claim, line.amount, line.paid_amount as paid, category, pace_category,
            line.invoice_id, line.id, invoice.received_at, line.position, {PENDING_AMOUNT} as pending,
            line.is_rest_waiting
        from (
            select id, participant_id, invoice_date, wont_claim, received_at
            from invoices
            where plan_manager_id = $1 and {in_array("participant_id", "$2::uuid[]")} and not is_deleted
        ) invoice
        cross join lateral (
            select * from invoice_lines where plan_manager_id = $1 and invoice_id = invoice.id and not is_deleted
        ) line
        left join lateral (
            select category, pace_category
            from support_items
            where support_item_number = btrim(line.service_item_number)
                and start_date <= {SERVICE_DATE} and (end_date is null or end_date >= {SERVICE_DATE})
            order by start_date desc
            limit 1
        ) item on true
    )
"""
LIST_LINES = f"""
    {SERVICE_LINES}
    select participant_id, service_date, service_item_number, component_id, claim_status, wont_claim, amount, paid,
        category, pace_category, pending, is_rest_waiting, invoice_id, id, received_at, position
    from service_lines
    order by invoice_id, position
"""


async def list_lines(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[ServiceLine]:
    """The lines of participants' invoices, without deleted ones."""
    return await db.rows(ServiceLine, LIST_LINES, plan_manager_id, participant_ids)


# The numbers of a component are sums, so that lines with the same values can be added up before the rules of plans say
# what they count for. The lines of a sum are of one plan: any day of it stands for theirs. A reversal counts from its
# date, so that what the agency has reversed after the day is still paid on it, but no more than the line.
SUM_LINES = f"""
    {SERVICE_LINES}
    select participant_id, max(service_date) as service_date, service_item_number, component_id, claim_status,
        wont_claim, sum(amount) as amount,
        sum(case when paid is not null then least(paid + (
            select coalesce(sum(reversal.amount), 0)
            from adjustments reversal
            where reversal.plan_manager_id = $1 and reversal.invoice_id = service_lines.invoice_id
                and reversal.line_id = service_lines.id and kind = 'agency_reversal' and reversal.date > $3
        ), greatest(service_lines.amount, paid)) end) as paid,
        category, pace_category, sum(pending) as pending, is_rest_waiting
    from service_lines
    cross join lateral (
        select plans.id
        from plans
        where plan_manager_id = $1 and plans.participant_id = service_lines.participant_id
            and service_date between start_date and end_date
        offset 0
    ) plan
    where service_date <= $3
    group by participant_id, plan.id, service_item_number, component_id, claim_status, wont_claim, category,
        pace_category, is_rest_waiting, pending is null
    order by participant_id, service_date
"""


async def sum_lines(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID], day: date) -> list[LineSum]:
    """The lines of participants' plans up to a day, added up by plan, item, component and state."""
    return await db.rows(LineSum, SUM_LINES, plan_manager_id, participant_ids, day)


CLAIMED_LINES: LiteralString = f"""
    select line.id, {SERVICE_DATE} as service_date, line.component_id
    from invoices invoice
    join invoice_lines line on line.plan_manager_id = $1 and line.invoice_id = invoice.id
    where invoice.plan_manager_id = $1 and invoice.participant_id = $2
        and not invoice.is_deleted and not line.is_deleted
        and line.claim_status in ('pending', 'payment_ready', 'partially_ready', 'partially_paid', 'paid')
"""
HAS_CLAIMED_LINE = f"""
    select exists (
        select from ({CLAIMED_LINES}) claimed
        where claimed.service_date between $3::date and $4::date or claimed.component_id = any ($5::uuid[])
    )
"""


async def has_claimed_line(
    db: Executor,
    plan_manager_id: UUID,
    participant_id: UUID,
    dates: tuple[date | None, date | None],
    component_ids: Sequence[UUID],
) -> bool:
    """Whether a claimed line of a participant has a service between two dates, or names one of the components."""
    return await db.one(bool, HAS_CLAIMED_LINE, plan_manager_id, participant_id, *dates, component_ids)
