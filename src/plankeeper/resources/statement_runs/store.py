"""Runs of statements, their items and their recipients in SQL."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.dates import Month
from plankeeper.core.json import to_json
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import UPDATED_AT, later_version
from plankeeper.resources.statement_runs.rules import Outcome
from plankeeper.resources.statement_runs.schemas import (
    DueOffice,
    DuePlan,
    ItemRow,
    Letter,
    Person,
    RecipientRow,
    RecipientState,
    RunningRun,
    StatementRun,
    StatementRunItem,
)

RUN: LiteralString = """
    run.id, to_char(run.month, 'YYYY-MM') as month, run.state, run.run_date, run.plan_count as plans, items.made,
    items.sent, items.to_print, items.skipped, items.failed, run.problem, run.created_at, run.created_by,
    run.started_at, run.ended_at, run.updated_at
"""
WITH_COUNTS: LiteralString = """
    statement_runs run
    cross join lateral (
        select count(*) filter (where state = 'made') as made, count(*) filter (where state = 'sent') as sent,
            count(*) filter (where state = 'to_print') as to_print,
            count(*) filter (where state = 'skipped') as skipped, count(*) filter (where state = 'failed') as failed
        from statement_run_items
        where plan_manager_id = $1 and run_id = run.id
        offset 0
    ) items
"""
ITEM: LiteralString = """
    id, run_id, participant_id, plan_id, statement_id, state, reason, message, coalesce((
        select json_agg(json_build_object('kind', recipient_kind, 'id', recipient_id, 'way', way,
            'state', recipient.state, 'message', recipient.message) order by recipient.id)
        from statement_run_recipients recipient
        where recipient.plan_manager_id = $1 and recipient.item_id = statement_run_items.id
    ), '[]') as recipients, created_at, updated_at
"""

GET = f"select {RUN} from {WITH_COUNTS} where run.plan_manager_id = $1 and run.id = $2"


async def get(db: Executor, plan_manager_id: UUID, run_id: UUID) -> StatementRun | None:
    return await db.one_or_none(StatementRun, GET, plan_manager_id, run_id)


GET_MANY = f"""
    select {RUN} from {WITH_COUNTS}
    where run.plan_manager_id = $1 and {in_array("run.id", "$2::uuid[]")}
    order by run.id
"""


async def get_many(db: Executor, plan_manager_id: UUID, run_ids: Sequence[UUID]) -> list[StatementRun]:
    """The runs with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(StatementRun, GET_MANY, plan_manager_id, run_ids)


EXISTS = "select exists (select from statement_runs where plan_manager_id = $1 and id = $2)"


async def exists(db: Executor, plan_manager_id: UUID, run_id: UUID) -> bool:
    return await db.one(bool, EXISTS, plan_manager_id, run_id)


GET_ITEMS = f"select {ITEM} from statement_run_items where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_items(db: Executor, plan_manager_id: UUID, item_ids: Sequence[UUID]) -> list[StatementRunItem]:
    """The items with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(StatementRunItem, GET_ITEMS, plan_manager_id, item_ids)


# The start and the end of a run. Its row is the lock of the worker.

IS_OF_MONTH: LiteralString = "plan.start_date <= $3 and plan.end_date >= $2"

INSERT = """
    insert into statement_runs (
        plan_manager_id, id, month, state, run_date, plan_count, created_at, created_by, started_at, updated_at
    )
    values ($1, $2, $3, 'running', $4, 0, $5, $6, $5, $5)
    on conflict (plan_manager_id, month) do nothing
    returning id
"""


async def insert(
    tx: Transaction, plan_manager_id: UUID, run_id: UUID, month: date, run_date: date, now: datetime, by: str
) -> bool:
    """Insert the run of a month. False if there is one already."""
    values = (run_id, month, run_date, now, by)
    return await tx.one_or_none(UUID, INSERT, plan_manager_id, *values) is not None


LOCK = "select id from statement_runs where plan_manager_id = $1 and month = $2 for update"
LOCK_BY_ID = "select id from statement_runs where plan_manager_id = $1 and id = $2 for update"


async def lock_month(tx: Transaction, plan_manager_id: UUID, month: date) -> UUID:
    """The run of a month, which must exist, locked until the transaction ends."""
    return await tx.one(UUID, LOCK, plan_manager_id, month)


async def lock(tx: Transaction, plan_manager_id: UUID, run_id: UUID) -> UUID | None:
    """The run, locked until the transaction ends."""
    return await tx.one_or_none(UUID, LOCK_BY_ID, plan_manager_id, run_id)


START = f"""
    update statement_runs set state = 'running', position = null, problem = null, ended_at = null, started_at = $5,
        updated_at = {later_version("$5")}, plan_count = (
            select count(*) from plans plan where plan.plan_manager_id = $1 and {IS_OF_MONTH}
        )
    where plan_manager_id = $1 and id = $4
