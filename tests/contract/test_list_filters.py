"""Filters of stored lists are declared once: the API and the console use that declaration."""

import re
from pathlib import Path
from typing import Any

from contract.sources import ROOT, filtered_lists
from plankeeper.console.lists.filters import ListFilter
from plankeeper.console.views.pages import LISTS
from plankeeper.core.lists import ListQuery
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import declared_filters

# Parameters of a list's query that aren't conditions on its rows.
WITHOUT_CONDITION = {"limit", "offset", "after", "sort", "include", "on", "q"}
STORED_LISTS = {each.kind: each for each in LISTS.values() if isinstance(each.rows, FilteredList)}
SEARCHES = {"q"}  # of the console: the search composes its values


def queries() -> list[type[ListQuery]]:
    """The queries whose lists are composed."""
    return [each.query for each in filtered_lists().values()]


def test_every_parameter_of_a_list_declares_its_filter() -> None:
    for query in queries():
        fields: tuple[str, ...] = query.__struct_fields__
        assert set(fields) - WITHOUT_CONDITION == set(declared_filters(query)), query


def test_the_console_shows_every_labelled_filter_with_its_label() -> None:
    office = {"claims", "all-claims", "payments", "all-payments"}
    assert set(STORED_LISTS) == {"invoices", "participants", "plans", "providers"} | office
    for definition in STORED_LISTS.values():
        declared = {each.label for each in definition.table.filters.values() if each.label}
        shown: list[ListFilter] = [each for each in definition.filters if each.name not in SEARCHES]
        assert {each.label for each in shown} == declared
        assert len({each.label for each in definition.filters}) == len(definition.filters)


def test_built_in_views_name_filters_of_their_list() -> None:
    for definition in LISTS.values():
        for view in definition.views:
            assert set(view.params) <= set(definition.params), (definition.kind, view.name)


def test_every_other_filter_is_used() -> None:
    """Those that aren't in the query: a module of the resource or the console names them."""
    sources: list[Any] = [path.read_text() for path in Path(ROOT).rglob("*.py") if "static" not in path.parts]
    for filtered_list in filtered_lists().values():
        for name in set(filtered_list.filters) - set(declared_filters(filtered_list.query)):
            naming = (source for source in sources if name in source)
            named = sum(len(re.findall(rf'["\']{name}["\']|\b{name}=', source)) for source in naming)
            assert named > 1, (filtered_list.name, name)
