"""Erasure of one participant's data, and legal holds that prevent it. The console and the commands share it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, cast
from urllib.parse import unquote_plus
from uuid import UUID

import msgspec

from plankeeper.access.saved_views import service as saved_views
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.privacy import financial_records, store
from plankeeper.privacy.schemas import (
    ErasureReport,
    JsonObject,
    KeptRecords,
    LegalHold,
    Mention,
    ParticipantReference,
    PersonEvent,
)
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.notes import service as note_service
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.participants import service as participant_service
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.resource import Snapshot
from plankeeper.resources.statement_runs import store as statement_run_store
from plankeeper.resources.statements import store as statement_store
from plankeeper.resources.trash import store as trash_store

# The fields that an erasure keeps: ids, states, times, and references to records about others.
PARTICIPANT_FIELDS = (
    "id",
    "status",
    "approval_required",
    "created_at",
    "is_pace_plan",
    "postal_statement",
    "participant_receives_statements",
    "exit_reason_category",
    "exit_reason_subcategory",
    "account_manager",
)
PLAN_FIELDS = ("id", "participant_id", "is_pace_plan", "created_at", "updated_at")
STATEMENT_FIELDS = ("id", "participant_id", "plan_id", "month", "created_at", "created_by")
NOTE_FIELDS = ("id", "resource", "note_type_id", "pinned", "alert", "created_at", "updated_at")
EXPORT_FIELDS = ("id", "what", "rows")
TEAM_MEMBER_FIELDS = ("id", "user_id", "pm_profile_id", "participant_id", "contact_priority", "permissions")

_NAME_FIELDS = ("first_name", "middle_name", "last_name", "preferred_name")
_IDENTIFIER_FIELDS = (
    "participant_number",
    "email",
    "phone_number",
    "date_of_birth",
    "address_line_1",
    "address_line_2",
    "secondary_email",
    "secondary_phone_number",
)
PART_LENGTH = 64 * 1024  # characters of a file that are searched at once
_MIN_LENGTH = 2  # a single letter would match every text


class PersonTexts:
    """The names and identifiers of one person, or of several, with their earlier values."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.identifiers: set[str] = set()
        self._full_names: set[tuple[str, str]] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the texts of a participant, of a team member, or of the earlier values of one."""
        self.names |= _texts(record, _NAME_FIELDS)
        self.identifiers |= _texts(record, _IDENTIFIER_FIELDS)
        first_names = _inner_texts(record, ("first_name", "preferred_name"))
        self._full_names |= {(first, last) for first in first_names for last in _inner_texts(record, ("last_name",))}

    @property
    def pattern(self) -> str | None:
        """Matches a text that contains one of the names or identifiers as words, for PostgreSQL and Python.

        None if there are none. Compare without regard to case.
        """
        # The longest first: a name can begin with another one.
        texts = sorted(self.names | self.identifiers, key=lambda each: (-len(each), each))
        return _words(map(re.escape, texts)) if texts else None

    @property
    def folded(self) -> list[str]:
        """The texts in lower case with only their letters and digits, as the names of columns are remembered."""
        texts = {"".join(filter(str.isalnum, each.casefold())) for each in self.names | self.identifiers}
        return sorted(texts - {""})

    def file_pattern(self, participant_id: UUID) -> re.Pattern[str]:
        """Matches a file with the id or one of the identifiers, or with first and last name beside each other."""
        full_names = [(re.escape(first), re.escape(last)) for first, last in sorted(self._full_names)]
        expressions = [
            *map(re.escape, (str(participant_id), *sorted(self.identifiers))),
            *(rf"{first}\W+(?:\w+\W+)?{last}" for first, last in full_names),
            *(rf"{last}\W+{first}" for first, last in full_names),
        ]
        return re.compile(_words(expressions), re.IGNORECASE)


def _texts(record: Mapping[str, Any], fields: Iterable[str]) -> set[str]:
    values = [record.get(name) for name in fields]
    return {each.strip() for each in values if isinstance(each, str) and len(each.strip()) >= _MIN_LENGTH}


def _inner_texts(record: Mapping[str, Any], fields: Iterable[str]) -> set[str]:
    """The texts from their first letter or digit to their last one, so that a search takes linear time."""
    return {re.sub(r"^\W+|\W+$", "", each) for each in _texts(record, fields)} - {""}


def _words(expressions: Iterable[str]) -> str:
    """Matches one of the expressions, from the beginning of a word to the end of one."""
    return rf"(?<!\w)(?:{'|'.join(expressions)})(?!\w)"


async def split_file(content: bytes) -> AsyncGenerator[str]:
    """Whole lines of a file, in parts. Other tasks run between them."""
    text, start = content.decode(errors="replace"), 0
    while start < len(text):
        end = text.find("\n", start + PART_LENGTH) + 1 or len(text)
        yield text[start:end]
        start = end
        await asyncio.sleep(0)


async def _is_in_file(pattern: re.Pattern[str], content: bytes) -> bool:
    async for part in split_file(content):
        if pattern.search(part):
            return True
    return False


def matches(pattern: str | None, text: str) -> bool:
    """Whether a text contains one of the texts of `PersonTexts.pattern`."""
    return pattern is not None and re.search(pattern, text, re.IGNORECASE) is not None


def erase_fields(value: Any, participant_id: UUID) -> Any:
    """A copy of a response in which the participant and its team members have only the kept fields."""
    if isinstance(value, list):
        return [erase_fields(each, participant_id) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    record = cast("JsonObject", value)
    if kept := _kept_fields(record, str(participant_id)):
        return _keep(record, kept)
    return {name: erase_fields(each, participant_id) for name, each in record.items()}


def _kept_fields(record: JsonObject, participant_id: str) -> tuple[str, ...]:
    """The fields to keep of the participant, or of its plan, note or team member; none for any other object."""
    if record.get("id") == participant_id:
        return PARTICIPANT_FIELDS
    if record.get("participant_id") == participant_id and "user_id" in record:
        return TEAM_MEMBER_FIELDS
    if record.get("participant_id") == participant_id and "is_pace_plan" in record:
        return PLAN_FIELDS
    is_note = "note_type_id" in record and isinstance(record.get("resource"), dict)
    return NOTE_FIELDS if is_note and record["resource"]["id"] == participant_id else ()


def _keep(record: JsonObject, fields: Iterable[str]) -> JsonObject:
    return {name: value if name in fields else None for name, value in record.items()}


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
    if not await store.insert_hold(ctx.tx, ctx.plan_manager_id, placed):
        await _require_no_hold(ctx, participant_id)
    await record_event(ctx, "participant.hold_placed", None, ParticipantReference(participant_id))
    return placed


async def release_hold(ctx: WriteContext, participant_id: UUID) -> LegalHold:
    """End a legal hold; raises NotFound if there is none."""
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    released = await store.delete_hold(ctx.tx, ctx.plan_manager_id, participant_id)
    if released is None:
        raise NotFound
    await record_event(ctx, "participant.hold_released", None, ParticipantReference(participant_id))
    return released


async def erase(ctx: WriteContext, participant_id: UUID, *, search_events: bool) -> ErasureReport:
    """Delete a participant, its team and users who are on no other team, and de-identify all other data about them.

    A participant that was deleted earlier is erased from the events. `search_events`: look for mentions in the events
    of others, too, which reads all events of the plan manager. Raises NotFound or LegalHoldError.
    """
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    await participant_store.lock_given_ids(ctx.tx, ctx.plan_manager_id)
    await _require_no_hold(ctx, participant_id)
    if not await is_known(ctx.tx, ctx.plan_manager_id, participant_id):
        raise NotFound
    await _lock_records(ctx, participant_id)
    on_invoices = await note_service.delete_of_invoices_of(ctx, participant_id)
    counts = await _delete_records(ctx, participant_id)
    counts["notes"] += len(on_invoices)
    counts["bank_details"] += await bank_details.erase(ctx, participant_id)
    in_trash = await _delete_from_trash(ctx, participant_id)
    counts["trash"] = len(in_trash)
    # The deletion has just recorded the last state of each record.
    events = await store.list_events(ctx.tx, ctx.plan_manager_id, participant_id)
    events += await store.list_note_events(ctx.tx, ctx.plan_manager_id, participant_id)
    team = [record for event in events if event.resource_kind == "team_member" for record in _records(event)]
    team += [member for each in in_trash for member in each.team]
    counts["users"], kept_user_ids = await _delete_users(ctx, team)
    participant = [record for event in events if event.resource_kind == "participant" for record in _records(event)]
    texts = _collect_texts([*participant, *(each.record for each in in_trash)], team, kept_user_ids)
    more, kept = await _erase_of_invoices(ctx, participant_id)
    counts |= more | await _erase_texts(ctx, participant_id, texts.pattern)
    await store.erase_ignored_alerts(ctx.tx, ctx.plan_manager_id, participant_id)
    counts["events"] = await _erase_events(ctx, events, texts)
    counts["responses"] = await _erase_responses(ctx, participant_id, texts)
    for each in on_invoices:
        counts["responses"] += await store.delete_responses_with(ctx.tx, ctx.plan_manager_id, each.id)
    counts["attempt_details"] = await store.erase_attempt_details(
        ctx.tx, ctx.plan_manager_id, [each.id for each in events], texts.pattern
    )
    counts |= await _erase_imports(ctx, participant_id, texts)
    mentions = await _list_mentions(ctx, participant_id, texts, search_events=search_events)
    await _require_nothing_left(ctx, participant_id)
    report = ErasureReport(counts, mentions[:MAX_MENTIONS], len(mentions) > MAX_MENTIONS, kept)
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
    """Whether there is a participant, or was one that is in the trash or whose events are kept."""
    if await participant_exists(db, plan_manager_id, participant_id):
        return True
    if await trash_store.find(db, plan_manager_id, "participant", participant_id):
        return True
    return await store.has_events(db, plan_manager_id, participant_id)


async def _require_no_hold(ctx: WriteContext, participant_id: UUID) -> None:
    held = await store.get_hold(ctx.tx, ctx.plan_manager_id, participant_id)
    if held:
        raise LegalHoldError(held)


async def _lock_records(ctx: WriteContext, participant_id: UUID) -> None:
    """Lock the participant, its bank details and its invoices, in the order of all other writes.

    A background check, a claim batch or a payment run can have locked an invoice, and write its parts. An erasure that
    wrote these parts first would wait for the invoice, and the other one for the parts: a deadlock.
    """
    await participant_store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id])
    await bank_details.lock(ctx, Payee("participant", participant_id))
    await store.lock_invoices(ctx.tx, ctx.plan_manager_id, participant_id)


async def _erase_of_invoices(ctx: WriteContext, participant_id: UUID) -> tuple[dict[str, int], KeptRecords | None]:
    """Delete approvals and documents, and de-identify claims and payments, except those that have to be kept."""
    now = datetime.now(UTC)
    invoices = await financial_records.list_invoices(ctx, participant_id, now)
    await store.delete_approval_links(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept)
    # A link that somebody was mailed shows the invoice, and its document.
    await approval_store.revoke_links(ctx.tx, ctx.plan_manager_id, invoices.kept, "unavailable", now)
    documents = await store.delete_documents(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept, now)
    statements = await statement_store.delete_many(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept, now)
    await statement_run_store.delete_of_participant(ctx.tx, ctx.plan_manager_id, participant_id)
    erased, kept = await financial_records.erase_expired(ctx, participant_id, invoices)
    return {"documents": documents, "statements": statements, "financial_records": erased}, kept


async def _delete_records(ctx: WriteContext, participant_id: UUID) -> dict[str, int]:
    if not await participant_exists(ctx.tx, ctx.plan_manager_id, participant_id):
        return {"participants": 0, "team_members": 0, "plans": 0, "notes": 0, "bank_details": 0}
    erased = await bank_details.erase(ctx, participant_id)
    parts = await participant_service.delete(ctx, participant_id)
    return {"participants": 1, **parts._asdict(), "bank_details": erased}


async def _delete_from_trash(ctx: WriteContext, participant_id: UUID) -> list[Snapshot]:
    """Delete the participant's entries from the trash, and return their content."""
    entries = await trash_store.find(ctx.tx, ctx.plan_manager_id, "participant", participant_id)
    if entries:
        await trash_store.delete_many(ctx.tx, ctx.plan_manager_id, [each.id for each in entries])
    return [msgspec.json.decode(each.snapshot, type=Snapshot) for each in entries]


