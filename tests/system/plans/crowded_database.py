"""A database with 100,000 participants, providers, invoices and notes of one plan manager, which tests only read."""

from uuid import UUID

from support.cluster import SharedCluster

OWNER = UUID("017a5f00-0000-7000-8000-00000000da7a")

FILL_SQL = """
insert into plan_managers (id, name) values ('017a5f00-0000-7000-8000-00000000da7a', 'Many');
insert into users (plan_manager_id, id)
select '017a5f00-0000-7000-8000-00000000da7a', ('017a5f00-0000-7000-8000-0000000000' || to_char(n, 'FM00'))::uuid
from generate_series(10, 29) n;
insert into account_managers (plan_manager_id, id) select plan_manager_id, id from users;
insert into participants (plan_manager_id, id, first_name, last_name, participant_number, email, state, status,
    approval_required, created_at, updated_at, is_pace_plan, postal_statement, participant_receives_statements,
    account_manager_id)
select '017a5f00-0000-7000-8000-00000000da7a', ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid,
    'Ann' || n / 1000, 'Lee' || n % 1000, (430000000 + n)::text, 'p' || n || '@example.com',
    case when n > 99980 then 'TAS' else (array['NSW', 'VIC', 'QLD', 'WA', 'SA', 'ACT', 'NT'])[1 + n % 7] end,
    case when n > 99970 then 'Lead' when n % 5 = 0 then 'Inactive' else 'Active' end, false,
    timestamptz '2024-01-01' + n * interval '1 minute', timestamptz '2024-01-01' + n * interval '1 minute',
    false, false, false,
    ('017a5f00-0000-7000-8000-0000000000' || to_char(10 + n % 20, 'FM00'))::uuid
from generate_series(1, 100000) n;
insert into plans (plan_manager_id, id, participant_id, is_pace_plan, components, created_at, updated_at)
select plan_manager_id, id, id, false, '[]', created_at, updated_at from participants;
insert into providers (plan_manager_id, id, entity_name, abn, email, active, created_at, updated_at)
select '017a5f00-0000-7000-8000-00000000da7a', ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid,
    'Care ' || n, (51824753556 + n)::text, 'p' || n || '@example.com', true,
    timestamptz '2024-01-01' + n * interval '1 minute', timestamptz '2024-01-01' + n * interval '1 minute'
from generate_series(1, 100000) n;
insert into invoices (plan_manager_id, id, invoice_number, participant_id, claim_status, approval_status, created_at,
    pm_provider_id, is_deleted, wont_claim, is_reimbursement, updated_at, errors, received_at, waiting_line_status)
select '017a5f00-0000-7000-8000-00000000da7a', ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid,
    'INV-' || n, ('01900000-0000-7000-8000-' || to_char(1 + n / 10, 'FM000000000000'))::uuid,
    case when n > 99970 then 'on_hold' else 'paid' end, case when n > 99970 then 'pending' else 'not_required' end,
    timestamptz '2024-01-01' + n * interval '1 minute',
    ('01900000-0000-7000-8000-' || to_char(1 + n % 1000, 'FM000000000000'))::uuid, false, false, false,
    timestamptz '2024-01-01' + n * interval '1 minute', n % 50 = 0 or n > 99970,
    timestamptz '2024-01-01' + n * interval '1 minute', case when n > 99970 then 'rejected' end
from generate_series(1, 100000) n;
insert into invoice_lines (plan_manager_id, invoice_id, id, position, gst_code, claim_status, is_deleted, created_at)
select plan_manager_id, id, id, 0, 'P2', case claim_status when 'paid' then 'paid' else 'rejected' end, false,
    created_at
from invoices;
insert into note_types (plan_manager_id, id, note_type)
select '017a5f00-0000-7000-8000-00000000da7a', n, 'Type ' || n from generate_series(1, 3) n;
insert into notes (plan_manager_id, id, resource_kind, resource_id, note_type_id, text, pinned, alert, author_kind,
    created_at, updated_at)
select '017a5f00-0000-7000-8000-00000000da7a', id,
    case when n > 99970 then 'provider' when n % 2 = 0 then 'invoice' else 'participant' end, id,
    case when n > 99970 then 3 else 1 + n % 2 end, 'Call number ' || n, n % 2000 = 0, n % 2500 = 0, 'system',
    timestamptz '2024-01-01' + n * interval '1 minute', timestamptz '2024-01-01' + n * interval '1 minute'
from (
    select n, ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid as id from generate_series(1, 100000) n
) numbered;
insert into stored_counts (plan_manager_id, list, status, second_status, count)
select plan_manager_id, 'participants', status, state, count(*) from participants group by 1, 3, 4
union all
select plan_manager_id, 'invoices', claim_status, approval_status, count(*) from invoices group by 1, 3, 4;
"""


# An index is built from 100,000 rows in less time than it takes them one by one.
DROP_INDEXES_SQL = """
create temporary table dropped_indexes as
select indexrelid, indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
from pg_index
where indrelid = any ('{participants,providers,invoices,invoice_lines,notes}'::regclass[])
    and not exists (select from pg_constraint where conindid = indexrelid);
do $$
declare
    dropped text;
begin
    for dropped in select name from dropped_indexes loop
        execute 'drop index ' || dropped;
    end loop;
end $$;
"""
CREATE_INDEXES_SQL = """
do $$
declare
    created text;
begin
    -- In the same order: of two indexes that cost the same, PostgreSQL takes the older one.
    for created in select definition from dropped_indexes order by indexrelid loop
        execute created;
    end loop;
end $$;
"""


def prepare_crowded_database(cluster: SharedCluster) -> str:
    """The address of the database."""
    # Vacuum marks a page as visible to all transactions only after its rows are on disk.
    return cluster.prepared_database(
        "crowded",
        "set synchronous_commit = on",
        "set session_replication_role = replica",  # the rows satisfy the foreign keys by construction
        "set maintenance_work_mem = '256MB'",
        DROP_INDEXES_SQL,
        FILL_SQL,
        CREATE_INDEXES_SQL,
        "vacuum analyze",
    )
