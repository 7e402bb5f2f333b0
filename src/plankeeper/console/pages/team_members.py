"""The team members of a participant: add, details, edit, remove."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import UUID

from plankeeper.console.edit_forms import changes_in, edit_context, form_from, require_unchanged, translate_constraints
from plankeeper.console.forms import Form
from plankeeper.console.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.http.context import or_404
from plankeeper.http.errors import ApiError, FieldError
from plankeeper.http.parsing import parse_uuid
from plankeeper.http.schemas import STATE_CODES
from plankeeper.participants.store import get_summary
from plankeeper.team_members import service, store
from plankeeper.team_members.schemas import TeamMember, TeamMemberCreate, TeamMemberListQuery, TeamMemberUpdate

pages = Pages()

TEAM_PATH = "/participants/{participant_id}/team-members"
PERMISSIONS = {
    "view_budget": "View budget",
    "view_invoices": "View invoices",
    "approve_invoices": "Approve invoices",
    "email_statements": "Email statements",
    "view_documents": "View documents",
    "no_access": "No access",
}
PRIORITIES = {"": "None", "1": "Primary contact", "2": "Secondary contact"}
CHOICES = {
    "permissions": PERMISSIONS,
    "priorities": PRIORITIES,
    "states": {"": "Not set", **{each: each for each in STATE_CODES}},
}


class HasPersonName(Protocol):
    """A person with an optional first and last name."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...


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


@pages.get(TEAM_PATH + "/new", role="manager")
async def new(request: PageRequest, participant_id: UUID) -> HtmlPage:
    return HtmlPage("team_member_new.html", {**await member_context(request, participant_id), "form": request.form})


@pages.post(TEAM_PATH, role="manager", on_error=new)
async def create(request: FormRequest, participant_id: UUID) -> Redirect:
    change = changes_in(TeamMemberCreate, request.form, Form())
    async with translate_errors(request, participant_id):
        member = await service.create(request.write_context, participant_id, change)
    return Redirect(f"{PREFIX}/participants/{participant_id}/team", f"{member_name(member)} added to the team.")


@pages.get(TEAM_PATH + "/{team_member_id}", role="viewer", discloses="participant")
async def get(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    return HtmlPage("team_member.html", await member_context(request, participant_id, team_member_id))


@pages.get(TEAM_PATH + "/{team_member_id}/edit", role="manager", discloses="participant")
async def edit(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id, team_member_id)
    return HtmlPage(
        "team_member_edit.html", context | edit_context(request, TeamMemberUpdate, member_form(context["member"]))
    )


@pages.post(TEAM_PATH + "/{team_member_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, participant_id: UUID, team_member_id: UUID) -> Redirect:
    await service.select_for_update(request.write_context, participant_id, team_member_id)
    current = or_404(await store.get(request.tx, request.plan_manager_id, participant_id, team_member_id))
    require_unchanged(request, member_form(current))
    change = changes_in(TeamMemberUpdate, request.form, member_form(current))
    async with translate_errors(request, participant_id):
        member = await service.update(request.write_context, participant_id, team_member_id, change)
    return Redirect(f"{PREFIX}/participants/{participant_id}/team", f"Changes to {member_name(member)} saved.")


@pages.get(TEAM_PATH + "/{team_member_id}/remove", role="manager", discloses="participant")
async def remove_form(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    return HtmlPage("team_member_remove.html", await member_context(request, participant_id, team_member_id))


@pages.post(TEAM_PATH + "/{team_member_id}/remove", role="manager")
async def remove(request: FormRequest, participant_id: UUID, team_member_id: UUID) -> Redirect:
    member = (await member_context(request, participant_id, team_member_id))["member"]
    await service.delete(request.write_context, participant_id, team_member_id)
    return Redirect(f"{PREFIX}/participants/{participant_id}/team", f"{member_name(member)} removed from the team.")


async def member_context(
    request: PageRequest, participant_id: UUID, team_member_id: UUID | None = None
) -> dict[str, Any]:
    """The context of a team member's pages: the participant, the member, the options of the form."""
    participant = or_404(await get_summary(request.db, request.plan_manager_id, participant_id))
    context: dict[str, Any] = {"participant": participant, "name": display_name(participant), **CHOICES}
    if team_member_id:
        member = or_404(await store.get(request.db, request.plan_manager_id, participant_id, team_member_id))
        context["member"] = member
        context["member_name"] = member_name(member)
    return context


def member_form(member: TeamMember) -> Form:
    """The form that edits a member, filled with the current values."""
    permissions = [each.name for each in member.permissions]
    return form_from(TeamMemberUpdate, member, permissions=permissions)


def member_name(member: TeamMember) -> str:
    return display_name(member, member.email)


def display_name(person: HasPersonName, default: str | None = None) -> str:
    """A person's first and last name, or else the default."""
    names = [each.strip() for each in (person.first_name, person.last_name) if each and each.strip()]
    return " ".join(names) or default or "No name"


@asynccontextmanager
async def translate_errors(request: FormRequest, participant_id: UUID) -> AsyncGenerator[None]:
    """Assigns the API's errors to the form's field, naming the conflicting member."""
    try:
        async with translate_constraints(request, service.CONSTRAINT_ERRORS):
            yield
    except ApiError as error:
        field_error = await _field_error(request, participant_id, error.code)
        if field_error:
            error.errors = [field_error]
        raise


async def _field_error(request: FormRequest, participant_id: UUID, code: str) -> FieldError | None:
    if code == "permission_requires_email":
        return FieldError("permissions", "require an email: without one, only “No access” is possible")
    if code == "contact_priority_taken":
        name = await _priority_holder_name(request, participant_id)
        return FieldError(
            "contact_priority", f"is already used by {name}: each participant has one contact of each priority"
        )
    if code == "team_member_exists":
        name = await _name_of_email_holder(request, participant_id)
        return FieldError("email", f"is already used by {name} on this team")
    return None


async def _priority_holder_name(request: FormRequest, participant_id: UUID) -> str:
    priority = int(request.form.text("contact_priority"))
    holder_id = await store.get_priority_holder(request.tx, request.plan_manager_id, participant_id, priority)
    if holder_id is None:
        return "Another team member"
    holder = await store.get(request.tx, request.plan_manager_id, participant_id, holder_id)
    return member_name(holder) if holder else "Another team member"


async def _name_of_email_holder(request: FormRequest, participant_id: UUID) -> str:
    query, email = TeamMemberListQuery(limit=1000), request.form.text("email").lower()
    members = await store.list_page(request.tx, request.plan_manager_id, participant_id, query)
    return next((member_name(each) for each in members if (each.email or "").lower() == email), "Another team member")
