-- The database of Plankeeper, by subject. `0001_schema.py` runs the statements in one transaction.
--
-- Every table with data of a plan manager has `plan_manager_id` as the first column of its primary key, of its foreign
-- keys, and of the indexes that requests use. So no row refers to one of another plan manager, and Citus can distribute
-- the table by that column. Its rules explain some of the following:
--   * A unique index of a distributed table contains the column that distributes it.
--   * No table of the coordinator, such as accounts, has a foreign key to a distributed table, or the reverse.
--   * Foreign keys to a table that every node has (plan_managers, permissions) are possible.
-- `plankeeper distribute` places the tables once they exist; database/citus.py says where each belongs.
--
-- Plan managers are never deleted. The tables of events, stored_counts and access_records have no foreign key to
-- them: each check locks the plan manager's row, which all writes of an office share.
--
-- Conventions: names of indexes begin with the table's name and say what they find rows by; `by_moment` is the time of
-- the last change, or the time that retention goes by. `text_pattern_ops` compares bytes whatever the collation of the
-- database is: only then is a prefix a range. Equality is the same in both. `collate "C"` sorts by code points. A list has
-- an index for each frequent filter and each sort, which ends with `id`, the order of pages.

-- Versions

-- The only row. A server that expects an older revision than this one can't work with the schema.
create table schema_compatibility (
    one boolean primary key default true check (one),
    oldest_compatible text not null
);
insert into schema_compatibility (oldest_compatible) values ('0001');

-- The only row: the key that encrypts the cursors of sorted lists.
create table cursor_keys (
    id integer primary key default 1 check (id = 1),
    key text not null default gen_random_uuid()::text || gen_random_uuid()::text
);
insert into cursor_keys default values;

-- Ids of rows that PostgreSQL creates: UUIDs of version 7, for which it has a function only since release 18.
create function time_ordered_uuid() returns uuid
language sql volatile as $$
    select encode(
        set_byte(
            overlay(
                uuid_send(gen_random_uuid()) placing
                substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 0) & 15) | 112),
        'hex')::uuid
$$;

-- A write without a lock calls it, and fails if the row has changed since it was read.
create function require_unchanged(is_unchanged boolean) returns void
language plpgsql set search_path = public, pg_temp as $$
    begin
        if not is_unchanged then
            raise serialization_failure using message = 'the row has changed since it was read';
        end if;
    end
$$;

-- Search

create extension if not exists pg_trgm with schema public;
create extension if not exists unaccent with schema public;
create extension if not exists btree_gin with schema public;

-- The search indexes of participants, team members, providers and invoices contain what these functions return.
-- Functions and dictionaries have their schema, because PostgreSQL creates indexes with an empty search path. They are
-- in PL/pgSQL, because a SQL function that calls `unaccent`, which isn't immutable, takes twice as long. The cost keeps
-- the planner from calling them for every row of a plan manager.

-- Accents go first: in the locale C, `lower` changes only the letters from A to Z.
create function fold(value text) returns text
language plpgsql immutable strict parallel safe cost 1000 as $$
    begin
        return lower(public.unaccent('public.unaccent'::regdictionary, value));
    end
$$;

-- Two words that differ by one letter have a key in common: each has the keys of the word and of the word without one
-- of its letters. The first eight letters count.
create function slip_keys(word text) returns integer[]
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
    end
$$;

-- The keys of a searched word.
create function word_keys(word text) returns integer[]
language plpgsql immutable strict parallel safe cost 1000 as $$
    begin
        if octet_length(word) > length(word) then
            return array[hashtext(left(word, 8))];
        end if;
        return public.slip_keys(word);
    end
$$;

-- The keys of the words in names. Words in scripts without trigrams have the keys of their prefixes.
create function search_keys(names text[]) returns integer[]
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
    end
$$;

-- The keys of the words of a text in scripts without trigrams: those of their prefixes.
create function prefix_keys(value text) returns integer[]
language plpgsql immutable strict parallel safe cost 1000 as $$
    declare
        word text;
        keys integer[] := '{}';
    begin
        if octet_length(value) = length(value) then
            return keys;
        end if;
        foreach word in array string_to_array(
            translate(public.fold(value), '|-''’.,/()&"' || chr(10), '            '), ' '
        ) loop
            if octet_length(word) > length(word) then
                keys := keys || array[
                    hashtext(left(word, 1)), hashtext(left(word, 2)), hashtext(left(word, 3)),
                    hashtext(left(word, 4)), hashtext(left(word, 5)), hashtext(left(word, 6)),
                    hashtext(left(word, 7)), hashtext(left(word, 8))
                ];
            end if;
        end loop;
        return keys;
    end
$$;

-- A space precedes and follows every word. `Al-Masri` is there as `al masri` and as `almasri`. Numbers have no spaces,
-- and phone numbers begin with 0.
create function search_text(names text[], numbers text[]) returns text
language plpgsql immutable parallel safe cost 1000 as $$
    declare
        folded text := public.fold(array_to_string(names, '|'));
        digits text := '|' || lower(translate(array_to_string(numbers, '|'), ' -().,/_#', ''));
    begin
        return ' ' || translate(folded, '|-''’.,/()&"', '           ')
            || ' ' || translate(folded, '|-''’.,/()&" ', ' ')
            || translate(replace(replace(digits, '|+61', '|0'), '|0061', '|0'), '|+', ' ') || ' ';
    end
$$;

-- Plan managers

create table plan_managers (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null default now(),
    requires_two_factor boolean not null default false,
    requires_single_sign_on boolean not null default false
);

-- API keys, which may act for several plan managers, and the limits of requests

create table api_keys (
    id uuid primary key,
    name text not null,
    key_hash bytea not null unique,
    last_four text not null,
    scopes text[] not null check (scopes <@ array['read', 'write', 'claims', 'payments'] and cardinality(scopes) > 0),
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    rate_limit bigint check (rate_limit >= 0), -- requests per minute; null: the server's default; 0: no limit
    original_id uuid not null, -- the first of a key and its rotations
    last_used_at timestamptz,
    warned_at timestamptz, -- when a mail about its expiry was sent
    created_by_account_id uuid -- without a foreign key: a key can outlive the account
);
-- The task that warns before keys expire.
create index api_keys_by_expiry on api_keys (expires_at) where revoked_at is null and warned_at is null;

create table api_key_plan_managers (
    plan_manager_id uuid not null references plan_managers (id),
    api_key_id uuid not null references api_keys (id),
    primary key (plan_manager_id, api_key_id)
);
create index api_key_plan_managers_by_key on api_key_plan_managers (api_key_id);

-- The only row. Each change to a key or to its plan managers adds one, and every worker then clears its cache of keys.
create table grants_version (
    one boolean primary key default true check (one),
    version bigint not null
);
insert into grants_version (version) values (1);

-- What a key or an address has used of its limit in the newest minute with a request. Workers take leases of it.
-- Unlogged: a crash loses no more than the count of a minute.
create unlogged table rate_limits (
    subject text primary key,
    minute timestamptz not null,
    granted bigint not null,
    used bigint not null,
    lease bigint not null
);
create index rate_limits_by_minute on rate_limits (minute);

-- The responses to requests with an Idempotency-Key, without a response while the request runs. A retry can come with
-- the key's rotation, so they belong to the original key.
create table idempotency_records (
    plan_manager_id uuid not null references plan_managers (id),
    original_key_id uuid not null,
    path text not null,
    idempotency_key text not null,
    request_hash bytea not null,
    status integer,
    body bytea,
    created_at timestamptz not null,
    primary key (plan_manager_id, original_key_id, path, idempotency_key)
);
create index idempotency_records_by_moment on idempotency_records (created_at);

-- The request log

-- A row has the responses of one worker to one plan manager's keys in about a second. A row for each request would
-- cost each request too much. `requests` is an array of arrays, oldest first: json, as it is written and read as a
-- whole.
create table api_request_batches (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    ended_at timestamptz not null,
    count integer not null,
    requests json not null,
    primary key (plan_manager_id, id)
);
-- Rows are deleted after some days: compression would cost each request more than their space is worth.
alter table api_request_batches alter column requests set storage external;
create index api_request_batches_by_moment on api_request_batches (ended_at);

create table api_request_minutes (
    plan_manager_id uuid not null references plan_managers (id),
    minute timestamptz not null,
    requests integer not null,
    rejected integer not null,
    failed integer not null,
    primary key (plan_manager_id, minute)
);
create index api_request_minutes_by_minute on api_request_minutes (minute);

