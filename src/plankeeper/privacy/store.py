"""SQL of erasures: the data about one participant, and its removal."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.events.activity_store import IS_OF_PARTICIPANT
from plankeeper.privacy.schemas import (
    ExportEvent,
    FileContent,
    HeldParticipant,
    ImportRowReference,
    ImportTexts,
    LegalHold,
    Mention,
    PersonEvent,
    ResponseRecord,
)
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.schemas import DocumentRow

LIST_EVENTS: LiteralString = f"""
    select id, resource_kind, data, previous
    from events
    where plan_manager_id = $1 and {IS_OF_PARTICIPANT}
    order by id
"""


async def list_events(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[PersonEvent]:
    """The events of a participant, of its team members and of its invoices, also if it was deleted."""
    return await db.rows(PersonEvent, LIST_EVENTS, plan_manager_id, str(participant_id))


# The index of IS_OF_PARTICIPANT has the events of a note by the id of the invoice that it is about.
NOTE_EVENTS: LiteralString = """
    invoices invoice
    cross join lateral (
        select *
        from events
        where plan_manager_id = $1 and resource_kind = 'note'
            and resource_kind in ('participant', 'plan', 'team_member', 'invoice', 'note', 'statement')
            and case resource_kind when 'participant' then resource_id
                when 'note' then coalesce(data, previous) #>> '{resource,id}'
                else coalesce(data, previous) ->> 'participant_id' end = invoice.id::text
        offset 0
    ) noted
    where invoice.plan_manager_id = $1 and invoice.participant_id = $2
    order by noted.id
"""
LIST_NOTE_EVENTS: LiteralString = f"select noted.id, noted.resource_kind, noted.data, noted.previous from {NOTE_EVENTS}"


async def list_note_events(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[PersonEvent]:
    """The events of the notes on a participant's invoices."""
    return await db.rows(PersonEvent, LIST_NOTE_EVENTS, plan_manager_id, participant_id)


ERASE_IGNORED_ALERTS = """
    update invoice_ignored_warnings set facts = '{}'
    where plan_manager_id = $1 and error_code = 'flagged_participant' and facts <> '{}'
        and invoice_id in (select id from invoices where plan_manager_id = $1 and participant_id = $2)
"""


