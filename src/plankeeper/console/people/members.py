"""Settings, people: the members of a plan manager with their roles, and invitations."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from plankeeper.access.accounts import invitations, member_store
from plankeeper.access.accounts import members as member_service
from plankeeper.access.accounts.schemas import NO_DETAILS, CreatedAccess, Invitation, Member, RoleDetails
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.policy import (
    MAX_NAME_LENGTH,
    PERMISSION_LABELS,
    PERMISSIONS,
    Permission,
)
from plankeeper.access.single_sign_on import store as single_sign_on
from plankeeper.console.components.edit_forms import EditConflictError
from plankeeper.console.components.record_picker import manager_choices
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import ValidationError
from plankeeper.core.formatting import single_line
from plankeeper.core.ids import parse_uuid

pages = Pages()

MEMBERS_URL = f"{PREFIX}/settings/people"
ROLE_CHOICES = {
    "viewer": "Viewer: can see everything except API keys",
    "manager": "Manager: can also change records, API keys and webhooks",
    "owner": "Owner: can also invite and remove people",
}


PERMISSION_CHOICES = {
    "make_claims": "Make claims: make claim batches, submit them, and record their results",
    "make_payments": "Make payments: make payment runs, download their files, and mark them as paid",
    "approve_bank_details": "Approve bank details: decide about changes that other people propose",
    "override_blocks": "Ignore blocking warnings: with a reason, so that an invoice can be claimed",
}


@pages.get("/settings/people", role="viewer", is_limited=True)
async def list_(request: PageRequest) -> HtmlPage:
    members = await member_store.list_members(request.db, request.plan_manager_id)
    open_invitations = await member_store.list_pending_invitations(request.db, request.plan_manager_id)
    linked = await member_store.list_linked(
        request.db, request.plan_manager_id, [each.id for each in members], [each.email for each in members]
    )
    context = {
        "members": members,
        "account_managers": {each.account_id: each for each in linked},
        "permission_labels": PERMISSION_LABELS,
        "limits": await _limit_names(request, [*members, *open_invitations]),
        "open_invitations": open_invitations,
        "only_owner": find_only_owner(members),
        "policy": await plan_managers.get_policy(request.db, request.plan_manager_id),
        "provider": await single_sign_on.get(request.db, request.plan_manager_id),
        "now": datetime.now(UTC),
    }
    return HtmlPage("people/members.html", context)


async def list_again(request: PageRequest, **_path_params: object) -> HtmlPage:
    return await list_(request)


@pages.post("/settings/people/two-factor", role="owner", on_error=list_)
async def set_requires_two_factor(request: FormRequest) -> Redirect:
    required = request.form.text("required") == "yes"
    await member_service.set_requires_two_factor(request.write_context, required)
    message = "Two-factor authentication is now required." if required else "Two-factor authentication is now optional."
    return Redirect(MEMBERS_URL, message)


@pages.post("/settings/people/single-sign-on", role="owner", on_error=list_)
async def set_requires_single_sign_on(request: FormRequest) -> Redirect:
    required = request.form.text("required") == "yes"
    has_single_sign_on = request.plan_manager_id in request.account.single_sign_on_ids
    await member_service.set_requires_single_sign_on(
        request.write_context, required, has_single_sign_on=has_single_sign_on
    )
    return Redirect(MEMBERS_URL, f"Single sign-on is now {'required' if required else 'optional'}.")


@pages.get("/settings/people/invite", role="owner")
async def invite_form(request: PageRequest) -> HtmlPage:
    context = await details_context(request, NO_DETAILS)
    return HtmlPage("people/member_invite.html", {"roles": ROLE_CHOICES, **context})


@pages.post("/settings/people", role="owner", on_error=invite_form)
async def invite(request: FormRequest) -> HtmlPage:
    name = request.form.text("name")
    if single_line(name, MAX_NAME_LENGTH) != name:
        raise ValidationError(name=f"must be one line of at most {MAX_NAME_LENGTH} characters")
    details = read_details(request)
    return await invitation_page(request, request.form.text("email"), request.form.text("role"), name or None, details)


@pages.post("/settings/people/invitations/{invitation_id}/again", role="owner", on_error=list_again)
async def invite_again(request: FormRequest, invitation_id: UUID) -> HtmlPage:
    invitation = await get_invitation(request, invitation_id)
    return await invitation_page(request, invitation.email, invitation.role, invitation.name, invitation.details)


@pages.post("/settings/people/invitations/{invitation_id}/withdraw", role="owner")
async def revoke_invitation(request: FormRequest, invitation_id: UUID) -> Redirect:
    before = await invitations.revoke(request.write_context, invitation_id)
    return Redirect(MEMBERS_URL, f"Invitation for {before.email} revoked. Its link no longer works.")


@pages.get("/settings/people/{account_id}/role", role="owner")
async def role_form(request: PageRequest, account_id: UUID) -> HtmlPage:
    member = await get_member(request, account_id)
    context = await details_context(request, member.details)
    return HtmlPage(
        "people/member_role.html",
        {"member": member, "roles": ROLE_CHOICES, "was": describe_access(member), **context},
    )


@pages.post("/settings/people/{account_id}/role", role="owner", on_error=role_form)
async def change_role(request: FormRequest, account_id: UUID) -> HtmlPage | Redirect:
    """Change a role with its permissions and limits.

    If the member loses access that they created, a confirmation page lists it first.
    """
    role, keep_keys = member_service.validate_role(request.form.text("role")), bool(request.form.text("keep_keys"))
    member, details = await get_member(request, account_id), read_details(request)
    if request.form.text("confirmed") != role:
        lost = await member_service.list_lost_access(request.db, request.plan_manager_id, member, role, details)
        if lost.keys or lost.invitations:
            context = {"member": member, "role": role, "lost": lost, "details": details}
            return HtmlPage("people/member_demote.html", context)
    changed = await member_service.change_role(request.write_context, account_id, role, details, keep_keys=keep_keys)
    before = or_404(changed)
    if describe_access(before) != request.form.text("was"):
        raise EditConflictError(f"Someone else changed the role of {before.name} while you were editing.")
    if before.role == role:
        return Redirect(MEMBERS_URL, f"Role of {before.name} saved.")
    return Redirect(MEMBERS_URL, f"{before.name} is now {role}.")


def describe_access(member: Member) -> str:
    """The role with its permissions and limits, to see whether another person has changed them."""
    details = member.details
    download = "" if details.can_download else "no-download"
    return " ".join(filter(None, (member.role, *details.permissions, str(details.participants_of or ""), download)))


def read_details(request: PageRequest) -> RoleDetails:
    """The permissions and limits that a form has; raises ValidationError."""
    text = request.form.text("participants_of")
    manager_id = parse_uuid(text)
    if text and manager_id is None:
        raise ValidationError(participants_of="must be one of the choices")
    chosen = request.form.getlist("permissions")
    if not set(chosen) <= set(PERMISSIONS):
        raise ValidationError(permissions="must be among the choices")
    permissions: list[Permission] = [each for each in PERMISSIONS if each in chosen]
    return RoleDetails(permissions, manager_id, bool(request.form.text("can_download")))


async def details_context(request: PageRequest, details: RoleDetails) -> dict[str, Any]:
    """The fields for the permissions and limits: as they were sent, or else those of `details`."""
    form = request.form
    return {
        "permission_choices": PERMISSION_CHOICES,
        "manager_choices": {"": "All participants"} | await manager_choices(request),
        "permissions": form.getlist("permissions") if form else details.permissions,
        "participants_of": form.text("participants_of") if form else str(details.participants_of or ""),
        "can_download": bool(form.text("can_download")) if form else details.can_download,
    }


async def _limit_names(request: PageRequest, shown: Sequence[Member | Invitation]) -> dict[UUID, str]:
    """The names of the account managers to whose participants members are limited."""
    if not any(each.participants_of for each in shown):
        return {}
    names = await manager_choices(request)
    return {each.participants_of: names.get(str(each.participants_of), "?") for each in shown if each.participants_of}


@pages.get("/settings/people/{account_id}/account-manager", role="owner")
async def account_manager_form(request: PageRequest, account_id: UUID) -> HtmlPage:
    member = await get_member(request, account_id)
    linked = await member_store.list_linked(request.db, request.plan_manager_id, [member.id], [member.email])
    chosen = next((str(each.id) for each in linked if each.is_chosen), "")
    context = {
        "member": member,
        "chosen": request.form.text("account_manager") or chosen,
        "choices": {"": f"The one with the email {member.email}"} | await manager_choices(request),
    }
    return HtmlPage("people/member_account_manager.html", context)


@pages.post("/settings/people/{account_id}/account-manager", role="owner", on_error=account_manager_form)
async def link_account_manager(request: FormRequest, account_id: UUID) -> Redirect:
    text = request.form.text("account_manager")
    manager_id = parse_uuid(text)
    if text and manager_id is None:
        raise ValidationError(account_manager="must be one of the choices")
    member = or_404(await member_service.link_account_manager(request.write_context, account_id, manager_id))
    return Redirect(MEMBERS_URL, f"Account manager of {member.name} saved.")


@pages.get("/settings/people/{account_id}/remove", role="owner")
async def remove_form(request: PageRequest, account_id: UUID) -> HtmlPage:
    member, created = await get_member(request, account_id), await get_created_access(request, account_id)
    return HtmlPage("people/member_remove.html", {"member": member, "created": created})


@pages.post("/settings/people/{account_id}/remove", role="owner", on_error=remove_form)
async def remove(request: FormRequest, account_id: UUID) -> Redirect:
    keep_keys = bool(request.form.text("keep_keys"))
    before = or_404(await member_service.remove(request.write_context, account_id, keep_keys=keep_keys))
    return Redirect(MEMBERS_URL, f"{before.name} removed.")


async def invitation_page(
    request: FormRequest, email: str, role: str, name: str | None, details: RoleDetails
) -> HtmlPage:
    """The only page that shows an invitation's link, because only a hash of its token is stored.

    If mails are sent, no page shows it.
    """
    token = await invitations.invite(request.write_context, email, role, name, details)
    if token is None:
        return HtmlPage("people/member_invitation_mailed.html", {"email": email})
    link = request.origin + invitations.invitation_path(token)
    inviter = f"{request.account.name} ({request.account.plan_manager_names[request.plan_manager_id]})"
    return HtmlPage(
        "people/member_invited.html",
        {"email": email, "link": link, "mail_link": invitation_mail_link(email, inviter, link)},
    )


def invitation_mail_link(email: str, inviter: str, link: str) -> str:
    """A `mailto:` link that opens an email with the invitation in the person's own mail program."""
    lines = [f"{inviter} invites you to Plankeeper.", "", "Open this link within 7 days to join. It works once:", link]
    body = quote("\r\n".join(lines), safe="")
    return f"mailto:{quote(email)}?subject={quote('Invitation to Plankeeper')}&body={body}"


async def get_invitation(request: PageRequest, invitation_id: UUID) -> Invitation:
    open_invitations = await member_store.list_pending_invitations(request.db, request.plan_manager_id)
    return or_404(next((each for each in open_invitations if each.id == invitation_id), None))


async def get_member(request: PageRequest, account_id: UUID) -> Member:
    return or_404(await member_service.get(request.db, request.plan_manager_id, account_id))


async def get_created_access(request: PageRequest, account_id: UUID) -> CreatedAccess:
    return await member_service.list_created_access(request.db, request.plan_manager_id, account_id)


def find_only_owner(members: list[Member]) -> UUID | None:
    """The only owner, whose role is fixed because someone must be able to invite others; null if there are more."""
    owners = [each.id for each in members if each.role == "owner"]
    return owners[0] if len(owners) == 1 else None
