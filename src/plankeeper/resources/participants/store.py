"""Participants in SQL."""

from collections.abc import AsyncGenerator, Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.core.record_matches import ValueHolder
from plankeeper.database.appended_counts import compose_compaction
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.row_ids import HAS_ID, records_of
from plankeeper.database.timestamps import UPDATED_AT
from plankeeper.resources.participants.schemas import (
    NamedReference,
    Participant,
    ParticipantRow,
    ParticipantVersion,
    UnlockedParticipant,
)

PERSON_COLUMNS: LiteralString = """
    first_name, middle_name, last_name, preferred_name, participant_number, email, phone_number, date_of_birth,
    gender, pronouns, state, postcode, address_line_1, address_line_2, city, service_region_id, status,
    approval_required, onboard_date, created_at, date_ceased, reason_for_leaving
"""
REFERENCE_COLUMNS: LiteralString = "exit_reason_category_id, exit_reason_subcategory_id, account_manager_id"
PLAN_COLUMNS: LiteralString = """
    is_pace_plan, plan_start_date, plan_end_date, postal_statement, participant_receives_statements,
    external_id
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


async def get(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> Participant | None:
    return await db.load(get_many, plan_manager_id, participant_id)


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
) -> list[ParticipantVersion]:
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
) -> list[ParticipantVersion]:
    """The participants with these ids, locked until the transaction ends; unknown ids are ignored."""
    return await tx.rows(ParticipantVersion, SELECT_FOR_UPDATE, plan_manager_id, participant_ids)


GET_MANY_UNLOCKED = f"""
    select id, {COLUMNS}, updated_at, {CATEGORY_NAME}, {SUBCATEGORY_NAME}, manager.name as account_manager_name,
        participant.xmin
    from participants participant {ACCOUNT_MANAGER_NAME} where plan_manager_id = $1 and {HAS_ID}
"""


async def get_many_unlocked(
    db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[UnlockedParticipant]:
    return await db.rows(UnlockedParticipant, GET_MANY_UNLOCKED, plan_manager_id, participant_ids)


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
    """
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), count(*) from added group by status, coalesce(state, '')
    """,
    parameters=2,
)


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert participants and add them to the totals. `records` is a JSON list of ParticipantRow or of its versions."""
    await tx.defer(INSERT, plan_manager_id, records)


def _update(condition: LiteralString = "", updated_at: LiteralString = UPDATED_AT) -> LiteralString:
    """Write the rows of `new`."""
    return f"""
        update participants participant set
            -- the sub-select only turns the columns of `new` into a list
            ({COLUMNS}, updated_at) = (select {COLUMNS}, {updated_at} from (select new.*) written)
        from new
        where participant.plan_manager_id = $1 and participant.id = new.id{condition}
        returning participant.status, participant.state
    """


# A set is planned as a hundred rows, for which PostgreSQL reads the whole table of a small plan manager.
_ONE: LiteralString = "new as materialized (select * from json_populate_record(null::participants, $2))"
_MANY: LiteralString = f"new as materialized {records_of('participants')}"
_OLD: LiteralString = """
    old as (
        select old.status, old.state
        from participants old join new on new.id = old.id
        where old.plan_manager_id = $1
    )
"""
_MOVE: LiteralString = """
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), sum(difference)
    from (
        select status, state, 1 as difference from changed union all select status, state, -1 from old
    ) differences
    group by status, coalesce(state, '')
    having sum(difference) <> 0
"""
_CHANGED: LiteralString = f"changed as ({_update()})"
UPDATE = Write(_ONE, _update(), parameters=2)
UPDATE_AND_MOVE = Write(f"{_ONE}, {_OLD}, {_CHANGED}", _MOVE, parameters=2)


async def update(tx: Transaction, plan_manager_id: UUID, record: str, *, is_moved: bool) -> None:
    """Update a participant that the caller has locked. `record` is the JSON of a ParticipantVersion.

    `is_moved`: its status or its state changes, so that it moves from one total to another.
    """
    if is_moved:
        await tx.defer(UPDATE_AND_MOVE, plan_manager_id, record)
    else:
        await tx.defer(UPDATE, plan_manager_id, record)


# A concurrent update that commits first leaves no row with this version, even if this statement waited for it.
_CHANGED_VERSION: LiteralString = f"changed as ({_update(' and participant.xmin = $3')})"
_GUARD: LiteralString = "require_unchanged(exists (select from changed))"
UPDATE_VERSION = Write(f"{_ONE}, {_CHANGED_VERSION}", "", parameters=3, guard=_GUARD)
UPDATE_AND_MOVE_VERSION = Write(f"{_ONE}, {_OLD}, {_CHANGED_VERSION}", _MOVE, parameters=3, guard=_GUARD)


async def update_version(tx: Transaction, plan_manager_id: UUID, record: str, version: int, *, is_moved: bool) -> None:
    """As `update`, for a participant that isn't locked. It fails unless the row still has this version."""
    if is_moved:
        await tx.defer(UPDATE_AND_MOVE_VERSION, plan_manager_id, record, version)
    else:
        await tx.defer(UPDATE_VERSION, plan_manager_id, record, version)


_MANY_CHANGED: LiteralString = f"changed as ({_update(updated_at='statement_timestamp()')})"
UPDATE_MANY = Write(f"{_MANY}, {_OLD}, {_MANY_CHANGED}", _MOVE, parameters=2)


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Update participants that the caller has locked, and the totals. `records` is a JSON list of ParticipantRow."""
    await tx.defer(UPDATE_MANY, plan_manager_id, records)


DELETE = """
    with deleted as (
        delete from participants where plan_manager_id = $1 and id = $2 returning status, state
    )
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), -1 from deleted
"""


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, participant_id)


DELETE_MANY = f"""
    with deleted as (
        delete from participants where plan_manager_id = $1 and {HAS_ID} returning status, state
    )
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), -count(*) from deleted group by status, coalesce(state, '')
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


LIST_BY_SPACELESS_NUMBERS = """
    select id, participant_number as value
    from participants
    where plan_manager_id = $1 and replace(participant_number, ' ', '') = any ($2)
"""


async def list_by_spaceless_numbers(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[ValueHolder]:
    """The participants whose number is one of these, apart from spaces."""
    spaceless = [each.replace(" ", "") for each in numbers]
    return await db.rows(ValueHolder, LIST_BY_SPACELESS_NUMBERS, plan_manager_id, spaceless)


LOCK_MATCHES = "select pg_advisory_xact_lock(hashtextextended('participant matches ' || $1::uuid::text, 0))"


async def lock_matches(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction creates participants for values that no record has."""
    await tx.execute(LOCK_MATCHES, plan_manager_id)


COMPACT_COUNTS = compose_compaction("participant_counts", "status", "state")


async def compact_counts(db: Executor, max_groups: int = 100) -> int:
    """Sum up totals that consist of many rows, and return the number of rows removed.

    Each write appends a row to the totals, so writers never wait for each other or for this function.
    """
    return await db.one(int, COMPACT_COUNTS, max_groups)
