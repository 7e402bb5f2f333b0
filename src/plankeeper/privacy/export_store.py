"""SQL for the export of the data about one participant: rows of all tables as JSON."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.access.access_log.store import IDS_ABOUT
from plankeeper.access.request_log.schemas import RequestBatch
from plankeeper.database.client import Executor
from plankeeper.database.row_ids import HAS_ID
from plankeeper.events.activity_store import IS_OF_PARTICIPANT
from plankeeper.privacy.store import IS_ROW_OF_PERSON, NOTE_EVENTS


class StoredRow(Struct):
    """A row as JSON, without the plan manager's id."""

    content: Raw


def _contents(rows: Sequence[StoredRow]) -> list[Raw]:
    return [each.content for each in rows]


ROW: LiteralString = "select (to_jsonb(r) - 'plan_manager_id')::json as content from"
GET_PARTICIPANT: LiteralString = f"{ROW} participants r where plan_manager_id = $1 and id = $2"
LIST_TEAM_MEMBERS = """
    select (to_jsonb(member) - 'plan_manager_id' || jsonb_build_object('permissions', array(
        select permission.name
        from team_member_permissions granted join permissions permission on permission.id = granted.permission_id
        where granted.plan_manager_id = $1 and granted.participant_id = $2 and granted.team_member_id = member.id
        order by permission."order"
    )))::json as content
    from team_members member
    where plan_manager_id = $1 and participant_id = $2
    order by id
"""
LIST_PLANS: LiteralString = f"{ROW} plans r where plan_manager_id = $1 and participant_id = $2 order by start_date, id"
LIST_NOTES: LiteralString = f"""
    {ROW} notes r
    where plan_manager_id = $1 and (
        resource_kind = 'participant' and resource_id = $2
        or resource_kind = 'invoice'
            and resource_id in (select id from invoices where plan_manager_id = $1 and participant_id = $2)
    )
    order by id
"""
LIST_INVOICES: LiteralString = f"{ROW} invoices r where plan_manager_id = $1 and participant_id = $2 order by id"
OF_INVOICES: LiteralString = (
    "r where plan_manager_id = $1"
    " and invoice_id in (select id from invoices where plan_manager_id = $1 and participant_id = $2)"
)
LIST_INVOICE_LINES: LiteralString = f"{ROW} invoice_lines {OF_INVOICES} order by invoice_id, position"
LIST_CLAIMS: LiteralString = f"{ROW} claims {OF_INVOICES} order by id"
LIST_ADJUSTMENTS: LiteralString = f"{ROW} adjustments {OF_INVOICES} order by id"
# What is paid for the lines, with the payment: it can pay lines of others, too.
LIST_PAYMENT_LINES: LiteralString = f"""
    {ROW} (
        select line.*, payment.run_id, payment.payee_kind, payment.payee_id, payment.reference, payment.state,
            payment.returned_on
        from (select * from payment_lines {OF_INVOICES}) line
        cross join lateral (
            select * from payments where plan_manager_id = $1 and id = line.payment_id offset 0
        ) payment
    ) r
    order by payment_id, claim_id
"""
LIST_FEE_TAKING_LINES: LiteralString = f"{ROW} fee_taking_lines {OF_INVOICES} order by id"
LIST_STATEMENTS: LiteralString = f"{ROW} statements r where plan_manager_id = $1 and participant_id = $2 order by id"
LIST_STATEMENT_SENDS: LiteralString = f"""
    {ROW} statement_sends r
    where plan_manager_id = $1
        and statement_id in (select id from statements where plan_manager_id = $1 and participant_id = $2)
    order by id
"""
LIST_STATEMENT_RUN_ITEMS: LiteralString = (
    f"{ROW} statement_run_items r where plan_manager_id = $1 and participant_id = $2 order by id"
)
LIST_STATEMENT_RUN_RECIPIENTS: LiteralString = f"""
    {ROW} statement_run_recipients r
    where plan_manager_id = $1
        and item_id in (select id from statement_run_items where plan_manager_id = $1 and participant_id = $2)
    order by id
"""
# Without the encrypted number.
LIST_PAYMENTS: LiteralString = (
    "select (to_jsonb(r) - 'plan_manager_id' - 'account')::json as content"
    " from payments r where plan_manager_id = $1 and payee_kind = 'participant' and payee_id = $2 order by id"
)
LIST_IGNORED_WARNINGS: LiteralString = f"{ROW} invoice_ignored_warnings {OF_INVOICES} order by ignored_at"
LIST_APPROVAL_LINKS: LiteralString = (
    "select (to_jsonb(r) - '{plan_manager_id,token_hash,email_hash,content_hash}'::text[])::json as content"
    f" from approval_links {OF_INVOICES} order by id"
)
OF_PAYEE: LiteralString = "r where plan_manager_id = $1 and payee_kind = 'participant' and payee_id = $2"
# Without the encrypted numbers, and without what finds equal ones.
LIST_BANK_DETAILS: LiteralString = (
    "select (to_jsonb(r)"
    " - '{plan_manager_id,current_account,current_hash,proposed_account,proposed_hash}'::text[])::json"
    f" as content from bank_details {OF_PAYEE}"
)
LIST_BANK_DETAIL_CHANGES: LiteralString = f"{ROW} bank_detail_changes {OF_PAYEE} order by id"
LIST_VIEW_SESSIONS: LiteralString = f"{ROW} invoice_view_sessions {OF_INVOICES} order by id"
LIST_TRASH_ENTRIES: LiteralString = (
    f"{ROW} trash r where plan_manager_id = $1 and kind = 'participant' and resource_id = $2 order by id"
)
LIST_EVENTS: LiteralString = f"{ROW} events r where plan_manager_id = $1 and {IS_OF_PARTICIPANT} order by id"
LIST_NOTE_EVENTS: LiteralString = f"select (to_jsonb(noted) - 'plan_manager_id')::json as content from {NOTE_EVENTS}"
LIST_EVENTS_OF_VIEW_SESSIONS: LiteralString = (
    f"{ROW} events r where plan_manager_id = $1"
    " and resource_kind = 'invoice_view_session' and resource_id = any ($2::text[]) order by id"
)


