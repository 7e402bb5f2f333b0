"""Citus: which tables still have to be placed, errors of nodes, and statements while a node is unavailable."""

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from plankeeper.database import citus
from plankeeper.database.citus import NodeGroup, Nodes, Step, Table, missing_steps, statement_groups
from plankeeper.database.client import Executor
from plankeeper.database.errors import constraint_violation, is_unavailable

MESSAGE = 'insert or update on table "participants_102040" violates foreign key constraint "{}"'


def test_the_name_of_a_constraint_is_read_from_the_message_of_a_shard() -> None:
    error = asyncpg.ForeignKeyViolationError(MESSAGE.format("participants_account_manager_id_fkey_102038"))
    assert constraint_violation(error).constraint == "participants_account_manager_id_fkey"


def test_a_constraint_that_postgresql_names_keeps_its_number() -> None:
    error: Any = asyncpg.UniqueViolationError(MESSAGE.format("things_key_1"))
    error.constraint_name = "things_key_1"
    assert constraint_violation(error).constraint == "things_key_1"


def test_a_failed_node_is_unavailable_with_or_without_a_code() -> None:
    assert is_unavailable(asyncpg.ConnectionFailureError("connection to the remote node 10.0.0.2:5432 failed"))
    assert is_unavailable(asyncpg.InternalServerError("failure on connection marked as essential: 10.0.0.2:5432"))
    closed = "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally"
    assert is_unavailable(asyncpg.InternalServerError(closed))
    lost_in_commit = "could not commit transaction for shard 102008 on at least one active node"
    assert is_unavailable(asyncpg.InternalServerError(lost_in_commit))
    unprepared = "failed to prepare transaction 'citus_0_1' on host 10.0.0.2:5432"
    assert is_unavailable(asyncpg.InternalServerError(unprepared))
    assert is_unavailable(asyncpg.PostgresIOError("failed to write the rows of a statement to 10.0.0.2:5432"))
    assert not is_unavailable(asyncpg.InternalServerError("cache lookup failed"))


def test_reference_tables_come_first_and_every_table_after_those_that_it_refers_to() -> None:
    tables = [
        Table("account_roles", True, ["accounts", "plan_managers"], None),
        Table("accounts", False, [], None),
        Table("participants", True, ["plan_managers", "users"], None),
        Table("plan_managers", False, [], None),
        Table("users", True, ["plan_managers"], None),
    ]
    assert missing_steps(tables) == [
        Step("plan_managers", "reference"),
        Step("users", "distributed"),
        Step("participants", "distributed"),
    ]


def test_tables_that_are_placed_need_no_step() -> None:
    tables = [
        Table("event_order", True, [], None),
        Table("plan_managers", False, [], "reference"),
        Table("users", True, ["plan_managers"], "distributed"),
    ]
    assert missing_steps(tables) == [Step("event_order", "distributed")]


class TwoNodes(Executor):
    """Citus with one plan manager on each of two nodes; `failed` are the nodes that don't respond."""

    def __init__(self) -> None:
        super().__init__(None, is_citus=True)
        self.failed: set[int] = set()
        self.asked: list[list[UUID] | None] = []

    async def rows(self, *_: Any) -> list[Any]:
        return [NodeGroup(1, [UUID(int=1)]), NodeGroup(2, [UUID(int=2)])]

    async def run(self, ids: list[UUID] | None) -> list[UUID]:
        self.asked.append(ids)
        asked = ids or [UUID(int=1), UUID(int=2)]
        if any(each.int in self.failed for each in asked):
            raise asyncpg.ConnectionFailureError("connection to the remote node failed")
        return asked


async def test_while_a_node_is_unavailable_the_others_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    db, nodes = TwoNodes(), Nodes()
    assert await nodes.collect(db, db.run) == [UUID(int=1), UUID(int=2)]
    db.failed = {2}
    assert await nodes.collect(db, db.run) == [UUID(int=1)]
    db.asked.clear()
    assert await nodes.collect(db, db.run) == [UUID(int=1)]
    assert db.asked == [[UUID(int=1)]]  # the failed node isn't asked again for some seconds
    monkeypatch.setattr(citus, "FAILED_NODE_PAUSE", 0.0)
    nodes, db.failed = Nodes(), {1}
    assert await nodes.collect(db, db.run) == [UUID(int=2)]
    db.failed = set()
    assert await nodes.collect(db, db.run) == [UUID(int=1), UUID(int=2)]
    db.asked.clear()
    assert await nodes.collect(db, db.run) == [UUID(int=1), UUID(int=2)]
    assert db.asked == [None]  # all are back


async def test_without_citus_an_unavailable_database_is_an_error() -> None:
    db = TwoNodes()
    db.is_citus, db.failed = False, {2}
    with pytest.raises(asyncpg.ConnectionFailureError):
        await Nodes().collect(db, db.run)


def test_a_statement_on_citus_is_about_one_plan_manager() -> None:
    ids = [UUID(int=1), UUID(int=2)]
    assert statement_groups(Executor(None, is_citus=True), ids) == [[ids[0]], [ids[1]]]
    assert statement_groups(Executor(None), ids) == [ids]
    assert statement_groups(Executor(None), []) == []