create table api_key_days (
    plan_manager_id uuid not null references plan_managers (id),
    api_key_id uuid not null,
    day date not null,
    status integer not null,
    error_code text not null,
    requests integer not null,
    primary key (plan_manager_id, api_key_id, day, status, error_code)
);
create index api_key_days_by_day on api_key_days (day);

-- Rejected requests that belong to no plan manager: one row for each key and reason.
create table api_key_rejections (
    api_key_id uuid not null references api_keys (id),
    reason text not null,
    requests bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    method text not null,
    route text,
    user_agent text,
    request_id text not null,
    primary key (api_key_id, reason)
);

-- Accounts, which sign in to the console

-- A person has one account with any number of plan managers; account_roles has the role for each.
create table accounts (
    id uuid primary key,
    email text not null,
    name text not null,
    password_hash text not null,
    totp_secret text,
    totp_counter bigint not null default 0, -- of the last code: a code works once
    created_at timestamptz not null
);
create unique index accounts_email_key on accounts (lower(email));

create table account_roles (
    plan_manager_id uuid not null references plan_managers (id),
    account_id uuid not null references accounts (id) on delete cascade,
    role text not null check (role in ('owner', 'manager', 'viewer')),
    created_at timestamptz not null,
    last_seen_at timestamptz, -- when the account last used the console for this plan manager
    -- What a manager may do beyond the role.
    permissions text[] not null default '{}'
        check (permissions <@ array['make_claims', 'make_payments', 'approve_bank_details', 'override_blocks']),
    -- A viewer can be limited to the participants of an account manager. Without a foreign key: on Citus, account
    -- managers are distributed, and this table isn't.
    participants_of uuid,
    can_download boolean not null default true, -- CSV files
    primary key (plan_manager_id, account_id),
    constraint account_roles_only_managers check (role = 'manager' or permissions = '{}'),
    constraint account_roles_only_viewers check (role = 'viewer' or participants_of is null and can_download)
);
create index account_roles_by_account on account_roles (account_id);

create table account_sessions (
    token_hash bytea primary key,
    account_id uuid not null references accounts (id) on delete cascade,
    chosen_plan_manager_id uuid,
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    address text not null,
    user_agent text not null,
    two_factor_pending boolean not null,
    recorded_for uuid[] not null default '{}', -- the plan managers for which the sign-in is recorded as an event
    with_password boolean not null default true, -- signed in with the account's password, and with these providers
    provider_ids uuid[] not null default '{}',
    -- An account that loses a role for a plan manager also loses its choice.
    constraint account_sessions_chosen_plan_manager_id_fkey foreign key (chosen_plan_manager_id, account_id)
        references account_roles (plan_manager_id, account_id) on delete set null (chosen_plan_manager_id)
);
create index account_sessions_by_account on account_sessions (account_id);

-- Browsers that have completed a sign-in.
create table account_devices (
    account_id uuid not null references accounts (id) on delete cascade,
    token_hash bytea not null,
    created_at timestamptz not null,
    last_used_at timestamptz not null,
    primary key (account_id, token_hash)
);
create index account_devices_by_token on account_devices (token_hash);

create table account_recovery_codes (
    account_id uuid not null references accounts (id) on delete cascade,
    code_hash bytea not null,
    used_at timestamptz,
    primary key (account_id, code_hash)
);

-- A subject is the hash of an email with a network, a device or a session. Emails without an account have failures too,
-- so that failures don't tell which emails have one.
create table account_failures (
    subject bytea primary key,
    failures integer not null,
    failed_at timestamptz not null,
    locked_until timestamptz not null,
    email_hash bytea not null -- of the email alone
);
create index account_failures_by_email on account_failures (email_hash);
create index account_failures_by_moment on account_failures (failed_at);

-- An account has one link: a new one replaces it.
create table account_password_resets (
    account_id uuid primary key references accounts (id) on delete cascade,
    token_hash bytea not null,
    expires_at timestamptz not null
);
create unique index account_password_resets_token_hash_key on account_password_resets (token_hash);

create table account_invitations (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    email text not null,
    name text,
    role text not null check (role in ('owner', 'manager', 'viewer')),
    token_hash bytea not null,
    invited_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    accepted_at timestamptz,
    invited_by_account_id uuid, -- without a foreign key: an invitation can outlive the account
    -- As in account_roles.
    permissions text[] not null default '{}'
        check (permissions <@ array['make_claims', 'make_payments', 'approve_bank_details', 'override_blocks']),
    participants_of uuid,
    can_download boolean not null default true,
    primary key (plan_manager_id, id)
);
-- Not unique: a unique index would have to contain the plan manager, and 256 random bits need none.
create index account_invitations_by_token on account_invitations (token_hash);
-- A new invitation replaces the open one of the same email.
create unique index account_invitations_email_key on account_invitations (plan_manager_id, lower(email))
    where accepted_at is null;

-- Single sign-on with OpenID Connect

create table single_sign_on_providers (
    plan_manager_id uuid primary key references plan_managers (id),
    id uuid not null, -- new for each configuration: sessions of a removed provider don't belong to the next one
    issuer text not null,
    client_id text not null,
    encrypted_client_secret text not null,
    allowed_domains text[] not null,
    created_at timestamptz not null
);

-- A subject is the provider's id of a person, which it never gives to another person.
create table account_identities (
    issuer text not null,
    subject text not null,
    account_id uuid not null references accounts (id) on delete cascade,
    created_at timestamptz not null,
    primary key (issuer, subject)
);
create index account_identities_by_account on account_identities (account_id);

-- Browsers that were sent to a provider and haven't come back.
create table single_sign_on_flows (
    token_hash bytea primary key,
    provider_id uuid not null,
    next_path text not null,
    invitation_token_hash bytea,
    expires_at timestamptz not null
);
create index single_sign_on_flows_by_expiry on single_sign_on_flows (expires_at);

-- Identities that wait for the password of the account to which they will belong.
create table pending_identities (
    token_hash bytea primary key,
    provider_id uuid not null,
    issuer text not null,
    subject text not null,
    email text not null,
    next_path text not null,
    invitation_token_hash bytea,
    expires_at timestamptz not null
);
create index pending_identities_by_expiry on pending_identities (expires_at);

-- Mails

-- Contains no secrets: the links of a mail are created when it is sent.
create table outgoing_mails (
    id uuid primary key default time_ordered_uuid(),
    content json not null,
    created_at timestamptz not null,
    attempt_count integer not null default 0,
    next_attempt_at timestamptz not null,
    expires_at timestamptz not null
);
-- Links to reset a password first: a person is waiting for them, and they expire early.
create index outgoing_mails_by_turn on outgoing_mails ((content ->> 'kind' <> 'password_reset'), next_attempt_at);
create index outgoing_mails_by_invitation on outgoing_mails ((content ->> 'invitation_id'))
    where content ->> 'invitation_id' is not null;
create index outgoing_mails_by_invoice on outgoing_mails ((content ->> 'invoice_id'))
    where content ->> 'kind' = 'approval';
create index outgoing_mails_by_expiry on outgoing_mails (expires_at);

-- Users: the staff of a plan manager and its participants' team members, one row for each email

create table users (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    email text,
    created_at timestamptz not null default now(),
    primary key (plan_manager_id, id)
);
create unique index users_email_key on users (plan_manager_id, lower(email));
-- The search by the beginning of an email, which the collation of the unique index doesn't support.
create index users_by_email on users (plan_manager_id, lower(email) text_pattern_ops, id);

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
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint account_managers_id_fkey foreign key (plan_manager_id, id) references users (plan_manager_id, id)
);

-- Which account manager an account of the console is. Without a foreign key to accounts, which Citus has elsewhere.
create table account_manager_links (
    plan_manager_id uuid not null references plan_managers (id),
    account_id uuid not null,
    account_manager_id uuid not null,
    primary key (plan_manager_id, account_id),
    constraint account_manager_links_account_manager_id_fkey foreign key (plan_manager_id, account_manager_id)
        references account_managers (plan_manager_id, id)
);

-- Participants

