"""Activity: who changed what, newest first, with before and after."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.csv_export import MARK, row
from plankeeper.console.routing import PREFIX, Download, Look, Page, Pages
from plankeeper.console.templating import members
from plankeeper.events import store
from plankeeper.events.schemas import Event, Sought
from plankeeper.http.context import found as there
from plankeeper.http.parsing import uuid_of

pages = Pages()

PAGE = 40
BRIEF = 6  # members that the list shows of an update, each with so many characters
BRIEF_TEXT = 60
LONGEST_TEXT = 10_000  # characters that the page of an event shows of a member
AMONG = 10_000  # events that a page with a filter looks through
PART = 500  # events in a part of a file
ACTORS = {"": "anybody", "user": "people", "api_key": "API keys", "system": "the system"}
NAMES = ("name", "entity_name", "note_type", "invoice_number", "user_name", "url", "email")
PATHS = {
    "participant": "/participants/{}", "provider": "/providers/{}", "invoice": "/invoices/{}",
    "note_type": "/note-types/{}/edit", "account_manager": "/account-managers/{}/edit",
    "webhook_endpoint": "/settings/webhooks/{}",
}  # fmt: skip
COLUMNS = (
    "at", "type", "actor_kind", "actor_id", "actor_name", "resource_kind", "resource_id", "request_id", "before",
    "after",
)  # fmt: skip


class Change(NamedTuple):
    """One member of a resource: null where there was or is none."""

    name: str
    before: str | None
    after: str | None


@pages.get("/activity", need="viewer")
async def list_(look: Look) -> Page:
    filters, before = filters_of(look), uuid_of(look.query.text("before"))
    rows, onward = await found(look, filters, before, PAGE)
    given = {name: value for name, value in filters.items() if value}
    older = f"{PREFIX}/activity?{urlencode(given | {'before': str(onward)})}" if onward else None
    export = f"{PREFIX}/activity.csv" + (f"?{urlencode(given)}" if given else "")
    events = [(event, cut(about(event), BRIEF_TEXT), *brief(event, look.settings.time_zone)) for event in rows]
    shown = {"events": events, "among": AMONG, "older": older, "before": before, "export": export, "actors": ACTORS}
    return Page("activity.html", {**shown, **filters, "filtered": bool(given)})


@pages.get("/activity/{event_id}", need="viewer")
async def get(look: Look, event_id: UUID) -> Page:
    event = there(await store.fetch(look.db, look.plan_manager_id, event_id))
    changes = changes_of(event, look.settings.time_zone)
    shown = [Change(each.name, cut(each.before, LONGEST_TEXT), cut(each.after, LONGEST_TEXT)) for each in changes]
    told = {"about": cut(about(event), BRIEF_TEXT), "page": page_of(event) if look.may("manager") else None}
    return Page("event.html", {"event": event, "changes": shown, "is_cut": shown != changes, **told})


@pages.get("/activity.csv", need="viewer")
async def export(look: Look) -> Download:
    """Everything that the filters let through, newest first."""
    today = datetime.now(look.settings.time_zone).date()
    return Download(f"activity-{today}.csv", "text/csv; charset=utf-8", lines(look, filters_of(look)))


async def lines(look: Look, filters: dict[str, str]) -> AsyncIterator[bytes]:
    """The file in parts: a page of events is read when the one before has been sent."""
    yield MARK + row(COLUMNS)
    before: UUID | None = None
    while True:
        events, before = await found(look, filters, before, PART)
        yield b"".join(map(line_of, events))  # nothing too: whoever sends it looks whether anybody is there still
        if before is None:
            return


def about(event: Event) -> str:
    """What people call the thing that it happened to; empty where that has no name."""
    said = json.loads(bytes(event.data or event.previous or b"{}"))
    person = " ".join(filter(None, (said.get("first_name"), said.get("last_name"))))
    return person or next((said[name] for name in NAMES if said.get(name)), "")


def page_of(event: Event) -> str | None:
    """The path of the thing's own page; null where it has none, or is gone."""
    kind, id_ = event.resource.kind, quote(event.resource.id, safe="")
    if event.data is None or kind not in PATHS:
        return None
    return PREFIX + PATHS[kind].format(id_)


def line_of(event: Event) -> bytes:
    before, after = (bytes(each).decode() if each else "" for each in (event.previous, event.data))
    at = event.created_at.isoformat().replace("+00:00", "Z")
    who, what = event.actor, event.resource
    return row((at, event.type, who.kind, who.id, who.name, what.kind, what.id, event.request_id, before, after))


def filters_of(look: Look) -> dict[str, str]:
    """The filters as they stand in the query; an empty text is none."""
    longest = {"type": 100, "actor": 10, "name": 255, "resource_id": 255}
    filters = {name: look.query.text(name)[:most] for name, most in longest.items()}
    return filters | {"actor": filters["actor"] if filters["actor"] in ACTORS else ""}


async def found(
    look: Look, filters: dict[str, str], before: UUID | None, limit: int
) -> tuple[list[Event], UUID | None]:
    """Events, and behind which there may be more; null where there are none."""
    sought = Sought(filters["type"] or None, filters["actor"] or None, filters["name"] or None)
    walk, onward = (look.db, look.plan_manager_id, before), None
    if filters["resource_id"]:
        rows = await store.latest_of_resource(*walk, sought, filters["resource_id"], limit + 1)
    elif any(filters.values()):
        rows = await store.latest_sought(*walk, sought, AMONG, limit + 1)
        onward = await store.last_among(*walk, AMONG) if len(rows) <= limit else None
    else:
        rows = await store.latest(*walk, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else onward


def brief(event: Event, zone: ZoneInfo) -> tuple[list[Change], int]:
    """What a list shows of an update, and how many members more changed; of other events it shows nothing."""
    if event.previous is None or event.data is None:
        return [], 0
    changes = changes_of(event, zone)
    shown = [Change(each.name, cut(each.before, BRIEF_TEXT), cut(each.after, BRIEF_TEXT)) for each in changes[:BRIEF]]
    return shown, len(changes) - len(shown)


def cut(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else f"{text[:most]}…"


def changes_of(event: Event, zone: ZoneInfo) -> list[Change]:
    """What an event tells of: of an update the members that changed, otherwise the whole resource."""
    after, before = members(event.data, zone), members(event.previous, zone)
    if before and after:
        return [Change(name, was, after.get(name)) for name, was in before.items()]
    if before:
        return [Change(name, was, None) for name, was in before.items()]
    return [Change(name, None, now) for name, now in after.items()]
