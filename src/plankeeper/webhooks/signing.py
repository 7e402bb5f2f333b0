"""Secrets and signatures of webhook messages (Standard Webhooks 1.0.0)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret, required by the standard
OLD_SECRET_GRACE_PERIOD = timedelta(hours=24)


def new_secret() -> str:
    """`whsec_` and the base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def validate_secret(secret: str) -> str | None:
    """The error message for an invalid secret; None for a valid one."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    is_valid = secret.startswith(SECRET_PREFIX) and 24 <= len(key) <= 64
    return None if is_valid else f"must be {SECRET_PREFIX} and the base64 of 24 to 64 bytes"


def sign_message(secret_keys: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret, separated by spaces."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_sign(each, content) for each in secret_keys)


def _sign(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
