"""Activity: who changed what, newest first, with before and after."""

from typing import NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from plankeeper.console.looks import members
from plankeeper.console.pages import PREFIX, Look, Page, Pages
from plankeeper.edge.parsing import uuid_of
from plankeeper.events import store
from plankeeper.events.shapes import Event

pages = Pages()

PAGE = 50


class Change(NamedTuple):
    """One member of a resource: null where there was or is none."""

    name: str
    before: str | None
    after: str | None


@pages.get("/activity", need="viewer")
async def list_(look: Look) -> Page:
    type_, resource_id = look.query.text("type")[:100], look.query.text("resource_id")[:255]
    before = uuid_of(look.query.text("before"))
    walk = (look.db, look.plan_manager_id, before, type_ or None)
    if resource_id:
        rows = await store.latest_of_resource(*walk, resource_id, PAGE + 1)
    else:
        rows = await store.latest(*walk, PAGE + 1)
    filters = {"type": type_, "resource_id": resource_id}
    given = {name: value for name, value in filters.items() if value}
    older = None
    if len(rows) > PAGE:
        older = f"{PREFIX}/activity?{urlencode(given | {'before': str(rows[PAGE - 1].id)})}"
    events = [(event, changes_of(event, look.settings.time_zone)) for event in rows[:PAGE]]
    return Page("activity.html", {"events": events, "older": older, "before": before, **filters})


def changes_of(event: Event, zone: ZoneInfo) -> list[Change]:
    """What an event tells of: of an update the members that changed, otherwise the whole resource."""
    after, before = members(event.data, zone), members(event.previous, zone)
    if before and after:
        return [Change(name, was, after.get(name)) for name, was in before.items()]
    if before:
        return [Change(name, was, None) for name, was in before.items()]
    return [Change(name, None, now) for name, now in after.items()]
