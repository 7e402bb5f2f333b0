"""Results of claims and receipts in SQL."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.row_ids import HAS_ID, in_array, records_of
from plankeeper.database.versions import later_version
from plankeeper.resources.claims.adjustment_store import MONEY
from plankeeper.resources.claims.result_rules import ClaimState
from plankeeper.resources.claims.result_schemas import Receipt, ReceiptListQuery

# A claim as a result sees it: with the numbers of its file, whether an earlier payment of its line was reversed, and
# LineMoney.to_recover of its line.
CLAIM_STATE: LiteralString = f"""
    claims.id, batch_id, invoice_id, line_id,
    (select number from claim_batches where plan_manager_id = $1 and id = claims.batch_id) as batch_number,
    reference, fields ->> 'ndis_number' as ndis_number, is_rest, amount,
    (fields ->> 'quantity')::numeric * (fields ->> 'unit_price')::numeric as file_amount, state, paid,
    exists (
        select from adjustments
        where plan_manager_id = $1 and invoice_id = claims.invoice_id and line_id = claims.line_id
            and kind = 'agency_reversal' and created_at > claims.created_at
    ) as is_reversed,
    state = 'cancelled' and result_at is not null as has_late_result,
    case
        when exists (
            select from adjustments
            where plan_manager_id = $1 and invoice_id = claims.invoice_id and line_id = claims.line_id
                and kind = 'agency_reversal'
        )
            then (
                select greatest(paid_out - refunded - paid, 0)
                from (
                    select * from invoice_lines
                    where plan_manager_id = $1 and invoice_id = claims.invoice_id and id = claims.line_id
                ) line {MONEY}
            )
        else 0
    end as to_recover
"""
LIST_BY_REFERENCES = f"""
    select {CLAIM_STATE}
    from claims
    where plan_manager_id = $1 and source = 'batch' and {in_array("reference", "$2::text[]")}
"""


async def list_by_references(db: Executor, plan_manager_id: UUID, references: Sequence[str]) -> list[ClaimState]:
    """The claims of all batches with these references."""
    return await db.rows(ClaimState, LIST_BY_REFERENCES, plan_manager_id, references)


GET_OPEN = f"""
    select {CLAIM_STATE}
    from claims
    where plan_manager_id = $1 and invoice_id = $2 and line_id = $3 and state in ('draft', 'submitted')
"""


async def get_open(db: Executor, plan_manager_id: UUID, invoice_id: UUID, line_id: UUID) -> ClaimState | None:
    """The claim of a line without a result."""
    return await db.one_or_none(ClaimState, GET_OPEN, plan_manager_id, invoice_id, line_id)


# Nothing has followed from its result: neither another claim of the line, nor a payment, a fee or an adjustment.
GET_REPLACEABLE = f"""
    select {CLAIM_STATE}
    from claims
    where plan_manager_id = $1 and invoice_id = $2 and line_id = $3 and state in ('paid', 'partially_paid', 'rejected')
        and not exists (
            select from claims later
            where later.plan_manager_id = $1 and later.invoice_id = $2 and later.line_id = $3
                and later.created_at > claims.created_at
        )
        and not exists (
            select from payment_lines where plan_manager_id = $1 and claim_id = claims.id and is_open
        )
        and not exists (
            select from fee_taking_lines where plan_manager_id = $1 and claim_id = claims.id
        )
        and not exists (
            select from adjustments
            where adjustments.plan_manager_id = $1 and adjustments.invoice_id = $2 and adjustments.line_id = $3
                -- the claim of an imported amount has what was reversed before it was made
                and (claims.source = 'imported' or adjustments.created_at > claims.created_at)
        )
"""


async def get_replaceable(db: Executor, plan_manager_id: UUID, invoice_id: UUID, line_id: UUID) -> ClaimState | None:
    """The last claim of a line if its result can be replaced, as far as that depends on its money."""
    return await db.one_or_none(ClaimState, GET_REPLACEABLE, plan_manager_id, invoice_id, line_id)


WITHDRAW_RESULT = f"""
    update claims set state = 'submitted', paid = null, agency_number = null, reason = null, result_date = null,
        result_at = null, result_by = null, updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2
"""


async def withdraw_result(tx: Transaction, plan_manager_id: UUID, claim_id: UUID, now: datetime) -> None:
    """Make a claim open again: another result follows in the same transaction."""
    await tx.execute(WITHDRAW_RESULT, plan_manager_id, claim_id, now)


SET_RESULTS = f"""
    update claims set state = new.state, paid = new.paid,
        agency_number = coalesce(new.agency_number, claims.agency_number),
        reason = coalesce(new.reason, claims.reason),
        result_date = new.result_date, result_at = new.result_at, result_by = new.result_by,
        updated_at = {later_version("new.updated_at", "claims.updated_at")}
    from {records_of("claims")} new
    where claims.plan_manager_id = $1 and claims.id = new.id
