"""Functions with which a role that doesn't own the tables deletes and erases events, and updates statistics."""

from typing import LiteralString

from plankeeper.database.migrations import steps

revision = "0022"
down_revision = "0021"

# $3: the members that stay, or null for all of them. $4: a member whose text matches is erased, too; or null.
_ERASED_DATA: LiteralString = """(
                        select json_object_agg(key, case
                            when $3 is not null and key <> all ($3) then null
                            when coalesce(value #>> '{}', '') !~* $4 or $4 is null then value
                            when json_typeof(value) = 'string' then '"[erased]"'::json
                        end)
                        from json_each(event.data)
                    )"""
_ERASED_PREVIOUS: LiteralString = _ERASED_DATA.replace("event.data", "event.previous")

DELETE_EVENTS = """
    create or replace function delete_events(uuid, uuid[]) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
        delete from events where plan_manager_id = $1 and id = any ($2);
    end $$
"""

ERASE_EVENTS: LiteralString = f"""
    create or replace function erase_events(uuid, uuid[], text[], text) returns integer
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
        erased_count integer;
    begin
        with erased as (
            update events changed set data = new.data, previous = new.previous
            from (
                select id, {_ERASED_DATA} as data, {_ERASED_PREVIOUS} as previous
                from events event
                where plan_manager_id = $1 and id = any ($2)
            ) new
            where changed.plan_manager_id = $1 and changed.id = new.id
                and (changed.data::jsonb, changed.previous::jsonb)
                    is distinct from (new.data::jsonb, new.previous::jsonb)
            returning changed.id
        )
        select count(*) into erased_count from erased;
        return erased_count;
    end $$
"""

ANALYZE_TABLES = """
    create or replace function analyze_tables(names text[], skip_locked boolean) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
        name text;
    begin
        foreach name in array names loop
            execute format('analyze (skip_locked %s) %I', case when skip_locked then 'on' else 'off' end, name);
        end loop;
    end $$
"""


def upgrade() -> None:
    steps.execute(DELETE_EVENTS)
    steps.execute(ERASE_EVENTS)
    steps.execute(ANALYZE_TABLES)
