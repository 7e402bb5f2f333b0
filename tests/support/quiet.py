"""A database without a server: nothing happens in it but what a test does."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, DedicatedConnection
from plankeeper.events.recorder import record_events
from plankeeper.events.sequencer import CONNECTION_SETTINGS, assign_positions
from support.webhooks import EventSubject


@dataclass
class QuietDatabase:
    """`db` and a connection as a sequencer has it."""

    db: Database
    connection: DedicatedConnection

    async def new_plan_manager(self) -> UUID:
        async with self.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
            assert plan_manager
            return plan_manager.id

    async def record(self, plan_manager_id: UUID, *types: str, notify: bool = True) -> list[UUID]:
        """Record the events of one request, and return their ids."""
        async with self.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, Settings.read({}), SYSTEM, notify=notify)
            subjects = [EventSubject(uuid7()) for _ in types]
            await record_events(ctx, [(type_, None, subject) for type_, subject in zip(types, subjects, strict=True)])
            statement = "select id from events where plan_manager_id = $1 and resource_id = any ($2) order by id"
            return await tx.rows(UUID, statement, plan_manager_id, [str(each.id) for each in subjects])

    async def sequence(self, plan_manager_id: UUID) -> None:
        """Give all events of a plan manager their positions."""
        batch = await assign_positions(self.connection, plan_manager_id, 5000)
        assert batch
        if batch.has_more:
            await self.sequence(plan_manager_id)

    async def feed(self, plan_manager_id: UUID) -> list[tuple[int, UUID]]:
        """The positions and ids of the events."""
        statement = "select position, event_id as id from event_order where plan_manager_id = $1 order by position"
        return [(each.position, each.id) for each in await self.db.rows(_Placed, statement, plan_manager_id)]

    async def queued(self, plan_manager_id: UUID) -> Sequence[int]:
        """The number of events in each row of the queue."""
        statement = "select cardinality(event_ids) from event_queue where plan_manager_id = $1 order by id"
        return await self.db.rows(int, statement, plan_manager_id)


class _Placed(Struct):
    position: int
    id: UUID


@asynccontextmanager
async def quiet_database(dsn: str) -> AsyncGenerator[QuietDatabase]:
    """A database that several tests share one after the other. Nothing is queued at the beginning."""
    async with Database(dsn).open() as db, db.dedicated_connection(**CONNECTION_SETTINGS) as connection:
        await connection.execute("set idle_session_timeout = 0")  # a test may record events for longer than that
        await db.execute("delete from event_queue")
        await db.execute("delete from webhook_endpoints")
        yield QuietDatabase(db, connection)