create table exit_reasons (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    name text not null,
    parent_id uuid,
    updated_at timestamptz not null default clock_timestamp(),
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
    managed_from date, -- the days on which the office manages the plan
    managed_until date,
    deceased_on date,
    remoteness text check (remoteness in ('remote', 'very_remote')), -- which price limits apply
    postal_statement boolean not null,
    participant_receives_statements boolean not null,
    updated_at timestamptz not null default clock_timestamp(),
    external_id text,
    next_plan_change date, -- the day on which another plan becomes the current one
    primary key (plan_manager_id, id),
    constraint participants_account_manager_id_fkey foreign key (plan_manager_id, account_manager_id)
        references account_managers (plan_manager_id, id),
    constraint participants_exit_reason_category_id_fkey foreign key (plan_manager_id, exit_reason_category_id)
        references exit_reasons (plan_manager_id, id),
    constraint participants_exit_reason_subcategory_id_fkey foreign key (plan_manager_id, exit_reason_subcategory_id)
        references exit_reasons (plan_manager_id, id)
);
-- Filter `external_id`, and imports that match rows by it. Rows without such an id cost nothing when they are written.
create unique index participants_external_id_key on participants (plan_manager_id, external_id)
    where external_id is not null;
-- Filter `participant_number`, and imports that match rows by it, with or without spaces and hyphens:
-- `participant_number_key`.
create index participants_by_number_digits on participants (
    plan_manager_id,
    (case when length(regexp_replace(participant_number, '[^0-9]', '', 'g')) = 9
        then regexp_replace(participant_number, '[^0-9]', '', 'g')
        else replace(participant_number, ' ', '') end) text_pattern_ops,
    id
);
-- The console's list sorted by NDIS number.
create index participants_by_number on participants (plan_manager_id, participant_number, id);
-- Filter `email`, and the search by the beginning of an email.
create index participants_by_email on participants (plan_manager_id, lower(email) text_pattern_ops, id);
-- Filter `account_manager`, the console's list sorted by account manager, and an account manager's home page.
create index participants_by_account_manager on participants (plan_manager_id, account_manager_id, id);
-- Filter `updated_since`, sort `updated_at`, and the last change on the home page.
create index participants_by_moment on participants (plan_manager_id, updated_at, id);
-- Sort `plan_end_date`, and the console's filter "Plan ends".
create index participants_by_plan_end_date on participants (plan_manager_id, plan_end_date, id);
-- Sums of the home page: active participants by the end of their plans, without reading the table.
create index participants_active on participants (plan_manager_id, plan_end_date, id) include (account_manager_id)
    where status = 'Active';
-- Filters `status` and `state`, and the console's list sorted by one of them.
create index participants_by_status on participants (plan_manager_id, status, id);
create index participants_by_state on participants (plan_manager_id, state, id);
-- Sort `last_name`.
create index participants_by_last_name on participants (plan_manager_id, (lower(last_name) collate "C"), id);
-- The console's list sorted by name, its default: the last name, then the first.
create index participants_by_full_name on participants
    (plan_manager_id, ((lower(last_name) || chr(1) || coalesce(lower(first_name), '')) collate "C"), id);
-- Search by any part of a name or number, and by names with a typing error.
create index participants_by_search on participants using gin (
    plan_manager_id,
    search_text(
        array[first_name, middle_name, last_name, preferred_name], array[participant_number, phone_number]
    ) gin_trgm_ops,
    search_keys(array[first_name, middle_name, last_name, preferred_name])
);
-- The console's search by date of birth, and by the words of an address. An index of its own: a searched name would
-- otherwise find everybody in a street of that name.
create index participants_by_birth_or_address on participants using gin (
    plan_manager_id,
    date_of_birth,
    search_text(array[address_line_1, address_line_2, city], array[postcode]) gin_trgm_ops
);

-- Participants whose current plan changes, for the task that runs at midnight.
create index participants_by_plan_change on participants (next_plan_change) where next_plan_change is not null;

-- Without a foreign key to participants: a hold can keep the events of a deleted one.
create table legal_holds (
    plan_manager_id uuid not null references plan_managers (id),
    participant_id uuid not null,
    reason text not null,
    created_at timestamptz not null,
    created_by text not null,
    primary key (plan_manager_id, participant_id)
);

-- Erased participants whose claims, payments, documents and approvals the office has to keep for some years.
create table kept_financial_records (
    plan_manager_id uuid not null references plan_managers (id),
    participant_id uuid not null,
    kept_until timestamptz, -- null: without an end
    primary key (plan_manager_id, participant_id)
);
create index kept_financial_records_due on kept_financial_records (kept_until) where kept_until is not null;

-- Plans of participants

create extension if not exists btree_gist with schema public;

-- The participant's row is the lock of its plans, and has the dates of the current one. Components are part of their
-- plan, because they are read and written with it: a list of objects, of which each has an id that lines can name.
create table plans (
    plan_manager_id uuid not null,
    id uuid not null,
    participant_id uuid not null,
    start_date date,
    end_date date,
    is_pace_plan boolean not null,
    external_id text,
    components jsonb not null,
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint plans_participant_id_fkey foreign key (plan_manager_id, participant_id)
        references participants (plan_manager_id, id),
    -- A guard: the program compares the dates first, under the participant's lock, because its message names them. Plans
    -- that lack a date or end before they start are in force on no day.
    constraint plans_dates_excl exclude using gist (
        plan_manager_id with =, participant_id with =, daterange(start_date, end_date, '[]') with &&
    ) where (start_date <= end_date)
);
create unique index plans_external_id_key on plans (plan_manager_id, external_id) where external_id is not null;
create index plans_by_participant on plans (plan_manager_id, participant_id, id);
-- The console's list of plans that end.
create index plans_by_end_date on plans (plan_manager_id, end_date, id);
-- The last change on the page of budgets.
create index plans_by_moment on plans (plan_manager_id, updated_at);

-- The support catalogue

-- The agency's published table, which all plan managers share. `plankeeper support-catalogue import` writes it with the
-- role that owns it. An item has a row for each period of its prices. Lines of invoices have no foreign key to it:
-- they keep the number that the provider wrote.
create table support_items (
    support_item_number text not null,
    start_date date not null,
    end_date date, -- null: open
    name text not null,
    registration_group_number text,
    registration_group_name text,
    category integer not null,
    pace_category integer,
    category_name text,
    pace_category_name text,
    unit text,
    is_quote_required boolean not null,
    type text,
    has_price_limit boolean not null,
    price_limits jsonb, -- dollars by state, `Remote`, `Very Remote`, `National`
    allows_non_face_to_face boolean not null,
    allows_provider_travel boolean not null,
    allows_short_notice_cancellations boolean not null,
    allows_ndia_requested_reports boolean not null,
    allows_irregular_sil boolean not null,
    primary key (support_item_number, start_date)
);

-- The only row. Each import that changes an item increases the revision.
create table support_catalogue (
    one boolean primary key default true check (one),
    revision bigint not null,
    imported_at timestamptz
);
insert into support_catalogue (revision) values (0);

-- Team members of participants, and what they may do

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
    updated_at timestamptz not null default clock_timestamp(),
    external_id text,
    primary key (plan_manager_id, participant_id, id),
    check (id = user_id or id = pm_profile_id),
    constraint team_members_user_id_key unique (plan_manager_id, participant_id, user_id),
    constraint team_members_contact_priority_key unique (plan_manager_id, participant_id, contact_priority),
    constraint team_members_participant_id_fkey foreign key (plan_manager_id, participant_id)
        references participants (plan_manager_id, id),
    constraint team_members_user_id_fkey foreign key (plan_manager_id, user_id) references users (plan_manager_id, id)
);
create unique index team_members_external_id_key on team_members (plan_manager_id, external_id)
    where external_id is not null;
create index team_members_by_id on team_members (plan_manager_id, id);
create index team_members_by_user on team_members (plan_manager_id, user_id);
create index team_members_by_search on team_members using gin (
    plan_manager_id,
    search_text(array[first_name, last_name], array[phone_number, secondary_phone_number]) gin_trgm_ops,
    search_keys(array[first_name, last_name])
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

-- Note types

create sequence note_type_ids;

create table note_types (
    plan_manager_id uuid not null references plan_managers (id),
    id bigint not null default nextval('note_type_ids'),
    note_type text not null,
    badge_color text,
    highlight_color text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);

-- Providers

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
    external_id text,
    remittance_email text,
    -- A supplier that needn't quote an ABN, and the day of the statement that says so.
    abn_exempt boolean not null default false,
    abn_statement_date date,
    primary key (plan_manager_id, id),
    constraint providers_abn_exempt_check check (not abn_exempt or abn_statement_date is not null)
);
create unique index providers_external_id_key on providers (plan_manager_id, external_id)
    where external_id is not null;
