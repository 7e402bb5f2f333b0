"""SQL is composed only of literals, in stores. Each statement fits the migrated schema and its row type."""

import ast
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, LiteralString, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import asyncpg
import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import fields

from contract.sources import (
    METHODS,
    RUNS_FOR_OTHERS,
    TENANT,
    WITHOUT_ROWS,
    Statement,
    all_statements,
    bulk_inserts,
    composed_statements,
    filter_sets,
    filtered_lists,
    imports,
    is_runner,
    location_of,
    modules,
    store_statements,
)
from plankeeper.database.client import (
    Database,
    Executor,
    Transaction,
)
from plankeeper.database.combined_writes import Write
from plankeeper.database.connections import STATEMENT_CACHE_SIZE
from plankeeper.database.lists.filtered_list import ListStatement
from plankeeper.database.lists.statements import Filter, Parameters
from plankeeper.database.row_mapping import columns
from support.cluster import SharedCluster
from support.sweeps import sweep

# Modules other than `store.py` that contain SQL.
OTHER_STORES = {
    "access.accounts.member_store": "roles and invitations, beside the accounts",
    "access.accounts.single_sign_on": "the identities of single sign-on, beside the accounts",
    "access.accounts.sessions": "the purge of ended sessions, beside the accounts",
    "resources.claims.result_store": "results and receipts, beside batches and claims",
    "resources.claims.queries": "the list of all claims",
    "resources.exports": "exports of claims and payments, of several packages",
    "resources.payments.remittance_store": "what a remittance advice says",
    "resources.claims.adjustment_store": "adjustments, beside claims",
    "resources.claims.candidate_store": "what a new batch can contain, beside batches and claims",
    "events.activity_store": "the activity of the console, beside the feed",
    "events.order_store": "the queue and the order of events, beside the events",
    "access.accounts.link_store": "recipients of mails and tokens of links, beside the accounts",
    "core.encryption.rotation": "stored secrets, wherever they are, beside their encryption with another key",
    "imports.file_store": "uploaded files, beside the imports",
    "resources.parents": "records that others belong to, which their parts may not import",
    "privacy.financial_store": "the claims and payments that an erasure keeps",
    "privacy.export_store": "the export of one person, beside the erasure",
    "resources.participants.queries": "the list of participants",
    "resources.providers.queries": "the list of providers",
    "resources.notes.queries": "the list of notes",
    "resources.payments.reconciliation_store": "the money that the office holds, beside payment runs",
    "resources.statement_runs.queries": "the lists of runs of statements and of their items",
    "resources.payments.queries": "the lists of payment runs and of their payments",
    "resources.invoices.queries": "the lists of invoices",
    "resources.invoices.approval_store": "who may approve invoices, who was asked, and the links",
    "resources.invoices.check_store": "the input and the results of invoice checks, and ignored warnings",
    "resources.invoices.recheck_store": "the invoices to check in the background, and the progress of their check",
    "resources.viewer_limits": "the records that a limited viewer sees, of several packages",
    "resources.recheck_queue": "the queue that writes of other records fill, whose packages may not import invoices",
    "resources.invoices.reference_store": "the participants, providers and accounts that requests name",
    "resources.office_settings.number_store": "the counters of what an office makes",
    "resources.office_settings.restore_store": "restores, apart from the settings of an office",
    "resources.invoices.review_store": "which invoices wait, and who looks at which of them",
    "resources.invoices.statistics_store": "sums of invoices for the console's home page",
    "webhooks.attempts": "counts of attempts, for the console",
    "webhooks.endpoint_store": "webhook endpoints",
    "webhooks.delivery_store": "deliveries, for the API and the console",
    "webhooks.delivery_queue": "deliveries, for the worker",
    "database.stored_counts": "the stored numbers of rows of two lists",
    "database.schema": "the schema's version, which belongs to no feature package",
    "database.privileges": "the privileges of the role that serves",
    "database.server": "what PostgreSQL reports about itself",
    "database.unavailability": "the check whether the database can write",
    "database.lists.cursor_keys": "the key that seals cursors, which belongs to no feature package",
    "database.citus": "the nodes of Citus, which belong to no feature package",
    "server.telemetry.webhooks": "notifications with the traces of writes, without a table",
}
# Statements on functions and tables that only Citus has: tests/system/clusters/test_citus.py prepares them.
ONLY_ON_CITUS = "database.citus"
COMPUTED = {
    "database.privileges._grant": "GRANT takes no parameters; the role's name is quoted, and the others are constants",
    "database.privileges.prepare_role": "neither does CREATE ROLE",
}
# Modules that open connections.
CONNECTING_MODULES = {
    "database.connections": "the function that the pool connects with",
    "database.pool": "the pool, which receives that function",
    "database.schema": "migrations use an engine of their own",
}
# The types of PostgreSQL, and the types of the values that asyncpg returns for them.
PYTHON_TYPES: dict[str, Any] = {
    "uuid": UUID,
    "text": str,
    "int4": int,
    "int8": int,
    "xid": int,
    "bool": bool,
    "date": date,
    "timestamptz": datetime,
    "float8": float,
    "numeric": Decimal,
    "bytea": bytes,
    "json": Raw,
    "varchar": str,
    "text[]": list[str],
    "int4[]": list[int],
    "uuid[]": list[UUID],
    "numeric[]": list[Decimal],
}


