"""Whose password it is: every attempt counts as a failure until it proves to be none, wherever it is made."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plankeeper.accounts import passwords, store
from plankeeper.accounts.audit import Origin, tell
from plankeeper.accounts.policy import FORGOTTEN_AFTER, is_locked, wait_after
from plankeeper.accounts.schemas import Account, Failures, Refused
from plankeeper.database.client import Database, Transaction
from plankeeper.settings import Settings

# A wrong attempt takes as long as this at least: its time does not tell whether the email has an account.
WRONG_TAKES = 0.25


class Proof(NamedTuple):
    """Whose password was right, and what had been counted as a failure before that was known."""

    account: Account
    counted: Failures | None


async def prove(db: Database, settings: Settings, email: str, password: str, origin: Origin) -> Proof | Refused:
    """Whose email and password these are. It is counted as a failure first, so that many at once are not free."""
    began = time.monotonic()
    async with db.transaction() as tx:
        await store.purge_failures(tx, datetime.now(UTC) - FORGOTTEN_AFTER)
        counted = await count(tx, email, datetime.now(UTC))
    if isinstance(counted, Refused):
        return counted
    account = await store.by_email(db, email)
    if await passwords.verify(account and account.password_hash, password) and account:
        return Proof(account, counted)
    refused = Refused(wait_after(counted.failures))
    if account:
        async with db.transaction() as tx:
            refused = await fail(tx, settings, account, counted, origin)
    await asyncio.sleep(began + WRONG_TAKES - time.monotonic())
    return refused


async def count(tx: Transaction, email: str, now: datetime) -> Failures | Refused:
    """Count an attempt as a failure, until it proves to be none; refused while an earlier one must be waited for."""
    before = await store.failures_for_update(tx, email, now)
    if before.locked_until > now:
        return Refused((before.locked_until - now).total_seconds())
    failures = 1 if now - before.failed_at > FORGOTTEN_AFTER else before.failures + 1
    counted = Failures(failures, now, now + timedelta(seconds=wait_after(failures)))
    await store.count_failure(tx, email, counted)
    return counted


async def fail(tx: Transaction, settings: Settings, account: Account, counted: Failures, origin: Origin) -> Refused:
    """Tell of a failure that was counted."""
    await tell(tx, settings, account, "account.sign_in_failed", origin)
    if is_locked(counted.failures):
        await tell(tx, settings, account, "account.locked", origin)
    return Refused(wait_after(counted.failures))
