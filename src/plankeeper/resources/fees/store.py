"""Fees and their takings in SQL."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.number_keys import abn_key
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.fees.schemas import (
    Candidate,
    Fee,
    FeeListQuery,
    FeeTaking,
    FeeTakingListQuery,
    TakenLine,
    TakenLineListQuery,
)

LIST = FilteredList("fees", FeeListQuery, sorts=BY_UPDATED_AT)
TAKINGS = FilteredList("fee_takings", FeeTakingListQuery, sorts=BY_UPDATED_AT)
LINES = FilteredList(
    "fee_taking_lines", TakenLineListQuery, {"taking_id": Filter("taking_id = {}")}, sorts=BY_UPDATED_AT
)

LOCK = "select pg_advisory_xact_lock(hashtextextended('fees ' || $1::uuid::text, 0))"


async def lock_fees(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction makes fees of the plan manager, and block further ones."""
    await tx.execute(LOCK, plan_manager_id)


LIST_CANDIDATES = """
    select id, status, state, remoteness, managed_from, managed_until, deceased_on, date_ceased,
        exists (
            select from fees where plan_manager_id = $1 and participant_id = participants.id and month = $2
        ) as has_fee,
        (
            select coalesce(json_agg(json_build_object('start', start_date, 'end', end_date)), '[]')
            from plans
            where plan_manager_id = $1 and participant_id = participants.id and start_date <= $4::date
                and end_date >= $3::date and start_date <= end_date
        ) as plans
    from participants
    where plan_manager_id = $1
    order by id
"""


async def list_candidates(db: Executor, plan_manager_id: UUID, month: str, first: date, last: date) -> list[Candidate]:
    """All participants, with what decides about their fee of a month, in order of id."""
    return await db.rows(Candidate, LIST_CANDIDATES, plan_manager_id, month, first, last)


INSERT = """
    insert into fees (plan_manager_id, participant_id, month, id, created_at, updated_at)
    select $1, participant_id, month, id, created_at, created_at from json_populate_recordset(null::fees, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert the rows of fees whose invoices exist: a JSON list."""
    await tx.execute(INSERT, plan_manager_id, records)


GET_OWN_PROVIDER = f"""
    select exists (
        select from providers where plan_manager_id = $1 and id = $2 and {abn_key()} = $3
    )
"""


async def is_own_provider(db: Executor, plan_manager_id: UUID, provider_id: UUID, abn: str) -> bool:
    """Whether a provider exists, and has the office's ABN."""
    return await db.one(bool, GET_OWN_PROVIDER, plan_manager_id, provider_id, abn)


# Fees

FEE: LiteralString = """
    id, month, participant_id,
    (select invoice_number from invoices where plan_manager_id = $1 and id = fees.id) as invoice_number,
    (select total from invoices where plan_manager_id = $1 and id = fees.id) as total,
    (select claim_status from invoices where plan_manager_id = $1 and id = fees.id) as claim_status,
    (
        select coalesce(sum(amount), 0) from fee_taking_lines where plan_manager_id = $1 and invoice_id = fees.id
    ) as taken,
    created_at, updated_at
"""

GET_MANY = f"select {FEE} from fees where plan_manager_id = $1 and {HAS_ID}"


async def list_page(db: Executor, plan_manager_id: UUID, query: FeeListQuery) -> PageRows[Fee]:
    return await fetch_page(db, plan_manager_id, query, LIST, _get_many)


async def _get_many(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Fee]:
    return await db.rows(Fee, GET_MANY, plan_manager_id, ids)


# Takings

