"""The list of notes in SQL: pages and totals for any set of filters."""

from typing import LiteralString
from uuid import UUID

from msgspec import UnsetType

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.resources.notes.schemas import Note, NoteListQuery
from plankeeper.resources.notes.store import get_many
from plankeeper.resources.search.filters import count_matches, note_values
from plankeeper.resources.search.store import NOTE_KEYS, NOTE_TEXT, has_key

# The braces of an empty array are doubled, because a filter's condition is a format.
TEXT: LiteralString = NOTE_TEXT.replace("{}", "{{}}")
WORDS: LiteralString = f"{TEXT} like {{0}} and {TEXT} like {{1}} and {TEXT} like all ({{2}}::text[])"
KEY: LiteralString = f"{has_key(NOTE_KEYS, '{0}')} and {TEXT} like all ({{1}}::text[])"
LIST = FilteredList(
    "notes",
    NoteListQuery,
    {"search_words": Filter(WORDS), "search_key": Filter(KEY)},
    sorts=BY_UPDATED_AT,
)


async def list_page(db: Executor, plan_manager_id: UUID, query: NoteListQuery) -> PageRows[Note]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, **await _search(db, query.q))


async def count(db: Executor, plan_manager_id: UUID, query: NoteListQuery) -> int:
    """The number of matching notes. Of a search, at most one more than MAX_TOTAL are counted."""
    if search := await _search(db, query.q):
        return await count_matches(db, plan_manager_id, LIST, query, search)
    return await LIST.count(db, plan_manager_id, LIST.values_of(query))


async def _search(db: Executor, text: str | UnsetType) -> dict[str, object]:
    return {} if isinstance(text, UnsetType) else await note_values(db, text)
