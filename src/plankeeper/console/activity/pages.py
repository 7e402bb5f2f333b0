"""Activity: the events of a plan manager, newest first, with the changes of each."""

from itertools import groupby
from uuid import UUID

from plankeeper.console.activity.list import ACTIVITY
from plankeeper.console.activity.source import SCAN_LIMIT, ShownGroup
from plankeeper.console.activity.timeline import day_heading
from plankeeper.console.lists.page import ListPage, ListRow, load_list
from plankeeper.console.lists.registration import add_files
from plankeeper.console.shell.routing import (
    HtmlPage,
    PageRequest,
    Pages,
)
from plankeeper.core.ids import parse_uuid
from plankeeper.events import activity_store
from plankeeper.imports import store as import_store
from plankeeper.imports.schemas import Import

pages = Pages()


@pages.get("/activity", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    shown = await load_list(request, ACTIVITY)
    before_import = await find_start_of_import(request, shown)
    context = {
        "list": shown,
        "days": _by_day(request, shown),
        "scan_limit": SCAN_LIMIT,
        "before_import": shown.query.first_page(after=str(before_import)).url() if before_import else None,
        "import_record": await find_import(request),
    }
    return HtmlPage("activity/activity.html", context, 422 if shown.has_errors else 200)


add_files(pages, ACTIVITY)


def _by_day(request: PageRequest, shown: ListPage) -> list[tuple[str, list[ListRow]]]:
    """The rows by the day of their latest event, under a heading for each day."""
    zone, today = request.settings.time_zone, request.today
    days = groupby(shown.rows, key=lambda each: each.source.group.first.created_at.astimezone(zone).date())
    return [(day_heading(day, today), list(rows)) for day, rows in days]


async def find_import(request: PageRequest) -> Import | None:
    """The import of the filter; null without one, and for an import on the command line, which has no page."""
    import_id = parse_uuid(request.query.text("import"))
    return await import_store.get(request.db, request.plan_manager_id, import_id) if import_id else None


async def find_start_of_import(request: PageRequest, shown: ListPage) -> UUID | None:
    """The first event of the import in whose middle the page ends; null if it ends elsewhere."""
    if not shown.next_url or not shown.rows:
        return None
    group: ShownGroup = shown.rows[-1].source
    last = group.group.events[-1]
    if last.import_id is None:
        return None
    values = (request.db, request.plan_manager_id, last.import_id, last.request_id)
    first = await activity_store.get_first_of_import(*values)
    return None if first == last.id else first
