"""The export of all data about one person, as a JSON document and as an HTML page."""

import base64
import re
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Raw, Struct

from plankeeper.access.access_log import store as access_log
from plankeeper.access.request_log.schemas import LoggedRequest
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import NotFound
from plankeeper.core.fields import AwareDatetime
from plankeeper.core.json import to_json
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.privacy import export_store, store
from plankeeper.privacy.schemas import JsonObject, LegalHold, ResponseRecord
from plankeeper.privacy.service import PersonTexts, split_file
from plankeeper.resources.documents.schemas import DocumentRow


class StoredResponseExport(Struct):
    """A response that is stored for an `Idempotency-Key`, without records of others; in base64 if it is encrypted."""

    path: str
    idempotency_key: str
    body: Raw | str | None


class FileLines(Struct):
    """The lines of an uploaded file that contain the person."""

    name: str
    created_at: AwareDatetime
    created_by: UUID  # the account that uploaded it
    lines: list[str]


class RequestExport(Struct):
    """A logged request whose path names the participant."""

    responded_at: AwareDatetime
    key_id: str
    method: str
    path: str
    status: int
    request_id: str


class PersonExport(Struct):
    """All data about one participant. Rows are as stored, without the plan manager's id."""

    plan_manager_id: UUID
    participant_id: UUID
    exported_at: AwareDatetime
    participant: Raw | None
    legal_hold: LegalHold | None
    team_members: list[Raw]
    plans: list[Raw]
    notes: list[Raw]
    users: list[Raw]
    invoices: list[Raw]
    invoice_lines: list[Raw]
    claims: list[Raw]
    adjustments: list[Raw]
    payment_lines: list[Raw]
    payments: list[Raw]
    fee_taking_lines: list[Raw]
    statements: list[Raw]
    statement_sends: list[Raw]
    statement_run_items: list[Raw]
    statement_run_recipients: list[Raw]
    documents: list[DocumentRow]
    ignored_warnings: list[Raw]
    approval_links: list[Raw]
    bank_details: list[Raw]
    bank_detail_changes: list[Raw]
    invoice_view_sessions: list[Raw]
    trash_entries: list[Raw]
    events: list[Raw]
    webhook_deliveries: list[Raw]
    stored_responses: list[StoredResponseExport]
    uploaded_files: list[FileLines]
    import_rows: list[Raw]
    requests: list[RequestExport]
    access_records: list[Raw]


async def export_person(db: Database, plan_manager_id: UUID, participant_id: UUID) -> PersonExport:
    """Read all data in one snapshot. Raises NotFound if there is no data about the participant."""
    async with db.transaction(snapshot=True) as tx:
        values = (tx, plan_manager_id, participant_id)
        participant, events = await export_store.get_participant(*values), await export_store.list_events(*values)
        trash_entries = await export_store.list_trash_entries(*values)
        if participant is None and not events and not trash_entries:
            raise NotFound
        team = await export_store.list_team_members(*values)
        people = [_decode(each) for each in [*([participant] if participant else []), *team]] + _in_trash(trash_entries)
        sessions = await export_store.list_view_sessions(*values)
        events += await export_store.list_note_events(*values) + await _list_session_events(*values[:2], sessions)
        decoded = [_decode(each) for each in events]
        invoices = await export_store.list_invoices(*values)
        pattern, own_ids = _file_pattern(participant_id, people), [participant_id, *_ids(map(_decode, invoices))]
        return PersonExport(
            plan_manager_id=plan_manager_id,
            participant_id=participant_id,
            exported_at=datetime.now(UTC),
            participant=participant,
            legal_hold=await store.get_hold(*values),
            team_members=team,
            plans=await export_store.list_plans(*values),
            notes=await export_store.list_notes(*values),
            users=await export_store.list_users(tx, plan_manager_id, _user_ids(people, decoded)),
            invoices=invoices,
            **await _list_parts_of_invoices(*values),
            documents=await store.list_documents(*values),
            bank_details=await export_store.list_bank_details(*values),
            bank_detail_changes=await export_store.list_bank_detail_changes(*values),
            invoice_view_sessions=sessions,
            trash_entries=trash_entries,
            events=events,
            webhook_deliveries=await export_store.list_deliveries(tx, plan_manager_id, _ids(decoded)),
            stored_responses=[_response(each, own_ids) for each in await store.list_responses(*values)],
            uploaded_files=await _file_lines(tx, plan_manager_id, pattern),
            import_rows=await export_store.list_import_rows(*values, pattern.pattern),
            requests=await _requests(tx, plan_manager_id, participant_id),
            access_records=await export_store.list_access_records(tx, plan_manager_id, own_ids),
        )


