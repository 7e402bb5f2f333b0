"""Operations on API keys that the command line and the console share, and who is responsible for what a key does."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import store
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.api_keys.mails import KeyExpiringMail
from plankeeper.access.api_keys.schemas import ApiKey, ApiKeyState
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction
from plankeeper.events.recorder import record_event
from plankeeper.mail import store as mail_store

EXPIRY_WARNING_PERIOD = timedelta(days=14)


def key_state(key: ApiKey) -> ApiKeyState:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= datetime.now(UTC) else "active"


async def create(
    ctx: WriteContext,
    name: str,
    plan_manager_ids: Sequence[UUID],
    scopes: Sequence[str],
    lifetime: timedelta | None,
    rate_limit: int | None = None,
) -> str:
    """Create a key and return its secret, which isn't stored. The plan managers must exist."""
    now, new_id = datetime.now(UTC), uuid7()
    key = ApiKey(
        id=new_id,
        name=name,
        last_four="",
        plan_managers=sorted(set(plan_manager_ids)),
        scopes=sorted(set(scopes)),
        created_by=ctx.actor.display_name,
        created_by_account_id=ctx.actor.account_id,
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


async def rotate(ctx: WriteContext, old_key: ApiKey, overlap: timedelta, new_expiry: datetime | None) -> str:
    """Replace a key by a new one with the same access and return its secret. The old key expires after the overlap.

    `new_expiry` is that of the new key, or null if it never expires. `old_key` is active, and its row is locked.
    Idempotency keys used with the old key stay valid with the new one.
    """
    now = datetime.now(UTC)
    secret = await _insert(
        ctx,
        msgspec.structs.replace(
            old_key,
            id=uuid7(),
            created_by=ctx.actor.display_name,
            created_by_account_id=ctx.actor.account_id,
            created_at=now,
            expires_at=new_expiry,
            last_used_at=None,
        ),
    )
    expires_at = min(now + overlap, old_key.expires_at or now + overlap)
    await store.set_expiry(ctx.tx, old_key.id, expires_at)
    await store.bump_version(ctx.tx)
    # The event is recorded even if the old key's expiry stays as it was.
    previous = old_key if expires_at != old_key.expires_at else None
    await _record(ctx, "api_key.rotated", previous, msgspec.structs.replace(old_key, expires_at=expires_at))
    return secret


async def _insert(ctx: WriteContext, key: ApiKey) -> str:
    """Insert a key, record its event and return its secret."""
    secret = new_key()
    key.last_four = secret[-4:]
    await store.insert(ctx.tx, key, hash_token(secret))
    await store.insert_plan_managers(ctx.tx, key.id, key.plan_managers)
    await _record(ctx, "api_key.created", None, key)
    return secret


async def record_expiry_warnings(db: Database, settings: Settings) -> None:
    """Record an event for each key that expires soon, once, and notify the owners of its plan managers."""
    async with db.transaction() as tx:
        keys = await store.select_unwarned_for_update(tx, datetime.now(UTC) + EXPIRY_WARNING_PERIOD, 100)
        for key in keys:
            await _record(WriteContext(tx, key.id, settings, SYSTEM), "api_key.expiring", None, key)
            if settings.smtp_server:
                await _mail_owners(tx, key)
        if keys:
            await store.mark_warned(tx, [key.id for key in keys])


async def _mail_owners(tx: Transaction, key: ApiKey) -> None:
    now = datetime.now(UTC)
    for plan_manager_id in key.plan_managers:
        mail = KeyExpiringMail(plan_manager_id, key.name, key.last_four, key.expires_at or now)
        await mail_store.insert_for_owners(tx, mail, now)


async def revoke(ctx: WriteContext, key_id: UUID) -> ApiKey | None:
    """Revoke a key permanently; None if it doesn't exist. Every worker rejects it within a second."""
    before = await store.select_for_update(ctx.tx, key_id)
    if before is None or before.revoked_at is not None:
        return before
    now = datetime.now(UTC)
    after = msgspec.structs.replace(before, revoked_at=now)
    await store.revoke(ctx.tx, key_id, now)
    await store.bump_version(ctx.tx)
    await _record(ctx, "api_key.revoked", before, after)
    return after


async def remove_plan_manager(ctx: WriteContext, key_ids: Iterable[UUID]) -> list[ApiKey]:
    """Remove the context's plan manager from keys, and return them as they are afterwards.

    This requires no rights for a key's other plan managers. A key without any plan manager left is revoked. Keys that
    are revoked or have no access to the plan manager are skipped.
    """
    changed = [await _remove_plan_manager(ctx, key_id) for key_id in sorted(key_ids)]
    await store.bump_version(ctx.tx)
    return [key for key in changed if key]


async def _remove_plan_manager(ctx: WriteContext, key_id: UUID) -> ApiKey | None:
    key = await store.select_for_update(ctx.tx, key_id)
    if key is None or key.revoked_at is not None or ctx.plan_manager_id not in key.plan_managers:
        return None
    now, others = datetime.now(UTC), [each for each in key.plan_managers if each != ctx.plan_manager_id]
    await store.delete_plan_manager(ctx.tx, ctx.plan_manager_id, key_id)
    # The event doesn't name the other plan managers.
    before = msgspec.structs.replace(key, plan_managers=[ctx.plan_manager_id])
    removed = msgspec.structs.replace(key, plan_managers=[])
    await record_event(ctx, "api_key.plan_manager_removed", before, removed)
    if not others:
        await store.revoke(ctx.tx, key_id, now)
        await record_event(ctx, "api_key.revoked", removed, msgspec.structs.replace(removed, revoked_at=now))
    return msgspec.structs.replace(key, plan_managers=others, revoked_at=None if others else now)


async def _record(ctx: WriteContext, type_: str, before: ApiKey | None, after: ApiKey) -> None:
    """Record an event once under each of the key's plan managers, without naming the others."""
    for plan_manager_id in after.plan_managers:
        ids = [plan_manager_id]
        previous = before and msgspec.structs.replace(before, plan_managers=ids)
        current = msgspec.structs.replace(after, plan_managers=ids)
        await record_event(replace(ctx, plan_manager_id=plan_manager_id), type_, previous, current)


async def responsible_account(ctx: WriteContext) -> UUID | None:
    """The account of the person, or of the person who made the API key; null for the operator."""
    if ctx.actor.kind == "api_key" and ctx.actor.id:
        return await store.get_creator(ctx.tx, UUID(ctx.actor.id))
    return ctx.actor.account_id
