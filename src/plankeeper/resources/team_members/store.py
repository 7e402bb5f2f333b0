"""Team members in SQL. The email is a column of the user, everything else of the membership."""

from collections.abc import AsyncGenerator, Sequence
from typing import LiteralString
from uuid import UUID

import msgspec

from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import PageRows, cut_page, decrypt_cursor, encrypt_cursor, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.cursor_keys import get_key
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter, Start
from plankeeper.database.row_ids import records_of
from plankeeper.resources.team_members.schemas import (
    AllTeamMembersQuery,
    TeamMember,
    TeamMemberListQuery,
    TeamMemberRow,
    TeamMemberVersion,
)

TABLE_COLUMNS: LiteralString = """participant_id, id, user_id, pm_profile_id, first_name, last_name, role,
        phone_number, note, secondary_email, secondary_phone_number, address_line_1, city, state, postcode,
        contact_priority, external_id"""

# The columns that the resource (COLUMNS) and the row of an import or an export (ROW_COLUMNS) share.
MEMBER_COLUMNS: LiteralString = """member.first_name, member.last_name, users.email, member.role,
        member.phone_number, member.note, member.secondary_email, member.secondary_phone_number,
        member.address_line_1, member.city, member.state, member.postcode, member.contact_priority"""
FROM_MEMBER_PERMISSIONS: LiteralString = """
            from team_member_permissions granted
            join permissions permission on permission.id = granted.permission_id
            where granted.plan_manager_id = $1 and granted.participant_id = member.participant_id
                and granted.team_member_id = member.id"""

COLUMNS: LiteralString = f"""
        member.id, member.user_id, member.pm_profile_id, member.participant_id, {MEMBER_COLUMNS}, (
            select json_agg(json_build_object('id', permission.id, 'name', permission.name,
                'label', permission.label, 'order', permission."order") order by permission."order")
            {FROM_MEMBER_PERMISSIONS}
        ) as permissions, member.external_id, member.updated_at"""
ROW_COLUMNS: LiteralString = f"""
        member.participant_id, member.id, member.user_id, member.pm_profile_id, {MEMBER_COLUMNS}, (
            select array_agg(permission.name order by permission.name)
            {FROM_MEMBER_PERMISSIONS}
        ) as permissions, member.external_id"""
FROM_MEMBERS: LiteralString = """
    from team_members member
    join users on users.plan_manager_id = $1 and users.id = member.user_id"""
FROM_SELECTED_MEMBERS: LiteralString = """
    from unnest($2::uuid[], $3::uuid[]) as selected (participant_id, id)
    join team_members member on member.plan_manager_id = $1
        and member.participant_id = selected.participant_id and member.id = selected.id
    join users on users.plan_manager_id = $1 and users.id = member.user_id"""

LIST = FilteredList(
    "team_members",
    TeamMemberListQuery,
    {"participant_id": Filter("participant_id = {}")},
    sorts=BY_UPDATED_AT,
)
PLAIN_PAGE: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS}
    where member.plan_manager_id = $1 and member.participant_id = $2 and member.id > $3
    order by member.id
    limit $4 offset $5
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, query: TeamMemberListQuery
) -> PageRows[TeamMember]:
    if query.is_plain:
        return cut_page(
            await db.rows(TeamMember, PLAIN_PAGE, plan_manager_id, participant_id, *query.position), query.limit
        )

    async def get_members(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> Sequence[TeamMember]:
        return await get_many(db, plan_manager_id, [participant_id] * len(ids), ids)

    return await fetch_page(db, plan_manager_id, query, LIST, get_members, participant_id=participant_id)


async def count(db: Executor, plan_manager_id: UUID, participant_id: UUID, query: TeamMemberListQuery) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, participant_id=participant_id))


GET: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS}
    where member.plan_manager_id = $1 and member.participant_id = $2 and member.id = $3
"""


async def get(db: Executor, plan_manager_id: UUID, participant_id: UUID, member_id: UUID) -> TeamMember | None:
    return await db.one_or_none(TeamMember, GET, plan_manager_id, participant_id, member_id)


GET_MANY: LiteralString = f"select {COLUMNS} {FROM_SELECTED_MEMBERS}"


async def get_many(
    db: Executor,
    plan_manager_id: UUID,
    participant_ids: Sequence[UUID],
    member_ids: Sequence[UUID],
) -> list[TeamMember]:
    """The members that exist among the pairs of a participant id and a member id."""
    return await db.rows(TeamMember, GET_MANY, plan_manager_id, participant_ids, member_ids)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {ROW_COLUMNS}, member.updated_at {FROM_SELECTED_MEMBERS} for update of member
"""


