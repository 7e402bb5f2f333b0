"""Demonstration data: made up, and brought in through the same import as everybody's."""

import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.accounts import member_store, members, password_reset
from plankeeper.accounts import store as accounts
from plankeeper.accounts.schemas import AccountShown
from plankeeper.api_keys import service
from plankeeper.cli.context import writing
from plankeeper.database.client import Database, Transaction
from plankeeper.demo import PlanManager, plan_managers, records
from plankeeper.events.recorder import record
from plankeeper.http.context import Actor, Write, found
from plankeeper.http.schemas import json_text
from plankeeper.import_export.constraint_errors import EXPLANATIONS
from plankeeper.import_export.importer import load
from plankeeper.import_export.registry import RESOURCES
from plankeeper.plan_managers import store
from plankeeper.settings import Settings

KEY_LASTS = timedelta(days=30)
COMMAND = "serve --demo"
EMAIL = "demo@plankeeper.example"


class Demonstration(NamedTuple):
    """The first plan manager of the demonstration, and the ways in."""

    plan_manager_id: UUID
    name: str
    key: str
    email: str
    password: str


async def fill(db: Database, settings: Settings, seed: int = 1) -> Demonstration:
    """Fill in the demonstration once; make a key for it, and a sign-in or a new password for that."""
    managers = plan_managers()
    async with db.transaction() as tx:
        for each in managers:
            await _fill_one(tx, settings, each, seed)
        call = await writing(tx, settings, managers[0].id, COMMAND)
        ids = [each.id for each in managers]
        key = await service.create(call, "demonstration", ids, ["read", "write"], KEY_LASTS)
        password = await _sign_in(tx, settings, ids)
    return Demonstration(managers[0].id, managers[0].name, key, EMAIL, password)


async def _sign_in(tx: Transaction, settings: Settings, ids: Sequence[UUID]) -> str:
    """The new password of an account that owns the demonstration's plan managers."""
    password = password_reset.new_password()
    calls = [await writing(tx, settings, id_, COMMAND) for id_ in ids]
    account = await accounts.by_email(tx, EMAIL)
    if account is None:
        await members.create(calls[0], EMAIL, "Alex Morgan", "owner", password)
        account = found(await accounts.by_email(tx, EMAIL))
    else:
        await password_reset.reset(tx, settings, account, password, COMMAND)
    for call in calls:
        if await member_store.insert(tx, call.plan_manager_id, account.id, "owner", datetime.now(UTC)):
            joined = AccountShown(account.id, account.email, account.name, "owner")
            await record(call, "account.joined", None, joined)
    return password


async def _fill_one(tx: Transaction, settings: Settings, manager: PlanManager, seed: int) -> None:
    made = await store.insert(tx, manager.id, manager.name)
    if made is None:
        return
    call = Write(tx, manager.id, settings, Actor("system", None, f"plankeeper {COMMAND}"))
    await record(call, "plan_manager.created", None, made)
    for resource, rows in records(manager.id, seed):
        report = await load(call, RESOURCES[resource], _file(rows), EXPLANATIONS, lambda _lines: None)
        if report.bad:
            raise ValueError(f"the demonstration's {resource} are not fit to import: {report.bad[:3]}")


def _file(rows: Iterable[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO("".join(json_text(row) + "\n" for row in rows).encode())
