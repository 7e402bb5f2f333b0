"""Making, rotating and revoking keys: what the command line and the console do alike."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.api_keys import store
from plankeeper.api_keys.format import hash_of, new_key
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.database.client import Database
from plankeeper.events.recorder import record
from plankeeper.http.context import SYSTEM, Write
from plankeeper.settings import Settings

EXPIRES_SOON = timedelta(days=14)


async def create(
    call: Write,
    name: str,
    plan_manager_ids: Sequence[UUID],
    scopes: Sequence[str],
    lasts: timedelta | None,
    rate_limit: int | None = None,
) -> str:
    """A new key with its grants; answers the key itself, which is nowhere kept. The plan managers must exist."""
    now, new_id = datetime.now(UTC), uuid7()
    key = ApiKey(
        id=new_id, name=name, last_four="", plan_managers=sorted(set(plan_manager_ids)),
        scopes=sorted(set(scopes)), created_by=call.actor.name or call.actor.kind, created_at=now,
        expires_at=now + lasts if lasts else None, revoked_at=None, rate_limit=rate_limit, original_id=new_id,
        last_used_at=None,
    )  # fmt: skip
    secret = await _keep(call, key)
    await store.touch(call.tx)
    return secret


async def rotate(call: Write, old: ApiKey, overlap: timedelta, lasts: timedelta | None) -> str:
    """A new key with the grants of an old one, which lasts no longer than the overlap; answers the key itself.

    `old` is locked, and in use. Retries with an idempotency key go on under the new key.
    """
    now = datetime.now(UTC)
    secret = await _keep(
        call,
        msgspec.structs.replace(
            old,
            id=uuid7(),
            created_by=call.actor.name or call.actor.kind,
            created_at=now,
            expires_at=now + lasts if lasts else None,
            last_used_at=None,
        ),
    )
    ends = min(now + overlap, old.expires_at or now + overlap)
    await store.expire(call.tx, old.id, ends)
    await store.touch(call.tx)
    # Told of even where the old key ends no earlier than it would have.
    changed = old if ends != old.expires_at else None
    await _record(call, "api_key.rotated", changed, msgspec.structs.replace(old, expires_at=ends))
    return secret


async def _keep(call: Write, key: ApiKey) -> str:
    """Keep a key, told of as created; answers the key itself."""
    secret = new_key()
    key.last_four = secret[-4:]
    await store.insert(call.tx, key, hash_of(secret))
    await store.allow(call.tx, key.id, key.plan_managers)
    await _record(call, "api_key.created", None, key)
    return secret


async def warn(db: Database, settings: Settings) -> None:
    """Tell once of each key that expires soon, by an event."""
    async with db.transaction() as tx:
        keys = await store.fetch_unwarned(tx, datetime.now(UTC) + EXPIRES_SOON, 100)
        for key in keys:
            await _record(Write(tx, key.id, settings, SYSTEM), "api_key.expiring", None, key)
        if keys:
            await store.warned(tx, [key.id for key in keys])


async def revoke(call: Write, key_id: UUID) -> ApiKey | None:
    """Revoke a key for good; every worker refuses it within a second. Null where there is none."""
    before = await store.fetch_for_update(call.tx, key_id)
    if before is None or before.revoked_at is not None:
        return before
    after = msgspec.structs.replace(before, revoked_at=datetime.now(UTC))
    await store.revoke(call.tx, key_id, after.revoked_at or datetime.now(UTC))
    await store.touch(call.tx)
    await _record(call, "api_key.revoked", before, after)
    return after


async def _record(call: Write, type_: str, before: ApiKey | None, after: ApiKey) -> None:
    """A key's events stand once under each plan manager that it reaches, and name no other."""
    for plan_manager_id in after.plan_managers:
        own = [plan_manager_id]
        was = before and msgspec.structs.replace(before, plan_managers=own)
        now = msgspec.structs.replace(after, plan_managers=own)
        await record(replace(call, plan_manager_id=plan_manager_id), type_, was, now)
