"""The search in SQL: each kind by patterns of words, by the keys of a word, and by the beginning of an email.

Also participants by date of birth and by address, and invoices by total.

`limit` comes before the other tables are joined, so that a word of many people costs no more than one of few.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.search.schemas import (
    InvoiceMatch,
    NoteMatch,
    ParticipantDetailMatch,
    ParticipantMatch,
    ProviderMatch,
    TeamMemberMatch,
)

_PARTICIPANT_NAMES: LiteralString = "array[first_name, middle_name, last_name, preferred_name]"
_MEMBER_NAMES: LiteralString = "array[first_name, last_name]"
_PROVIDER_NAMES: LiteralString = "array[entity_name]"

PARTICIPANT_TEXT: LiteralString = f"search_text({_PARTICIPANT_NAMES}, array[participant_number, phone_number])"
PARTICIPANT_KEYS: LiteralString = f"search_keys({_PARTICIPANT_NAMES})"
ADDRESS_TEXT: LiteralString = "search_text(array[address_line_1, address_line_2, city], array[postcode])"
MEMBER_TEXT: LiteralString = f"search_text({_MEMBER_NAMES}, array[phone_number, secondary_phone_number])"
MEMBER_KEYS: LiteralString = f"search_keys({_MEMBER_NAMES})"
PROVIDER_TEXT: LiteralString = f"search_text({_PROVIDER_NAMES}, array[abn])"
PROVIDER_KEYS: LiteralString = f"search_keys({_PROVIDER_NAMES})"
INVOICE_TEXT: LiteralString = "search_text('{}', array[invoice_number])"
NOTE_TEXT: LiteralString = "search_text(array[text], '{}')"
NOTE_KEYS: LiteralString = "prefix_keys(text)"

# Arabic surnames often begin with an article, which people leave out.
_ARTICLE: LiteralString = "\u0627\u0644"


def has_key(keys: LiteralString, word: LiteralString) -> LiteralString:
    """Whether keys of names have one of those of a word, or of the word with the Arabic article."""
    return f"{keys} && (select word_keys({word}) || word_keys('{_ARTICLE}' || {word}))"


ANYTHING = "%"  # a pattern that adds no cost beside another one

# A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
HAS_EMAIL: LiteralString = "lower(email) ~>=~ $2 and lower(email) ~<~ ($2 || chr(1114111))"


def by_words(text: LiteralString) -> LiteralString:
    """The last conditions of a statement: the patterns $2 and $3, which the index serves, and others in $4."""
    return f"and {text} like $2 and {text} like $3 and {text} like all ($4::text[]) limit $5"


def by_key(keys: LiteralString, text: LiteralString) -> LiteralString:
    """The same with a key of the word $2, and other patterns in $3."""
    return f"and {has_key(keys, '$2')} and {text} like all ($3::text[]) limit $4"


def by_both(keys: LiteralString, text: LiteralString) -> LiteralString:
    """The same with a key of the word $2, the pattern $3, which the index serves, too, and others in $4."""
    return f"and {has_key(keys, '$2')} and {text} like $3 and {text} like all ($4::text[]) limit $5"


PARTICIPANT_COLUMNS: LiteralString = """
    id, first_name, last_name, preferred_name, participant_number, email, phone_number, status
"""
FROM_PARTICIPANTS: LiteralString = f"""
    select {PARTICIPANT_COLUMNS}, {PARTICIPANT_TEXT} as text from participants where plan_manager_id = $1
"""
PARTICIPANTS_BY_WORDS: LiteralString = f"{FROM_PARTICIPANTS} {by_words(PARTICIPANT_TEXT)}"
PARTICIPANTS_BY_KEYS: LiteralString = f"{FROM_PARTICIPANTS} {by_key(PARTICIPANT_KEYS, PARTICIPANT_TEXT)}"
PARTICIPANTS_BY_BOTH: LiteralString = f"{FROM_PARTICIPANTS} {by_both(PARTICIPANT_KEYS, PARTICIPANT_TEXT)}"
PARTICIPANTS_BY_EMAIL: LiteralString = f"{FROM_PARTICIPANTS} and {HAS_EMAIL} limit $3"
PARTICIPANTS_BY_BIRTH: LiteralString = f"""
    select {PARTICIPANT_COLUMNS}, {PARTICIPANT_TEXT} as text, date_of_birth, null::text as address
    from participants
    where plan_manager_id = $1 and date_of_birth = $2
    limit $3
