"""Keeps a form whose session ended before it was sent, until the same person has signed in again.

A form is encrypted with a key that only its address contains. The database has a hash of it, so that nobody can read
kept forms there. The address works for an hour, and only for the accounts that the browser was signed in to.
"""

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from plankeeper.access.policy import DEVICE_LIFETIME
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.console import draft_store
from plankeeper.database.client import Database, Executor


class Draft(Struct, array_like=True):
    """The fields of a form, and the plan manager that was selected, if the session is known."""

    fields: list[tuple[str, str]]
    plan_manager_id: UUID | None


LIFETIME = timedelta(hours=1)
MAX_DRAFTS = 10  # of one account
_NONCE_BYTES = 12

_decode = msgspec.msgpack.Decoder(Draft).decode


async def save(
    db: Database, session_token: str, device_token: str, path: str, fields: Sequence[tuple[str, str]]
) -> str | None:
    """Keep the fields of the form on a page: the token with which it is found, or None for an unknown browser."""
    session = await draft_store.get_ended_session(db, hash_token(session_token)) if session_token else None
    now = datetime.now(UTC)
    if session:
        account_ids = [session.account_id]
    elif device_token:
        account_ids = await draft_store.list_device_accounts(db, hash_token(device_token), now - DEVICE_LIFETIME)
    else:
        account_ids = []
    if not account_ids:
        return None
    token = new_token()
    draft = Draft([*fields], session.plan_manager_id if session else None)
    async with db.transaction() as tx:
        await draft_store.insert(tx, hash_token(token), account_ids, _seal(token, path, draft), now)
        await draft_store.delete_old(tx, now - LIFETIME, account_ids, MAX_DRAFTS)
    return token


async def get(db: Executor, token: str, account_id: UUID, path: str) -> Draft | None:
    """The form that was kept for a page, if it may belong to the account."""
    sealed = await draft_store.get(db, hash_token(token), account_id, datetime.now(UTC) - LIFETIME)
    return _open(token, path, sealed) if sealed else None


async def purge(db: Executor) -> None:
    """Delete all expired forms."""
    await draft_store.delete_old(db, datetime.now(UTC) - LIFETIME, [], MAX_DRAFTS)


def _seal(token: str, path: str, draft: Draft) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(_key(token)).encrypt(nonce, msgspec.msgpack.encode(draft), path.encode())


def _open(token: str, path: str, sealed: bytes) -> Draft | None:
    """None for a form of another page."""
    try:
        return _decode(AESGCM(_key(token)).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], path.encode()))
    except InvalidTag:
        return None


def _key(token: str) -> bytes:
    return hashlib.sha256(b"form draft:" + token.encode()).digest()
