"""Importing in tests, with the same function as the command line."""

import io
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.json import to_json
from plankeeper.imports.importer import ImportReport, import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from support.server import RunningServer


class _RollbackError(Exception):
    pass


async def import_records(
    server: RunningServer, plan_manager_id: UUID, resource: str, rows: list[dict[str, Any]]
) -> ImportReport:
    text = "".join(to_json(row) + "\n" for row in rows)
    return await import_bytes(server, plan_manager_id, resource, text.encode())


async def import_bytes(
    server: RunningServer, plan_manager_id: UUID, resource: str, content: bytes, match: str | None = None
) -> ImportReport:
    """The report of an import; with bad lines nothing was written."""
    report = ImportReport()
    try:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM, import_id=uuid7())
            report = await import_file(
                ctx, RESOURCES[resource], io.BytesIO(content), CONSTRAINT_ERRORS, lambda _lines: None, match=match
            )
            if report.rejected_lines:
                raise _RollbackError
    except _RollbackError:
        pass
    return report
