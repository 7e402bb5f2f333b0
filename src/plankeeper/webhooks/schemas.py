"""Webhook endpoints and deliveries over the wire, and as they are kept."""

from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import AwareDatetime, LongText, Text255

PayloadFormat = Literal["thin", "full"]
DeliveryStatus = Literal["pending", "succeeded", "failed", "cancelled"]
Url = Annotated[str, Meta(min_length=1, max_length=2000)]
EventTypePattern = Annotated[
    str,
    Meta(
        pattern=r"^(\*|[a-z_]{1,50}\.(\*|[a-z_]{1,50}))$",
        extra={"message": "must be an event type such as participant.created, participant.* or *"},
    ),
]
EventTypes = Annotated[list[EventTypePattern], Meta(min_length=1, max_length=50)]


class WebhookEndpoint(Struct):
    """An address that events are sent to."""

    id: UUID
    url: str
    description: str | None
    event_types: Annotated[list[str], Meta(description="`*`, all of a kind (`participant.*`), or exact types.")]
    payload: Annotated[PayloadFormat, Meta(description="`thin`: which resource; `full`: the resource itself.")]
    active: bool
    disabled_reason: Annotated[str | None, Meta(description="Why Plankeeper stopped sending; null otherwise.")]
    created_at: AwareDatetime


class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint with its secret, which is shown this once."""

    secret: str


class WebhookEndpointRow(Struct, kw_only=True):
    """An endpoint as it is kept."""

    id: UUID
    url: str
    description: str | None = None
    event_types: list[str]
    payload: PayloadFormat = "thin"
    active: bool = True
    disabled_reason: str | None = None
    created_at: AwareDatetime
    secret: str
    old_secret: str | None = None
    old_secret_until: AwareDatetime | None = None
    failing_since: AwareDatetime | None = None
    last_position: int = 0


def without_secrets(row: WebhookEndpointRow) -> WebhookEndpoint:
    """An endpoint as anybody of the plan manager may see it: without its secrets."""
    return msgspec.convert(row, WebhookEndpoint, from_attributes=True)


class WebhookEndpointCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a create takes."""

    url: Url
    description: LongText | None | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    payload: PayloadFormat | UnsetType = UNSET


class WebhookEndpointUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """What an update takes: what is absent stays as it is."""

    url: Url | UnsetType = UNSET
    description: LongText | None | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    payload: PayloadFormat | UnsetType = UNSET
    active: Annotated[
        bool | UnsetType, Meta(description="`true` starts again, also what Plankeeper stopped; `false` pauses.")
    ] = UNSET


class ReplayRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a replay takes."""

    since: Annotated[AwareDatetime, Meta(description="Events from this moment on are sent again.")]


class ReplayResponse(Struct):
    """How many events a replay sends again."""

    events: int


class WebhookTestResponse(Struct):
    """The event that a test sends."""

    event_id: UUID


class ReplayStart(Struct):
    """Where a replay begins: behind a position of the feed, with so many events."""

    position: int
    events: int


class Attempt(Struct):
    """One attempt of a delivery."""

    at: AwareDatetime
    status_code: int | None
    error: str | None
    duration_ms: int


class WebhookDelivery(Struct):
    """One event on its way to one endpoint."""

    id: UUID
    webhook_endpoint_id: UUID
    event_id: UUID
    event_type: str
    status: DeliveryStatus
    attempts: list[Attempt]
    next_attempt_at: AwareDatetime | None
    created_at: AwareDatetime


class DeliveryListQuery(UuidListQuery):
    """Filters of the deliveries of an endpoint."""

    status: DeliveryStatus | UnsetType = UNSET
    event_type: Text255 | UnsetType = UNSET


class DeliveryKey(Struct):
    """A delivery that a worker has claimed."""

    plan_manager_id: UUID
    id: UUID


class DeliveryJob(Struct):
    """A delivery that a worker is to send now: all that it needs to know."""

    plan_manager_id: UUID
    id: UUID
    attempt_count: int  # attempts before this one
    event_id: UUID
    event_type: str
    event_created_at: datetime
    resource_kind: str
    resource_id: str
    data: Raw | None
    webhook_endpoint_id: UUID
    url: str
    payload: PayloadFormat
    secret: str
    old_secret: str | None


class FanOutProgress(Struct):
    """A plan manager whose endpoints may be behind the feed; `has_moved`: some of them went on just now."""

    plan_manager_id: UUID
    has_moved: bool


class DeliveryUpdate(Struct):
    """What came of an attempt: the delivery's status from now on, and how long its next attempt waits."""

    job: DeliveryJob
    status: DeliveryStatus
    attempt: Attempt
    delay: timedelta | None
