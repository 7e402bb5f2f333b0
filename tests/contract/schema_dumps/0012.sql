CREATE FUNCTION public.time_ordered_uuid() RETURNS uuid
    LANGUAGE sql
    AS $$
    select encode(
        set_byte(
            overlay(
                uuid_send(gen_random_uuid()) placing
                substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 0) & 15) | 112),
        'hex')::uuid
$$;
CREATE TABLE public.account_devices (
    account_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone NOT NULL
);
CREATE TABLE public.account_failures (
    subject bytea NOT NULL,
    failures integer NOT NULL,
    failed_at timestamp with time zone NOT NULL,
    locked_until timestamp with time zone NOT NULL,
    email_hash bytea NOT NULL
);
CREATE TABLE public.account_invitations (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    email text NOT NULL,
    name text,
    role text NOT NULL,
    token_hash bytea NOT NULL,
    invited_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone,
    invited_by_account_id uuid,
    CONSTRAINT account_invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'viewer'::text])))
);
CREATE TABLE public.account_managers (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    first_name text,
    last_name text,
    name text GENERATED ALWAYS AS (NULLIF(btrim(((COALESCE(first_name, ''::text) || ' '::text) || COALESCE(last_name, ''::text))), ''::text)) STORED,
    active boolean DEFAULT true NOT NULL,
    is_internal boolean DEFAULT false NOT NULL,
    deleted boolean DEFAULT false NOT NULL
);
CREATE TABLE public.account_recovery_codes (
    account_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE public.account_roles (
    plan_manager_id uuid NOT NULL,
    account_id uuid NOT NULL,
    role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone,
    CONSTRAINT account_roles_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'viewer'::text])))
);
CREATE TABLE public.account_sessions (
    token_hash bytea NOT NULL,
    account_id uuid NOT NULL,
    chosen_plan_manager_id uuid,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    address text NOT NULL,
    user_agent text NOT NULL,
    two_factor_pending boolean CONSTRAINT account_sessions_second_step_due_not_null NOT NULL,
    recorded_for uuid[] DEFAULT '{}'::uuid[] NOT NULL
);
CREATE TABLE public.accounts (
    id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password_hash text NOT NULL,
    totp_secret text,
    totp_counter bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_key_plan_managers (
    plan_manager_id uuid NOT NULL,
    api_key_id uuid NOT NULL
);
CREATE TABLE public.api_keys (
    id uuid NOT NULL,
    name text NOT NULL,
    key_hash bytea NOT NULL,
    last_four text NOT NULL,
    scopes text[] NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    rate_limit bigint,
    original_id uuid NOT NULL,
    last_used_at timestamp with time zone,
    warned_at timestamp with time zone,
    created_by_account_id uuid,
    CONSTRAINT api_keys_rate_limit_check CHECK ((rate_limit >= 0)),
    CONSTRAINT api_keys_scopes_check CHECK (((scopes <@ ARRAY['read'::text, 'write'::text]) AND (cardinality(scopes) > 0)))
);
CREATE TABLE public.api_request_batches (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    count integer NOT NULL,
    requests json NOT NULL
);
ALTER TABLE ONLY public.api_request_batches ALTER COLUMN requests SET STORAGE EXTERNAL;
CREATE SEQUENCE public.event_positions
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.events (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    actor_kind text NOT NULL,
    actor_id text,
    actor_name text,
    resource_kind text NOT NULL,
    resource_id text NOT NULL,
    data json,
    previous json,
    request_id text,
    "position" bigint,
    notify boolean DEFAULT true NOT NULL,
    CONSTRAINT events_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['api_key'::text, 'user'::text, 'system'::text])))
);
CREATE TABLE public.exit_reasons (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    parent_id uuid
);
CREATE TABLE public.grants_version (
    one boolean DEFAULT true NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT grants_version_one_check CHECK (one)
);
CREATE TABLE public.idempotency_records (
    plan_manager_id uuid NOT NULL,
    original_key_id uuid NOT NULL,
    path text NOT NULL,
    idempotency_key text NOT NULL,
    request_hash bytea NOT NULL,
    status integer,
    body bytea,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.import_files (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    resource text NOT NULL,
    name text NOT NULL,
    content bytea NOT NULL,
    created_by uuid CONSTRAINT import_files_made_by_not_null NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.invoice_ignored_warnings (
    plan_manager_id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    error_code text NOT NULL,
    reason text NOT NULL,
    ignored_by text NOT NULL,
    ignored_at timestamp with time zone NOT NULL
);
CREATE TABLE public.invoice_lines (
    plan_manager_id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    id uuid NOT NULL,
    "position" integer NOT NULL,
    description text,
    service_item_number text,
    quantity numeric,
    unit_price numeric,
    total_price numeric,
    claim_status text NOT NULL,
    claim_batch_ref text,
    claim_number text,
    payment_ref text,
    is_deleted boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.invoice_view_sessions (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    user_id text NOT NULL,
    user_name text NOT NULL,
    session_started timestamp with time zone NOT NULL,
    session_ended timestamp with time zone,
    last_heartbeat timestamp with time zone NOT NULL,
    duration_seconds bigint,
    created_at timestamp with time zone NOT NULL,
    active_duration_seconds bigint,
    engaged_duration_seconds bigint,
    idle_count bigint,
    in_console boolean DEFAULT false NOT NULL
);
CREATE TABLE public.invoices (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    invoice_number text,
    invoice_date date,
    total numeric,
    tax numeric,
    subtotal numeric,
    participant_id uuid,
    claim_status text NOT NULL,
    approval_status text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    pm_provider_id uuid,
    s3_key text,
    email_message_id text,
    errors boolean DEFAULT false NOT NULL,
    error_codes text[] DEFAULT '{}'::text[] NOT NULL,
    ignored_error_codes text[] DEFAULT '{}'::text[] NOT NULL,
    is_deleted boolean NOT NULL,
    wont_claim boolean NOT NULL,
    is_reimbursement boolean NOT NULL,
    is_duplicate boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT invoices_approval_status_check CHECK ((approval_status = ANY (ARRAY['not_required'::text, 'pending'::text, 'approved'::text, 'rejected'::text]))),
    CONSTRAINT invoices_claim_status_check CHECK ((claim_status = ANY (ARRAY['new'::text, 'flagged'::text, 'pending'::text, 'payment_ready'::text, 'partially_ready'::text, 'partially_paid'::text, 'paid'::text, 'rejected'::text, 'on_hold'::text, 'cancelled'::text])))
);
CREATE SEQUENCE public.note_type_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.note_types (
    plan_manager_id uuid NOT NULL,
    id bigint DEFAULT nextval('public.note_type_ids'::regclass) NOT NULL,
    note_type text NOT NULL,
    badge_color text,
    highlight_color text
);
CREATE TABLE public.participant_counts (
    plan_manager_id uuid NOT NULL,
    status text NOT NULL,
    state text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    amount bigint NOT NULL
);
CREATE TABLE public.participants (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
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
    status text NOT NULL,
    approval_required boolean NOT NULL,
    onboard_date date,
    created_at timestamp with time zone NOT NULL,
    date_ceased date,
    reason_for_leaving text,
    exit_reason_category_id uuid,
    exit_reason_subcategory_id uuid,
    account_manager_id uuid,
    is_pace_plan boolean NOT NULL,
    plan_start_date date,
    plan_end_date date,
    postal_statement boolean NOT NULL,
    participant_receives_statements boolean NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT participants_status_check CHECK ((status = ANY (ARRAY['Active'::text, 'Inactive'::text, 'Lead'::text])))
);
CREATE TABLE public.permissions (
    id uuid NOT NULL,
    name text NOT NULL,
    label text NOT NULL,
    "order" integer NOT NULL
);
CREATE TABLE public.plan_managers (
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    requires_two_factor boolean DEFAULT false NOT NULL
);
CREATE TABLE public.providers (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    entity_name text,
    abn text,
    email text,
    active boolean NOT NULL,
    primary_phone_number text,
    address text,
    city text,
    state text,
    postcode text,
    ndis_provider_number text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE UNLOGGED TABLE public.rate_limits (
    subject text NOT NULL,
    minute timestamp with time zone NOT NULL,
    granted bigint NOT NULL,
    used bigint NOT NULL,
    lease bigint NOT NULL
);
CREATE TABLE public.team_member_permissions (
    plan_manager_id uuid NOT NULL,
    participant_id uuid NOT NULL,
    team_member_id uuid NOT NULL,
    permission_id uuid NOT NULL
);
CREATE TABLE public.team_members (
    plan_manager_id uuid NOT NULL,
    participant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
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
    contact_priority integer,
    CONSTRAINT team_members_check CHECK (((id = user_id) OR (id = pm_profile_id))),
    CONSTRAINT team_members_contact_priority_check CHECK ((contact_priority = ANY (ARRAY[1, 2])))
);
CREATE TABLE public.users (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    email text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.webhook_deliveries (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    webhook_endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    status text NOT NULL,
    attempt_count integer DEFAULT 0 CONSTRAINT webhook_deliveries_made_not_null NOT NULL,
    attempts jsonb DEFAULT '[]'::jsonb NOT NULL,
    next_attempt_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.webhook_endpoints (
    plan_manager_id uuid NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    description text,
    event_types text[] NOT NULL,
    payload text NOT NULL,
    active boolean NOT NULL,
    disabled_reason text,
    created_at timestamp with time zone NOT NULL,
    secret text NOT NULL,
    old_secret text,
    old_secret_until timestamp with time zone,
    failing_since timestamp with time zone,
    last_position bigint CONSTRAINT webhook_endpoints_fanned_out_to_not_null NOT NULL,
    CONSTRAINT webhook_endpoints_payload_check CHECK ((payload = ANY (ARRAY['thin'::text, 'full'::text])))
);
INSERT INTO public.account_devices VALUES ('01900000-0000-7000-8000-000000000101', '\x263a4dbe41488fb87214b0032339dbb9f0c8da14c16dfcf13084bf3c2552eca5', '2026-01-13 00:00:00+00', '2026-01-13 00:00:00+00');
INSERT INTO public.account_failures VALUES ('\x3a422f032cffefd948a06250652657588fe32aede2b422e8d028e80393faaec0', 3, '2026-01-13 01:00:00+00', '2026-01-13 01:01:00+00', '\x5d9a0087d4ccdb9bc50e88c4713479119e48a326fd360d647cf1643f3cae13e7');
INSERT INTO public.account_invitations VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000111', 'new@example.com', NULL, 'manager', '\xa3013c082c75edc913598c3baac1afa18f7633fe8f014896ab2f1a72ff83d8ba', 'Robin', '2026-01-12 01:00:00+00', '2026-01-19 01:00:00+00', NULL, '01900000-0000-7000-8000-000000000101');
INSERT INTO public.account_managers VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000021', 'Alex', 'Álvarez', DEFAULT, true, true, false);
INSERT INTO public.account_recovery_codes VALUES ('01900000-0000-7000-8000-000000000101', '\x0e8f7f17837b687118dace07feef40dbf4a3a0ee67114f74bd5168ef5f55b3e3', NULL);
INSERT INTO public.account_recovery_codes VALUES ('01900000-0000-7000-8000-000000000101', '\x550531708163ea1221f1ef8daf5d0096d6f5fe496782f6172d0cc24d48050205', '2026-01-08 00:00:00+00');
INSERT INTO public.account_roles VALUES ('01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-000000000102', 'viewer', '2026-01-05 00:00:00+00', NULL);
INSERT INTO public.account_roles VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000101', 'owner', '2026-01-05 00:00:00+00', '2026-01-13 00:00:00+00');
INSERT INTO public.account_sessions VALUES ('\x3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', '01900000-0000-7000-8000-000000000101', '01900000-0000-7000-8000-000000000001', '2026-01-12 00:00:00+00', '2026-01-12 01:00:00+00', '2026-01-26 00:00:00+00', '192.0.2.1', 'Firefox', false, '{01900000-0000-7000-8000-000000000001}');
INSERT INTO public.accounts VALUES ('01900000-0000-7000-8000-000000000101', 'Robin@example.com', 'Robin', '$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA', 'JBSWY3DPEHPK3PXP', 57, '2026-01-05 00:00:00+00');
INSERT INTO public.accounts VALUES ('01900000-0000-7000-8000-000000000102', 'kim@example.com', 'Kim', '$argon2id$v=19$m=19456,t=2,p=1$BBBB$BBBB', NULL, 0, '2026-01-05 00:00:00+00');
INSERT INTO public.alembic_version VALUES ('0012');
INSERT INTO public.api_key_plan_managers VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000011');
INSERT INTO public.api_key_plan_managers VALUES ('01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-000000000011');
INSERT INTO public.api_key_plan_managers VALUES ('01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-000000000012');
INSERT INTO public.api_keys VALUES ('01900000-0000-7000-8000-000000000012', 'retired', '\x5b720147b6918dfc19baa0d7767cab75b76e17998837d04af43f2f3463c5350f', '0000', '{read}', 'plankeeper keys', '2026-01-05 02:00:00+00', '2026-02-05 02:00:00+00', '2026-01-06 02:00:00+00', NULL, '01900000-0000-7000-8000-000000000012', NULL, NULL, NULL);
INSERT INTO public.api_keys VALUES ('01900000-0000-7000-8000-000000000011', 'reporting', '\x234f6c9afbd389922bd2eb7dc6b8bebc65244d2902482eb297ba0991f5e42ca3', 'MdI4', '{read,write}', 'Robin', '2026-01-05 01:00:00+00', NULL, NULL, 600, '01900000-0000-7000-8000-000000000011', '2026-01-07 01:00:00+00', NULL, '01900000-0000-7000-8000-000000000101');
INSERT INTO public.api_request_batches VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000d1', '2026-01-12 01:00:00+00', 1, '[["req_1"]]');
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a1', 'participant.created', '2026-01-05 01:00:00+00', 'api_key', '01900000-0000-7000-8000-000000000011', 'reporting', 'participant', '01900000-0000-7000-8000-000000000041', '{"id": "01900000-0000-7000-8000-000000000041", "first_name": "Nguyễn"}', NULL, 'req_1', 1, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-0000000000a2', 'participant.created', '2026-01-05 01:00:02+00', 'system', NULL, 'plankeeper import', 'participant', '01900000-0000-7000-8000-000000000041', '{"id": "01900000-0000-7000-8000-000000000041"}', NULL, NULL, 2, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a4', 'provider.created', '2026-01-06 01:00:00+00', 'api_key', '01900000-0000-7000-8000-000000000011', 'reporting', 'provider', '01900000-0000-7000-8000-000000000061', '{"id": "01900000-0000-7000-8000-000000000061"}', NULL, 'req_3', 3, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a3', 'participant.updated', '2026-01-06 01:00:00+00', 'api_key', '01900000-0000-7000-8000-000000000011', 'reporting', 'participant', '01900000-0000-7000-8000-000000000041', '{"id": "01900000-0000-7000-8000-000000000041", "first_name": "Nguyễn"}', '{"first_name": "Nguyen"}', 'req_2', 4, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a5', 'api_key.created', '2026-01-05 01:00:00+00', 'user', '01900000-0000-7000-8000-000000000101', 'Robin', 'api_key', '01900000-0000-7000-8000-000000000011', '{"id": "01900000-0000-7000-8000-000000000011"}', NULL, NULL, 5, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a6', 'account.invited', '2026-01-12 01:00:00+00', 'user', '01900000-0000-7000-8000-000000000101', 'Robin', 'account_invitation', '01900000-0000-7000-8000-000000000111', '{"id": "01900000-0000-7000-8000-000000000111"}', NULL, NULL, 6, true);
INSERT INTO public.events VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000a7', 'provider.updated', '2026-01-12 01:00:00+00', 'system', NULL, 'plankeeper import', 'provider', '01900000-0000-7000-8000-000000000061', '{"id": "01900000-0000-7000-8000-000000000061"}', '{"active": false}', NULL, 7, false);
INSERT INTO public.exit_reasons VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000031', 'Moved', NULL);
INSERT INTO public.exit_reasons VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000032', 'Interstate', '01900000-0000-7000-8000-000000000031');
INSERT INTO public.grants_version VALUES (true, 7);
INSERT INTO public.idempotency_records VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000011', '/participants', 'once', '\x1f58b9145b24d108d7ac38887338b3ea3229833b9c1e418250343f907bfd1047', 200, '\x7b7d', '2026-01-05 01:00:00+00');
INSERT INTO public.import_files VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000e1', 'providers', 'providers.csv', '\x656e746974795f6e616d65', '01900000-0000-7000-8000-000000000101', '2026-01-12 01:00:00+00');
INSERT INTO public.invoice_ignored_warnings VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000071', 'duplicate', 'Checked by phone', 'Robin', '2026-01-12 01:00:00+00');
INSERT INTO public.invoice_lines VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000071', '01900000-0000-7000-8000-000000000081', 1, 'Transport', '01_799_0104_1_1', 2.5, 40.04, 100.10, 'pending', NULL, NULL, NULL, false, '2026-01-10 01:00:00+00');
INSERT INTO public.invoice_view_sessions VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000091', '01900000-0000-7000-8000-000000000071', 'alex', 'Alex', '2026-01-11 01:00:00+00', '2026-01-11 01:05:00+00', '2026-01-11 01:05:00+00', 300, '2026-01-11 01:00:00+00', NULL, NULL, 2, false);
INSERT INTO public.invoice_view_sessions VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000092', '01900000-0000-7000-8000-000000000071', 'robin', 'Robin', '2026-01-12 01:00:00+00', NULL, '2026-01-12 01:00:00+00', NULL, '2026-01-12 01:00:00+00', NULL, NULL, NULL, true);
INSERT INTO public.invoices VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000071', 'INV-1', '2026-01-10', 110.10, 10.00, 100.10, '01900000-0000-7000-8000-000000000041', 'pending', 'approved', '2026-01-10 01:00:00+00', '01900000-0000-7000-8000-000000000061', NULL, NULL, true, '{missing_abn,duplicate}', '{duplicate}', false, false, false, false, '2026-01-10 01:00:00+00');
INSERT INTO public.invoices VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000072', NULL, NULL, NULL, NULL, NULL, NULL, 'new', 'not_required', '2026-01-10 01:00:01+00', NULL, NULL, NULL, false, '{}', '{}', false, true, true, false, '2026-01-10 01:00:01+00');
INSERT INTO public.note_types VALUES ('01900000-0000-7000-8000-000000000001', 1, 'Call', '#336699', NULL);
INSERT INTO public.note_types VALUES ('01900000-0000-7000-8000-000000000001', 2, 'Visit', NULL, NULL);
INSERT INTO public.participant_counts VALUES ('01900000-0000-7000-8000-000000000001', 'Active', 'NSW', '01900000-0000-7000-8000-000000000051', 2);
INSERT INTO public.participant_counts VALUES ('01900000-0000-7000-8000-000000000001', 'Active', 'NSW', '01900000-0000-7000-8000-000000000052', -1);
INSERT INTO public.participant_counts VALUES ('01900000-0000-7000-8000-000000000001', 'Inactive', '', '01900000-0000-7000-8000-000000000053', 1);
INSERT INTO public.participant_counts VALUES ('01900000-0000-7000-8000-000000000002', 'Lead', 'VIC', '01900000-0000-7000-8000-000000000054', 1);
INSERT INTO public.participants VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000041', 'Nguyễn', NULL, 'O''Brien', 'two
lines', '430000001', 'N.OBrien@example.com', NULL, '1990-02-28', NULL, NULL, 'NSW', '2000', NULL, NULL, NULL, NULL, 'Active', true, '2026-01-05', '2026-01-05 01:00:00.123456+00', NULL, NULL, NULL, NULL, '01900000-0000-7000-8000-000000000021', true, '2026-01-01', '2026-12-31', false, true, '2026-01-06 01:00:00.654321+00');
INSERT INTO public.participants VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000042', NULL, NULL, 'Left', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'Inactive', false, NULL, '2026-01-05 01:00:01+00', '2026-01-20', NULL, '01900000-0000-7000-8000-000000000031', '01900000-0000-7000-8000-000000000032', NULL, false, NULL, NULL, true, false, '2026-01-06 01:00:01+00');
INSERT INTO public.participants VALUES ('01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-000000000041', 'Same', NULL, 'Id', NULL, '430000001', NULL, NULL, NULL, NULL, NULL, 'VIC', NULL, NULL, NULL, NULL, NULL, 'Lead', false, NULL, '2026-01-05 01:00:02+00', NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, false, false, '2026-01-06 01:00:02+00');
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000001', 'view_budget', 'View budget', 1);
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000002', 'view_invoices', 'View invoices', 2);
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000003', 'approve_invoices', 'Approve invoices', 3);
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000004', 'email_statements', 'Email statements', 4);
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000005', 'view_documents', 'View documents', 5);
INSERT INTO public.permissions VALUES ('0199a000-0000-7000-8000-000000000006', 'no_access', 'No access', 6);
INSERT INTO public.plan_managers VALUES ('01900000-0000-7000-8000-000000000001', 'Acacia Plans', '2026-01-05 01:00:00+00', false);
INSERT INTO public.plan_managers VALUES ('01900000-0000-7000-8000-000000000002', 'Banksia Plans', '2026-01-06 01:00:00+00', true);
INSERT INTO public.providers VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000061', 'Ability & Co', '51 824 753 556', 'Office@example.com', true, NULL, NULL, NULL, NULL, NULL, NULL, '2026-01-05 01:00:00+00', '2026-01-05 01:00:00+00');
INSERT INTO public.rate_limits VALUES ('key', '2026-01-07 01:00:00+00', 10, 5, 5);
INSERT INTO public.team_member_permissions VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000041', '01900000-0000-7000-8000-000000000022', '0199a000-0000-7000-8000-000000000002');
INSERT INTO public.team_members VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000041', '01900000-0000-7000-8000-000000000022', '01900000-0000-7000-8000-000000000022', NULL, 'Sam', 'Sister', 'nominee', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1);
INSERT INTO public.users VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000021', 'alex@example.com', '2026-01-05 01:00:00+00');
INSERT INTO public.users VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000022', 'Sam@example.com', '2026-01-05 01:00:00+00');
INSERT INTO public.webhook_deliveries VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000c1', '01900000-0000-7000-8000-0000000000b1', '01900000-0000-7000-8000-0000000000a4', 'provider.created', 'succeeded', 1, '[{"status": 200}]', NULL, '2026-01-06 01:00:01+00');
INSERT INTO public.webhook_deliveries VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000c2', '01900000-0000-7000-8000-0000000000b1', '01900000-0000-7000-8000-0000000000a6', 'account.invited', 'pending', 2, '[{"status": 500}, {"status": 500}]', '2026-01-12 02:00:00+00', '2026-01-12 01:00:01+00');
INSERT INTO public.webhook_endpoints VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000b1', 'https://example.com/hook', 'All', '{*}', 'thin', true, NULL, '2026-01-06 00:00:00+00', 'whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw', NULL, NULL, '2026-01-12 01:00:00+00', 6);
INSERT INTO public.webhook_endpoints VALUES ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-0000000000b2', 'https://example.com/other', NULL, '{participant.*}', 'full', false, 'failing', '2026-01-06 00:00:00+00', 'whsec_MTExMTExMTExMTExMTExMTExMTExMTEx', NULL, NULL, NULL, 3);
SELECT pg_catalog.setval('public.event_positions', 7, true);
SELECT pg_catalog.setval('public.note_type_ids', 2, true);
ALTER TABLE ONLY public.account_devices
    ADD CONSTRAINT account_devices_pkey PRIMARY KEY (account_id, token_hash);
ALTER TABLE ONLY public.account_failures
    ADD CONSTRAINT account_failures_pkey PRIMARY KEY (subject);
ALTER TABLE ONLY public.account_invitations
    ADD CONSTRAINT account_invitations_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.account_managers
    ADD CONSTRAINT account_managers_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.account_recovery_codes
    ADD CONSTRAINT account_recovery_codes_pkey PRIMARY KEY (account_id, code_hash);
ALTER TABLE ONLY public.account_roles
    ADD CONSTRAINT account_roles_pkey PRIMARY KEY (plan_manager_id, account_id);
ALTER TABLE ONLY public.account_sessions
    ADD CONSTRAINT account_sessions_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.api_key_plan_managers
    ADD CONSTRAINT api_key_plan_managers_pkey PRIMARY KEY (plan_manager_id, api_key_id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_request_batches
    ADD CONSTRAINT api_request_batches_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.exit_reasons
    ADD CONSTRAINT exit_reasons_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.grants_version
    ADD CONSTRAINT grants_version_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.idempotency_records
    ADD CONSTRAINT idempotency_records_pkey PRIMARY KEY (plan_manager_id, original_key_id, path, idempotency_key);
ALTER TABLE ONLY public.import_files
    ADD CONSTRAINT import_files_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.invoice_ignored_warnings
    ADD CONSTRAINT invoice_ignored_warnings_pkey PRIMARY KEY (plan_manager_id, invoice_id, error_code);
ALTER TABLE ONLY public.invoice_lines
    ADD CONSTRAINT invoice_lines_pkey PRIMARY KEY (plan_manager_id, invoice_id, id);
ALTER TABLE ONLY public.invoice_view_sessions
    ADD CONSTRAINT invoice_view_sessions_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.invoices
    ADD CONSTRAINT invoices_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.note_types
    ADD CONSTRAINT note_types_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.participant_counts
    ADD CONSTRAINT participant_counts_pkey PRIMARY KEY (plan_manager_id, status, state, id);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.permissions
    ADD CONSTRAINT permissions_name_key UNIQUE (name);
ALTER TABLE ONLY public.permissions
    ADD CONSTRAINT permissions_order_key UNIQUE ("order");
ALTER TABLE ONLY public.permissions
    ADD CONSTRAINT permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.plan_managers
    ADD CONSTRAINT plan_managers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT providers_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (subject);
ALTER TABLE ONLY public.team_member_permissions
    ADD CONSTRAINT team_member_permissions_pkey PRIMARY KEY (plan_manager_id, participant_id, team_member_id, permission_id);
ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_contact_priority_key UNIQUE (plan_manager_id, participant_id, contact_priority);
ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_pkey PRIMARY KEY (plan_manager_id, participant_id, id);
ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_user_id_key UNIQUE (plan_manager_id, participant_id, user_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (plan_manager_id, id);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (plan_manager_id, id);
CREATE INDEX account_devices_by_token ON public.account_devices USING btree (token_hash);
CREATE INDEX account_failures_by_email ON public.account_failures USING btree (email_hash);
CREATE INDEX account_failures_by_moment ON public.account_failures USING btree (failed_at);
CREATE INDEX account_invitations_by_token ON public.account_invitations USING btree (token_hash);
CREATE UNIQUE INDEX account_invitations_email_key ON public.account_invitations USING btree (plan_manager_id, lower(email)) WHERE (accepted_at IS NULL);
CREATE INDEX account_roles_by_account ON public.account_roles USING btree (account_id);
CREATE INDEX account_sessions_by_account ON public.account_sessions USING btree (account_id);
CREATE UNIQUE INDEX accounts_email_key ON public.accounts USING btree (lower(email));
CREATE INDEX api_key_plan_managers_by_key ON public.api_key_plan_managers USING btree (api_key_id);
CREATE INDEX api_keys_by_expiry ON public.api_keys USING btree (expires_at) WHERE ((revoked_at IS NULL) AND (warned_at IS NULL));
CREATE INDEX api_request_batches_by_moment ON public.api_request_batches USING btree (ended_at);
CREATE INDEX events_by_position ON public.events USING btree (plan_manager_id, "position");
CREATE INDEX events_by_resource ON public.events USING btree (plan_manager_id, resource_id, "position");
CREATE INDEX events_without_position ON public.events USING btree (plan_manager_id, id) WHERE ("position" IS NULL);
CREATE INDEX idempotency_records_by_moment ON public.idempotency_records USING btree (created_at);
CREATE INDEX import_files_by_moment ON public.import_files USING btree (created_at);
CREATE INDEX invoice_view_sessions_by_invoice ON public.invoice_view_sessions USING btree (plan_manager_id, invoice_id, id);
CREATE INDEX invoice_view_sessions_open ON public.invoice_view_sessions USING btree (last_heartbeat) WHERE (in_console AND (session_ended IS NULL));
CREATE INDEX invoices_by_approval_status ON public.invoices USING btree (plan_manager_id, approval_status, id);
CREATE INDEX invoices_by_claim_status ON public.invoices USING btree (plan_manager_id, claim_status, id);
CREATE INDEX invoices_by_moment ON public.invoices USING btree (plan_manager_id, updated_at, id);
CREATE INDEX invoices_by_number ON public.invoices USING btree (plan_manager_id, invoice_number, id);
CREATE INDEX invoices_by_participant ON public.invoices USING btree (plan_manager_id, participant_id, id);
CREATE INDEX invoices_by_provider ON public.invoices USING btree (plan_manager_id, pm_provider_id, id);
CREATE INDEX invoices_by_provider_and_number ON public.invoices USING btree (plan_manager_id, pm_provider_id, invoice_number);
CREATE INDEX invoices_with_errors ON public.invoices USING btree (plan_manager_id, id) WHERE errors;
CREATE INDEX invoices_with_errors_by_approval_status ON public.invoices USING btree (plan_manager_id, approval_status, id) WHERE errors;
CREATE INDEX invoices_with_errors_by_claim_status ON public.invoices USING btree (plan_manager_id, claim_status, id) WHERE errors;
CREATE INDEX invoices_with_errors_by_provider ON public.invoices USING btree (plan_manager_id, pm_provider_id, id) WHERE errors;
CREATE INDEX participants_by_account_manager ON public.participants USING btree (plan_manager_id, account_manager_id, id);
CREATE INDEX participants_by_email ON public.participants USING btree (plan_manager_id, lower(email) text_pattern_ops, id);
CREATE INDEX participants_by_first_name ON public.participants USING btree (plan_manager_id, lower(first_name) text_pattern_ops, id);
CREATE INDEX participants_by_last_name ON public.participants USING btree (plan_manager_id, lower(last_name) text_pattern_ops, id);
CREATE INDEX participants_by_moment ON public.participants USING btree (plan_manager_id, updated_at, id);
CREATE INDEX participants_by_number ON public.participants USING btree (plan_manager_id, participant_number text_pattern_ops, id);
CREATE INDEX participants_by_state ON public.participants USING btree (plan_manager_id, state, id);
CREATE INDEX participants_by_status ON public.participants USING btree (plan_manager_id, status, id);
CREATE INDEX participants_by_status_and_state ON public.participants USING btree (plan_manager_id, status, state, id);
CREATE INDEX providers_by_abn ON public.providers USING btree (plan_manager_id, abn, id);
CREATE INDEX providers_by_abn_digits ON public.providers USING btree (plan_manager_id, replace(abn, ' '::text, ''::text) text_pattern_ops, id);
CREATE INDEX providers_by_email ON public.providers USING btree (plan_manager_id, lower(email) text_pattern_ops, id);
CREATE INDEX providers_by_moment ON public.providers USING btree (plan_manager_id, updated_at, id);
CREATE INDEX providers_by_name ON public.providers USING btree (plan_manager_id, lower(entity_name) text_pattern_ops, id);
CREATE INDEX rate_limits_by_minute ON public.rate_limits USING btree (minute);
CREATE UNIQUE INDEX users_email_key ON public.users USING btree (plan_manager_id, lower(email));
CREATE INDEX webhook_deliveries_by_endpoint ON public.webhook_deliveries USING btree (plan_manager_id, webhook_endpoint_id, id);
CREATE INDEX webhook_deliveries_by_moment ON public.webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_pending ON public.webhook_deliveries USING btree (webhook_endpoint_id, next_attempt_at) WHERE (status = 'pending'::text);
ALTER TABLE ONLY public.account_devices
    ADD CONSTRAINT account_devices_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.account_invitations
    ADD CONSTRAINT account_invitations_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.account_managers
    ADD CONSTRAINT account_managers_id_fkey FOREIGN KEY (plan_manager_id, id) REFERENCES public.users(plan_manager_id, id);
ALTER TABLE ONLY public.account_recovery_codes
    ADD CONSTRAINT account_recovery_codes_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.account_roles
    ADD CONSTRAINT account_roles_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.account_roles
    ADD CONSTRAINT account_roles_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.account_sessions
    ADD CONSTRAINT account_sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.account_sessions
    ADD CONSTRAINT account_sessions_chosen_plan_manager_id_fkey FOREIGN KEY (chosen_plan_manager_id, account_id) REFERENCES public.account_roles(plan_manager_id, account_id) ON DELETE SET NULL (chosen_plan_manager_id);
ALTER TABLE ONLY public.api_key_plan_managers
    ADD CONSTRAINT api_key_plan_managers_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES public.api_keys(id);
ALTER TABLE ONLY public.api_key_plan_managers
    ADD CONSTRAINT api_key_plan_managers_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.api_request_batches
    ADD CONSTRAINT api_request_batches_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.exit_reasons
    ADD CONSTRAINT exit_reasons_parent_id_fkey FOREIGN KEY (plan_manager_id, parent_id) REFERENCES public.exit_reasons(plan_manager_id, id);
ALTER TABLE ONLY public.exit_reasons
    ADD CONSTRAINT exit_reasons_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.idempotency_records
    ADD CONSTRAINT idempotency_records_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.import_files
    ADD CONSTRAINT import_files_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.invoice_ignored_warnings
    ADD CONSTRAINT invoice_ignored_warnings_plan_manager_id_invoice_id_fkey FOREIGN KEY (plan_manager_id, invoice_id) REFERENCES public.invoices(plan_manager_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invoice_lines
    ADD CONSTRAINT invoice_lines_invoice_id_fkey FOREIGN KEY (plan_manager_id, invoice_id) REFERENCES public.invoices(plan_manager_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invoice_view_sessions
    ADD CONSTRAINT invoice_view_sessions_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.invoices
    ADD CONSTRAINT invoices_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.note_types
    ADD CONSTRAINT note_types_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.participant_counts
    ADD CONSTRAINT participant_counts_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_account_manager_id_fkey FOREIGN KEY (plan_manager_id, account_manager_id) REFERENCES public.account_managers(plan_manager_id, id);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_exit_reason_category_id_fkey FOREIGN KEY (plan_manager_id, exit_reason_category_id) REFERENCES public.exit_reasons(plan_manager_id, id);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_exit_reason_subcategory_id_fkey FOREIGN KEY (plan_manager_id, exit_reason_subcategory_id) REFERENCES public.exit_reasons(plan_manager_id, id);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT providers_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.team_member_permissions
    ADD CONSTRAINT team_member_permissions_permission_id_fkey FOREIGN KEY (permission_id) REFERENCES public.permissions(id);
ALTER TABLE ONLY public.team_member_permissions
    ADD CONSTRAINT team_member_permissions_team_member_id_fkey FOREIGN KEY (plan_manager_id, participant_id, team_member_id) REFERENCES public.team_members(plan_manager_id, participant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_participant_id_fkey FOREIGN KEY (plan_manager_id, participant_id) REFERENCES public.participants(plan_manager_id, id);
ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_user_id_fkey FOREIGN KEY (plan_manager_id, user_id) REFERENCES public.users(plan_manager_id, id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_webhook_endpoint_id_fkey FOREIGN KEY (plan_manager_id, webhook_endpoint_id) REFERENCES public.webhook_endpoints(plan_manager_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_plan_manager_id_fkey FOREIGN KEY (plan_manager_id) REFERENCES public.plan_managers(id);
