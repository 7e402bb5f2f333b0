"""Events: list the feed, get an event."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.errors import DomainError, invalid_parameter
from plankeeper.core.fields import unset_to_none
from plankeeper.core.ids import parse_uuid
from plankeeper.core.lists import (
    Page,
    PaginationMeta,
    build_page,
    cut_page,
)
from plankeeper.events import store
from plankeeper.events.event_types import matching_event_types, redact, require_event_types
from plankeeper.events.schemas import Event, EventListQuery, list_disclosed
from plankeeper.events.store import FeedPage
from plankeeper.http.routing import READ, Router

router = Router("events")

NIL_UUID = UUID(int=0)


@router.get(
    "/events", scope=READ, extension=True, errors=("cursor_expired",), access_log=lambda page: list_disclosed(page.data)
)
async def list_(ctx: ReadContext, query: EventListQuery) -> Page[Event]:
    """List events in the order in which their writes were committed, or the newest first. Supports cursors only.

    Without `after` and `since`, the list starts with the first event. A new event appears within a second of its write.
    """
    types = None
    if not isinstance(query.type, UnsetType):
        selected = ((f"type[{at}]", each) for at, each in enumerate(query.type))
        require_event_types(selected, location="query")
        types = matching_event_types(query.type)
    if query.is_reversed:
        _require_no_start(query)
    if query.after == "now":
        newest = await store.latest_id(ctx.db, ctx.plan_manager_id)
        return Page([], PaginationMeta(query.limit, 0, has_more=False, total=None, next_cursor=str(newest or 0)))
    times = (unset_to_none(query.created_since), unset_to_none(query.created_until))
    feed_page = FeedPage(await _start(ctx, query), query.is_reversed, *times)
    if isinstance(query.resource_id, str):
        resource_id = str(parse_uuid(query.resource_id) or query.resource_id)  # a UUID in either case
        rows = await store.list_page_for_resource(
            ctx.db, ctx.plan_manager_id, feed_page, types, resource_id, query.limit + 1
        )
    else:
        rows = await store.list_page(ctx.db, ctx.plan_manager_id, feed_page, types, query.limit + 1)
    if not rows and query.after not in (UNSET, "0"):
        await _require_cursor(ctx, query.start)
    page = build_page(query, cut_page([redact(each) for each in rows], query.limit), None)
    if page.data and not query.is_reversed:  # also on the last page, so that a client keeps its position
        page.pagination.next_cursor = str(page.data[-1].id)
    return page


async def _start(ctx: ReadContext, query: EventListQuery) -> str:
    """The cursor of the first page."""
    if isinstance(query.since, UnsetType):
        return query.start
    if query.uses_cursor:
        raise invalid_parameter("since", "must be absent if `after` is set", "inconsistent")
    cursor = await store.find_cursor(ctx.db, ctx.plan_manager_id, query.since)
    return str(cursor or NIL_UUID)


def _require_no_start(query: EventListQuery) -> None:
    """Reject parameters for the start of the feed: in reversed order, it starts with the newest event."""
    if query.after == "now":
        message = "must be 0 or the id of an event with `sort=-sequence`"
        raise invalid_parameter("after", message, "inconsistent")
    if query.since is not UNSET:
        message = "must be absent with `sort=-sequence`, which supports `created_since`"
        raise invalid_parameter("since", message, "inconsistent")


async def _require_cursor(ctx: ReadContext, after: str) -> None:
    """Reject a cursor that isn't in the feed, because its page would always be empty."""
    if not await store.is_in_feed(ctx.db, ctx.plan_manager_id, after):
        raise DomainError("cursor_expired")


@router.get(
    "/events/{event_id}", scope=READ, extension=True, has_etag=True, access_log=lambda event: list_disclosed([event])
)
async def get(ctx: ReadContext, event_id: UUID) -> Event:
    """Get an event. Events that retention has deleted aren't found."""
    return redact(or_404(await store.get(ctx.db, ctx.plan_manager_id, event_id)))
