"""Rows of a list that are selected for an action, one by one or all that match, and the result of each."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.access.saved_views import store
from plankeeper.console.components.downloads import FileFormat, csv_chunks, csv_row, xlsx_chunks
from plankeeper.console.components.edit_forms import EditConflictError
from plankeeper.console.lists.definition import Column, ListDefinition, csv_text, select_columns, xlsx_cell
from plankeeper.console.lists.groups import file_columns, load_groups
from plankeeper.console.lists.query import ListPageQuery, limit_values, parse_filters, parse_list_query
from plankeeper.console.lists.reading import ListReader
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.shell.forms import Form, parse_form
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
)
from plankeeper.core.context import AccessAction
from plankeeper.core.errors import ValidationError
from plankeeper.core.files import Download
from plankeeper.core.ids import parse_uuid
from plankeeper.core.lists import in_order
from plankeeper.core.xlsx import XLSX, Cell
from plankeeper.database.lists.filtered_list import FilteredList

MAX_SELECTED = 100  # their ids fit into the address of a page
MAX_MATCHING = 1000  # one transaction changes them within seconds, and one undo reverts them
MAX_FILE_GROUPS = 100_000  # a file with all of them
MAX_SHOWN = 100  # rows and outcomes that a page lists
Describe = Callable[[Any], str]  # the shown value of a row that the action changes


class Selection(NamedTuple):
    """The selected rows that exist, in their order.

    `query` is that of the list that they were selected in, `missing` the number of records that don't exist any more.
    For all rows that match a list, `filters` are its filters in words, and `matched` is their number with a digest of
    their ids and of the values that an action changes; otherwise it is empty.
    """

    definition: ListDefinition
    rows: Sequence[Any]
    query: str
    missing: int = 0
    filters: Sequence[str] = ()
    matched: str = ""
    names: Mapping[Any, Any] = MappingProxyType({})  # of the records that the shown rows refer to

    @property
    def shown(self) -> Sequence[Any]:
        return self.rows[:MAX_SHOWN]

    @property
    def back_url(self) -> str:
        return f"{self.definition.path}?{self.query}" if self.query else self.definition.path

    @property
    def count_text(self) -> str:
        return self.definition.count_text(len(self.rows))


class Outcome(NamedTuple):
    """The result for a selected record.

    `undo_path` is the page that reverts the change, `restore_path` takes the form that brings a warning back.
    """

    name: str
    url: str
    message: str
    is_changed: bool
    undo_path: str | None = None
    restore_path: str | None = None


async def read_selection(
    request: PageRequest, definition: ListDefinition, form: Form, describe: Describe, action: AccessAction = "listed"
) -> Selection:
    """The rows whose ids a form or a query contains or, with `all`, all rows that match its list.

    The rows that the page shows are recorded in the access log, as `action`. Raises ValidationError for too many rows.
    """
    selection = await _find_rows(request, definition, form, describe)
    _record_shown(request, selection, selection.shown, action)
    return selection._replace(names=await definition.load_names(request, selection.shown))


async def confirm_selection(request: FormRequest, definition: ListDefinition, describe: Describe) -> Selection:
    """The rows of a form, where all match a list exactly those that its page has counted.

    Raises EditConflictError, after which the page shows those that match now, and ValidationError for too many.
    """
    selection = await _find_rows(request, definition, request.form, describe)
    before = request.form.text("matched")
    if selection.matched != before:
        number = before.partition(".")[0][:5] or "0"
        raise EditConflictError(
            f"The list has changed since you opened this page, or your changes are saved already."
            f" {number} matched before, {len(selection.rows):,} now. Nothing was changed by this attempt."
            " Check the list below before you confirm again."
        )
    return selection


def selection_url(path: str, query: ListPageQuery) -> str:
    """The page of an action for all rows that match a list."""
    return f"{path}?{urlencode({'all': '1', 'list': query.first_page().text})}"


def parse_matching(definition: ListDefinition, form: Form) -> ListPageQuery:
    """The list of a form or a query for all rows. Raises ValidationError instead of taking another list."""
    texts = form.getlist("list")
    if len(texts) != 1:
        raise ValidationError(form="must name one list")
    return parse_list_query(definition, parse_form(texts[0].encode())).first_page()


async def _find_rows(request: PageRequest, definition: ListDefinition, form: Form, describe: Describe) -> Selection:
    if form.text("all"):
        return await _find_matching(request, parse_matching(definition, form), describe)
    ids = list(dict.fromkeys(filter(None, map(parse_uuid, form.getlist("id")))))
    if len(ids) > MAX_SELECTED:
        raise ValidationError(form=f"You can select at most {MAX_SELECTED} {definition.many} at once.")
    shown = await _select_inside(request, definition, ids)
    rows = await definition.get_rows(request.db, request.plan_manager_id, shown) if shown else ()
    found = in_order(ids, rows)
    query = parse_query_text(definition, form.raw("list"), keep_page=True).text
    return Selection(definition, found, query, len(ids) - len(found))


async def _select_inside(request: PageRequest, definition: ListDefinition, ids: Sequence[UUID]) -> Sequence[Any]:
    """The ids of the records that the account can see."""
    limit = limit_values(request, definition)
    if not limit or not ids:
        return ids
    place = (request.db, request.plan_manager_id)
    found = await definition.table.page(*place, limit | {"id": list(ids)}, len(ids))
    return [definition.table.parse_id(each.id) for each in found]


async def _find_matching(request: PageRequest, query: ListPageQuery, describe: Describe) -> Selection:
    """All rows that match a list. A form that searches takes a slot, as the endpoint does for a page."""
    query, filters = await parse_filters(request, query)
    if filters.errors:
        raise ValidationError(**filters.errors)
    db = request.tx if isinstance(request, FormRequest) else request.db
    reader = ListReader(db, request.plan_manager_id, query, filters.values)
    rows = list[Any]()
    is_search = "q" in query.filters and not request.is_search
    async with request.limit_search(is_search=is_search):
        async for batch in reader.read_batches():
            rows += batch
            if len(rows) > MAX_MATCHING:
                raise ValidationError(form=limit_text(query.definition))
    chips = [each.chip for each in filters.by_name.values() if each.chip]
    matched = f"{len(rows)}.{_digest(f'{each.id}:{describe(each)}' for each in rows)}"
    return Selection(query.definition, rows, query.text, filters=chips, matched=matched)


def limit_text(definition: ListDefinition) -> str:
    """The message if more rows match than one action can change."""
    return (
        f"At most {definition.count_text(MAX_MATCHING)} can be changed at once, and more match."
        " Filter the list, for example by state, and change one part after the other."
    )


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def _record_shown(request: PageRequest, selection: Selection, rows: Sequence[Any], action: AccessAction) -> None:
    request.record_disclosed(selection.definition.disclosed(rows), {"selected": str(len(selection.rows))}, action)


def seen_values(form: Form) -> dict[UUID, str]:
    """The values of each record on the page: `seen` has the id, a colon and the value."""
    pairs = [each.partition(":") for each in form.getlist("seen")]
    return {record_id: value for text, _, value in pairs if (record_id := parse_uuid(text))}


def outcome_page(request: FormRequest, title: str, selection: Selection, outcomes: Sequence[Outcome]) -> HtmlPage:
    """The page of changed and unchanged records, with a link that undoes all changes."""
    rows: dict[bool, list[Any]] = {False: [], True: []}
    for row, outcome in zip(selection.rows, outcomes, strict=True):
        rows[outcome.is_changed].append(row)
    _record_shown(request, selection, [row for each in rows.values() for row in each[:MAX_SHOWN]], "listed")
    context = {
        "section": selection.definition.kind,
        "back_url": selection.back_url,
        "back_title": selection.definition.title,
        "missing": selection.missing,
    }
    return show_outcomes(request, title, selection.definition.count_text, outcomes, context)


def show_outcomes(
    request: FormRequest,
    title: str,
    count_text: Callable[[int], str],
    outcomes: Sequence[Outcome],
    context: dict[str, Any],
) -> HtmlPage:
    """The page of changed and unchanged records; the first MAX_SHOWN of each."""
    changed = [each for each in outcomes if each.is_changed]
    found = {"Not changed": [each for each in outcomes if not each.is_changed], "Changed": changed}
    values = {
        "title": title,
        "outcomes": {heading: (len(each), each[:MAX_SHOWN]) for heading, each in found.items() if each},
        "changed_count": len(changed),
        "changed_text": count_text(len(changed)),
        "all_path": f"{PREFIX}/activity/{request.recorded[0]}/request" if len(changed) > 1 else None,
    }
    return HtmlPage("lists/selected_outcome.html", context | values)


async def download_list(
    request: PageRequest,
    definition: ListDefinition,
    query: ListPageQuery | None = None,
    file_format: FileFormat = "csv",
) -> Download:
    """The rows or the groups of a list, by default that of the request, as a file.

    Raises ValidationError for an invalid filter.
    """
    query, filters = await parse_filters(request, query or parse_list_query(definition, request.query))
    if filters.errors:
        raise ValidationError(**filters.errors)
    query = query.first_page()
    if query.group:
        columns, rows = file_columns(await load_groups(request, query, filters, MAX_FILE_GROUPS))
        return _file(request, definition, query.text, columns, _once(rows), file_format)
    if isinstance(definition.rows, FilteredList):
        batches = ListReader(request.db, request.plan_manager_id, query, filters.values).read_batches()
    else:
        batches = definition.rows.read_batches(request, filters.values)
    columns = await shown_columns(request, definition)
    return _file(request, definition, query.text, columns, _read(request, query, columns, batches), file_format)


async def shown_columns(request: PageRequest, definition: ListDefinition) -> list[Column]:
    """The columns that the person has chosen, and those that every file has."""
    account_id = request.account.account_id
    settings = await store.get_settings(request.db, request.plan_manager_id, account_id, definition.kind)
    shown = select_columns(definition.columns, settings.columns)
    names = {each.name for each in shown}
    return [*shown, *(each for each in definition.file_columns if each.name not in names)]


async def download_selected(request: PageRequest, definition: ListDefinition, file_format: FileFormat) -> Download:
    """The selected rows as a file, with the columns of the list; for all rows that match, the file of the list."""
    if request.query.text("all"):
        return await download_list(request, definition, parse_matching(definition, request.query), file_format)
    selection = await read_selection(request, definition, request.query, lambda _row: "", "exported")
    columns = await shown_columns(request, selection.definition)
    values = await _values(request, selection.definition, columns, selection.rows)
    return _file(request, selection.definition, f"selected={len(selection.rows)}", columns, _once(values), file_format)


Values = Sequence[Sequence[Any]]  # of rows, by column


def _file(
    request: PageRequest,
    definition: ListDefinition,
    filters: str,
    columns: Sequence[Column],
    batches: AsyncIterator[Values],
    file_format: FileFormat,
) -> Download:
    labels, zone = [each.label for each in columns], request.settings.time_zone
    name = f"{definition.kind}-{datetime.now(zone).date()}.{file_format}"

    async def lines() -> AsyncIterator[list[bytes]]:
        async for rows in batches:
            yield [csv_row(map(csv_text, columns, row, repeat(zone))) for row in rows]

    async def cells() -> AsyncIterator[list[list[Cell]]]:
        async for rows in batches:
            yield [[*map(xlsx_cell, columns, row, repeat(zone))] for row in rows]

    if file_format == "xlsx":
        return Download(name, XLSX, xlsx_chunks(request, definition.kind, filters, labels, cells()))
    return Download(name, "text/csv; charset=utf-8", csv_chunks(request, definition.kind, filters, labels, lines()))


async def _once(values: Values) -> AsyncIterator[Values]:
    yield values


async def _values(
    request: PageRequest, definition: ListDefinition, columns: Sequence[Column], rows: Sequence[Any]
) -> Values:
    names = await (definition.load_file_names or definition.load_names)(request, rows)
    return [[each.value(row, names) for each in columns] for row in rows]


async def _read(
    request: PageRequest, query: ListPageQuery, columns: Sequence[Column], batches: AsyncIterator[Sequence[Any]]
) -> AsyncIterator[Values]:
    """The values of the file: each batch is read when the one before has been sent."""
    async for rows in batches:
        request.record_disclosed(query.definition.disclosed(rows), query.recorded_params, "exported")
        yield await _values(request, query.definition, columns, rows)
