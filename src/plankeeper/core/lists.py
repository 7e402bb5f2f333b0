"""Pages of lists: their query parameters, their envelope, and how they are cut from a store's rows."""

import base64
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, TypeVarTuple
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.errors import invalid_parameter
from plankeeper.core.fields import (
    EXTENSION,
    UUID_PATTERN,
    AwareDatetime,
    Query,
    Text255,
    UuidText,
    component,
)
from plankeeper.database.client import Executor
from plankeeper.database.lists.cursor_keys import get_key
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_ID, Filter, SortOrder, Start, enum_filter

# Up to this offset, a page may read the rows before it. Beyond it, a page reads only an index before its rows.
MAX_SHALLOW_OFFSET = 1000
CURSOR_PREFIX = "s."  # no id begins with it

T = TypeVar("T")
Q = TypeVar("Q", bound="ListQuery")
Place = TypeVarTuple("Place")  # where a list is: the database, the plan manager and, of some, the record that has it


class HasId(Protocol):
    """A row of a list."""

    @property
    def id(self) -> object: ...


R = TypeVar("R", bound=HasId)

_NON_FILTERS = {"limit", "offset", "after", "sort", "include", "on"}
MAX_IDS = 100
MAX_ENUM_VALUES = 20  # of an enum, in a filter
MAX_TOTAL = 10_000  # of a search: counting its matches is slow


class PaginationMeta(Struct):
    """The position of a page in its list."""

    limit: Annotated[int, Meta(description="The maximum number of items on a page.")]
    offset: Annotated[int, Meta(description="The number of skipped items.")]
    has_more: Annotated[bool, Meta(description="Whether items follow this page.")]
    total: Annotated[int | None, Meta(description="The number of all matching items; null in cursor mode.")]
    next_cursor: Annotated[
        str | None,
        Meta(description="The `after` of the next page; null in offset mode and on the last page."),
    ]
    total_is_limited: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description=f"Present and true if `q` matches more items than `total`, which is {MAX_TOTAL} then."),
    ] = UNSET


class Page(Struct, Generic[T]):
    """One page of a list."""

    data: Annotated[list[T], Meta(description="The items of the page.")]
    pagination: Annotated[PaginationMeta, Meta(description="The position of the page in the list.")]


Limit = Annotated[int, Meta(ge=1, le=1000, description="The maximum number of items on a page.")]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1, description="The number of skipped items; not allowed with `after`.")]
_AFTER_DESCRIPTION = (
    "Returns the items after this id, in ascending order. `0` starts at the beginning. Not allowed with `offset`."
)

_SORTED_AFTER_DESCRIPTION = f"{_AFTER_DESCRIPTION} With `sort`, it is the `next_cursor` of the page before."
_OPAQUE_AFTER_DESCRIPTION = (
    "Returns the items after those of a page, whose `next_cursor` it is. `0` starts at the beginning. Not allowed with"
    " `offset`."
)
_ENCRYPTED_CURSOR = rf"{CURSOR_PREFIX[0]}\.[A-Za-z0-9_-]{{20,4000}}"


def _cursor(pattern: str, expected: str, description: str = _AFTER_DESCRIPTION) -> Meta:
    """The format of an `after`; `expected` describes valid values in an error."""
    return Meta(pattern=f"^({pattern})$", extra={"message": f"must be {expected}"}, description=description)


_UuidCursor = Annotated[str, _cursor(f"0|{UUID_PATTERN}", "0 or a UUID with hyphens")]
_SortedUuidCursor = Annotated[
    str,
    _cursor(
        f"0|{UUID_PATTERN}|{_ENCRYPTED_CURSOR}",
        "0, a UUID with hyphens or, with `sort`, a `next_cursor`",
        _SORTED_AFTER_DESCRIPTION,
    ),
]
_NumberText = Annotated[str, Meta(pattern="^[0-9]{1,18}$", extra={"message": "must be a whole number"})]
_SortedNumberCursor = Annotated[
    str,
    _cursor(
        f"[0-9]{{1,18}}|{_ENCRYPTED_CURSOR}",
        "0, a whole number or, with `sort`, a `next_cursor`",
        _SORTED_AFTER_DESCRIPTION,
    ),
]
_OpaqueCursor = Annotated[str, _cursor(f"0|{_ENCRYPTED_CURSOR}", "0 or a `next_cursor`", _OPAQUE_AFTER_DESCRIPTION)]
_CodeCursor = Annotated[str, _cursor("0|[a-z][a-z_]{0,99}", "0 or an error code")]