async def _require_nothing_left(ctx: WriteContext, participant_id: UUID) -> None:
    """Raise DomainError if the participant exists again, so that the erasure is rolled back."""
    if await participant_exists(ctx.tx, ctx.plan_manager_id, participant_id) or await trash_store.find(
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
    kept_fields = {
        "participant": PARTICIPANT_FIELDS,
        "team_member": TEAM_MEMBER_FIELDS,
        "plan": PLAN_FIELDS,
        "note": NOTE_FIELDS,
        "statement": STATEMENT_FIELDS,
        "invoice": None,
    }
    for kind, fields in kept_fields.items():
        ids = [each.id for each in events if each.resource_kind == kind]
        # An invoice stays, except for texts about the person.
        pattern = texts.pattern if fields is None else None
        if ids and (fields or pattern):
            count += await store.erase_events(ctx.tx, ctx.plan_manager_id, ids, fields, pattern)
    return count + await _erase_export_filters(ctx, texts.pattern)


async def _erase_export_filters(ctx: WriteContext, pattern: str | None) -> int:
    """Erase the filters of exports that contain one of the texts, and return their number."""
    if pattern is None:
        return 0
    exports = await store.list_exports(ctx.tx, ctx.plan_manager_id)
    texts = {each.id: re.sub(store.NAMES_AND_CHOICES, r"\1", unquote_plus(each.filter)) for each in exports}
    ids = [id_ for id_, text in texts.items() if matches(pattern, text)]
    return await store.erase_events(ctx.tx, ctx.plan_manager_id, ids, EXPORT_FIELDS, None) if ids else 0


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
    erased = erase_fields(value, participant_id)
    return body if erased == value else msgspec.json.encode(erased)


async def _erase_imports(ctx: WriteContext, participant_id: UUID, texts: PersonTexts) -> dict[str, int]:
    pattern = texts.file_pattern(participant_id)
    files = await store.list_files(ctx.tx, ctx.plan_manager_id)
    found = [each.id for each in files if await _is_in_file(pattern, each.content)]
    if found:
        await store.delete_files(ctx.tx, ctx.plan_manager_id, found)
    rows = await store.erase_import_rows(ctx.tx, ctx.plan_manager_id, participant_id, pattern.pattern, found)
    names = 0
    if texts.pattern:
        names = await store.erase_import_texts(ctx.tx, ctx.plan_manager_id, texts.pattern, texts.folded)
    return {"import_files": len(found), "import_rows": rows, "import_texts": names}


async def _list_mentions(
    ctx: WriteContext, participant_id: UUID, texts: PersonTexts, *, search_events: bool
) -> list[Mention]:
    """At most one more than MAX_MENTIONS."""
    if texts.pattern is None:
        return []
    values = (ctx.tx, ctx.plan_manager_id, participant_id, texts.pattern)
    mentions = await store.list_mentions(*values, MAX_MENTIONS + 1)
    if search_events and len(mentions) <= MAX_MENTIONS:
        mentions += await store.list_event_mentions(*values, MAX_MENTIONS + 1 - len(mentions))
    return mentions
