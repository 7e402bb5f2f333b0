"""The team members of a participant: add, look at, edit, remove."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.console.edit_forms import explained, filled, new_in, require_unchanged, to_edit
from plankeeper.console.forms import Form
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.errors import FieldError, Refusal
from plankeeper.http.parsing import LooseId, uuid_of
from plankeeper.http.schemas import STATES
from plankeeper.participants.store import fetch_basic
from plankeeper.team_members import routes, store
from plankeeper.team_members.schemas import TeamMember, TeamMemberChange, TeamMemberCreate, TeamMemberListQuery

pages = Pages()

PAGE = 50
PATH = "/participants/{participant_id}/team-members"
PERMISSIONS = {
    "view_budget": "View budget", "view_invoices": "View invoices", "approve_invoices": "Approve invoices",
    "email_statements": "Email statements", "view_documents": "View documents", "no_access": "No access",
}  # fmt: skip
PRIORITIES = {"": "none", "1": "1: primary contact", "2": "2: secondary contact"}
CHOICES = {
    "permissions": PERMISSIONS,
    "priorities": PRIORITIES,
    "states": {"": "not set", **{each: each for each in STATES}},
}


class Named(Protocol):
    """Who has a first and a last name, or neither."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...


async def team_of(look: Look, participant_id: UUID) -> dict[str, Any]:
    """The team as it stands on the participant's page: 50 members, who holds a contact priority before the others."""
    after = uuid_of(look.query.text("after"))
    query = TeamMemberListQuery(limit=PAGE, after=str(after) if after else "0")
    rows = await store.page(look.db, look.plan_manager_id, participant_id, query)
    here = f"{PREFIX}/participants/{participant_id}"
    onward = f"{here}?{urlencode({'after': str(rows[PAGE - 1].id)})}#team" if len(rows) > PAGE else None
    team = sorted(rows[:PAGE], key=lambda each: each.contact_priority or 3)
    return {"team": [(each, called(each)) for each in team], "next": onward, "first": f"{here}#team" if after else None}


@pages.get(PATH + "/new", need="manager")
async def new(look: Look, participant_id: UUID) -> Page:
    return Page("team_member_new.html", {**await around(look, participant_id), "form": look.form})


@pages.post(PATH, need="manager", again=new)
async def create(act: Act, participant_id: UUID) -> Redirect:
    change = new_in(TeamMemberCreate, act.form, Form())
    async with in_words(act, participant_id):
        member = await routes.create(act.write, participant_id, change)
    return Redirect(f"{PREFIX}/participants/{participant_id}", f"{called(member)} is on the team now.")


@pages.get(PATH + "/{team_member_id}", need="viewer")
async def get(look: Look, participant_id: UUID, team_member_id: UUID) -> Page:
    return Page("team_member.html", await around(look, participant_id, team_member_id))


@pages.get(PATH + "/{team_member_id}/edit", need="manager")
async def edit(look: Look, participant_id: UUID, team_member_id: UUID) -> Page:
    values = await around(look, participant_id, team_member_id)
    return Page("team_member_edit.html", values | to_edit(look, shown(values["member"])))


@pages.post(PATH + "/{team_member_id}/edit", need="manager", again=edit)
async def update(act: Act, participant_id: UUID, team_member_id: UUID) -> Redirect:
    pair = ([participant_id], [team_member_id])
    await store.records_for_update(act.tx, act.plan_manager_id, *pair)
    now = found(next(iter(await store.fetch(act.tx, act.plan_manager_id, *pair)), None))
    require_unchanged(act, shown(now))
    change = new_in(TeamMemberChange, act.form, shown(now))
    async with in_words(act, participant_id):
        member = await routes.update(act.write, participant_id, LooseId(team_member_id), change)
    return Redirect(f"{PREFIX}/participants/{participant_id}", f"The changes to {called(member)} are saved.")


@pages.get(PATH + "/{team_member_id}/remove", need="manager")
async def remove_form(look: Look, participant_id: UUID, team_member_id: UUID) -> Page:
    return Page("team_member_remove.html", await around(look, participant_id, team_member_id))


@pages.post(PATH + "/{team_member_id}/remove", need="manager")
async def remove(act: Act, participant_id: UUID, team_member_id: UUID) -> Redirect:
    member = (await around(act, participant_id, team_member_id))["member"]
    await routes.delete(act.write, participant_id, LooseId(team_member_id))
    return Redirect(f"{PREFIX}/participants/{participant_id}", f"{called(member)} is off the team.")


async def around(look: Look, participant_id: UUID, team_member_id: UUID | None = None) -> dict[str, Any]:
    """What the pages of a team member show: whose team it is, the member, what there is to choose from."""
    participant = found(await fetch_basic(look.db, look.plan_manager_id, participant_id))
    values: dict[str, Any] = {"participant": participant, "name": name_of(participant), **CHOICES}
    if team_member_id:
        values["member"] = member = await routes.get(look.read, participant_id, LooseId(team_member_id))
        values["called"] = called(member)
    return values


def shown(member: TeamMember) -> Form:
    """A member in a form; without an email there are no permissions to choose from."""
    held = [each.name for each in member.permissions]
    return filled(TeamMemberChange, member, permissions=held)


def called(member: TeamMember) -> str:
    return name_of(member, member.email)


def name_of(person: Named, otherwise: str | None = None) -> str:
    """What a person is called: first and last name, as far as they are known."""
    names = [each.strip() for each in (person.first_name, person.last_name) if each and each.strip()]
    return " ".join(names) or otherwise or "No name"


@asynccontextmanager
async def in_words(act: Act, participant_id: UUID) -> AsyncGenerator[None]:
    """What the API refuses with an id, with a name and at its field."""
    try:
        async with explained(act, routes.routes.constraints):
            yield
    except Refusal as refusal:
        fault = await _fault(act, participant_id, refusal.code)
        if fault:
            refusal.errors = [fault]
        raise


async def _fault(act: Act, participant_id: UUID, code: str) -> FieldError | None:
    if code == "permission_requires_email":
        return FieldError("permissions", "a member without an email can have no access only")
    if code == "contact_priority_taken":
        holder = await _holder(act, participant_id)
        return FieldError("contact_priority", f"{holder} holds it; a participant has one contact of each priority")
    if code == "team_member_exists":
        return FieldError("email", f"{await _with_email(act, participant_id)} is on this team with it already")
    return None


async def _holder(act: Act, participant_id: UUID) -> str:
    wanted = int(act.form.text("contact_priority"))
    holder = await store.holder(act.tx, act.plan_manager_id, participant_id, wanted)
    members = await store.fetch(act.tx, act.plan_manager_id, [participant_id], [holder]) if holder else []
    return called(members[0]) if members else "Somebody else"


async def _with_email(act: Act, participant_id: UUID) -> str:
    query, email = TeamMemberListQuery(limit=1000), act.form.text("email").lower()
    members = await store.page(act.tx, act.plan_manager_id, participant_id, query)
    return next((called(each) for each in members if (each.email or "").lower() == email), "Somebody")
