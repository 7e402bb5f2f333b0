"""Schemas of events."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.events.event_types import EventType
from plankeeper.http.context import Actor
from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import EXTENSION, UUID_PATTERN, AwareDatetime, Text255


class ResourceRef(Struct):
    """The resource that an event concerns."""

    kind: str
    id: str


_OBJECT_SCHEMA = {"type": ["object", "null"], "additionalProperties": True}


class Event(Struct):
    """A committed write."""

    id: UUID
    type: EventType
    created_at: AwareDatetime
    actor: Actor
    resource: ResourceRef
    data: Annotated[
        Raw | None,
        Meta(description="The resource after the write; null after a deletion.", extra_json_schema=_OBJECT_SCHEMA),
    ]
    previous: Annotated[
        Raw | None,
        Meta(
            description="The earlier values of the changed members; the whole resource for a deletion; otherwise null.",
            extra_json_schema=_OBJECT_SCHEMA,
        ),
    ]
    request_id: str | None


class EventRow(Struct):
    """A row of the table of events."""

    plan_manager_id: UUID
    id: UUID
    type: str
    created_at: AwareDatetime
    actor_kind: str
    actor_id: str | None
    actor_name: str | None
    resource_kind: str
    resource_id: str
    data: str | None
    previous: str | None
    request_id: str | None
    notify: bool  # whether webhooks report it
    import_id: UUID | None


class QueuedEvents(Struct):
    """A row of the queue of events without a position; `types` has one element if all types are the same."""

    plan_manager_id: UUID
    id: UUID
    event_ids: list[UUID]
    types: list[str]
    notify: bool


class EventListQuery(UuidListQuery):
    """Filters and the start of the feed, which supports cursors only."""

    after: Annotated[
        Annotated[
            str,
            Meta(
                pattern=f"^(0|now|{UUID_PATTERN})$",
                extra={"message": "must be 0, now or the id of an event"},
                description="Returns the events after this one. `0` starts at the beginning. `now` returns no events,"
                " and the newest event as `next_cursor`, or `0` if there is none.",
            ),
        ]
        | UnsetType,
        EXTENSION,
    ] = UNSET
    since: Annotated[
        AwareDatetime | UnsetType,
        EXTENSION,
        Meta(description="Starts at the first event since this minute. Not allowed with `after`."),
    ] = UNSET
    type: Annotated[
        Annotated[list[Text255], Meta(max_length=100)] | UnsetType,
        EXTENSION,
        Meta(description="Types such as `participant.updated` or `participant.*`, separated by commas."),
    ] = UNSET
    resource_id: Annotated[Text255 | UnsetType, Meta(description="The id of one resource.")] = UNSET


class EventFilter(Struct, frozen=True):
    """Filters of the console; None matches every event. The comparison of names ignores case."""

    type: str | None = None
    actor_kind: str | None = None
    actor_name: str | None = None


class EventBatch(Struct):
    """Rows of the queue that get positions in one transaction, and what a sequencer needs to know about them."""

    queue_ids: list[UUID]
    event_count: int
    has_more: bool  # whether more rows are waiting
    unknown_types: list[str]


class QueueState(Struct):
    """The queue of a plan manager: its first row, and the number of events in its first rows."""

    plan_manager_id: UUID
    first_id: UUID
    event_count: int


class SequencedEvent(Struct):
    """An event of the feed, as far as the fan-out to webhook endpoints needs it."""

    position: int
    id: UUID
    type: str
    notify: bool
