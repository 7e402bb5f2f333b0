"""Citus: distributes the tables over its nodes, and continues to work while one of them is unavailable.

Every table of plan managers is distributed by `plan_manager_id`, so that all rows of a plan manager are on one node.
The tables that are needed before the plan manager is known stay on the coordinator. It is for installations whose
writes exceed one PostgreSQL, which performs about 2,000 creates a second on two cores.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from graphlib import TopologicalSorter
from typing import Literal, LiteralString, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.errors import is_unavailable
from plankeeper.database.server import TransactionIds

T = TypeVar("T")
Placement = Literal["distributed", "reference", "coordinator"]

# Tables that every node has in full: foreign keys or statements of distributed tables refer to them.
REFERENCE_TABLES = ("plan_managers", "permissions", "event_types", "support_items", "support_catalogue")
# Tables with `plan_manager_id` that stay on the coordinator, each with the reason.
COORDINATOR_TABLES = {
    "account_invitations": "the token identifies an invitation before its plan manager is known",
    "account_roles": "sessions, which belong to an account, refer to them",
    "api_key_plan_managers": "they refer to keys, which may act for several plan managers",
    "single_sign_on_providers": "a domain identifies a provider before the plan manager is known",
}

FAILED_NODE_PAUSE = 10.0  # seconds without statements for a node that didn't respond


class Node(Struct):
    """A server of Citus. The coordinator has the group 0."""

    group: int
    address: str
    is_active: bool
    has_shards: bool
    shards: int  # of one distributed table
    size: int  # bytes of its shards of all tables


class Table(Struct):
    """A table with its foreign keys; `placement` is null until Citus knows the table."""

    name: str
    has_plan_manager_id: bool
    referenced_tables: list[str]
    placement: str | None

    @property
    def required_placement(self) -> Placement:
        if self.name in REFERENCE_TABLES:
            return "reference"
        return "distributed" if self.has_plan_manager_id and self.name not in COORDINATOR_TABLES else "coordinator"


class Step(NamedTuple):
    """A table to place on the nodes."""

    table: str
    placement: Placement


IS_CITUS = "select exists (select from pg_extension where extname = 'citus')"


async def is_citus(db: Executor) -> bool:
    """Whether the database has the extension."""
    return await db.one(bool, IS_CITUS)


LIST_TABLES = """
    select c.relname::text as name, exists (
            select from pg_attribute a where a.attrelid = c.oid and a.attname = 'plan_manager_id'
        ) as has_plan_manager_id, array(
            select distinct f.confrelid::regclass::text from pg_constraint f
            where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> f.conrelid
        ) as referenced_tables, case
            when p.partmethod = 'h' then 'distributed'
            when p.repmodel = 't' then 'reference'
            when p.logicalrelid is not null then 'local'
        end as placement
    from pg_class c left join pg_dist_partition p on p.logicalrelid = c.oid
    where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and not relation_is_a_known_shard(c.oid)
    order by c.relname
"""


async def list_tables(db: Executor) -> list[Table]:
    """The tables of a database with Citus, in order of their names."""
    return await db.rows(Table, LIST_TABLES)


def missing_steps(tables: Iterable[Table]) -> list[Step]:
    """The tables that still have to be placed, each after the tables that it refers to."""
    by_name = {each.name: each for each in tables}
    order = TopologicalSorter({each.name: each.referenced_tables for each in by_name.values()}).static_order()
    placed = [by_name[name] for name in order if name in by_name]
    required = [each for each in placed if each.required_placement not in ("coordinator", each.placement)]
    # Reference tables first: foreign keys refer to them.
    required.sort(key=lambda each: each.required_placement == "distributed")
    return [Step(each.name, each.required_placement) for each in required]


LIST_NODES = """
    select n.groupid as group, n.nodename || ':' || n.nodeport as address, n.isactive as is_active,
        n.shouldhaveshards as has_shards,
        count(s.shardid) filter (where s.table_name = 'participants'::regclass) as shards,
        coalesce(sum(s.shard_size), 0)::bigint as size
    from pg_dist_node n left join citus_shards s
        on s.nodename = n.nodename and s.nodeport = n.nodeport and s.citus_table_type = 'distributed'
    where n.noderole = 'primary'
    group by n.groupid, n.nodename, n.nodeport, n.isactive, n.shouldhaveshards
    order by n.groupid
"""


async def list_nodes(db: Executor) -> list[Node]:
    """The coordinator and the workers. Fails if one of them is unavailable: each knows the size of its own shards."""
    return await db.rows(Node, LIST_NODES)


LIST_NODE_GROUPS = """
    select groupid as group, nodename || ':' || nodeport as address, isactive as is_active,
        shouldhaveshards as has_shards, 0::bigint as shards, 0::bigint as size
    from pg_dist_node where noderole = 'primary' order by groupid
"""


async def list_node_groups(db: Executor) -> list[Node]:
    """The coordinator and the workers as the coordinator knows them, without the number of shards and their size."""
    return await db.rows(Node, LIST_NODE_GROUPS)


# Citus changes all shards over one connection for each node, because later steps see the changes of the earlier ones.
# Tables of the coordinator keep their foreign keys without becoming tables of Citus: it supports no foreign key from
# such a table to a distributed one.
CONFIGURE_DISTRIBUTION = """
    select set_config('citus.multi_shard_modify_mode', 'sequential', true),
        set_config('citus.enable_local_reference_table_foreign_keys', 'off', true),
        set_config('client_min_messages', 'warning', true)
