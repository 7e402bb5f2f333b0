"""Concurrent reads share statements, each gets its own record, and none of them disturbs another."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.database.data_loader import DataLoader

FIRST, SECOND = uuid7(), uuid7()  # plan managers


class Row(Struct):
    id: int
    plan_manager_id: UUID


class Statements:
    """A store function that returns the records with even ids, and the statements that it ran.

    While `gate` is closed, statements stay in flight. `error` is what the next one raises.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[UUID, list[int]]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def get_many(self, _db: object, plan_manager_id: UUID, ids: Sequence[int]) -> list[Row]:
        self.sent.append((plan_manager_id, list(ids)))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self.gate.wait()
            error, self.error = self.error, None
            if error:
                raise error
            return [Row(each, plan_manager_id) for each in reversed(ids) if each % 2 == 0]
        finally:
            self.in_flight -= 1


Scenario = Callable[[DataLoader, Statements], Coroutine[Any, Any, None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(DataLoader(None), Statements())

    asyncio.run(main())


async def settle() -> None:
    """Let everything run that doesn't wait for a statement."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_reads_of_the_same_turn_share_a_statement_and_each_gets_its_own_record() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        reads = [loader.load(statements.get_many, FIRST, id_) for id_ in (2, 3, 4, 2)]
        assert await asyncio.gather(*reads) == [Row(2, FIRST), None, Row(4, FIRST), Row(2, FIRST)]
        assert statements.sent == [(FIRST, [2, 3, 4])]

    run(scenario)


def test_reads_wait_for_the_statement_in_flight_and_share_the_next_one() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        statements.gate.clear()
        reads = []
        for id_ in (2, 4, 6):
            reads.append(asyncio.create_task(loader.load(statements.get_many, FIRST, id_)))
            await settle()
        assert statements.sent == [(FIRST, [2])]
        statements.gate.set()
        assert [each.id for each in await asyncio.gather(*reads) if each] == [2, 4, 6]
        assert statements.sent == [(FIRST, [2]), (FIRST, [4, 6])]
        assert statements.most_in_flight == 1

    run(scenario)


def test_plan_managers_and_kinds_of_records_never_share_a_statement() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        others = Statements()
        statements.gate.clear()
        places = [(statements, FIRST), (statements, SECOND), (others, FIRST)]
        reads = [asyncio.create_task(loader.load(each.get_many, owner, 2)) for each, owner in places]
        await settle()
        assert statements.sent == [(FIRST, [2]), (SECOND, [2])]  # neither waits for the other
        assert others.sent == [(FIRST, [2])]
        statements.gate.set()
        assert await asyncio.gather(*reads) == [Row(2, FIRST), Row(2, SECOND), Row(2, FIRST)]

    run(scenario)


def test_a_read_after_a_write_is_not_part_of_a_statement_that_was_sent_before() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        statements.gate.clear()
        before = asyncio.create_task(loader.load(statements.get_many, FIRST, 2))
        await settle()
        after = asyncio.create_task(loader.load(statements.get_many, FIRST, 2))
        await settle()
        statements.gate.set()
        await asyncio.gather(before, after)
        assert statements.sent == [(FIRST, [2]), (FIRST, [2])]

    run(scenario)


def test_a_cancelled_read_ends_alone() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        statements.gate.clear()
        first, second, third, fourth = (
            asyncio.create_task(loader.load(statements.get_many, FIRST, id_)) for id_ in (2, 4, 6, 8)
        )
        await settle()
        first.cancel()  # its statement is in flight
        later = asyncio.create_task(loader.load(statements.get_many, FIRST, 10))
        waiting = asyncio.create_task(loader.load(statements.get_many, FIRST, 12))
        await settle()
        waiting.cancel()  # its statement isn't sent yet
        await settle()
        statements.gate.set()
        results = await asyncio.gather(second, third, fourth, later)
        assert [each.id for each in results if each] == [4, 6, 8, 10]
        assert (first.cancelled(), waiting.cancelled()) == (True, True)
        assert statements.sent == [(FIRST, [2, 4, 6, 8]), (FIRST, [10])]

    run(scenario)


def test_nothing_is_sent_for_reads_that_are_all_cancelled() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        read = asyncio.create_task(loader.load(statements.get_many, FIRST, 2))
        await asyncio.sleep(0)
        read.cancel()
        await settle()
        assert statements.sent == []
        assert await loader.load(statements.get_many, FIRST, 4) == Row(4, FIRST)

    run(scenario)


def test_an_error_reaches_the_reads_of_its_statement_and_the_next_ones_succeed() -> None:
    async def scenario(loader: DataLoader, statements: Statements) -> None:
        statements.gate.clear()
        statements.error = ConnectionError("the database is restarting")
        failing = [asyncio.create_task(loader.load(statements.get_many, FIRST, id_)) for id_ in (2, 4)]
        await settle()
        following = asyncio.create_task(loader.load(statements.get_many, FIRST, 6))
        await settle()
        statements.gate.set()
        for each in failing:
            with pytest.raises(ConnectionError, match="restarting"):
                await each
        assert await following == Row(6, FIRST)

    run(scenario)


def test_the_statement_runs_in_the_context_of_its_first_read() -> None:
    """So that the span of the statement belongs to the trace of a request that reads with it."""
    from contextvars import ContextVar

    request = ContextVar[str]("request")
    seen: list[str] = []

    async def scenario(loader: DataLoader, statements: Statements) -> None:
        async def get_many(db: object, plan_manager_id: UUID, ids: Sequence[int]) -> list[Row]:
            seen.append(request.get())
            return await statements.get_many(db, plan_manager_id, ids)

        async def read(name: str, id_: int) -> Row | None:
            request.set(name)
            return await loader.load(get_many, FIRST, id_)

        statements.gate.clear()
        reads = [asyncio.create_task(read("first", 2))]
        await settle()
        reads += [asyncio.create_task(read(name, 4)) for name in ("second", "third")]
        await settle()
        statements.gate.set()
        await asyncio.gather(*reads)

    run(scenario)
    assert seen == ["first", "second"]
