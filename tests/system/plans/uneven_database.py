"""A database with one large office beside fifty small ones, with rows in every table of plan managers. Tests only read.

PostgreSQL plans a statement once for the average plan manager, which has few rows here. A plan that is quick for that
one can read all rows of the large one.
"""

from uuid import UUID

from support.cluster import SharedCluster

LARGE_OFFICE = UUID("01900000-0000-7000-8000-000000000000")
# The id of one of its rows in each table.
ROW = UUID("01900000-0000-7000-8000-000000002500")

FILL_SQL = """
create temporary table rows as
select ('01900000-0000-7000-80' || to_char(office, 'FM00') || '-000000000000')::uuid as plan_manager_id,
    ('01900000-0000-7000-80' || to_char(office, 'FM00') || '-' || to_char(n, 'FM000000000000'))::uuid as id, n
from generate_series(0, 50) office cross join generate_series(1, case when office = 0 then 5000 else 100 end) n;
do $$
declare
    filled record;
    statement text;
begin
    -- Most values fit no constraint, and statements write null into columns that their records lack.
    for statement in
        select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint
        where contype = 'c' and connamespace = 'public'::regnamespace
        union all
        select format('alter table %s alter %I drop not null', table_name, column_name) from information_schema.columns
        where table_schema = 'public' and is_nullable = 'NO' and is_identity = 'NO' and not exists (
            select from pg_index join pg_attribute on attrelid = indrelid and attnum = any (indkey)
            where indisprimary and indrelid = table_name::regclass and attname = column_name
        )
    loop
        execute statement;
    end loop;
    -- The values of a row follow from its number, each by the type of its column.
    for filled in
        select table_name, string_agg(quote_ident(column_name), ', ') as columns, string_agg(case
            when column_name = 'plan_manager_id' then 'plan_manager_id'
            when data_type = 'uuid' then 'id'
            when data_type = 'text' then 'id::text'
            when udt_name = '_uuid' then 'array[plan_manager_id]'
            when data_type in ('smallint', 'integer', 'bigint', 'numeric', 'double precision') then 'n'
            when data_type = 'boolean' then 'n % 2 = 0'
            when data_type in ('date', 'timestamp with time zone') then
                'timestamptz ''2024-01-01'' + n * interval ''1 minute'''
            when data_type in ('json', 'jsonb') then '''[]'''
            when data_type = 'ARRAY' then '''{}'''
            else 'null' end, ', ') as expressions
        from information_schema.columns
        where table_schema = 'public' and is_generated = 'NEVER' and is_identity = 'NO'
        group by table_name
        having bool_or(column_name = 'plan_manager_id')
    loop
        execute format('insert into %s (%s) select %s from rows on conflict do nothing',
            filled.table_name, filled.columns, filled.expressions);
    end loop;
end $$;
"""


def prepare_uneven_database(cluster: SharedCluster) -> str:
    """The address of the database."""
    return cluster.prepared_database(
        "uneven",
        "set synchronous_commit = on",
        "set session_replication_role = replica",  # no foreign keys and triggers
        FILL_SQL,
        "vacuum analyze",
    )