# Without the ids of the others on a page.
LIST_ACCESS_RECORDS: LiteralString = f"""
    select (to_jsonb(r) - 'plan_manager_id' - 'resource_ids')::json as content
    from access_records r
    where plan_manager_id = $1 and id in ({IDS_ABOUT}
    )
    order by id
"""


async def get_participant(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> Raw | None:
    row = await db.one_or_none(StoredRow, GET_PARTICIPANT, plan_manager_id, participant_id)
    return None if row is None else row.content


async def list_team_members(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_TEAM_MEMBERS, plan_manager_id, participant_id))


async def list_plans(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_PLANS, plan_manager_id, participant_id))


async def list_notes(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The notes on the participant and on its invoices."""
    return _contents(await db.rows(StoredRow, LIST_NOTES, plan_manager_id, participant_id))


async def list_invoices(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_INVOICES, plan_manager_id, participant_id))


async def list_invoice_lines(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_INVOICE_LINES, plan_manager_id, participant_id))


async def list_claims(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The claims of the lines of the participant's invoices."""
    return _contents(await db.rows(StoredRow, LIST_CLAIMS, plan_manager_id, participant_id))


async def list_adjustments(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The reversals, refunds and repayments of the lines of the participant's invoices."""
    return _contents(await db.rows(StoredRow, LIST_ADJUSTMENTS, plan_manager_id, participant_id))


async def list_payment_lines(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """What payments pay of the lines of the participant's invoices."""
    return _contents(await db.rows(StoredRow, LIST_PAYMENT_LINES, plan_manager_id, participant_id))


async def list_fee_taking_lines(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """What the office has taken of the lines of the participant's invoices, as its own fees."""
    return _contents(await db.rows(StoredRow, LIST_FEE_TAKING_LINES, plan_manager_id, participant_id))


async def list_payments(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The payments to the participant, with only the endings of account numbers."""
    return _contents(await db.rows(StoredRow, LIST_PAYMENTS, plan_manager_id, participant_id))


async def list_ignored_warnings(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_IGNORED_WARNINGS, plan_manager_id, participant_id))


async def list_approval_links(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The links by mail to approve the participant's invoices, without what makes them work."""
    return _contents(await db.rows(StoredRow, LIST_APPROVAL_LINKS, plan_manager_id, participant_id))


async def list_bank_details(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The participant's bank details, with only the endings of account numbers."""
    return _contents(await db.rows(StoredRow, LIST_BANK_DETAILS, plan_manager_id, participant_id))


async def list_bank_detail_changes(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_BANK_DETAIL_CHANGES, plan_manager_id, participant_id))


async def list_view_sessions(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_VIEW_SESSIONS, plan_manager_id, participant_id))


async def list_trash_entries(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The entries of the trash with the participant and its team."""
    return _contents(await db.rows(StoredRow, LIST_TRASH_ENTRIES, plan_manager_id, participant_id))


async def list_events(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The events of the participant, of its team members and of its invoices."""
    return _contents(await db.rows(StoredRow, LIST_EVENTS, plan_manager_id, str(participant_id)))


async def list_note_events(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """The events of the notes on the participant's invoices."""
    return _contents(await db.rows(StoredRow, LIST_NOTE_EVENTS, plan_manager_id, participant_id))


async def list_events_of_view_sessions(db: Executor, plan_manager_id: UUID, session_ids: Sequence[str]) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_EVENTS_OF_VIEW_SESSIONS, plan_manager_id, session_ids))


async def list_access_records(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Raw]:
    """The access records of the participant and its invoices, and those of pages of lists that showed them."""
    return _contents(await db.rows(StoredRow, LIST_ACCESS_RECORDS, plan_manager_id, ids))


LIST_USERS: LiteralString = f"{ROW} users r where plan_manager_id = $1 and {HAS_ID} order by id"
LIST_DELIVERIES: LiteralString = (
    f"{ROW} webhook_deliveries r where plan_manager_id = $1 and event_id = any ($2::uuid[]) order by id"
)
LIST_REQUEST_BATCHES = """
    select id, requests from api_request_batches
    where plan_manager_id = $1 and strpos(requests::text, $2) > 0
    order by id
"""


# With the file and the person who imported it; a record's id stays after the person was deleted.
LIST_IMPORT_ROWS: LiteralString = (
    f"{ROW} (select own.*, file_name, created_by, created_by_name, created_at, imported_at, state"
    f" from (select * from import_rows where {IS_ROW_OF_PERSON}) own"
    " join imports on imports.plan_manager_id = $1 and imports.id = own.import_id) r order by import_id, line_number"
)


async def list_import_rows(db: Executor, plan_manager_id: UUID, participant_id: UUID, pattern: str) -> list[Raw]:
    """The rows of imports about the participant, or with texts that match a pattern."""
    return _contents(await db.rows(StoredRow, LIST_IMPORT_ROWS, plan_manager_id, str(participant_id), pattern))


async def list_users(db: Executor, plan_manager_id: UUID, user_ids: Sequence[UUID]) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_USERS, plan_manager_id, user_ids))


async def list_deliveries(db: Executor, plan_manager_id: UUID, event_ids: Sequence[UUID]) -> list[Raw]:
    """The deliveries of events to webhook endpoints. It reads all deliveries of the plan manager."""
    return _contents(await db.rows(StoredRow, LIST_DELIVERIES, plan_manager_id, event_ids))


async def list_request_batches(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[RequestBatch]:
    """Logged requests, among which are some with the participant's id in their path."""
    return await db.rows(RequestBatch, LIST_REQUEST_BATCHES, plan_manager_id, str(participant_id))


async def list_statements(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_STATEMENTS, plan_manager_id, participant_id))


async def list_statement_run_items(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """What runs of statements have done for the participant's plans."""
    return _contents(await db.rows(StoredRow, LIST_STATEMENT_RUN_ITEMS, plan_manager_id, participant_id))


async def list_statement_run_recipients(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    return _contents(await db.rows(StoredRow, LIST_STATEMENT_RUN_RECIPIENTS, plan_manager_id, participant_id))


async def list_statement_sends(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Raw]:
    """To whom the participant's statements were sent."""
    return _contents(await db.rows(StoredRow, LIST_STATEMENT_SENDS, plan_manager_id, participant_id))
