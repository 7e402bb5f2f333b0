"""Runs of statements: the months, the page of a run, its print file, and statements that are tried again."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links, with_query
from plankeeper.console.shell.forms import parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.dates import Month, last_months
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Download
from plankeeper.core.ids import parse_uuid
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.validation import validate_struct
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.statement_runs import print_file, queries, service, store
from plankeeper.resources.statement_runs.rules import next_due_day
from plankeeper.resources.statement_runs.schemas import (
    NewStatementRun,
    StatementRun,
    StatementRunItem,
    StatementRunItemListQuery,
    StatementRunListQuery,
)

pages = Pages()

STATEMENTS_URL = f"{PREFIX}/statements"
MONTHS = 6  # that can be chosen
LATEST_EVENTS = 6
_RUN = "/statements/{statement_run_id}"
STATES = {
    "failed": "Failed",
    "made": "Waiting for the mail server",
    "to_print": "To print",
    "sent": "Sent",
    "skipped": "Nobody gets it",
}
TAGS = {"failed": "bad", "made": "wait", "to_print": "wait", "sent": "good", "skipped": ""}


class ShownItem(NamedTuple):
    """A row of the table, with the names of the participant and of what its statement was sent to."""

    item: StatementRunItem
    name: str
    url: str


class Tab(NamedTuple):
    """A state with its number of items, and the list of them."""

    label: str
    item_count: int
    url: str
    is_current: bool


@pages.get("/statements", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    """The runs, the newest month first, and the month that a person can start."""
    place = (request.executor, request.plan_manager_id)
    found = await queries.list_page(*place, StatementRunListQuery(limit=1000))
    settings = await office_settings.get(*place)
    day, last = settings.statement_day, await store.get_last_month(*place)
    months = last_months(request.today, MONTHS + 1)[1:]
    context: dict[str, Any] = {
        "runs": sorted(found, key=lambda run: run.month, reverse=True),
        "months": {each.text: each.title for each in months},
        "month": request.form.text("month") or months[0].text,
        "day": day,
        "next_day": next_due_day(day, settings.statement_day_set_on, last, request.today) if day else None,
        "has_storage": request.settings.storage_url is not None,
        "title_of": _title_of,
    }
    return HtmlPage("statements/list.html", context)


def _title_of(run: StatementRun) -> str:
    return Month.parse(run.month).title


@pages.post("/statements", role="manager", on_error=list_)
async def start(request: FormRequest) -> Redirect:
    new = validate_struct(NewStatementRun, {"month": request.form.text("month")})
    run = await service.start(request.write_context, Month.parse(new.month).first)
    return Redirect(f"{STATEMENTS_URL}/{run.id}", f"The statements for {_title_of(run)} are being made.")


@pages.get(_RUN, role="viewer")
async def get(request: PageRequest, statement_run_id: UUID) -> HtmlPage:
    """A run: how far it is, who got what, and what failed."""
    place = (request.executor, request.plan_manager_id)
    run = or_404(await store.get(*place, statement_run_id))
    letters = await store.list_letters(*place, statement_run_id, "to_print") if run.to_print else []
    state = request.query.text("state")
    context: dict[str, Any] = {
        "run": run,
        "title": _title_of(run),
        "url": f"{STATEMENTS_URL}/{run.id}",
        "done": run.made + run.sent + run.to_print + run.skipped + run.failed,
        "parts": range(1, -(-len(letters) // print_file.PART_SIZE) + 1),
        "letters": len(letters),
        "last_letter": letters[-1].id if letters else None,
        "tabs": _tabs(run, state),
        "state": state,
        "states": STATES,
        "tags": TAGS,
        "events": await latest_events(request, "statement_run", statement_run_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        **await _items_context(request, run, state),
    }
    return HtmlPage("statements/run.html", context)


def _tabs(run: StatementRun, state: str) -> list[Tab]:
    url = f"{STATEMENTS_URL}/{run.id}"
    counts = {name: int(getattr(run, name)) for name in STATES}
    tabs = [Tab("All", sum(counts.values()), url, not state)]
    tabs += [
        Tab(label, counts[name], with_query(url, {"state": name}), state == name)
        for name, label in STATES.items()
        if counts[name] or state == name
    ]
    return tabs


async def _items_context(request: PageRequest, run: StatementRun, state: str) -> dict[str, Any]:
    place = (request.executor, request.plan_manager_id)
    after = parse_uuid(request.query.text("after"))
    values: dict[str, Any] = {"state": [state]} if state in STATES else {}
    query = StatementRunItemListQuery(limit=PAGE_SIZE, after=str(after) if after else "0", **values)
    found = await queries.list_items_page(*place, run.id, query)
    ids = [each.participant_id for each in found]
    names = {each.id: each.name for each in await get_display_names(*place, ids, [])}
    request.record_list("participant", ids, {"page": "statements"})
    links = paginate_links(f"{STATEMENTS_URL}/{run.id}", {"state": state}, found, after, "#items")
    return {"items": [_shown(each, names) for each in found], "pages": links}


def _shown(item: StatementRunItem, names: Mapping[UUID, str | None]) -> ShownItem:
    is_known = item.participant_id in names
    name = (names[item.participant_id] or "No name") if is_known else "Deleted participant"
    return ShownItem(item, name, f"{PREFIX}/participants/{item.participant_id}" if is_known else "")


@pages.post(_RUN + "/retry", role="manager", on_error=get)
async def retry(request: FormRequest, statement_run_id: UUID) -> Redirect:
    """Try an item again, or all that have failed or that nobody receives."""
    item_id = parse_uuid(request.form.text("item_id"))
    await service.retry(request.write_context, statement_run_id, [item_id] if item_id else None)
    return Redirect(f"{STATEMENTS_URL}/{statement_run_id}", "They are being sent again.")


@pages.get(_RUN + "/print-file", role="manager")
async def download(request: PageRequest, statement_run_id: UUID) -> Download:
    """A part of the letters: an address page before each statement."""
    part = or_404(parse_number(request.query.text("part") or "1", 9999) or None)
    try:
        file = await print_file.get_print_file(request.read_context, statement_run_id, part)
    except UnprintableError as error:
        raise DomainError("invalid_transition", f"A statement can't be printed: {error}.") from None
    request.record_list("participant", file.participants, {"page": "statements"}, "exported")
    return Download.of_bytes(file.name, print_file.MEDIA_TYPE, file.content)


@pages.post(_RUN + "/posted", role="manager", on_error=get)
async def mark_posted(request: FormRequest, statement_run_id: UUID) -> Redirect:
    """The letters that the page has shown are in the post."""
    until = or_404(parse_uuid(request.form.text("until")))
    count = await print_file.mark_posted(request.write_context, statement_run_id, until)
    noun = "letter is" if count == 1 else "letters are"
    return Redirect(f"{STATEMENTS_URL}/{statement_run_id}", f"{count:,} {noun} marked as posted.")
