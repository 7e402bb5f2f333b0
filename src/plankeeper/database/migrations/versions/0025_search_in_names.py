"""Search by any part of a name or number, without regard to accents, and by names with a slip."""

from typing import LiteralString

from plankeeper.database.migrations import steps

revision = "0025"
down_revision = "0024"

EXTENSIONS: tuple[LiteralString, ...] = ("pg_trgm", "unaccent", "btree_gin")

# Functions and dictionaries have their schema, because PostgreSQL creates indexes with an empty search path. In
# PL/pgSQL, because a SQL function that calls `unaccent`, which isn't immutable, takes twice as long. The cost keeps the
# planner from calling them for every row of a plan manager.

# Accents go first: in the locale C, `lower` changes only the letters from A to Z.
FOLD = """
    create or replace function fold(value text) returns text
    language plpgsql immutable strict parallel safe cost 1000 as $$
    begin
        return lower(public.unaccent('public.unaccent'::regdictionary, value));
    end $$
"""

# A space precedes and follows every word. `Al-Masri` is there as `al masri` and as `almasri`. Numbers have no spaces,
# and the numbers of telephones begin with 0.
SEARCH_TEXT = """
    create or replace function search_text(names text[], numbers text[]) returns text
    language plpgsql immutable parallel safe cost 1000 as $$
    declare
        folded text := public.fold(array_to_string(names, '|'));
        digits text := '|' || lower(translate(array_to_string(numbers, '|'), ' -().,/_#', ''));
    begin
        return ' ' || translate(folded, '|-''’.,/()&"', '           ')
            || ' ' || translate(folded, '|-''’.,/()&" ', ' ')
            || translate(replace(replace(digits, '|+61', '|0'), '|0061', '|0'), '|+', ' ') || ' ';
    end $$
"""

# Two words that differ by one letter have a key in common: each has the keys of the word and of the word without one
# of its letters. Words in scripts without trigrams have the keys of their beginnings. The first eight letters count.
SEARCH_KEYS = """
    create or replace function search_keys(names text[]) returns integer[]
    language plpgsql immutable parallel safe cost 1000 as $$
    declare
        word text;
        keys integer[] := '{}';
    begin
        foreach word in array string_to_array(
            translate(public.fold(array_to_string(names, '|')), '|-''’.,/()&"', '           '), ' '
        ) loop
            if octet_length(word) > length(word) then
                keys := keys || array[
                    hashtext(left(word, 1)), hashtext(left(word, 2)), hashtext(left(word, 3)),
                    hashtext(left(word, 4)), hashtext(left(word, 5)), hashtext(left(word, 6)),
                    hashtext(left(word, 7)), hashtext(left(word, 8))
                ];
            elsif length(word) >= 4 then
                keys := keys || public.slip_keys(word);
            end if;
        end loop;
        return keys;
    end $$
"""
SLIP_KEYS = """
    create or replace function slip_keys(word text) returns integer[]
    language plpgsql immutable strict parallel safe cost 1000 as $$
    declare
        start text := left(word, 8);
    begin
        return array[
            hashtext(start), hashtext(overlay(start placing '' from 1 for 1)),
            hashtext(overlay(start placing '' from 2 for 1)), hashtext(overlay(start placing '' from 3 for 1)),
            hashtext(overlay(start placing '' from 4 for 1)), hashtext(overlay(start placing '' from 5 for 1)),
            hashtext(overlay(start placing '' from 6 for 1)), hashtext(overlay(start placing '' from 7 for 1)),
            hashtext(overlay(start placing '' from 8 for 1))
        ];
    end $$
"""
# The keys of a searched word.
WORD_KEYS = """
    create or replace function word_keys(word text) returns integer[]
    language plpgsql immutable strict parallel safe cost 1000 as $$
    begin
        if octet_length(word) > length(word) then
            return array[hashtext(left(word, 8))];
        end if;
        return public.slip_keys(word);
    end $$
"""

PARTICIPANT_NAMES: LiteralString = "array[first_name, middle_name, last_name, preferred_name]"
MEMBER_NAMES: LiteralString = "array[first_name, last_name]"
PROVIDER_NAMES: LiteralString = "array[entity_name]"


def upgrade() -> None:
    for extension in EXTENSIONS:
        steps.execute(f"create extension if not exists {extension} with schema public")
    for function in (FOLD, SLIP_KEYS, WORD_KEYS, SEARCH_TEXT, SEARCH_KEYS):
        steps.execute(function)
    steps.create_index(
        "participants_by_search",
        f"""participants using gin (plan_manager_id,
            search_text({PARTICIPANT_NAMES}, array[participant_number, phone_number]) gin_trgm_ops,
            search_keys({PARTICIPANT_NAMES}))""",
    )
    steps.create_index(
        "team_members_by_search",
        f"""team_members using gin (plan_manager_id,
            search_text({MEMBER_NAMES}, array[phone_number, secondary_phone_number]) gin_trgm_ops,
            search_keys({MEMBER_NAMES}))""",
    )
    steps.create_index(
        "providers_by_search",
        f"""providers using gin (plan_manager_id,
            search_text({PROVIDER_NAMES}, array[abn]) gin_trgm_ops, search_keys({PROVIDER_NAMES}))""",
    )
    steps.create_index(
        "invoices_by_search",
        "invoices using gin (plan_manager_id, search_text('{}', array[invoice_number]) gin_trgm_ops)",
    )
    steps.create_index("users_by_email", "users (plan_manager_id, lower(email) text_pattern_ops, id)")
    steps.create_index("team_members_by_user", "team_members (plan_manager_id, user_id)")
