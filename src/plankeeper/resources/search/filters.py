"""The search as filters of lists: all matches, without those with a typo in a word."""

import time
from collections.abc import Mapping
from typing import LiteralString
from uuid import UUID

from msgspec import UnsetType

from plankeeper.core import lists
from plankeeper.core.lists import SortableQuery
from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList
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

WORD_FIELDS = ("search_first", "search_second", "search_others")
KEY_FIELDS = ("search_key", "search_patterns")
EMAIL_FIELDS = ("search_email",)

# Counting 10,000 matches takes 0.2 s, because their texts are computed. It isn't repeated for the next page.
MAX_AGE = 10.0  # seconds for which a worker remembers that a search has more than MAX_TOTAL matches
MAX_REMEMBERED = 1000

_exceeding: dict[tuple[object, ...], float] = {}  # until when they are remembered, the oldest first

_NOTHING = "\U0010ffff"  # no email begins with it


def _filters(text: LiteralString, keys: LiteralString) -> tuple[Filter, ...]:
    """The filters of a table, of which a search uses one: by words or an email, words, a word's key, an email."""
    words: LiteralString = f"{text} like {{0}} and {text} like {{1}} and {text} like all ({{2}}::text[])"
    # A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
    email: LiteralString = "lower(email) ~>=~ {0} and lower(email) ~<~ ({0} || chr(1114111))"
    email_of_words: LiteralString = "lower(email) ~>=~ {3} and lower(email) ~<~ ({3} || chr(1114111))"
    key: LiteralString = f"{has_key(keys, '{0}')} and {text} like all ({{1}}::text[])"
    return (
        Filter(
            (*WORD_FIELDS, *EMAIL_FIELDS),
            f"({words} or {email_of_words})",
            alternatives=(words, email_of_words),
            is_search=True,
        ),
        Filter(WORD_FIELDS, words, materialize=True, is_search=True),
        Filter(KEY_FIELDS, key, materialize=True, is_search=True),
        Filter(EMAIL_FIELDS, email, materialize=True),
    )


PARTICIPANT_FILTERS = _filters(PARTICIPANT_TEXT, PARTICIPANT_KEYS)
PROVIDER_FILTERS = _filters(PROVIDER_TEXT, PROVIDER_KEYS)


async def search_values(db: Executor, kind: Kind, text: str | UnsetType) -> dict[str, object]:
    """The values of the filters for a search text; none without one."""
    return {} if isinstance(text, UnsetType) else _values(parse(await store.fold(db, text)), kind)


async def count_matches(
    db: Executor, plan_manager_id: UUID, rows: FilteredList, query: SortableQuery, search: Mapping[str, object]
) -> int:
    """The number of matches of a search: at most one more than MAX_TOTAL. `search` are the values of its filters."""
    key = (plan_manager_id, rows.name, repr(rows.filter_values(query, search)))
    now = time.monotonic()
    if _exceeding.get(key, 0) > now:
        return lists.MAX_TOTAL + 1
    _exceeding.pop(key, None)
    count = (await rows.summary(db, plan_manager_id, query, lists.MAX_TOTAL + 1, **search)).count
    if count > lists.MAX_TOTAL:
        _exceeding[key] = now + MAX_AGE
        if len(_exceeding) > MAX_REMEMBERED:
            del _exceeding[next(iter(_exceeding))]
    return count


async def invoice_number_pattern(db: Executor, text: str) -> str:
    """The pattern of LIKE for a part of an invoice number; it matches nothing for a text without one."""
    words = parse(await store.fold(db, text)).words_of("invoice")
    return part_pattern(words[0]) if words else _NOTHING


def _values(terms: SearchTerms, kind: Kind) -> dict[str, object]:
    if terms.is_email or terms.is_empty:
        return {"search_email": terms.email or _NOTHING}
    if terms.other_words:
        return dict(zip(KEY_FIELDS, (terms.other_words[0], terms.patterns_beside_key), strict=True))
    first, *others = map(part_pattern, terms.words_of(kind))
    values: dict[str, object] = dict(
        zip(WORD_FIELDS, (first, (others or [store.ANYTHING])[0], others[1:]), strict=True)
    )
    return values | ({"search_email": terms.email} if terms.email else {})
