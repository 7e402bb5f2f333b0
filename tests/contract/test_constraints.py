"""A violated constraint is an error of the API. Constraints that no request can violate are listed with a reason."""

from msgspec import Struct

from plankeeper.resources.registry import CONSTRAINT_ERRORS
from plankeeper.server.app import ROUTERS
from support.server import RunningServer

_EXISTING_TENANT = "a key acts only for plan managers that there are, and none is ever deleted"
_VALIDATED_BY_SCHEMA = "the shape of the request takes no other value"
_GENERATED_ID = "the id was made for this row, or a conflict on it is an update"
_NOT_IN_API = "no request of the API writes accounts"
_NO_HTTP_WRITES = "written by import or the command line alone"
_SEQUENCER = "written by the sequencer, or by the recorder with ids that it just made"

# Constraints that no request can break.
UNBREAKABLE = {
    **dict.fromkeys(
        [
            "api_key_plan_managers_plan_manager_id_fkey",
            "exit_reasons_plan_manager_id_fkey", "restores_plan_manager_id_fkey", "bank_details_plan_manager_id_fkey",
            "invoice_view_sessions_plan_manager_id_fkey", "invoices_plan_manager_id_fkey",
            "note_types_plan_manager_id_fkey", "participants_plan_manager_id_fkey", "notes_plan_manager_id_fkey",
            "bank_details_plan_manager_id_fkey",
            "account_manager_links_plan_manager_id_fkey", "saved_views_plan_manager_id_fkey",
            "list_settings_plan_manager_id_fkey",
            "legal_holds_plan_manager_id_fkey",
            "kept_financial_records_plan_manager_id_fkey",
            "webhook_deliveries_plan_manager_id_fkey",
            "payment_runs_plan_manager_id_fkey", "statement_runs_plan_manager_id_fkey",
            "statements_plan_manager_id_fkey",
            "fee_takings_plan_manager_id_fkey",
            "claim_batches_plan_manager_id_fkey", "claims_plan_manager_id_fkey", "office_numbers_plan_manager_id_fkey",
            "webhook_endpoints_plan_manager_id_fkey", "providers_plan_manager_id_fkey", "users_plan_manager_id_fkey",
        ],
        _EXISTING_TENANT,
    ),
    **dict.fromkeys(
        [
            "payment_runs_state_check", "payment_runs_group_by_check", "office_settings_group_payments_by_check",
            "payments_payee_kind_check", "statement_runs_state_check", "statement_run_items_state_check",
            "statement_run_recipients_way_check", "statement_run_recipients_recipient_kind_check",
            "statement_run_recipients_state_check", "office_settings_statement_day_check",
            "fees_month_check", "fee_taking_lines_amount_check",
            "payments_state_check", "payments_amount_check", "payment_lines_amount_check",
            "claim_batches_state_check", "claims_source_check", "claims_state_check", "office_numbers_kind_check",
            "api_keys_scopes_check", "events_actor_kind_check", "participants_status_check",
            "participants_remoteness_check",
            "team_members_contact_priority_check", "webhook_endpoints_payload_check",
            "webhook_deliveries_status_check", "access_records_action_check", "access_records_actor_kind_check",
            "bank_details_payee_kind_check", "bank_detail_changes_action_check",
            "office_settings_group_payments_by_check",
            "access_records_kind_check", "notes_resource_kind_check", "notes_author_kind_check",
            "office_settings_group_payments_by_check",
        ],
        _VALIDATED_BY_SCHEMA,
    ),
    **dict.fromkeys(
        [
            "payment_runs_pkey", "payment_runs_number_key", "payments_pkey", "payments_position_key",
            "payment_lines_pkey", "fee_takings_pkey", "fee_takings_number_key", "fee_taking_lines_pkey",
            "claim_batches_pkey", "claim_batches_number_key", "claims_pkey", "claims_position_key",
            "office_numbers_pkey",
            "restores_pkey",
            "bank_details_pkey", "bank_details_proposal_id_key", "bank_detail_changes_pkey",
            "api_keys_pkey", "api_keys_key_hash_key", "events_pkey", "note_types_pkey", "notes_pkey",
            "participants_pkey",
            "stored_counts_pkey", "stored_counts_list_check", "providers_pkey", "users_pkey",
            "webhook_endpoints_pkey", "webhook_deliveries_pkey", "access_records_pkey",
        ],
        _GENERATED_ID,
    ),
    **dict.fromkeys(
        [
            "account_managers_pkey", "account_managers_id_fkey", "legal_holds_pkey",
            "kept_financial_records_pkey", "api_key_plan_managers_pkey",
            "api_key_plan_managers_api_key_id_fkey", "exit_reasons_pkey", "invoice_lines_pkey",
            "documents_pkey", "documents_current", "documents_current_statement", "documents_owner_check",
            "documents_media_type_check", "documents_invoice_id_fkey",
            "object_cleanup_pkey", "object_cleanup_plan_manager_id_fkey", "invoice_lines_invoice_id_fkey",
            "invoice_view_sessions_pkey", "invoices_pkey",
            "office_settings_pkey", "recheck_queue_pkey", "recheck_state_pkey",
            "review_leases_pkey", "review_leases_account_id_key", "review_leases_invoice_id_fkey",
            "invoices_approval_status_check", "invoices_claim_status_check", "plan_managers_pkey",
            "invoices_waiting_line_status_check", "invoices_waiting_line_status_set",
        ],
        _NO_HTTP_WRITES,
    ),
    **dict.fromkeys(
        [
            "accounts_pkey", "account_failures_pkey", "account_invitations_pkey", "account_recovery_codes_pkey",
            "account_devices_pkey", "account_devices_account_id_fkey", "account_identities_pkey",
            "account_manager_links_pkey", "account_manager_links_account_manager_id_fkey",
            "account_identities_account_id_fkey", "single_sign_on_providers_pkey", "single_sign_on_flows_pkey",
            "single_sign_on_providers_plan_manager_id_fkey", "pending_identities_pkey",
            "account_password_resets_pkey", "account_password_resets_account_id_fkey",
            "account_password_resets_token_hash_key", "outgoing_mails_pkey",
            "api_request_batches_pkey", "api_request_batches_plan_manager_id_fkey",
            "approval_links_pkey", "approval_links_token_hash_key", "approval_requests_pkey",
            "approval_links_plan_manager_id_invoice_id_fkey", "approval_requests_plan_manager_id_invoice_id_fkey",
            "approval_links_revoked_because_check", "invoices_approval_decided_by_check",
            "office_settings_approval_reminder_days_check", "office_settings_approval_automatic_days_check",
            "office_settings_plan_manager_id_fkey", "invoice_ignored_warnings_pkey",
            "import_files_pkey", "import_files_plan_manager_id_fkey", "imports_pkey", "imports_plan_manager_id_fkey",
            "import_rows_pkey", "import_rows_import_id_fkey", "import_mappings_pkey",
            "import_mappings_plan_manager_id_fkey", "trash_pkey", "trash_plan_manager_id_fkey",
            "trash_kind_check", "api_request_minutes_pkey", "webhook_attempt_hours_pkey",
            "webhook_attempt_hours_plan_manager_id_fkey", "api_key_days_pkey",
            "api_request_minutes_plan_manager_id_fkey", "api_key_days_plan_manager_id_fkey",
            "api_key_rejections_pkey", "api_key_rejections_api_key_id_fkey",
            "saved_views_pkey", "list_settings_pkey",
            "invoice_ignored_warnings_plan_manager_id_invoice_id_fkey",
            "account_roles_pkey", "account_sessions_pkey", "accounts_email_key", "account_invitations_email_key",
            "account_recovery_codes_account_id_fkey", "account_roles_account_id_fkey",
            "account_sessions_account_id_fkey", "account_sessions_chosen_plan_manager_id_fkey",
            "account_invitations_plan_manager_id_fkey", "account_roles_plan_manager_id_fkey",
            "account_invitations_role_check", "account_roles_role_check",
            "account_invitations_permissions_check", "account_roles_permissions_check",
            "account_roles_only_managers", "account_roles_only_viewers",
        ],
        _NOT_IN_API,
    ),
    **dict.fromkeys(
        [
            "event_queue_pkey", "event_queue_check", "event_queue_event_ids_check", "event_order_pkey",
            "event_order_by_event", "event_marks_pkey", "event_types_pkey", "event_types_name_key",
        ],
        _SEQUENCER,
    ),
    "adjustments_pkey": "the id was made for this row",
    "adjustments_amount_check": "the rules reject such amounts",
    "adjustments_kind_check": "the schema of the body rejects other kinds",
    "adjustments_line_id_fkey": "the invoice is locked in the same transaction",
    "claim_receipts_pkey": "the id was made for this row",
    "claim_receipts_batch_id_fkey": "the batch is locked in the same transaction, and none is ever deleted",
    "claims_batch_id_fkey": "the batch is made or locked in the same transaction, and none is ever deleted",
    "claims_line_id_fkey": "the invoice is locked in the same transaction",
    "statement_runs_pkey": "the id was made for this row",
    "statement_runs_month_key": "the insert does nothing on a conflict",
    "statement_runs_month_check": "the month is always its first day",
    "statement_run_items_pkey": "the id was made for this row",
    "statement_run_items_plan_key": "the run is locked, and has no item of the plan",
    "statement_run_items_run_id_fkey": "the run is locked in the same transaction, and none is ever deleted",
    "statement_run_recipients_pkey": "the id was made for this row",
    "statement_run_recipients_recipient_key": "the item is made in the same transaction, and each recipient once",
    "statement_run_recipients_item_id_fkey": "the item is made or locked in the same transaction",
    "fees_pkey": "one transaction of a plan manager at a time makes fees",
    "fees_id_key": "the invoice was made for this row",
    "fees_id_fkey": "the invoice is made in the same transaction",
    "fee_taking_lines_taking_id_fkey": "the taking is made in the same transaction, and none is ever deleted",
    "fee_taking_lines_claim_id_fkey": "no claim is ever deleted",
    "fee_taking_lines_claim_id_key": "the invoice is locked, and the claim wasn't taken",
    "payments_run_id_fkey": "the run is made in the same transaction, and none is ever deleted",
    "payment_lines_payment_id_fkey": "the payment is made in the same transaction, and none is ever deleted",
    "payment_lines_claim_id_fkey": "no claim is ever deleted",
    "payment_lines_open_key": "the invoice is locked, and the claim has no open payment",
    "statements_pkey": "the id was made for this row",
    "statements_month_check": "the month is always its first day",
    "statements_run_id_plan_id_key": "the participant is locked, and the run has no statement of the plan",
    "statement_sends_pkey": "the id was made for this row",
    "statement_sends_way_check": "the program knows only these ways",
    "statement_sends_statement_id_fkey": "the statement is read in the same transaction",
    "claims_open_key": "the invoice is locked, and its line has no open claim",
    "claims_reference_key": "one transaction of a plan manager at a time chooses references",
    "providers_abn_exempt_check": _NO_HTTP_WRITES,
    "plans_pkey": "the id was made for this row, or an import has looked for it under the participants' locks",
    "plans_participant_id_fkey": "the participant is locked in the same transaction",
    "webhook_deliveries_webhook_endpoint_id_fkey": "the endpoint is locked in the same transaction",
    "users_email_key": "the one insert takes the user that has the email; the console answers its update",
    "team_members_check": "the id of a new member is its user's or its profile's; neither ever changes",
    "team_members_user_id_fkey": "the user is made in the same transaction, and none is ever deleted",
    "team_member_permissions_pkey": "the insert does nothing on a conflict",
    "team_member_permissions_permission_id_fkey": "the ids come from the table of permissions itself",
    "team_member_permissions_team_member_id_fkey": "the member is locked, or made, in the same transaction",
    "permissions_pkey": "filled by a migration",
    "permissions_name_key": "filled by a migration",
    "permissions_order_key": "filled by a migration",
    "api_keys_rate_limit_check": _NO_HTTP_WRITES,
    "rate_limits_pkey": "opened with on conflict do nothing",
    "idempotency_records_pkey": "the claim waits for the one that has it",
    "idempotency_records_plan_manager_id_fkey": "a key's grants name plan managers that there are",
    "grants_version_pkey": "one row, made by a migration",
    "grants_version_one_check": "one row, made by a migration",
    "cursor_keys_pkey": "one row, made by a migration",
    "cursor_keys_id_check": "one row, made by a migration",
    "schema_compatibility_pkey": "one row, made by a migration",
    "schema_compatibility_one_check": "one row, made by a migration",
    "support_catalogue_pkey": "one row, made by a migration",
    "support_catalogue_one_check": "one row, made by a migration",
    "support_items_pkey": "the command inserts with on conflict do update",
    "alembic_version_pkc": "Alembic's",
}  # fmt: skip

