"""Restored databases: nothing is claimed or paid until an owner has confirmed what was since the backup.

A backup doesn't have the claim batches and payment runs that were made after it. Without this check the office would
claim the same lines again, pay them again, and use the same numbers again.
"""

import re
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.resources.office_settings import restore_store
from plankeeper.resources.office_settings.number_store import PREFIXES, NumberKind, raise_number

_MAX_NUMBER = 10**9


class ConfirmedRestore(Struct):
    """What an owner has confirmed: the last numbers, or null if none was used since the backup."""

    id: UUID  # of the plan manager
    restored_at: datetime
    claim_batch: int | None
    payment_run: int | None
    fee_taking: int | None


async def require_confirmed(db: Executor, plan_manager_id: UUID) -> None:
    """Raise DomainError `invalid_transition` if nothing can be claimed or paid yet."""
    found = await restore_store.find_open(db, plan_manager_id)
    if found:
        raise DomainError(
            "invalid_transition",
            f"The database was restored from a backup at {found.restored_at:%Y-%m-%dT%H:%M:%SZ}. An owner must first"
            " confirm in the console what was claimed and paid since the backup (Settings, After a restore).",
        )


async def confirm(ctx: WriteContext, at: datetime, numbers: dict[NumberKind, str]) -> bool:
    """Allow claims and payments again. Returns false if there is no restore to confirm.

    `numbers` are the last ones that the office has used, such as `B000123`; an empty text says that none was used since
    the backup. The next batch, run and taking get higher ones.
    """
    last = _parse_numbers(numbers)
    by = ctx.actor.display_name
    confirmed = await restore_store.confirm(ctx.tx, ctx.plan_manager_id, at, by)
    if not confirmed:
        return False
    for kind, number in last.items():
        await raise_number(ctx.tx, ctx.plan_manager_id, kind, number)
    found = (last.get("claim_batch"), last.get("payment_run"), last.get("fee_taking"))
    after = ConfirmedRestore(ctx.plan_manager_id, max(each.restored_at for each in confirmed), *found)
    await record_event(ctx, "plan_manager.restore_confirmed", None, after)
    return True


def _parse_numbers(numbers: dict[NumberKind, str]) -> dict[NumberKind, int]:
    found: dict[NumberKind, int] = {}
    errors: list[FieldError] = []
    for kind, text in numbers.items():
        match = re.fullmatch(rf"{PREFIXES[kind]}?\s*([0-9]{{1,10}})", text.strip(), re.IGNORECASE)
        if match and int(match[1]) < _MAX_NUMBER:
            found[kind] = int(match[1])
        elif text.strip():
            errors.append(FieldError(kind, f"must be a number such as {PREFIXES[kind]}000123", "invalid_format"))
    if errors:
        raise ValidationError(*errors)
    return found
