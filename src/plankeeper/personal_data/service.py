"""Erasure of one participant's data, and legal holds that prevent it. The console and the commands share it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NoReturn
from uuid import UUID

import msgspec

from plankeeper.access.saved_views import service as saved_views
from plankeeper.bin import store as bin_store
from plankeeper.bin.schemas import Snapshot
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.participants import service as participant_service
from plankeeper.participants import store as participant_store
from plankeeper.personal_data import hold_store, import_store, store
from plankeeper.personal_data.schemas import (
    ErasureReport,
    JsonObject,
    LegalHold,
    Mention,
    ParticipantReference,
    PersonEvent,
)
from plankeeper.personal_data.texts import (
    PARTICIPANT_MEMBERS,
    TEAM_MEMBER_MEMBERS,
    PersonTexts,
    erase_members,
    matches,
)

MAX_MENTIONS = 200


class LegalHoldError(Exception):
    """A legal hold keeps a participant's data."""

    def __init__(self, held: LegalHold) -> None:
        self.hold = held
        super().__init__(
            f"A legal hold keeps the data of participant {held.participant_id}: {held.reason}"
            f" ({held.created_by}, {held.created_at:%Y-%m-%d})"
        )


class _RollbackError(Exception):
    """Rolls back the savepoint of a preview."""

    def __init__(self, report: ErasureReport) -> None:
        self.report = report
        super().__init__()


async def hold(ctx: WriteContext, participant_id: UUID, reason: str) -> LegalHold:
    """Place a legal hold, also on a deleted participant. Raises NotFound, or LegalHoldError if there is one already."""
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    if not await is_known(ctx.tx, ctx.plan_manager_id, participant_id):
        raise NotFound
    placed = LegalHold(participant_id, reason, datetime.now(UTC), ctx.actor.name or "")
    if not await hold_store.insert(ctx.tx, ctx.plan_manager_id, placed):
        await _require_no_hold(ctx, participant_id)
    await record_event(ctx, "participant.hold_placed", None, ParticipantReference(participant_id))
    return placed


async def release_hold(ctx: WriteContext, participant_id: UUID) -> LegalHold:
    """End a legal hold; raises NotFound if there is none."""
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    released = await hold_store.delete(ctx.tx, ctx.plan_manager_id, participant_id)
    if released is None:
        raise NotFound
    await record_event(ctx, "participant.hold_released", None, ParticipantReference(participant_id))
    return released


async def erase(ctx: WriteContext, participant_id: UUID, *, search_events: bool) -> ErasureReport:
    """Delete a participant, its team and users who are on no other team, and de-identify what else is held about them.

    A participant that was deleted earlier is erased from the events. `search_events`: look for mentions in the events
    of others, too, which reads all events of the plan manager. Raises NotFound or LegalHoldError.
    """
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    await participant_store.lock_given_ids(ctx.tx, ctx.plan_manager_id)
    await _require_no_hold(ctx, participant_id)
    if not await is_known(ctx.tx, ctx.plan_manager_id, participant_id):
        raise NotFound
    counts = await _delete_records(ctx, participant_id)
    in_bin = await _delete_from_bin(ctx, participant_id)
    counts["bin"] = len(in_bin)
    # The deletion has just recorded the last state of each record.
    events = await store.list_events(ctx.tx, ctx.plan_manager_id, participant_id)
    team = [record for event in events if event.resource_kind == "team_member" for record in _records(event)]
    team += [member for each in in_bin for member in each.team]
    counts["users"], kept_user_ids = await _delete_users(ctx, team)
    participant = [record for event in events if event.resource_kind == "participant" for record in _records(event)]
    texts = _collect_texts([*participant, *(each.record for each in in_bin)], team, kept_user_ids)
    counts |= await _erase_texts(ctx, participant_id, texts.pattern)
    counts["events"] = await _erase_events(ctx, events, texts)
    counts["responses"] = await _erase_responses(ctx, participant_id, texts)
    counts["attempt_details"] = await store.erase_attempt_details(
        ctx.tx, ctx.plan_manager_id, [each.id for each in events], texts.pattern
    )
    counts |= await _erase_imports(ctx, participant_id, texts)
    mentions = await _list_mentions(ctx, participant_id, texts, search_events=search_events)
    await _require_nothing_left(ctx, participant_id)
    report = ErasureReport(counts, mentions[:MAX_MENTIONS], len(mentions) > MAX_MENTIONS)
    if not report.is_empty:
        await record_event(ctx, "participant.erased", None, ParticipantReference(participant_id))
    return report


