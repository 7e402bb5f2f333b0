"""Requests that may be sent again: the Idempotency-Key header."""

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from starlette.types import Scope

from plankeeper.database.client import Transaction
from plankeeper.http.auth import Grant
from plankeeper.http.errors import Invalid
from plankeeper.http.requests import Answer
from plankeeper.http.routing import Operation

_KEY = re.compile(rb"[\x21-\x7e]{1,255}")


class Retry(NamedTuple):
    """What a request is known by when it is sent again: whose it is, and a hash of what it asks for."""

    original_key_id: UUID
    path: str
    key: str
    request_hash: bytes


class Replays(Protocol):
    """Keeps answers in the transaction of the write."""

    async def replayed(self, tx: Transaction, plan_manager_id: UUID, retry: Retry) -> Answer | None: ...

    async def keep(self, tx: Transaction, plan_manager_id: UUID, retry: Retry, answer: Answer) -> None: ...


def retry_of(
    operation: Operation, grant: Grant, scope: Scope, headers: Mapping[bytes, bytes], body: bytes
) -> Retry | None:
    """The retry that a POST asks for, or null; raises Invalid."""
    sent = headers.get(b"idempotency-key")
    if sent is None or operation.method != "POST":
        return None
    if not _KEY.fullmatch(sent):
        raise Invalid(**{"Idempotency-Key": "must be 1 to 255 visible ASCII characters"})
    asked = hashlib.sha256(scope["query_string"] + b"\n" + body).digest()
    return Retry(grant.original_key_id, scope["path"], sent.decode(), asked)