-- An ABN is written with or without spaces and hyphens, and filters find all of them: `abn_key`. The index of the exact
-- text sorts the list.
create index providers_by_abn_digits on providers (
    plan_manager_id,
    (case when length(regexp_replace(abn, '[^0-9]', '', 'g')) = 11
        then regexp_replace(abn, '[^0-9]', '', 'g')
        else replace(abn, ' ', '') end) text_pattern_ops,
    id
);
create index providers_by_abn on providers (plan_manager_id, abn, id);
create index providers_by_email on providers (plan_manager_id, lower(email) text_pattern_ops, id);
create index providers_by_moment on providers (plan_manager_id, updated_at, id);
create index providers_by_name on providers (plan_manager_id, (lower(entity_name) collate "C"), id);
create index providers_by_state on providers (plan_manager_id, state, id);
create index providers_by_activity on providers (plan_manager_id, active, id);
create index providers_by_search on providers using gin (
    plan_manager_id, search_text(array[entity_name], array[abn]) gin_trgm_ops, search_keys(array[entity_name])
);

-- Notes

-- About a participant, a provider or an invoice, whose row the writer locks: a note is deleted with its participant or
-- provider. `author_*` is the actor of the write that created it, as events name actors.
create table notes (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    resource_kind text not null check (resource_kind in ('participant', 'provider', 'invoice')),
    resource_id uuid not null,
    note_type_id bigint not null,
    text text not null,
    pinned boolean not null default false,
    alert boolean not null default false,
    author_kind text not null check (author_kind in ('api_key', 'user', 'system')),
    author_id text,
    author_name text,
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint notes_note_type_id_fkey foreign key (plan_manager_id, note_type_id)
        references note_types (plan_manager_id, id)
);
-- The notes of a record, and the filter of its id.
create index notes_by_resource on notes (plan_manager_id, resource_id, resource_kind, id);
-- The alerts of a record, which its invoices show.
create index notes_alerts on notes (plan_manager_id, resource_id, resource_kind, id) where alert;
-- Filters `alert` and `pinned`, which few notes meet.
create index notes_with_alert on notes (plan_manager_id, id) where alert;
create index notes_pinned on notes (plan_manager_id, id) where pinned;
-- Whether notes use a note type, and the filter of the type.
create index notes_by_type on notes (plan_manager_id, note_type_id, id);
create index notes_by_moment on notes (plan_manager_id, updated_at, id);
create index notes_by_search on notes using gin (
    plan_manager_id, search_text(array[text], '{}') gin_trgm_ops, prefix_keys(text)
);

-- Settings of an office

create table office_settings (
    plan_manager_id uuid not null references plan_managers (id),
    warning_levels jsonb not null default '[]', -- codes with levels, those that differ from the usual ones
    duplicates_need_participant boolean not null default false,
    approval_reminder_days integer check (approval_reminder_days between 1 and 90), -- null: no reminders
    approval_automatic_days integer check (approval_automatic_days between 1 and 90), -- null: never
    days_to_claim int not null default 5, -- the service standard, in business days
    days_to_pay int not null default 2,
    -- Claims
    registration_number text, -- of the plan manager, in claim files
    abn text,
    prices_include_gst boolean, -- of taxable lines in claim files; null: not decided, so such lines aren't claimed
    result_tolerance numeric not null default 0.01, -- a smaller difference, in dollars, counts as paid in full
    days_until_claim_is_late int not null default 5, -- business days without a result
    needs_receipts boolean not null default false, -- payment runs wait for the money of the agency
    -- Payments: the office's own account and its data for direct entry
    bank_letters text,
    bank_bsb text,
    bank_account text, -- encrypted
    bank_account_ending text,
    bank_account_name text,
    direct_entry_user_id text,
    direct_entry_user_name text,
    direct_entry_description text,
    remitter text,
    has_balancing_record boolean not null default false,
    group_payments_by text not null default 'payee' check (group_payments_by in ('payee', 'invoice')),
    max_payments_in_file int not null default 500,
    needs_second_person boolean not null default false, -- who marks a run as paid hasn't created or downloaded it
    -- Statements
    statement_day int check (statement_day between 1 and 28), -- of the month, for the one before; null: by hand
    statement_day_set_on date, -- no run starts by itself for a day before it
    statement_email text, -- the contact for questions
    statement_phone text,
    statement_dispute text, -- what to do if a line is wrong; null: the usual sentence
    -- The office's own fee: its support item, and the office's record as a provider. A deleted provider keeps its id here.
    fee_item_number text,
    fee_provider_id uuid,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id)
);

-- The last number of an office's claim batches, payment runs and takings of fees.
create table office_numbers (
    plan_manager_id uuid not null references plan_managers (id),
    kind text not null check (kind in ('claim_batch', 'payment_run', 'fee_taking')),
    last bigint not null,
    primary key (plan_manager_id, kind)
);

-- Invoices

-- An invoice keeps the ids of a deleted participant and provider, so neither has a foreign key.
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
    -- The state of the lines that wait for somebody, whatever the state of the invoice says. Each write of the invoice
    -- computes it from all lines: see resources/invoices/states.py.
    waiting_line_status text check (waiting_line_status in ('new', 'flagged', 'rejected')),
    approval_status text not null check (approval_status in ('not_required', 'pending', 'approved', 'rejected')),
    created_at timestamptz not null,
    pm_provider_id uuid,
    s3_key text,
    email_message_id text,
    errors boolean not null default false,
    error_codes text[] not null default '{}',
    ignored_error_codes text[] not null default '{}',
    warning_codes text[] not null default '{}', -- those that aren't ignored, and those that only inform
    is_deleted boolean not null,
    wont_claim boolean not null,
    is_reimbursement boolean not null,
    is_duplicate boolean not null default false,
    received_at timestamptz not null,
    due_date date,
    assigned_to uuid, -- an account
    -- A hold and a cancellation stand beside the state of the lines, so that a release needs no memory of it.
    held_at timestamptz,
    held_by text,
    hold_reason text,
    cancelled_at timestamptz,
    closing_reason text, -- why it was cancelled, or isn't claimed
    -- The last decision about its approval. A team member who was deleted since keeps its id here.
    approval_decided_at timestamptz,
    approval_decided_by text check (approval_decided_by in ('participant', 'team_member', 'automatic')),
    approval_team_member_id uuid,
    approval_reason text,
    external_id text,
    -- The number that was sent for a participant or a provider if several have it, until the invoice has one.
    ambiguous_participant_number text,
    ambiguous_provider_abn text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint invoices_waiting_line_status_set
        check (claim_status not in ('new', 'flagged', 'rejected') or waiting_line_status is not null)
);
create unique index invoices_external_id_key on invoices (plan_manager_id, external_id)
    where external_id is not null;
create index invoices_assigned on invoices (plan_manager_id, assigned_to, id) where assigned_to is not null;
create index invoices_by_participant on invoices (plan_manager_id, participant_id, id);
-- The duplicates of an invoice, and an invoice by its provider and number.
create index invoices_by_provider_and_number on invoices (plan_manager_id, pm_provider_id, invoice_number);
-- After the one above: of two indexes that cost the same, PostgreSQL uses the newer one.
create index invoices_by_provider on invoices (plan_manager_id, pm_provider_id, id);
create index invoices_by_number on invoices (plan_manager_id, invoice_number, id);
create index invoices_by_claim_status on invoices (plan_manager_id, claim_status, id);
create index invoices_by_approval_status on invoices (plan_manager_id, approval_status, id);
create index invoices_by_moment on invoices (plan_manager_id, updated_at, id);
create index invoices_by_date on invoices (plan_manager_id, invoice_date, id);
create index invoices_by_total on invoices (plan_manager_id, total, id);
create index invoices_deleted on invoices (plan_manager_id, id) where is_deleted;
create index invoices_by_search on invoices using gin (
    plan_manager_id, search_text('{}', array[invoice_number]) gin_trgm_ops
);
-- Few invoices have warnings that aren't ignored: a list of these would otherwise read all others.
create index invoices_by_warning on invoices using gin (plan_manager_id, warning_codes) where warning_codes <> '{}';
create index invoices_with_errors on invoices (plan_manager_id, id) where errors;
-- Sums of the home page. The indexes have the columns that it uses, so no sum reads the table.
create index invoices_by_receipt on invoices (plan_manager_id, received_at, id)
    include (claim_status, is_deleted, pm_provider_id, total, participant_id);
create index invoices_open on invoices (plan_manager_id, received_at, id)
    include (claim_status, approval_status, total, participant_id, wont_claim)
    where claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted;
create index invoices_on_hold_with_errors on invoices (plan_manager_id, received_at, id)
    include (error_codes, ignored_error_codes, total, participant_id)
    where claim_status = 'on_hold' and errors and not is_deleted;
