"""Statements in SQL, and what they are computed from."""

from collections.abc import AsyncGenerator, Sequence
from datetime import date, datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import later_version
from plankeeper.resources.documents.store import add_object
from plankeeper.resources.invoices.reference_store import IS_OWN
from plankeeper.resources.plans.store import SERVICE_LINES
from plankeeper.resources.statements.computation import SourceLine
from plankeeper.resources.statements.schemas import (
    Statement,
    StatementListQuery,
    StatementRow,
    StatementSend,
    StatementSummary,
)

SENT: LiteralString = """
    coalesce((
        select json_agg(json_build_object('way', send.way, 'recipient', send.recipient, 'sent_at', send.sent_at)
            order by send.id)
        from statement_sends send
        where send.plan_manager_id = $1 and send.statement_id = statements.id
    ), '[]') as sent
"""
SUMMARY: LiteralString = f"""
    id, participant_id, plan_id, to_char(month, 'YYYY-MM') as month, {SENT}, made_at as created_at,
    made_by as created_by, updated_at
"""
LIST = FilteredList(
    "statements",
    StatementListQuery,
    {"participant_id": Filter("participant_id = {}")},
    sorts=BY_UPDATED_AT,
)
ROW: LiteralString = f"""
    id, participant_id, plan_id, month, content, made_at, made_by, updated_at, run_id, pdf_key, pdf_sha256,
    pdf_size, {SENT}
"""


class Recipient(Struct, kw_only=True):
    """The participant of a statement, and the plan manager's contact."""

    name: str
    ndis_number: str | None
    deceased_on: date | None
    office: str
    office_abn: str | None
    office_email: str | None
    office_phone: str | None
    office_dispute: str | None


# The row is locked, so that the participant's plans don't change until the statement is stored, and one is made at a
# time.
GET_RECIPIENT = """
    select concat_ws(' ', first_name, last_name) as name, participant_number as ndis_number, deceased_on, (
            select name from plan_managers where id = $1
        ) as office, settings.abn as office_abn, settings.statement_email as office_email,
        settings.statement_phone as office_phone, settings.statement_dispute as office_dispute
    from participants
    left join lateral (
        select abn, statement_email, statement_phone, statement_dispute from office_settings
        where plan_manager_id = $1
        offset 0
    ) settings on true
    where plan_manager_id = $1 and id = $2
    for update of participants
"""


