"""Claim batches and claims in SQL."""

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
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import UPDATED_AT, later_version
from plankeeper.resources.claims.batch_file import FileRow
from plankeeper.resources.claims.schemas import Claim, ClaimBatch, ClaimBatchListQuery, ClaimListQuery, ClaimState

BATCH_COLUMNS: LiteralString = """
    created_at, created_by, downloaded_at, downloaded_by, submitted_at, submitted_by, cancelled_at, cancelled_by,
    cancel_reason, updated_at
"""
WITHOUT_LISTS: LiteralString = f"""
    id, number, state, total, lines, null::json as warned, null::json as left_out, left_out_count, {BATCH_COLUMNS}
"""
WITH_LISTS: LiteralString = f"""
    id, number, state, total, lines, warned::json as warned, left_out::json as left_out, left_out_count,
    {BATCH_COLUMNS}
"""
CLAIM_COLUMNS: LiteralString = """
    id, invoice_id, line_id, source, batch_id, position, reference, is_rest, amount, paid, state, reason,
    agency_number, result_date, result_at, result_by, created_at, created_by, updated_at
"""
NEW_CLAIM_COLUMNS: LiteralString = """
    id, invoice_id, line_id, source, batch_id, position, reference, is_rest, amount, fields, state, paid,
    agency_number, reason, result_date, result_at, result_by, created_at, created_by
"""

LIST = FilteredList("claim_batches", ClaimBatchListQuery, sorts=BY_UPDATED_AT)
CLAIMS = FilteredList(
    "claims",
    ClaimListQuery,
    {"batch_id": Filter("batch_id = {}")},
    sorts=BY_UPDATED_AT,
)

GET = f"select {WITH_LISTS} from claim_batches where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> ClaimBatch | None:
    return await db.one_or_none(ClaimBatch, GET, plan_manager_id, batch_id)


LOCK = f"select {WITHOUT_LISTS} from claim_batches where plan_manager_id = $1 and id = $2 for update"


async def select_for_update(tx: Transaction, plan_manager_id: UUID, batch_id: UUID) -> ClaimBatch | None:
    """The batch without its lists, locked until the transaction ends."""
    return await tx.one_or_none(ClaimBatch, LOCK, plan_manager_id, batch_id)


GET_MANY = f"select {WITHOUT_LISTS} from claim_batches where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_many(db: Executor, plan_manager_id: UUID, batch_ids: Sequence[UUID]) -> list[ClaimBatch]:
    """The batches with these ids, without their lists, in order of id; unknown ids are ignored."""
    return await db.rows(ClaimBatch, GET_MANY, plan_manager_id, batch_ids)


async def list_page(db: Executor, plan_manager_id: UUID, query: ClaimBatchListQuery) -> PageRows[ClaimBatch]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


INSERT = f"""
    insert into claim_batches (
        plan_manager_id, id, number, state, total, lines, warned, left_out, left_out_count, created_at, created_by,
        updated_at
    )
    select $1, id, number, state, total, lines, warned, left_out, left_out_count, created_at, created_by, {UPDATED_AT}
    from json_populate_record(null::claim_batches, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, record: str) -> None:
    """Insert a draft. `record` is the JSON of a ClaimBatch with its lists."""
    await tx.execute(INSERT, plan_manager_id, record)


# The transitions of a batch. The first one of two that run at the same time wins.
SUBMIT = f"""
    update claim_batches set state = 'submitted', submitted_at = $3, submitted_by = $4,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and state = 'draft'
    returning {WITHOUT_LISTS}
"""
CANCEL = f"""
    update claim_batches set state = 'cancelled', cancelled_at = $3, cancelled_by = $4, cancel_reason = $5,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and state in ('draft', 'submitted')
        and not exists (
            select from claims
            where plan_manager_id = $1 and batch_id = $2 and state in ('paid', 'partially_paid', 'rejected')
        )
    returning {WITHOUT_LISTS}
"""


SET_DOWNLOADED = f"""
    update claim_batches set downloaded_at = $3, downloaded_by = $4, updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and downloaded_at is null
    returning {WITHOUT_LISTS}