-- The review queue, the oldest first, with the columns of its filters: see resources/invoices/review_store.py.
create index invoices_in_review on invoices (plan_manager_id, received_at, id)
    include (claim_status, waiting_line_status, approval_status, errors, assigned_to, warning_codes)
    where not is_deleted and not wont_claim and (
        claim_status = 'on_hold' or waiting_line_status in ('flagged', 'rejected')
        or waiting_line_status = 'new' and (errors or approval_status in ('pending', 'rejected'))
    );

-- Who looks at which invoice of the review queue. Each invoice and each account has at most one.
create table review_leases (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    account_id uuid not null,
    expires_at timestamptz not null,
    primary key (plan_manager_id, invoice_id),
    constraint review_leases_account_id_key unique (plan_manager_id, account_id),
    constraint review_leases_invoice_id_fkey foreign key (plan_manager_id, invoice_id)
        references invoices (plan_manager_id, id) on delete cascade
);

-- The numbers of participants by status and state (empty without one), and of invoices by claim status and approval
-- status, are sums of rows. A write appends a row with the difference, so writers never wait for each other; a task
-- compacts the rows.
create table stored_counts (
    plan_manager_id uuid not null,
    list text not null check (list in ('participants', 'invoices')),
    status text not null,
    second_status text not null,
    id uuid not null default gen_random_uuid(),
    count bigint not null,
    primary key (plan_manager_id, list, status, second_status, id)
);

create table invoice_lines (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    id uuid not null,
    position integer not null,
    description text,
    service_item_number text,
    service_date_from date,
    service_date_to date,
    quantity numeric,
    unit_price numeric,
    total_price numeric,
    gst_code text not null,
    amount numeric, -- with tax, as claims and budgets count it: see resources/invoices/states.py
    claim_type text,
    cancellation_reason text,
    component_id uuid, -- of the participant's plan
    claim_status text not null,
    claim_batch_ref text,
    claim_number text,
    paid_amount numeric, -- what the agency has paid, less reversals; null before a result
    rejection_reason text,
    payment_ref text,
    closing_reason text, -- why it was cancelled
    -- Its claims and payments: those that are open lock the line.
    open_claim_batch text, -- the number of the draft or submitted batch with an open claim
    open_payment_run text, -- the number of the draft run with a payment
    has_payment boolean not null default false, -- one to the payee that is neither cancelled nor returned
    is_rest_waiting boolean not null default false, -- the rest of a partially paid line is for the next batch
    is_deleted boolean not null,
    created_at timestamptz not null,
    primary key (plan_manager_id, invoice_id, id),
    constraint invoice_lines_invoice_id_fkey foreign key (plan_manager_id, invoice_id)
        references invoices (plan_manager_id, id) on delete cascade
);
create index invoice_lines_by_claim_status on invoice_lines (plan_manager_id, claim_status, invoice_id)
    where not is_deleted;
-- Lines of several invoices with the same service.
create index invoice_lines_by_service on invoice_lines (plan_manager_id, service_date_from, service_item_number)
    where not is_deleted;

-- The documents of invoices, of which one is the current one. Their objects are in the storage, and never change.
-- The document of an invoice, or a provider's statement that it needn't quote an ABN. A provider's are kept when it is
-- deleted, because claims refer to them.
create table documents (
    plan_manager_id uuid not null,
    id uuid not null,
    invoice_id uuid,
    provider_id uuid,
    object_key text not null,
    file_name text not null,
    media_type text not null check (media_type in ('application/pdf', 'image/png', 'image/jpeg')),
    size bigint not null,
    sha256 text not null,
    created_at timestamptz not null,
    created_by text not null,
    replaced_at timestamptz,
    primary key (plan_manager_id, id),
    constraint documents_owner_check check (num_nonnulls(invoice_id, provider_id) = 1),
    constraint documents_invoice_id_fkey foreign key (plan_manager_id, invoice_id)
        references invoices (plan_manager_id, id)
);
create unique index documents_current on documents (plan_manager_id, invoice_id) where replaced_at is null;
create index documents_by_invoice on documents (plan_manager_id, invoice_id);
create unique index documents_current_statement on documents (plan_manager_id, provider_id)
    where replaced_at is null and provider_id is not null;
create index documents_by_content on documents (plan_manager_id, sha256) where replaced_at is null;

-- Objects to delete from the storage. A row is committed before each upload, and deleted with the insert of the
-- document. So an upload that fails at any moment leaves no object for long, and the storage is never listed.
create table object_cleanup (
    plan_manager_id uuid not null references plan_managers (id),
    object_key text not null,
    due_at timestamptz not null,
    primary key (plan_manager_id, object_key)
);
create index object_cleanup_due on object_cleanup (due_at);

-- Invoices to check again in the background: those of a participant or a provider that has changed or, with neither,
-- all. Rows are only appended, so writers never wait for each other; a task checks the invoices and deletes the rows.
create table recheck_queue (
    plan_manager_id uuid not null,
    id uuid not null,
    participant_id uuid,
    provider_id uuid,
    resolves_flags boolean not null default false, -- flagged lines that can be claimed now are new again
    primary key (plan_manager_id, id)
);
-- The check of all open invoices of a plan manager in order of their participants: those up to the invoice `position` of
-- `position_participant` are done. Both are null between two checks.
create table recheck_state (
    plan_manager_id uuid not null primary key,
    position_participant uuid,
    position uuid,
    total bigint not null,
    done bigint not null,
    started_at timestamptz not null,
    completed_at timestamptz
);

create table invoice_ignored_warnings (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    error_code text not null,
    reason text not null,
    ignored_by text not null,
    ignored_at timestamptz not null,
    facts text[] not null default '{}', -- what was ignored: another line or another value opens the warning again
    primary key (plan_manager_id, invoice_id, error_code),
    foreign key (plan_manager_id, invoice_id) references invoices (plan_manager_id, id) on delete cascade
);

-- The request of an invoice that waits for approval. Invoices that were imported as pending have none.
create table approval_requests (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    requested_at timestamptz not null,
    content_hash text, -- what the people were asked to approve; null while something else keeps the invoice
    asked_at timestamptz, -- when they were asked
    reminded_at timestamptz,
    primary key (plan_manager_id, invoice_id),
    foreign key (plan_manager_id, invoice_id) references invoices (plan_manager_id, id) on delete cascade
);
create index approval_requests_by_time on approval_requests (plan_manager_id, asked_at) where asked_at is not null;

-- The links that people were mailed. The token is created when the mail is written, and only its hash is stored.
create table approval_links (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    id uuid not null,
    participant_id uuid not null,
    team_member_id uuid, -- null: the participant
    content_hash text not null,
    is_reminder boolean not null default false,
    created_at timestamptz not null,
    token_hash bytea,
    email_hash bytea, -- of the token's hash and the email that it was sent to: another email ends the link
    sent_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    revoked_because text check (revoked_because in ('changed', 'decided', 'replaced', 'staff', 'unavailable')),
    used_at timestamptz,
    primary key (plan_manager_id, invoice_id, id),
    foreign key (plan_manager_id, invoice_id) references invoices (plan_manager_id, id) on delete cascade
);
create unique index approval_links_token_hash_key on approval_links (plan_manager_id, token_hash)
    where token_hash is not null;

-- After a restore: until an owner has confirmed what was claimed and paid since the backup, nothing is.
create table restores (
    plan_manager_id uuid not null references plan_managers (id),
    restored_at timestamptz not null,
    confirmed_at timestamptz,
    confirmed_by text,
    primary key (plan_manager_id, restored_at)
);

-- Claims

-- `warned` and `left_out` are what the response to the request that made the batch had.
create table claim_batches (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    number text not null,
    state text not null check (state in ('draft', 'submitted', 'part_processed', 'processed', 'cancelled')),
    total numeric not null,
    lines int not null,
    warned jsonb not null default '[]',
    left_out jsonb not null default '[]', -- the first ones
    left_out_count int not null default 0,
    created_at timestamptz not null,
    created_by text,
    downloaded_at timestamptz, -- the first time
    downloaded_by text,
    submitted_at timestamptz,
    submitted_by text,
    cancelled_at timestamptz,
    cancelled_by text,
    cancel_reason text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);
create unique index claim_batches_number_key on claim_batches (plan_manager_id, number);
create index claim_batches_by_state on claim_batches (plan_manager_id, state, id);
create index claim_batches_by_moment on claim_batches (plan_manager_id, updated_at, id);

