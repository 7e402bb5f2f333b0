"""Participants in SQL."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.participants.schemas import (
    NamedReference,
    Participant,
    ParticipantIdentifier,
    ParticipantRow,
    ParticipantSummary,
)

GET_SUMMARY = """
    select id, first_name, last_name, participant_number, email, state
    from participants
    where plan_manager_id = $1 and id = $2
"""


async def get_summary(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> ParticipantSummary | None:
    return await db.one_or_none(ParticipantSummary, GET_SUMMARY, plan_manager_id, participant_id)


GET_MANY = """
    select
        participant.id, participant.first_name, participant.middle_name, participant.last_name,
        participant.preferred_name, participant.participant_number, participant.email,
        participant.phone_number, participant.date_of_birth, participant.gender, participant.pronouns,
        participant.state, participant.postcode, participant.address_line_1,
        participant.address_line_2, participant.city, participant.service_region_id,
        participant.status, participant.approval_required, participant.onboard_date,
        participant.created_at, participant.date_ceased, participant.reason_for_leaving,
        participant.is_pace_plan, participant.plan_start_date, participant.plan_end_date,
        participant.postal_statement, participant.participant_receives_statements,
        participant.exit_reason_category_id, category.name as exit_reason_category_name,
        participant.exit_reason_subcategory_id, subcategory.name as exit_reason_subcategory_name,
        participant.account_manager_id, manager.name as account_manager_name
    from participants participant
    left join exit_reasons category on category.plan_manager_id = $1
        and category.id = participant.exit_reason_category_id
    left join exit_reasons subcategory on subcategory.plan_manager_id = $1
        and subcategory.id = participant.exit_reason_subcategory_id
    left join account_managers manager on manager.plan_manager_id = $1
        and manager.id = participant.account_manager_id
    where participant.plan_manager_id = $1 and participant.id = any ($2)
    order by participant.id
"""


async def get_many(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[Participant]:
    """Those of the ids that there are, ascending by id."""
    return await db.rows(Participant, GET_MANY, plan_manager_id, participant_ids)


SELECT_FOR_UPDATE = """
    select
        id, first_name, middle_name, last_name, preferred_name, participant_number, email,
        phone_number, date_of_birth, gender, pronouns, state, postcode, address_line_1,
        address_line_2, city, service_region_id, status, approval_required, onboard_date, created_at,
        date_ceased, reason_for_leaving, exit_reason_category_id, exit_reason_subcategory_id,
        account_manager_id, is_pace_plan, plan_start_date, plan_end_date, postal_statement,
        participant_receives_statements
    from participants
    where plan_manager_id = $1 and id = any ($2)
    order by id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[ParticipantRow]:
    """Those of the ids that there are, locked until the transaction ends."""
    return await tx.rows(ParticipantRow, SELECT_FOR_UPDATE, plan_manager_id, participant_ids)


SELECT_FOR_SHARE = """
    select id, first_name, last_name, participant_number, email, state
    from participants
    where plan_manager_id = $1 and id = $2
    for share
"""


