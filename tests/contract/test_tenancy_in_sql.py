"""Law 1, the database's half: every key of a tenant table carries the plan manager, and so does every statement."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from msgspec import Struct

from contract.sources import Statement, location_of, store_statements
from support.server import RunningServer

# Tables that belong to no plan manager.
GLOBAL = {
    "plan_managers": "the plan managers themselves",
    "permissions": "the contract's six slugs, the same for all",
    "api_keys": "a key may act for several plan managers; its grants are api_key_plan_managers",
    "grants_version": "one number for all keys",
    "rate_limits": "a key's quota holds for all its plan managers together, an address has none",
    "accounts": "one person may work for several plan managers; the roles are account_roles",
    "account_failures": "counted before it is known whose account it is, if anybody's",
    "account_recovery_codes": "an account's own",
    "account_sessions": "an account's own, which chooses among its plan managers",
    "alembic_version": "Alembic's",
}
# Foreign keys of tenant tables that carry no plan manager.
GLOBAL_REFERENCES = {
    "api_key_plan_managers_api_key_id_fkey": "api_keys is a global table",
    "account_roles_account_id_fkey": "accounts is a global table",
    "team_member_permissions_permission_id_fkey": "permissions is a global table",
}
# Statements on tenant tables that are not bound to one plan manager.
UNBOUND = {
    "accounts.store.get_session": "a session knows all plan managers of its account, and lets choose",
    "accounts.member_store.list_memberships": "what an account does is told to all its plan managers",
    "accounts.member_store.list_accounts": "`accounts list` is the operator's, for all plan managers",
    "accounts.member_store.get_open_invitation": "an invitation is found by its token before it is known whose it is",
    "api_keys.store.get_by_hash": "a key is looked up before it is known for whom it may act",
    "api_keys.store.list_all": "`keys list` is the operator's, for all plan managers",
    "api_keys.store.list_by_plan_manager": "the keys of one plan manager, with all that each may act for",
    "api_keys.store.select_for_update": "`keys revoke` is the operator's, for all plan managers",
    "api_keys.store.insert_plan_managers": "grants a key to several plan managers at once",
    "api_keys.store.list_expiring": "`doctor` is the operator's, for all plan managers",
    "api_keys.store.select_unwarned_for_update": "one chore tells every plan manager",
    "events.store.assign_positions": "one order serves every feed",
    "events.store.get_backlog": "one sequencer serves every feed",
    "events.store.purge": "one chore serves every plan manager",
    "webhooks.delivery_queue.fan_out": "one sequencer serves every plan manager",
    "webhooks.delivery_queue.claim_due": "workers serve every plan manager",
    "webhooks.delivery_queue.load_jobs": "workers serve every plan manager; rows are found by their keys",
    "webhooks.delivery_queue.save_attempts": "workers serve every plan manager; rows are found by their keys",
    "webhooks.delivery_queue.update_endpoint_health": "workers serve every plan manager; rows are found by their keys",
    "webhooks.delivery_queue.purge": "one chore serves every plan manager",
    "webhooks.endpoint_store.plan_managers_with_endpoints": "one sequencer serves every plan manager",
    "idempotency.store.purge": "one chore serves every plan manager",
    "invoice_view_sessions.store.select_stale_for_update": "one chore serves every plan manager",
    "request_log.store.purge": "one chore serves every plan manager",
    "request_log.store.list_active": "one chore serves every plan manager",
    "import_files.store.purge": "one chore serves every plan manager",
    "participants.totals.compact_counts": "one fold serves every plan manager",
}


class Key(Struct):
    """A primary key, unique index or foreign key with its columns in order; an expression is `null`."""

    table_name: str
    name: str
    kind: str
    columns: list[str | None]
    target_columns: list[str]


class Reference(NamedTuple):
    """A place where a statement names a tenant table; `alias` is the name that its columns go by."""

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
    """The plan manager of the row is the plan manager of the row that it points to."""
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
    ],
)
def test_a_statement_without_the_plan_manager_is_detected(sql: str) -> None:
    forgetting = Statement("users.store", "forgetting", 1, "execute", None, sql, 1, "plan_manager_id")
    assert not _is_bound(forgetting, {"users", "account_managers"})


def test_every_statement_on_a_tenant_table_is_bound_to_one_plan_manager(tables: dict[str, bool]) -> None:
    tenant_tables = {name for name, of_a_tenant in tables.items() if of_a_tenant}
    on_them = [each for each in store_statements() if _references(each, tenant_tables)]
    assert len(on_them) > 50
    assert {each.name for each in on_them if not _is_bound(each, tenant_tables)} == set(UNBOUND)


def test_the_first_value_of_a_bound_statement_is_the_plan_manager(tables: dict[str, bool]) -> None:
    tenant_tables = {name for name, of_a_tenant in tables.items() if of_a_tenant}
    bound = [each for each in store_statements() if each.name not in UNBOUND and _references(each, tenant_tables)]
    wrong = [location_of(each) for each in bound if each.first.rpartition(".")[2] != "plan_manager_id"]
    assert wrong == []


def _references(statement: Statement, tenant_tables: set[str]) -> list[Reference]:
    return [each for each in _tables_of(statement.sql or "") if each.table in tenant_tables]


_KEYWORDS = re.compile("|where|set|on|join|left|order|for|using|returning|values|limit|select", re.IGNORECASE)
# The alias is only looked at: it may be the next place's keyword.
_TABLE_REFERENCE = re.compile(
    r"(\bfrom|\bjoin|\binto|\bupdate|\busing|,)\s+(\w+)(?=(?:\s+(?:as\s+)?(\w+))?)", re.IGNORECASE
)


def _tables_of(sql: str) -> Iterator[Reference]:
    plain = re.sub(r"--[^\n]*|'[^']*'", " ", sql)
    for match in _TABLE_REFERENCE.finditer(plain):
        verb, table, alias = match[1].lower(), match[2], match[3] or ""
        yield Reference(verb, table, table if _KEYWORDS.fullmatch(alias) else alias)


def _is_bound(statement: Statement, tenant_tables: set[str]) -> bool:
    """Every place where a tenant table stands has its own `plan_manager_id = $1`; an insert has it as first column."""
    sql = re.sub(r"--[^\n]*", "", statement.sql or "")
    places = _references(statement, tenant_tables)
    inserts = [each for each in places if each.verb == "into"]
    selected = [each for each in places if each.verb != "into"]
    filled = re.findall(r"insert into \w+ \(\s*plan_manager_id,", sql)
    plain = len(re.findall(r"(?<!\.)\bplan_manager_id = \$1(?!\d)", sql))
    aliases = {each.alias for each in selected if not re.search(rf"\b{each.alias}\.plan_manager_id = \$1(?!\d)", sql)}
    unnamed = [each for each in selected if each.alias in aliases]
    first_is_given = all(re.search(r"(select|values \()\s*\$1,", sql) for _ in inserts)
    return len(filled) == len(inserts) and first_is_given and len(unnamed) <= plain