-- A claim of a line: in a batch, made outside of Plankeeper, or the confirmed amount of an imported line. It gets one
-- result. A wrong one is replaced while nothing has followed from it: the events have both. What happens afterwards are
-- adjustments, or further claims. The fields of the file never change.
create table claims (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    invoice_id uuid not null,
    line_id uuid not null,
    source text not null check (source in ('batch', 'elsewhere', 'imported')),
    batch_id uuid, -- only with the source `batch`
    position int, -- in the file, from 1
    reference text not null,
    is_rest boolean not null default false,
    amount numeric not null,
    fields jsonb, -- of the file
    state text not null check (state in ('draft', 'submitted', 'paid', 'partially_paid', 'rejected', 'cancelled')),
    paid numeric, -- by the agency, in dollars; null before a result
    agency_number text,
    reason text, -- why it was rejected or cancelled
    result_date date,
    result_at timestamptz,
    result_by text,
    created_at timestamptz not null,
    created_by text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint claims_line_id_fkey foreign key (plan_manager_id, invoice_id, line_id)
        references invoice_lines (plan_manager_id, invoice_id, id),
    constraint claims_batch_id_fkey foreign key (plan_manager_id, batch_id)
        references claim_batches (plan_manager_id, id)
);
create unique index claims_open_key on claims (plan_manager_id, invoice_id, line_id)
    where state in ('draft', 'submitted');
create unique index claims_reference_key on claims (plan_manager_id, reference) where source = 'batch';
create unique index claims_position_key on claims (plan_manager_id, batch_id, position) where batch_id is not null;
create index claims_by_batch on claims (plan_manager_id, batch_id, id) where batch_id is not null;
create index claims_by_line on claims (plan_manager_id, invoice_id, line_id);
create index claims_by_reference on claims (plan_manager_id, reference);
create index claims_by_result on claims (plan_manager_id, result_date, id) where result_date is not null;

-- Money from the agency that has arrived.
create table claim_receipts (
    plan_manager_id uuid not null,
    id uuid not null,
    batch_id uuid not null,
    date date not null,
    amount numeric not null,
    reference text,
    created_at timestamptz not null,
    created_by text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint claim_receipts_batch_id_fkey foreign key (plan_manager_id, batch_id)
        references claim_batches (plan_manager_id, id)
);
create index claim_receipts_by_batch on claim_receipts (plan_manager_id, batch_id, id);
create index claim_receipts_by_date on claim_receipts (plan_manager_id, date, id);

-- What happens to the money of a line after its result.
create table adjustments (
    plan_manager_id uuid not null,
    id uuid not null,
    invoice_id uuid not null,
    line_id uuid not null,
    kind text not null check (kind in ('agency_reversal', 'provider_refund', 'repaid_to_agency')),
    amount numeric not null check (amount > 0),
    paid_out_part numeric not null default 0, -- of a reversal: what the payee had got of it
    date date not null,
    reference text,
    reason text,
    created_at timestamptz not null,
    created_by text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint adjustments_line_id_fkey foreign key (plan_manager_id, invoice_id, line_id)
        references invoice_lines (plan_manager_id, invoice_id, id)
);
create index adjustments_by_line on adjustments (plan_manager_id, invoice_id, line_id);
create index adjustments_by_date on adjustments (plan_manager_id, date, id);

-- Bank details

-- The account of a provider or a participant that payments go to, and a change of it that waits for a second person.
-- The numbers are encrypted, bound to the payee; the hashes find other payees with the same account.
create table bank_details (
    plan_manager_id uuid not null references plan_managers (id),
    payee_kind text not null check (payee_kind in ('provider', 'participant')),
    payee_id uuid not null,
    current_account text, -- encrypted
    current_ending text,
    current_hash bytea,
    current_estate_payee text, -- who gets reimbursements of a participant who has died; null for other payees
    current_since timestamptz, -- when the account took effect
    needs_approval boolean not null default false, -- the bank has returned a payment
    proposal_id uuid,
    proposed_account text, -- encrypted
    proposed_ending text,
    proposed_hash bytea,
    proposed_estate_payee text,
    proposed_by text,
    proposed_by_account uuid, -- null: the operator
    proposed_at timestamptz,
    proposed_phone text, -- the payee's phone number on record at that time, for the call-back
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, payee_kind, payee_id)
);
create unique index bank_details_proposal_id_key on bank_details (plan_manager_id, proposal_id)
    where proposal_id is not null;
create index bank_details_by_hash on bank_details (plan_manager_id, current_hash) where current_hash is not null;
create index bank_details_by_proposed_hash on bank_details (plan_manager_id, proposed_hash)
    where proposed_hash is not null;

-- Who proposed, approved and rejected which details, and how the payee was called back.
create table bank_detail_changes (
    plan_manager_id uuid not null,
    id uuid not null,
    payee_kind text not null,
    payee_id uuid not null,
    proposal_id uuid,
    action text not null check (action in ('proposed', 'approved', 'rejected', 'set', 'closed', 'confirmed')),
    old_ending text,
    new_ending text,
    note text,
    actor_kind text not null,
    actor_id text,
    actor_name text,
    created_at timestamptz not null,
    primary key (plan_manager_id, id)
);
create index bank_detail_changes_by_payee on bank_detail_changes (plan_manager_id, payee_kind, payee_id, id);

-- Payments

-- `header` is the office's data for direct entry when the run was made, and `account` its account.
-- `warnings` and `left_out` are what the person who made the run was told.
-- `advices_mailed`: remittance advices were queued for the payees with an email when the run was marked as paid.
create table payment_runs (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    number text not null,
    state text not null check (state in ('draft', 'paid', 'cancelled')),
    process_date date not null,
    group_by text not null check (group_by in ('payee', 'invoice')),
    header jsonb not null,
    account text not null, -- encrypted
    total numeric not null,
    payment_count int not null,
    warnings jsonb not null default '[]',
    left_out jsonb not null default '[]',
    left_out_count int not null default 0,
    returned int not null default 0, -- payments that the bank sent back
    created_at timestamptz not null,
    created_by text,
    created_by_account uuid,
    downloaded_at timestamptz, -- the first time
    downloaded_by text,
    downloaded_by_account uuid,
    paid_on date,
    paid_at timestamptz,
    paid_by text,
    advices_mailed boolean not null default false,
    cancelled_at timestamptz,
    cancelled_by text,
    cancel_reason text,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);
create unique index payment_runs_number_key on payment_runs (plan_manager_id, number);
create index payment_runs_by_state on payment_runs (plan_manager_id, state, id);
create index payment_runs_by_moment on payment_runs (plan_manager_id, updated_at, id);
create index payment_runs_by_date on payment_runs (plan_manager_id, paid_on, id) where paid_on is not null;

-- A credit of a run: what a payee gets, and the account that it goes to, encrypted as when the run was made.
create table payments (
    plan_manager_id uuid not null,
    id uuid not null,
    run_id uuid not null,
    position int not null, -- in the file, from 1
    payee_kind text not null check (payee_kind in ('provider', 'participant')),
    payee_id uuid not null,
    payee_name text not null,
    account text not null, -- encrypted
    account_ending text not null,
    account_title text not null, -- in the file
    reference text not null, -- the lodgement reference
    amount numeric not null check (amount > 0),
    state text not null check (state in ('draft', 'paid', 'returned', 'cancelled')),
    returned_on date,
    return_reference text,
    return_reason text,
    returned_at timestamptz,
    returned_by text,
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint payments_run_id_fkey foreign key (plan_manager_id, run_id) references payment_runs (plan_manager_id, id)
);
create unique index payments_position_key on payments (plan_manager_id, run_id, position);
create index payments_by_payee on payments (plan_manager_id, payee_kind, payee_id, id);
create index payments_by_return on payments (plan_manager_id, returned_on, id) where returned_on is not null;

-- What a payment pays of a claim. An open one is neither cancelled nor returned.
create table payment_lines (
    plan_manager_id uuid not null,
    payment_id uuid not null,
    claim_id uuid not null,
    invoice_id uuid not null,
    line_id uuid not null,
    amount numeric not null check (amount > 0),
    is_open boolean not null default true,
    primary key (plan_manager_id, payment_id, claim_id),
    constraint payment_lines_payment_id_fkey foreign key (plan_manager_id, payment_id)
        references payments (plan_manager_id, id),
    constraint payment_lines_claim_id_fkey foreign key (plan_manager_id, claim_id)
        references claims (plan_manager_id, id)
);
create unique index payment_lines_open_key on payment_lines (plan_manager_id, claim_id) where is_open;
create index payment_lines_by_line on payment_lines (plan_manager_id, invoice_id, line_id);

