"""The team members of a participant: add, details, edit, remove."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    describe_changes,
    edit_context,
    find_changes,
    form_from,
    new_implausible,
    require_confirmed,
    require_unchanged,
    translate_constraints,
)
from plankeeper.console.components.labels import PRIORITIES, display_name
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links
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
from plankeeper.core.errors import DomainError, FieldError
from plankeeper.core.fields import STATE_CODES, apply_patch
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import known_fields
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.participants.store import get as get_participant
from plankeeper.resources.team_members import service, store
from plankeeper.resources.team_members.rules import (
    NO_ACCESS,
    PermissionSlug,
    find_value_warnings,
    other_priority,
    requires_email,
)
from plankeeper.resources.team_members.schemas import (
    TeamMember,
    TeamMemberChange,
    TeamMemberCreate,
    TeamMemberListQuery,
    TeamMemberRow,
)

PERMISSIONS = {
    "view_budget": "View budget",
    "view_invoices": "View invoices",
    "approve_invoices": "Approve invoices",
    "email_statements": "Email statements",
    "view_documents": "View documents",
    NO_ACCESS: "No access",
}
ACCESS_FIELD = "access"  # the alternative of no access and the permissions that are ticked
ACCESS = {"none": "No access", "some": "These permissions"}
HOLDERS_FIELD = "priority_holders"  # the hidden field with the holders of the priorities that the choices name
COMMON_ROLES = (
    "Advocate",
    "Carer",
    "Child representative",
    "Family member",
    "Guardian",
    "Local area coordinator",
    "Parent",
    "Partner",
    "Plan nominee",
    "Correspondence nominee",
    "Support coordinator",
)
MAX_RECENT_ROLES = 20


def member_name(member: TeamMember) -> str:
    return display_name(member, member.email)


def member_form(member: TeamMember) -> Form:
    """The form that edits a member, filled with the current values."""
    permissions = [each.name for each in member.permissions]
    access = "none" if permissions == [NO_ACCESS] else "some"
    form = form_from(TeamMemberChange, member, permissions=permissions)
    return Form([*form.multi_items(), (ACCESS_FIELD, access)])


async def form_context(request: PageRequest, participant_id: UUID, member: TeamMember | None) -> dict[str, Any]:
    """The participant, and the choices of the form. Those of the contact priority name the current holder."""
    participant = or_404(await participant_store.get(request.db, request.plan_manager_id, participant_id))
    holders = await store.list_priority_holders(request.db, request.plan_manager_id, participant_id)
    recent = await store.list_recent_roles(request.db, request.plan_manager_id, MAX_RECENT_ROLES)
    return {
        "participant": participant,
        "access_choices": ACCESS,
        "permissions": {name: label for name, label in PERMISSIONS.items() if name != NO_ACCESS},
        "priorities": _priority_choices(holders, member),
        "priority_holders": _identify_holders(holders),
        "roles": sorted({*COMMON_ROLES, *recent}, key=str.casefold),
        "states": {"": "Not set", **{each: each for each in STATE_CODES}},
    }


def _priority_choices(holders: Sequence[TeamMember], member: TeamMember | None) -> Mapping[str, str]:
    choices = {"": "None"}
    others = {each.contact_priority: each for each in holders if member is None or each.id != member.id}
    for priority, label in PRIORITIES.items():
        holder, other = others.get(priority), other_priority(priority)
        if holder is None:
            choices[str(priority)] = label
        elif other in others:
            choices[str(priority)] = f"{label}, instead of {member_name(holder)}"
        else:
            place = PRIORITIES[other].lower()
            choices[str(priority)] = f"{label}. {member_name(holder)} becomes the {place}"
    return choices


def _identify_holders(holders: Sequence[TeamMember]) -> str:
    return " ".join(f"{each.contact_priority}:{each.id}" for each in holders)


async def require_valid_member(
    request: FormRequest, participant_id: UUID, before: TeamMember | None
) -> tuple[TeamMemberCreate, bool]:
    """The change of a form, and whether it takes a contact priority from its holder; raises FormError."""
    participant = or_404(await participant_store.get(request.tx, request.plan_manager_id, participant_id))
    current = member_form(before) if before else Form()
    change, errors = find_changes(TeamMemberCreate, _with_access(request.form), current)
    old = _row(before, participant_id)
    after = apply_patch(change, old)
    invalid = {each.field.partition("[")[0] for each in errors}
    if before is None:
        found = await _find_identity_errors(request, after, participant)
        errors += [each for each in found if each.field not in invalid]
    errors += _find_access_errors(request.form)
    replaces_holder, error = await _check_priority(request, participant_id, before, after.contact_priority)
    errors += error
    implausible = new_implausible(find_value_warnings(old) if before else [], find_value_warnings(after))
    require_confirmed(request.form, implausible, errors)
    return change, replaces_holder


def _with_access(form: Form) -> Form:
    """The form with the permission `no_access` if nothing else is ticked."""
    if form.getlist("permissions") or form.text(ACCESS_FIELD) == "some":
        return form
    return Form([*form.multi_items(), ("permissions", NO_ACCESS)])


def _find_access_errors(form: Form) -> list[FieldError]:
    """The error of a choice of access that contradicts the permissions."""
    is_ticked = any(each != NO_ACCESS for each in form.getlist("permissions"))
    if form.text(ACCESS_FIELD) == "none" and is_ticked:
        return [FieldError(ACCESS_FIELD, "can’t be “No access” while permissions are ticked")]
    if form.text(ACCESS_FIELD) == "some" and not is_ticked:
        return [FieldError("permissions", "must have a tick, unless the member has no access")]
    return []


def _row(member: TeamMember | None, participant_id: UUID) -> TeamMemberRow:
    row = TeamMemberRow(participant_id=participant_id, id=UUID(int=0), user_id=UUID(int=0))
    if member is None:
        return row
    names: list[PermissionSlug] = [each.name for each in member.permissions]
    shared = [name for name in row.__struct_fields__ if name != "permissions"]
    return TeamMemberRow(**{name: getattr(member, name) for name in shared}, permissions=names)


async def _find_identity_errors(
    request: FormRequest, after: TeamMemberRow, participant: Participant
) -> list[FieldError]:
    """The errors of a new member's name and email."""
    email = (after.email or "").lower()
    if not email:
        errors: list[FieldError] = []
        if not (after.first_name or after.last_name):
            errors.append(FieldError("first_name", "Enter a first name, a last name or an email"))
        if requires_email(after.permissions):
            errors.append(FieldError("email", "is required for permissions other than “No access”"))
        return errors
    if email == (participant.email or "").lower():
        return [FieldError("email", "must differ from the participant’s own email")]
    holder = await store.get_by_email(request.tx, request.plan_manager_id, participant.id, email)
    return [FieldError("email", f"is already used by {member_name(holder)} on this team")] if holder else []


