"""Making, rotating and revoking keys: what the command line and the console do alike."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.api_keys import store
from plankeeper.api_keys.format import hash_key, new_key
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.database.client import Database
from plankeeper.events.recorder import record_event
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.settings import Settings

EXPIRY_WARNING_PERIOD = timedelta(days=14)


async def create(
    ctx: WriteContext,
    name: str,
    plan_manager_ids: Sequence[UUID],
    scopes: Sequence[str],
    lifetime: timedelta | None,
    rate_limit: int | None = None,
) -> str:
    """A new key with its grants; answers the key itself, which is nowhere kept. The plan managers must exist."""
    now, new_id = datetime.now(UTC), uuid7()
    key = ApiKey(
        id=new_id,
        name=name,
        last_four="",
        plan_managers=sorted(set(plan_manager_ids)),
        scopes=sorted(set(scopes)),
        created_by=ctx.actor.name or ctx.actor.kind,
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
        revoked_at=None,
        rate_limit=rate_limit,
        original_id=new_id,
        last_used_at=None,
    )
    secret = await _insert(ctx, key)
    await store.bump_version(ctx.tx)
    return secret


async def rotate(ctx: WriteContext, old_key: ApiKey, overlap: timedelta, lifetime: timedelta | None) -> str:
    """A new key with the grants of an old one, which lasts no longer than the overlap; answers the key itself.

    `old_key` is locked, and in use. Retries with an idempotency key go on under the new key.
    """
    now = datetime.now(UTC)
    secret = await _insert(
        ctx,
        msgspec.structs.replace(
            old_key,
            id=uuid7(),
            created_by=ctx.actor.name or ctx.actor.kind,
            created_at=now,
            expires_at=now + lifetime if lifetime else None,
            last_used_at=None,
        ),
    )
    expires_at = min(now + overlap, old_key.expires_at or now + overlap)
    await store.set_expiry(ctx.tx, old_key.id, expires_at)
    await store.bump_version(ctx.tx)
    # Told of even where the old key ends no earlier than it would have.
    previous = old_key if expires_at != old_key.expires_at else None
    await _record(ctx, "api_key.rotated", previous, msgspec.structs.replace(old_key, expires_at=expires_at))
    return secret


async def _insert(ctx: WriteContext, key: ApiKey) -> str:
    """Keep a key, told of as created; answers the key itself."""
    secret = new_key()
    key.last_four = secret[-4:]
    await store.insert(ctx.tx, key, hash_key(secret))
    await store.insert_plan_managers(ctx.tx, key.id, key.plan_managers)
    await _record(ctx, "api_key.created", None, key)
    return secret


async def record_expiry_warnings(db: Database, settings: Settings) -> None:
    """Tell once of each key that expires soon, by an event."""
    async with db.transaction() as tx:
        keys = await store.select_unwarned_for_update(tx, datetime.now(UTC) + EXPIRY_WARNING_PERIOD, 100)
        for key in keys:
            await _record(WriteContext(tx, key.id, settings, SYSTEM), "api_key.expiring", None, key)
        if keys:
            await store.mark_warned(tx, [key.id for key in keys])


async def revoke(ctx: WriteContext, key_id: UUID) -> ApiKey | None:
    """Revoke a key for good; every worker refuses it within a second. Null where there is none."""
    before = await store.select_for_update(ctx.tx, key_id)
    if before is None or before.revoked_at is not None:
        return before
    after = msgspec.structs.replace(before, revoked_at=datetime.now(UTC))
    await store.revoke(ctx.tx, key_id, after.revoked_at or datetime.now(UTC))
    await store.bump_version(ctx.tx)
    await _record(ctx, "api_key.revoked", before, after)
    return after


async def _record(ctx: WriteContext, type_: str, before: ApiKey | None, after: ApiKey) -> None:
    """A key's events stand once under each plan manager that it reaches, and name no other."""
    for plan_manager_id in after.plan_managers:
        ids = [plan_manager_id]
        previous = before and msgspec.structs.replace(before, plan_managers=ids)
        current = msgspec.structs.replace(after, plan_managers=ids)
        await record_event(replace(ctx, plan_manager_id=plan_manager_id), type_, previous, current)
