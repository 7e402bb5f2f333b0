"""Access: who viewed, listed or exported which participant or invoice, for owners."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.access_records import store
from plankeeper.access_records.schemas import AccessRecord, AccessRecordFilter
from plankeeper.console.csv_export import csv_row
from plankeeper.console.exports import csv_chunks
from plankeeper.console.pagination import PAGE_SIZE, with_query
from plankeeper.console.record_picker import RecordPicker, pick_record
from plankeeper.console.routing import PREFIX, Download, HtmlPage, PageRequest, Pages
from plankeeper.http.access import AccessedKind
from plankeeper.http.parsing import parse_uuid
from plankeeper.invoices.ignored_warnings_store import get_display_names
from plankeeper.invoices.store import get_many_without_lines

pages = Pages()

ACCESS_URL = f"{PREFIX}/settings/access"
EXPORT_BATCH_SIZE = 500  # records in a chunk of the CSV file
CSV_COLUMNS = (
    "at",
    "actor_kind",
    "actor_id",
    "actor_name",
    "action",
    "resource_kind",
    "resource_id",
    "query",
    "first_id",
    "last_id",
    "request_id",
)


@pages.get("/settings/access", role="owner")
async def list_(request: PageRequest) -> HtmlPage:
    record, person = await _pick(request)
    before = parse_uuid(request.query.text("before"))
    if record.is_unclear and not record.candidates:
        request.errors = {"resource_id": "must be the name of a participant, or the ID of a participant or an invoice"}
    is_unclear = record.is_unclear or person.is_unclear
    rows = [] if is_unclear else await _list_latest(request, record, person, before)
    shown, texts = rows[:PAGE_SIZE], _texts(record, person)
    older = with_query(ACCESS_URL, {**texts, "before": str(shown[-1].id)}) if len(rows) > PAGE_SIZE else None
    context = {
        "records": shown,
        "names": await _record_names(request, shown),
        "older": older,
        "export": with_query(f"{ACCESS_URL}.csv", texts),
        "record_picker": record,
        "person_picker": person,
        "record_url": partial(_filtered_url, texts, "resource_id"),
        "person_url": partial(_filtered_url, texts, "name"),
        "is_filtered": any(texts.values()),
    }
    return HtmlPage("access_records.html", context, 422 if request.errors else 200)


@pages.get("/settings/access.csv", role="owner")
async def export(request: PageRequest) -> Download:
    """The records that match the filters, newest first."""
    today = datetime.now(request.settings.time_zone).date()
    record, person = await _pick(request)
    filters = AccessRecordFilter(record.id, person.text or None)
    query = urlencode({name: text for name, text in _texts(record, person).items() if text})
    chunks = csv_chunks(request, "access_records", query, CSV_COLUMNS, _export_batches(request, filters))
    return Download(f"access-{today}.csv", "text/csv; charset=utf-8", chunks)


async def _pick(request: PageRequest) -> tuple[RecordPicker, RecordPicker]:
    """The fields of the record and of the person. An invoice is identified by its id."""
    record = await pick_record(request, "participant", "resource_id")
    person = (await pick_record(request, "person", "name"))._replace(takes_any_text=True)
    return record._replace(id=record.id or parse_uuid(record.text)), person


def _filtered_url(filters: Mapping[str, str], name: str, value: str) -> str:
    """The list with one more filter."""
    return with_query(ACCESS_URL, {**filters, name: value})


def _texts(record: RecordPicker, person: RecordPicker) -> dict[str, str]:
    """The filters as parameters of the page."""
    return {"resource_id": str(record.id) if record.id else record.text, "name": person.text}


async def _list_latest(
    request: PageRequest, record: RecordPicker, person: RecordPicker, before: UUID | None
) -> list[AccessRecord]:
    filters = AccessRecordFilter(record.id, person.text or None)
    return await store.list_latest(request.db, request.plan_manager_id, filters, before, PAGE_SIZE + 1)


async def _record_names(request: PageRequest, records: Sequence[AccessRecord]) -> dict[UUID, str]:
    """The names of participants and the numbers of invoices by id, where they still exist."""
    ids: dict[AccessedKind, set[UUID]] = {"participant": set(), "invoice": set()}
    for each in records:
        ids[each.resource_kind] |= {id_ for id_ in (each.resource_id, each.first_id, each.last_id) if id_}
    place = (request.db, request.plan_manager_id)
    people = await get_display_names(*place, list(ids["participant"]), [])
    invoices = await get_many_without_lines(*place, list(ids["invoice"]))
    names = {each.id: each.name or "No name" for each in people}
    return names | {each.id: each.invoice_number or "No number" for each in invoices}


async def _export_batches(request: PageRequest, filters: AccessRecordFilter) -> AsyncIterator[list[bytes]]:
    before: UUID | None = None
    while True:
        rows = await store.list_latest(request.db, request.plan_manager_id, filters, before, EXPORT_BATCH_SIZE)
        yield [_csv_record(each) for each in rows]
        if len(rows) < EXPORT_BATCH_SIZE:
            return
        before = rows[-1].id


def _csv_record(record: AccessRecord) -> bytes:
    ids = [str(each) if each else None for each in (record.resource_id, record.first_id, record.last_id)]
    return csv_row(
        (
            record.accessed_at.isoformat().replace("+00:00", "Z"),
            record.actor.kind,
            record.actor.id,
            record.actor.name,
            record.action,
            record.resource_kind,
            ids[0],
            record.query,
            ids[1],
            ids[2],
            record.request_id,
        )
    )
