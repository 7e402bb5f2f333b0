"""The search for participants in SQL, by the prefix of a name, a participant number or an email address."""

from typing import LiteralString

from msgspec import Struct, UnsetType

from plankeeper.database.filters import Filter

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


MATCHES: LiteralString = "select * from participants where plan_manager_id = $1"
# A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
SEARCH = Filter(
    ("search_text", "search_number", "search_number_end", "search_first_names", "search_last_names"),
    "",
    source=f"""
            {MATCHES} and lower(last_name) ~>=~ lower({{0}}) and lower(last_name) ~<~ (lower({{0}}) || chr(1114111))
            union all
            {MATCHES} and lower(first_name) ~>=~ lower({{0}}) and lower(first_name) ~<~ (lower({{0}}) || chr(1114111))
            union all
            {MATCHES} and lower(email) ~>=~ lower({{0}}) and lower(email) ~<~ (lower({{0}}) || chr(1114111))
            union all
            {MATCHES} and participant_number ~>=~ {{1}} and participant_number ~<~ {{2}}
            union all
            select by_name.* from unnest({{3}}::text[], {{4}}::text[]) as name (first, last)
            cross join lateral (
                {MATCHES}
                    and lower(last_name) ~>=~ lower(last) and lower(last_name) ~<~ (lower(last) || chr(1114111))
                    and lower(first_name) ~>=~ lower(first) and lower(first_name) ~<~ (lower(first) || chr(1114111))
                offset 0  -- without it, the ranges become a filter of the join
            ) by_name
    """,
)


def search_values(text: str | UnsetType) -> dict[str, object]:
    """The values of the filter for a search text; none without one."""
    if isinstance(text, UnsetType):
        return {}
    terms = parse_search(text)
    values = (terms.text, terms.number, terms.number_end, terms.first_names, terms.last_names)
    return dict(zip(SEARCH.fields, values, strict=True))