class ListQuery(Query, frozen=True):
    """The parameters of every list. Subclasses narrow `after` to their kind of id."""

    limit: Limit = 20
    offset: Offset = 0
    after: str | UnsetType = UNSET

    @property
    def uses_cursor(self) -> bool:
        return self.after is not UNSET

    @property
    def position(self) -> tuple[str | int, int, int]:
        """What a page's statement takes: the id that its rows follow, one row more than the limit, and the offset."""
        return self.start, self.limit + 1, self.offset

    @property
    def is_search(self) -> bool:
        return getattr(self, "q", UNSET) is not UNSET

    @property
    def start(self) -> str | int:
        """The id that the page's rows follow."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        """Whether the pages are in order of id and contain every record: two ids then define a page."""
        return getattr(self, "sort", UNSET) in (UNSET, "id") and not self.has_filters

    @property
    def has_filters(self) -> bool:
        """Whether any filter is set."""
        return any(getattr(self, name) is not UNSET for name in self.__struct_fields__ if name not in _NON_FILTERS)


class UuidListQuery(ListQuery, frozen=True):
    """A list ordered by UUID. Its rows follow `start`: the nil UUID, which no row has, at the beginning."""

    after: _UuidCursor | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "00000000-0000-0000-0000-000000000000" if self.after in (UNSET, "0") else str(self.after)


class CursorListQuery(UuidListQuery, frozen=True):
    """A list that supports cursors only: its pages have no total."""

    offset: Annotated[
        int, Meta(ge=0, le=0, extra={"message": "must be 0: this list supports cursors only"}, description="Always 0.")
    ] = 0


UpdatedSince = Annotated[
    AwareDatetime | UnsetType,
    EXTENSION,
    Meta(description="Returns items changed at or after this datetime."),
    Filter("updated_at >= {}"),
]
CreatedSince = Annotated[
    AwareDatetime | UnsetType,
    EXTENSION,
    Meta(description="Returns items created at or after this datetime."),
]
CreatedUntil = Annotated[
    AwareDatetime | UnsetType,
    EXTENSION,
    Meta(description="Returns items created before this datetime."),
]
_IDS_DESCRIPTION = (
    f"Returns items with one of these ids: up to {MAX_IDS}, separated by commas; unknown ids are ignored."
)
_SORT_DESCRIPTION = (
    "The order of the items; with `-` in descending order. Items with the same value are in order of their ids, and"
    " items without a value are the last ones."
)
SORT = Meta(description=_SORT_DESCRIPTION)


_DefaultSort = Annotated[
    Literal["id", "-id", "updated_at", "-updated_at"], component("Sort", "The order of a list; `-` reverses it.")
]
DefaultSort = Annotated[_DefaultSort | UnsetType, EXTENSION, SORT]
StatesFilter = Annotated[
    Annotated[list[T], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
    EXTENSION,
    Meta(description="Returns items in one of these states, separated by commas."),
    enum_filter("state", label="State"),
]
ExternalIdFilter = Annotated[
    Text255 | UnsetType,
    EXTENSION,
    Meta(description="Returns items with this id in another system."),
    Filter("external_id = {}"),
]


UuidsFilter = Annotated[
    Annotated[list[UuidText], Meta(max_length=MAX_IDS)] | UnsetType,
    EXTENSION,
    Meta(description=_IDS_DESCRIPTION),
    Filter("id = any ({}::uuid[])"),
]


class SortableQuery(ListQuery, frozen=True):
    """The parameters of every list of stored resources. Each list declares `sort` with its own orders."""

    updated_since: UpdatedSince = UNSET

    @property
    def order(self) -> SortOrder | None:
        """The order of the items; None for ascending ids."""
        sort: str | UnsetType = getattr(self, "sort", UNSET)
        if isinstance(sort, UnsetType) or sort == "id":
            return None
        return SortOrder(sort.removeprefix("-"), sort.startswith("-"))

    @property
    def is_plain(self) -> bool:
        """Whether the page has no filters and is in order of id.

        The lists that programs read most often have a statement for it, one in place of the two of `fetch_page`. It
        reads whole rows, also those before the offset, so it doesn't serve pages with a large offset.
        """
        is_shallow = self.offset <= MAX_SHALLOW_OFFSET
        return is_shallow and not self.has_filters and self.order is None

    @property
    def has_encrypted_cursor(self) -> bool:
        return isinstance(self.after, str) and self.after.startswith(CURSOR_PREFIX)

    @property
    def has_cursor_of_another_order(self) -> bool:
        """Whether the cursor is an id although the list is sorted, or an encrypted cursor although it isn't."""
        starts_list = self.after is UNSET or self.after == "0"
        return not starts_list and self.has_encrypted_cursor != (self.order is not None)


class ResourceListQuery(UuidListQuery, SortableQuery, frozen=True):
    """A list of resources whose ids are UUIDs."""

    after: _SortedUuidCursor | UnsetType = UNSET
    id: UuidsFilter = UNSET


class NumberedListQuery(SortableQuery, frozen=True):
    """A list of resources whose ids are whole numbers. Its rows follow `start`."""

    after: _SortedNumberCursor | UnsetType = UNSET
    id: Annotated[
        Annotated[list[_NumberText], Meta(max_length=MAX_IDS)] | UnsetType,
        EXTENSION,
        Meta(description=_IDS_DESCRIPTION),
        Filter("id = any ({}::text[]::bigint[])"),
    ] = UNSET

    @property
    def start(self) -> int:
        return 0 if self.after is UNSET else int(str(self.after))