async def select_for_share(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> ParticipantSummary | None:
    """A participant that cannot be deleted until the transaction ends."""
    return await tx.one_or_none(ParticipantSummary, SELECT_FOR_SHARE, plan_manager_id, participant_id)


REFERENCE_NAMES = """
    select id, name from account_managers where plan_manager_id = $1 and id = any ($2)
    union all
    select id, name from exit_reasons where plan_manager_id = $1 and id = any ($2)
"""


async def reference_names(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> dict[str, str]:
    """The names of account managers and exit reasons, by id."""
    references = await db.rows(NamedReference, REFERENCE_NAMES, plan_manager_id, ids)
    return {str(each.id): each.name for each in references}


EXISTS = "select exists (select from participants where plan_manager_id = $1 and id = $2)"


async def exists(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    return await db.one(bool, EXISTS, plan_manager_id, participant_id)


INSERT = """
    with added as (
        insert into participants (
            plan_manager_id, id, first_name, middle_name, last_name, preferred_name, participant_number,
            email, phone_number, date_of_birth, gender, pronouns, state, postcode, address_line_1,
            address_line_2, city, service_region_id, status, approval_required, onboard_date, created_at,
            date_ceased, reason_for_leaving, exit_reason_category_id, exit_reason_subcategory_id,
            account_manager_id, is_pace_plan, plan_start_date, plan_end_date, postal_statement,
            participant_receives_statements
        )
        select $1,
            id, first_name, middle_name, last_name, preferred_name, participant_number, email,
            phone_number, date_of_birth, gender, pronouns, state, postcode, address_line_1,
            address_line_2, city, service_region_id, status, approval_required, onboard_date, created_at,
            date_ceased, reason_for_leaving, exit_reason_category_id, exit_reason_subcategory_id,
            account_manager_id, is_pace_plan, plan_start_date, plan_end_date, postal_statement,
            participant_receives_statements
        from json_populate_recordset(null::participants, $2)
        returning status, state
    )
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), count(*) from added group by status, coalesce(state, '')
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Add new participants, and to the totals. `records` is a JSON list of ParticipantRecord."""
    await tx.execute(INSERT, plan_manager_id, records)


UPDATE_MANY = """
    with new as materialized (
        select * from json_populate_recordset(null::participants, $2)
    ), old as (
        select old.status, old.state
        from participants old join new on new.id = old.id
        where old.plan_manager_id = $1
    ), changed as (
        update participants participant set
            first_name = new.first_name, middle_name = new.middle_name, last_name = new.last_name,
            preferred_name = new.preferred_name, participant_number = new.participant_number, email =
            new.email, phone_number = new.phone_number, date_of_birth = new.date_of_birth, gender =
            new.gender, pronouns = new.pronouns, state = new.state, postcode = new.postcode, address_line_1
            = new.address_line_1, address_line_2 = new.address_line_2, city = new.city, service_region_id =
            new.service_region_id, status = new.status, approval_required = new.approval_required,
            onboard_date = new.onboard_date, created_at = new.created_at, date_ceased = new.date_ceased,
            reason_for_leaving = new.reason_for_leaving, exit_reason_category_id =
            new.exit_reason_category_id, exit_reason_subcategory_id = new.exit_reason_subcategory_id,
            account_manager_id = new.account_manager_id, is_pace_plan = new.is_pace_plan, plan_start_date =
            new.plan_start_date, plan_end_date = new.plan_end_date, postal_statement = new.postal_statement,
            participant_receives_statements = new.participant_receives_statements, updated_at =
            clock_timestamp()
        from new
        where participant.plan_manager_id = $1 and participant.id = new.id
        returning participant.status, participant.state
    )
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), sum(difference)
    from (
        select status, state, 1 as difference from changed union all select status, state, -1 from old
    ) differences
    group by status, coalesce(state, '')
    having sum(difference) <> 0
"""


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write participants anew that there are, and what that changes in the totals. The caller holds their locks."""
    await tx.execute(UPDATE_MANY, plan_manager_id, records)


DELETE = """
    with deleted as (
        delete from participants where plan_manager_id = $1 and id = $2 returning status, state
    )
    insert into participant_counts (plan_manager_id, status, state, amount)
    select $1, status, coalesce(state, ''), -1 from deleted
"""


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, participant_id)


EXPORT = """
    select
        id, first_name, middle_name, last_name, preferred_name, participant_number, email,
        phone_number, date_of_birth, gender, pronouns, state, postcode, address_line_1,
        address_line_2, city, service_region_id, status, approval_required, onboard_date, created_at,
        date_ceased, reason_for_leaving, exit_reason_category_id, exit_reason_subcategory_id,
        account_manager_id, is_pace_plan, plan_start_date, plan_end_date, postal_statement,
        participant_receives_statements
    from participants
    where plan_manager_id = $1
    order by id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[ParticipantRow]:
    return tx.stream(ParticipantRow, EXPORT, plan_manager_id)


FIND_BY_NUMBERS = """
    select participant_number, id
    from participants
    where plan_manager_id = $1 and participant_number = any ($2)
"""


async def find_by_numbers(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[ParticipantIdentifier]:
    """Every participant with one of the numbers; two may have the same."""
    return await db.rows(ParticipantIdentifier, FIND_BY_NUMBERS, plan_manager_id, numbers)
