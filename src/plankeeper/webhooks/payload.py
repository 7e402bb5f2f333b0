"""A delivery as it goes over the wire (Standard Webhooks 1.0.0)."""

from datetime import datetime
from uuid import UUID

from msgspec import Raw

from plankeeper import __version__
from plankeeper.http.schemas import json_text
from plankeeper.webhooks.policy import signature
from plankeeper.webhooks.schemas import Payload

Headers = list[tuple[str, str]]


def headers_of(message_id: str, timestamp: int, body: bytes, secrets: list[str]) -> Headers:
    """The headers of one attempt: `timestamp` is its moment, in seconds since 1970."""
    return [
        ("content-type", "application/json"),
        ("user-agent", f"Plankeeper/{__version__}"),
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signature(secrets, message_id, timestamp, body)),
    ]


def body_of(
    type_: str, at: datetime, plan_manager_id: UUID, kind: str, id_: str, payload: Payload, data: Raw | None
) -> bytes:
    """What an event's message says: which resource, and in full how it was after the write."""
    about: dict[str, object] = {"plan_manager_id": plan_manager_id, "resource": {"kind": kind, "id": id_}}
    if payload == "full":
        about["object"] = data
    return json_text({"type": type_, "timestamp": at, "data": about}).encode()
