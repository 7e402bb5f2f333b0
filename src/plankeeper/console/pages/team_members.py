"""The team members of a participant: add, details, edit, remove."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from plankeeper.console.edit_forms import (
    EditedRecord,
    describe_changes,
    edit_context,
    require_unchanged,
    translate_constraints,
)
from plankeeper.console.labels import display_name
from plankeeper.console.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.console.team_forms import PRIORITIES, form_context, member_form, member_name, require_valid_member
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError, FieldError
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import known_fields
from plankeeper.resources.participants.store import get as get_participant
from plankeeper.resources.team_members import service, store
from plankeeper.resources.team_members.schemas import TeamMember, TeamMemberChange, TeamMemberListQuery

pages = Pages()

TEAM_PATH = "/participants/{participant_id}/team-members"
CONSTRAINT_FIELDS: dict[str, FieldError] = {
    "permission_requires_email": FieldError("email", "is required for permissions other than “No access”"),
    "contact_priority_taken": FieldError("contact_priority", "was given to another member at this moment: save again"),
    "team_member_exists": FieldError("email", "is already used by another member of this team"),
}


async def team_context(request: PageRequest, participant_id: UUID, page_url: str) -> dict[str, Any]:
    """One page of the participant's team, those with a contact priority first."""
    after = parse_uuid(request.query.text("after"))
    query = TeamMemberListQuery(limit=PAGE_SIZE, after=str(after) if after else "0")
    rows = await store.list_page(request.db, request.plan_manager_id, participant_id, query)
    team = sorted(rows, key=lambda each: each.contact_priority or 3)
    return {
        "team": [(each, member_name(each)) for each in team],
        **paginate_links(page_url, {}, rows, after),
    }


@pages.get(TEAM_PATH + "/new", role="manager", access_log="participant")
async def new(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id)
    return HtmlPage("team_member_new.html", context | await form_context(request, participant_id, None))


@pages.post(TEAM_PATH, role="manager", on_error=new)
async def create(request: FormRequest, participant_id: UUID) -> Redirect:
    change, replaces_holder = await require_valid_member(request, participant_id, None)
    async with translate_errors(request):
        member = await service.create(request.write_context, participant_id, change, replaces_holder=replaces_holder)
    contacts = await describe_contacts(request, participant_id) if replaces_holder else ""
    return Redirect(team_url(participant_id), f"{member_name(member)} added to the team.{contacts}")


@pages.get(TEAM_PATH + "/{team_member_id}", role="viewer", access_log="participant")
async def get(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id, team_member_id)
    return HtmlPage("team_member.html", {**context, "priorities": PRIORITIES})


@pages.get(TEAM_PATH + "/{team_member_id}/edit", role="manager", access_log="participant")
async def edit(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id, team_member_id)
    member: TeamMember = context["member"]
    context |= await form_context(request, participant_id, member)
    context |= await edit_context(request, TeamMemberChange, member_form(member), edited_member(member))
    return HtmlPage("team_member_edit.html", context)


@pages.post(TEAM_PATH + "/{team_member_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, participant_id: UUID, team_member_id: UUID) -> Redirect:
    await service.select_for_update(request.write_context, participant_id, team_member_id)
    current = or_404(await store.get(request.tx, request.plan_manager_id, participant_id, team_member_id))
    await require_unchanged(request, edited_member(current))
    valid, replaces_holder = await require_valid_member(request, participant_id, current)
    change = TeamMemberChange(**{name: getattr(valid, name) for name in TeamMemberChange.__struct_fields__})
    async with translate_errors(request):
        member = await service.update(
            request.write_context, participant_id, team_member_id, change, replaces_holder=replaces_holder
        )
    contacts = await describe_contacts(request, participant_id) if replaces_holder else ""
    message = f"Changes to {member_name(member)} saved{describe_changes(change)}.{contacts}"
    return Redirect(team_url(participant_id), message, undo=request.undo_path)


@pages.post(TEAM_PATH + "/{team_member_id}/make-primary", role="manager")
async def make_primary(request: FormRequest, participant_id: UUID, team_member_id: UUID) -> Redirect:
    """The previous primary contact becomes the secondary one, or gets the new one's previous priority."""
    change = TeamMemberChange(contact_priority=1)
    await service.update(request.write_context, participant_id, team_member_id, change, replaces_holder=True)
    return Redirect(team_url(participant_id), (await describe_contacts(request, participant_id)).strip())


async def describe_contacts(request: FormRequest, participant_id: UUID) -> str:
    """A sentence about each contact, with a space before it."""
    holders = await store.list_priority_holders(request.tx, request.plan_manager_id, participant_id)
    sentences = [
        f"{member_name(each)} is now the {PRIORITIES[each.contact_priority].lower()}."
        for each in holders
        if each.contact_priority
    ]
    return "".join(f" {each}" for each in sentences)


@pages.get(TEAM_PATH + "/{team_member_id}/remove", role="manager", access_log="participant")
async def remove_form(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    return HtmlPage("team_member_remove.html", await member_context(request, participant_id, team_member_id))


@pages.post(TEAM_PATH + "/{team_member_id}/remove", role="manager")
async def remove(request: FormRequest, participant_id: UUID, team_member_id: UUID) -> Redirect:
    member = (await member_context(request, participant_id, team_member_id))["member"]
    await service.delete(request.write_context, participant_id, team_member_id)
    return Redirect(team_url(participant_id), f"{member_name(member)} removed from the team.", undo=request.undo_path)


async def member_context(
    request: PageRequest, participant_id: UUID, team_member_id: UUID | None = None
) -> dict[str, Any]:
    """The context of a team member's pages: the participant, the member, the options of the form."""
    participant = or_404(await get_participant(request.db, request.plan_manager_id, participant_id))
    context: dict[str, Any] = {"participant": participant, "name": display_name(participant), "form": request.form}
    if team_member_id:
        member = or_404(await store.get(request.db, request.plan_manager_id, participant_id, team_member_id))
        context["member"] = member
        context["member_name"] = member_name(member)
    return context


def edited_member(member: TeamMember) -> EditedRecord:
    return EditedRecord("team_member", member.id, member.updated_at, known_fields(TeamMemberChange))


def team_url(participant_id: UUID) -> str:
    return f"{PREFIX}/participants/{participant_id}/team"


@asynccontextmanager
async def translate_errors(request: FormRequest) -> AsyncGenerator[None]:
    """Assigns the API's errors to the form's fields. Other requests of the same moment cause them."""
    try:
        async with translate_constraints(request, service.CONSTRAINT_ERRORS):
            yield
    except DomainError as error:
        if error.code in CONSTRAINT_FIELDS:
            error.errors = [CONSTRAINT_FIELDS[error.code]]
        raise
