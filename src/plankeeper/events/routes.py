"""Events: list the feed, get an event."""

from uuid import UUID

from plankeeper.events import store
from plankeeper.events.redaction import redact
from plankeeper.events.schemas import Event, EventListQuery
from plankeeper.http.context import ReadContext, or_404
from plankeeper.http.errors import ValidationError
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, Router
from plankeeper.http.schemas import unset_to_none

router = Router("events")


@router.get("/events", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: EventListQuery) -> Page[Event]:
    """List events in the order in which their writes were committed. This list supports cursors only.

    Without `after`, the list starts with the first event. A new event appears within a second of its write.
    """
    if query.offset:
        raise ValidationError(offset="must be 0: this list supports cursors only")
    arguments = (ctx.db, ctx.plan_manager_id, query.start, unset_to_none(query.type))
    if isinstance(query.resource_id, str):
        rows = await store.list_page_for_resource(*arguments, query.resource_id, query.limit + 1)
    else:
        rows = await store.list_page(*arguments, query.limit + 1)
    return build_page(query, [redact(each) for each in rows], None)


@router.get("/events/{event_id}", scope=READ, extension=True, etag=True)
async def get(ctx: ReadContext, event_id: UUID) -> Event:
    """Get an event."""
    return redact(or_404(await store.get(ctx.db, ctx.plan_manager_id, event_id)))
