"""The key that encrypts the cursors of sorted lists. It is in the database, so that all servers use the same key."""

import hashlib

from plankeeper.database.client import Executor

GET_KEY = "select key from cursor_keys"


async def get_key(db: Executor) -> bytes:
    """The key: 32 bytes."""
    return hashlib.sha256((await db.one(str, GET_KEY)).encode()).digest()
