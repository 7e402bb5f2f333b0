"""Participants: search, the whole record, new, edit, delete."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from msgspec import UNSET

from plankeeper.account_managers import store as managers
from plankeeper.account_managers.schemas import AccountManagerListQuery
from plankeeper.console.edit_forms import explained, filled, new_in, require_unchanged, to_edit
from plankeeper.console.forms import Form
from plankeeper.console.pages.team_members import name_of, team_of
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.exit_reasons import store as exit_reasons
from plankeeper.http.context import found
from plankeeper.http.parsing import uuid_of
from plankeeper.http.schemas import STATES
from plankeeper.participants import queries, routes, search, store
from plankeeper.participants.rules import is_scheme_number
from plankeeper.participants.schemas import (
    Participant,
    ParticipantChange,
    ParticipantListQuery,
    ParticipantRecord,
    ViewQuery,
)
from plankeeper.team_members import store as teams

pages = Pages()

PARTICIPANTS = f"{PREFIX}/participants"
PAGE = 50
MOST_CHOICES = 500  # of a select: more would make a page too long
STATUSES = ("Active", "Inactive", "Lead")
REGIONS = {"": "not set", "remote": "remote", "very_remote": "very remote"}


@pages.get("/participants", need="viewer")
async def list_(look: Look) -> Page:
    text = look.query.text("q")[:255]
    filters = {name: look.query.text(name) for name in ("status", "account_manager", "state")}
    after = uuid_of(look.query.text("after"))
    query = ParticipantListQuery(
        limit=PAGE,
        after=str(after) if after else "0",
        status=filters["status"] if filters["status"] in STATUSES else UNSET,
        state=filters["state"] if filters["state"] in STATES else UNSET,
        account_manager=[filters["account_manager"]] if uuid_of(filters["account_manager"]) else UNSET,
    )
    if text:
        rows = await search.page(look.db, look.plan_manager_id, text, query)
    else:
        rows = await queries.page(look.db, look.plan_manager_id, query)
    given = {name: value for name, value in {"q": text, **filters}.items() if value}
    first = f"{PARTICIPANTS}?{urlencode(given)}" if given else PARTICIPANTS
    following = {**given, "after": str(rows[PAGE - 1].id)} if len(rows) > PAGE else None
    onward = {"next": following and f"{PARTICIPANTS}?{urlencode(following)}", "first": first if after else None}
    choices = {"statuses": STATUSES, "states": STATES, "managers": await manager_choices(look)}
    values = {"participants": rows[:PAGE], "q": text, "is_filtered": bool(given)}
    told = {"asked": filters, "name_of": name_of, "is_scheme_number": is_scheme_number}
    return Page("participants.html", values | onward | choices | told)


@pages.get("/participants/new", need="manager")
async def new(look: Look) -> Page:
    return Page("participant_new.html", {"form": look.form or empty(), **await choices_of(look, None)})


@pages.post("/participants", need="manager", again=new)
async def create(act: Act) -> Redirect:
    change = new_in(ParticipantChange, act.form, empty())
    async with explained(act, routes.routes.constraints):
        made = await routes.create(act.write, ViewQuery(), change)
    return Redirect(f"{PARTICIPANTS}/{made.id}", f"{name_of(made)} is added.")


@pages.get("/participants/{participant_id}", need="viewer")
async def get(look: Look, participant_id: UUID) -> Page:
    participant = await fetched(look, participant_id)
    values = {"participant": participant, "name": name_of(participant), **await team_of(look, participant_id)}
    return Page("participant.html", {**values, "is_scheme_number": is_scheme_number})


@pages.get("/participants/{participant_id}/edit", need="manager")
async def edit(look: Look, participant_id: UUID) -> Page:
    participant = await fetched(look, participant_id)
    values = {"participant": participant, "name": name_of(participant), **to_edit(look, shown(participant))}
    return Page("participant_edit.html", {**values, **await choices_of(look, participant)})


@pages.post("/participants/{participant_id}/edit", need="manager", again=edit)
async def update(act: Act, participant_id: UUID) -> Redirect:
    await store.records_for_update(act.tx, act.plan_manager_id, [participant_id])
    rows = await store.fetch(act.tx, act.plan_manager_id, [participant_id])
    now = shown(found(next(iter(rows), None)))
    require_unchanged(act, now)
    change = new_in(ParticipantChange, act.form, now)
    async with explained(act, routes.routes.constraints):
        await routes.update(act.write, participant_id, ViewQuery(), change)
    return Redirect(f"{PARTICIPANTS}/{participant_id}", "The changes are saved.")


@pages.get("/participants/{participant_id}/delete", need="manager")
async def delete_form(look: Look, participant_id: UUID) -> Page:
    participant = await fetched(look, participant_id)
    members = await teams.count(look.db, look.plan_manager_id, participant_id)
    return Page(
        "participant_delete.html",
        {"participant": participant, "name": name_of(participant), "members": members},
    )


@pages.post("/participants/{participant_id}/delete", need="manager")
async def delete(act: Act, participant_id: UUID) -> Redirect:
    participant = found(await store.fetch_basic(act.tx, act.plan_manager_id, participant_id))
    await routes.delete(act.write, participant_id)
    return Redirect(PARTICIPANTS, f"{name_of(participant)} is deleted.")


async def fetched(look: Look, participant_id: UUID) -> Participant:
    rows = await store.fetch(look.db, look.plan_manager_id, [participant_id])
    return found(next(iter(rows), None))


def empty() -> Form:
    """The form of a new participant, with what it has unless something else is said."""
    return filled(ParticipantChange, ParticipantRecord(id=UUID(int=0), created_at=datetime.now(UTC)))


def shown(participant: Participant) -> Form:
    """A participant in a form."""
    category, subcategory = participant.exit_reason_category, participant.exit_reason_subcategory
    return filled(
        ParticipantChange, participant,
        account_manager_id=participant.account_manager.id,
        exit_reason_category_id=None if category is UNSET else category.id,
        exit_reason_subcategory_id=None if subcategory is UNSET else subcategory.id,
    )  # fmt: skip


async def manager_choices(look: Look) -> dict[str, str]:
    """The account managers that a participant may have, by name."""
    query = AccountManagerListQuery(limit=MOST_CHOICES)
    rows = await managers.page(look.db, look.plan_manager_id, query, look.settings.operator_name)
    named = [(each.name or each.email or "No name", each) for each in rows[:MOST_CHOICES]]
    named.sort(key=lambda each: each[0].casefold())
    return {str(each.id): name if each.active else f"{name} (not active)" for name, each in named}


async def choices_of(look: Look, participant: Participant | None) -> Mapping[str, object]:
    """What the selects of a form offer. What a participant has by now stays a choice, whatever has become of it."""
    choices = await manager_choices(look)
    manager = participant.account_manager if participant else None
    if manager and manager.id:
        choices.setdefault(str(manager.id), f"{manager.name or 'No name'} (not to be chosen any more)")
    return {
        "managers": {"": "not set", **choices},
        "states": {"": "not set", **{each: each for each in STATES}},
        "statuses": {each: each for each in STATUSES},
        "regions": REGIONS,
        **await reason_choices(look, participant),
    }


async def reason_choices(look: Look, participant: Participant | None) -> dict[str, Any]:
    """The categories of exit reasons, and by category what belongs to each."""
    reasons = await exit_reasons.fetch_all(look.db, look.plan_manager_id, MOST_CHOICES)
    names = {str(each.id): each.name for each in reasons}
    categories = {"": "not set", **{str(each.id): each.name for each in reasons if each.parent_id is None}}
    groups = dict[str, dict[str, str]]()
    for each in reasons:
        if each.parent_id:
            groups.setdefault(str(each.parent_id), {})[str(each.id)] = each.name
    category = participant.exit_reason_category if participant else UNSET
    detail = participant.exit_reason_subcategory if participant else UNSET
    if category is not UNSET:
        categories.setdefault(str(category.id), category.name)
    if detail is not UNSET and not any(str(detail.id) in inner for inner in groups.values()):
        groups[""] = {str(detail.id): detail.name}
    return {"categories": categories, "groups": [(names.get(id_, "Other"), inner) for id_, inner in groups.items()]}
