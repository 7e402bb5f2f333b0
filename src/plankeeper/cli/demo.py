"""Demonstration data: made up, and brought in through the same import as everybody's."""

import io
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from plankeeper.api_keys import making
from plankeeper.bulk.explanations import EXPLANATIONS
from plankeeper.bulk.loading import load
from plankeeper.bulk.resources import RESOURCES
from plankeeper.cli.context import writing
from plankeeper.database.pool import Database, Transaction
from plankeeper.demo import PlanManager, plan_managers, records
from plankeeper.edge.call import Actor, Write
from plankeeper.edge.shapes import json_text
from plankeeper.events.record import record
from plankeeper.plan_managers import store
from plankeeper.settings import Settings

KEY_LASTS = timedelta(days=30)


async def fill(db: Database, settings: Settings, seed: int = 1) -> tuple[UUID, str, str]:
    """Fill in the demonstration once, and make a key for it: the first plan manager's id and name, and the key."""
    managers = plan_managers()
    async with db.transaction() as tx:
        for each in managers:
            await _fill_one(tx, settings, each, seed)
        call = await writing(tx, settings, managers[0].id, "serve --demo")
        ids = [each.id for each in managers]
        key = await making.create(call, "demonstration", ids, ["read", "write"], KEY_LASTS)
    return managers[0].id, managers[0].name, key


async def _fill_one(tx: Transaction, settings: Settings, manager: PlanManager, seed: int) -> None:
    made = await store.insert(tx, manager.id, manager.name)
    if made is None:
        return
    call = Write(tx, manager.id, settings, Actor("system", None, "plankeeper serve --demo"))
    await record(call, "plan_manager.created", None, made)
    for resource, rows in records(manager.id, seed):
        report = await load(call, RESOURCES[resource], _file(rows), EXPLANATIONS, lambda _lines: None)
        if report.bad:
            raise ValueError(f"the demonstration's {resource} are not fit to import: {report.bad[:3]}")


def _file(rows: Iterable[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO("".join(json_text(row) + "\n" for row in rows).encode())
