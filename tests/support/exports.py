"""Exports, to compare two databases."""

import asyncio

from plankeeper.access.plan_managers.store import list_all
from plankeeper.database.client import Database
from plankeeper.imports.writer import JsonLinesWriter
from plankeeper.resources.registry import RESOURCES


async def _exported(dsn: str) -> dict[str, bytes]:
    async with Database(dsn).open() as db, db.transaction(snapshot=True) as tx:
        return {
            f"{resource} of {each.name}": b"".join(
                [JsonLinesWriter().lines(records) async for records in RESOURCES[resource].export(tx, each.id)]
            )
            for each in await list_all(tx)
            for resource in RESOURCES
        }


def export_all(dsn: str) -> dict[str, bytes]:
    """The export of every resource of every plan manager."""
    found = asyncio.run(_exported(dsn))
    assert len(found) == 2 * len(RESOURCES)
    assert all(found.values())
    return found
