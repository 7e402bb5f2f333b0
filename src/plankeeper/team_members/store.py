"""Team members in SQL. The email belongs to the user, everything else to the membership."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.team_members.schemas import TeamMember, TeamMemberListQuery, TeamMemberRow

LIST_PAGE = """
    select member.id, member.user_id, member.pm_profile_id, member.participant_id, member.first_name,
        member.last_name, users.email, member.role, member.phone_number, member.note,
        member.secondary_email, member.secondary_phone_number, member.address_line_1, member.city,
        member.state, member.postcode, member.contact_priority, (
            select json_agg(json_build_object('id', permission.id, 'name', permission.name,
                'label', permission.label, 'order', permission."order") order by permission."order")
            from team_member_permissions held
            join permissions permission on permission.id = held.permission_id
            where held.plan_manager_id = $1 and held.participant_id = member.participant_id
                and held.team_member_id = member.id
        ) as permissions
    from team_members member
    join users on users.plan_manager_id = $1 and users.id = member.user_id
    where member.plan_manager_id = $1 and member.participant_id = $2 and member.id > $3
    order by member.id
    limit $4 offset $5
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, query: TeamMemberListQuery
) -> list[TeamMember]:
    """The rows of one page and one more, which tells whether there are more."""
    return await db.rows(
        TeamMember, LIST_PAGE, plan_manager_id, participant_id, query.start, query.limit + 1, query.offset
    )


COUNT = "select count(*) from team_members where plan_manager_id = $1 and participant_id = $2"