"""


async def set_downloaded(
    tx: Transaction, plan_manager_id: UUID, batch_id: UUID, now: datetime, by: str
) -> ClaimBatch | None:
    """Record the first download of a file; None for a further one."""
    return await tx.one_or_none(ClaimBatch, SET_DOWNLOADED, plan_manager_id, batch_id, now, by)


async def submit(tx: Transaction, plan_manager_id: UUID, batch_id: UUID, now: datetime, by: str) -> ClaimBatch | None:
    """Submit a draft; None for a batch in another state."""
    return await tx.one_or_none(ClaimBatch, SUBMIT, plan_manager_id, batch_id, now, by)


async def cancel(
    tx: Transaction, plan_manager_id: UUID, batch_id: UUID, now: datetime, by: str, reason: str | None
) -> ClaimBatch | None:
    """Cancel a draft, or a submitted batch without a result; None for another one."""
    return await tx.one_or_none(ClaimBatch, CANCEL, plan_manager_id, batch_id, now, by, reason)


# Claims

INSERT_CLAIMS = f"""
    insert into claims (plan_manager_id, {NEW_CLAIM_COLUMNS}, updated_at)
    select $1, {NEW_CLAIM_COLUMNS}, {UPDATED_AT}
    from json_populate_recordset(null::claims, $2)
    returning id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert_claims(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert claims. `records` is a JSON list of NewClaim."""
    await tx.rows(UUID, INSERT_CLAIMS, plan_manager_id, records)


GET_CLAIMS = f"select {CLAIM_COLUMNS} from claims where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_claims(db: Executor, plan_manager_id: UUID, claim_ids: Sequence[UUID]) -> list[Claim]:
    """The claims with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Claim, GET_CLAIMS, plan_manager_id, claim_ids)


async def list_claims_page(
    db: Executor, plan_manager_id: UUID, batch_id: UUID, query: ClaimListQuery
) -> PageRows[Claim]:
    """A page of the claims of a batch. Their ids are in the order of the file."""
    return await fetch_page(db, plan_manager_id, query, CLAIMS, get_claims, batch_id=batch_id)


async def count_claims(db: Executor, plan_manager_id: UUID, batch_id: UUID, query: ClaimListQuery) -> int:
    return await CLAIMS.count(db, plan_manager_id, CLAIMS.values_of(query, batch_id=batch_id))


LIST_OF_BATCH = f"""
    select {CLAIM_COLUMNS} from claims where plan_manager_id = $1 and batch_id = $2 order by position
"""