"""
CREATE_REFERENCE_TABLE = "select create_reference_table($1::text::regclass)"
CREATE_DISTRIBUTED_TABLE = """
    select create_distributed_table($1::text::regclass, 'plan_manager_id', colocate_with => $2, shard_count => $3)
"""
CREATE_COLOCATED_TABLE = "select create_distributed_table($1::text::regclass, 'plan_manager_id', colocate_with => $2)"
TRUNCATE_LOCAL_DATA = "select truncate_local_data_after_distributing_table($1::text::regclass)"


async def distribute(
    tx: Transaction, shard_count: int = 32, on_step: Callable[[Step], None] = lambda _: None
) -> list[Step]:
    """Place the tables that aren't placed yet, with their rows, and return them. Writers wait for the transaction."""
    await tx.execute(CONFIGURE_DISTRIBUTION)
    tables = await list_tables(tx)
    steps = missing_steps(tables)
    colocated = next((each.name for each in tables if each.placement == "distributed"), None)
    for step in steps:
        on_step(step)
        if step.placement == "reference":
            await tx.execute(CREATE_REFERENCE_TABLE, step.table)
        elif colocated:
            await tx.execute(CREATE_COLOCATED_TABLE, step.table, colocated)
        else:
            await tx.execute(CREATE_DISTRIBUTED_TABLE, step.table, "none", shard_count)
            colocated = step.table
    # The rows from before remain in the tables of the coordinator, where statements don't see them. Those of reference
    # tables must stay if tables of the coordinator refer to them; they are few.
    for step in reversed(steps):
        if step.placement == "distributed":
            await tx.execute(TRUNCATE_LOCAL_DATA, step.table)
    return steps


def distribute_table(table: LiteralString) -> LiteralString:
    """A statement for a migration that creates a table of plan managers. Without Citus, it does nothing.

    Run it before the statements that add the table's foreign keys: a table of the coordinator can't have them.
    """
    return f"""
        do $$
        begin
            if exists (select from pg_extension where extname = 'citus') then
                if exists (
                    select from pg_dist_partition
                    where logicalrelid = 'participants'::regclass and partmethod = 'h'
                ) then
                    perform create_distributed_table('{table}', 'plan_manager_id', colocate_with => 'participants');
                end if;
            end if;
        end $$
    """


IS_DISTRIBUTED = """
    select exists (select from pg_dist_partition where logicalrelid = to_regclass('participants') and partmethod = 'h')
"""


async def is_distributed(db: Executor) -> bool:
    """Whether the tables of a database with Citus are distributed."""
    return await db.one(bool, IS_DISTRIBUTED)


class NodeGroup(Struct):
    """The plan managers whose rows are on one node."""

    group: int
    plan_manager_ids: list[UUID]


GROUP_BY_NODE = """
    select placement.groupid as group, array_agg(manager.id) as plan_manager_ids
    from plan_managers manager
    join pg_dist_placement placement
        on placement.shardid = get_shard_id_for_distribution_column('participants', manager.id)
    group by placement.groupid
    order by placement.groupid
"""


class Nodes:
    """The nodes of Citus, and which of them failed a moment ago. Without Citus, the one PostgreSQL."""

    def __init__(self) -> None:
        self._failed_until: dict[int, float] = {}

    async def collect(self, db: Executor, run: Callable[[list[UUID] | None], Awaitable[list[T]]]) -> list[T]:
        """The rows of a statement about all plan managers, without those on unavailable nodes of Citus.

        `run` gets the ids of plan managers, or None for all. Raises the error of an unavailable PostgreSQL.
        """
        if not self._failed_until:
            try:
                return await run(None)
            except Exception as error:
                if not db.is_citus or not is_unavailable(error):
                    raise
        rows: list[T] = []
        for node in await db.rows(NodeGroup, GROUP_BY_NODE):
            if time.monotonic() < self._failed_until.get(node.group, 0):
                continue
            try:
                rows += await run(node.plan_manager_ids)
                self._failed_until.pop(node.group, None)
            except Exception as error:
                if not is_unavailable(error):
                    raise
                self._failed_until[node.group] = time.monotonic() + FAILED_NODE_PAUSE
        return rows


def statement_groups(db: Executor, plan_manager_ids: Iterable[UUID]) -> list[list[UUID]]:
    """The plan managers that one statement can be about: on Citus each alone, otherwise all of them."""
    ids = list(plan_manager_ids)
    return [[each] for each in ids] if db.is_citus else [ids] if ids else []


def shard_key(db: Executor, plan_manager_ids: Sequence[UUID]) -> UUID | None:
    """The plan manager of a group on Citus, whose statement names it; otherwise None, so that its plan is the same."""
    return plan_manager_ids[0] if db.is_citus else None


# Each node gives out transaction ids of its own.
LIST_TRANSACTION_IDS = """
    with sampled as (
        select nodeid, success, result
        from run_command_on_all_nodes('
            select pg_snapshot_xmin(snapshot) || '' '' || pg_current_xact_id()
            from pg_current_snapshot() snapshot
        ')
    )
    select nodeid as node, statement_timestamp() as sampled_at,
        split_part(result, ' ', 1)::bigint as oldest_open, split_part(result, ' ', 2)::bigint as next_id
    from sampled
    where (select bool_and(success) from sampled)
"""


async def list_transaction_ids(db: Executor) -> list[TransactionIds]:
    """The transaction ids of all nodes; empty if a node doesn't respond."""
    return await db.rows(TransactionIds, LIST_TRANSACTION_IDS)
