"""The form of a team member: its choices and its validation."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from plankeeper.console.confirmations import new_implausible, require_confirmed
from plankeeper.console.edit_forms import find_changes, form_from
from plankeeper.console.forms import Form
from plankeeper.console.labels import display_name
from plankeeper.console.routing import FormRequest, PageRequest
from plankeeper.core.context import or_404
from plankeeper.core.errors import FieldError
from plankeeper.core.fields import STATE_CODES, apply_patch
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.team_members import store
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
PRIORITIES = {1: "Primary contact", 2: "Secondary contact"}
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
)  # fmt: skip - one line for each would be long
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