async def select_for_update(
    tx: Transaction,
    plan_manager_id: UUID,
    participant_ids: Sequence[UUID],
    member_ids: Sequence[UUID],
) -> list[TeamMemberVersion]:
    """The members that exist among the pairs of ids, locked until the transaction ends."""
    return await tx.rows(TeamMemberVersion, SELECT_FOR_UPDATE, plan_manager_id, participant_ids, member_ids)


GET_PRIORITY_HOLDER = """
    select id from team_members
    where plan_manager_id = $1 and participant_id = $2 and contact_priority = $3
"""


async def get_priority_holder(db: Executor, plan_manager_id: UUID, participant_id: UUID, priority: int) -> UUID | None:
    """The id of the member with a contact priority."""
    return await db.one_or_none(UUID, GET_PRIORITY_HOLDER, plan_manager_id, participant_id, priority)


GET_BY_EMAIL: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS}
    where member.plan_manager_id = $1 and member.participant_id = $2 and lower(users.email) = lower($3)
"""


async def get_by_email(db: Executor, plan_manager_id: UUID, participant_id: UUID, email: str) -> TeamMember | None:
    """The member of a team with an email, ignoring case."""
    return await db.one_or_none(TeamMember, GET_BY_EMAIL, plan_manager_id, participant_id, email)


LIST_PRIORITY_HOLDERS: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS}
    where member.plan_manager_id = $1 and member.participant_id = $2 and member.contact_priority is not null
    order by member.contact_priority
"""


