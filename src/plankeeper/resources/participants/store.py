"""Participants in SQL."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date, datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.json import to_json
from plankeeper.core.record_matches import ValueHolder
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.number_keys import participant_number_key
from plankeeper.database.row_ids import HAS_ID, in_array, records_of
from plankeeper.database.stored_counts import add_counts
from plankeeper.database.versions import UPDATED_AT, changed_rows
from plankeeper.resources.participants.schemas import (
    DuePlanChange,
    NamedReference,
    Participant,
    ParticipantRow,
    StoredParticipant,
)

PERSON_COLUMNS: LiteralString = """
    first_name, middle_name, last_name, preferred_name, participant_number, email, phone_number, date_of_birth,
    gender, pronouns, state, postcode, address_line_1, address_line_2, city, service_region_id, status,
    approval_required, onboard_date, created_at, date_ceased, reason_for_leaving
"""
REFERENCE_COLUMNS: LiteralString = "exit_reason_category_id, exit_reason_subcategory_id, account_manager_id"
PLAN_COLUMNS: LiteralString = """
    is_pace_plan, plan_start_date, plan_end_date, managed_from, managed_until, deceased_on, remoteness,
    postal_statement, participant_receives_statements, external_id
"""
COLUMNS: LiteralString = f"{PERSON_COLUMNS}, {REFERENCE_COLUMNS}, {PLAN_COLUMNS}"

# Names come from sub-selects, one of them lateral, so that PostgreSQL remembers the names of the few account managers:
# joins would build hash tables.
CATEGORY_NAME: LiteralString = """
    case when exit_reason_category_id is not null then (
        select name from exit_reasons where plan_manager_id = $1 and id = participant.exit_reason_category_id
    ) end as exit_reason_category_name
"""
SUBCATEGORY_NAME: LiteralString = """
    case when exit_reason_subcategory_id is not null then (
        select name from exit_reasons where plan_manager_id = $1 and id = participant.exit_reason_subcategory_id
    ) end as exit_reason_subcategory_name
"""
# The columns of Participant, from a sub-select `participant` and ACCOUNT_MANAGER_NAME.
FULL_COLUMNS: LiteralString = f"""
    id, {PERSON_COLUMNS}, {PLAN_COLUMNS}, exit_reason_category_id, {CATEGORY_NAME},
    exit_reason_subcategory_id, {SUBCATEGORY_NAME}, account_manager_id, manager.name as account_manager_name,
    participant.updated_at
"""
ACCOUNT_MANAGER_NAME: LiteralString = """
    left join lateral (
        select name from account_managers where plan_manager_id = $1 and id = participant.account_manager_id limit 1
    ) manager on true
"""


GET = f"""
    select {FULL_COLUMNS}
    from (select * from participants where plan_manager_id = $1 and id = $2) participant
    {ACCOUNT_MANAGER_NAME}
"""


async def get(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> Participant | None:
    return await db.one_or_none(Participant, GET, plan_manager_id, participant_id)


LOCK = "select from participants where plan_manager_id = $1 and id = $2 for update"


async def get_for_update(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> Participant | None:
    """The participant as `update` expects it: see `Transaction.lock_row`."""
    await tx.lock_row(LOCK, plan_manager_id, participant_id)
    return await get(tx.reader, plan_manager_id, participant_id)


GET_MANY = f"""
    select {FULL_COLUMNS}
    from (select * from participants where plan_manager_id = $1 and {HAS_ID}) participant
    {ACCOUNT_MANAGER_NAME}
    order by id
"""


async def get_many(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[Participant]:
    """The participants with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Participant, GET_MANY, plan_manager_id, participant_ids)


LOCK_PERSON = "select pg_advisory_xact_lock(hashtextextended('person ' || $1::uuid::text || $2::uuid::text, 0))"


