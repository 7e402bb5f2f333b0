"""The search as filters of lists: all matches, without those with a typo in a word."""

import time
from collections.abc import Mapping
from typing import LiteralString
from uuid import UUID

from msgspec import UnsetType

from plankeeper.core import lists
from plankeeper.core.lists import SortableQuery
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import Filter
from plankeeper.resources.search import store
from plankeeper.resources.search.schemas import Kind
from plankeeper.resources.search.store import (
    PARTICIPANT_KEYS,
    PARTICIPANT_TEXT,
    PROVIDER_KEYS,
    PROVIDER_TEXT,
    has_key,
)
from plankeeper.resources.search.terms import SearchTerms, parse, part_pattern

# Counting 10,000 matches takes 0.2 s, because their texts are computed. It isn't repeated for the next page.
MAX_AGE = 10.0  # seconds for which a worker remembers that a search has more than MAX_TOTAL matches
MAX_REMEMBERED = 1000

_exceeding: dict[tuple[object, ...], float] = {}  # until when they are remembered, the oldest first

_NOTHING = "\U0010ffff"  # no email begins with it


def _filters(text: LiteralString, keys: LiteralString) -> dict[str, Filter]:
    """The filters of a table, of which a search uses one: by words or an email, words, a word's key, an email."""
    words: LiteralString = f"{text} like {{0}} and {text} like {{1}} and {text} like all ({{2}}::text[])"
    # A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
    email: LiteralString = "lower(email) ~>=~ {0} and lower(email) ~<~ ({0} || chr(1114111))"
    email_of_words: LiteralString = "lower(email) ~>=~ {3} and lower(email) ~<~ ({3} || chr(1114111))"
    key: LiteralString = f"{has_key(keys, '{0}')} and {text} like all ({{1}}::text[])"
    return {
        "search_words_or_email": Filter(f"({words} or {email_of_words})"),
        "search_words": Filter(words),
        "search_key": Filter(key),
        "search_email": Filter(email),
    }


PARTICIPANT_FILTERS = _filters(PARTICIPANT_TEXT, PARTICIPANT_KEYS)
PROVIDER_FILTERS = _filters(PROVIDER_TEXT, PROVIDER_KEYS)


async def search_values(db: Executor, kind: Kind, text: str | UnsetType) -> dict[str, object]:
    """The values of the filters for a search text; none without one."""
    return {} if isinstance(text, UnsetType) else _values(parse(await store.fold(db, text)), kind)


async def count_matches(
    db: Executor, plan_manager_id: UUID, rows: FilteredList, query: SortableQuery, search: Mapping[str, object]
) -> int:
    """The number of matches of a search: at most one more than MAX_TOTAL. `search` are the values of its filters."""
    values = rows.values_of(query, **search)
    key = (plan_manager_id, rows.name, repr(values))
    now = time.monotonic()
    if _exceeding.get(key, 0) > now:
        return lists.MAX_TOTAL + 1
    _exceeding.pop(key, None)
    count = (await rows.summary(db, plan_manager_id, values, lists.MAX_TOTAL + 1)).count
    if count > lists.MAX_TOTAL:
        _exceeding[key] = now + MAX_AGE
        if len(_exceeding) > MAX_REMEMBERED:
            del _exceeding[next(iter(_exceeding))]
    return count


async def note_values(db: Executor, text: str) -> dict[str, object]:
    """The values of the filters of notes for a search text."""
    terms = parse(await store.fold(db, text))
    if terms.other_words:
        return {"search_key": (terms.other_words[0], terms.patterns_beside_key)}
    first, *others = [*map(part_pattern, terms.words_of("note"))] or [_NOTHING]
    return {"search_words": (first, (others or [store.ANYTHING])[0], others[1:])}


async def invoice_number_pattern(db: Executor, text: str) -> str:
    """The pattern of LIKE for a part of an invoice number; it matches nothing for a text without one."""
    words = parse(await store.fold(db, text)).words_of("invoice")
    return part_pattern(words[0]) if words else _NOTHING


def _values(terms: SearchTerms, kind: Kind) -> dict[str, object]:
    if terms.is_email or terms.is_empty:
        return {"search_email": terms.email or _NOTHING}
    if terms.other_words:
        return {"search_key": (terms.other_words[0], terms.patterns_beside_key)}
    first, *others = map(part_pattern, terms.words_of(kind))
    words = (first, (others or [store.ANYTHING])[0], others[1:])
    return {"search_words_or_email": (*words, terms.email)} if terms.email else {"search_words": words}