async def list_priority_holders(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[TeamMember]:
    """The primary and the secondary contact, as far as there are any."""
    return await db.rows(TeamMember, LIST_PRIORITY_HOLDERS, plan_manager_id, participant_id)


# Of the newest participants, which an index finds: all members would be too many to read.
LIST_RECENT_ROLES = """
    select distinct role
    from (
        select role from team_members
        where plan_manager_id = $1 and role is not null
        order by participant_id desc limit 300
    ) recent
    order by role limit $2
"""


async def list_recent_roles(db: Executor, plan_manager_id: UUID, limit: int) -> list[str]:
    return await db.rows(str, LIST_RECENT_ROLES, plan_manager_id, limit)


INSERT: LiteralString = f"""
    insert into team_members (plan_manager_id, {TABLE_COLUMNS})
    select $1, {TABLE_COLUMNS}
    from json_populate_recordset(null::team_members, $2)
    returning id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert members without permissions. `records` is a JSON list of TeamMemberRow."""
    await tx.execute(INSERT, plan_manager_id, records)


UPDATE_MANY = f"""
    update team_members member set
        first_name = new.first_name, last_name = new.last_name, role = new.role,
        phone_number = new.phone_number, note = new.note, secondary_email = new.secondary_email,
        secondary_phone_number = new.secondary_phone_number, address_line_1 = new.address_line_1,
        city = new.city, state = new.state, postcode = new.postcode,
        pm_profile_id = new.pm_profile_id, contact_priority = new.contact_priority,
        external_id = new.external_id, updated_at = statement_timestamp()
    from {records_of("team_members")} new
    where member.plan_manager_id = $1 and member.participant_id = new.participant_id
        and member.id = new.id
"""


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Update existing members. `records` is a JSON list of TeamMemberRow."""
    await tx.execute(UPDATE_MANY, plan_manager_id, records)


CLEAR_CHANGED_PRIORITIES = f"""
    update team_members member set contact_priority = null
    from {records_of("team_members")} new
    where member.plan_manager_id = $1 and member.participant_id = new.participant_id
        and member.id = new.id and member.contact_priority is distinct from new.contact_priority
"""


async def clear_changed_priorities(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Clear the contact priorities that an update is about to change, so that two members can swap priorities."""
    await tx.execute(CLEAR_CHANGED_PRIORITIES, plan_manager_id, records)


GRANT_PERMISSIONS = """
    insert into team_member_permissions (plan_manager_id, participant_id, team_member_id, permission_id)
    select $1, record.participant_id, record.id, permission.id
    from json_to_recordset($2) as record (participant_id uuid, id uuid, permissions text[])
    join permissions permission on permission.name = any (record.permissions)
    on conflict do nothing
"""


async def grant_permissions(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Grant members the permissions in their records."""
    await tx.execute(GRANT_PERMISSIONS, plan_manager_id, records)


REVOKE_PERMISSIONS = """
    delete from team_member_permissions granted
    using (
        select * from json_to_recordset($2) as record (participant_id uuid, id uuid, permissions text[])
        limit json_array_length($2) -- see `records_of`
    ) record, permissions permission
    where granted.plan_manager_id = $1 and granted.participant_id = record.participant_id
        and granted.team_member_id = record.id and permission.id = granted.permission_id
        and permission.name <> all (coalesce(record.permissions, '{}'))
"""


async def set_permissions(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Replace the permissions of members with the permissions in their records."""
    await tx.execute(REVOKE_PERMISSIONS, plan_manager_id, records)
    await grant_permissions(tx, plan_manager_id, records)


DELETE = "delete from team_members where plan_manager_id = $1 and participant_id = $2 and id = $3"


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID, member_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, participant_id, member_id)


SELECT_IDS_FOR_UPDATE = """
    select id from team_members where plan_manager_id = $1 and participant_id = $2 order by id for update
"""


async def select_ids_for_update(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> list[UUID]:
    """The ids of a participant's team members, locked until the transaction ends."""
    return await tx.rows(UUID, SELECT_IDS_FOR_UPDATE, plan_manager_id, participant_id)


LIST_PARTICIPANTS_WITH_TEAM = """
    select distinct participant_id::text from team_members where plan_manager_id = $1 and participant_id = any ($2)
"""


async def list_participants_with_team(
    db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]
) -> list[str]:
    """Those of the participants that have a team."""
    return await db.rows(str, LIST_PARTICIPANTS_WITH_TEAM, plan_manager_id, participant_ids)


DELETE_TEAM = "delete from team_members where plan_manager_id = $1 and participant_id = $2"


async def delete_team(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE_TEAM, plan_manager_id, participant_id)


EXPORT: LiteralString = f"""
    select {ROW_COLUMNS}
    {FROM_MEMBERS}
    where member.plan_manager_id = $1
    order by member.participant_id, member.id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[TeamMemberRow]]:
    return tx.stream(TeamMemberRow, EXPORT, plan_manager_id)


NIL_UUID = "00000000-0000-0000-0000-000000000000"

MATCHES_IN_ALL: LiteralString = """
    where member.plan_manager_id = $1
        and ($2::uuid[] is null or member.participant_id = any ($2))
        and ($3::text is null or lower(users.email) = lower($3))
        and ($4::timestamptz is null or member.updated_at >= $4)
        and ($5::text is null or member.external_id = $5)
        and ($6::uuid[] is null or member.id = any ($6))"""
LIST_PAGE_OF_ALL: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS} {MATCHES_IN_ALL}
        and (member.participant_id, member.id) > ($7::text::uuid, $8::text::uuid)
    order by member.participant_id, member.id
    limit $9 offset $10
"""
COUNT_OF_ALL: LiteralString = f"select count(*) {FROM_MEMBERS} {MATCHES_IN_ALL}"


def _filters_of_all(query: AllTeamMembersQuery) -> tuple[object, ...]:
    filters = (query.participant_id, query.email, query.updated_since, query.external_id, query.id)
    return tuple(map(unset_to_none, filters))


async def list_page_of_all(db: Executor, plan_manager_id: UUID, query: AllTeamMembersQuery) -> PageRows[TeamMember]:
    """The members of a page. Raises ValidationError for a cursor of another list."""
    associated_data = msgspec.msgpack.encode([plan_manager_id, "all_teams", *_filters_of_all(query)], enc_hook=str)
    key = await get_key(db) if query.uses_cursor else None
    start = Start(NIL_UUID, NIL_UUID)
    if key and query.after != "0":
        start = decrypt_cursor(key, str(query.after), associated_data)
    values = (*_filters_of_all(query), *start, query.limit + 1, query.offset)
    rows = await db.rows(TeamMember, LIST_PAGE_OF_ALL, plan_manager_id, *values, custom_plan=True)
    page = cut_page(rows, query.limit)
    if key and page.has_more:
        last = page[-1]
        page.next_cursor = encrypt_cursor(key, Start(str(last.participant_id), str(last.id)), associated_data)
    return page


async def count_of_all(db: Executor, plan_manager_id: UUID, query: AllTeamMembersQuery) -> int:
    [total] = await db.rows(int, COUNT_OF_ALL, plan_manager_id, *_filters_of_all(query), custom_plan=True)
    return total
