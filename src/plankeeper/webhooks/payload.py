"""Headers and body of a webhook message (Standard Webhooks 1.0.0)."""

from uuid import UUID

from plankeeper import __version__
from plankeeper.events.redaction import redact
from plankeeper.events.schemas import Event
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


def build_body(event: Event, plan_manager_id: UUID, payload_format: PayloadFormat) -> bytes:
    """The body of a message; in the format `full` with the resource after the write and what has changed."""
    content: dict[str, object] = {"plan_manager_id": plan_manager_id, "resource": event.resource}
    if payload_format == "full":
        shown = redact(event)
        content |= {"object": shown.data, "previous": shown.previous}
    message = {
        "type": event.type,
        "timestamp": event.created_at,
        # A test is sent before the event has a position, and must be the same in each attempt.
        "sequence": None if event.type == "webhook_endpoint.tested" else event.sequence,
        "actor": event.actor,
        "request_id": event.request_id,
        "data": content,
    }
    return to_json(message).encode()
