"""Searches the records of a plan manager."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.search import store
from plankeeper.resources.search.limits import limit_search
from plankeeper.resources.search.schemas import (
    KINDS,
    InvoiceMatch,
    Kind,
    KindResults,
    Match,
    ParticipantDetailMatch,
    SearchResults,
    TeamMemberMatch,
    Values,
)
from plankeeper.resources.search.terms import (
    MIN_PART_DIGITS,
    MIN_PART_LENGTH,
    SearchTerms,
    correct,
    parse,
    part_pattern,
    prefix_pattern,
    word_pattern,
)


def rank(words: Sequence[str], text: str) -> tuple[int, int, str]:
    """The key to sort a match by; `text` is its text in the index."""
    known = text.split()
    phrase = " ".join(words)
    if all(word in known for word in words):
        place = 0
    elif text.startswith(f" {phrase}"):
        place = 1
    elif all(any(each.startswith(word) for each in known) for word in words):
        place = 2
    else:
        place = 3
    return place, len(set(known)), text


MAX_COUNT = 100  # matches of a kind that are counted and ordered; of more, whole words and beginnings come first
MAX_CORRECTIONS = 3

Find = Callable[[Sequence[str], int], Awaitable[Sequence[Match]]]


class KindStore(NamedTuple):
    """The functions that search one kind."""

    by_words: Callable[..., Awaitable[Sequence[Any]]]
    by_key: Callable[..., Awaitable[Sequence[Any]]]
    by_email: Callable[..., Awaitable[Sequence[Any]]]


STORES: dict[Kind, KindStore] = {
    "participant": KindStore(store.participants_by_words, store.participants_by_key, store.participants_by_email),
    "team_member": KindStore(store.members_by_words, store.members_by_key, store.members_by_email),
    "provider": KindStore(store.providers_by_words, store.providers_by_key, store.providers_by_email),
}


async def search(
    db: Executor,
    plan_manager_id: UUID,
    text: str,
    kinds: Sequence[Kind] = KINDS,
    limit: int = 5,
    values: Values | None = None,
    participants_of: UUID | None = None,
) -> SearchResults:
    """The best `limit` matches of each kind, at most MAX_COUNT.

    With `values`, invoices are also found by total, and participants by date of birth and by address.
    `participants_of` is the account manager to whose participants a viewer is limited.
    """
    db = limit_search(db, participants_of)
    terms = parse(await store.fold(db, text))
    if terms.is_empty:
        return SearchResults([], [])
    results = [
        await _search_notes(db, plan_manager_id, terms, limit)
        if kind == "note"
        else await _search_kind(db, plan_manager_id, terms, kind, limit, values)
        for kind in kinds
    ]
    similar = [match.text for each in results for match in each.similar]
    corrections = Counter(filter(None, (correct(terms.words, text) for text in similar)))
    return SearchResults(results, [text for text, _ in corrections.most_common(MAX_CORRECTIONS)])


async def _search_kind(
    db: Executor, plan_manager_id: UUID, terms: SearchTerms, kind: Kind, limit: int, values: Values | None
) -> KindResults:
    words = terms.words_of(kind)
    if kind == "invoice":
        find = partial(_find_invoices, db, plan_manager_id)
        matches, has_more = await _find_in_stages(find, words, limit, MIN_PART_LENGTH)
    else:
        matches, has_more = await _find_by_names(db, plan_manager_id, terms, kind, limit)
    best = sorted(_distinct(matches), key=lambda each: rank(words, each.text))
    if kind != "invoice" and terms.email:
        best = _distinct([*best, *await STORES[kind].by_email(db, plan_manager_id, terms.email, MAX_COUNT + 1)])
    if values and kind == "invoice":
        best = await _with_invoices_of_total(db, plan_manager_id, values, words, best)
    if values and kind == "participant" and not has_more:
        best += await _find_by_details(db, plan_manager_id, terms, values, best)
    has_more, best = has_more or len(best) > MAX_COUNT, best[:MAX_COUNT]
    similar = list[Match]()
    if len(best) < limit and kind != "invoice":
        similar = await _find_similar(db, plan_manager_id, terms, kind, best)
    is_listed = not any(isinstance(each, ParticipantDetailMatch) for each in best)
    return KindResults(kind, best[:limit], len(best), has_more, similar[: limit - len(best)], is_listed)


async def _search_notes(db: Executor, plan_manager_id: UUID, terms: SearchTerms, limit: int) -> KindResults:
    """The notes with all words, the newest first. A list of notes has no page of its own."""
    place, patterns = (db, plan_manager_id), [*map(part_pattern, terms.words_of("note"))]
    if others := terms.other_words:
        found = await store.notes_by_key(*place, others[0], terms.patterns_beside_key, MAX_COUNT + 1)
    else:
        found = await store.notes_by_words(*place, patterns, MAX_COUNT + 1) if patterns else []
    best = sorted(found[:MAX_COUNT], key=lambda each: (each.created_at, each.id), reverse=True)
    return KindResults("note", [*best[:limit]], len(best), len(found) > MAX_COUNT, [], is_listed=False)


async def _with_invoices_of_total(
    db: Executor, plan_manager_id: UUID, values: Values, words: Sequence[str], numbered: list[Match]
) -> list[Match]:
    """Invoices with a complete number first, then those with a total, the latest first, then other numbers."""
    if values.amount is None:
        return numbered
    rows = await store.invoices_by_total(db, plan_manager_id, values.amount, MAX_COUNT + 1)
    found: list[InvoiceMatch] = sorted(rows, key=lambda each: each.id, reverse=True)
    complete = [each for each in numbered if rank(words, each.text)[0] == 0]
    return _distinct([*complete, *found, *numbered])


async def _find_by_details(
    db: Executor, plan_manager_id: UUID, terms: SearchTerms, values: Values, known: Sequence[Match]
) -> list[Match]:
    """Participants with a date of birth, or else with an address, without those that are known."""
    if values.date:
        found = await store.participants_by_birth(db, plan_manager_id, values.date, MAX_COUNT + 1)
    elif words := terms.address_words:
        patterns = [prefix_pattern(each) for each in words]
        found = await store.participants_by_address(db, plan_manager_id, patterns, MAX_COUNT + 1)
    else:
        return []
    ids = {each.id for each in known}
    return sorted((each for each in found if each.id not in ids), key=lambda each: rank(terms.words, each.text))


async def _find_by_names(
    db: Executor, plan_manager_id: UUID, terms: SearchTerms, kind: Kind, limit: int
) -> tuple[list[Match], bool]:
    """The matches of the words, and whether there are more of them."""
    if terms.is_email:
        return [], False
    others = terms.other_words
    if not others:
        find = partial(STORES[kind].by_words, db, plan_manager_id)
        return await _find_in_stages(find, terms.words_of(kind), limit, has_whole_words=not terms.is_number)
    rows = await STORES[kind].by_key(db, plan_manager_id, others[0], terms.patterns_beside_key, MAX_COUNT + 1)
    return list(rows), len(rows) > MAX_COUNT


async def _find_in_stages(
    find: Find, words: Sequence[str], limit: int, min_digits: int = MIN_PART_DIGITS, *, has_whole_words: bool = True
) -> tuple[list[Match], bool]:
    """All matches, or of too many the best ones, and whether there are more of them.

    Few people have the same complete number, so whole words are searched only in names and numbers of invoices.
    """
    if not words:
        return [], False
    parts = [part_pattern(each, min_digits) for each in words]
    starts, wholes = [*map(prefix_pattern, words)], [*map(word_pattern, words)]
    rows = list(await find(parts, MAX_COUNT + 1))
    if len(rows) <= MAX_COUNT:
        return rows, False
    whole = list(await find(wholes, limit)) if has_whole_words and wholes != parts else []
    begun = list(await find(starts, limit)) if len(whole) < limit and starts != parts else []
    return [*whole, *begun, *rows], True


async def _find_invoices(db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int) -> Sequence[Match]:
    return await store.invoices_by_number(db, plan_manager_id, patterns[0], limit)


async def _find_similar(
    db: Executor, plan_manager_id: UUID, terms: SearchTerms, kind: Kind, known: Sequence[Match]
) -> list[Match]:
    """Matches with a typo in a word, without those that are known."""
    ids = {_key(each) for each in known}
    found = list[Match]()
    for word in terms.words_with_typos:
        others = [part_pattern(each) for each in terms.latin_words if each != word]
        rows = await STORES[kind].by_key(db, plan_manager_id, word, others, MAX_COUNT)
        found += [each for each in rows if _key(each) not in ids and correct(terms.words, each.text)]
    return sorted(_distinct(found), key=lambda each: each.text)


def _distinct(matches: Iterable[Match]) -> list[Match]:
    return list({_key(each): each for each in matches}.values())


def _key(match: Match) -> tuple[UUID, UUID | None]:
    """A team member is identified by its participant's id, too."""
    return match.id, match.participant_id if isinstance(match, TeamMemberMatch) else None
