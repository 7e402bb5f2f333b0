"""The privileges of the serving role: those that the program needs while it serves requests, and no others.

The role owns nothing. It can't change the schema, and it updates and deletes events only through functions that run
with the privileges of the owner. docs/operations/install.md describes both roles.
"""

from collections import defaultdict
from datetime import datetime
from typing import LiteralString, cast

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.schema import server_version

TABLE_PRIVILEGES = {
    "access_records": "select, insert, update, delete",
    "account_devices": "select, insert, update, delete",
    "account_failures": "select, insert, update, delete",
    "account_identities": "select, insert, delete",
    "account_invitations": "select, insert, update, delete",
    "account_manager_links": "select, insert, update, delete",
    "account_managers": "select, insert, update",
    "account_password_resets": "select, insert, update, delete",
    "account_recovery_codes": "select, insert, update, delete",
    "account_roles": "select, insert, update, delete",
    "account_sessions": "select, insert, update, delete",
    "accounts": "select, insert, update, delete",
    "adjustments": "select, insert, update",
    "alembic_version": "select",
    "api_key_days": "select, insert, update, delete",
    "api_key_plan_managers": "select, insert, delete",
    "api_key_rejections": "select, insert, update, delete",
    "api_keys": "select, insert, update",
    "api_request_batches": "select, insert, delete",
    "api_request_minutes": "select, insert, update, delete",
    "approval_links": "select, insert, update, delete",
    "approval_requests": "select, insert, update, delete",
    "bank_detail_changes": "select, insert, update",
    "bank_details": "select, insert, update, delete",
    "claim_batches": "select, insert, update",
    "claim_receipts": "select, insert",
    "claims": "select, insert, update",
    "cursor_keys": "select",
    "documents": "select, insert, update, delete",
    "event_marks": "select, insert, delete",
    "event_order": "select, insert, delete",
    "event_queue": "select, insert, delete",
    "event_types": "select, insert",
    "events": "select, insert",
    "exit_reasons": "select, insert, update, delete",
    "fee_taking_lines": "select, insert",
    "fee_takings": "select, insert",
    "fees": "select, insert",
    "grants_version": "select, update",
    "idempotency_records": "select, insert, update, delete",
    "import_files": "select, insert, delete",
    "import_mappings": "select, insert, update, delete",
    "import_rows": "select, insert, delete",
    "imports": "select, insert, update, delete",
    "invoice_ignored_warnings": "select, insert, update, delete",
    "invoice_lines": "select, insert, update, delete",
    "invoice_view_sessions": "select, insert, update",
    "invoices": "select, insert, update",
    "kept_financial_records": "select, insert, update, delete",
    "legal_holds": "select, insert, delete",
    "list_settings": "select, insert, update, delete",
    "note_types": "select, insert, update, delete",
    "notes": "select, insert, update, delete",
    "object_cleanup": "select, insert, delete",
    "office_numbers": "select, insert, update",
    "office_settings": "select, insert, update",
    "outgoing_mails": "select, insert, update, delete",
    "participants": "select, insert, update, delete",
    "payment_lines": "select, insert, update",
    "payment_runs": "select, insert, update",
    "payments": "select, insert, update",
    "pending_identities": "select, insert, update, delete",
    "permissions": "select",
    "plan_managers": "select, insert, update",
    "plans": "select, insert, update, delete",
    "providers": "select, insert, update, delete",
    "rate_limits": "select, insert, update, delete",
    "recheck_queue": "select, insert, delete",
    "recheck_state": "select, insert, update",
    "restores": "select, insert, update",
    "review_leases": "select, insert, update, delete",
    "saved_views": "select, insert, update, delete",
    "schema_compatibility": "select",
    "single_sign_on_flows": "select, insert, update, delete",
    "single_sign_on_providers": "select, insert, update, delete",
    "statement_run_items": "select, insert, update, delete",
    "statement_run_recipients": "select, insert, update, delete",
    "statement_runs": "select, insert, update",
    "statement_sends": "select, insert, delete",
    "statements": "select, insert, update, delete",
    "stored_counts": "select, insert, delete",
    "support_catalogue": "select",
    "support_items": "select",
    "team_member_permissions": "select, insert, delete",
    "team_members": "select, insert, update, delete",
    "trash": "select, insert, delete",
    "users": "select, insert, update, delete",
    "webhook_attempt_hours": "select, insert, update, delete",
    "webhook_deliveries": "select, insert, update, delete",
    "webhook_endpoints": "select, insert, update, delete",
}
# Only on Citus. It lets only those insert into a table that is on every node who may also update it. And a transaction
# can't use a shard with two roles, as an erasure would that records events and calls a function of the owner. There the
# functions run with the privileges of their caller.
CITUS_PRIVILEGES = {"event_types": "update", "events": "update, delete"}
MAINTAIN_VERSION = 170_000  # the first version of PostgreSQL with a privilege for analysing a table
SEQUENCES = ("note_type_ids",)
SEQUENCE_PRIVILEGES = "select, usage, update"  # an import continues after the highest id
# Each with its use. The first ones run with the privileges of the owner.
OWNER_FUNCTIONS = {
    "delete_events(uuid, uuid[])": "the retention of events",
    "erase_events(uuid, uuid[], text[], text)": "erasure",
    "analyze_tables(text[], boolean)": "statistics after an import, which only the owner of a table can update",
}
FUNCTIONS = {
    **OWNER_FUNCTIONS,
    "require_unchanged(boolean)": "updates of rows that aren't locked",
    "time_ordered_uuid()": "ids of deliveries",
    "fold(text)": "a searched text, and the names in search indexes",
    "search_text(text[], text[])": "search indexes",
    "prefix_keys(text)": "search indexes",
    "search_keys(text[])": "search indexes",
    "slip_keys(text)": "search indexes",
    "word_keys(text)": "a searched word",
}

