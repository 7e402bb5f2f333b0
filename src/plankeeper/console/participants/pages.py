"""Participants: list and search, delete."""

from typing import Any
from uuid import UUID

from plankeeper.console.activity.timeline import with_texts
from plankeeper.console.bank_details.section import bank_details_section
from plankeeper.console.components.charts import MONEY, Bar, bar_list
from plankeeper.console.components.events import retention, trash_path
from plankeeper.console.components.labels import display_name
from plankeeper.console.components.money import period_of, spend_chart, spend_sums
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links, with_query
from plankeeper.console.components.record_picker import pick_record
from plankeeper.console.invoices.list import load_names, warning_titles
from plankeeper.console.lists.registration import add_list
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    outcome_page,
    read_selection,
    seen_values,
)
from plankeeper.console.notes.section import record_notes
from plankeeper.console.participants.form import participant_sections
from plankeeper.console.participants.header import participant_context
from plankeeper.console.participants.list import PARTICIPANTS
from plankeeper.console.participants.team import PERMISSIONS, team_context
from plankeeper.console.participants.timeline import KINDS
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.validation import validate_struct
from plankeeper.events import activity_store
from plankeeper.resources.invoices import queries
from plankeeper.resources.invoices.queries import ProviderSum
from plankeeper.resources.invoices.schemas import InvoiceListQuery
from plankeeper.resources.participants import service, store
from plankeeper.resources.participants.schemas import Participant, ParticipantUpdate
from plankeeper.resources.team_members import store as team_store
from plankeeper.resources.team_members.schemas import TeamMemberListQuery
from plankeeper.resources.trash import service as trash_service

pages = Pages()

PARTICIPANTS_URL = f"{PREFIX}/participants"


add_list(pages, PARTICIPANTS, is_limited=True)


@pages.get("/participants/{participant_id}/delete", role="manager", access_log="participant")
async def delete_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    participant = await get_or_404(request, participant_id)
    members = await team_store.count(request.db, request.plan_manager_id, participant_id, TeamMemberListQuery())
    return HtmlPage(
        "participants/delete.html",
        {"participant": participant, "name": display_name(participant), "members": members, **retention(request)},
    )


@pages.post("/participants/{participant_id}/delete", role="manager")
async def delete(request: FormRequest, participant_id: UUID) -> Redirect:
    participant = or_404(await store.get(request.tx, request.plan_manager_id, participant_id))
    entry = await trash_service.delete(request.write_context, "participant", participant_id)
    return Redirect(PARTICIPANTS_URL, f"{display_name(participant)} moved to the trash.", undo=trash_path(entry))


async def get_or_404(request: PageRequest, participant_id: UUID) -> Participant:
    return or_404(await store.get(request.db, request.plan_manager_id, participant_id))


MAX_PROVIDERS = 5


