"""The feed of events, and one event."""

from uuid import UUID

from plankeeper.events import store
from plankeeper.events.schemas import Event, EventListQuery
from plankeeper.http.context import Read, found
from plankeeper.http.errors import Invalid
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, Routes
from plankeeper.http.schemas import Page, given

routes = Routes("events")


@routes.get("/events", need=READ, extension=True)
async def list_(ctx: Read, query: EventListQuery) -> Page[Event]:
    """List events. The feed is walked by cursor only, in the order in which the writes were committed.

    Without `after` it starts at the beginning. A new event appears within a second of its write.
    """
    if query.offset:
        raise Invalid(offset="must be 0: events are walked by cursor only")
    arguments = (ctx.db, ctx.plan_manager_id, query.start, given(query.type))
    if isinstance(query.resource_id, str):
        rows = await store.list_page_for_resource(*arguments, query.resource_id, query.limit + 1)
    else:
        rows = await store.list_page(*arguments, query.limit + 1)
    return page_of(query, rows, None)


@routes.get("/events/{event_id}", need=READ, extension=True)
async def get(ctx: Read, event_id: UUID) -> Event:
    """Get one event."""
    return found(await store.get(ctx.db, ctx.plan_manager_id, event_id))
