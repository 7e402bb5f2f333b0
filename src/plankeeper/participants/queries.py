"""The list of participants in SQL: pages and totals for any set of filters."""

from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList
from plankeeper.http.schemas import unset_to_none
from plankeeper.participants.schemas import Participant, ParticipantListQuery
from plankeeper.participants.store import ACCOUNT_MANAGER_NAME, FULL_COLUMNS, get_many

LIST = FilteredList(
    "participants",
    (
        Filter(("participant_number",), "participant_number = {}"),
        Filter(("email",), "lower(email) = lower({})"),
        Filter(
            ("account_manager",), "account_manager_id = any ({}::uuid[])", each_value="account_manager_id = choice.id"
        ),
        Filter(("updated_since",), "updated_at >= {}", materialize=True),
        Filter(("status", "state"), "status = {} and state = upper({})"),
        Filter(("state",), "state = upper({})"),
        Filter(("status",), "status = {}"),
    ),
)
_SUMMED_FIELDS = {"status", "state"}


async def list_page(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> list[Participant]:
    """The rows of one page and one more, which shows whether another page follows."""
    if not query.has_filters:
        return await db.rows(Participant, UNFILTERED_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
    ids = await LIST.page_ids(db, plan_manager_id, query)
    return await get_many(db, plan_manager_id, ids) if ids else []


# The limit applies before the names are looked up.
UNFILTERED_PAGE = f"""
    select {FULL_COLUMNS}
    from (
        select * from participants where plan_manager_id = $1 and id > $2 order by id limit $3 offset $4
    ) participant
    {ACCOUNT_MANAGER_NAME}
    order by id
"""


async def count(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    """The number of matching participants. Totals by status and state are stored; others are counted on an index."""
    if _SUMMED_FIELDS.issuperset(LIST.used_fields(query)):
        return await db.one(int, SUM, plan_manager_id, unset_to_none(query.status), unset_to_none(query.state))
    return await LIST.count(db, plan_manager_id, query)


SUM = """
    select coalesce(sum(amount), 0)::bigint
    from participant_counts
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
"""
