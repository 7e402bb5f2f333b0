"""The list of participants in SQL: pages and totals for any set of filters."""

from collections.abc import Sequence
from datetime import date
from typing import LiteralString
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import replace

from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter, Sort
from plankeeper.database.stored_counts import sum_counts
from plankeeper.resources.participants.schemas import NO_ACCOUNT_MANAGER, Participant, ParticipantListQuery
from plankeeper.resources.participants.store import ACCOUNT_MANAGER_NAME, FULL_COLUMNS, get_many
from plankeeper.resources.search.filters import PARTICIPANT_FILTERS, count_matches, search_values
from plankeeper.resources.viewer_limits import PARTICIPANTS_LIMIT

# The last name, then the first: no character sorts before the separator. Only the console sorts by it.
FULL_NAME: LiteralString = """((lower(last_name) || chr(1) || coalesce(lower(first_name), '')) collate "C")"""
LIST = FilteredList(
    "participants",
    ParticipantListQuery,
    {
        **PARTICIPANT_FILTERS,
        "without_account_manager": Filter("account_manager_id is null and {}::boolean"),
        "account_manager_or_none": Filter("(account_manager_id is null or account_manager_id = any ({}::uuid[]))"),
        **PARTICIPANTS_LIMIT,
    },
    sorts={
        **BY_UPDATED_AT,
        "last_name": Sort('(lower(last_name) collate "C")', "text", is_nullable=True),
        "name": Sort(FULL_NAME, "text", is_nullable=True),
        "participant_number": Sort("participant_number", "text", is_nullable=True),
        "plan_end_date": Sort("plan_end_date", "date", is_nullable=True),
        "status": Sort("status", "text"),
        "state": Sort("state", "text", is_nullable=True),
        "account_manager": Sort("account_manager_id", "uuid", is_nullable=True),
    },
)
COUNTED_FIELDS = {"status", "state"}


async def list_page(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> PageRows[Participant]:
    if query.is_plain:
        return cut_page(await db.rows(Participant, PLAIN_PAGE, plan_manager_id, *query.position), query.limit)
    query, filters = _split_unassigned(query)
    filters |= await search_values(db, "participant", query.q)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, **filters)


def _split_unassigned(query: ParticipantListQuery) -> tuple[ParticipantListQuery, dict[str, object]]:
    """`account_manager=none`, alone or with ids, as a filter that has a condition of its own."""
    if query.account_manager is UNSET or NO_ACCOUNT_MANAGER not in query.account_manager:
        return query, {}
    ids = [each for each in query.account_manager if each != NO_ACCOUNT_MANAGER]
    filters: dict[str, object] = {"account_manager_or_none": ids} if ids else {"without_account_manager": True}
    return replace(query, account_manager=UNSET), filters


# The limit applies before the names are looked up.
PLAIN_PAGE = f"""
    select {FULL_COLUMNS}
    from (
        select * from participants where plan_manager_id = $1 and id > $2 order by id limit $3 offset $4
    ) participant
    {ACCOUNT_MANAGER_NAME}
    order by id
"""


async def count(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    """The number of matching participants. Numbers by status and state are stored; others are counted on an index.

    Of a search, at most one more than MAX_TOTAL are counted.
    """
    query, filters = _split_unassigned(query)
    search = await search_values(db, "participant", query.q)
    if COUNTED_FIELDS.issuperset(LIST.values_of(query, **filters, **search)):
        return await sum_counts(
            db, plan_manager_id, "participants", unset_to_none(query.status), unset_to_none(query.state)
        )
    if search:
        return await count_matches(db, plan_manager_id, LIST, query, filters | search)
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, **filters))


class PlanEndSummary(Struct):
    """Active participants: whose plan ends from today to a last day, whose plan has ended, who have no manager."""

    ending: int
    ended: int
    without_account_manager: int


class PeriodCount(Struct):
    """The active participants whose plans end in a period; periods count from 1."""

    period: int
    count: int


SUMMARIZE_PLAN_ENDS = """
    select ends.ending, ends.ended, case when $2::uuid is null then (
            select count(*) from participants
            where plan_manager_id = $1 and account_manager_id is null and status = 'Active'
        ) else 0 end as without_account_manager
    from (
        select count(*) filter (where plan_end_date >= $3) as ending,
            count(*) filter (where plan_end_date < $3) as ended
        from participants
        where plan_manager_id = $1 and ($2::uuid is null or account_manager_id = $2) and status = 'Active'
            and plan_end_date <= $4
    ) ends
"""


async def summarize_plan_ends(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, today: date, last: date
) -> PlanEndSummary:
    """Of everyone, or of an account manager."""
    return await db.one(PlanEndSummary, SUMMARIZE_PLAN_ENDS, plan_manager_id, account_manager_id, today, last)


COUNT_PLAN_ENDS = """
    select width_bucket(plan_end_date, $3::date[]) as period, count(*)
    from participants
    where plan_manager_id = $1 and ($2::uuid is null or account_manager_id = $2) and status = 'Active'
        and plan_end_date >= ($3)[1] and plan_end_date < ($3)[array_upper($3, 1)]
    group by 1
"""


async def count_plan_ends(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, limits: Sequence[date]
) -> list[PeriodCount]:
    """The active participants whose plans end from each limit to the day before the next."""
    return await db.rows(PeriodCount, COUNT_PLAN_ENDS, plan_manager_id, account_manager_id, limits)