-- Statements of participants

-- A statement of a plan and a month: what was made is stored, and never computed again. `content` is the response as
-- JSON, without `sent`; the object of the PDF is made when it is first needed.
create table statements (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    participant_id uuid not null,
    plan_id uuid not null,
    month date not null check (extract(day from month) = 1),
    content text not null,
    made_at timestamptz not null,
    made_by text,
    run_id uuid, -- of the monthly run that made it
    pdf_key text,
    pdf_sha256 text,
    pdf_size bigint,
    updated_at timestamptz not null default clock_timestamp(), -- also when it is sent
    primary key (plan_manager_id, id)
);
create unique index statements_run_id_plan_id_key on statements (plan_manager_id, run_id, plan_id)
    where run_id is not null;
create index statements_by_participant on statements (plan_manager_id, participant_id, id);
create index statements_by_plan on statements (plan_manager_id, plan_id, month);

-- To whom a statement was sent: an address of email, or the name and address of a letter.
create table statement_sends (
    plan_manager_id uuid not null,
    id uuid not null,
    statement_id uuid not null,
    way text not null check (way in ('mail', 'post')),
    recipient text not null,
    sent_at timestamptz not null,
    primary key (plan_manager_id, id),
    constraint statement_sends_statement_id_fkey foreign key (plan_manager_id, statement_id)
        references statements (plan_manager_id, id)
);
create index statement_sends_by_statement on statement_sends (plan_manager_id, statement_id, id);

-- Runs of statements

-- The statements of all plans of a month. A run that is started again makes what it lacks.
create table statement_runs (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    month date not null check (extract(day from month) = 1),
    state text not null check (state in ('running', 'ended')),
    run_date date not null, -- the day of the first start in PLANKEEPER_TIME_ZONE
    plan_count int not null,
    position uuid, -- the last plan of this pass; null: before the first one
    problem text, -- why a running one doesn't continue
    created_at timestamptz not null,
    created_by text,
    started_at timestamptz not null, -- the last time
    ended_at timestamptz,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);
create unique index statement_runs_month_key on statement_runs (plan_manager_id, month);
create index statement_runs_by_moment on statement_runs (plan_manager_id, updated_at, id);
-- The background worker, over all plan managers.
create index statement_runs_running on statement_runs (state) where state = 'running';

-- What a run has done for a plan. It keeps the ids of a deleted participant and plan, so neither has a foreign key.
create table statement_run_items (
    plan_manager_id uuid not null,
    id uuid not null,
    run_id uuid not null,
    plan_id uuid not null,
    participant_id uuid not null,
    statement_id uuid,
    state text not null check (state in ('made', 'sent', 'to_print', 'skipped', 'failed')),
    reason text,
    message text,
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint statement_run_items_run_id_fkey foreign key (plan_manager_id, run_id)
        references statement_runs (plan_manager_id, id)
);
create unique index statement_run_items_plan_key on statement_run_items (plan_manager_id, run_id, plan_id);
create index statement_run_items_by_state on statement_run_items (plan_manager_id, run_id, state, id);
create index statement_run_items_by_moment on statement_run_items (plan_manager_id, updated_at, id);
create index statement_run_items_by_participant on statement_run_items (plan_manager_id, participant_id, id);

-- Who gets the statement of an item, and whether it is on its way.
create table statement_run_recipients (
    plan_manager_id uuid not null,
    id uuid not null,
    item_id uuid not null,
    way text not null check (way in ('mail', 'post')),
    recipient_kind text not null check (recipient_kind in ('participant', 'team_member')),
    recipient_id uuid not null,
    state text not null check (state in ('waiting', 'sent', 'to_print', 'cancelled', 'failed')),
    reason text, -- why it isn't sent
    message text,
    queued_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id),
    constraint statement_run_recipients_item_id_fkey foreign key (plan_manager_id, item_id)
        references statement_run_items (plan_manager_id, id)
);
create unique index statement_run_recipients_recipient_key on statement_run_recipients
    (plan_manager_id, item_id, way, recipient_kind, recipient_id);
-- Mails that the server gave up, over all plan managers.
create index statement_run_recipients_waiting on statement_run_recipients (queued_at) where state = 'waiting';
-- Letters, to find those to people who have died, over all plan managers.
create index statement_run_recipients_to_print on statement_run_recipients (plan_manager_id, item_id)
    where state = 'to_print';

-- The office's own fees: one invoice for each participant and month.
create table fees (
    plan_manager_id uuid not null,
    participant_id uuid not null,
    month text not null check (month ~ '^[0-9]{4}-[0-9]{2}$'),
    id uuid not null, -- of the invoice
    created_at timestamptz not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, participant_id, month),
    constraint fees_id_key unique (plan_manager_id, id),
    constraint fees_id_fkey foreign key (plan_manager_id, id)
        references invoices (plan_manager_id, id) on delete cascade
);
create index fees_by_month on fees (plan_manager_id, month, id);
create index fees_by_moment on fees (plan_manager_id, updated_at, id);

-- Fees that the office has taken from the money that it holds, with one reference and one total.
create table fee_takings (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    number text not null, -- the reference
    taken_on date not null,
    total numeric not null,
    lines int not null,
    created_at timestamptz not null,
    created_by text,
    updated_at timestamptz not null,
    primary key (plan_manager_id, id)
);
create unique index fee_takings_number_key on fee_takings (plan_manager_id, number);
create index fee_takings_by_moment on fee_takings (plan_manager_id, updated_at, id);
create index fee_takings_by_date on fee_takings (plan_manager_id, taken_on, id);

-- What a taking takes of a claim, once.
create table fee_taking_lines (
    plan_manager_id uuid not null,
    taking_id uuid not null,
    id uuid not null,
    claim_id uuid not null,
    invoice_id uuid not null,
    line_id uuid not null,
    amount numeric not null check (amount > 0),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, taking_id, id),
    constraint fee_taking_lines_taking_id_fkey foreign key (plan_manager_id, taking_id)
        references fee_takings (plan_manager_id, id),
    constraint fee_taking_lines_claim_id_fkey foreign key (plan_manager_id, claim_id)
        references claims (plan_manager_id, id)
);
create unique index fee_taking_lines_claim_id_key on fee_taking_lines (plan_manager_id, claim_id);
create index fee_taking_lines_by_line on fee_taking_lines (plan_manager_id, invoice_id, line_id);

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
    in_console boolean not null default false, -- only these end without a heartbeat: imported ones never change
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);
create index invoice_view_sessions_by_invoice on invoice_view_sessions (plan_manager_id, invoice_id, id);
create index invoice_view_sessions_by_moment on invoice_view_sessions (plan_manager_id, updated_at, id);
create index invoice_view_sessions_open on invoice_view_sessions (last_heartbeat)
    where in_console and session_ended is null;

-- Events: the audit log, the feed and the source of webhooks

-- Rows are only appended. The feed returns them in the order of event_order.
create table events (
    plan_manager_id uuid not null,
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
    notify boolean not null default true, -- false for the events of an import that sends no webhooks
    import_id uuid,
    primary key (plan_manager_id, id)
);
create index events_by_resource on events (plan_manager_id, resource_id, id);
-- The timeline of a participant, with its team members, invoices and notes. Those of notes are also found by the id of
-- an invoice or a provider.
create index events_by_participant on events (plan_manager_id, (
    case resource_kind when 'participant' then resource_id when 'note' then coalesce(data, previous) #>> '{resource,id}'
        else coalesce(data, previous) ->> 'participant_id' end
), id) where resource_kind in ('participant', 'plan', 'team_member', 'invoice', 'note', 'statement');
create index events_by_import on events (plan_manager_id, import_id, id) where import_id is not null;

-- Committed events without a position, in batches of at most 100. `types` has one element if all types are the same.
-- This table and the next ones have no foreign keys, as events have none.
create table event_queue (
    plan_manager_id uuid not null,
    id uuid not null,
    event_ids uuid[] not null check (cardinality(event_ids) between 1 and 100),
    types text[] not null,
    notify boolean not null,
    primary key (plan_manager_id, id),
    check (cardinality(types) in (1, cardinality(event_ids)))
);
-- A row is at most 6 kB: it stays in the table itself.
alter table event_queue alter column event_ids set storage plain, alter column types set storage plain;

-- The codes of event types in event_order. A sequencer adds a type when it first occurs.
create table event_types (
    code smallint primary key,
    name text not null unique
);

