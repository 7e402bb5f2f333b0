"""The pages of the list of participants in SQL: a statement for each filter, as each has an index of its own."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.participants.schemas import Participant, ParticipantListQuery
from plankeeper.participants.store import get_many


async def list_page(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    """The rows of one page and one more, which tells whether there are more."""
    return await (_matching_page if query.has_filters else _plain_page)(db, plan_manager_id, query)


PLAIN_PAGE = """
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
        participant.exit_reason_category_id, case when participant.exit_reason_category_id is not null then (
            select name from exit_reasons where plan_manager_id = $1 and id = participant.exit_reason_category_id
        ) end as exit_reason_category_name,
        participant.exit_reason_subcategory_id, case when participant.exit_reason_subcategory_id is not null then (
            select name from exit_reasons where plan_manager_id = $1 and id = participant.exit_reason_subcategory_id
        ) end as exit_reason_subcategory_name,
        participant.account_manager_id, manager.name as account_manager_name
    from (
        select * from participants where plan_manager_id = $1 and id > $2 order by id limit $3 offset $4
    ) participant
    left join lateral (
        select name from account_managers where plan_manager_id = $1 and id = participant.account_manager_id limit 1
    ) manager on true
    order by participant.id
"""


async def _plain_page(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    """Names by sub-selects, one of them lateral, so that PostgreSQL remembers the few managers: joins build tables."""
    return await db.rows(Participant, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)


async def _matching_page(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    """The ids by the index of the filter that tells most, then the rows: one statement for all filters would scan."""
    by = (
        (query.participant_number, _by_number),
        (query.email, _by_email),
        (query.account_manager, _by_managers),
        (query.updated_since, _by_moment),
        (_both(query), _by_status_and_state),
        (query.state, _by_state),
        (query.status, _by_status),
    )
    ids_by = next(ids_by for wanted, ids_by in by if wanted is not UNSET)
    ids = await ids_by(db, plan_manager_id, query)
    return await get_many(db, plan_manager_id, ids) if ids else []


def _both(query: ParticipantListQuery) -> object:
    return query.state if query.status is not UNSET else UNSET


BY_NUMBER = """
    select id
    from participants
    where plan_manager_id = $1 and id > $2
        and ($3::text is null or status = $3)
        and ($4::text is null or state = upper($4))
        and ($5::uuid[] is null or account_manager_id = any ($5))
        and participant_number = $6
        and ($7::text is null or lower(email) = lower($7))
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_number(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_NUMBER, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_EMAIL = """
    select id
    from participants
    where plan_manager_id = $1 and id > $2
        and ($3::text is null or status = $3)
        and ($4::text is null or state = upper($4))
        and ($5::uuid[] is null or account_manager_id = any ($5))
        and ($6::text is null or participant_number = $6)
        and lower(email) = lower($7)
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_email(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_EMAIL, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_MANAGERS = """
    select found.id
    from (select distinct unnest($5::uuid[]) as id) manager
    cross join lateral (
        select id
        from participants
        where plan_manager_id = $1 and id > $2
            and ($3::text is null or status = $3)
            and ($4::text is null or state = upper($4))
            and account_manager_id = manager.id
            and ($6::text is null or participant_number = $6)
            and ($7::text is null or lower(email) = lower($7))
            and ($8::timestamptz is null or updated_at >= $8)
        order by id
        limit $9::bigint + $10::bigint
    ) found
    order by found.id
    limit $9 offset $10
"""


async def _by_managers(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    """A page of each manager's, and the first of those: all that any of them has would have to be sorted."""
    return await db.rows(
        UUID, BY_MANAGERS, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_MOMENT = """
    -- materialized: a walk by id would have to pass over all that has not changed
    with changed as materialized (
        select id
        from participants
        where plan_manager_id = $1 and id > $2
            and ($3::text is null or status = $3)
            and ($4::text is null or state = upper($4))
            and ($5::uuid[] is null or account_manager_id = any ($5))
            and ($6::text is null or participant_number = $6)
            and ($7::text is null or lower(email) = lower($7))
            and updated_at >= $8
    )
    select id from changed order by id limit $9 offset $10
"""


async def _by_moment(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_MOMENT, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_STATUS_AND_STATE = """
    select id
    from participants
    where plan_manager_id = $1 and id > $2
        and status = $3
        and state = upper($4)
        and ($5::uuid[] is null or account_manager_id = any ($5))
        and ($6::text is null or participant_number = $6)
        and ($7::text is null or lower(email) = lower($7))
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_status_and_state(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_STATUS_AND_STATE, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_STATE = """
    select id
    from participants
    where plan_manager_id = $1 and id > $2
        and ($3::text is null or status = $3)
        and state = upper($4)
        and ($5::uuid[] is null or account_manager_id = any ($5))
        and ($6::text is null or participant_number = $6)
        and ($7::text is null or lower(email) = lower($7))
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_state(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_STATE, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_STATUS = """
    select id
    from participants
    where plan_manager_id = $1 and id > $2
        and status = $3
        and ($4::text is null or state = upper($4))
        and ($5::uuid[] is null or account_manager_id = any ($5))
        and ($6::text is null or participant_number = $6)
        and ($7::text is null or lower(email) = lower($7))
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_status(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_STATUS, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


def filter_values(query: ParticipantListQuery) -> tuple[object, ...]:
    """What the list's filters ask for, in the order of the statements' parameters."""
    wanted = (
        query.status,
        query.state,
        query.account_manager,
        query.participant_number,
        query.email,
        query.updated_since,
    )
    return tuple(unset_to_none(each) for each in wanted)