async def _check_priority(
    request: FormRequest, participant_id: UUID, before: TeamMember | None, priority: int | None
) -> tuple[bool, list[FieldError]]:
    """Whether the contact priority is taken from another member, which is an error unless the form has named them."""
    if priority is None or (before and before.contact_priority == priority):
        return False, []
    holders = await store.list_priority_holders(request.tx, request.plan_manager_id, participant_id)
    holder = next((each for each in holders if each.contact_priority == priority), None)
    if holder is None:
        return False, []
    if request.form.text(HOLDERS_FIELD) == _identify_holders(holders):
        return True, []
    message = f"is used by {member_name(holder)} now: check the choice, and save again"
    return False, [FieldError("contact_priority", message)]


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
    return HtmlPage("participants/team_member_new.html", context | await form_context(request, participant_id, None))


@pages.post(TEAM_PATH, role="manager", on_error=new)
async def create(request: FormRequest, participant_id: UUID) -> Redirect:
    change, replaces_holder = await require_valid_member(request, participant_id, None)
    async with translate_errors(request):
        member = await service.create(request.write_context, participant_id, change, replaces_holder=replaces_holder)
    contacts = await describe_contacts(request, participant_id) if replaces_holder else ""
    return Redirect(team_url(participant_id), f"{member_name(member)} added to the team.{contacts}")


@pages.get(TEAM_PATH + "/{team_member_id}", role="viewer", is_limited=True, access_log="participant")
async def get(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id, team_member_id)
    return HtmlPage("participants/team_member.html", {**context, "priorities": PRIORITIES})


@pages.get(TEAM_PATH + "/{team_member_id}/edit", role="manager", access_log="participant")
async def edit(request: PageRequest, participant_id: UUID, team_member_id: UUID) -> HtmlPage:
    context = await member_context(request, participant_id, team_member_id)
    member: TeamMember = context["member"]
    context |= await form_context(request, participant_id, member)
    context |= await edit_context(request, TeamMemberChange, member_form(member), edited_member(member))
    return HtmlPage("participants/team_member_edit.html", context)


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
    return HtmlPage(
        "participants/team_member_remove.html", await member_context(request, participant_id, team_member_id)
    )


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
