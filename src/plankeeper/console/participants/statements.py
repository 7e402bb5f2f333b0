"""The statements of a participant: the list with a form that makes one, the page of one, and its PDF."""

from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.participants.header import participant_context
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import ReadContext
from plankeeper.core.dates import Month, last_months
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.ids import parse_uuid
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.validation import validate_struct
from plankeeper.resources.plans.rules import describe_dates
from plankeeper.resources.plans.store import list_of_participants
from plankeeper.resources.statements import files, service, store
from plankeeper.resources.statements.schemas import NewStatement, StatementSummary

pages = Pages()
PATH = "/participants/{participant_id}/statements"
_STATEMENT = PATH + "/{statement_id}"
PAGE_SIZE = 30
MAX_MONTHS = 36  # of the form


class ShownStatement(NamedTuple):
    """A statement of the list."""

    statement: StatementSummary
    month: str
    plan: str


@pages.get(PATH, role="viewer", is_limited=True, access_log="participant")
async def list_(request: PageRequest, participant_id: UUID) -> HtmlPage:
    """The statements, the latest first, and the form."""
    context = await participant_context(request, participant_id, "/statements")
    place = (request.executor, request.plan_manager_id)
    plans = {str(each.id): describe_dates(each) for each in await list_of_participants(*place, [participant_id])}
    before = parse_uuid(request.query.text("before"))
    rows = await store.list_latest(*place, participant_id, before, PAGE_SIZE + 1)
    shown = [_show(each, plans) for each in rows[:PAGE_SIZE]]
    months = last_months(request.today, MAX_MONTHS)
    context |= {
        "statements": shown,
        "older": f"{context['tab_url']}?before={shown[-1].statement.id}" if len(rows) > PAGE_SIZE else None,
        "months": {each.text: each.title for each in months},
        "last_month": months[min(1, len(months) - 1)].text,
        "plans": {"": "The last plan of the month", **plans},
        "form": request.form,
    }
    return HtmlPage("participants/statements.html", context)


def _show(statement: StatementSummary, plans: dict[str, str]) -> ShownStatement:
    month = Month.parse(statement.month).title
    return ShownStatement(statement, month, plans.get(str(statement.plan_id), "A deleted plan"))


@pages.post(PATH, role="manager", on_error=list_)
async def create(request: FormRequest, participant_id: UUID) -> Redirect:
    values: dict[str, Any] = {"month": request.form.text("month")}
    if plan_id := request.form.text("plan_id"):
        values["plan_id"] = plan_id
    new = validate_struct(NewStatement, values)
    chosen, month = unset_to_none(new.plan_id), Month.parse(new.month)
    statement = await service.make_statement(
        request.write_context,
        participant_id,
        UUID(chosen) if chosen else None,
        month.first,
        after_death=bool(request.form.getlist("after_death")),
    )
    path = f"{PREFIX}/participants/{participant_id}/statements/{statement.id}"
    return Redirect(path, f"Statement for {month.title} made. It hasn’t been sent.")


@pages.get(_STATEMENT, role="viewer", is_limited=True, access_log="participant")
async def get(request: PageRequest, participant_id: UUID, statement_id: UUID) -> HtmlPage:
    """The statement as the participant reads it."""
    row = await service.get(request.db, request.plan_manager_id, participant_id, statement_id)
    url = f"{PREFIX}/participants/{participant_id}/statements"
    month = Month.of(row.month).title
    body = files.render_body(row.statement, request.settings.time_zone)
    context = {"statement": row.summary, "month": month, "body": body, "list_url": url}
    return HtmlPage("participants/statement.html", context)


@pages.get(_STATEMENT + "/pdf", role="viewer", is_limited=True)
async def download(request: PageRequest, participant_id: UUID, statement_id: UUID) -> Download:
    """The PDF. Raises DomainError if there is none, see `render`, or without a storage of documents."""
    place = (request.db, request.plan_manager_id)
    row = await service.get(*place, participant_id, statement_id)
    try:
        content = await service.statement_pdf(ReadContext(*place, request.settings), statement_id)
    except UnprintableError as error:
        raise DomainError("invalid_transition", f"There is no PDF, because {error}.") from None
    request.record_list("participant", [participant_id], {"page": "statements"}, "exported")
    return Download.of_bytes(f"statement-{row.month:%Y-%m}.pdf", "application/pdf", content)
