"""Settings, people: who has which role, invitations, and nothing of what anybody does for another plan manager."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.accounts import member_store, sessions
from plankeeper.accounts import members as rules_of_people
from plankeeper.accounts.policy import invitation_path, line
from plankeeper.accounts.schemas import Invitation, Person
from plankeeper.console.edit_forms import Conflict
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.errors import Invalid

pages = Pages()

PEOPLE = f"{PREFIX}/settings/people"
LONGEST_NAME = 255
MAY = {
    "viewer": "Viewer: sees everything but keys",
    "manager": "Manager: changes records, keys and webhooks too",
    "owner": "Owner: decides who belongs here too",
}


@pages.get("/settings/people", need="viewer")
async def list_(look: Look) -> Page:
    everybody = await member_store.people(look.db, look.plan_manager_id)
    invited = await member_store.open_invitations(look.db, look.plan_manager_id)
    only = is_only_owner(everybody)
    return Page("people.html", {"people": everybody, "invited": invited, "only_owner": only, "now": datetime.now(UTC)})


@pages.get("/settings/people/invite", need="owner")
async def invite_form(_look: Look) -> Page:
    return Page("person_invite.html", {"roles": MAY})


@pages.post("/settings/people", need="owner", again=invite_form)
async def invite(act: Act) -> Page:
    name = act.form.text("name")
    if line(name, LONGEST_NAME) != name:
        raise Invalid(name=f"must be one line of at most {LONGEST_NAME} characters")
    return await invited(act, act.form.text("email"), act.form.text("role"), name or None)


@pages.post("/settings/people/invitations/{invitation_id}/again", need="owner")
async def invite_again(act: Act, invitation_id: UUID) -> Page:
    known = await invitation_of(act, invitation_id)
    return await invited(act, known.email, known.role, known.name)


@pages.post("/settings/people/invitations/{invitation_id}/withdraw", need="owner")
async def withdraw(act: Act, invitation_id: UUID) -> Redirect:
    before = await rules_of_people.withdraw(act.write, invitation_id)
    return Redirect(PEOPLE, f"The invitation of {before.email} is withdrawn. Its link does nothing any more.")


@pages.get("/settings/people/{account_id}/role", need="owner")
async def role_form(look: Look, account_id: UUID) -> Page:
    return Page("person_role.html", {"person": await person_of(look, account_id), "roles": MAY})


@pages.post("/settings/people/{account_id}/role", need="owner", again=role_form)
async def change_role(act: Act, account_id: UUID) -> Redirect:
    role = act.form.text("role")
    before = found(await rules_of_people.change_role(act.write, account_id, role))
    if before.role != act.form.text("was"):
        raise Conflict(f"{before.name} was given another role by somebody else meanwhile.")
    return Redirect(PEOPLE, f"{before.name} is {role} now.")


@pages.get("/settings/people/{account_id}/remove", need="owner")
async def remove_form(look: Look, account_id: UUID) -> Page:
    return Page("person_remove.html", {"person": await person_of(look, account_id)})


@pages.post("/settings/people/{account_id}/remove", need="owner", again=remove_form)
async def remove(act: Act, account_id: UUID) -> Redirect:
    before = found(await rules_of_people.remove(act.write, account_id))
    return Redirect(PEOPLE, f"{before.name} has no role here any more.")


async def invited(act: Act, email: str, role: str, name: str | None) -> Page:
    """The one page that shows an invitation's link: its token is not kept."""
    token = await sessions.invite(act.write, email, role, name)
    return Page("person_invited.html", {"email": email, "link": act.origin + invitation_path(token)})


async def invitation_of(look: Look, invitation_id: UUID) -> Invitation:
    open_ = await member_store.open_invitations(look.db, look.plan_manager_id)
    return found(next((each for each in open_ if each.id == invitation_id), None))


async def person_of(look: Look, account_id: UUID) -> Person:
    everybody = await member_store.people(look.db, look.plan_manager_id)
    return found(next((each for each in everybody if each.id == account_id), None))


def is_only_owner(everybody: list[Person]) -> UUID | None:
    """Whose role stays as it is, for somebody must be able to invite others."""
    owners = [each.id for each in everybody if each.role == "owner"]
    return owners[0] if len(owners) == 1 else None
