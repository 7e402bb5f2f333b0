"""Participants in SQL."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.pool import Queries, Transaction
from plankeeper.edge.shapes import given
from plankeeper.participants.shapes import (
    BasicParticipant,
    NumberedId,
    Participant,
    ParticipantListQuery,
    ParticipantRecord,
)


async def page(db: Queries, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    """The rows of one page and one more, which tells whether there are more."""
    return await (_matching_page if query.filtered else _plain_page)(db, plan_manager_id, query)


async def _plain_page(db: Queries, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    return await db.rows(
        Participant,
        """
        select
            participant.id, participant.first_name, participant.middle_name, participant.last_name,
            participant.preferred_name, participant.participant_number, participant.email,
            participant.phone_number, participant.date_of_birth, participant.gender, participant.pronouns,
            participant.state, participant.postcode, participant.address_line_1,
            participant.address_line_2, participant.city, participant.service_region_id,
            participant.status, participant.approval_required, participant.onboard_date,
            participant.created_at, participant.date_ceased, participant.reason_for_leaving,
            participant.exit_reason_category_id, category.name as exit_reason_category_name,
            participant.exit_reason_subcategory_id,
            subcategory.name as exit_reason_subcategory_name,
            participant.account_manager_id, manager.name as account_manager_name, participant.is_pace_plan,
            participant.plan_start_date, participant.plan_end_date, participant.postal_statement,
            participant.participant_receives_statements
        from (
            select * from participants where plan_manager_id = $1 and id > $2 order by id limit $3 offset $4
        ) participant
        left join exit_reasons category on category.plan_manager_id = $1
            and category.id = participant.exit_reason_category_id
        left join exit_reasons subcategory on subcategory.plan_manager_id = $1
            and subcategory.id = participant.exit_reason_subcategory_id
        left join account_managers manager on manager.plan_manager_id = $1
            and manager.id = participant.account_manager_id
        order by participant.id
        """,
        plan_manager_id, query.start, query.limit + 1, query.offset,
    )  # fmt: skip


async def _matching_page(db: Queries, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    return await db.rows(
        Participant,
        """
        select
            participant.id, participant.first_name, participant.middle_name, participant.last_name,
            participant.preferred_name, participant.participant_number, participant.email,
            participant.phone_number, participant.date_of_birth, participant.gender, participant.pronouns,
            participant.state, participant.postcode, participant.address_line_1,
            participant.address_line_2, participant.city, participant.service_region_id,
            participant.status, participant.approval_required, participant.onboard_date,
            participant.created_at, participant.date_ceased, participant.reason_for_leaving,
            participant.exit_reason_category_id, category.name as exit_reason_category_name,
            participant.exit_reason_subcategory_id, subcategory.name as exit_reason_subcategory_name,
            participant.account_manager_id, manager.name as account_manager_name, participant.is_pace_plan,
            participant.plan_start_date, participant.plan_end_date, participant.postal_statement,
            participant.participant_receives_statements
        from (
            select *
            from participants
            where plan_manager_id = $1 and id > $2
                and ($3::text is null or status = $3)
                and ($4::text is null or state = upper($4))
                and ($5::uuid[] is null or account_manager_id = any ($5))
                and ($6::text is null or participant_number = $6)
                and ($7::text is null or lower(email) = lower($7))
                and ($8::timestamptz is null or updated_at >= $8)
            order by id
            limit $9 offset $10
        ) participant
        left join exit_reasons category on category.plan_manager_id = $1
            and category.id = participant.exit_reason_category_id
        left join exit_reasons subcategory on subcategory.plan_manager_id = $1
            and subcategory.id = participant.exit_reason_subcategory_id
        left join account_managers manager on manager.plan_manager_id = $1
            and manager.id = participant.account_manager_id
        order by participant.id
        """,
        plan_manager_id, query.start, *_filters(query), query.limit + 1, query.offset,
    )  # fmt: skip


async def count(db: Queries, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(
        int,
        """
        select count(*)
        from participants
        where plan_manager_id = $1
            and ($2::text is null or status = $2)
            and ($3::text is null or state = upper($3))
            and ($4::uuid[] is null or account_manager_id = any ($4))
            and ($5::text is null or participant_number = $5)
            and ($6::text is null or lower(email) = lower($6))
            and ($7::timestamptz is null or updated_at >= $7)
        """,
        plan_manager_id, *_filters(query),
    )  # fmt: skip


def _filters(query: ParticipantListQuery) -> tuple[object, ...]:
    wanted = (
        query.status, query.state, query.account_manager, query.participant_number, query.email, query.updated_since,
    )  # fmt: skip
    return tuple(given(each) for each in wanted)


async def fetch_basic(db: Queries, plan_manager_id: UUID, participant_id: UUID) -> BasicParticipant | None:
    return await db.one_or_none(
        BasicParticipant,
        """
        select id, first_name, last_name, participant_number, email, state
        from participants
        where plan_manager_id = $1 and id = $2
        """,
        plan_manager_id, participant_id,
    )  # fmt: skip


async def fetch(db: Queries, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[Participant]:
    """Those of the ids that there are, ascending by id."""
    return await db.rows(
        Participant,
        """
        select
            participant.id, participant.first_name, participant.middle_name, participant.last_name,
            participant.preferred_name, participant.participant_number, participant.email,
            participant.phone_number, participant.date_of_birth, participant.gender, participant.pronouns,
            participant.state, participant.postcode, participant.address_line_1,
            participant.address_line_2, participant.city, participant.service_region_id,
            participant.status, participant.approval_required, participant.onboard_date,
            participant.created_at, participant.date_ceased, participant.reason_for_leaving,
            participant.exit_reason_category_id, category.name as exit_reason_category_name,
            participant.exit_reason_subcategory_id,
            subcategory.name as exit_reason_subcategory_name,
            participant.account_manager_id, manager.name as account_manager_name, participant.is_pace_plan,
            participant.plan_start_date, participant.plan_end_date, participant.postal_statement,
            participant.participant_receives_statements
        from participants participant
        left join exit_reasons category on category.plan_manager_id = $1
            and category.id = participant.exit_reason_category_id
        left join exit_reasons subcategory on subcategory.plan_manager_id = $1
            and subcategory.id = participant.exit_reason_subcategory_id
        left join account_managers manager on manager.plan_manager_id = $1
            and manager.id = participant.account_manager_id
        where participant.plan_manager_id = $1 and participant.id = any ($2)
        order by participant.id
        """,
        plan_manager_id, participant_ids,
    )  # fmt: skip


async def records_for_update(
    tx: Transaction, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[ParticipantRecord]:
    """Those of the ids that there are, locked until the transaction ends."""
    return await tx.rows(
        ParticipantRecord,
        """
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
        """,
        plan_manager_id, participant_ids,
    )  # fmt: skip


async def fetch_contact(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> BasicParticipant | None:
    """A participant that cannot be deleted until the transaction ends."""
    return await tx.one_or_none(
        BasicParticipant,
        """
        select id, first_name, last_name, participant_number, email, state
        from participants
        where plan_manager_id = $1 and id = $2
        for share
        """,
        plan_manager_id, participant_id,
    )  # fmt: skip


async def exists(db: Queries, plan_manager_id: UUID, participant_id: UUID) -> bool:
    return await db.one(
        bool,
        """
        select exists (select from participants where plan_manager_id = $1 and id = $2)
        """,
        plan_manager_id, participant_id,
    )  # fmt: skip


async def put(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write whole participants, new or not. `records` is a JSON list of ParticipantRecord."""
    await tx.execute(
        """
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
        on conflict (plan_manager_id, id) do update set
            first_name = excluded.first_name, middle_name = excluded.middle_name, last_name =
            excluded.last_name, preferred_name = excluded.preferred_name, participant_number =
            excluded.participant_number, email = excluded.email, phone_number = excluded.phone_number,
            date_of_birth = excluded.date_of_birth, gender = excluded.gender, pronouns =
            excluded.pronouns, state = excluded.state, postcode = excluded.postcode, address_line_1 =
            excluded.address_line_1, address_line_2 = excluded.address_line_2, city = excluded.city,
            service_region_id = excluded.service_region_id, status = excluded.status, approval_required =
            excluded.approval_required, onboard_date = excluded.onboard_date, date_ceased =
            excluded.date_ceased, reason_for_leaving = excluded.reason_for_leaving,
            exit_reason_category_id = excluded.exit_reason_category_id, exit_reason_subcategory_id =
            excluded.exit_reason_subcategory_id, account_manager_id = excluded.account_manager_id,
            is_pace_plan = excluded.is_pace_plan, plan_start_date = excluded.plan_start_date,
            plan_end_date = excluded.plan_end_date, postal_statement = excluded.postal_statement,
            participant_receives_statements = excluded.participant_receives_statements, created_at =
            excluded.created_at,
            updated_at = clock_timestamp()
        """,
        plan_manager_id, records,
    )  # fmt: skip


async def remove(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(
        """
        delete from participants where plan_manager_id = $1 and id = $2
        """,
        plan_manager_id, participant_id,
    )  # fmt: skip


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[ParticipantRecord]:
    return tx.stream(
        ParticipantRecord,
        """
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
        """,
        plan_manager_id,
    )


async def ids_by_number(db: Queries, plan_manager_id: UUID, numbers: Sequence[str]) -> list[NumberedId]:
    """Every participant with one of the numbers; two may have the same."""
    return await db.rows(
        NumberedId,
        """
        select participant_number, id
        from participants
        where plan_manager_id = $1 and participant_number = any ($2)
        """,
        plan_manager_id, numbers,
    )  # fmt: skip
