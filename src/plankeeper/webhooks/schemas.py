"""Schemas of webhook endpoints and deliveries."""

from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.events.event_types import EVENT_TYPE, EventType
from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import AwareDatetime, LongText, Text255, component

PayloadFormat = Annotated[
    Literal["thin", "full"],
    component("WebhookPayload", "`thin` messages name the resource, `full` messages also contain it."),
]
DeliveryStatus = Annotated[
    Literal["pending", "succeeded", "failed", "cancelled"],
    component(
        "DeliveryStatus",
        "`failed` after the last attempt, `cancelled` if the endpoint was paused or disabled before it.",
    ),
]
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
    """A URL that receives events."""

    id: UUID
    url: str
    description: str | None
    event_types: Annotated[list[str], Meta(description="`*`, every type of a kind (`participant.*`) or exact types.")]
    payload: Annotated[
        PayloadFormat, Meta(description="`thin`: kind and id of the resource; `full`: also the resource.")
    ]
    active: bool
    disabled_reason: Annotated[str | None, Meta(description="Why Plankeeper disabled the endpoint; null otherwise.")]
    created_at: AwareDatetime


class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint with its secret. No other response contains the secret."""

    secret: str


class WebhookEndpointRow(Struct, kw_only=True):
    """A row of the table of endpoints. The secrets are encrypted, with the id as the associated data."""

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
    """Convert a row to the resource that the API returns, without the secrets."""
    return msgspec.convert(row, WebhookEndpoint, from_attributes=True)


class WebhookEndpointCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a create."""

    url: Url
    description: LongText | None | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    payload: PayloadFormat | UnsetType = UNSET


class WebhookEndpointUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of an update. Omitted members keep their values."""

    url: Url | UnsetType = UNSET
    description: LongText | None | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    payload: PayloadFormat | UnsetType = UNSET
    active: Annotated[
        bool | UnsetType, Meta(description="`true` resumes a paused or disabled endpoint; `false` pauses it.")
    ] = UNSET


class ReplayRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a replay."""

    since: Annotated[AwareDatetime, Meta(description="Sends the events since this time again.")]


class ReplayResponse(Struct):
    """The number of events that a replay sends again."""

    events: int


class WebhookTestResponse(Struct):
    """The id of the event that a test sends."""

    event_id: UUID


class ReplayStart(Struct):
    """The start of a replay: the position before its first event, and the number of its events."""

    position: int
    events: int


class Attempt(Struct):
    """One attempt of a delivery."""

    at: AwareDatetime
    status_code: int | None
    error: str | None
    duration_ms: int


class WebhookDelivery(Struct):
    """One event for one endpoint, with the attempts to send it."""

    id: UUID
    webhook_endpoint_id: UUID
    event_id: UUID
    event_type: EventType
    status: DeliveryStatus
    attempts: list[Attempt]
    next_attempt_at: AwareDatetime | None
    created_at: AwareDatetime


class DeliveryListQuery(UuidListQuery):
    """Filters for the deliveries of an endpoint."""

    status: DeliveryStatus | UnsetType = UNSET
    event_type: Annotated[Text255, EVENT_TYPE] | UnsetType = UNSET


class DeliveryJob(Struct):
    """A claimed delivery with the values that the worker needs to send it. The secrets are encrypted."""

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
    request_id: str | None


class FanOutEndpoint(Struct):
    """An endpoint that a fan-out has locked, and the number of its deliveries that are due."""

    id: UUID
    event_types: list[str]
    last_position: int
    due: int


class DeliveryBacklog(Struct):
    """Pending deliveries: due ones of endpoints that don't fail, and all of endpoints that fail."""

    waiting: int
    lag_seconds: float
    failing: int
    failing_endpoints: int


class DeliveryUpdate(Struct):
    """The result of an attempt: the new status of the delivery, and the delay until the next attempt."""

    job: DeliveryJob
    status: DeliveryStatus
    attempt: Attempt
    delay: timedelta | None


class UnhealthyEndpoints(Struct):
    """How many endpoints of all plan managers get no webhooks because of failures."""

    failing: int
    disabled: int
    failing_since: datetime | None
