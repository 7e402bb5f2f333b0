"""Headers and body of a webhook message (Standard Webhooks 1.0.0)."""

from uuid import UUID

from plankeeper import __version__
from plankeeper.core.json import to_json
from plankeeper.events.redaction import redact
from plankeeper.events.schemas import Event
from plankeeper.webhooks.examples import example_change, example_resource
from plankeeper.webhooks.schemas import TEST_TYPE, PayloadFormat
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
    event: Event, plan_manager_id: UUID, payload_format: PayloadFormat, sent_type: str | None = None
) -> bytes:
    """The body of a message; in the format `full` with the resource after the write and what has changed.

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
