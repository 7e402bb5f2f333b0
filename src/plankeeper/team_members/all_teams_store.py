"""The members of all teams of a plan manager, in order of participant and id: a page and the total."""

from typing import LiteralString
from uuid import UUID

import msgspec

from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import PageRows, cut_page, open_cursor, seal_cursor
from plankeeper.database.client import Executor
from plankeeper.database.cursor_keys import get_key
from plankeeper.database.sorting import Start
from plankeeper.team_members.schemas import AllTeamMembersQuery, TeamMember
from plankeeper.team_members.store import COLUMNS, FROM_MEMBERS

NIL = "00000000-0000-0000-0000-000000000000"

MATCHES: LiteralString = """
    where member.plan_manager_id = $1
        and ($2::uuid[] is null or member.participant_id = any ($2))
        and ($3::text is null or lower(users.email) = lower($3))
        and ($4::timestamptz is null or member.updated_at >= $4)
        and ($5::text is null or member.external_id = $5)"""
LIST_PAGE: LiteralString = f"""
    select {COLUMNS}
    {FROM_MEMBERS} {MATCHES}
        and (member.participant_id, member.id) > ($6::text::uuid, $7::text::uuid)
    order by member.participant_id, member.id
    limit $8 offset $9
"""
COUNT: LiteralString = f"select count(*) {FROM_MEMBERS} {MATCHES}"


def _filters(query: AllTeamMembersQuery) -> tuple[object, ...]:
    filters = (query.participant_id, query.email, query.updated_since, query.external_id)
    return tuple(map(unset_to_none, filters))


async def list_page(db: Executor, plan_manager_id: UUID, query: AllTeamMembersQuery) -> PageRows[TeamMember]:
    """The members of a page. Raises ValidationError for a cursor of another list."""
    associated_data = msgspec.msgpack.encode([plan_manager_id, "all_teams", *_filters(query)], enc_hook=str)
    key = await get_key(db) if query.uses_cursor else None
    start = Start(NIL, NIL)
    if key and query.after != "0":
        start = open_cursor(key, str(query.after), associated_data)
    values = (*_filters(query), *start, query.limit + 1, query.offset)
    page = cut_page(await db.rows(TeamMember, LIST_PAGE, plan_manager_id, *values), query.limit)
    if key and page.has_more:
        last = page[-1]
        page.next_cursor = seal_cursor(key, Start(str(last.participant_id), str(last.id)), associated_data)
    return page


async def count(db: Executor, plan_manager_id: UUID, query: AllTeamMembersQuery) -> int:
    return await db.one(int, COUNT, plan_manager_id, *_filters(query))
