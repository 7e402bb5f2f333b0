"""Making and revoking keys: what the command line and the console do alike."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.api_keys import store
from plankeeper.api_keys.rules import hash_of, new_key
from plankeeper.api_keys.shapes import ApiKey
from plankeeper.edge.call import Write
from plankeeper.events.record import record


async def create(
    call: Write, name: str, plan_manager_ids: Sequence[UUID], scopes: Sequence[str], lasts: timedelta | None
) -> str:
    """A new key with its grants; answers the key itself, which is nowhere kept. The plan managers must exist."""
    secret = new_key()
    now = datetime.now(UTC)
    key = ApiKey(
        id=uuid7(), name=name, last_four=secret[-4:], plan_managers=sorted(set(plan_manager_ids)),
        scopes=sorted(set(scopes)), created_by=call.actor.name or call.actor.kind, created_at=now,
        expires_at=now + lasts if lasts else None, revoked_at=None,
    )  # fmt: skip
    await store.insert(call.tx, key, hash_of(secret))
    await store.allow(call.tx, key.id, key.plan_managers)
    await store.touch(call.tx)
    await _record(call, "api_key.created", None, key)
    return secret


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
    """A key's events stand once under each plan manager that it reaches."""
    for plan_manager_id in after.plan_managers:
        await record(replace(call, plan_manager_id=plan_manager_id), type_, before, after)