"""


async def set_results(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Store the results of claims. `records` is a JSON list with the fields of a claim that a result has."""
    await tx.execute(SET_RESULTS, plan_manager_id, records)


class StateCount(Struct):
    """The number of claims of a batch in a state."""

    state: str
    count: int


COUNT_STATES = """
    select state, count(*) as count from claims where plan_manager_id = $1 and batch_id = $2 group by state
"""


async def count_states(tx: Transaction, plan_manager_id: UUID, batch_id: UUID) -> list[StateCount]:
    """The states that claims of a batch have."""
    return await tx.rows(StateCount, COUNT_STATES, plan_manager_id, batch_id)


SET_BATCH_STATE = f"""
    update claim_batches set state = $3, updated_at = {later_version("$4")}
    where plan_manager_id = $1 and id = $2
    returning updated_at
"""


async def set_batch_state(
    tx: Transaction, plan_manager_id: UUID, batch_id: UUID, state: str, now: datetime
) -> datetime:
    """Store the state of a batch that the caller has locked, and return its `updated_at`."""
    return await tx.one(datetime, SET_BATCH_STATE, plan_manager_id, batch_id, state, now)


LIST_IMPORTERS = """
    select distinct actor_id
    from events
    where plan_manager_id = $1 and resource_id = $2 and resource_kind = 'invoice' and import_id is not null
        and actor_id is not null
"""


async def list_importers(db: Executor, plan_manager_id: UUID, invoice_id: str) -> list[str]:
    """The accounts that have imported an invoice, also if they have only changed it."""
    return await db.rows(str, LIST_IMPORTERS, plan_manager_id, invoice_id)


class FoundLine(Struct):
    """A line of an invoice of any plan manager."""

    plan_manager_id: UUID
    invoice_id: UUID
    paid_amount: Decimal | None


FIND_LINES = """
    select plan_manager_id, invoice_id, paid_amount
    from invoice_lines
    where id = $1 and ($2::uuid is null or plan_manager_id = $2)
    limit 2
"""


async def find_lines(db: Executor, line_id: UUID, plan_manager_id: UUID | None) -> list[FoundLine]:
    """The lines with an id, of any plan manager or of one: for the operator, who knows only the id."""
    return await db.rows(FoundLine, FIND_LINES, line_id, plan_manager_id)


# Receipts

RECEIPT_COLUMNS: LiteralString = "id, batch_id, date, amount, reference, created_at, created_by, updated_at"
INSERT_RECEIPT = f"""
    insert into claim_receipts (plan_manager_id, {RECEIPT_COLUMNS})
    select $1, {RECEIPT_COLUMNS} from json_populate_record(null::claim_receipts, $2)
"""


async def insert_receipt(tx: Transaction, plan_manager_id: UUID, record: str) -> None:
    """Insert a receipt. `record` is the JSON of a Receipt."""
    await tx.execute(INSERT_RECEIPT, plan_manager_id, record)


RECEIPTS = FilteredList(
    "claim_receipts",
    ReceiptListQuery,
    {"batch_id": Filter("batch_id = {}")},
    sorts=BY_UPDATED_AT,
)
GET_RECEIPTS = f"select {RECEIPT_COLUMNS} from claim_receipts where plan_manager_id = $1 and {HAS_ID}"
SUM_RECEIPTS = """
    select count(*) as count, coalesce(sum(amount), 0) as amount
    from claim_receipts
    where plan_manager_id = $1 and batch_id = $2
"""


async def list_receipts_page(
    db: Executor, plan_manager_id: UUID, batch_id: UUID, query: ReceiptListQuery
) -> PageRows[Receipt]:
    return await fetch_page(db, plan_manager_id, query, RECEIPTS, _get_receipts, batch_id=batch_id)


async def _get_receipts(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Receipt]:
    return await db.rows(Receipt, GET_RECEIPTS, plan_manager_id, ids)


async def count_receipts(db: Executor, plan_manager_id: UUID, batch_id: UUID, query: ReceiptListQuery) -> int:
    return await RECEIPTS.count(db, plan_manager_id, RECEIPTS.values_of(query, batch_id=batch_id))


class ReceiptSum(Struct):
    """What has arrived for a batch: the number of its receipts, and their sum in dollars."""

    count: int
    amount: Decimal


async def sum_receipts(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> ReceiptSum:
    return await db.one(ReceiptSum, SUM_RECEIPTS, plan_manager_id, batch_id)
