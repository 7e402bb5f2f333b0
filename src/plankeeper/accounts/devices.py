"""Known devices: browsers that completed a sign-in. Failures elsewhere don't delay a sign-in on a known device.

A cookie holds a random token, and the database its hash for each account. The token changes with each sign-in, so that
a token that was planted or copied before is worth nothing after.
"""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.accounts import store
from plankeeper.accounts.policy import DEVICE_LIFETIME, MAX_DEVICES
from plankeeper.accounts.tokens import hash_token, new_token
from plankeeper.database.client import Executor, Transaction


async def is_known(db: Executor, email: str | None, token: str) -> bool:
    """Whether the browser with a token has completed a sign-in to the email's account, or to any if it is None."""
    if not token:
        return False
    return await store.has_device(db, email, hash_token(token), datetime.now(UTC) - DEVICE_LIFETIME)


async def remember(tx: Transaction, account_id: UUID, token: str) -> str:
    """Remember the browser of a complete sign-in, and return its new token, also for its other accounts."""
    now, new = datetime.now(UTC), new_token()
    if token:
        await store.replace_device_token(tx, hash_token(token), hash_token(new))
    await store.upsert_device(tx, account_id, hash_token(new), now)
    await store.delete_old_devices(tx, account_id, now - DEVICE_LIFETIME, MAX_DEVICES)
    return new