create table event_order (
    plan_manager_id uuid not null,
    position bigint not null,
    event_id uuid not null,
    type smallint not null,
    notify boolean not null,
    primary key (plan_manager_id, position)
);
create unique index event_order_by_event on event_order (plan_manager_id, event_id);
create index event_order_by_type on event_order (plan_manager_id, type, position);

-- The first position that was assigned in each minute. It never decreases from a minute to a later one.
create table event_marks (
    plan_manager_id uuid not null,
    minute timestamptz not null,
    position bigint not null,
    primary key (plan_manager_id, minute)
);

-- Every row of the queue is deleted within a second, and each read of the table passes over its dead rows.
alter table event_queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
-- Rows are only appended: frequent vacuums keep the visibility map current, and the statistics close to the truth.
alter table events set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
alter table event_order set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- The serving role, which doesn't own the tables, deletes and erases events with these functions of the owner.
create function delete_events(uuid, uuid[]) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
    begin
        delete from events where plan_manager_id = $1 and id = any ($2);
    end
$$;

-- $3: the fields that stay, or null for all of them. $4: a field whose text matches is erased too; or null.
create function erase_events(uuid, uuid[], text[], text) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
    declare
        erased_count integer;
    begin
        with erased as (
            update events changed set data = new.data, previous = new.previous
            from (
                select id, (
                        select json_object_agg(key, case
                            when $3 is not null and key <> all ($3) then null
                            when coalesce(value #>> '{}', '') !~* $4 or $4 is null then value
                            when json_typeof(value) = 'string' then '"[erased]"'::json
                        end)
                        from json_each(event.data)
                    ) as data, (
                        select json_object_agg(key, case
                            when $3 is not null and key <> all ($3) then null
                            when coalesce(value #>> '{}', '') !~* $4 or $4 is null then value
                            when json_typeof(value) = 'string' then '"[erased]"'::json
                        end)
                        from json_each(event.previous)
                    ) as previous
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
    end
$$;

-- Statistics after an import, which only the owner of a table can update.
create function analyze_tables(names text[], skip_locked boolean) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
    declare
        name text;
    begin
        foreach name in array names loop
            execute format('analyze (skip_locked %s) %I', case when skip_locked then 'on' else 'off' end, name);
        end loop;
    end
$$;

-- Webhooks

create table webhook_endpoints (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    url text not null,
    description text,
    event_types text[] not null,
    payload text not null check (payload in ('thin', 'full')),
    active boolean not null,
    disabled_reason text,
    created_at timestamptz not null,
    secret text not null,
    old_secret text, -- signs beside the new one for a while after a rotation
    old_secret_until timestamptz,
    failing_since timestamptz, -- since then, every attempt has failed
    last_position bigint not null, -- up to here, events of the feed have become deliveries or weren't subscribed to
    updated_at timestamptz not null default clock_timestamp(),
    primary key (plan_manager_id, id)
);

-- A worker that claims a delivery moves its next attempt one minute ahead: that is its lease.
create table webhook_deliveries (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    webhook_endpoint_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    status text not null check (status in ('pending', 'succeeded', 'failed', 'cancelled')),
    attempt_count integer not null default 0,
    attempts jsonb not null default '[]', -- as the API returns them
    next_attempt_at timestamptz,
    created_at timestamptz not null,
    attempt_details jsonb not null default '[]', -- what each attempt sent and received
    primary key (plan_manager_id, id),
    constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (plan_manager_id, webhook_endpoint_id)
        references webhook_endpoints (plan_manager_id, id) on delete cascade
);
create index webhook_deliveries_pending on webhook_deliveries (webhook_endpoint_id, next_attempt_at)
    where status = 'pending';
create index webhook_deliveries_by_endpoint on webhook_deliveries (plan_manager_id, webhook_endpoint_id, id);
create index webhook_deliveries_by_event on webhook_deliveries (plan_manager_id, event_id);
create index webhook_deliveries_by_moment on webhook_deliveries (created_at);

-- Without a foreign key to the endpoint: its lock could cause a deadlock with the deletion of the endpoint.
create table webhook_attempt_hours (
    plan_manager_id uuid not null references plan_managers (id),
    webhook_endpoint_id uuid not null,
    hour timestamptz not null,
    succeeded integer not null,
    failed integer not null,
    primary key (plan_manager_id, webhook_endpoint_id, hour)
);
create index webhook_attempt_hours_by_hour on webhook_attempt_hours (hour);

-- Imports in the console

-- A browser can't send a file twice on its own: it is stored between its check and its import, an hour at most.
create table import_files (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    resource text not null,
    name text not null,
    content bytea not null,
    created_by uuid not null,
    created_at timestamptz not null,
    primary key (plan_manager_id, id)
);
create index import_files_by_moment on import_files (created_at);

create table imports (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    resource text not null,
    file_name text not null,
    digest text not null,
    columns text[],
    mapping text[],
    existing text not null default 'update',
    clears_empty boolean not null default false,
    sets_states boolean not null default false, -- also of existing invoices
    notify boolean not null default false,
    state text not null default 'uploaded',
    created_by uuid not null,
    created_by_name text not null,
    created_at timestamptz not null,
    imported_at timestamptz,
    undone_at timestamptz,
    undone_by_name text,
    created_count integer not null default 0,
    changed_count integer not null default 0,
    unchanged_count integer not null default 0,
    skipped_count integer not null default 0,
    rejected_count integer not null default 0,
    warning_count integer not null default 0,
    unconfirmed_count integer not null default 0,
    included_lines integer[] not null default '{}', -- unconfirmed rows that somebody has confirmed
    primary key (plan_manager_id, id)
);
-- Whether the same file was imported before.
create index imports_by_digest on imports (plan_manager_id, digest);

create table import_rows (
    plan_manager_id uuid not null,
    import_id uuid not null,
    line_number integer not null,
    outcome text not null,
    has_warnings boolean not null,
    record_id text,
    event_id uuid, -- its previous values are what an undo restores
    before json,
    after json,
    problems json,
    cells text[],
    primary key (plan_manager_id, import_id, line_number),
    constraint import_rows_import_id_fkey foreign key (plan_manager_id, import_id)
        references imports (plan_manager_id, id) on delete cascade
);
create index import_rows_by_outcome on import_rows (plan_manager_id, import_id, outcome, line_number);

-- The columns that people have mapped to fields.
create table import_mappings (
    plan_manager_id uuid not null references plan_managers (id),
    resource text not null,
    column_name text not null,
    field text not null,
    primary key (plan_manager_id, resource, column_name)
);

-- Lists and forms of the console. Without foreign keys to accounts, which Citus has elsewhere

create table saved_views (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    owner_id uuid not null,
    list_kind text not null,
    name text not null,
    query text not null,
    is_shared boolean not null,
    created_at timestamptz not null,
    primary key (plan_manager_id, id)
);

create table list_settings (
    plan_manager_id uuid not null references plan_managers (id),
    account_id uuid not null,
    list_kind text not null,
    columns text[],
    density text not null,
    primary key (plan_manager_id, account_id, list_kind)
);

-- Records that were deleted in the console, and can be restored.
create table trash (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    kind text not null check (kind in ('participant', 'provider')),
    resource_id uuid not null,
    name text,
    deleted_at timestamptz not null,
    deleted_by text,
    snapshot jsonb not null,
    primary key (plan_manager_id, id)
);
create index trash_by_resource on trash (plan_manager_id, resource_id);

-- The access log: who viewed, listed or exported which record

-- A list has either its records in `resource_ids`, or the first and the last one of a whole range.
create table access_records (
    plan_manager_id uuid not null,
    id uuid not null,
    accessed_at timestamptz not null,
    actor_kind text not null check (actor_kind in ('api_key', 'user', 'system')),
    actor_id text,
    actor_name text,
    action text not null check (action in ('viewed', 'listed', 'exported')),
    resource_kind text not null,
    resource_id uuid,
    query text,
    first_id uuid,
    last_id uuid,
    request_id text,
    resource_ids uuid[],
    primary key (plan_manager_id, id),
    constraint access_records_kind_check check (resource_kind in ('participant', 'invoice', 'provider', 'webhook_endpoint'))
);
create index access_records_by_resource on access_records (plan_manager_id, resource_id, id)
    where resource_id is not null;
create index access_records_by_listed on access_records using gin (plan_manager_id, resource_ids)
    where resource_ids is not null;
create index access_records_by_range on access_records (plan_manager_id, first_id, last_id)
    where first_id is not null;