"""


async def start(tx: Transaction, plan_manager_id: UUID, run_id: UUID, month: date, now: datetime) -> None:
    """Start a run that has ended, or has just been inserted, from its first plan, and count the plans of its month."""
    await tx.execute(START, plan_manager_id, month, Month.of(month).last, run_id, now)


RESUME = f"""
    update statement_runs set state = 'running', position = null, problem = null, ended_at = null,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2
"""


async def resume(tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime) -> None:
    """Have the worker look for plans without an item."""
    await tx.execute(RESUME, plan_manager_id, run_id, now)


END = f"""
    update statement_runs set state = 'ended', position = null, problem = null, ended_at = $3,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2
"""


async def end(tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime) -> None:
    await tx.execute(END, plan_manager_id, run_id, now)


SET_PROBLEM = f"""
    update statement_runs set problem = $3, updated_at = {later_version("$4")}
    where plan_manager_id = $1 and id = $2 and problem is distinct from $3
"""


async def set_problem(db: Executor, plan_manager_id: UUID, run_id: UUID, problem: str | None, now: datetime) -> None:
    """Say why a run doesn't continue; None: it does."""
    await db.execute(SET_PROBLEM, plan_manager_id, run_id, problem, now)


# The worker

RUNNING: LiteralString = "id, plan_manager_id, month, position"
LIST_RUNNING = f"select {RUNNING} from statement_runs where state = 'running'"


async def list_running(db: Executor) -> list[RunningRun]:
    """The running runs of all plan managers."""
    return await db.rows(RunningRun, LIST_RUNNING)


LOCK_RUNNING = f"""
    select {RUNNING} from statement_runs
    where plan_manager_id = $1 and id = $2 and state = 'running'
    for update skip locked
"""


async def lock_running(tx: Transaction, plan_manager_id: UUID, run_id: UUID) -> RunningRun | None:
    """The run, if it is still running and no other transaction works on it."""
    return await tx.one_or_none(RunningRun, LOCK_RUNNING, plan_manager_id, run_id)


NEXT_PLAN = f"""
    select plan.id, plan.participant_id
    from plans plan
    where plan.plan_manager_id = $1 and plan.id > $5 and {IS_OF_MONTH}
        and not exists (
            select from statement_run_items
            where plan_manager_id = $1 and run_id = $4 and plan_id = plan.id
        )
    order by plan.id
    limit 1
"""


async def next_plan(tx: Transaction, run: RunningRun, after: UUID) -> DuePlan | None:
    """The first plan after an id that is in force in the month and has no item."""
    values = (run.month, Month.of(run.month).last, run.id, after)
    return await tx.one_or_none(DuePlan, NEXT_PLAN, run.plan_manager_id, *values)


SET_POSITION = f"""
    update statement_runs set position = $3, problem = null, updated_at = {later_version("$4")}
    where plan_manager_id = $1 and id = $2
"""


async def set_position(tx: Transaction, run: RunningRun, plan_id: UUID, now: datetime) -> None:
    await tx.execute(SET_POSITION, run.plan_manager_id, run.id, plan_id, now)


GETS_MAIL: LiteralString = """exists (
            select from team_member_permissions granted
            join permissions permission on permission.id = granted.permission_id
            where granted.plan_manager_id = $1 and granted.participant_id = member.participant_id
                and granted.team_member_id = member.id and permission.name = 'email_statements'
        )"""

GET_PERSON = f"""
    select id, status, nullif(email, '') as email, participant_receives_statements as receives_mail,
        postal_statement as receives_post,
        coalesce(address_line_1, address_line_2, '') <> '' and coalesce(city, '') <> ''
            and coalesce(postcode, '') <> '' as has_postal_address,
        managed_from, managed_until, date_ceased, deceased_on, coalesce((
            select json_agg(json_build_object('id', member.id, 'email', users.email) order by member.id)
            from team_members member
            join users on users.plan_manager_id = $1 and users.id = member.user_id
            where member.plan_manager_id = $1 and member.participant_id = $2 and users.email <> '' and {GETS_MAIL}
        ), '[]') as members
    from participants
    where plan_manager_id = $1 and id = $2
"""