# Of those, the ones that an import file can break.
BREAKABLE_BY_IMPORT = {"invoices_pkey", "users_email_key"}


class Constraint(Struct):
    """A constraint, or a unique index that is none, with its table, and the one that it refers to."""

    table_name: str
    name: str
    referenced: str | None


def constraints(server: RunningServer) -> dict[str, Constraint]:
    """Each constraint that a row can break; NOT NULL is the shapes' business."""
    rows = server.run(
        server.db.rows(
            Constraint,
            """
            select c.relname::text as table_name, f.conname::text as name,
                (select relname::text from pg_class where oid = f.confrelid) as referenced
            from pg_constraint f join pg_class c on c.oid = f.conrelid
            where f.contype in ('f', 'u', 'c', 'p', 'x') and c.relnamespace = 'public'::regnamespace
            union
            select c.relname::text, i.relname::text, null
            from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
            where x.indisunique and c.relnamespace = 'public'::regnamespace
            """,
        )
    )
    return {each.name: each for each in rows}


def test_every_constraint_has_an_error_handler_or_a_reason(server: RunningServer) -> None:
    answered = {name for slice_ in ROUTERS for name in slice_.constraint_errors}
    assert answered
    assert not answered & set(UNBREAKABLE)
    assert set(constraints(server)) == answered | set(UNBREAKABLE)


def test_a_package_handles_only_constraints_of_its_own_tables_or_that_refer_to_them(server: RunningServer) -> None:
    found = constraints(server)
    foreign = {
        name
        for slice_ in ROUTERS
        for name in slice_.constraint_errors
        if not found[name].table_name.startswith(slice_.tag) and found[name].referenced != slice_.tag
    }
    assert foreign == set()


def test_an_import_explains_every_constraint_that_a_file_can_violate(server: RunningServer) -> None:
    answered = {name for slice_ in ROUTERS for name in slice_.constraint_errors}
    assert set(CONSTRAINT_ERRORS) == answered | BREAKABLE_BY_IMPORT
    assert set(UNBREAKABLE) >= BREAKABLE_BY_IMPORT
    assert set(CONSTRAINT_ERRORS) <= set(constraints(server))