@pages.get("/participants/{participant_id}/invoices", role="viewer", is_limited=True, access_log="participant")
async def list_invoices(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/invoices")
    place, participant = (request.db, request.plan_manager_id), context["participant"]
    first, last, is_plan = period_of(participant.plan_start_date, participant.plan_end_date, context["today"])
    sums = await queries.sums_by_month_for_participant(*place, participant_id, first, last)
    providers = await queries.top_providers(*place, participant_id, first, last, MAX_PROVIDERS)
    only_warnings, after = bool(request.query.text("warnings")), request.query.text("after")
    filters = {"participant_id": str(participant_id), "limit": PAGE_SIZE, "after": after or "0"}
    list_page = queries.list_page_with_warnings if only_warnings else queries.list_page
    order = {} if only_warnings else {"sort": "-invoice_date"}
    rows = await list_page(*place, validate_struct(InvoiceListQuery, filters | order))
    params = {"warnings": "1" if only_warnings else ""}
    request.record_list("invoice", [each.id for each in rows], {"participant_id": str(participant_id), **params})
    links = {"participant": str(participant_id)}
    context |= {
        "rows": [(each, warning_titles(each)) for each in rows],
        "names": await load_names(request, rows),
        "only_warnings": only_warnings,
        "sums": spend_sums(sums),
        "period": (first, last),
        "is_plan": is_plan,
        "chart": spend_chart(sums, first, last, links),
        "providers": bar_list("Providers", [provider_bar(each, links) for each in providers], unit=MONEY),
        **paginate_links(context["tab_url"], params, rows, after),
    }
    return HtmlPage("participants/invoices.html", context)


def provider_bar(provider: ProviderSum, links: dict[str, str]) -> Bar:
    url = with_query(f"{PREFIX}/invoices", {**links, "provider": str(provider.id)})
    return Bar(provider.name or "No name", provider.total, url)


LATEST_EVENTS = 3
LATEST_INVOICES = 5


@pages.get("/participants/{participant_id}", role="viewer", is_limited=True, access_log="participant")
async def get(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "")
    latest = (request.db, request.plan_manager_id)
    rows = await queries.latest_for_participant(*latest, participant_id, LATEST_INVOICES)
    events = await activity_store.list_of_participant(*latest, participant_id, None, KINDS[""][1], LATEST_EVENTS)
    context |= {
        "sections": participant_sections(context["participant"]),
        "invoices": rows,
        "names": await load_names(request, rows),
        "events": with_texts(request, events),
        "notes": await record_notes(request, "participant", participant_id),
        "empty_form": Form(),
        "bank_details": await bank_details_section(
            request, "participant", participant_id, is_deceased=context["participant"].deceased_on is not None
        ),
    }
    return HtmlPage("participants/participant.html", context)


@pages.get("/participants/{participant_id}/team", role="viewer", is_limited=True, access_log="participant")
async def team(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/team")
    members = await team_context(request, participant_id, f"{context['page_url']}/team")
    return HtmlPage("participants/team.html", {**context, **members, "permissions": PERMISSIONS})


FIELD, NO_MANAGER = "account_manager", "no_account_manager"  # the field, and the box that takes the manager away
MISSING_MANAGER = "Enter the name of an account manager, or tick “No account manager”"
CONTRADICTION = "can’t be a name while “No account manager” is ticked"


@pages.get("/participants/selected/account-manager", role="manager")
async def account_manager_form(request: PageRequest) -> HtmlPage:
    """The selected participants with their account managers, and the choice of another one."""
    selection = await read_selection(request, PARTICIPANTS, request.form or request.query, _manager)
    context: dict[str, Any] = {
        "selection": selection,
        "rows": [(each, display_name(each), f"{each.id}:{_manager(each)}") for each in selection.shown],
        "picker": await pick_record(request, "active_account_manager", FIELD, request.form),
        "has_no_manager": bool(request.form.text(NO_MANAGER)),
    }
    return HtmlPage("lists/selected_account_manager.html", context)


@pages.post("/participants/selected/account-manager", role="manager", on_error=account_manager_form)
async def set_account_manager(request: FormRequest) -> HtmlPage:
    """Each change is an event of its own. Participants whose account manager has changed since the form are skipped."""
    manager_id = await _read_manager(request)
    selection = await confirm_selection(request, PARTICIPANTS, _manager)
    seen = {each.id: _manager(each) for each in selection.rows} | seen_values(request.form)
    locked = await store.select_for_update(request.tx, request.plan_manager_id, [each.id for each in selection.rows])
    now = {each.id: str(each.account_manager_id or "") for each in locked}
    outcomes = [await _set_one(request, each, manager_id, now.get(each.id), seen) for each in selection.rows]
    return outcome_page(request, "Account manager set", selection, outcomes)


async def _read_manager(request: FormRequest) -> str | None:
    """The id of the account manager that the form names; null for none. Raises ValidationError."""
    picker = await pick_record(request, "active_account_manager", FIELD, request.form)
    if request.form.text(NO_MANAGER):
        if picker.text:
            raise ValidationError(account_manager=CONTRADICTION)
        return None
    if picker.id is None:
        raise ValidationError(account_manager=picker.message or MISSING_MANAGER)
    return str(picker.id)


async def _set_one(
    request: FormRequest, participant: Participant, manager_id: str | None, current: str | None, seen: dict[UUID, str]
) -> Outcome:
    name, url = display_name(participant), f"{PREFIX}/participants/{participant.id}"
    if current is None:
        return Outcome(name, url, "deleted in the meantime", is_changed=False)
    if seen[participant.id] != current:
        return Outcome(name, url, "changed by someone else", is_changed=False)
    count, change = len(request.recorded), ParticipantUpdate(account_manager_id=manager_id)
    try:
        async with request.tx.savepoint():
            after = await service.update(request.write_context, participant.id, change)
    except DomainError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    before_name = participant.account_manager.name or "none"
    if len(request.recorded) == count:
        return Outcome(name, url, f"already {before_name}", is_changed=False)
    text = f"{before_name} → {after.account_manager.name or 'none'}"
    return Outcome(name, url, text, is_changed=True, undo_path=f"{PREFIX}/activity/{request.recorded[-1]}/undo")


def _manager(participant: Participant) -> str:
    """The id of the account manager, which the page names."""
    return str(participant.account_manager.id or "")
