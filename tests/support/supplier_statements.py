"""Statements of suppliers that needn't quote an ABN."""

from datetime import date
from uuid import UUID

from plankeeper.core.context import SYSTEM, ReadContext, WriteContext
from plankeeper.core.files import Upload, single_chunk
from plankeeper.resources.providers import statements
from support.server import RunningServer


async def record_statement(
    server: RunningServer,
    plan_manager_id: UUID,
    provider_id: UUID,
    file_name: str = "statement.pdf",
    content: bytes = b"%PDF-1.7 a statement",
) -> None:
    """Record the statement of a provider, with its file."""
    read = ReadContext(server.db, plan_manager_id, server.settings)
    stored = await statements.receive(read, provider_id, Upload(file_name, single_chunk(content)))
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        await statements.record(ctx, provider_id, date(2026, 1, 1), stored)
