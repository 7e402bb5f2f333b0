"""Tenancy in the database: every key of a tenant table includes the plan manager, and so does every statement."""

import re
from functools import cache
from typing import NamedTuple

import pytest
from msgspec import Struct

from contract.sources import Statement, composed_statements, location_of, store_statements
from support.server import RunningServer

# Tables without a plan manager.
GLOBAL = {
    "plan_managers": "the plan managers themselves",
    "permissions": "the contract's six slugs are the same for all",
    "api_keys": "a key may act for several plan managers; its grants are api_key_plan_managers",
    "api_key_rejections": "a key may act for several plan managers; the console's page checks the grant",
    "cursor_keys": "one key that seals the cursors of all plan managers",
    "grants_version": "one version number for all keys",
    "rate_limits": "a limit applies to a key in all its plan managers, or to an address",
    "accounts": "one person may work for several plan managers; the roles are account_roles",
    "account_devices": "belongs to an account",
    "account_failures": "failures are counted before the account is known, or for an unknown account",
    "account_identities": "belongs to an account; a provider's person is found before the plan manager is known",
    "account_password_resets": "belongs to an account",
    "account_recovery_codes": "belongs to an account",
    "account_sessions": "an account's own; a session selects one of its plan managers",
    "outgoing_mails": "one queue for all; a mail to a person is about an account, which may have several plan managers",
    "alembic_version": "Alembic's",
    "schema_compatibility": "one schema for all plan managers",
    "support_catalogue": "the agency's published table is the same for all plan managers",
    "support_items": "the agency's published table is the same for all plan managers",
    "event_types": "the codes of the types of events are the same for all",
    "pending_identities": "a browser's own, which has no session yet",
    "single_sign_on_flows": "a browser's own, which has no session yet",
}
# Foreign keys of tenant tables without a plan manager.
GLOBAL_REFERENCES = {
    "api_key_plan_managers_api_key_id_fkey": "api_keys is a global table",
    "account_roles_account_id_fkey": "accounts is a global table",
    "team_member_permissions_permission_id_fkey": "permissions is a global table",
}
# Statements on tenant tables that are not bound to one plan manager.
UNBOUND = {
    "privacy.financial_store.list_due": "the task that de-identifies covers all plan managers",
    "resources.claims.result_store.find_lines": "the operator's `invoices confirm-result` names only the line",
    "access.accounts.store.get_session": "a session can select any plan manager of its account",
    "access.accounts.member_store.list_memberships": "an account event is recorded for all its plan managers",
    "access.accounts.member_store.select_roles_for_share": "the roles of one account, for several plan managers",
    "access.accounts.member_store.list_accounts": "the operator's `accounts list` covers all plan managers",
    "access.accounts.member_store.get_open_invitation": "the token identifies an invitation and its plan manager",
    "access.api_keys.store.get_by_hash": "the key's hash identifies its plan managers",
    "access.api_keys.store.get_current": "the key of the request, with the plan managers that it can act for",
    "access.api_keys.store.list_all": "the operator's `keys list` covers all plan managers",
    "access.api_keys.store.list_by_plan_manager": "the keys of one plan manager, with all plan managers of each key",
    "access.api_keys.store.select_for_update": "the operator's `keys revoke` covers all plan managers",
    "access.api_keys.store.insert_plan_managers": "grants a key to several plan managers at once",
    "access.api_keys.store.list_expiring": "the operator's `doctor` covers all plan managers",
    "access.api_keys.store.select_unwarned_for_update": "one periodic task warns every plan manager",
    "core.encryption.rotation.count_by_key": "the operator's keys encrypt the secrets of all plan managers",
    "core.encryption.rotation.list_with_other_keys": "the operator's `secret-key rotate` covers all plan managers",
    "events.order_store.plan_managers_with_queued_events": "a sequencer looks for the plan managers that need it",
    "events.order_store.queue_states": "one measurement covers every plan manager",
    "webhooks.attempts.add": "a worker adds the attempts of all plan managers at once",
    "webhooks.attempts.purge": "one periodic task serves every plan manager",
    "webhooks.delivery_queue.list_due": "workers serve every plan manager",
    "webhooks.delivery_queue.claim_due": "workers serve every plan manager, of which the caller lists some",
    "webhooks.delivery_queue.save_attempts": "workers serve every plan manager; keys identify the rows",
    "webhooks.delivery_queue.update_endpoint_health": "workers serve every plan manager; keys identify the rows",
    "webhooks.delivery_queue.get_backlog": "one worker of a server measures every plan manager",
    "webhooks.delivery_queue.purge": "one periodic task serves every plan manager",
    "webhooks.endpoint_store.count_unhealthy": "the operator's `doctor` covers all plan managers",
    "webhooks.endpoint_store.plan_managers_behind": "one periodic task looks for the plan managers that need it",
    "http.idempotency.store.purge": "one periodic task serves every plan manager",
    "resources.bank_details.store.find_plan_manager": "the operator's `bank-details approve` names only the proposal",
    "resources.documents.store.list_due": "one periodic task serves every plan manager",
    "resources.invoice_view_sessions.store.list_stale": "one periodic task serves every plan manager",
    "resources.participants.store.list_plan_changes": "one periodic task serves every plan manager",
    "resources.invoices.approval_store.list_days": "one periodic task serves every plan manager",
    "resources.statement_runs.store.list_running": "one periodic task serves every plan manager",
    "resources.statement_runs.store.list_due_offices": "one periodic task serves every plan manager",
    "resources.statement_runs.store.list_expired": "one periodic task serves every plan manager",
    "resources.statement_runs.store.list_stopped": "one periodic task serves every plan manager",
    "resources.invoices.recheck_store.list_plan_managers": "one periodic task serves every plan manager",
    "resources.invoices.recheck_store.list_checked_since": "one periodic task serves every plan manager",
    "resources.invoices.recheck_store.oldest_id": "one worker of a server measures every plan manager",
    "access.request_log.store.add_minutes": "a worker adds the requests of all plan managers at once",
    "access.request_log.store.add_key_days": "a worker adds the requests of all plan managers at once",
    "access.request_log.store.purge_minutes": "one periodic task serves every plan manager",
    "access.request_log.store.purge_key_days": "one periodic task serves every plan manager",
    "access.request_log.store.purge": "one periodic task serves every plan manager",
    "access.request_log.store.list_active": "one periodic task serves every plan manager",
    "imports.file_store.purge": "one periodic task serves every plan manager",
    "imports.store.clear_columns": "one periodic task serves every plan manager",
    "imports.store.purge_imported": "one periodic task serves every plan manager",
    "imports.store.purge_rejected": "one periodic task serves every plan manager",
    "imports.store.purge_uploaded": "one periodic task serves every plan manager",
    "access.single_sign_on.store.get_by_domain": "the domain of an email identifies the provider of a plan manager",
    "access.single_sign_on.store.get_by_id": "a sign-in in progress knows its provider, whose id is random",
    "access.single_sign_on.store.list_all": "the operator's `sso list` covers all plan managers",
    "access.single_sign_on.store.list_first": "the sign-in page comes before the plan manager is known",
    "access.single_sign_on.store.upsert": "a domain belongs to the provider of one plan manager",
    "database.stored_counts.compact": "one periodic task serves every plan manager",
}


