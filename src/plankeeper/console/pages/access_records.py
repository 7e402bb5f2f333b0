"""Access: who viewed, listed or exported which participant or invoice, for owners."""

from collections.abc import AsyncIterator
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.access_records import store
from plankeeper.access_records.schemas import AccessRecord, AccessRecordFilter
from plankeeper.console.csv_export import csv_row
from plankeeper.console.exports import csv_chunks
from plankeeper.console.pagination import PAGE_SIZE, with_query
from plankeeper.console.routing import PREFIX, Download, HtmlPage, PageRequest, Pages
from plankeeper.http.parsing import parse_uuid

pages = Pages()

ACCESS_URL = f"{PREFIX}/settings/access"
EXPORT_BATCH_SIZE = 500  # records in a chunk of the CSV file
MAX_FILTER_LENGTH = 255
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
    texts = {name: request.query.text(name).strip()[:MAX_FILTER_LENGTH] for name in ("resource_id", "name")}
    resource_id, before = parse_uuid(texts["resource_id"]), parse_uuid(request.query.text("before"))
    if texts["resource_id"] and resource_id is None:
        request.errors = {"resource_id": "must be the ID of a participant or an invoice"}
    filters = AccessRecordFilter(resource_id, texts["name"] or None)
    rows = await store.list_latest(request.db, request.plan_manager_id, filters, before, PAGE_SIZE + 1)
    older = with_query(ACCESS_URL, {**texts, "before": str(rows[PAGE_SIZE - 1].id)}) if len(rows) > PAGE_SIZE else None
    context = {
        "records": [] if request.errors else rows[:PAGE_SIZE],
        "older": older,
        "export": with_query(f"{ACCESS_URL}.csv", texts),
        "filters": texts,
        "is_filtered": any(texts.values()),
    }
    return HtmlPage("access_records.html", context, 422 if request.errors else 200)


@pages.get("/settings/access.csv", role="owner")
async def export(request: PageRequest) -> Download:
    """The records that match the filters, newest first."""
    today = datetime.now(request.settings.time_zone).date()
    texts = {name: request.query.text(name) for name in ("resource_id", "name")}
    filters = AccessRecordFilter(parse_uuid(texts["resource_id"]), texts["name"] or None)
    query = urlencode({name: text for name, text in texts.items() if text})
    chunks = csv_chunks(request, "access_records", query, CSV_COLUMNS, _export_batches(request, filters))
    return Download(f"access-{today}.csv", "text/csv; charset=utf-8", chunks)


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
