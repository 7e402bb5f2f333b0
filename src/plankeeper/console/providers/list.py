"""The list of providers."""

from collections.abc import Mapping

from stdnum.au import abn

from plankeeper.console.lists.definition import (
    BuiltInView,
    BulkAction,
    Checked,
    Column,
    ListButton,
    ListDefinition,
    Names,
    field_column,
)
from plankeeper.console.lists.filters import TextFilter, choice_filter
from plankeeper.console.providers.form import FIELDS
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.fields import STATE_CODES
from plankeeper.resources.providers import queries, store
from plankeeper.resources.providers.schemas import Provider
from plankeeper.resources.search.filters import search_values


def _abn(provider: Provider, _names: Names) -> Checked | None:
    number = provider.abn
    return Checked(number, None if abn.is_valid(number) else "Invalid ABN") if number else None


async def _search_values(request: PageRequest, text: str) -> Mapping[str, object]:
    return await search_values(request.db, "provider", text)


COLUMNS = (
    Column("entity_name", "Name", "record", sort="name"),
    field_column(FIELDS["abn"], _abn, sort="abn"),
    field_column(FIELDS["city"]),
    field_column(FIELDS["state"], sort="state"),
    field_column(FIELDS["primary_phone_number"]),
    field_column(FIELDS["email"]),
    field_column(FIELDS["ndis_provider_number"], is_default=False),
    field_column(FIELDS["address"], is_default=False),
    field_column(FIELDS["postcode"], is_default=False),
    field_column(FIELDS["active"], is_default=False),
    Column("created_at", "Added", "datetime", is_default=False),
    Column("updated_at", "Updated", "datetime", sort="updated_at", is_default=False),
)
FILE_COLUMNS = (
    Column("id", "ID", "text"),
    *(each for each in COLUMNS if each.name in ("abn", "state", "ndis_provider_number", "active")),
)
FILTERS = (
    TextFilter("q", "Name, ABN or email", _search_values, is_search=True),
    choice_filter(
        queries.LIST,
        "active",
        {"yes": "Active", "no": "Inactive"},
        values_of=lambda choice: {"active": choice == "yes"},
    ),
    choice_filter(queries.LIST, "state", {each: each for each in STATE_CODES}),
)
PROVIDERS = ListDefinition(
    kind="providers",
    title="Providers",
    one="provider",
    many="providers",
    rows=queries.LIST,
    get_rows=store.get_many,
    columns=COLUMNS,
    file_columns=FILE_COLUMNS,
    filters=FILTERS,
    sort="name",
    empty="There are no providers yet.",
    buttons=(
        ListButton("New provider", f"{PREFIX}/providers/new", "manager"),
        ListButton("Import", f"{PREFIX}/imports/new?kind=providers", "manager"),
    ),
    views=(BuiltInView("Active", {"active": "yes"}), BuiltInView("Inactive", {"active": "no"})),
    actions=(
        BulkAction(f"{PREFIX}/providers/selected.csv", "Download CSV", "viewer"),
        BulkAction(f"{PREFIX}/providers/selected.xlsx", "Download XLSX", "viewer"),
    ),
    is_past=lambda row: not row.active,
    past_label="inactive",
)