class OpaqueListQuery(ListQuery, frozen=True):
    """A list whose rows have no single id: its cursor is opaque."""

    after: _OpaqueCursor | UnsetType = UNSET
    id: UuidsFilter = UNSET
    updated_since: UpdatedSince = UNSET


class CodeListQuery(ListQuery, frozen=True):
    """A list ordered by a code. Its rows follow `start`."""

    after: _CodeCursor | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "" if self.after in (UNSET, "0") else str(self.after)


class PageRows(list[T]):
    """The rows of a page, whether others follow, and the `after` of the next page."""

    def __init__(self, rows: Iterable[T], *, has_more: bool, next_cursor: str | None) -> None:
        super().__init__(rows)
        self.has_more = has_more
        self.next_cursor = next_cursor


def cut_page(rows: Sequence[T], limit: int, cursor_field: str = "id") -> PageRows[T]:
    """A page of rows, of which one more than the limit shows that there are more."""
    items, has_more = rows[:limit], len(rows) > limit
    return PageRows(items, has_more=has_more, next_cursor=str(getattr(items[-1], cursor_field)) if has_more else None)


def build_page(query: ListQuery, rows: PageRows[T], total: int | None) -> Page[T]:
    """One page: with the total in offset mode, with the next cursor in cursor mode (`total` is None)."""
    next_cursor = rows.next_cursor if total is None else None
    pagination = PaginationMeta(query.limit, query.offset, rows.has_more, total, next_cursor)
    if total is not None and total > MAX_TOTAL and query.is_search:
        pagination.total, pagination.total_is_limited = MAX_TOTAL, True
    return Page(rows, pagination)


async def read_page(
    query: Q,
    list_page: Callable[[*Place, Q], Awaitable[PageRows[T]]],
    count: Callable[[*Place, Q], Awaitable[int]],
    *place: *Place,
) -> Page[T]:
    """One page of a list: its rows and, in offset mode, their total."""
    rows = await list_page(*place, query)
    return build_page(query, rows, None if query.uses_cursor else await count(*place, query))


def in_order(ids: Iterable[object], rows: Iterable[R]) -> list[R]:
    """The rows in the order of their ids. Ids without a row, because it was deleted meanwhile, are left out."""
    by_id = {row.id: row for row in rows}
    return [by_id[each] for each in ids if each in by_id]


_NONCE_BYTES = 12

_decode = msgspec.msgpack.Decoder(Start).decode


def encrypt_cursor(key: bytes, start: Start, associated_data: bytes) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, msgspec.msgpack.encode(start), associated_data)
    return CURSOR_PREFIX + _encode(nonce + sealed)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode_text(text: str) -> bytes:
    """Raises ValueError for a text that `_encode` doesn't return: the last character can have unused bits."""
    content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(content) != text:
        raise ValueError(text)
    return content


def decrypt_cursor(key: bytes, cursor: str, associated_data: bytes) -> Start:
    """The row of an encrypted cursor. Raises ValidationError if it belongs to another list, or was changed."""
    try:
        content = _decode_text(cursor.removeprefix(CURSOR_PREFIX))
        return _decode(AESGCM(key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], associated_data))
    except (InvalidTag, ValueError):
        message = "must be the `next_cursor` of a page of this list with the same sort and filters, or 0"
        raise invalid_parameter("after", message, "inconsistent") from None


# Returns a plan manager's rows with some ids, in any order. Unknown ids are ignored.
GetMany = Callable[[Executor, UUID, Sequence[Any]], Awaitable[Sequence[R]]]


async def fetch_page(
    db: Executor,
    plan_manager_id: UUID,
    query: SortableQuery,
    filtered_list: FilteredList,
    get_many: GetMany[R],
    **extra: object,
) -> PageRows[R]:
    """One page of a list. `extra` are the values of filters that the query doesn't have.

    Rows that are deleted while the page is read are left out. Raises ValidationError for an encrypted cursor of another
    list.
    """
    order = query.order or BY_ID
    values = filtered_list.values_of(query, **extra)
    associated_data = msgspec.msgpack.encode([plan_manager_id, filtered_list.name, order, values], enc_hook=str)
    key = await get_key(db) if query.order and query.uses_cursor else None
    start = None
    if query.uses_cursor and query.after != "0":
        after = str(query.after)
        start = decrypt_cursor(key, after, associated_data) if key else Start(after, after)
    found = await filtered_list.page(db, plan_manager_id, values, query.limit, query.offset, order, start)
    page, next_cursor = found[: query.limit], None
    if len(found) > query.limit:
        last = page[-1]
        next_cursor = encrypt_cursor(key, Start(last.value, last.id), associated_data) if key else last.id
    ids = [filtered_list.parse_id(each.id) for each in page]
    rows: Sequence[R] = await get_many(db, plan_manager_id, ids) if ids else ()
    return PageRows(in_order(ids, rows), has_more=len(found) > query.limit, next_cursor=next_cursor)