# Any fixed number: two programs that change the same privileges would fail.
_LOCK = "select pg_advisory_xact_lock(7526541003)"


class Role(Struct):
    """The role of a connection. An owner has all privileges on the tables, and a superuser on everything."""

    name: str
    database: str
    server_started_at: datetime  # identifies the server
    is_superuser: bool
    is_owner: bool


GET_ROLE = """
    select current_user::text as name, current_database()::text as database,
        pg_postmaster_start_time() as server_started_at, rolsuper as is_superuser,
        exists (
            select from pg_class
            where oid = to_regclass('public.participants') and pg_has_role(current_user, relowner, 'usage')
        ) as is_owner
    from pg_roles
    where rolname = current_user
"""


async def get_role(db: Executor) -> Role:
    return await db.one(Role, GET_ROLE)


LIST_MISSING = """
    select privilege || ' on ' || object
    from unnest($2::text[], $3::text[], $4::text[]) as needed (kind, object, privilege)
    where not coalesce(case kind
        when 'table' then has_table_privilege($1, to_regclass('public.' || object), privilege)
        when 'sequence' then has_sequence_privilege($1, to_regclass('public.' || object), privilege)
        when 'function' then has_function_privilege($1, to_regprocedure('public.' || object), privilege)
    end, false)
    order by 1
"""


async def list_missing(db: Executor, role: str) -> list[str]:
    """The needed privileges that a role doesn't have, such as `insert on participants`. The role must exist."""
    needed = [("table", name, each) for name, all_of_it in TABLE_PRIVILEGES.items() for each in all_of_it.split(", ")]
    if db.is_citus:
        needed += [("table", name, each) for name, text in CITUS_PRIVILEGES.items() for each in text.split(", ")]
    needed += [("sequence", name, each) for name in SEQUENCES for each in SEQUENCE_PRIVILEGES.split(", ")]
    needed += [("function", name, "execute") for name in FUNCTIONS]
    return await db.rows(str, LIST_MISSING, role, *(list(values) for values in zip(*needed, strict=True)))


QUOTE = "select quote_ident($1)"


async def grant_statements(db: Executor, role: str) -> list[str]:
    """The statements that give a role its privileges, and take away all others that it has on the same objects."""
    quoted = await db.one(str, QUOTE, role)
    tables_by_privileges: defaultdict[str, list[str]] = defaultdict(list)
    for name, each in TABLE_PRIVILEGES.items():
        tables_by_privileges[each].append(name)
    functions = ", ".join(FUNCTIONS)
    return [
        "revoke create on schema public from public",
        f"grant usage on schema public to {quoted}",
        f"revoke all on {', '.join(TABLE_PRIVILEGES)} from {quoted}",
        *(
            f"grant {privileges} on {', '.join(tables)} to {quoted}"
            for privileges, tables in tables_by_privileges.items()
        ),
        f"grant {SEQUENCE_PRIVILEGES} on sequence {', '.join(SEQUENCES)} to {quoted}",
        f"revoke execute on function {functions} from public",
        f"grant execute on function {functions} to {quoted}",
        *(await _citus_statements(db, quoted) if db.is_citus else []),
    ]


async def _citus_statements(db: Executor, quoted_role: str) -> list[str]:
    statements = [f"grant {each} on {name} to {quoted_role}" for name, each in CITUS_PRIVILEGES.items()]
    statements += [f"alter function {each} security invoker" for each in OWNER_FUNCTIONS]
    if int(await server_version(db)) >= MAINTAIN_VERSION:
        statements.append(f"grant maintain on {', '.join(TABLE_PRIVILEGES)} to {quoted_role}")
    return statements


# Citus changes the shards over one connection for each node.
CONFIGURE_CITUS = "select set_config('citus.multi_shard_modify_mode', 'sequential', true)"


async def grant(tx: Transaction, role: str) -> None:
    """Give a role its privileges. The transaction's own role must be the owner of the tables."""
    await tx.execute(_LOCK)
    await _grant(tx, role)


async def _grant(tx: Transaction, role: str) -> None:
    await tx.execute(CONFIGURE_CITUS)
    for each in await grant_statements(tx, role):
        # It consists of the names above and of a quoted one.
        await tx.execute(cast("LiteralString", each))


HAS_ROLE = "select exists (select from pg_roles where rolname = $1::text)"


async def prepare_role(tx: Transaction, role: str) -> None:
    """Create a role that can sign in, unless it exists, and give it its privileges, unless it has them."""
    await tx.execute(_LOCK)
    if not await tx.one(bool, HAS_ROLE, role):
        await tx.execute(cast("LiteralString", f"create role {await tx.one(str, QUOTE, role)} login"))
    if await list_missing(tx, role):
        await _grant(tx, role)
