"""The CSV file of a list: the same filters, order and columns as on the page."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from plankeeper.access.saved_views import store
from plankeeper.console.csv_export import csv_row
from plankeeper.console.exports import csv_chunks
from plankeeper.console.lists.columns import Column, csv_text, select_columns
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.pages import ListReader
from plankeeper.console.lists.query import ListPageQuery, parse_filters, parse_list_query
from plankeeper.console.lists.selection import Selection, parse_matching, read_selection
from plankeeper.console.routing import Download, PageRequest
from plankeeper.core.errors import ValidationError
from plankeeper.database.lists.filtered_list import FilteredList


async def download_list(
    request: PageRequest, definition: ListDefinition, query: ListPageQuery | None = None
) -> Download:
    """The rows of a list, by default that of the request, as a file. Raises ValidationError for an invalid filter."""
    query, filters = await parse_filters(request, query or parse_list_query(definition, request.query))
    if filters.errors:
        raise ValidationError(**filters.errors)
    query = query.first_page()
    if isinstance(definition.rows, FilteredList):
        batches = ListReader(request.db, request.plan_manager_id, query, filters.values).read_batches()
    else:
        batches = definition.rows.read_batches(request, filters.values)
    columns = await shown_columns(request, definition)
    labels = [each.label for each in columns]
    rows = _encode(request, query, columns, batches)
    return _file(request, definition, csv_chunks(request, definition.kind, query.text, labels, rows))


async def shown_columns(request: PageRequest, definition: ListDefinition) -> list[Column]:
    """The columns that the person has chosen, and those that every file has."""
    account_id = request.account.account_id
    settings = await store.get_settings(request.db, request.plan_manager_id, account_id, definition.kind)
    shown = select_columns(definition.columns, settings.columns)
    names = {each.name for each in shown}
    return [*shown, *(each for each in definition.file_columns if each.name not in names)]


async def download_selected(request: PageRequest, definition: ListDefinition) -> Download:
    """The selected rows as a file, with the columns of the list; for all rows that match, the file of the list."""
    if request.query.text("all"):
        return await download_list(request, definition, parse_matching(definition, request.query))
    selection = await read_selection(request, definition, request.query, lambda _row: "", "exported")
    columns = await shown_columns(request, selection.definition)
    labels, filters = [each.label for each in columns], f"selected={len(selection.rows)}"
    chunks = csv_chunks(request, selection.definition.kind, filters, labels, _once(request, selection, columns))
    return _file(request, selection.definition, chunks)


def _file(request: PageRequest, definition: ListDefinition, chunks: AsyncIterator[bytes]) -> Download:
    today = datetime.now(request.settings.time_zone).date()
    return Download(f"{definition.kind}-{today}.csv", "text/csv; charset=utf-8", chunks)


async def _once(request: PageRequest, selection: Selection, columns: Sequence[Column]) -> AsyncIterator[list[bytes]]:
    yield await _csv_rows(request, selection.definition, columns, selection.rows)


async def _csv_rows(
    request: PageRequest, definition: ListDefinition, columns: Sequence[Column], rows: Sequence[Any]
) -> list[bytes]:
    names = await (definition.load_file_names or definition.load_names)(request, rows)
    zone = request.settings.time_zone
    return [csv_row(csv_text(each, each.value(row, names), zone) for each in columns) for row in rows]


async def _encode(
    request: PageRequest, query: ListPageQuery, columns: Sequence[Column], batches: AsyncIterator[Sequence[Any]]
) -> AsyncIterator[list[bytes]]:
    """The lines of the file: each batch is read when the one before has been sent."""
    async for rows in batches:
        request.record_disclosed(query.definition.disclosed(rows), query.recorded_params, "exported")
        yield await _csv_rows(request, query.definition, columns, rows)
