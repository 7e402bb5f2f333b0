"""Record one event for each write, in the transaction of the write."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.json import to_json
from plankeeper.events import store
from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.events.schemas import EventRow

Change = tuple[str, Struct | None, Struct | None]  # the type, the resource before and the resource after


async def record_event(
    ctx: WriteContext,
    type_: str,
    before: Struct | None,
    after: Struct | None,
    resource_id: object = None,
    *,
    parts: Iterable[Change] = (),
) -> UUID | None:
    """Record one event and return its id, or None for an update that changes nothing.

    `type_` is the kind of the resource and a past participle: `participant.updated`. `parts` are changes of parts of
    the resource in the same write, which have events of their own.
    """
    row = build_event(ctx, type_, before, after, resource_id)
    rows = [row, *(build_event(ctx, *change) for change in parts)]
    await store.insert_many(ctx.tx, ctx.plan_manager_id, [each for each in rows if each])
    if row is None:
        return None
    ctx.recorded.append(row.id)
    return row.id


async def record_events(ctx: WriteContext, changes: Iterable[Change]) -> None:
    """Record the event of each change."""
    rows = [build_event(ctx, *change) for change in changes]
    await store.insert_many(ctx.tx, ctx.plan_manager_id, [row for row in rows if row])


def is_changed(before: Struct | None, after: Struct | None) -> bool:
    """Whether a write changes a resource. An update that changes nothing writes neither the row nor an event."""
    if before is None or after is None:
        return before is not after
    return before != after and bool(changed_fields(before, after))


def build_event(
    ctx: WriteContext, type_: str, before: Struct | None, after: Struct | None, resource_id: object = None
) -> EventRow | None:
    if type_ not in EVENT_TYPES:
        raise LookupError(f"{type_} is missing from EVENT_TYPES")
    if not is_changed(before, after):
        return None
    previous = before if after is None else changed_fields(before, after) if before else None
    resource: Any = after or before
    created_at = datetime.now(UTC)  # before the id: events since a time are searched by the lowest id of that time
    return EventRow(
        plan_manager_id=ctx.plan_manager_id,
        id=uuid7(),
        type=type_,
        created_at=created_at,
        actor_kind=ctx.actor.kind,
        actor_id=ctx.actor.id,
        actor_name=ctx.actor.name,
        resource_kind=type_.partition(".")[0],
        resource_id=str(resource_id or resource.id),
        data=_to_json_or_none(after),
        previous=_to_json_or_none(previous),
        request_id=ctx.request_id,
        notify=ctx.notify,
        import_id=ctx.import_id,
    )


def changed_fields(before: Struct, after: Struct) -> dict[str, Any]:
    """The fields of `before` that differ in `after`, with their earlier values, without the time of the change.

    Equal JSON counts as equal: a patch holds an id as text where the row holds a UUID.
    """
    names = [name for name in before.__struct_fields__ if name != "updated_at"]
    pairs = ((name, _null_if_unset(getattr(before, name)), _null_if_unset(getattr(after, name))) for name in names)
    return {name: old for name, old, new in pairs if old != new and to_json(old) != to_json(new)}


def _null_if_unset(value: Any) -> Any:
    return None if value is UNSET else value


def _to_json_or_none(value: object) -> str | None:
    return None if value is None else to_json(value)
