"""Participants: list, create, get, update, delete."""

from datetime import UTC, datetime
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.account_managers.store import visible
from plankeeper.database.client import Broken, Queries
from plankeeper.events.recorder import record, record_many
from plankeeper.http.context import Read, Write, found
from plankeeper.http.errors import FieldError, Invalid, Refusal
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, json_text
from plankeeper.participants import store
from plankeeper.participants.queries import page
from plankeeper.participants.schemas import (
    BasicParticipant,
    Participant,
    ParticipantChange,
    ParticipantListQuery,
    ParticipantRecord,
    ViewQuery,
    in_full,
    references,
)
from plankeeper.participants.totals import count
from plankeeper.team_members import store as teams


async def _unknown_reference(_db: Queries, _plan_manager_id: UUID, fault: Broken) -> Refusal:
    column = fault.constraint.removeprefix("participants_").removesuffix("_fkey")
    what = "account manager" if column == "account_manager_id" else "exit reason"
    return Invalid(FieldError(column, f"must be the id of an {what} of this plan manager"))


async def _locked(call: Write, participant_id: UUID) -> ParticipantRecord | None:
    rows = await store.records_for_update(call.tx, call.plan_manager_id, [participant_id])
    return rows[0] if rows else None


routes = Routes(
    "participants",
    {
        "participants_account_manager_id_fkey": _unknown_reference,
        "participants_exit_reason_category_id_fkey": _unknown_reference,
        "participants_exit_reason_subcategory_id_fkey": _unknown_reference,
    },
    lock=_locked,
)


@routes.get("/participants", need=READ)
async def list_(call: Read, query: ParticipantListQuery) -> Page[Participant]:
    """List participants."""
    rows = await page(call.db, call.plan_manager_id, query)
    total = None if query.by_cursor else await count(call.db, call.plan_manager_id, query)
    return page_of(query, rows, total)


@routes.post("/participants", need=WRITE)
async def create(call: Write, query: ViewQuery, change: ParticipantChange) -> BasicParticipant | Participant:
    """Create a participant. Its status is Active unless another is given."""
    new = applied(change, ParticipantRecord(id=uuid7(), created_at=datetime.now(UTC)))
    await _require_visible(call, change)
    await store.insert(call.tx, call.plan_manager_id, json_text([new]))
    [after] = await _in_full(call, new)
    await record(call, "participant.created", None, after)
    return _viewed(after, query)


@routes.get("/participants/{participant_id}", need=READ)
async def get(call: Read, participant_id: UUID, query: ViewQuery) -> BasicParticipant | Participant:
    """Get a participant."""
    if query.view is UNSET:
        return found(await store.fetch_basic(call.db, call.plan_manager_id, participant_id))
    return found(next(iter(await store.fetch(call.db, call.plan_manager_id, [participant_id])), None))


@routes.put("/participants/{participant_id}", need=WRITE)
async def update(
    call: Write, participant_id: UUID, query: ViewQuery, change: ParticipantChange
) -> BasicParticipant | Participant:
    """Update a participant. Absent members stay as they are; null clears."""
    old = found(await _locked(call, participant_id))
    new = applied(change, old)
    if json_text(new) != json_text(old):
        await _require_visible(call, change)
        await store.replace(call.tx, call.plan_manager_id, json_text([new]))
    before, after = await _in_full(call, old, new)
    await record(call, "participant.updated", before, after)
    return _viewed(after, query)


@routes.delete("/participants/{participant_id}", need=WRITE)
async def delete(call: Write, participant_id: UUID) -> Empty:
    """Delete a participant for good, with its team members. Its invoices stay, and keep its id."""
    old = found(await _locked(call, participant_id))
    [before] = await _in_full(call, old)
    members = await teams.ids_of_team(call.tx, call.plan_manager_id, participant_id)
    team = await teams.fetch(call.tx, call.plan_manager_id, [participant_id] * len(members), members)
    await teams.remove_team(call.tx, call.plan_manager_id, participant_id)
    await store.remove(call.tx, call.plan_manager_id, participant_id)
    await record_many(call, [("team_member.deleted", member, None) for member in team])
    await record(call, "participant.deleted", before, None)
    return Empty()


async def _in_full(call: Write, *records: ParticipantRecord) -> list[Participant]:
    ids = references(*records)
    names = await store.reference_names(call.tx, call.plan_manager_id, ids) if ids else {}
    return [in_full(record, names) for record in records]


async def _require_visible(call: Write, change: ParticipantChange) -> None:
    """An account manager that the list hides is as good as none; the foreign key cannot know that."""
    wanted = change.account_manager_id
    if not isinstance(wanted, str):
        return
    if await visible(call.tx, call.plan_manager_id, UUID(wanted), call.settings.operator_name) is None:
        raise Invalid(account_manager_id="must be the id of an account manager that the list shows")


def _viewed(participant: Participant, query: ViewQuery) -> BasicParticipant | Participant:
    if query.view == "full":
        return participant
    return BasicParticipant(*(getattr(participant, name) for name in BasicParticipant.__struct_fields__))
