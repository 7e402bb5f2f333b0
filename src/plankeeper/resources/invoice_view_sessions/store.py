"""Invoice view sessions in SQL."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT
from plankeeper.database.row_ids import HAS_ID
from plankeeper.database.versions import UPDATED_AT
from plankeeper.resources.invoice_view_sessions.schemas import (
    InvoiceViewSession,
    InvoiceViewSessionListQuery,
    InvoiceViewSessionRecord,
    StaleSession,
)

COLUMNS: LiteralString = """
        id, invoice_id, user_id, user_name, session_started, session_ended, last_heartbeat,
        duration_seconds, created_at, active_duration_seconds, engaged_duration_seconds, idle_count"""

LIST = FilteredList(
    "invoice_view_sessions",
    InvoiceViewSessionListQuery,
    sorts=BY_UPDATED_AT,
)


async def list_page(
    db: Executor, plan_manager_id: UUID, query: InvoiceViewSessionListQuery
) -> PageRows[InvoiceViewSession]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


GET_MANY: LiteralString = f"""
    select {COLUMNS}, updated_at from invoice_view_sessions where plan_manager_id = $1 and {HAS_ID}
"""


async def get_many(db: Executor, plan_manager_id: UUID, session_ids: Sequence[UUID]) -> list[InvoiceViewSession]:
    """The sessions that exist among the ids."""
    return await db.rows(InvoiceViewSession, GET_MANY, plan_manager_id, session_ids)


GET: LiteralString = f"select {COLUMNS}, updated_at from invoice_view_sessions where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, session_id: UUID) -> InvoiceViewSession | None:
    return await db.one_or_none(InvoiceViewSession, GET, plan_manager_id, session_id)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {COLUMNS}, updated_at
    from invoice_view_sessions
    where plan_manager_id = $1 and {HAS_ID}
    order by id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, session_ids: Sequence[UUID]
) -> list[InvoiceViewSession]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(InvoiceViewSession, SELECT_FOR_UPDATE, plan_manager_id, session_ids)


COUNT_STARTED_SINCE = """
    select count(*) from invoice_view_sessions
    where plan_manager_id = $1 and id >= $2 and user_id = $3 and in_console
"""


async def count_started_since(tx: Transaction, plan_manager_id: UUID, first_id: UUID, user_id: str) -> int:
    """The number of sessions that the console started for a user since `first_id`."""
    return await tx.one(int, COUNT_STARTED_SINCE, plan_manager_id, first_id, user_id)


INSERT: LiteralString = f"""
    insert into invoice_view_sessions (plan_manager_id, {COLUMNS}, updated_at, in_console)
    select $1, {COLUMNS}, {UPDATED_AT}, true
    from json_populate_recordset(null::invoice_view_sessions, $2)
    returning id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert sessions of the console. `records` is a JSON list of InvoiceViewSession."""
    await tx.execute(INSERT, plan_manager_id, records)


SELECT_CONSOLE_SESSION_FOR_UPDATE: LiteralString = f"""
    select {COLUMNS}, updated_at
    from invoice_view_sessions
    where plan_manager_id = $1 and id = $2 and in_console
    for update
"""


async def select_console_session_for_update(
    tx: Transaction, plan_manager_id: UUID, session_id: UUID
) -> InvoiceViewSession | None:
    """A session of the console, locked until the transaction ends."""
    return await tx.one_or_none(InvoiceViewSession, SELECT_CONSOLE_SESSION_FOR_UPDATE, plan_manager_id, session_id)


LIST_STALE = """
    -- one task ends the sessions of all plan managers
    select plan_manager_id, id
    from invoice_view_sessions
    where in_console and session_ended is null and last_heartbeat < $1
    order by last_heartbeat
    limit $2
"""


async def list_stale(db: Executor, before: datetime, limit: int) -> list[StaleSession]:
    """Open sessions of the console without a heartbeat since `before`, of all plan managers."""
    return await db.rows(StaleSession, LIST_STALE, before, limit)


SELECT_STALE_FOR_UPDATE: LiteralString = f"""
    select {COLUMNS}, updated_at
    from invoice_view_sessions
    where plan_manager_id = $1 and {HAS_ID} and session_ended is null and last_heartbeat < $3
    order by id
    for update skip locked
"""


async def select_stale_for_update(
    tx: Transaction, plan_manager_id: UUID, session_ids: Sequence[UUID], before: datetime
) -> list[InvoiceViewSession]:
    """Those of the sessions that are still open and stale, locked until the transaction ends."""
    return await tx.rows(InvoiceViewSession, SELECT_STALE_FOR_UPDATE, plan_manager_id, session_ids, before)


UPSERT: LiteralString = f"""
    insert into invoice_view_sessions (plan_manager_id, {COLUMNS}, updated_at)
    select $1, {COLUMNS}, {UPDATED_AT}
    from json_populate_recordset(null::invoice_view_sessions, $2)
    on conflict (plan_manager_id, id) do update set
        invoice_id = excluded.invoice_id, user_id = excluded.user_id, user_name = excluded.user_name,
        session_started = excluded.session_started, session_ended = excluded.session_ended,
        last_heartbeat = excluded.last_heartbeat, duration_seconds = excluded.duration_seconds,
        created_at = excluded.created_at, active_duration_seconds = excluded.active_duration_seconds,
        engaged_duration_seconds = excluded.engaged_duration_seconds, idle_count = excluded.idle_count,
        updated_at = excluded.updated_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert sessions or replace existing ones. `records` is a JSON list of InvoiceViewSessionRecord."""
    await tx.execute(UPSERT, plan_manager_id, records)


EXPORT: LiteralString = f"select {COLUMNS} from invoice_view_sessions where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[InvoiceViewSessionRecord]]:
    return tx.stream(InvoiceViewSessionRecord, EXPORT, plan_manager_id)


LIST_OF_PARTICIPANT = """
    select session.id
    from invoices invoice
    join invoice_view_sessions session on session.plan_manager_id = $1 and session.invoice_id = invoice.id
    where invoice.plan_manager_id = $1 and invoice.participant_id = $2
    order by session.id desc
    limit $3
"""


async def list_of_participant(db: Executor, plan_manager_id: UUID, participant_id: UUID, limit: int) -> list[UUID]:
    """The ids of the latest sessions in which invoices of a participant were viewed."""
    return await db.rows(UUID, LIST_OF_PARTICIPANT, plan_manager_id, participant_id, limit)
