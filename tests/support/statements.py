"""Statements of participants that are sent."""

from uuid import UUID

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.statements import service
from plankeeper.resources.statements.schemas import SendWay
from support.client import Client
from support.server import RunningServer


def send_statement(
    server: RunningServer,
    client: Client,
    statement_id: str,
    way: SendWay = "mail",
    recipient: str = "robin@example.com",
) -> None:
    """Record that a statement was sent, as a monthly run does."""

    async def work() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(client.plan_manager_id), server.settings, SYSTEM)
            await service.record_sent(ctx, UUID(statement_id), way, recipient)

    server.run(work())
