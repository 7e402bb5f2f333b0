"""Participants: list and search, details, create, edit, delete."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET

from plankeeper.account_managers import store as account_manager_store
from plankeeper.account_managers.schemas import AccountManagerListQuery
from plankeeper.bin import service as bin_service
from plankeeper.console.edit_forms import changes_in, edit_context, form_from, require_unchanged, translate_constraints
from plankeeper.console.forms import Form
from plankeeper.console.pages.bin_entries import bin_path, retention
from plankeeper.console.pages.team_members import display_name
from plankeeper.console.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.exit_reasons import store as exit_reasons
from plankeeper.http.context import or_404
from plankeeper.http.parsing import parse_uuid
from plankeeper.http.schemas import STATE_CODES, StateFilter
from plankeeper.participants import queries, service, store
from plankeeper.participants.rows import ParticipantRow
from plankeeper.participants.rules import is_scheme_number
from plankeeper.participants.schemas import (
    Participant,
    ParticipantListQuery,
    ParticipantUpdate,
)
from plankeeper.team_members import store as team_store
from plankeeper.team_members.schemas import TeamMemberListQuery

pages = Pages()

PARTICIPANTS_URL = f"{PREFIX}/participants"
MAX_CHOICES = 500  # options of a select, which limits the size of the page
STATUSES = ("Active", "Inactive", "Lead")
REGIONS = {"": "Not set", "remote": "Remote", "very_remote": "Very remote"}


@pages.get("/participants", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    text = request.query.text("q")[:255]
    filters = {name: request.query.text(name) for name in ("status", "account_manager", "state")}
    after = parse_uuid(request.query.text("after"))
    query = ParticipantListQuery(
        limit=PAGE_SIZE,
        after=str(after) if after else "0",
        status=filters["status"] if filters["status"] in STATUSES else UNSET,
        state=StateFilter(filters["state"]) if filters["state"] in STATE_CODES else UNSET,
        account_manager=[filters["account_manager"]] if parse_uuid(filters["account_manager"]) else UNSET,
        q=text if text.strip() else UNSET,
    )
    rows = await queries.list_page(request.db, request.plan_manager_id, query)
    params = {"q": text, **filters}
    request.record_list("participant", [each.id for each in rows], params)
    links = paginate_links(PARTICIPANTS_URL, params, rows, after)
    choices = {"statuses": STATUSES, "states": STATE_CODES, "managers": await manager_choices(request)}
    context = {"participants": rows, "q": text, "is_filtered": any(params.values())}
    helpers = {"filters": filters, "display_name": display_name, "is_scheme_number": is_scheme_number}
    return HtmlPage("participants.html", context | links | choices | helpers)


@pages.get("/participants/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    return HtmlPage("participant_new.html", {"form": request.form or empty_form(), **await form_choices(request, None)})


@pages.post("/participants", role="manager", on_error=new)
async def create(request: FormRequest) -> Redirect:
    change = changes_in(ParticipantUpdate, request.form, empty_form())
    async with translate_constraints(request, service.CONSTRAINT_ERRORS):
        created = await service.create(request.write_context, change)
    return Redirect(f"{PARTICIPANTS_URL}/{created.id}", f"{display_name(created)} added.")


@pages.get("/participants/{participant_id}/edit", role="manager", discloses="participant")
async def edit(request: PageRequest, participant_id: UUID) -> HtmlPage:
    participant = await get_or_404(request, participant_id)
    context = {
        "participant": participant,
        "name": display_name(participant),
        **edit_context(request, ParticipantUpdate, participant_form(participant)),
    }
    return HtmlPage("participant_edit.html", {**context, **await form_choices(request, participant)})


@pages.post("/participants/{participant_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, participant_id: UUID) -> Redirect:
    await store.select_for_update(request.tx, request.plan_manager_id, [participant_id])
    participant = or_404(await store.get(request.tx, request.plan_manager_id, participant_id))
    current = participant_form(participant)
    require_unchanged(request, current)
    change = changes_in(ParticipantUpdate, request.form, current)
    async with translate_constraints(request, service.CONSTRAINT_ERRORS):
        await service.update(request.write_context, participant_id, change)
    return Redirect(f"{PARTICIPANTS_URL}/{participant_id}", "Changes saved.")


@pages.get("/participants/{participant_id}/delete", role="manager", discloses="participant")
async def delete_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    participant = await get_or_404(request, participant_id)
    members = await team_store.count(request.db, request.plan_manager_id, participant_id, TeamMemberListQuery())
    return HtmlPage(
        "participant_delete.html",
        {"participant": participant, "name": display_name(participant), "members": members, **retention(request)},
    )


@pages.post("/participants/{participant_id}/delete", role="manager")
async def delete(request: FormRequest, participant_id: UUID) -> Redirect:
    participant = or_404(await store.get_summary(request.tx, request.plan_manager_id, participant_id))
    entry = await bin_service.delete_participant(request.write_context, participant_id)
    return Redirect(PARTICIPANTS_URL, f"{display_name(participant)} moved to the bin.", undo=bin_path(entry))


async def get_or_404(request: PageRequest, participant_id: UUID) -> Participant:
    return or_404(await store.get(request.db, request.plan_manager_id, participant_id))


def empty_form() -> Form:
    """The form of a new participant with the default values."""
    return form_from(ParticipantUpdate, ParticipantRow(id=UUID(int=0), created_at=datetime.now(UTC)))


def participant_form(participant: Participant) -> Form:
    """The form that edits a participant, filled with the current values."""
    category, subcategory = participant.exit_reason_category, participant.exit_reason_subcategory
    return form_from(
        ParticipantUpdate,
        participant,
        account_manager_id=participant.account_manager.id,
        exit_reason_category_id=None if category is UNSET else category.id,
        exit_reason_subcategory_id=None if subcategory is UNSET else subcategory.id,
    )


async def manager_choices(request: PageRequest) -> dict[str, str]:
    """The account managers that can be selected: names by id, sorted by name."""
    query = AccountManagerListQuery(limit=MAX_CHOICES)
    rows = await account_manager_store.list_page(
        request.db, request.plan_manager_id, query, request.settings.operator_name
    )
    labelled = [(each.name or each.email or "No name", each) for each in rows]
    labelled.sort(key=lambda each: each[0].casefold())
    return {str(each.id): name if each.active else f"{name} (inactive)" for name, each in labelled}


async def form_choices(request: PageRequest, participant: Participant | None) -> Mapping[str, object]:
    """The options of the form's selects. The participant's current values are included even if they are not active."""
    choices = await manager_choices(request)
    manager = participant.account_manager if participant else None
    if manager and manager.id:
        choices.setdefault(str(manager.id), f"{manager.name or 'No name'} (not available any more)")
    return {
        "managers": {"": "Not set", **choices},
        "states": {"": "Not set", **{each: each for each in STATE_CODES}},
        "statuses": {each: each for each in STATUSES},
        "regions": REGIONS,
        **await exit_reason_choices(request, participant),
    }


async def exit_reason_choices(request: PageRequest, participant: Participant | None) -> dict[str, Any]:
    """The categories of exit reasons, and the subcategories of each."""
    reasons = await exit_reasons.list_all(request.db, request.plan_manager_id, MAX_CHOICES)
    names = {str(each.id): each.name for each in reasons}
    categories = {"": "Not set", **{str(each.id): each.name for each in reasons if each.parent_id is None}}
    groups = dict[str, dict[str, str]]()
    for each in reasons:
        if each.parent_id:
            groups.setdefault(str(each.parent_id), {})[str(each.id)] = each.name
    category = participant.exit_reason_category if participant else UNSET
    subcategory = participant.exit_reason_subcategory if participant else UNSET
    if category is not UNSET:
        categories.setdefault(str(category.id), category.name)
    if subcategory is not UNSET and not any(str(subcategory.id) in subcategories for subcategories in groups.values()):
        groups[""] = {str(subcategory.id): subcategory.name}
    return {
        "categories": categories,
        "groups": [(names.get(id_, "Other"), subcategories) for id_, subcategories in groups.items()],
    }