@pytest.fixture(scope="module")
async def connection(cluster: SharedCluster) -> AsyncIterator[Any]:
    opened: Any = await asyncpg.connect(cluster.dsn, statement_cache_size=0)
    yield opened
    await opened.close()


def test_every_method_that_runs_a_statement_is_covered() -> None:
    taking = {
        name
        for kind in (Executor, Transaction)
        for name, method in vars(kind).items()
        if not name.startswith("_") and "statement" in getattr(method, "__annotations__", {})
    }
    assert taking == set(METHODS)
    assert len(store_statements()) > 50


def test_statements_occur_only_in_stores() -> None:
    elsewhere = {each.module for each in store_statements() if not each.module.endswith(".store")}
    assert elsewhere == set(OTHER_STORES)


def test_runners_still_run_statements_for_others() -> None:
    running = {each.module for each in all_statements() if is_runner(each.module)}
    assert {name for name in RUNS_FOR_OTHERS if any(module.startswith(name) for module in running)} == set(
        RUNS_FOR_OTHERS
    )


def test_every_statement_is_a_constant_or_comes_from_a_filtered_list() -> None:
    computed = {each.name for each in store_statements() if each.sql is None}
    assert computed == set(COMPUTED)


def test_pyright_proves_that_statements_consist_of_literals() -> None:
    """Every method that runs SQL takes a `LiteralString`, so pyright rejects text that contains a value."""
    for kind in (Executor, Transaction):
        for name in set(METHODS) & set(vars(kind)):
            assert getattr(kind, name).__annotations__["statement"] in (LiteralString, Write)
    texts = dict.fromkeys(("ctes", "main", "changed"), LiteralString)
    assert get_type_hints(Write) == texts | {"parameters": int}
    assert get_type_hints(ListStatement)["text"] is LiteralString
    assert get_type_hints(Parameters.add)["return"] is LiteralString
    assert get_type_hints(Filter)["condition"] is LiteralString


def test_every_set_of_filters_has_its_own_statements() -> None:
    assert {name.removesuffix(".queries.LIST") for name in filtered_lists()} >= {
        "resources.participants",
        "resources.providers",
        "resources.invoices",
    }
    for filtered_list in filtered_lists().values():
        sets = filter_sets(filtered_list)
        assert len(sets) > len(filtered_list.filters)
        assert len({filtered_list.page_statement(TENANT, each, (1, 0)).text for each in sets}) == len(sets)
        assert len({filtered_list.count_statement(TENANT, each).text for each in sets}) == len(sets)


def test_the_order_of_filters_in_a_request_does_not_change_the_text() -> None:
    for filtered_list in filtered_lists().values():
        *_, values = filter_sets(filtered_list, 2)
        backward = dict(reversed(values.items()))
        assert filtered_list.count_statement(TENANT, values) == filtered_list.count_statement(TENANT, backward)


def test_a_connection_can_keep_every_statement_prepared() -> None:
    """Those of the stores, and those of each list in its own order with one filter at most. Others displace the ones
    that were used least recently.
    """
    of_lists = {
        text
        for each in filtered_lists().values()
        for values in filter_sets(each, 1)
        for text in (each.page_statement(TENANT, values, (1, 0)).text, each.count_statement(TENANT, values).text)
    }
    in_stores = {each.sql for each in all_statements() if not is_runner(each.module)}
    assert len(of_lists | in_stores) <= STATEMENT_CACHE_SIZE <= 1400


