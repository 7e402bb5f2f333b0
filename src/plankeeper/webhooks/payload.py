"""Headers and body of a webhook message (Standard Webhooks 1.0.0)."""

from datetime import datetime
from uuid import UUID

from msgspec import Raw

from plankeeper import __version__
from plankeeper.events.redaction import redact_data
from plankeeper.http.json import to_json
from plankeeper.webhooks.schemas import PayloadFormat
from plankeeper.webhooks.signing import sign_message

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
    event_type: str,
    created_at: datetime,
    plan_manager_id: UUID,
    resource_kind: str,
    resource_id: str,
    payload_format: PayloadFormat,
    data: Raw | None,
) -> bytes:
    """The body of a message: the resource's kind and id; in the format `full` also the resource after the write."""
    content: dict[str, object] = {
        "plan_manager_id": plan_manager_id,
        "resource": {"kind": resource_kind, "id": resource_id},
    }
    if payload_format == "full":
        content["object"] = redact_data(data) if resource_kind == "account" else data
    return to_json({"type": event_type, "timestamp": created_at, "data": content}).encode()
