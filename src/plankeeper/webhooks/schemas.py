"""Schemas of webhook endpoints and deliveries."""

import codecs
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import (
    AwareDatetime,
    LongText,
    Text255,
    UpdatedAt,
    UrlText,
    UuidText,
    component,
)
from plankeeper.core.lists import (
    MAX_ENUM_VALUES,
    CreatedSince,
    CreatedUntil,
    CursorListQuery,
    DefaultSort,
    ResourceListQuery,
)
from plankeeper.events.event_types import EVENT_TYPE
from plankeeper.events.schemas import Event

MAX_BODY_BYTES = 1024  # of a response


class AttemptDetail(Struct):
    """The headers of an attempt and the beginning of the response's body, until an erasure deletes them."""

    attempt: int  # its number, from 1
    request_headers: dict[str, str]
    response_body: str | None  # None without a response of a public address
    is_truncated: bool = False  # whether the body may be longer


def build_detail(
    attempt: int, request_headers: Sequence[tuple[str, str]], status_code: int | None, response_body: bytes | None
) -> AttemptDetail:
    body = None if status_code is None or response_body is None else readable_text(response_body)
    return AttemptDetail(attempt, dict(request_headers), body, len(response_body or b"") >= MAX_BODY_BYTES)


def readable_text(content: bytes) -> str:
    r"""The beginning of a response as text. Bytes that aren't UTF-8 and characters that aren't shown become `\xff`.

    Such characters could change how the text around them is read, and PostgreSQL stores no NUL.
    """
    # A character that is cut off at the end is left out.
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content)
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text.replace("\r\n", "\n")
    )


TEST_TYPE = "webhook_endpoint.tested"  # sent only to the tested endpoint

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
    component("EventTypePattern", "`*` for all event types, all of a kind such as `participant.*`, or an exact type."),
]
EventTypes = Annotated[list[EventTypePattern], Meta(min_length=1, max_length=50)]


class WebhookEndpoint(Struct):
    """A URL that receives messages about events."""

    id: Annotated[UUID, Meta(description="The endpoint's UUID.")]
    url: Annotated[UrlText, Meta(description="Where messages are sent.")]
    description: Annotated[str | None, Meta(description="Free text, or null.")]
    event_types: Annotated[
        list[str],
        Meta(description="`*` for all (the default), all of a kind such as `participant.*`, or exact types."),
    ]
    payload: Annotated[
        PayloadFormat,
        Meta(description="`thin` (the default): only which resource changed. `full`: also the resource itself."),
    ]
    active: Annotated[bool, Meta(description="Whether messages are sent.")]
    disabled_reason: Annotated[str | None, Meta(description="Why Plankeeper stopped sending; otherwise null.")]
    created_at: Annotated[AwareDatetime, Meta(description="When the endpoint was created.")]
    updated_at: UpdatedAt