async def erase_ignored_alerts(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    """Erase the texts of alerts that people have ignored on a participant's invoices."""
    await tx.execute(ERASE_IGNORED_ALERTS, plan_manager_id, participant_id)


DELETE_RESPONSES_WITH = """
    with deleted as (
        delete from idempotency_records
        where plan_manager_id = $1 and (strpos(path, $2) > 0 or position(convert_to($2, 'UTF8') in body) > 0)
        returning path
    )
    select count(*) from deleted
"""


async def delete_responses_with(tx: Transaction, plan_manager_id: UUID, id_: UUID) -> int:
    """Delete the stored responses with an id in their path or their body. Returns their number."""
    return await tx.one(int, DELETE_RESPONSES_WITH, plan_manager_id, str(id_))


HAS_EVENTS: LiteralString = f"select exists (select from events where plan_manager_id = $1 and {IS_OF_PARTICIPANT})"


async def has_events(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    return await db.one(bool, HAS_EVENTS, plan_manager_id, str(participant_id))


IS_ERASED: LiteralString = f"""
    select not exists (select from participants where plan_manager_id = $1 and id = $2::text::uuid)
        and exists (
            select from events where plan_manager_id = $1 and {IS_OF_PARTICIPANT} and type = 'participant.erased'
        )
"""


async def is_erased(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    """Whether an erasure deleted the participant."""
    return await db.one(bool, IS_ERASED, plan_manager_id, str(participant_id))


DELETE_UNUSED_USERS = f"""
    delete from users
    where plan_manager_id = $1 and {HAS_ID}
        and not exists (select from team_members where plan_manager_id = $1 and user_id = users.id)
        and not exists (select from account_managers where plan_manager_id = $1 and account_managers.id = users.id)
        and not exists (
            select from trash entry cross join lateral jsonb_array_elements(entry.snapshot -> 'team') as member
            where entry.plan_manager_id = $1 and member ->> 'user_id' = users.id::text
        )
"""


async def delete_unused_users(tx: Transaction, plan_manager_id: UUID, user_ids: Sequence[UUID]) -> None:
    """Delete the users who are neither on a team, also one in the trash, nor account managers."""
    await tx.execute(DELETE_UNUSED_USERS, plan_manager_id, user_ids)


LIST_USERS = f"select id from users where plan_manager_id = $1 and {HAS_ID} order by id"


async def list_users(db: Executor, plan_manager_id: UUID, user_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the users that exist."""
    return await db.rows(UUID, LIST_USERS, plan_manager_id, user_ids)


# A function of the owner: the serving role can't update events.
ERASE_EVENTS = "select erase_events($1, $2, $3, $4)"


async def erase_events(
    tx: Transaction,
    plan_manager_id: UUID,
    event_ids: Sequence[UUID],
    kept_fields: Sequence[str] | None,
    pattern: str | None,
) -> int:
    """Set fields of the resources in events to null, and texts that match a pattern to `[erased]`.

    `kept_fields` stay; None keeps all that don't match the pattern. Returns the number of events that changed.
    """
    return await tx.one(int, ERASE_EVENTS, plan_manager_id, event_ids, kept_fields, pattern)


LIST_RESPONSES = """
    select original_key_id, path, idempotency_key, body
    from idempotency_records
    where plan_manager_id = $1 and (strpos(path, $2) > 0 or position(convert_to($2, 'UTF8') in body) > 0)
    order by created_at
"""


async def list_responses(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[ResponseRecord]:
    """The stored responses with the participant's id in their path or their body."""
    return await db.rows(ResponseRecord, LIST_RESPONSES, plan_manager_id, str(participant_id))


IS_RESPONSE: LiteralString = "plan_manager_id = $1 and original_key_id = $2 and path = $3 and idempotency_key = $4"
UPDATE_RESPONSE: LiteralString = f"update idempotency_records set body = $5 where {IS_RESPONSE}"
DELETE_RESPONSE: LiteralString = f"delete from idempotency_records where {IS_RESPONSE}"


async def update_response(tx: Transaction, plan_manager_id: UUID, record: ResponseRecord) -> None:
    """Replace the body of a stored response."""
    key = (record.original_key_id, record.path, record.idempotency_key)
    await tx.execute(UPDATE_RESPONSE, plan_manager_id, *key, record.body)


async def delete_response(tx: Transaction, plan_manager_id: UUID, record: ResponseRecord) -> None:
    await tx.execute(DELETE_RESPONSE, plan_manager_id, record.original_key_id, record.path, record.idempotency_key)


# Responses of receivers can repeat the messages that they received.
ERASE_ATTEMPT_DETAILS = """
    with found as (
        select id from webhook_deliveries
        where plan_manager_id = $1 and attempt_details <> '[]'
            and (event_id = any ($2::uuid[]) or attempt_details::text ~* $3)
        order by id
        for no key update
    ), erased as (
        update webhook_deliveries delivery set attempt_details = '[]'
        from found
        where delivery.plan_manager_id = $1 and delivery.id = found.id
        returning delivery.id
    )
    select count(*) from erased
"""


async def erase_attempt_details(
    tx: Transaction, plan_manager_id: UUID, event_ids: Sequence[UUID], pattern: str | None
) -> int:
    """Delete the details of attempts to send events, and responses that match a pattern; return their number.

    It reads all deliveries of the plan manager.
    """
    return await tx.one(int, ERASE_ATTEMPT_DETAILS, plan_manager_id, event_ids, pattern)


IS_OF_THEIR_INVOICE: LiteralString = "in (select id from invoices where plan_manager_id = $1 and participant_id = $2)"
ERASE_INVOICE_TEXTS = """
    with erased as (
        update invoices set
            invoice_number = case when invoice_number ~* $3 then '[erased]' else invoice_number end,
            s3_key = case when s3_key ~* $3 then '[erased]' else s3_key end,
            email_message_id = case when email_message_id ~* $3 then '[erased]' else email_message_id end,
            hold_reason = case when hold_reason ~* $3 then '[erased]' else hold_reason end,
            approval_reason = case when approval_reason ~* $3 then '[erased]' else approval_reason end,
            closing_reason = case when closing_reason ~* $3 then '[erased]' else closing_reason end,
            external_id = case when external_id ~* $3 then null else external_id end, -- it is unique
            ambiguous_participant_number = case
                when ambiguous_participant_number ~* $3 then null else ambiguous_participant_number end,
            updated_at = statement_timestamp()
        where plan_manager_id = $1 and participant_id = $2
            and (invoice_number ~* $3 or s3_key ~* $3 or email_message_id ~* $3 or hold_reason ~* $3
                or approval_reason ~* $3 or closing_reason ~* $3 or external_id ~* $3
                or ambiguous_participant_number ~* $3)
        returning id
    )
    select count(*) from erased
"""
ERASE_LINE_TEXTS: LiteralString = f"""
    with erased as (
        update invoice_lines set
            description = case when description ~* $3 then '[erased]' else description end,
            service_item_number = case when service_item_number ~* $3 then '[erased]' else service_item_number end,
            claim_batch_ref = case when claim_batch_ref ~* $3 then '[erased]' else claim_batch_ref end,
            claim_number = case when claim_number ~* $3 then '[erased]' else claim_number end,
            payment_ref = case when payment_ref ~* $3 then '[erased]' else payment_ref end,
            rejection_reason = case when rejection_reason ~* $3 then '[erased]' else rejection_reason end,
            closing_reason = case when closing_reason ~* $3 then '[erased]' else closing_reason end
        where plan_manager_id = $1 and invoice_id {IS_OF_THEIR_INVOICE} and (
            description ~* $3 or service_item_number ~* $3 or claim_batch_ref ~* $3 or claim_number ~* $3
            or payment_ref ~* $3 or rejection_reason ~* $3 or closing_reason ~* $3
        )
        returning id
    )
    select count(*) from erased
"""
ERASE_REASONS: LiteralString = f"""
    with erased as (
        update invoice_ignored_warnings set
            reason = case when reason ~* $3 then '[erased]' else reason end, facts = '{{}}'
        where plan_manager_id = $1 and invoice_id {IS_OF_THEIR_INVOICE}
            and (reason ~* $3 or array_to_string(facts, ' ') ~* $3)
        returning invoice_id
    )
    select count(*) from erased
"""


ERASE_FILE_NAMES_OF_DOCUMENTS: LiteralString = f"""
    with erased as (
        update documents set file_name = '[erased]'
        where plan_manager_id = $1 and invoice_id {IS_OF_THEIR_INVOICE} and file_name ~* $3
        returning id
    )
    select count(*) from erased
"""


async def erase_invoice_texts(tx: Transaction, plan_manager_id: UUID, participant_id: UUID, pattern: str) -> int:
    """Replace the texts of a participant's invoices that match a pattern, and return the number of changed rows."""
    changed = await tx.one(int, ERASE_INVOICE_TEXTS, plan_manager_id, participant_id, pattern)
    changed += await tx.one(int, ERASE_LINE_TEXTS, plan_manager_id, participant_id, pattern)
    changed += await tx.one(int, ERASE_FILE_NAMES_OF_DOCUMENTS, plan_manager_id, participant_id, pattern)
    return changed + await tx.one(int, ERASE_REASONS, plan_manager_id, participant_id, pattern)


LOCK_INVOICES = "select id from invoices where plan_manager_id = $1 and participant_id = $2 order by id for update"


async def lock_invoices(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> list[UUID]:
    """Lock a participant's invoices, and with them their lines, claims and documents, until the transaction ends."""
    return await tx.rows(UUID, LOCK_INVOICES, plan_manager_id, participant_id)


LIST_DOCUMENTS: LiteralString = f"""
    select {document_store.COLUMNS} from documents
    where plan_manager_id = $1 and invoice_id {IS_OF_THEIR_INVOICE}
    order by id
"""


async def list_documents(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[DocumentRow]:
    """All documents of a participant's invoices, also replaced ones."""
    return await db.rows(DocumentRow, LIST_DOCUMENTS, plan_manager_id, participant_id)


IS_OF_OTHER_INVOICE: LiteralString = f"invoice_id {IS_OF_THEIR_INVOICE} and invoice_id <> all ($3::uuid[])"
DELETE_APPROVAL_REQUESTS: LiteralString = (
    f"delete from approval_requests where plan_manager_id = $1 and {IS_OF_OTHER_INVOICE}"
)
DELETE_APPROVAL_LINKS: LiteralString = (
    f"delete from approval_links where plan_manager_id = $1 and {IS_OF_OTHER_INVOICE}"
)


async def delete_approval_links(
    tx: Transaction, plan_manager_id: UUID, participant_id: UUID, kept_invoice_ids: Sequence[UUID]
) -> None:
    """Delete the requests for the approval of a participant's invoices, with their links, except those of some."""
    await tx.execute(DELETE_APPROVAL_REQUESTS, plan_manager_id, participant_id, kept_invoice_ids)
    await tx.execute(DELETE_APPROVAL_LINKS, plan_manager_id, participant_id, kept_invoice_ids)


CLEAR_DOCUMENT_KEYS: LiteralString = f"""
    update invoices set s3_key = null, updated_at = statement_timestamp()
    where plan_manager_id = $1 and {HAS_ID}
"""


async def delete_documents(
    tx: Transaction, plan_manager_id: UUID, participant_id: UUID, kept_invoice_ids: Sequence[UUID], now: datetime
) -> int:
    """Delete the documents of a participant's invoices, except those of some, and return the number of deleted ones.

    Their objects are deleted soon.
    """
    listed = await list_documents(tx, plan_manager_id, participant_id)
    documents = [each for each in listed if each.invoice_id not in kept_invoice_ids]
    if documents:
        await document_store.delete(tx, plan_manager_id, documents, now)
        invoice_ids = sorted({each.invoice_id for each in documents if each.invoice_id})
        await tx.execute(CLEAR_DOCUMENT_KEYS, plan_manager_id, invoice_ids)
    return len(documents)


# Parameters whose values are words of the program, such as `status=Active`.
CHOICE_PARAMETERS: LiteralString = (
    "action|active|actor|approval_status|claim_status|deleted|list|sort|state|status|view|views|warning"
)
# The parameters' names and these values are never names of people. Other values could be.
NAMES_AND_CHOICES: LiteralString = rf"(^|&)(?:(?:{CHOICE_PARAMETERS})=[\w,.-]*(?=&|$)|[a-z_]+=)"
ERASE_QUERIES: LiteralString = f"""
    with erased as (
        update access_records set query = '[erased]'
        where plan_manager_id = $1 and query ~* $2
            and regexp_replace(query, '{NAMES_AND_CHOICES}', '\\1', 'g') ~* $2
        returning id
    )
    select count(*) from erased
"""


async def erase_queries(tx: Transaction, plan_manager_id: UUID, pattern: str) -> int:
    """Replace the queries of access records whose texts match a pattern, and return their number."""
    return await tx.one(int, ERASE_QUERIES, plan_manager_id, pattern)


# The index of types has the events with a position, and the queue those that wait for one.
LIST_EXPORTS = """
    select id, data ->> 'filter' as filter
    from events
    where plan_manager_id = $1 and resource_kind = 'export' and data ->> 'filter' is not null and id in (
        select event_id from event_order
        where plan_manager_id = $1 and type = (select code from event_types where name = 'export.created')
        union all
        select unnest(event_ids) from event_queue where plan_manager_id = $1 and 'export.created' = any (types)
    )
    order by id
"""


async def list_exports(db: Executor, plan_manager_id: UUID) -> list[ExportEvent]:
    """The events of exports with a filter."""
    return await db.rows(ExportEvent, LIST_EXPORTS, plan_manager_id)


LIST_MENTIONS = """
    select "table", record_id, "column", text
    from (
        select 'participants' as "table", id::text as record_id, 'reason_for_leaving' as "column",
            reason_for_leaving as text
        from participants where plan_manager_id = $1
        union all
        select 'team_members', participant_id || '/' || id, 'note', note from team_members where plan_manager_id = $1
        union all
        select 'plans', plan.id::text, 'components',
            concat_ws(', ', component ->> 'name', component -> 'spent_elsewhere' ->> 'source')
        from plans plan cross join lateral jsonb_array_elements(plan.components) as component
        where plan.plan_manager_id = $1
        union all
        select 'notes', id::text, 'text', text from notes where plan_manager_id = $1
        union all
        select 'invoices', invoice.id::text, each."column", each.text
        from invoices invoice cross join lateral (
            values ('hold_reason', hold_reason), ('approval_reason', approval_reason),
                ('closing_reason', closing_reason)
        ) each ("column", text)
        where invoice.plan_manager_id = $1
        union all
        select 'invoice_lines', line.invoice_id::text, each."column", each.text
        from invoice_lines line cross join lateral (
            values ('description', description), ('rejection_reason', rejection_reason),
                ('closing_reason', closing_reason)
        ) each ("column", text)
        where line.plan_manager_id = $1
        union all
        -- the person's own claims, adjustments and payments can be kept with their texts
        select 'claims', id::text, 'reason', reason
        from claims
        where plan_manager_id = $1
            and invoice_id not in (select id from invoices where plan_manager_id = $1 and participant_id = $4)
        union all
        select 'adjustments', id::text, 'reason', reason
        from adjustments
        where plan_manager_id = $1
            and invoice_id not in (select id from invoices where plan_manager_id = $1 and participant_id = $4)
        union all
        select 'claim_batches', id::text, 'cancel_reason', cancel_reason
        from claim_batches where plan_manager_id = $1
        union all
        select 'payments', id::text, 'return_reason', return_reason
        from payments
        where plan_manager_id = $1 and (payee_kind <> 'participant' or payee_id <> $4)
        union all
        select 'payment_runs', id::text, 'cancel_reason', cancel_reason
        from payment_runs where plan_manager_id = $1
        union all
        select 'bank_detail_changes', id::text, 'note', note
        from bank_detail_changes
        where plan_manager_id = $1 and (payee_kind <> 'participant' or payee_id <> $4)
        union all
        select 'invoice_ignored_warnings', invoice_id::text, 'reason',
            concat_ws(' ', reason, array_to_string(facts, ' '))
        from invoice_ignored_warnings where plan_manager_id = $1
        union all
        select 'webhook_endpoints', id::text, 'description', description
        from webhook_endpoints where plan_manager_id = $1
        union all
        select 'note_types', id::text, 'note_type', note_type from note_types where plan_manager_id = $1
        union all
        select 'saved_views', id::text, 'name', name from saved_views where plan_manager_id = $1
        union all
        select 'trash', id::text, 'reason_for_leaving', snapshot -> 'record' ->> 'reason_for_leaving'
        from trash where plan_manager_id = $1
        union all
        select 'trash', entry.id::text, 'note', member ->> 'note'
        from trash entry cross join lateral jsonb_array_elements(entry.snapshot -> 'team') as member
        where entry.plan_manager_id = $1
        union all
        select 'trash', entry.id::text, 'text', note ->> 'text'
        from trash entry cross join lateral jsonb_array_elements(entry.snapshot -> 'notes') as note
        where entry.plan_manager_id = $1
    ) texts
    where text ~* $2
    limit $3
"""


async def list_mentions(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, pattern: str, limit: int
) -> list[Mention]:
    """Free texts of other records that match the pattern, after the texts about the person have been erased."""
    return await db.rows(Mention, LIST_MENTIONS, plan_manager_id, pattern, limit, participant_id)


LIST_EVENT_MENTIONS: LiteralString = f"""
    select 'events' as "table", id::text as record_id, key as "column", value as text
    from events
    cross join lateral (
        select key, value from json_each_text(data) union select key, value from json_each_text(previous)
    ) each_field
    where plan_manager_id = $1 and resource_kind in ('participant', 'team_member', 'invoice', 'note')
        and key in ('note', 'reason_for_leaving', 'text') and value ~* $3
        and not coalesce({IS_OF_PARTICIPANT}, false)
    limit $4
"""


async def list_event_mentions(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, pattern: str, limit: int
) -> list[Mention]:
    """Notes in events of other participants that match the pattern. It reads all events of the plan manager."""
    return await db.rows(Mention, LIST_EVENT_MENTIONS, plan_manager_id, str(participant_id), pattern, limit)


HOLD_COLUMNS: LiteralString = "participant_id, reason, created_at, created_by"

GET_HOLD = f"select {HOLD_COLUMNS} from legal_holds where plan_manager_id = $1 and participant_id = $2"


async def get_hold(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> LegalHold | None:
    return await db.one_or_none(LegalHold, GET_HOLD, plan_manager_id, participant_id)


LIST_HOLDS: LiteralString = f"""
    select {HOLD_COLUMNS}, nullif(concat_ws(' ', coalesce(preferred_name, first_name), last_name), '') as name
    from legal_holds hold
    left join lateral (
        select first_name, preferred_name, last_name from participants
        where plan_manager_id = $1 and id = hold.participant_id
    ) participant on true
    where plan_manager_id = $1
    order by created_at desc, participant_id
    limit $2
"""


async def list_newest_holds(db: Executor, plan_manager_id: UUID, limit: int) -> list[HeldParticipant]:
    return await db.rows(HeldParticipant, LIST_HOLDS, plan_manager_id, limit)


INSERT_HOLD: LiteralString = f"""
    insert into legal_holds (plan_manager_id, {HOLD_COLUMNS}) values ($1, $2, $3, $4, $5)
    on conflict do nothing
    returning true
"""


async def insert_hold(tx: Transaction, plan_manager_id: UUID, hold: LegalHold) -> bool:
    """False if there is one already."""
    values: tuple[UUID, str, datetime, str] = (hold.participant_id, hold.reason, hold.created_at, hold.created_by)
    return await tx.one_or_none(bool, INSERT_HOLD, plan_manager_id, *values) is True


DELETE_HOLD: LiteralString = f"""
    delete from legal_holds where plan_manager_id = $1 and participant_id = $2 returning {HOLD_COLUMNS}
"""


async def delete_hold(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> LegalHold | None:
    """Delete a hold and return it; None if there is none."""
    return await tx.one_or_none(LegalHold, DELETE_HOLD, plan_manager_id, participant_id)


LIST_FILES = """
    select id, name, created_at, created_by, content from import_files
    where plan_manager_id = $1
    order by id
"""
DELETE_FILES = f"delete from import_files where plan_manager_id = $1 and {HAS_ID}"


async def list_files(db: Executor, plan_manager_id: UUID) -> list[FileContent]:
    """The uploaded files. The type of their contents is only guessed."""
    return await db.rows(FileContent, LIST_FILES, plan_manager_id)


async def delete_files(tx: Transaction, plan_manager_id: UUID, file_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_FILES, plan_manager_id, file_ids)


# A row of an import is about a person by its record, or by the texts that a check or a left out row keeps. The rows are
# listed before they are deleted, because on Citus a deletion can't convert arrays and JSON to text.
IS_ROW_OF_PERSON: LiteralString = """
        plan_manager_id = $1 and (
            record_id = $2 or starts_with(record_id, $2 || '/')
            or concat_ws(' ', array_to_string(cells, ' '), before, after, problems) ~* $3
        )"""
LIST_UNFINISHED_IMPORTS: LiteralString = f"""
    select id from imports
    where plan_manager_id = $1 and state in ('uploaded', 'checked') and (
        id = any ($4::uuid[]) or id in (select import_id from import_rows where {IS_ROW_OF_PERSON})
    )
"""
DELETE_IMPORTS = f"delete from imports where plan_manager_id = $1 and {HAS_ID}"
LIST_LEFT_OUT_ROWS: LiteralString = f"""
    select import_id, line_number from import_rows
    where outcome in ('rejected', 'unconfirmed') and {IS_ROW_OF_PERSON}
"""
DELETE_ROWS = """
    delete from import_rows
    where plan_manager_id = $1
        and (import_id, line_number) in (select * from unnest($2::uuid[], $3::integer[]) as found (import_id, number))
"""


async def erase_import_rows(
    tx: Transaction, plan_manager_id: UUID, participant_id: UUID, row_pattern: str, file_ids: Sequence[UUID]
) -> int:
    """Delete the unfinished imports of a person or of deleted files, and the rows about the person that were left out.

    Where a check shows the person, the whole import is deleted: the file can be uploaded again. Returns the number of
    deleted imports and rows.
    """
    person = (str(participant_id), row_pattern)
    imports = await tx.rows(UUID, LIST_UNFINISHED_IMPORTS, plan_manager_id, *person, file_ids)
    await tx.execute(DELETE_IMPORTS, plan_manager_id, imports)
    rows = await tx.rows(ImportRowReference, LIST_LEFT_OUT_ROWS, plan_manager_id, *person)
    ids, numbers = [each.import_id for each in rows], [each.line_number for each in rows]
    await tx.execute(DELETE_ROWS, plan_manager_id, ids, numbers)
    return len(imports) + len(rows)


LIST_IMPORT_TEXTS = """
    select id, file_name ~* $2 as in_name, coalesce(array_to_string(columns, ' ') ~* $2, false) as in_columns
    from imports
    where plan_manager_id = $1 and (file_name ~* $2 or array_to_string(columns, ' ') ~* $2)
"""
ERASE_FILE_NAMES = f"update imports set file_name = '[erased]' where plan_manager_id = $1 and {HAS_ID}"
ERASE_COLUMNS = f"""
    update imports set columns = null, mapping = null where plan_manager_id = $1 and {HAS_ID}
"""
DELETE_MAPPINGS = """
    delete from import_mappings where plan_manager_id = $1 and column_name = any ($2::text[]) returning column_name
"""


async def erase_import_texts(tx: Transaction, plan_manager_id: UUID, pattern: str, column_names: Sequence[str]) -> int:
    """Erase the names of files and columns that match a pattern, and forget the folded names of columns."""
    imports = await tx.rows(ImportTexts, LIST_IMPORT_TEXTS, plan_manager_id, pattern)
    await tx.execute(ERASE_FILE_NAMES, plan_manager_id, [each.id for each in imports if each.in_name])
    await tx.execute(ERASE_COLUMNS, plan_manager_id, [each.id for each in imports if each.in_columns])
    return len(imports) + len(await tx.rows(str, DELETE_MAPPINGS, plan_manager_id, column_names))