class Key(Struct):
    """A primary key, unique index or foreign key with its columns in order; an expression is `null`."""

    table_name: str
    name: str
    kind: str
    columns: list[str | None]
    target_columns: list[str]


class Reference(NamedTuple):
    """A reference to a tenant table in a statement; `alias` qualifies its columns."""

    verb: str
    table: str
    alias: str


@pytest.fixture(scope="module")
def keys(server: RunningServer) -> list[Key]:
    return server.run(
        server.db.rows(
            Key,
            """
            with attributes as (select attrelid, attnum, attname::text from pg_attribute)
            select c.relname::text as table_name, i.relname::text as name,
                case when x.indisprimary then 'primary' else 'unique' end as kind,
                array(select a.attname from unnest(x.indkey::int[]) with ordinality k (num, at)
                    left join attributes a on a.attrelid = c.oid and a.attnum = k.num and k.num > 0
                    order by k.at) as columns,
                array[]::text[] as target_columns
            from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
            where x.indisunique and c.relnamespace = 'public'::regnamespace
            union all
            select c.relname::text, f.conname::text, 'foreign',
                array(select a.attname from unnest(f.conkey) with ordinality k (num, at)
                    join attributes a on a.attrelid = f.conrelid and a.attnum = k.num order by k.at),
                array(select a.attname from unnest(f.confkey) with ordinality k (num, at)
                    join attributes a on a.attrelid = f.confrelid and a.attnum = k.num order by k.at)
            from pg_constraint f join pg_class c on c.oid = f.conrelid
            where f.contype = 'f' and c.relnamespace = 'public'::regnamespace
            """,
        )
    )