async def _list_parts_of_invoices(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> dict[str, list[Raw]]:
    """The rows that belong to the participant's invoices, and the payments to it, by the name of their field."""
    values = (tx, plan_manager_id, participant_id)
    return {
        "invoice_lines": await export_store.list_invoice_lines(*values),
        "claims": await export_store.list_claims(*values),
        "adjustments": await export_store.list_adjustments(*values),
        "payment_lines": await export_store.list_payment_lines(*values),
        "payments": await export_store.list_payments(*values),
        "fee_taking_lines": await export_store.list_fee_taking_lines(*values),
        "statements": await export_store.list_statements(*values),
        "statement_sends": await export_store.list_statement_sends(*values),
        "statement_run_items": await export_store.list_statement_run_items(*values),
        "statement_run_recipients": await export_store.list_statement_run_recipients(*values),
        "ignored_warnings": await export_store.list_ignored_warnings(*values),
        "approval_links": await export_store.list_approval_links(*values),
    }


async def _list_session_events(tx: Transaction, plan_manager_id: UUID, sessions: Sequence[Raw]) -> list[Raw]:
    ids: list[str] = [_decode(each)["id"] for each in sessions]
    return await export_store.list_events_of_view_sessions(tx, plan_manager_id, ids)


def _ids(records: Iterable[JsonObject]) -> list[UUID]:
    return [UUID(each["id"]) for each in records]


def _decode(raw: Raw) -> JsonObject:
    return msgspec.json.decode(raw, type=JsonObject)


def _in_trash(entries: Sequence[Raw]) -> list[JsonObject]:
    """The participant and its team members in entries of the trash."""
    snapshots = [_decode(each)["snapshot"] for each in entries]
    return [record for each in snapshots for record in (each["record"], *each["team"])]


def _user_ids(people: Sequence[JsonObject], events: Sequence[JsonObject]) -> list[UUID]:
    """The users of all members that the team ever had."""
    records = [*people]
    for event in events:
        if event["resource_kind"] == "team_member":
            records += [each for each in (event["data"], event["previous"]) if each]
    return sorted({UUID(each["user_id"]) for each in records if each.get("user_id")})


def _response(record: ResponseRecord, own_ids: Sequence[UUID]) -> StoredResponseExport:
    """A stored response, of which a bulk request for several people keeps only what is about the person."""
    body: Raw | str | None = None
    if record.body is not None:
        try:
            value = msgspec.json.decode(record.body)
            body = Raw(to_json(_own_part(value, {str(each) for each in own_ids})))
        except msgspec.DecodeError:
            body = base64.b64encode(record.body).decode()
    return StoredResponseExport(record.path, record.idempotency_key, body)


def _own_part(value: Any, own_ids: Container[str]) -> Any:
    """A record about one of the ids as it is, and any other object with only these records in its lists."""
    if isinstance(value, list):
        return [each for each in cast("list[Any]", value) if _is_own(each, own_ids)]
    if not isinstance(value, dict):
        return value
    record = cast("JsonObject", value)
    return record if _is_own(record, own_ids) else {name: _own_part(record[name], own_ids) for name in record}


def _is_own(value: Any, own_ids: Container[str]) -> bool:
    if isinstance(value, dict):
        record = cast("JsonObject", value)
        return any(str(record.get(name)) in own_ids for name in ("id", "participant_id", "invoice_id"))
    return str(value) in own_ids


def _file_pattern(participant_id: UUID, people: Iterable[JsonObject]) -> re.Pattern[str]:
    texts = PersonTexts()
    for each in people:
        texts.add(each)
    return texts.file_pattern(participant_id)


async def _file_lines(db: Executor, plan_manager_id: UUID, pattern: re.Pattern[str]) -> list[FileLines]:
    found: list[FileLines] = []
    for each in await store.list_files(db, plan_manager_id):
        lines = list[str]()
        async for part in split_file(each.content):
            lines += [line for line in part.splitlines() if pattern.search(line)]
        if lines:
            found.append(FileLines(each.name, each.created_at, each.created_by, lines))
    return found


async def _requests(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[RequestExport]:
    batches = await export_store.list_request_batches(db, plan_manager_id, participant_id)
    logged = [each for batch in batches for each in batch.requests if str(participant_id) in each.path]
    return [_request(each) for each in logged]


def _request(logged: LoggedRequest) -> RequestExport:
    return RequestExport(
        logged.responded_at, logged.key_id, logged.method, logged.path, logged.status, logged.request_id
    )


async def record_export(ctx: WriteContext, export: PersonExport) -> None:
    """Record the event `export.created`."""
    rows = sum(section_sizes(export).values())
    await access_log.record_export(ctx, "person", str(export.participant_id), rows)


def section_sizes(export: PersonExport) -> dict[str, int]:
    """The number of records in each section."""
    sections: dict[str, Any] = {name: getattr(export, name) for name in export.__struct_fields__[3:]}
    return {
        name: len(cast("list[Any]", each)) if isinstance(each, list) else int(each is not None)
        for name, each in sections.items()
    }


def to_document(export: PersonExport) -> str:
    """The export as a JSON document, indented."""
    return msgspec.json.format(to_json(export), indent=2) + "\n"


def to_page(export: PersonExport) -> str:
    """The export as a self-contained HTML page to read and to print."""
    environment = Environment(
        loader=PackageLoader("plankeeper.privacy"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections: dict[str, Any] = msgspec.json.decode(to_json(export))
    facts = {name: sections.pop(name) for name in ("plan_manager_id", "participant_id", "exported_at")}
    return environment.get_template("person_export.html").render(facts=facts, sections=sections)
