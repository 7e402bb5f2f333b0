"""The search for participants in SQL, by the prefix of a name, a participant number or an email address."""

from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.participants.schemas import Participant, ParticipantListQuery
from plankeeper.participants.store import get_many

MAX_WORDS = 5
# All scheme numbers begin with the same two digits: a shorter prefix would match most participants.
MIN_PREFIX_DIGITS = 4
_MAX_CHARACTER = "\U0010ffff"  # no character sorts after it


class SearchTerms(Struct):
    """A search text, and the ways to read its words as a first and a last name."""

    text: str
    number: str
    number_end: str
    first_names: list[str]
    last_names: list[str]


def parse_search(text: str) -> SearchTerms:
    """`Ann Lee` can be first name Ann and last name Lee, or the reverse. A number can contain spaces."""
    words = text.replace(",", " ").split()[:MAX_WORDS]
    splits = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    pairs = [*splits, *((last, first) for first, last in splits)]
    normalized, compact = " ".join(text.split()), "".join(text.split())
    number = compact if compact.isdecimal() else normalized
    # A short number must match as a whole.
    number_end = number + (_MAX_CHARACTER if len(number) >= MIN_PREFIX_DIGITS else "\x01")
    return SearchTerms(normalized, number, number_end, [first for first, _ in pairs], [last for _, last in pairs])


async def search_page(db: Executor, plan_manager_id: UUID, text: str, query: ParticipantListQuery) -> list[Participant]:
    """The rows of one page and one more, in order of id. The query's status, state and account manager apply."""
    ids = await _matching_ids(db, plan_manager_id, parse_search(text), query)
    return await get_many(db, plan_manager_id, ids) if ids else []


# The rows behind the cursor, with the columns that the filters of a search compare.
CANDIDATES: LiteralString = """
        select id, status, state, account_manager_id from participants where plan_manager_id = $1 and id > $2
"""
# A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
MATCHING_IDS = f"""
    -- Without `materialized`, PostgreSQL may walk the primary key and discard every row that does not match.
    with matches as materialized (
        {CANDIDATES} and lower(last_name) ~>=~ lower($6) and lower(last_name) ~<~ (lower($6) || chr(1114111))
        union all
        {CANDIDATES} and lower(first_name) ~>=~ lower($6) and lower(first_name) ~<~ (lower($6) || chr(1114111))
        union all
        {CANDIDATES} and lower(email) ~>=~ lower($6) and lower(email) ~<~ (lower($6) || chr(1114111))
        union all
        {CANDIDATES} and participant_number ~>=~ $7 and participant_number ~<~ $8
        union all
        select by_name.* from unnest($9::text[], $10::text[]) as name (first, last)
        cross join lateral (
            {CANDIDATES}
                and lower(last_name) ~>=~ lower(last) and lower(last_name) ~<~ (lower(last) || chr(1114111))
                and lower(first_name) ~>=~ lower(first) and lower(first_name) ~<~ (lower(first) || chr(1114111))
            offset 0  -- without it, the ranges become a filter of the join
        ) by_name
    )
    select distinct id from matches
    where ($3::text is null or status = $3) and ($4::text is null or state = upper($4))
        and ($5::uuid[] is null or account_manager_id = any ($5))
    order by id limit $11
"""


async def _matching_ids(
    db: Executor, plan_manager_id: UUID, terms: SearchTerms, query: ParticipantListQuery
) -> list[UUID]:
    return await db.rows(
        UUID,
        MATCHING_IDS,
        plan_manager_id,
        query.start,
        unset_to_none(query.status),
        unset_to_none(query.state),
        unset_to_none(query.account_manager),
        terms.text,
        terms.number,
        terms.number_end,
        terms.first_names,
        terms.last_names,
        query.limit + 1,
    )
