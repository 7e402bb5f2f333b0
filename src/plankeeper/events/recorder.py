"""Recording: one event for one write, in the writer's transaction."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct
from uuid_utils.compat import uuid7

from plankeeper.events import store
from plankeeper.events.schemas import EventRow
from plankeeper.http.context import Write
from plankeeper.http.schemas import json_text


async def record(
    call: Write, type_: str, before: Struct | None, after: Struct | None, resource_id: object = None
) -> UUID | None:
    """Record one event: its id. `type_` is `<kind>.<what happened>`; an update that changes nothing makes none."""
    row = event_of(call, type_, before, after, resource_id)
    if row is None:
        return None
    await store.insert(call.tx, row)
    return row.id


async def record_many(call: Write, changes: Iterable[tuple[str, Struct | None, Struct | None]]) -> None:
    """Record the event of each change: its type, before and after."""
    rows = [event_of(call, *change) for change in changes]
    await store.insert_many(call.tx, [row for row in rows if row])


def event_of(
    call: Write, type_: str, before: Struct | None, after: Struct | None, resource_id: object = None
) -> EventRow | None:
    if before == after:
        return None
    changed = before if after is None else changed_members(before, after) if before else None
    subject: Any = after or before
    return EventRow(
        plan_manager_id=call.plan_manager_id, id=uuid7(), type=type_, created_at=datetime.now(UTC),
        actor_kind=call.actor.kind, actor_id=call.actor.id, actor_name=call.actor.name,
        resource_kind=type_.partition(".")[0], resource_id=str(resource_id or subject.id),
        data=_json(after), previous=_json(changed), request_id=call.request_id, notify=call.notify,
    )  # fmt: skip


def changed_members(before: Struct, after: Struct) -> dict[str, Any]:
    """The members of `before` that `after` has otherwise, as they were."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in before.__struct_fields__)
    return {name: None if old is UNSET else old for name, old, new in pairs if old != new}


def _json(shape: object) -> str | None:
    return None if shape is None else json_text(shape)