async def count(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> int:
    return await db.one(int, COUNT, plan_manager_id, participant_id)


GET_MANY = """
    select member.id, member.user_id, member.pm_profile_id, member.participant_id, member.first_name,
        member.last_name, users.email, member.role, member.phone_number, member.note,
        member.secondary_email, member.secondary_phone_number, member.address_line_1, member.city,
        member.state, member.postcode, member.contact_priority, (
            select json_agg(json_build_object('id', permission.id, 'name', permission.name,
                'label', permission.label, 'order', permission."order") order by permission."order")
            from team_member_permissions held
            join permissions permission on permission.id = held.permission_id
            where held.plan_manager_id = $1 and held.participant_id = member.participant_id
                and held.team_member_id = member.id
        ) as permissions
    from unnest($2::uuid[], $3::uuid[]) as wanted (participant_id, id)
    join team_members member on member.plan_manager_id = $1
        and member.participant_id = wanted.participant_id and member.id = wanted.id
    join users on users.plan_manager_id = $1 and users.id = member.user_id
"""


async def get_many(
    db: Executor,
    plan_manager_id: UUID,
    participant_ids: Sequence[UUID | str],
    member_ids: Sequence[UUID | str],
) -> list[TeamMember]:
    """Those of the members that there are; the two sequences go together, pair by pair."""
    return await db.rows(TeamMember, GET_MANY, plan_manager_id, participant_ids, member_ids)


SELECT_FOR_UPDATE = """
    select member.participant_id, member.id, member.user_id, member.pm_profile_id, member.first_name,
        member.last_name, users.email, member.role, member.phone_number, member.note,
        member.secondary_email, member.secondary_phone_number, member.address_line_1, member.city,
        member.state, member.postcode, member.contact_priority, (
            select array_agg(permission.name order by permission.name)
            from team_member_permissions held
            join permissions permission on permission.id = held.permission_id
            where held.plan_manager_id = $1 and held.participant_id = member.participant_id
                and held.team_member_id = member.id
        ) as permissions
    from unnest($2::uuid[], $3::uuid[]) as wanted (participant_id, id)
    join team_members member on member.plan_manager_id = $1
        and member.participant_id = wanted.participant_id and member.id = wanted.id
    join users on users.plan_manager_id = $1 and users.id = member.user_id
    for update of member
"""


async def select_for_update(
    tx: Transaction,
    plan_manager_id: UUID,
    participant_ids: Sequence[UUID | str],
    member_ids: Sequence[UUID | str],
) -> list[TeamMemberRow]:
    """Those of the members that there are, locked until the transaction ends; the sequences go together."""
    return await tx.rows(TeamMemberRow, SELECT_FOR_UPDATE, plan_manager_id, participant_ids, member_ids)


GET_PRIORITY_HOLDER = """
    select id from team_members
    where plan_manager_id = $1 and participant_id = $2 and contact_priority = $3
"""


async def get_priority_holder(db: Executor, plan_manager_id: UUID, participant_id: UUID, priority: int) -> UUID | None:
    """The member that holds a contact priority."""
    return await db.one_or_none(UUID, GET_PRIORITY_HOLDER, plan_manager_id, participant_id, priority)


INSERT = """
    insert into team_members (
        plan_manager_id, participant_id, id, user_id, pm_profile_id, first_name, last_name, role,
        phone_number, note, secondary_email, secondary_phone_number, address_line_1, city, state,
        postcode, contact_priority
    )
    select $1, participant_id, id, user_id, pm_profile_id, first_name, last_name, role,
        phone_number, note, secondary_email, secondary_phone_number, address_line_1, city, state,
        postcode, contact_priority
    from json_populate_recordset(null::team_members, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Add new members. `records` is a JSON list of TeamMemberRow; their permissions follow with `set_permissions`."""
    await tx.execute(INSERT, plan_manager_id, records)


UPDATE_MANY = """
    update team_members member set
        first_name = new.first_name, last_name = new.last_name, role = new.role,
        phone_number = new.phone_number, note = new.note, secondary_email = new.secondary_email,
        secondary_phone_number = new.secondary_phone_number, address_line_1 = new.address_line_1,
        city = new.city, state = new.state, postcode = new.postcode,
        pm_profile_id = new.pm_profile_id, contact_priority = new.contact_priority
    from json_populate_recordset(null::team_members, $2) new
    where member.plan_manager_id = $1 and member.participant_id = new.participant_id
        and member.id = new.id
"""


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write members anew that there are. `records` is a JSON list of TeamMemberRow."""
    await tx.execute(UPDATE_MANY, plan_manager_id, records)


CLEAR_CHANGED_PRIORITIES = """
    update team_members member set contact_priority = null
    from json_populate_recordset(null::team_members, $2) new
    where member.plan_manager_id = $1 and member.participant_id = new.participant_id
        and member.id = new.id and member.contact_priority is distinct from new.contact_priority
"""


async def clear_changed_priorities(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Take the contact priorities from members that are about to be written anew, so that two can swap theirs."""
    await tx.execute(CLEAR_CHANGED_PRIORITIES, plan_manager_id, records)


SET_PERMISSIONS = """
    with wanted as (
        select record.participant_id, record.id as team_member_id, permission.id as permission_id
        from json_to_recordset($2) as record (participant_id uuid, id uuid, permissions text[])
        join permissions permission on permission.name = any (record.permissions)
    ), revoked as (
        delete from team_member_permissions held
        using json_to_recordset($2) as record (participant_id uuid, id uuid)
        where held.plan_manager_id = $1 and held.participant_id = record.participant_id
            and held.team_member_id = record.id
            and not exists (select from wanted where wanted.participant_id = held.participant_id
                and wanted.team_member_id = held.team_member_id and wanted.permission_id = held.permission_id)
    )
    insert into team_member_permissions (plan_manager_id, participant_id, team_member_id, permission_id)
    select $1, participant_id, team_member_id, permission_id from wanted
    on conflict do nothing
"""


async def set_permissions(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Give members the permissions of their records, and take all others away."""
    await tx.execute(SET_PERMISSIONS, plan_manager_id, records)


DELETE = "delete from team_members where plan_manager_id = $1 and participant_id = $2 and id = $3"


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID, member_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, participant_id, member_id)


SELECT_IDS_FOR_UPDATE = """
    select id from team_members where plan_manager_id = $1 and participant_id = $2 order by id for update
"""


async def select_ids_for_update(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> list[UUID]:
    """The ids of a participant's team, locked until the transaction ends."""
    return await tx.rows(UUID, SELECT_IDS_FOR_UPDATE, plan_manager_id, participant_id)


DELETE_TEAM = "delete from team_members where plan_manager_id = $1 and participant_id = $2"


async def delete_team(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE_TEAM, plan_manager_id, participant_id)


EXPORT = """
    select member.participant_id, member.id, member.user_id, member.pm_profile_id, member.first_name,
        member.last_name, users.email, member.role, member.phone_number, member.note,
        member.secondary_email, member.secondary_phone_number, member.address_line_1, member.city,
        member.state, member.postcode, member.contact_priority, (
            select array_agg(permission.name order by permission.name)
            from team_member_permissions held
            join permissions permission on permission.id = held.permission_id
            where held.plan_manager_id = $1 and held.participant_id = member.participant_id
                and held.team_member_id = member.id
        ) as permissions
    from team_members member
    join users on users.plan_manager_id = $1 and users.id = member.user_id
    where member.plan_manager_id = $1
    order by member.participant_id, member.id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[TeamMemberRow]:
    return tx.stream(TeamMemberRow, EXPORT, plan_manager_id)