async def test_the_pool_bounds_the_statement_cache(cluster: SharedCluster) -> None:
    async with Database(cluster.dsn).open() as db, db.transaction() as tx:
        config = tx._connection._config  # noqa: SLF001 - asyncpg has no public view of its options
        assert config.statement_cache_size == STATEMENT_CACHE_SIZE
        # asyncpg prepares longer statements for each call.
        assert max(len(each.sql or "") for each in store_statements()) < config.max_cacheable_statement_size


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def test_only_the_pool_and_the_migrations_connect() -> None:
    connecting = {
        module.name
        for module in modules()
        if "asyncpg" in set(imports(module)) and {"connect", "create_pool"} & set(identifiers(module.tree))
    }
    assert connecting == set(CONNECTING_MODULES)


def test_every_row_type_can_be_resolved() -> None:
    unknown = [
        location_of(each)
        for each in store_statements()
        if each.method not in WITHOUT_ROWS and not isinstance(each.shape, type)
    ]
    assert unknown == []


STATEMENTS_OF_STORES = [
    each
    for each in all_statements()
    if not is_runner(each.module) and each.module != ONLY_ON_CITUS and each.name not in COMPUTED
]


@sweep("statement", STATEMENTS_OF_STORES, ids=location_of)
async def test_a_statement_fits_the_schema_and_its_struct(connection: Any, statement: Statement) -> None:
    await _assert_fits(connection, statement)


@sweep("name", filtered_lists())
async def test_the_composed_statements_of_a_list_fit_the_schema(connection: Any, name: str) -> None:
    composed = [each for each in composed_statements() if each.name.partition("[")[0] == name]
    assert len(composed) > 10
    for statement in composed:
        await _assert_fits(connection, statement)


async def _assert_fits(connection: Any, statement: Statement) -> None:
    prepared = await connection.prepare(statement.sql)
    if statement.values is not None:
        assert statement.values == len(prepared.get_parameters())
    if statement.method in WITHOUT_ROWS:
        return
    attributes = prepared.get_attributes()
    if not issubclass(statement.shape, Struct):
        assert [PYTHON_TYPES[each.type.name] for each in attributes] == [statement.shape]
        return
    assert [each.name for each in attributes] == columns(statement.shape)
    wrong = {
        attribute.name: (attribute.type.name, kinds)
        for attribute, kinds in zip(attributes, _column_types(statement.shape), strict=True)
        if not _is_compatible(attribute.type.name, kinds)
    }
    assert wrong == {}


async def test_bulk_inserted_rows_fit_their_table(connection: Any) -> None:
    assert bulk_inserts()
    for module, table, shape in bulk_inserts():
        assert module.endswith(".store")
        prepared = await connection.prepare(f"select {', '.join(columns(shape))} from {table}")
        types = [each.type.name for each in prepared.get_attributes()]
        # COPY takes JSON as text.
        expected = [PYTHON_TYPES["text" if each == "json" else each] for each in types]
        assert all(each in kinds for each, kinds in zip(expected, _column_types(shape), strict=True))
        assert columns(shape)[0] == "plan_manager_id"


def _column_types(shape: type[Struct]) -> Iterator[set[Any]]:
    """The plain types of each column of a struct, including those of nested structs."""
    for field in fields(shape):
        kinds = set(_plain_types(field.type))
        nested = [each for each in kinds if isinstance(each, type) and issubclass(each, Struct)]
        if nested and field.encode_name not in columns(shape):
            assert kinds <= {nested[0], msgspec.UnsetType}, (shape, field.name)
            yield from _column_types(nested[0])
        else:
            yield kinds


def _plain_types(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _plain_types(each)
    elif origin is Annotated:
        yield from _plain_types(get_args(annotation)[0])
    elif origin is Literal:
        yield from {type(each) for each in get_args(annotation)}
    elif origin is list:
        [item] = set(_plain_types(get_args(annotation)[0]))
        yield list[item]
    elif isinstance(annotation, NewType):
        yield from _plain_types(annotation.__supertype__)
    elif annotation is not NoneType:
        yield annotation


def _is_compatible(postgresql: str, kinds: set[Any]) -> bool:
    """Whether asyncpg returns one of the types for a column. A list of structs is decoded from JSON."""
    if postgresql == "json":
        read = kinds - {msgspec.UnsetType}
        return all(kind is Raw or _is_struct_list(kind) or issubclass(kind, Struct) for kind in read - {type(None)})
    return PYTHON_TYPES[postgresql] in kinds


def _is_struct_list(kind: Any) -> bool:
    return get_origin(kind) is list and issubclass(get_args(kind)[0], Struct)