@pytest.fixture(scope="module")
def tables(server: RunningServer) -> dict[str, bool]:
    """Every table, and whether it has a plan_manager_id."""
    rows = server.run(
        server.db.rows(
            _Table,
            """
            select c.relname::text as name, exists (
                select from pg_attribute a where a.attrelid = c.oid and a.attname = 'plan_manager_id') as of_a_tenant
            from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
            """,
        )
    )
    return {each.name: each.of_a_tenant for each in rows}


class _Table(Struct):
    name: str
    of_a_tenant: bool


def test_every_table_is_tenant_data_or_global_for_a_reason(tables: dict[str, bool]) -> None:
    assert {name for name, of_a_tenant in tables.items() if not of_a_tenant} == set(GLOBAL)
    assert len(tables) > len(GLOBAL)


def test_every_primary_key_begins_with_the_plan_manager(tables: dict[str, bool], keys: list[Key]) -> None:
    first = {key.table_name: key.columns[0] for key in keys if key.kind == "primary" and tables[key.table_name]}
    assert first == {name: "plan_manager_id" for name, of_a_tenant in tables.items() if of_a_tenant}


def test_every_unique_index_carries_the_plan_manager(tables: dict[str, bool], keys: list[Key]) -> None:
    without = {
        key.name
        for key in keys
        if tables[key.table_name] and key.kind == "unique" and "plan_manager_id" not in key.columns
    }
    assert without == set()


def test_every_foreign_key_carries_the_plan_manager(tables: dict[str, bool], keys: list[Key]) -> None:
    foreign = [key for key in keys if key.kind == "foreign" and tables[key.table_name]]
    assert len(foreign) > 10
    without = {key.name for key in foreign if not _carries_tenant(key)}
    assert without == set(GLOBAL_REFERENCES)


def _carries_tenant(key: Key) -> bool:
    """A row and the row that it refers to belong to the same plan manager."""
    pairs = dict(zip(key.columns, key.target_columns, strict=True))
    return pairs.get("plan_manager_id") in ("plan_manager_id", "id") and (len(pairs) == 1) == (
        pairs["plan_manager_id"] == "id"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "select id, name from users where id = $1",
        "select id from users, account_managers where users.plan_manager_id = $1",
        "select u.id from users u join account_managers a on a.id = u.id where u.plan_manager_id = $1",
        "select id from users where plan_manager_id = $1 and exists (select from account_managers where id = $2)",
        "select id from users where plan_manager_id = $2",
        "select id from users where plan_manager_id = any ($1)",
        "select id from users -- where plan_manager_id = $1",
        "delete from users where id = $1",
        "update users u set email = $2 where u.id = $1",
        "insert into users (id, plan_manager_id) values ($1, $2)",
        "insert into users (plan_manager_id, id) select id, $1 from users where plan_manager_id = $1",
        "insert into users (plan_manager_id, id) select plan_manager_id, id from users where id = $1",
        "select id from users where plan_manager_id = $1 and id = $2 or email is null",
        "select id from users where email is null or plan_manager_id = $1",
        "select id from users where (plan_manager_id = $1 or email is null) and id = $2",
        "select id from users u where u.plan_manager_id = $1 and u.id = any (array($2)) OR true limit 1",
        "delete from users where id = $2 and (email is null) or plan_manager_id = $1 returning id",
        "select id from users where (plan_manager_id = $1 and id = $2) or email is null",
        "select id from users where plan_manager_id = $1 and id = case when $2 then $3 end or email is null",
        "update users set email = $2 where users.plan_manager_id = $1 or email is null",
    ],
)
def test_a_statement_without_the_plan_manager_is_detected(sql: str) -> None:
    unbound = Statement("resources.users.store", "unbound", 1, "execute", None, sql, 1, "plan_manager_id")
    assert not _is_bound(unbound, {"users", "account_managers"})


@pytest.mark.parametrize(
    "sql",
    [
        "select id from users where plan_manager_id = $1 and (id = $2 or email is null)",
        "insert into users (plan_manager_id, id) select plan_manager_id, id from users where plan_manager_id = $1",
        "select id from users where plan_manager_id = $1 and id = case when $2 or $3 then $4 else $5 end",
        "select id from users where plan_manager_id = $1 and email = 'this or that' -- or another one",
        "select id from users where plan_manager_id = $1 and id in (select $2 or $3)",
        "select id from users where plan_manager_id = $1 and (exists (select where plan_manager_id = $1) or id = $2)",
        "with a as (select id from users where plan_manager_id = $1) select id from a where $2 or $3",
        "select plan_manager_id = $1 from users where plan_manager_id = $1 order by id is null or email is null",
    ],
)
def test_an_or_beside_other_conditions_is_bound(sql: str) -> None:
    bound = Statement("resources.users.store", "bound", 1, "execute", None, sql, 1, "plan_manager_id")
    assert _is_bound(bound, {"users", "account_managers"})


