"""Schemas of events."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, cast
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.core.context import AccessedKind, Actor
from plankeeper.core.fields import (
    EXTENSION,
    UUID_PATTERN,
    AwareDatetime,
    Text255,
    component,
)
from plankeeper.core.ids import parse_uuid
from plankeeper.core.lists import CreatedSince, CreatedUntil, CursorListQuery

# Without a schema: the fields differ by the kind of the resource, and old events have the fields of their version.
EventFields = Annotated[
    Raw,
    component("EventFields", "Fields of a resource by name, as in its schema."),
    Meta(extra_json_schema={"type": "object", "additionalProperties": True}),
]


class ResourceRef(Struct, omit_defaults=True):
    """The resource that an event concerns."""

    kind: Annotated[str, Meta(description="The part of the event's type before the dot.")]
    id: Annotated[str, Meta(description="The id of the resource: a UUID, or the integer of a note type.")]
    participant_id: Annotated[
        UUID | None,
        Meta(
            description="Only of a plan, of a statement, and of a team member, whose `id` isn't unique: the"
            " participant."
        ),
    ] = None


class Event(Struct):
    """A write that was committed."""

    id: Annotated[
        UUID, Meta(description="The event's UUID. Events are listed in the order of their commits, not of their ids.")
    ]
    type: Annotated[
        str, Meta(description="The kind of the resource and what happened to it. Later versions can add types.")
    ]
    created_at: Annotated[AwareDatetime, Meta(description="When the write happened.")]
    actor: Annotated[
        Actor,
        Meta(
            description="Who made the change. `kind` is `api_key` for an API request, `user` for a person in the"
            " console, and `system` for the server and the command line. A command has no `id`; its `name` is the"
            " command."
        ),
    ]
    resource: Annotated[
        ResourceRef,
        Meta(
            description="`kind` and `id` of the resource that was changed; of a plan, a statement or a team member,"
            " also `participant_id`."
        ),
    ]
    data: Annotated[
        EventFields | None,
        Meta(
            description="The resource after the write, in the schema of its kind. Null after a deletion. After an"
            " erasure and in old events, fields are missing."
        ),
    ]
    previous: Annotated[
        EventFields | None,
        Meta(
            description="For an update, the earlier values of the changed fields. For a deletion, the whole resource."
            " Otherwise null."
        ),
    ]
    request_id: Annotated[str | None, Meta(description="The `X-Request-Id` of the request; null for the command line.")]
    sequence: Annotated[
        int | None,
        Meta(
            description="The position in the plan manager's feed: of two events, the later one has the higher position."
            " Null until the event is in the feed."
        ),
    ]


class HistoryEvent(Event):
    """An event with the import that it belongs to."""

    import_id: UUID | None


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


EventSort = Annotated[
    Literal["sequence", "-sequence"], component("EventSort", "The order of the list of events; `-` reverses it.")
]


class EventListQuery(CursorListQuery, frozen=True):
    """Filters and the start of the feed."""

    after: Annotated[
        Annotated[
            str,
            Meta(
                pattern=f"^(0|now|{UUID_PATTERN})$",
                extra={"message": "must be 0, now or the id of an event"},
                description="Returns the events after this one. `0` starts at the beginning. `now` returns no events,"
                " and the newest event as `next_cursor`, or `0` if there is none. With `sort=-sequence`, returns the"
                " events before this one, and `0` starts with the newest event.",
            ),
        ]
        | UnsetType,
        EXTENSION,
    ] = UNSET
    since: Annotated[
        AwareDatetime | UnsetType,
        EXTENSION,
        Meta(description="Returns items since the minute of this datetime; not allowed with `after`."),
    ] = UNSET
    sort: Annotated[
        EventSort | UnsetType,
        EXTENSION,
        Meta(description="The order of the events: that of the feed, or with `-` the newest event first."),
    ] = UNSET
    created_since: CreatedSince = UNSET
    created_until: CreatedUntil = UNSET
    type: Annotated[
        Annotated[list[Text255], Meta(max_length=100)] | UnsetType,
        EXTENSION,
        Meta(
            description="Returns items of these types, separated by commas, such as `participant.updated,provider.*`."
        ),
    ] = UNSET
    resource_id: Annotated[Text255 | UnsetType, Meta(description="Returns items about the resource with this id.")] = (
        UNSET
    )

    @property
    def is_reversed(self) -> bool:
        """Whether the newest event comes first."""
        return self.sort == "-sequence"


class EventFilter(Struct, frozen=True):
    """Filters of the console; None matches every event. `hidden_types` are left out where no types are chosen."""

    types: Sequence[str] | None = None
    hidden_types: Sequence[str] = ()
    actor_kind: str | None = None
    actor_id: str | None = None


class EventBatch(Struct):
    """Rows of the queue that get positions in one transaction, with the values that a sequencer needs."""

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
    """An event of the feed, for the fan-out to webhook endpoints."""

    position: int
    id: UUID
    type: str
    notify: bool


class RequestEvents(Struct):
    """The events of one type that a request has recorded."""

    type: str
    events: int
    first_id: UUID


def list_disclosed(events: Iterable[Event]) -> Mapping[AccessedKind, list[UUID]]:
    """The ids of the records by kind, in the order of the events."""
    found: dict[AccessedKind, dict[UUID, None]] = {}
    for each in events:
        for kind, id_ in find_disclosed(each.resource).items():
            found.setdefault(kind, {})[id_] = None
    return {kind: list(ids) for kind, ids in found.items()}


def find_disclosed(resource: ResourceRef) -> Mapping[AccessedKind, UUID]:
    """The record that the data of an event is about: of a plan or a team member, the participant."""
    if resource.participant_id:
        return {"participant": resource.participant_id}
    id_ = parse_uuid(resource.id) if resource.kind in ("participant", "invoice") else None
    return {cast("AccessedKind", resource.kind): id_} if id_ else {}