"""
PARTICIPANTS_BY_ADDRESS: LiteralString = f"""
    select {PARTICIPANT_COLUMNS}, {ADDRESS_TEXT} as text, null::date as date_of_birth,
        concat_ws(', ', nullif(address_line_1, ''), nullif(address_line_2, ''), nullif(city, '')) as address
    from participants
    where plan_manager_id = $1 {by_words(ADDRESS_TEXT)}
"""

SELECT_MEMBERS: LiteralString = """
    select member.id, member.participant_id, member.first_name, member.last_name, member.role, users.email,
        member.phone_number, participant.first_name as participant_first_name,
        participant.last_name as participant_last_name, member.text
"""
FROM_MEMBERS: LiteralString = f"""
        select participant_id, id, user_id, first_name, last_name, role, phone_number, {MEMBER_TEXT} as text
        from team_members
        where plan_manager_id = $1
"""
JOIN_MEMBERS: LiteralString = """
    join users on users.plan_manager_id = $1 and users.id = member.user_id
    join participants participant on participant.plan_manager_id = $1 and participant.id = member.participant_id
"""


def with_names(members: LiteralString) -> LiteralString:
    """A statement that reads some team members, with the email of each and the names of the participant."""
    return f"{SELECT_MEMBERS} from ({members}) member {JOIN_MEMBERS}"


MEMBERS_BY_WORDS: LiteralString = with_names(f"{FROM_MEMBERS} {by_words(MEMBER_TEXT)}")
MEMBERS_BY_KEYS: LiteralString = with_names(f"{FROM_MEMBERS} {by_key(MEMBER_KEYS, MEMBER_TEXT)}")
MEMBERS_BY_BOTH: LiteralString = with_names(f"{FROM_MEMBERS} {by_both(MEMBER_KEYS, MEMBER_TEXT)}")
MEMBERS_BY_EMAIL: LiteralString = with_names(f"""
    {FROM_MEMBERS} and user_id in (select id from users where plan_manager_id = $1 and {HAS_EMAIL} limit $3) limit $3
""")
MEMBERS_BY_USER: LiteralString = with_names(f"{FROM_MEMBERS} and user_id = $2 limit $3")

FROM_PROVIDERS: LiteralString = f"""
    select id, entity_name, abn, email, active, {PROVIDER_TEXT} as text from providers where plan_manager_id = $1