class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint with its secret. No other response contains the secret."""

    secret: Annotated[
        str,
        Meta(
            description="The key for the signatures. Only the responses to creating an endpoint and to rotating its"
            " secret contain it."
        ),
    ]


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
    updated_at: AwareDatetime
    secret: str
    old_secret: str | None = None
    old_secret_until: AwareDatetime | None = None
    failing_since: AwareDatetime | None = None
    last_position: int = 0


def without_secrets(row: WebhookEndpointRow) -> WebhookEndpoint:
    """Convert a row to the resource that the API returns, without the secrets."""
    return msgspec.convert(row, WebhookEndpoint, from_attributes=True)


class _WebhookEndpointFields(Struct, forbid_unknown_fields=True, kw_only=True):
    description: LongText | None | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    payload: PayloadFormat | UnsetType = UNSET
    active: Annotated[
        bool | UnsetType, Meta(description="`true` resumes a paused or disabled endpoint. `false` pauses it.")
    ] = UNSET


class WebhookEndpointCreate(_WebhookEndpointFields):
    """A new webhook endpoint."""

    url: Url


class WebhookEndpointUpdate(_WebhookEndpointFields):
    """The changes of a webhook endpoint. Omitted fields keep their values."""

    url: Url | UnsetType = UNSET


class ReplayRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """The start of a replay."""

    since: Annotated[
        AwareDatetime, Meta(description="The first event that is sent again is the first one since this datetime.")
    ]


class ReplayResponse(Struct):
    """The number of events that a replay sends again."""

    events: Annotated[int, Meta(description="How many events are sent again.")]


class WebhookTestRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """The event type of a test."""

    type: Annotated[
        Annotated[Text255, EVENT_TYPE] | UnsetType,
        Meta(
            description="The event type whose documented example is sent: `webhook_endpoint.tested` by default. Types"
            " that are never sent are rejected."
        ),
    ] = UNSET


class WebhookTestResponse(Struct):
    """The id of the event that a test sends."""

    event_id: Annotated[UUID, Meta(description="The UUID of the event that is sent.")]


class ReplayStart(Struct):
    """The start of a replay: the position before its first event, and the number of its events."""

    position: int
    events: int


class Attempt(Struct):
    """One attempt of a delivery."""

    at: Annotated[AwareDatetime, Meta(description="When the attempt started.")]
    status_code: Annotated[int | None, Meta(description="The status of the response; null without a response.")]
    error: Annotated[str | None, Meta(description="Why the attempt failed; null if it succeeded.")]
    duration_ms: Annotated[int, Meta(description="Milliseconds.")]


class WebhookDelivery(Struct):
    """One event for one endpoint, with the attempts to send it."""

    id: Annotated[UUID, Meta(description="The delivery's UUID.")]
    webhook_endpoint_id: Annotated[UUID, Meta(description="The UUID of the endpoint that receives the event.")]
    event_id: Annotated[UUID, Meta(description="The event's UUID, which is also the `webhook-id` of its messages.")]
    event_type: Annotated[str, Meta(description="The type of the event. Later versions can add types.")]
    status: Annotated[
        DeliveryStatus,
        Meta(
            description="`pending` until an attempt succeeds. `failed` if no attempts are left. `cancelled` if the"
            " endpoint was paused or disabled."
        ),
    ]
    attempts: Annotated[list[Attempt], Meta(description="All attempts, the oldest first.")]
    next_attempt_at: Annotated[
        AwareDatetime | None,
        Meta(
            description="When the next attempt starts; a minute ahead while one is in progress. Null if none is"
            " scheduled."
        ),
    ]
    created_at: Annotated[AwareDatetime, Meta(description="When the delivery was created.")]


class DeliveryDetails(WebhookDelivery):
    """A delivery with the requests and responses of its attempts, and its event, if that is still stored."""

    attempt_details: list[AttemptDetail]
    event: Event | UnsetType


class DeliveryCount(Struct):
    """A number of deliveries, and of their attempts in a selected time; without such a time, no attempts count."""

    deliveries: int
    attempts: int


class WebhookEndpointListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


DeliverySort = Annotated[
    Literal["created_at", "-created_at"],
    component("DeliverySort", "The order of a list of deliveries; `-` reverses it."),
]


class DeliveryListQuery(CursorListQuery, frozen=True):
    """Filters for the deliveries of an endpoint."""

    sort: Annotated[
        DeliverySort | UnsetType,
        Meta(description="The order of the deliveries: that of their creation, or with `-` the newest one first."),
    ] = UNSET

    status: Annotated[
        Annotated[list[DeliveryStatus], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(
            description="Returns items with one of these statuses, separated by commas: `pending`, `succeeded`,"
            " `failed`, `cancelled`."
        ),
    ] = UNSET
    event_type: Annotated[
        Annotated[Text255, EVENT_TYPE] | UnsetType, Meta(description="Returns items of events of exactly this type.")
    ] = UNSET
    event_id: Annotated[UuidText | UnsetType, Meta(description="Returns items of the event with this id.")] = UNSET
    created_since: CreatedSince = UNSET
    created_until: CreatedUntil = UNSET

    @property
    def is_reversed(self) -> bool:
        """Whether the newest delivery comes first."""
        return self.sort == "-created_at"


class DeliveryJob(Struct):
    """A claimed delivery with the values that the worker needs to send it. The secrets are encrypted."""

    plan_manager_id: UUID
    id: UUID
    attempt_count: int  # attempts before this one
    sent_type: str  # of the event or, in a test, of the example
    event: Event  # in the format `thin` without its data
    webhook_endpoint_id: UUID
    url: str
    payload: PayloadFormat
    secret: str
    old_secret: str | None


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
    detail: AttemptDetail
    delay: timedelta | None


class FailingEndpoint(Struct):
    """An endpoint whose last attempts all failed, or that was disabled because of failures."""

    id: UUID
    url: str
    failing_since: datetime | None
    disabled_reason: str | None
    next_attempt_at: datetime | None


class AttemptHour(Struct):
    """The attempts of an endpoint in an hour."""

    plan_manager_id: UUID
    webhook_endpoint_id: UUID
    hour: datetime
    succeeded: int
    failed: int


class UnhealthyEndpoints(Struct):
    """How many endpoints of all plan managers get no webhooks because of failures."""

    failing: int
    disabled: int
    failing_since: datetime | None