async def get_person(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> Person | None:
    """What decides who gets the statements of a participant."""
    return await tx.one_or_none(Person, GET_PERSON, plan_manager_id, participant_id)


ITEM_COLUMNS: LiteralString = """
    id, run_id, plan_id, participant_id, statement_id, state, reason, message, created_at
"""
INSERT_ITEM = f"""
    insert into statement_run_items (plan_manager_id, {ITEM_COLUMNS}, updated_at)
    select $1, {ITEM_COLUMNS}, {UPDATED_AT} from json_populate_record(null::statement_run_items, $2)
"""
RECIPIENT_COLUMNS: LiteralString = """
    id, item_id, way, recipient_kind, recipient_id, state, reason, message, queued_at
"""
INSERT_RECIPIENTS = f"""
    insert into statement_run_recipients (plan_manager_id, {RECIPIENT_COLUMNS})
    select $1, {RECIPIENT_COLUMNS} from json_populate_recordset(null::statement_run_recipients, $2)
"""


async def insert_item(
    tx: Transaction, plan_manager_id: UUID, item: ItemRow, recipients: Sequence[RecipientRow]
) -> None:
    await tx.execute(INSERT_ITEM, plan_manager_id, to_json(item))
    if recipients:
        await tx.execute(INSERT_RECIPIENTS, plan_manager_id, to_json(recipients))


# The recipients. The row of the item is their lock.

LOCK_ITEM = f"""
    select {ITEM_COLUMNS} from statement_run_items where plan_manager_id = $1 and id = $2 for update
"""


async def lock_item(tx: Transaction, plan_manager_id: UUID, item_id: UUID) -> ItemRow | None:
    """The item, locked until the transaction ends."""
    return await tx.one_or_none(ItemRow, LOCK_ITEM, plan_manager_id, item_id)


LIST_RECIPIENTS = f"""
    select {RECIPIENT_COLUMNS} from statement_run_recipients
    where plan_manager_id = $1 and {in_array("item_id", "$2::uuid[]")}
    order by id
"""


async def list_recipients(tx: Executor, plan_manager_id: UUID, item_ids: Sequence[UUID]) -> list[RecipientRow]:
    """The recipients of items."""
    return await tx.rows(RecipientRow, LIST_RECIPIENTS, plan_manager_id, item_ids)


SET_RECIPIENT = f"""
    update statement_run_recipients set state = $3, reason = $4, message = $5, queued_at = $6,
        updated_at = {later_version("$7")}
    where plan_manager_id = $1 and id = $2
"""


async def set_recipient(tx: Transaction, plan_manager_id: UUID, row: RecipientRow, now: datetime) -> None:
    values = (row.state, row.reason, row.message, row.queued_at, now)
    await tx.execute(SET_RECIPIENT, plan_manager_id, row.id, *values)


SET_OUTCOME = f"""
    update statement_run_items set state = $3, reason = $4, message = $5, updated_at = {later_version("$6")}
    where plan_manager_id = $1 and id = $2
"""


async def set_outcome(tx: Transaction, plan_manager_id: UUID, item_id: UUID, outcome: Outcome, now: datetime) -> None:
    await tx.execute(SET_OUTCOME, plan_manager_id, item_id, *outcome, now)


class MailTarget(Struct):
    """A recipient with the email that the mail goes to now; null if the person doesn't get it any more."""

    item_id: UUID
    statement_id: UUID
    state: RecipientState
    email: str | None


GET_MAIL_TARGET = f"""
    select item.id as item_id, item.statement_id, recipient.state, case recipient.recipient_kind
        when 'participant' then (
            select nullif(email, '') from participants
            where plan_manager_id = $1 and id = item.participant_id and deceased_on is null
                and participant_receives_statements
        )
        else (
            select nullif(users.email, '')
            from team_members member
            join users on users.plan_manager_id = $1 and users.id = member.user_id
            where member.plan_manager_id = $1 and member.participant_id = item.participant_id
                and member.id = recipient.recipient_id and {GETS_MAIL}
                and exists (
                    select from participants
                    where plan_manager_id = $1 and id = item.participant_id and deceased_on is null
                )
        ) end as email
    from statement_run_recipients recipient
    join statement_run_items item on item.plan_manager_id = $1 and item.id = recipient.item_id
    where recipient.plan_manager_id = $1 and recipient.id = $2 and item.statement_id is not null
"""


async def get_mail_target(db: Executor, plan_manager_id: UUID, recipient_id: UUID) -> MailTarget | None:
    return await db.one_or_none(MailTarget, GET_MAIL_TARGET, plan_manager_id, recipient_id)


GET_CONTENT = "select content from statements where plan_manager_id = $1 and id = $2"


async def get_content(db: Executor, plan_manager_id: UUID, statement_id: UUID) -> str | None:
    """The JSON of a statement."""
    return await db.one_or_none(str, GET_CONTENT, plan_manager_id, statement_id)


class ExpiredMail(Struct):
    """A recipient whose mail was given up."""

    plan_manager_id: UUID
    id: UUID
    item_id: UUID


LIST_EXPIRED = """
    select plan_manager_id, id, item_id from statement_run_recipients
    where state = 'waiting' and queued_at < $1
    order by queued_at
    limit $2
"""


async def list_expired(db: Executor, before: datetime, limit: int) -> list[ExpiredMail]:
    """The recipients, of all plan managers, whose mails have waited since before a time."""
    return await db.rows(ExpiredMail, LIST_EXPIRED, before, limit)


# Letters

IS_LETTER: LiteralString = """
    recipient.plan_manager_id = $1 and recipient.way = 'post' and recipient.state = $3
        and item.plan_manager_id = $1 and item.id = recipient.item_id and item.run_id = $2
        and item.statement_id is not null
"""
LIST_LETTERS = f"""
    select recipient.id, recipient.item_id, item.participant_id, item.statement_id, recipient.queued_at,
        (select name from plan_managers where id = $1) as office, person.name, person.address_line_1,
        person.address_line_2, person.city, person.state, person.postcode
    from statement_run_items item
    join statement_run_recipients recipient on {IS_LETTER}
    cross join lateral (
        select concat_ws(' ', coalesce(nullif(preferred_name, ''), first_name), last_name) as name, address_line_1,
            address_line_2, city, state, postcode
        from participants
        where plan_manager_id = $1 and id = item.participant_id and deceased_on is null
        offset 0
    ) person
    where item.plan_manager_id = $1
    order by recipient.id
    limit $4 offset $5
"""


async def list_letters(
    db: Executor, plan_manager_id: UUID, run_id: UUID, state: str, limit: int | None = None, offset: int = 0
) -> list[Letter]:
    """The letters of a run in a state, in the order of the print file."""
    return await db.rows(Letter, LIST_LETTERS, plan_manager_id, run_id, state, limit, offset)


# Items that are tried again

LIST_RETRIED = f"""
    select {ITEM_COLUMNS} from statement_run_items
    where plan_manager_id = $1 and run_id = $2 and (state = 'failed' or reason in ('no_recipient', 'opted_out'))
        and ($3::uuid[] is null or id = any ($3))
    order by id
    for update
"""


async def lock_retried(
    tx: Transaction, plan_manager_id: UUID, run_id: UUID, item_ids: Sequence[UUID] | None
) -> list[ItemRow]:
    """Those of a run's items, by default of all, that can be tried again, locked until the transaction ends."""
    return await tx.rows(ItemRow, LIST_RETRIED, plan_manager_id, run_id, item_ids)


DELETE_RECIPIENTS = f"""
    delete from statement_run_recipients where plan_manager_id = $1 and {in_array("item_id", "$2::uuid[]")}
"""
DELETE_ITEMS = f"delete from statement_run_items where plan_manager_id = $1 and {HAS_ID}"


async def delete_items(tx: Transaction, plan_manager_id: UUID, item_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_RECIPIENTS, plan_manager_id, item_ids)
    await tx.execute(DELETE_ITEMS, plan_manager_id, item_ids)


LIST_OF_PARTICIPANT = "select id from statement_run_items where plan_manager_id = $1 and participant_id = $2"


async def delete_of_participant(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    """Delete what runs have done for a participant, with their recipients."""
    await delete_items(tx, plan_manager_id, await tx.rows(UUID, LIST_OF_PARTICIPANT, plan_manager_id, participant_id))


# Offices

LIST_DUE_OFFICES = """
    select plan_manager_id, statement_day as day, statement_day_set_on as set_on, (
        select max(month) from statement_runs run where run.plan_manager_id = settings.plan_manager_id
    ) as last_month
    from office_settings settings
    where statement_day is not null
"""


async def list_due_offices(db: Executor) -> list[DueOffice]:
    """The offices that have a day for their statements."""
    return await db.rows(DueOffice, LIST_DUE_OFFICES)


LAST_MONTH = "select month from statement_runs where plan_manager_id = $1 order by month desc limit 1"


async def get_last_month(db: Executor, plan_manager_id: UUID) -> date | None:
    """The month of the latest run."""
    return await db.one_or_none(date, LAST_MONTH, plan_manager_id)