def test_every_statement_on_a_tenant_table_is_bound_to_one_plan_manager(tables: dict[str, bool]) -> None:
    tenant_tables = {name for name, of_a_tenant in tables.items() if of_a_tenant}
    on_them = [each for each in store_statements() if _references(each, tenant_tables)]
    assert len(on_them) > 50
    assert {each.name for each in on_them} >= {each.name for each in composed_statements()}
    assert {each.name for each in on_them if not _is_bound(each, tenant_tables)} == set(UNBOUND)


def test_the_first_value_of_a_bound_statement_is_the_plan_manager(tables: dict[str, bool]) -> None:
    tenant_tables = {name for name, of_a_tenant in tables.items() if of_a_tenant}
    bound = [each for each in store_statements() if each.name not in UNBOUND and _references(each, tenant_tables)]
    wrong = [location_of(each) for each in bound if each.first.rpartition(".")[2] != "plan_manager_id"]
    assert wrong == []


def _references(statement: Statement, tenant_tables: set[str]) -> list[Reference]:
    return [each for each in _tables_of(statement.sql or "") if each.table in tenant_tables]


_KEYWORDS = re.compile("|where|set|on|join|left|order|for|using|returning|values|limit|select", re.IGNORECASE)
# The alias is a look-ahead, because it may be the keyword of the next reference.
_TABLE_REFERENCE = re.compile(
    r"(\bfrom|\bjoin|\binto|\bupdate|\busing|,)\s+(\w+)(?=(?:\s+(?:as\s+)?(\w+))?)", re.IGNORECASE
)


@cache
def _tables_of(sql: str) -> tuple[Reference, ...]:
    plain = re.sub(r"--[^\n]*|'[^']*'", " ", sql)
    return tuple(
        Reference(verb.lower(), table, table if _KEYWORDS.fullmatch(alias) else alias)
        for verb, table, alias in _TABLE_REFERENCE.findall(plain)
    )


def _is_bound(statement: Statement, tenant_tables: set[str]) -> bool:
    """Every reference to a tenant table has its own `plan_manager_id = $1`; an insert has it as the first column."""
    sql = re.sub(r"--[^\n]*", "", statement.sql or "")
    references = _references(statement, tenant_tables)
    inserts = [each for each in references if each.verb == "into"]
    selected = [each for each in references if each.verb != "into"]
    filled = re.findall(r"insert into \w+ \(\s*plan_manager_id,", sql)
    plain = len(re.findall(r"(?<!\.)\bplan_manager_id = \$1(?!\d)", sql))
    named = set(re.findall(r"\b(\w+)\.plan_manager_id = \$1(?!\d)", sql))
    unnamed = [each for each in selected if each.alias not in named]
    # Rows that are selected from a bound table have its plan manager.
    first = r"(select|values \()\s*\$1," + (r"|select\s+plan_manager_id," if selected else "")
    first_is_tenant = all(re.search(first, sql) for _ in inserts)
    return len(filled) == len(inserts) and first_is_tenant and len(unnamed) <= plain and not _has_alternative(sql)


_TOKEN = re.compile(r"[()]|(?:\w+\.)?plan_manager_id = \$1(?!\d)|\w+")
# The keywords at which a condition ends and another one can begin.
_CLAUSE = re.compile("select|from|where|on|join|set|having|group|order|limit|offset|returning|union|for|when|then|else")


def _has_alternative(sql: str) -> bool:
    """Whether a condition on the plan manager has an `or` beside it: rows of others can then meet the condition.

    A condition ends with its parenthesis or `case`, or where the next clause begins.
    """
    conditions: list[set[str]] = [set()]  # the parts of each open parenthesis, since the last keyword of a clause
    for token in _TOKEN.findall(re.sub(r"--[^\n]*|'[^']*'", " ", sql).lower()):
        if token in ("(", "case"):
            conditions.append(set())
        elif token in (")", "end"):
            inner = conditions.pop()
            if "clause" not in inner:  # a subquery's condition is its own
                conditions[-1] |= inner & {"plan manager"}
        elif _CLAUSE.fullmatch(token):
            conditions[-1] = {"clause"}
        elif token == "or" or "= $1" in token:
            conditions[-1].add("or" if token == "or" else "plan manager")
        if {"or", "plan manager"} <= conditions[-1]:
            return True
    return False
