"""The position of a record in the list from which it was opened, and its neighbours."""

from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from plankeeper.console.forms import parse_form
from plankeeper.console.lists.pages import MAX_COUNTED, ListReader
from plankeeper.console.lists.query import ListPageQuery, parse_filters, parse_list_query
from plankeeper.console.lists.registry import LISTS
from plankeeper.console.routing import FormRequest, PageRequest
from plankeeper.core.errors import ValidationError
from plankeeper.database.lists.statements import Start

MAX_QUERY_LENGTH = 4000


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The position of a record in a list: `position` of `total`, with the pages of its neighbours.

    `is_member` is false if the record doesn't match the filters any more. Then `position` is null; it also is, with
    `total`, in a list of more than 10,000 records. `query` is the value of `list` for links to pages that keep the
    position.
    """

    title: str
    one: str
    query: str
    back_url: str
    is_member: bool = False
    previous_url: str | None = None
    next_url: str | None = None
    position: int | None = None
    total: int | None = None

    @property
    def suffix(self) -> str:
        """The query that keeps the position in the address of a page of the record."""
        return _suffix(self.query)


async def list_position(request: PageRequest, kind: str, record_id: UUID) -> ListPlace | None:
    """The position of a record in the list of the parameter `list`; null if the page wasn't opened from a list.

    For a form, it is the position after the form's write.
    """
    text = request.query.raw("list") if "list" in request.query else None
    if text is None or len(text) > MAX_QUERY_LENGTH:
        return None
    definition = LISTS[kind]
    try:
        query = parse_list_query(definition, parse_form(text.encode()))
    except ValidationError:
        return None
    query, filters = await parse_filters(request, query)
    if filters.errors:
        return ListPlace(definition.title, definition.one, text, query.url())
    db = request.tx if isinstance(request, FormRequest) else request.db
    reader = ListReader(db, request.plan_manager_id, query, filters.values)
    return await _find_place(reader, record_id)


async def _find_place(reader: ListReader, record_id: UUID) -> ListPlace:
    query = reader.query
    start = await reader.find(record_id)
    is_member = start is not None
    start = start or await reader.find(record_id, is_filtered=False)
    if start is None:
        return ListPlace(query.definition.title, query.definition.one, query.text, query.url())
    count = (await reader.read_summary()).count
    is_counted = count <= MAX_COUNTED
    return ListPlace(
        query.definition.title,
        query.definition.one,
        query.text,
        query.url(),
        is_member,
        await _neighbour_url(reader, start, is_backward=True),
        await _neighbour_url(reader, start, is_backward=False),
        1 + await reader.count_before(start) if is_member and is_counted else None,
        count if is_counted else None,
    )


async def _neighbour_url(reader: ListReader, start: Start, *, is_backward: bool) -> str | None:
    found = await reader.read_ids(start, 1, is_backward=is_backward)
    return record_url(reader.query, found[0].id) if found else None


def record_url(query: ListPageQuery, record_id: object) -> str:
    """The page of a record, with its position in the list."""
    return query.definition.record_path(record_id) + _suffix(query.text)


def _suffix(text: str) -> str:
    return f"?list={quote(text, safe='=')}"