async def get_recipient(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> Recipient | None:
    return await tx.one_or_none(Recipient, GET_RECIPIENT, plan_manager_id, participant_id)


# One statement, so that all lines are of the same moment. The office's own fee is from a provider with its ABN.
LIST_LINES = f"""
    {SERVICE_LINES}
    select service_lines.participant_id, service_date, service_item_number, component_id, claim_status, wont_claim,
        amount, paid, category, pace_category, pending, is_rest_waiting, invoice_id, service_lines.id, received_at,
        position, service_date_to, invoice_number, is_reimbursement, not is_reimbursement
            and coalesce(provider.is_own, false) as is_fee, provider.name as provider, description, rejection_reason,
        coalesce((
            select json_agg(json_build_object('kind', case kind when 'agency_reversal' then 'reversal'
                    when 'provider_refund' then 'refund' else 'repayment' end, 'amount', adjustment.amount,
                'date', adjustment.date) order by adjustment.date, adjustment.id)
            from adjustments adjustment
            where adjustment.plan_manager_id = $1 and adjustment.invoice_id = service_lines.invoice_id
                and adjustment.line_id = service_lines.id
        ), '[]') as adjustments
    from service_lines
    cross join lateral (
        select invoice_number, is_reimbursement, pm_provider_id
        from invoices
        where plan_manager_id = $1 and id = service_lines.invoice_id
        offset 0
    ) invoice
    cross join lateral (
        select service_date_to, description, rejection_reason
        from invoice_lines
        where plan_manager_id = $1 and invoice_id = service_lines.invoice_id and id = service_lines.id
        offset 0
    ) line
    left join lateral (
        select entity_name as name, {IS_OWN} as is_own
        from providers found
        where plan_manager_id = $1 and id = invoice.pm_provider_id
        offset 0
    ) provider on true
    order by invoice_id, position
"""


async def list_lines(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[SourceLine]:
    """All lines of a participant's invoices, without deleted ones."""
    return await db.rows(SourceLine, LIST_LINES, plan_manager_id, [participant_id])


# The statements of a plan for earlier months that were sent, without a letter or a mail only made.
LIST_SENT_BEFORE = f"""
    select {ROW}
    from statements
    where plan_manager_id = $1 and plan_id = $2 and month < $3 and exists (
        select from statement_sends send where send.plan_manager_id = $1 and send.statement_id = statements.id
    )
    order by month, (
        select max(id::text) from statement_sends send
        where send.plan_manager_id = $1 and send.statement_id = statements.id
    )
"""


async def list_sent_before(db: Executor, plan_manager_id: UUID, plan_id: UUID, month: date) -> list[StatementRow]:
    """The statements of a plan for months before one that were sent, in the order of months and of sending."""
    return await db.rows(StatementRow, LIST_SENT_BEFORE, plan_manager_id, plan_id, month)


INSERT = """
    insert into statements (
        plan_manager_id, id, participant_id, plan_id, month, content, made_at, made_by, updated_at, run_id
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, row: StatementRow) -> None:
    place, content = (row.id, row.participant_id, row.plan_id, row.month), (row.content, row.made_at, row.made_by)
    await tx.execute(INSERT, plan_manager_id, *place, *content, row.updated_at, row.run_id)


GET = f"select {ROW} from statements where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, statement_id: UUID) -> StatementRow | None:
    return await db.one_or_none(StatementRow, GET, plan_manager_id, statement_id)


GET_OF_RUN = f"select {ROW} from statements where plan_manager_id = $1 and run_id = $2 and plan_id = $3"


async def get_of_run(db: Executor, plan_manager_id: UUID, run_id: UUID, plan_id: UUID) -> StatementRow | None:
    """The statement of a plan that a run has made."""
    return await db.one_or_none(StatementRow, GET_OF_RUN, plan_manager_id, run_id, plan_id)


GET_MANY = f"select {SUMMARY} from statements where plan_manager_id = $1 and {HAS_ID}"


async def list_page(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, query: StatementListQuery
) -> PageRows[StatementSummary]:
    return await fetch_page(db, plan_manager_id, query, LIST, _get_many, participant_id=participant_id)


async def _get_many(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[StatementSummary]:
    return await db.rows(StatementSummary, GET_MANY, plan_manager_id, ids)


async def count(db: Executor, plan_manager_id: UUID, participant_id: UUID, query: StatementListQuery) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, participant_id=participant_id))


LIST_LATEST = f"""
    select {SUMMARY}
    from statements
    where plan_manager_id = $1 and participant_id = $2 and ($3::uuid is null or id < $3)
    order by id desc
    limit $4
"""


async def list_latest(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, before: UUID | None, limit: int
) -> list[StatementSummary]:
    """The latest statements of a participant, or those before one."""
    return await db.rows(StatementSummary, LIST_LATEST, plan_manager_id, participant_id, before, limit)


class StatementFile(Struct):
    """A statement with the object of its PDF."""

    id: UUID
    object_key: str


LIST_FILES = """
    select id, pdf_key as object_key
    from statements
    where plan_manager_id = $1 and id > $2 and pdf_key is not null
    order by id
    limit $3
"""


async def list_files(db: Executor, plan_manager_id: UUID, after: UUID, limit: int) -> list[StatementFile]:
    """The statements whose PDF is stored, in order of id."""
    return await db.rows(StatementFile, LIST_FILES, plan_manager_id, after, limit)


EXPORT = f"select {ROW} from statements where plan_manager_id = $1 order by id"


async def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Statement]]:
    """All statements, in order of id."""
    async for rows in tx.stream(StatementRow, EXPORT, plan_manager_id):
        yield [each.statement for each in rows]


INSERT_SEND = """
    insert into statement_sends (plan_manager_id, id, statement_id, way, recipient, sent_at)
    values ($1, $2, $3, $4, $5, $6)
"""
SET_SENT = f"""
    update statements set updated_at = {later_version("$3")} where plan_manager_id = $1 and id = $2
    returning updated_at
"""


async def insert_send(
    tx: Transaction, plan_manager_id: UUID, send_id: UUID, statement_id: UUID, send: StatementSend
) -> datetime:
    """Record that a statement was sent, and return its `updated_at`."""
    await tx.execute(INSERT_SEND, plan_manager_id, send_id, statement_id, send.way, send.recipient, send.sent_at)
    return await tx.one(datetime, SET_SENT, plan_manager_id, statement_id, send.sent_at)


# What is kept: a statement that was sent, and has a line of one of some invoices.
IS_KEPT: LiteralString = """
    exists (select from statement_sends send where send.plan_manager_id = $1 and send.statement_id = statements.id)
    and exists (select from unnest($3::uuid[]) invoice_id where position(invoice_id::text in content) > 0)
"""
LIST_ERASED = f"""
    select id, pdf_key from statements
    where plan_manager_id = $1 and participant_id = $2 and not ({IS_KEPT})
    order by id
"""
DELETE_SENDS = f"delete from statement_sends where plan_manager_id = $1 and {in_array('statement_id', '$2::uuid[]')}"
DELETE = f"delete from statements where plan_manager_id = $1 and {HAS_ID}"


class ErasedStatement(Struct):
    """A statement to delete, and the object of its PDF."""

    id: UUID
    pdf_key: str | None


async def delete_many(
    tx: Transaction, plan_manager_id: UUID, participant_id: UUID, kept_invoice_ids: Sequence[UUID], now: datetime
) -> int:
    """Delete the statements of a participant, except those that were sent and have a line of one of some invoices.

    Returns the number of deleted ones. The objects of their PDFs are deleted soon.
    """
    found = await tx.rows(ErasedStatement, LIST_ERASED, plan_manager_id, participant_id, kept_invoice_ids)
    if found:
        ids = [each.id for each in found]
        await tx.execute(DELETE_SENDS, plan_manager_id, ids)
        await tx.execute(DELETE, plan_manager_id, ids)
    for each in found:
        if each.pdf_key:
            await add_object(tx, plan_manager_id, each.pdf_key, now)
    return len(found)


# A PDF is stored once: of two that are made at the same time, the first one stays.
SET_PDF = """
    update statements set pdf_key = $3, pdf_sha256 = $4, pdf_size = $5
    where plan_manager_id = $1 and id = $2 and pdf_key is null
    returning id
"""


async def set_pdf(
    db: Executor, plan_manager_id: UUID, statement_id: UUID, object_key: str, sha256: str, size: int
) -> bool:
    """Name the object of a statement's PDF. False if it has one, or doesn't exist."""
    file = (object_key, sha256, size)
    return await db.one_or_none(UUID, SET_PDF, plan_manager_id, statement_id, *file) is not None