"""
PROVIDERS_BY_WORDS: LiteralString = f"{FROM_PROVIDERS} {by_words(PROVIDER_TEXT)}"
PROVIDERS_BY_KEYS: LiteralString = f"{FROM_PROVIDERS} {by_key(PROVIDER_KEYS, PROVIDER_TEXT)}"
PROVIDERS_BY_BOTH: LiteralString = f"{FROM_PROVIDERS} {by_both(PROVIDER_KEYS, PROVIDER_TEXT)}"
PROVIDERS_BY_EMAIL: LiteralString = f"{FROM_PROVIDERS} and {HAS_EMAIL} limit $3"


def from_invoices(condition: LiteralString) -> LiteralString:
    """A statement that reads the invoices with a condition, with the names of their participants and providers."""
    return f"""
    select invoice.id, invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.claim_status,
        invoice.created_at, invoice.participant_id, participant.first_name as participant_first_name,
        participant.last_name as participant_last_name, provider.entity_name, invoice.text
    from (
        select id, invoice_number, invoice_date, total, claim_status, created_at, participant_id, pm_provider_id,
            {INVOICE_TEXT} as text
        from invoices
        where plan_manager_id = $1 and {condition}
        limit $3
    ) invoice
    left join participants participant on participant.plan_manager_id = $1 and participant.id = invoice.participant_id
    left join providers provider on provider.plan_manager_id = $1 and provider.id = invoice.pm_provider_id
    """


INVOICES_BY_NUMBER: LiteralString = from_invoices(f"{INVOICE_TEXT} like $2")
# The index on totals has them in the order of their ids.
INVOICES_BY_TOTAL: LiteralString = from_invoices("total = $2 order by id desc")


def from_notes(condition: LiteralString) -> LiteralString:
    """A statement that reads the notes with a condition, with their types and the names of their records."""
    return f"""
    select note.id, note.resource_kind, note.resource_id, note.content, type.note_type, type.badge_color,
        note.created_at,
        case note.resource_kind
            when 'participant' then (
                select nullif(btrim(concat_ws(' ', person.first_name, person.last_name)), '') from participants person
                where person.plan_manager_id = $1 and person.id = note.resource_id
            )
            when 'provider' then (
                select provider.entity_name from providers provider
                where provider.plan_manager_id = $1 and provider.id = note.resource_id
            )
            else (
                select invoice.invoice_number from invoices invoice
                where invoice.plan_manager_id = $1 and invoice.id = note.resource_id
            )
        end as resource_name,
        note.text
    from (
        select id, resource_kind, resource_id, text as content, note_type_id, created_at, {NOTE_TEXT} as text
        from notes
        where plan_manager_id = $1 {condition}
    ) note
    cross join lateral (
        select kind.note_type, kind.badge_color from note_types kind
        where kind.plan_manager_id = $1 and kind.id = note.note_type_id
        offset 0
    ) type
    """


NOTES_BY_WORDS: LiteralString = from_notes(by_words(NOTE_TEXT))
NOTES_BY_KEYS: LiteralString = from_notes(by_key(NOTE_KEYS, NOTE_TEXT))

FOLD = "select fold($1)"


async def fold(db: Executor, text: str) -> str:
    """The text as the indexes hold it, without accents and capitals, with single spaces."""
    return await db.one(str, FOLD, " ".join(text.split()))


def _split(patterns: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """The first two patterns, each of which can use an index, and the others."""
    first, second, *others = (*patterns, ANYTHING) if len(patterns) == 1 else patterns
    return first, second, others


async def participants_by_words(
    db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int
) -> list[ParticipantMatch]:
    """Participants whose names and numbers match all patterns of LIKE."""
    return await db.rows(ParticipantMatch, PARTICIPANTS_BY_WORDS, plan_manager_id, *_split(patterns), limit)


async def participants_by_key(
    db: Executor, plan_manager_id: UUID, word: str, patterns: Sequence[str], limit: int
) -> list[ParticipantMatch]:
    """Participants with a word that has a key in common with `word`, and who match all patterns of LIKE."""
    if not patterns or not patterns[0].isascii():
        return await db.rows(ParticipantMatch, PARTICIPANTS_BY_KEYS, plan_manager_id, word, patterns, limit)
    first, *others = patterns
    return await db.rows(ParticipantMatch, PARTICIPANTS_BY_BOTH, plan_manager_id, word, first, others, limit)


async def participants_by_email(db: Executor, plan_manager_id: UUID, email: str, limit: int) -> list[ParticipantMatch]:
    """Participants whose emails begin with a text in lower case."""
    return await db.rows(ParticipantMatch, PARTICIPANTS_BY_EMAIL, plan_manager_id, email, limit)


async def participants_by_birth(
    db: Executor, plan_manager_id: UUID, day: date, limit: int
) -> list[ParticipantDetailMatch]:
    """Participants who were born on a day."""
    return await db.rows(ParticipantDetailMatch, PARTICIPANTS_BY_BIRTH, plan_manager_id, day, limit)


async def participants_by_address(
    db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int
) -> list[ParticipantDetailMatch]:
    """Participants whose addresses match all patterns of LIKE."""
    return await db.rows(ParticipantDetailMatch, PARTICIPANTS_BY_ADDRESS, plan_manager_id, *_split(patterns), limit)


async def members_by_words(
    db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int
) -> list[TeamMemberMatch]:
    """Team members whose names and numbers match all patterns of LIKE."""
    return await db.rows(TeamMemberMatch, MEMBERS_BY_WORDS, plan_manager_id, *_split(patterns), limit)


async def members_by_key(
    db: Executor, plan_manager_id: UUID, word: str, patterns: Sequence[str], limit: int
) -> list[TeamMemberMatch]:
    """Team members with a word that has a key in common with `word`, and who match all patterns of LIKE."""
    if not patterns or not patterns[0].isascii():
        return await db.rows(TeamMemberMatch, MEMBERS_BY_KEYS, plan_manager_id, word, patterns, limit)
    first, *others = patterns
    return await db.rows(TeamMemberMatch, MEMBERS_BY_BOTH, plan_manager_id, word, first, others, limit)


async def members_by_email(db: Executor, plan_manager_id: UUID, email: str, limit: int) -> list[TeamMemberMatch]:
    """Team members whose emails begin with a text in lower case."""
    return await db.rows(TeamMemberMatch, MEMBERS_BY_EMAIL, plan_manager_id, email, limit)


async def members_by_user(db: Executor, plan_manager_id: UUID, user_id: UUID, limit: int) -> list[TeamMemberMatch]:
    """The memberships of a user."""
    return await db.rows(TeamMemberMatch, MEMBERS_BY_USER, plan_manager_id, user_id, limit)


async def providers_by_words(
    db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int
) -> list[ProviderMatch]:
    """Providers whose names and numbers match all patterns of LIKE."""
    return await db.rows(ProviderMatch, PROVIDERS_BY_WORDS, plan_manager_id, *_split(patterns), limit)


async def providers_by_key(
    db: Executor, plan_manager_id: UUID, word: str, patterns: Sequence[str], limit: int
) -> list[ProviderMatch]:
    """Providers with a word that has a key in common with `word`, and who match all patterns of LIKE."""
    if not patterns or not patterns[0].isascii():
        return await db.rows(ProviderMatch, PROVIDERS_BY_KEYS, plan_manager_id, word, patterns, limit)
    first, *others = patterns
    return await db.rows(ProviderMatch, PROVIDERS_BY_BOTH, plan_manager_id, word, first, others, limit)


async def providers_by_email(db: Executor, plan_manager_id: UUID, email: str, limit: int) -> list[ProviderMatch]:
    """Providers whose emails begin with a text in lower case."""
    return await db.rows(ProviderMatch, PROVIDERS_BY_EMAIL, plan_manager_id, email, limit)


async def invoices_by_number(db: Executor, plan_manager_id: UUID, pattern: str, limit: int) -> list[InvoiceMatch]:
    """Invoices whose numbers, without spaces and punctuation, match a pattern of LIKE."""
    return await db.rows(InvoiceMatch, INVOICES_BY_NUMBER, plan_manager_id, pattern, limit)


async def invoices_by_total(db: Executor, plan_manager_id: UUID, total: Decimal, limit: int) -> list[InvoiceMatch]:
    """Invoices with a total, the latest ids first."""
    return await db.rows(InvoiceMatch, INVOICES_BY_TOTAL, plan_manager_id, total, limit)


async def notes_by_words(db: Executor, plan_manager_id: UUID, patterns: Sequence[str], limit: int) -> list[NoteMatch]:
    """Notes whose texts match all patterns of LIKE."""
    return await db.rows(NoteMatch, NOTES_BY_WORDS, plan_manager_id, *_split(patterns), limit)


async def notes_by_key(
    db: Executor, plan_manager_id: UUID, word: str, patterns: Sequence[str], limit: int
) -> list[NoteMatch]:
    """Notes with a word in a script without trigrams that begins like `word`, and whose texts match all patterns."""
    return await db.rows(NoteMatch, NOTES_BY_KEYS, plan_manager_id, word, patterns, limit)


FIND_BY_ID = """
    select 'participant' from participants where plan_manager_id = $1 and id = $2
    union all
    select 'provider' from providers where plan_manager_id = $1 and id = $2
    union all
    select 'invoice' from invoices where plan_manager_id = $1 and id = $2
    union all
    select 'event' from events where plan_manager_id = $1 and id = $2
"""


async def find_by_id(db: Executor, plan_manager_id: UUID, id_: UUID) -> list[str]:
    """The kinds of the records and events with an id."""
    return await db.rows(str, FIND_BY_ID, plan_manager_id, id_)
