"""Downloads of records. Each records an event, also if the browser cancels it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from plankeeper.access.access_log.service import record_export
from plankeeper.console.csv_export import UTF8_BOM, csv_row
from plankeeper.console.routing import PageRequest


async def csv_chunks(
    request: PageRequest, what: str, filter_: str, columns: Sequence[str], batches: AsyncIterator[list[bytes]]
) -> AsyncIterator[bytes]:
    """A CSV file in chunks, and the event `export.created` with the number of rows that were sent."""
    count = 0
    try:
        yield UTF8_BOM + csv_row(columns)
        async for rows in batches:
            count += len(rows)
            yield b"".join(rows)  # an empty chunk, too: the response then notices a closed connection
    finally:
        await asyncio.shield(_record(request, what, filter_, count))


async def _record(request: PageRequest, what: str, filter_: str, count: int) -> None:
    async with request.db.transaction() as tx:
        await record_export(request.with_transaction(tx).write_context, what, filter_, count)
