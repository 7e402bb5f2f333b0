"""Headers and body of a webhook message (Standard Webhooks 1.0.0)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from plankeeper import __version__
from plankeeper.core.json import to_json
from plankeeper.events.event_types import redact
from plankeeper.events.schemas import Event
from plankeeper.webhooks.examples import example_change, example_resource
from plankeeper.webhooks.schemas import TEST_TYPE, PayloadFormat

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


Headers = list[tuple[str, str]]


def build_headers(message_id: str, timestamp: int, body: bytes, secrets: list[str]) -> Headers:
    """The headers of one attempt. `timestamp` is the time of the attempt in seconds since 1970."""
    return [
        ("content-type", "application/json"),
        ("user-agent", f"Plankeeper/{__version__}"),
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", sign_message(secrets, message_id, timestamp, body)),
    ]


def build_body(
    event: Event, plan_manager_id: UUID, payload_format: PayloadFormat, sent_type: str | None = None
) -> bytes:
    """The body of a message; in the format `full` with the resource after the write and the changed fields.

    `sent_type` is that of a test with the example of another type.
    """
    type_ = sent_type or event.type
    is_example = type_ != event.type
    resource = example_resource(type_.partition(".")[0]) if is_example else event.resource
    content: dict[str, object] = {"plan_manager_id": plan_manager_id, "resource": resource}
    if payload_format == "full" and is_example:
        content |= example_change(type_)
    elif payload_format == "full":
        shown = redact(event)
        content |= {"object": shown.data, "previous": shown.previous}
    message = {
        "type": type_,
        "timestamp": event.created_at,
        # A test is sent before the event has a position, and must be the same in each attempt.
        "sequence": None if event.type == TEST_TYPE else event.sequence,
        "actor": event.actor,
        "request_id": event.request_id,
        "data": content,
    }
    return to_json(message).encode()
