"""The first tables. Every tenant table's key begins with plan_manager_id, and so does every key that points to it."""

from alembic import op

revision = "0001"
down_revision = None

STATEMENTS = """
create table plan_managers (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null default now()
);

create table permissions (
    id uuid primary key,
    name text not null unique,
    label text not null,
    "order" integer not null unique
);

insert into permissions (id, name, label, "order") values
    ('0199a000-0000-7000-8000-000000000001', 'view_budget', 'View budget', 1),
    ('0199a000-0000-7000-8000-000000000002', 'view_invoices', 'View invoices', 2),
    ('0199a000-0000-7000-8000-000000000003', 'approve_invoices', 'Approve invoices', 3),
    ('0199a000-0000-7000-8000-000000000004', 'email_statements', 'Email statements', 4),
    ('0199a000-0000-7000-8000-000000000005', 'view_documents', 'View documents', 5),
    ('0199a000-0000-7000-8000-000000000006', 'no_access', 'No access', 6);

create table api_keys (
    id uuid primary key,
    name text not null,
    key_hash bytea not null unique,
    last_four text not null,
    scopes text[] not null check (scopes <@ array['read', 'write'] and cardinality(scopes) > 0),
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz
);

create table api_key_plan_managers (
    plan_manager_id uuid not null references plan_managers (id),
    api_key_id uuid not null references api_keys (id),
    primary key (plan_manager_id, api_key_id)
);

create index api_key_plan_managers_by_key on api_key_plan_managers (api_key_id);

-- One row. Whoever changes a key or a grant adds one, and every worker forgets what it knew of keys.
create table grants_version (
    one boolean primary key default true check (one),
    version bigint not null
);

insert into grants_version (version) values (1);

create table users (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    email text,
    created_at timestamptz not null default now(),
    primary key (plan_manager_id, id)
);

create unique index users_email_key on users (plan_manager_id, lower(email));

create table account_managers (
    plan_manager_id uuid not null,
    id uuid not null,
    first_name text,
    last_name text,
    name text generated always as
        (nullif(btrim(coalesce(first_name, '') || ' ' || coalesce(last_name, '')), '')) stored,
    active boolean not null default true,
    is_internal boolean not null default false,
    deleted boolean not null default false,
    primary key (plan_manager_id, id),
    constraint account_managers_id_fkey foreign key (plan_manager_id, id) references users (plan_manager_id, id)
);

create table exit_reasons (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    name text not null,
    parent_id uuid,
    primary key (plan_manager_id, id),
    constraint exit_reasons_parent_id_fkey foreign key (plan_manager_id, parent_id)
        references exit_reasons (plan_manager_id, id)
);

create table participants (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    first_name text,
    middle_name text,
    last_name text,
    preferred_name text,
    participant_number text,
    email text,
    phone_number text,
    date_of_birth date,
    gender text,
    pronouns text,
    state text,
    postcode text,
    address_line_1 text,
    address_line_2 text,
    city text,
    service_region_id text,
    status text not null check (status in ('Active', 'Inactive', 'Lead')),
    approval_required boolean not null,
    onboard_date date,
    created_at timestamptz not null,
    date_ceased date,
    reason_for_leaving text,
    exit_reason_category_id uuid,
    exit_reason_subcategory_id uuid,
    account_manager_id uuid,
    is_pace_plan boolean not null,
    plan_start_date date,
    plan_end_date date,
    postal_statement boolean not null,
    participant_receives_statements boolean not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint participants_account_manager_id_fkey foreign key (plan_manager_id, account_manager_id)
        references account_managers (plan_manager_id, id),
    constraint participants_exit_reason_category_id_fkey foreign key (plan_manager_id, exit_reason_category_id)
        references exit_reasons (plan_manager_id, id),
    constraint participants_exit_reason_subcategory_id_fkey foreign key (plan_manager_id, exit_reason_subcategory_id)
        references exit_reasons (plan_manager_id, id)
);

create index participants_by_number on participants (plan_manager_id, participant_number);

create table team_members (
    plan_manager_id uuid not null,
    participant_id uuid not null,
    id uuid not null,
    user_id uuid not null,
    pm_profile_id uuid,
    first_name text,
    last_name text,
    role text,
    phone_number text,
    note text,
    secondary_email text,
    secondary_phone_number text,
    address_line_1 text,
    city text,
    state text,
    postcode text,
    contact_priority integer check (contact_priority in (1, 2)),
    primary key (plan_manager_id, participant_id, id),
    check (id = user_id or id = pm_profile_id),
    constraint team_members_user_id_key unique (plan_manager_id, participant_id, user_id),
    constraint team_members_contact_priority_key unique (plan_manager_id, participant_id, contact_priority),
    constraint team_members_participant_id_fkey foreign key (plan_manager_id, participant_id)
        references participants (plan_manager_id, id),
    constraint team_members_user_id_fkey foreign key (plan_manager_id, user_id) references users (plan_manager_id, id)
);

create table team_member_permissions (
    plan_manager_id uuid not null,
    participant_id uuid not null,
    team_member_id uuid not null,
    permission_id uuid not null references permissions (id),
    primary key (plan_manager_id, participant_id, team_member_id, permission_id),
    constraint team_member_permissions_team_member_id_fkey
        foreign key (plan_manager_id, participant_id, team_member_id)
        references team_members (plan_manager_id, participant_id, id) on delete cascade
);

create table providers (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    entity_name text,
    abn text,
    email text,
    active boolean not null,
    primary_phone_number text,
    address text,
    city text,
    state text,
    postcode text,
    ndis_provider_number text,
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);

create sequence note_type_ids;

create table note_types (
    plan_manager_id uuid not null references plan_managers (id),
    id bigint not null default nextval('note_type_ids'),
    note_type text not null,
    badge_color text,
    highlight_color text,
    primary key (plan_manager_id, id)
);

-- An invoice keeps the ids of a participant and of a provider that are gone: so neither is a foreign key.
create table invoices (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    invoice_number text,
    invoice_date date,
    total numeric,
    tax numeric,
    subtotal numeric,
    participant_id uuid,
    claim_status text not null check (claim_status in ('new', 'flagged', 'pending', 'payment_ready',
        'partially_ready', 'partially_paid', 'paid', 'rejected', 'on_hold', 'cancelled')),
    approval_status text not null check (approval_status in ('not_required', 'pending', 'approved', 'rejected')),
    created_at timestamptz not null,
    pm_provider_id uuid,
    s3_key text,
    email_message_id text,
    errors boolean not null default false,
    error_codes text[] not null default '{}',
    ignored_error_codes text[] not null default '{}',
    is_deleted boolean not null,
    wont_claim boolean not null,
    is_reimbursement boolean not null,
    is_duplicate boolean not null default false,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);

create index invoices_by_provider_and_number on invoices (plan_manager_id, pm_provider_id, invoice_number);

create index invoices_by_number on invoices (plan_manager_id, invoice_number);

create index invoices_by_participant on invoices (plan_manager_id, participant_id, id);

create table invoice_lines (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    id uuid not null,
    position integer not null,
    description text,
    service_item_number text,
    quantity numeric,
    unit_price numeric,
    total_price numeric,
    claim_status text not null,
    claim_batch_ref text,
    claim_number text,
    payment_ref text,
    is_deleted boolean not null,
    created_at timestamptz not null,
    primary key (plan_manager_id, invoice_id, id),
    constraint invoice_lines_invoice_id_fkey foreign key (plan_manager_id, invoice_id)
        references invoices (plan_manager_id, id) on delete cascade
);

create table invoice_view_sessions (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    invoice_id uuid not null,
    user_id text not null,
    user_name text not null,
    session_started timestamptz not null,
    session_ended timestamptz,
    last_heartbeat timestamptz not null,
    duration_seconds bigint,
    created_at timestamptz not null,
    active_duration_seconds bigint,
    engaged_duration_seconds bigint,
    idle_count bigint,
    primary key (plan_manager_id, id)
);

create index invoice_view_sessions_by_invoice on invoice_view_sessions (plan_manager_id, invoice_id, id);

-- The audit trail, the feed and the source of webhooks. `position` is given after the commit, by one sequencer at a
-- time: transactions commit out of the order of their ids, and the feed must never skip one.
create sequence event_positions;

create table events (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    type text not null,
    created_at timestamptz not null,
    actor_kind text not null check (actor_kind in ('api_key', 'user', 'system')),
    actor_id text,
    actor_name text,
    resource_kind text not null,
    resource_id text not null,
    data json,
    previous json,
    request_id text,
    position bigint,
    primary key (plan_manager_id, id)
);

create index events_without_position on events (plan_manager_id, id) where position is null;

create index events_by_position on events (plan_manager_id, position);

create index events_by_resource on events (plan_manager_id, resource_id, position)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