async def lock_person(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    """Wait until no other transaction erases, holds, deletes or restores a participant. Also for a deleted one."""
    await tx.execute(LOCK_PERSON, plan_manager_id, participant_id)


LOCK_GIVEN_IDS = "select pg_advisory_xact_lock(hashtextextended('given ids ' || $1::uuid::text, 0))"
SHARE_GIVEN_IDS = "select pg_advisory_xact_lock_shared(hashtextextended('given ids ' || $1::uuid::text, 0))"


async def lock_given_ids(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other import creates participants with given ids, and block further ones."""
    await tx.execute(LOCK_GIVEN_IDS, plan_manager_id)


async def select_for_import(
    tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[StoredParticipant]:
    """The rows that exist among the ids, locked; also keeps participants from being erased until the import ends.

    One lock is enough for all of them: an import can have more ids than PostgreSQL has locks.
    """
    await tx.execute(SHARE_GIVEN_IDS, plan_manager_id)
    return await select_for_update(tx, plan_manager_id, participant_ids)


SELECT_FOR_UPDATE = f"""
    select id, {COLUMNS}, updated_at
    from participants
    where plan_manager_id = $1 and {HAS_ID}
    order by id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[StoredParticipant]:
    """The participants with these ids, locked until the transaction ends; unknown ids are ignored."""
    return await tx.rows(StoredParticipant, SELECT_FOR_UPDATE, plan_manager_id, participant_ids)


LIST_ERASED = f"""
    select participant_id
    from kept_financial_records
    where plan_manager_id = $1 and {in_array("participant_id", "$2::uuid[]")}
"""


async def list_erased(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the ids that belong to erased participants whose financial records are kept."""
    return await db.rows(UUID, LIST_ERASED, plan_manager_id, participant_ids)


REFERENCE_NAMES = f"""
    select id, name from account_managers where plan_manager_id = $1 and {HAS_ID}
    union all
    select id, name from exit_reasons where plan_manager_id = $1 and {HAS_ID}
"""


async def reference_names(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> dict[str, str]:
    """The names of account managers and exit reasons, by id."""
    references = await db.rows(NamedReference, REFERENCE_NAMES, plan_manager_id, ids)
    return {str(each.id): each.name for each in references}


INSERT = Write(
    f"""
    added as (
        insert into participants (plan_manager_id, id, {COLUMNS}, updated_at)
        select $1, id, {COLUMNS}, {UPDATED_AT}
        from json_populate_recordset(null::participants, $2)
        returning status, state
    )
    """,
    add_counts("participants", "select status, state, 1 from added"),
    parameters=2,
)


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert participants. `records` is a JSON list of ParticipantRow or StoredParticipant."""
    await tx.queue_write(INSERT, plan_manager_id, records)


_REMOVED: LiteralString = add_counts("participants", "select status, state, -1 from deleted")
UPDATE = Write(
    f"""
    {changed_rows("participants", COLUMNS, "record.status, record.state")},
    old_participants as (
        select old.status, old.state
        from participants old join new_participants new on new.id = old.id
        where old.plan_manager_id = $1
    )
    """,
    add_counts(
        "participants",
        "select status, state, 1 from changed_participants union all select status, state, -1 from old_participants",
    ),
    parameters=3,
    changed="changed_participants",
)


async def update(tx: Transaction, plan_manager_id: UUID, records: str, version: datetime) -> None:
    """Update the participant that was read with this version. `records` is a JSON list with its StoredParticipant."""
    await tx.queue_write(UPDATE, plan_manager_id, records, version)


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Update participants that the caller has locked. `records` is as in `insert`."""
    await tx.queue_write(UPDATE, plan_manager_id, records, None)


LOCK_OF_PLANS = f"""
    select id from participants
    where plan_manager_id = $1 and id in (select participant_id from plans where plan_manager_id = $1 and {HAS_ID})
    order by id
    for update
"""


async def lock_of_plans(tx: Transaction, plan_manager_id: UUID, plan_ids: Sequence[UUID]) -> list[UUID]:
    """Lock the participants of plans until the transaction ends."""
    return await tx.rows(UUID, LOCK_OF_PLANS, plan_manager_id, plan_ids)


# The version stays: the date is computed from the plans.
SET_NEXT_PLAN_CHANGES = f"""
    update participants participant set next_plan_change = new.next_plan_change
    from {records_of("participants")} new
    where participant.plan_manager_id = $1 and participant.id = new.id
        and participant.next_plan_change is distinct from new.next_plan_change
"""


async def set_next_plan_changes(
    tx: Transaction, plan_manager_id: UUID, next_changes: Mapping[UUID, date | None]
) -> None:
    """Set the days on which another plan of participants becomes the current one."""
    records = [{"id": id_, "next_plan_change": day} for id_, day in next_changes.items()]
    await tx.execute(SET_NEXT_PLAN_CHANGES, plan_manager_id, to_json(records))


LIST_PLAN_CHANGES = """
    -- one task switches the plans of all plan managers
    select plan_manager_id, id
    from participants
    where next_plan_change <= $1
    order by next_plan_change
    limit $2
"""


async def list_plan_changes(db: Executor, day: date, limit: int) -> list[DuePlanChange]:
    """Participants whose next plan has become the current one, of all plan managers."""
    return await db.rows(DuePlanChange, LIST_PLAN_CHANGES, day, limit)


SELECT_DUE_FOR_UPDATE = f"""
    select id from participants
    where plan_manager_id = $1 and {HAS_ID} and next_plan_change <= $3
    order by id
    for update skip locked
"""


async def select_due_for_update(
    tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID], day: date
) -> list[UUID]:
    """Those of the participants that are still due and that nobody has locked, locked until the transaction ends."""
    return await tx.rows(UUID, SELECT_DUE_FOR_UPDATE, plan_manager_id, participant_ids, day)


DELETE = f"""
    with deleted as (
        delete from participants where plan_manager_id = $1 and id = $2 returning status, state
    )
    {_REMOVED}
"""


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, participant_id)


DELETE_MANY = f"""
    with deleted as (
        delete from participants where plan_manager_id = $1 and {HAS_ID} returning status, state
    )
    {_REMOVED}
"""


async def delete_many(tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> None:
    """Delete participants that have no team."""
    await tx.execute(DELETE_MANY, plan_manager_id, participant_ids)


EXPORT = f"select id, {COLUMNS} from participants where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ParticipantRow]]:
    return tx.stream(ParticipantRow, EXPORT, plan_manager_id)


LIST_BY_EXTERNAL_IDS = """
    select id, external_id as value
    from participants
    where plan_manager_id = $1 and external_id is not null and external_id = any ($2) -- the index has no nulls
"""


async def list_by_external_ids(db: Executor, plan_manager_id: UUID, external_ids: Sequence[str]) -> list[ValueHolder]:
    return await db.rows(ValueHolder, LIST_BY_EXTERNAL_IDS, plan_manager_id, external_ids)


LIST_BY_NUMBERS = f"""
    select id, participant_number as value
    from participants
    where plan_manager_id = $1 and {participant_number_key()} = any ($2)
"""


async def list_by_numbers(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[ValueHolder]:
    """The participants whose number is one of these, apart from spaces and hyphens."""
    spaceless = [each.replace(" ", "") for each in numbers]
    return await db.rows(ValueHolder, LIST_BY_NUMBERS, plan_manager_id, spaceless)


LOCK_MATCHES = "select pg_advisory_xact_lock(hashtextextended('participant matches ' || $1::uuid::text, 0))"


async def lock_matches(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction creates participants for values that no record has."""
    await tx.execute(LOCK_MATCHES, plan_manager_id)