async def list_of_batch(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> list[Claim]:
    """All claims of a batch, in the order of its file."""
    return await db.rows(Claim, LIST_OF_BATCH, plan_manager_id, batch_id)


class StoredRow(Struct):
    """A row of a file, with the invoice that it is of."""

    invoice_id: UUID
    fields: FileRow


class StoredFile(Struct):
    """The file of a batch: the rows in their order."""

    number: str
    rows: list[StoredRow]


GET_FILE = """
    select number, (
        select coalesce(json_agg(json_build_object('invoice_id', invoice_id, 'fields', fields) order by position), '[]')
        from claims
        where plan_manager_id = $1 and batch_id = claim_batches.id
    ) as rows
    from claim_batches
    where plan_manager_id = $1 and id = $2
"""


async def get_file(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> StoredFile | None:
    return await db.one_or_none(StoredFile, GET_FILE, plan_manager_id, batch_id)


GET_STATE = "select state from claim_batches where plan_manager_id = $1 and id = $2"


async def get_state(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> str | None:
    """The state of a batch, or None if it doesn't exist."""
    return await db.one_or_none(str, GET_STATE, plan_manager_id, batch_id)


MOVE_CLAIMS = f"""
    update claims set state = $4, reason = coalesce($5, reason),
        updated_at = {later_version("$6")}
    where plan_manager_id = $1 and batch_id = $2 and state = $3
"""


async def move_claims(
    tx: Transaction,
    plan_manager_id: UUID,
    batch_id: UUID,
    states: tuple[ClaimState, ClaimState],
    reason: str | None,
    now: datetime,
) -> None:
    """Change the state of those claims of a batch that are in the first one of two states to the second one."""
    await tx.execute(MOVE_CLAIMS, plan_manager_id, batch_id, *states, reason, now)


LIST_OF_LINE = f"""
    select {CLAIM_COLUMNS} from claims where plan_manager_id = $1 and invoice_id = $2 and line_id = $3 order by id
"""


async def list_of_line(db: Executor, plan_manager_id: UUID, invoice_id: UUID, line_id: UUID) -> list[Claim]:
    """All claims of a line, the first one first."""
    return await db.rows(Claim, LIST_OF_LINE, plan_manager_id, invoice_id, line_id)


class LateClaims(Struct):
    """The claims that have waited too long for a result; `oldest` is null if there are none."""

    count: int
    total: Decimal
    oldest: datetime | None


class LateClaim(Struct):
    """A claim without a result; `since` is when its batch was submitted or, without a batch, when it was recorded."""

    id: UUID
    invoice_id: UUID
    line_id: UUID
    batch_id: UUID | None
    batch_number: str | None
    reference: str
    amount: Decimal
    since: datetime


LATE: LiteralString = """
    from (
        select id, invoice_id, line_id, batch_id, reference, amount, coalesce((
            select submitted_at from claim_batches where plan_manager_id = $1 and id = claims.batch_id
        ), created_at) as since
        from claims
        where plan_manager_id = $1 and state = 'submitted'
        offset 0
    ) late
    where since < $2
"""
SUMMARIZE_LATE = f"select count(*) as count, coalesce(sum(amount), 0) as total, min(since) as oldest {LATE}"
LIST_LATE = f"""
    select id, invoice_id, line_id, batch_id, (
        select number from claim_batches where plan_manager_id = $1 and id = late.batch_id
    ) as batch_number, reference, amount, since
    {LATE}
    order by since, id
    limit $3
"""


async def summarize_late(db: Executor, plan_manager_id: UUID, before: datetime) -> LateClaims:
    """The claims without a result that wait since before a moment."""
    return await db.one(LateClaims, SUMMARIZE_LATE, plan_manager_id, before)


async def list_late(db: Executor, plan_manager_id: UUID, before: datetime, limit: int) -> list[LateClaim]:
    """The same claims, those that have waited longest first."""
    return await db.rows(LateClaim, LIST_LATE, plan_manager_id, before, limit)


class EarlierClaim(Struct):
    """A claim that a line already has, of a batch."""

    invoice_id: UUID
    line_id: UUID
    reference: str
    is_rest: bool


LIST_EARLIER = f"""
    select invoice_id, line_id, reference, is_rest
    from claims
    where plan_manager_id = $1 and source = 'batch' and {in_array("invoice_id", "$2::uuid[]")}
    order by id
"""


async def list_earlier(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[EarlierClaim]:
    """All claims in batches of the lines of invoices, the first ones first."""
    return await db.rows(EarlierClaim, LIST_EARLIER, plan_manager_id, invoice_ids)


class BatchRef(Struct):
    """The number of the last batch that a line was claimed with."""

    invoice_id: UUID
    line_id: UUID
    number: str


LIST_BATCH_REFS = f"""
    select distinct on (invoice_id, line_id) invoice_id, line_id, (
        select number from claim_batches where plan_manager_id = $1 and id = claims.batch_id
    ) as number
    from claims
    where plan_manager_id = $1 and source = 'batch' and state <> 'cancelled'
        and {in_array("invoice_id", "$2::uuid[]")}
    order by invoice_id, line_id, id desc
"""


async def list_batch_refs(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[BatchRef]:
    """The last batches, which aren't cancelled, of the lines of invoices."""
    return await db.rows(BatchRef, LIST_BATCH_REFS, plan_manager_id, invoice_ids)


LIST_USED = f"""
    select reference from claims
    where plan_manager_id = $1 and source = 'batch' and {in_array("reference", "$2::text[]")}
"""


async def list_used(db: Executor, plan_manager_id: UUID, references: Sequence[str]) -> list[str]:
    """Those of the references that claims in batches have."""
    return await db.rows(str, LIST_USED, plan_manager_id, references)


LOCK_CREATE = "select pg_advisory_xact_lock(hashtextextended('claim batches ' || $1::uuid::text, 0))"


async def lock_create(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction makes a batch of a plan manager: two would choose the same references."""
    await tx.execute(LOCK_CREATE, plan_manager_id)