STORED_COLUMNS: LiteralString = "id, number, taken_on, total, lines, created_at, created_by, updated_at"
TAKING: LiteralString = "id, number, taken_on, total, lines, null::json as left_out, created_at, created_by, updated_at"
INSERT_TAKING = f"""
    insert into fee_takings (plan_manager_id, {STORED_COLUMNS})
    select $1, {STORED_COLUMNS} from json_populate_record(null::fee_takings, $2)
"""
LINE_COLUMNS: LiteralString = "id, invoice_id, line_id, claim_id, amount, updated_at"
INSERT_LINES = f"""
    insert into fee_taking_lines (plan_manager_id, taking_id, {LINE_COLUMNS})
    select $1, $2, {LINE_COLUMNS} from json_populate_recordset(null::fee_taking_lines, $3)
    returning id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert_taking(tx: Transaction, plan_manager_id: UUID, taking_id: UUID, taking: str, lines: str) -> None:
    """Insert a taking, the JSON of a FeeTaking, with its lines, a JSON list of TakenLine."""
    await tx.execute(INSERT_TAKING, plan_manager_id, taking)
    await tx.rows(UUID, INSERT_LINES, plan_manager_id, taking_id, lines)


GET_TAKING = f"select {TAKING} from fee_takings where plan_manager_id = $1 and id = $2"


async def get_taking(db: Executor, plan_manager_id: UUID, taking_id: UUID) -> FeeTaking | None:
    return await db.one_or_none(FeeTaking, GET_TAKING, plan_manager_id, taking_id)


TAKING_EXISTS = "select exists (select from fee_takings where plan_manager_id = $1 and id = $2)"


async def taking_exists(db: Executor, plan_manager_id: UUID, taking_id: UUID) -> bool:
    return await db.one(bool, TAKING_EXISTS, plan_manager_id, taking_id)


async def list_takings_page(db: Executor, plan_manager_id: UUID, query: FeeTakingListQuery) -> PageRows[FeeTaking]:
    return await fetch_page(db, plan_manager_id, query, TAKINGS, _get_takings)


GET_TAKINGS = f"select {TAKING} from fee_takings where plan_manager_id = $1 and {HAS_ID}"


async def _get_takings(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[FeeTaking]:
    return await db.rows(FeeTaking, GET_TAKINGS, plan_manager_id, ids)


async def list_lines_page(
    db: Executor, plan_manager_id: UUID, taking_id: UUID, query: TakenLineListQuery
) -> PageRows[TakenLine]:
    """A page of the lines of a taking."""

    async def get_lines(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[TakenLine]:
        return await db.rows(TakenLine, GET_LINES, plan_manager_id, ids, taking_id)

    return await fetch_page(db, plan_manager_id, query, LINES, get_lines, taking_id=taking_id)


GET_LINES = f"""
    select {LINE_COLUMNS} from fee_taking_lines where plan_manager_id = $1 and taking_id = $3 and {HAS_ID}
"""


async def count_lines(db: Executor, plan_manager_id: UUID, taking_id: UUID, query: TakenLineListQuery) -> int:
    return await LINES.count(db, plan_manager_id, LINES.values_of(query, taking_id=taking_id))


class MonthSums(Struct):
    """The fees of a month that were made, what they are together, and what was taken of them, in dollars."""

    month: str
    count: int
    total: Decimal
    taken: Decimal


LIST_MONTHS = """
    select month, count(*)::int as count, coalesce(sum(total), 0) as total, coalesce(sum(taken), 0) as taken
    from (
        select month,
            (
                select total from invoices
                where plan_manager_id = $1 and id = fees.id and claim_status <> 'cancelled' and not is_deleted
            ) as total,
            (
                select sum(amount) from fee_taking_lines where plan_manager_id = $1 and invoice_id = fees.id
            ) as taken
        from fees
        where plan_manager_id = $1 and month >= $2
    ) fee
    group by month
    order by month desc
"""


async def list_months(db: Executor, plan_manager_id: UUID, first: str) -> list[MonthSums]:
    """The months from the first one on of which fees were made, the latest first."""
    return await db.rows(MonthSums, LIST_MONTHS, plan_manager_id, first)


LATEST_TAKINGS = f"""
    select {TAKING}
    from fee_takings
    where plan_manager_id = $1
    order by id desc
    limit $2
"""


async def list_latest_takings(db: Executor, plan_manager_id: UUID, limit: int) -> list[FeeTaking]:
    """The takings, the newest first."""
    return await db.rows(FeeTaking, LATEST_TAKINGS, plan_manager_id, limit)


LIST_OWN_PROVIDERS = f"""
    select id, coalesce(nullif(btrim(entity_name), ''), 'Provider without a name') as name
    from providers
    where plan_manager_id = $1 and {abn_key()} = $2
    order by id
    limit 20
"""


class OwnProvider(Struct):
    """A provider with the office's ABN."""

    id: UUID
    name: str


async def list_own_providers(db: Executor, plan_manager_id: UUID, abn: str) -> list[OwnProvider]:
    """The providers with the office's ABN."""
    return await db.rows(OwnProvider, LIST_OWN_PROVIDERS, plan_manager_id, abn)