async def preview_erasure(ctx: WriteContext, participant_id: UUID, *, search_events: bool) -> ErasureReport:
    """The report of an erasure that is rolled back. Raises NotFound or LegalHoldError."""
    try:
        async with ctx.tx.savepoint():
            await _erase_and_roll_back(ctx, participant_id, search_events=search_events)
    except _RollbackError as rollback:
        ctx.tx.changed_feeds.discard(ctx.plan_manager_id)
        return rollback.report


async def _erase_and_roll_back(ctx: WriteContext, participant_id: UUID, *, search_events: bool) -> NoReturn:
    raise _RollbackError(await erase(ctx, participant_id, search_events=search_events))


async def is_known(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    """Whether there is a participant, or was one that is in the bin or whose events are kept."""
    if await participant_store.exists(db, plan_manager_id, participant_id):
        return True
    if await bin_store.find(db, plan_manager_id, "participant", participant_id):
        return True
    return await store.has_events(db, plan_manager_id, participant_id)


async def _require_no_hold(ctx: WriteContext, participant_id: UUID) -> None:
    held = await hold_store.get(ctx.tx, ctx.plan_manager_id, participant_id)
    if held:
        raise LegalHoldError(held)


async def _delete_records(ctx: WriteContext, participant_id: UUID) -> dict[str, int]:
    if not await participant_store.exists(ctx.tx, ctx.plan_manager_id, participant_id):
        return {"participants": 0, "team_members": 0}
    members = await participant_service.delete(ctx, participant_id)
    return {"participants": 1, "team_members": members}


async def _delete_from_bin(ctx: WriteContext, participant_id: UUID) -> list[Snapshot]:
    """Delete the participant's entries from the bin, and return their content."""
    entries = await bin_store.find(ctx.tx, ctx.plan_manager_id, "participant", participant_id)
    if entries:
        await bin_store.delete_many(ctx.tx, ctx.plan_manager_id, [each.id for each in entries])
    return [msgspec.json.decode(each.snapshot, type=Snapshot) for each in entries]


async def _require_nothing_left(ctx: WriteContext, participant_id: UUID) -> None:
    """Raise DomainError if the participant is there again, so that the erasure is rolled back."""
    if await participant_store.exists(ctx.tx, ctx.plan_manager_id, participant_id) or await bin_store.find(
        ctx.tx, ctx.plan_manager_id, "participant", participant_id
    ):
        raise DomainError(
            "precondition_failed", "The participant was restored or created again in the meantime. Nothing was erased."
        )


async def _delete_users(ctx: WriteContext, team: Iterable[JsonObject]) -> tuple[int, set[UUID]]:
    """Delete the users of all members that the team ever had, except those that are needed elsewhere.

    Returns the number of deleted users, and the ids of the others.
    """
    ids = sorted({UUID(each["user_id"]) for each in team if each.get("user_id")})
    before = await store.list_users(ctx.tx, ctx.plan_manager_id, ids)
    await store.delete_unused_users(ctx.tx, ctx.plan_manager_id, before)
    kept = await store.list_users(ctx.tx, ctx.plan_manager_id, before)
    return len(before) - len(kept), set(kept)


def _records(event: PersonEvent) -> list[JsonObject]:
    """The resource in an event, and its earlier values with the resource's ids."""
    data = msgspec.json.decode(event.data, type=JsonObject) if event.data else JsonObject()
    previous = msgspec.json.decode(event.previous, type=JsonObject) if event.previous else JsonObject()
    return [data, data | previous]


def _collect_texts(
    participant: Iterable[JsonObject], team: Iterable[JsonObject], kept_user_ids: set[UUID]
) -> PersonTexts:
    """The texts of the participant, and of the team members who are not on another team."""
    kept = {str(each) for each in kept_user_ids}
    texts = PersonTexts()
    for record in [*participant, *(each for each in team if each.get("user_id") not in kept)]:
        texts.add(record)
    return texts


async def _erase_texts(ctx: WriteContext, participant_id: UUID, pattern: str | None) -> dict[str, int]:
    views = await saved_views.delete_about(ctx, participant_id, pattern)
    if pattern is None:
        return {"invoice_texts": 0, "access_records": 0, "saved_views": views}
    return {
        "invoice_texts": await store.erase_invoice_texts(ctx.tx, ctx.plan_manager_id, participant_id, pattern),
        "access_records": await store.erase_queries(ctx.tx, ctx.plan_manager_id, pattern),
        "saved_views": views,
    }


async def _erase_events(ctx: WriteContext, events: Sequence[PersonEvent], texts: PersonTexts) -> int:
    count = 0
    kept_members = {"participant": PARTICIPANT_MEMBERS, "team_member": TEAM_MEMBER_MEMBERS, "invoice": None}
    for kind, members in kept_members.items():
        ids = [each.id for each in events if each.resource_kind == kind]
        # An invoice stays, except for texts about the person.
        pattern = texts.pattern if members is None else None
        if ids and (members or pattern):
            count += await store.erase_events(ctx.tx, ctx.plan_manager_id, ids, members, pattern)
    return count


async def _erase_responses(ctx: WriteContext, participant_id: UUID, texts: PersonTexts) -> int:
    """De-identify stored responses; a record that still has one of the texts is deleted, and so loses its key."""
    count = 0
    for record in await store.list_responses(ctx.tx, ctx.plan_manager_id, participant_id):
        body = _erased_body(record.body, participant_id)
        if matches(texts.pattern, f"{record.idempotency_key} {(body or b'').decode()}"):
            await store.delete_response(ctx.tx, ctx.plan_manager_id, record)
        elif body != record.body:
            await store.update_response(ctx.tx, ctx.plan_manager_id, msgspec.structs.replace(record, body=body))
        else:
            continue
        count += 1
    return count


def _erased_body(body: bytes | None, participant_id: UUID) -> bytes | None:
    try:
        value = msgspec.json.decode(body or b"")
    except msgspec.DecodeError:  # empty, or encrypted because it has a secret
        return body
    erased = erase_members(value, participant_id)
    return body if erased == value else msgspec.json.encode(erased)


async def _erase_imports(ctx: WriteContext, participant_id: UUID, texts: PersonTexts) -> dict[str, int]:
    pattern = texts.file_pattern(participant_id)
    files = await import_store.list_files(ctx.tx, ctx.plan_manager_id)
    found = [each.id for each in files if pattern.search(each.content.decode(errors="replace"))]
    if found:
        await import_store.delete_files(ctx.tx, ctx.plan_manager_id, found)
    rows = await import_store.erase_import_rows(ctx.tx, ctx.plan_manager_id, participant_id, pattern.pattern, found)
    names = 0
    if texts.pattern:
        names = await import_store.erase_import_texts(ctx.tx, ctx.plan_manager_id, texts.pattern, texts.folded)
    return {"import_files": len(found), "import_rows": rows, "import_texts": names}


async def _list_mentions(
    ctx: WriteContext, participant_id: UUID, texts: PersonTexts, *, search_events: bool
) -> list[Mention]:
    """At most one more than MAX_MENTIONS."""
    if texts.pattern is None:
        return []
    mentions = await store.list_mentions(ctx.tx, ctx.plan_manager_id, texts.pattern, MAX_MENTIONS + 1)
    if search_events and len(mentions) <= MAX_MENTIONS:
        mentions += await store.list_event_mentions(
            ctx.tx, ctx.plan_manager_id, participant_id, texts.pattern, MAX_MENTIONS + 1 - len(mentions)
        )
    return mentions
