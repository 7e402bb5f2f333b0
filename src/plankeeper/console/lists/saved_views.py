"""Saved views and settings of a list, as its page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plankeeper.access.saved_views import service, store
from plankeeper.access.saved_views.store import ListSettings, SavedView
from plankeeper.console.lists.definition import Column, ListDefinition, select_columns
from plankeeper.console.lists.query import ListPageQuery, parse_list_query
from plankeeper.console.shell.forms import parse_form
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.errors import ValidationError

VIEWS_URL = f"{PREFIX}/views"
DENSITIES = {"compact": "Compact", "comfortable": "Comfortable"}


class ViewLink(NamedTuple):
    """A saved view with its list, and whether the page shows it."""

    name: str
    url: str
    is_shared: bool
    is_current: bool


class ColumnChoice(NamedTuple):
    """A column that can be shown, and whether it is."""

    name: str
    label: str
    is_shown: bool


@dataclass(slots=True)
class ListExtras:
    """The saved views, columns and density of a person for a list."""

    views: Sequence[ViewLink]
    settings: ListSettings
    query: str  # of the page, which can be saved as a view
    can_share: bool

    @property
    def current_view(self) -> ViewLink | None:
        return next((each for each in self.views if each.is_current), None)


async def load_extras(request: PageRequest, query: ListPageQuery) -> ListExtras:
    """The saved views and the settings of the account for a list."""
    place = (request.db, request.plan_manager_id, request.account.account_id)
    text, saved = query.first_page().text, await store.get_list(*place, query.definition.kind)
    views = [each for each in saved.views if can_see(request, each)]
    links = [(each.name, view_url(query.definition, each), each.is_shared, each.query == text) for each in views]
    return ListExtras(
        [ViewLink(*each) for each in links],
        saved,
        text,
        service.can_share(request.role),
    )


def can_see(request: PageRequest, view: SavedView) -> bool:
    """A limited viewer sees only own views: the name of a shared one can be that of a participant."""
    return request.participants_of is None or view.owner_id == request.account.account_id


def view_url(definition: ListDefinition, view: SavedView) -> str:
    return f"{definition.path}?{view.query}" if view.query else definition.path


def column_choices(definition: ListDefinition, settings: ListSettings) -> list[ColumnChoice]:
    """The columns that can be left out: all but the first one, and none of a list that isn't a table."""
    if not definition.is_table:
        return []
    shown = {each.name for each in select_columns(definition.columns, settings.columns)}
    return [ColumnChoice(each.name, each.label, each.name in shown) for each in definition.columns[1:]]


def chosen_columns(columns: Sequence[Column], names: Sequence[str]) -> list[str] | None:
    """The stored value for a choice of columns: null for the default ones, so that new defaults appear."""
    known = [each.name for each in columns[1:] if each.name in names]
    return None if known == [each.name for each in columns[1:] if each.is_default] else known


def parse_query_text(definition: ListDefinition, text: str, *, keep_page: bool = False) -> ListPageQuery:
    """The list with the query of one of its pages, by default from its beginning; without filters for another text."""
    try:
        query = parse_list_query(definition, parse_form(text.encode()))
    except ValidationError:
        query = parse_list_query(definition, parse_form(b""))
    return query if keep_page else query.first_page()
