"""Pages of lists: their query parameters, their envelope, and how they are cut from a store's rows."""

from typing import Annotated, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.schemas import UUID_PATTERN, Query

T = TypeVar("T")

_NON_FILTERS = {"limit", "offset", "after", "view"}


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


class Page(Struct, Generic[T]):
    """One page of a list."""

    data: Annotated[list[T], Meta(description="The items of the page.")]
    pagination: Annotated[PaginationMeta, Meta(description="The position of the page in the list.")]


Limit = Annotated[int, Meta(ge=1, le=1000, description="The maximum number of items on a page.")]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1, description="The number of skipped items; not allowed with `after`.")]
_AFTER_DESCRIPTION = (
    "Returns the items after this id, in ascending order. `0` starts at the beginning. Not allowed with `offset`."
)

_UuidCursor = Annotated[
    str,
    Meta(
        pattern=f"^(0|{UUID_PATTERN})$",
        extra={"message": "must be 0 or a UUID with hyphens"},
        description=_AFTER_DESCRIPTION,
    ),
]
_NumberCursor = Annotated[
    str,
    Meta(pattern="^[0-9]{1,18}$", extra={"message": "must be 0 or a whole number"}, description=_AFTER_DESCRIPTION),
]
_CodeCursor = Annotated[
    str,
    Meta(
        pattern="^(0|[a-z][a-z_]{0,99})$",
        extra={"message": "must be 0 or an error code"},
        description=_AFTER_DESCRIPTION,
    ),
]


class ListQuery(Query):
    """The parameters of every list. Subclasses narrow `after` to their kind of id."""

    limit: Limit = 20
    offset: Offset = 0
    after: str | UnsetType = UNSET

    @property
    def uses_cursor(self) -> bool:
        return self.after is not UNSET

    @property
    def has_filters(self) -> bool:
        """Whether any filter is set. A list without filters has its own statement: PostgreSQL plans a statement
        once for all values, so an optional filter that is not set would still shape the plan.
        """
        return any(getattr(self, name) is not UNSET for name in self.__struct_fields__ if name not in _NON_FILTERS)


class UuidListQuery(ListQuery):
    """A list ordered by UUID. Its rows follow `start`: the nil UUID, which no row has, at the beginning."""

    after: _UuidCursor | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "00000000-0000-0000-0000-000000000000" if self.after in (UNSET, "0") else str(self.after)


class NumberListQuery(ListQuery):
    """A list ordered by a whole number. Its rows follow `start`."""

    after: _NumberCursor | UnsetType = UNSET

    @property
    def start(self) -> int:
        return 0 if self.after is UNSET else int(str(self.after))


class CodeListQuery(ListQuery):
    """A list ordered by a code. Its rows follow `start`."""

    after: _CodeCursor | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "" if self.after in (UNSET, "0") else str(self.after)


def build_page(query: ListQuery, rows: list[T], total: int | None, cursor_field: str = "id") -> Page[T]:
    """One page: with the total in offset mode, with the next cursor in cursor mode (`total` is None).

    `rows` may hold one row more than the limit, which shows that there are more. The value of `cursor_field` in
    the last item is the next `after`.
    """
    has_more = len(rows) > query.limit
    items = rows[: query.limit]
    next_cursor = str(getattr(items[-1], cursor_field)) if has_more and total is None else None
    return Page(items, PaginationMeta(query.limit, query.offset, has_more, total, next_cursor))
