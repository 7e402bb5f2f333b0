"""The declaration of a list: its rows, columns, filters, built-in views and bulk actions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.lists.columns import Column, Names
from plankeeper.console.lists.filters import ListFilter
from plankeeper.console.lists.sources import RowSource
from plankeeper.console.routing import PREFIX, PageRequest, RequiredRole
from plankeeper.core.context import AccessedKind, ListDisclosed
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import SortOrder


class BuiltInView(NamedTuple):
    """A view that every plan manager has: its name, its filters, and its order unless it's that of the list."""

    name: str
    params: Mapping[str, str]
    sort: str = ""


class ListButton(NamedTuple):
    """A link beside the heading, for accounts with a role. The first one is also offered where no row matches."""

    label: str
    path: str
    role: str


class BulkAction(NamedTuple):
    """An action on several rows at once, for accounts with a role: its page, which gets their ids, and its label."""

    path: str
    label: str
    role: str = "manager"


def _never(_row: Any) -> bool:
    return False


async def no_rows(_db: Executor, _plan_manager_id: UUID, _ids: Sequence[Any]) -> Sequence[Any]:
    """For lists whose rows aren't read by their ids."""
    return []


async def no_names(_request: PageRequest, _rows: Sequence[Any]) -> Names:
    """For lists whose rows don't refer to other records."""
    return {}


@dataclass(frozen=True, slots=True)
class ListDefinition:
    """A list of the console.

    `rows` are stored records with their filters and sorts, or a source that is read newest first. `get_rows` returns
    the records with some ids; `load_names` the names of the records that rows refer to. `sort` is the
    default order, `empty` the text of a list without rows and filters. `is_past` selects rows that are shown in grey,
    with `past_label`. `accessed_kind` is the kind of record that rows disclose; if they disclose others,
    `list_disclosed` lists their ids. `exact_count` returns the number of rows for values of the filters, if it is
    known without counting. `role` is required for the page, `download_role` for the file.
    """

    kind: str
    title: str
    one: str
    many: str
    rows: FilteredList | RowSource
    columns: Sequence[Column]
    filters: Sequence[ListFilter]
    sort: str
    empty: str
    get_rows: Callable[[Executor, UUID, Sequence[Any]], Awaitable[Sequence[Any]]] = no_rows
    buttons: Sequence[ListButton] = ()
    views: Sequence[BuiltInView] = ()
    actions: Sequence[BulkAction] = ()
    load_names: Callable[[PageRequest, Sequence[Any]], Awaitable[Names]] = no_names
    is_past: Callable[[Any], bool] = _never
    past_label: str = ""
    accessed_kind: AccessedKind | None = None
    list_disclosed: ListDisclosed | None = None
    exact_count: Callable[[Executor, UUID, Mapping[str, object]], Awaitable[int | None]] | None = None

    is_table: bool = True  # otherwise a template shows the rows, and the columns are those of the file
    page_path: str = ""  # if the list isn't at `/console/` and its kind
    owner_id: UUID | None = None  # of the record whose list it is: such a list has no saved views
    section: str = ""  # of the menu, if it isn't the kind
    role: RequiredRole = "viewer"
    download_role: RequiredRole = "viewer"
    file_columns: Sequence[Column] = ()  # that each file has, whichever columns the page shows
    load_file_names: Callable[[PageRequest, Sequence[Any]], Awaitable[Names]] | None = None  # if files need more

    @property
    def form_value(self) -> str:
        """The value of the list in forms: its kind, with the id of the record whose list it is."""
        return f"{self.kind}.{self.owner_id}" if self.owner_id else self.kind

    @property
    def path(self) -> str:
        return self.page_path or f"{PREFIX}/{self.kind}"

    @property
    def table(self) -> FilteredList:
        """The stored records of the list; raises TypeError for a list with a source."""
        if not isinstance(self.rows, FilteredList):
            raise TypeError(f"the list {self.kind} has no stored records")
        return self.rows

    def record_path(self, row_id: object) -> str:
        return f"{self.path}/{row_id}"

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters of all filters."""
        return tuple(name for each in self.filters for name in each.params)

    @property
    def sorts(self) -> set[str]:
        """The sorts of the columns, and that of the list."""
        return {each.sort for each in self.columns if each.sort} | {parse_sort(self.sort).name}

    def disclosed(self, rows: Sequence[Any]) -> Mapping[AccessedKind, Sequence[UUID]]:
        """The ids of the records that rows disclose, by kind."""
        if self.list_disclosed:
            return self.list_disclosed(rows)
        return {self.accessed_kind: [each.id for each in rows]} if self.accessed_kind else {}

    def count_text(self, count: int) -> str:
        """`43 invoices`."""
        return f"{count:,} {self.one if count == 1 else self.many}"


def parse_sort(text: str) -> SortOrder:
    """The order of `-total` or `total`."""
    return SortOrder(text.removeprefix("-"), text.startswith("-"))
