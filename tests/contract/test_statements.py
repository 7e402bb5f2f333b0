"""Law 2: SQL is a literal in a store; each is prepared on the migrated schema and fits the struct that it fills."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin
from uuid import UUID

import asyncpg
import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import fields

from contract.sources import (
    METHODS,
    RUNS_FOR_OTHERS,
    Statement,
    all_statements,
    bulk_inserts,
    imports,
    is_runner,
    location_of,
    modules,
    store_statements,
)
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_mapping import columns
from support.cluster import SharedCluster

# Where SQL may stand besides a slice's `store.py`.
OTHER_STORES = {
    "accounts.member_store": "roles and invitations: a store of its own beside the accounts'",
    "participants.queries": "the pages of the list, a statement for each filter",
    "participants.search": "the search, for the console",
    "participants.totals": "the totals of the list, likewise, and what keeps them",
    "providers.queries": "the pages and totals of the list, likewise",
    "providers.search": "the search, for the console",
    "invoices.queries": "the pages of the list, likewise",
    "invoices.doubtful": "the pages of the list of those with warnings, likewise",
    "invoices.ignored_warnings_store": "why warnings are ignored, and the names beside an invoice",
    "invoices.totals": "the totals of the list, likewise",
    "invoices.check_store": "what the checks of invoices read and keep: a store of its own beside the slice's",
    "webhooks.delivery_store": "deliveries from where they are looked at: a store of its own beside the endpoints'",
    "webhooks.delivery_queue": "deliveries from where the work is done, likewise",
    "database.schema": "the schema's version, which is asked before there is any slice",
}
# What opens connections past the pool's methods.
CONNECTING_MODULES = {
    "database.client": "what the pool connects with",
    "database.pool": "the pool itself, which is told how",
    "database.migrations.env": "Alembic brings its own engine",
}

# The types of PostgreSQL and what asyncpg makes of them.
PYTHON_TYPES: dict[str, Any] = {
    "uuid": UUID,
    "text": str,
    "int4": int,
    "int8": int,
    "bool": bool,
    "date": date,
    "timestamptz": datetime,
    "float8": float,
    "numeric": Decimal,
    "bytea": bytes,
    "json": Raw,
    "varchar": str,
    "text[]": list[str],
    "uuid[]": list[UUID],
}


@pytest.fixture(scope="module")
async def connection(cluster: SharedCluster) -> AsyncIterator[Any]:
    opened: Any = await asyncpg.connect(cluster.dsn)
    yield opened
    await opened.close()


def test_every_method_that_runs_a_statement_is_covered() -> None:
    taking = {
        name
        for kind in (Executor, Transaction)
        for name, method in vars(kind).items()
        if "statement" in getattr(method, "__annotations__", {})
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


def test_every_statement_is_a_plain_literal() -> None:
    built = [location_of(each) for each in store_statements() if each.sql is None]
    assert built == []


def test_only_the_pool_and_the_migrations_connect() -> None:
    connecting = {
        module.name
        for module in modules()
        if "asyncpg" in set(imports(module)) and re.search(r"\b(connect|create_pool)\b", module.path.read_text())
    }
    assert connecting == set(CONNECTING_MODULES)


def test_every_row_type_can_be_resolved() -> None:
    unknown = [
        location_of(each)
        for each in store_statements()
        if each.method != "execute" and not isinstance(each.shape, type)
    ]
    assert unknown == []


@pytest.mark.parametrize("statement", store_statements(), ids=location_of)
async def test_a_statement_fits_the_schema_and_its_struct(connection: Any, statement: Statement) -> None:
    prepared = await connection.prepare(statement.sql)
    if statement.values is not None:
        assert statement.values == len(prepared.get_parameters())
    if statement.method == "execute":
        return
    found = prepared.get_attributes()
    if not issubclass(statement.shape, Struct):
        assert [PYTHON_TYPES[each.type.name] for each in found] == [statement.shape]
        return
    assert [each.name for each in found] == columns(statement.shape)
    wrong = {
        attribute.name: (attribute.type.name, kinds)
        for attribute, kinds in zip(found, _column_types(statement.shape), strict=True)
        if not _is_compatible(attribute.type.name, kinds)
    }
    assert wrong == {}


async def test_bulk_inserted_rows_fit_their_table(connection: Any) -> None:
    assert bulk_inserts()
    for module, table, shape in bulk_inserts():
        assert module.endswith(".store")
        prepared = await connection.prepare(f"select {', '.join(columns(shape))} from {table}")
        types = [each.type.name for each in prepared.get_attributes()]
        # JSON is handed over as text.
        wanted = [PYTHON_TYPES["text" if each == "json" else each] for each in types]
        assert all(each in kinds for each, kinds in zip(wanted, _column_types(shape), strict=True))
        assert columns(shape)[0] == "plan_manager_id"


def _column_types(shape: type[Struct]) -> Iterator[set[Any]]:
    """The plain types of each column that fills a struct, those of a nested struct in its place."""
    for field in fields(shape):
        kinds = set(_plain_types(field.type))
        nested = [each for each in kinds if isinstance(each, type) and issubclass(each, Struct)]
        if nested:
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
    """Whether asyncpg's value of a column is of one of the types; a list of structs is read from JSON."""
    if postgresql == "json":
        return all(kind is Raw or _is_struct_list(kind) for kind in kinds)
    return PYTHON_TYPES[postgresql] in kinds


def _is_struct_list(kind: Any) -> bool:
    return get_origin(kind) is list and issubclass(get_args(kind)[0], Struct)
