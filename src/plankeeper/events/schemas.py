"""What an event looks like."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.http.context import Actor
from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import AwareDatetime, Text255


class ResourceRef(Struct):
    """The resource that an event is about."""

    kind: str
    id: str


_OBJECT_SCHEMA = {"type": ["object", "null"], "additionalProperties": True}


class Event(Struct):
    """One committed write."""

    id: UUID
    type: Annotated[str, Meta(examples=["participant.updated"])]
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
            description="The changed members as they were before; the whole resource for a deletion; else null.",
            extra_json_schema=_OBJECT_SCHEMA,
        ),
    ]
    request_id: str | None


class EventRow(Struct):
    """An event as it is written: the columns of its table."""

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
    notify: bool  # whether webhooks tell of it


class EventListQuery(UuidListQuery):
    """Filters of the feed, which is walked by cursor only."""

    type: Annotated[Text255 | UnsetType, Meta(description="An exact type, such as `participant.updated`.")] = UNSET
    resource_id: Annotated[Text255 | UnsetType, Meta(description="The id of one resource.")] = UNSET


class EventFilter(Struct, frozen=True):
    """What somebody looks for among the events; null: any. A name is compared without regard to case."""

    type: str | None = None
    actor_kind: str | None = None
    actor_name: str | None = None


class Backlog(Struct):
    """Events without a position: how many, and the age of the oldest in seconds."""

    waiting: int
    oldest_age_seconds: float


class PositionsAssigned(Struct):
    """Events that have got their positions: how many of which plan manager."""

    plan_manager_id: UUID
    events: int
