"""The list of participants."""

from collections.abc import Mapping
from uuid import UUID

from plankeeper.console.components.labels import sortable_name
from plankeeper.console.lists.dates import PLAN_END_PRESETS
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
from plankeeper.console.lists.filters import TextFilter, choice_filter, date_range_filter, record_filter
from plankeeper.console.participants.form import FIELDS, STATUSES
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.fields import STATE_CODES
from plankeeper.database.client import Executor
from plankeeper.database.stored_counts import sum_counts
from plankeeper.resources.participants import queries, store
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.search.filters import search_values


def _name(participant: Participant, _names: Names) -> str | None:
    return sortable_name(participant)


def _number(participant: Participant, _names: Names) -> Checked | None:
    number = participant.participant_number
    return Checked(number, None if is_ndis_number(number) else "Not 9 digits") if number else None


async def _search_values(request: PageRequest, text: str) -> Mapping[str, object]:
    return await search_values(request.db, "participant", text)


async def exact_count(db: Executor, plan_manager_id: UUID, values: Mapping[str, object]) -> int | None:
    """The number of participants, if no other filter than status and state is set."""
    if not queries.COUNTED_FIELDS.issuperset(values):
        return None
    statuses, states = ([str(values[name])] if name in values else None for name in ("status", "state"))
    return await sum_counts(db, plan_manager_id, "participants", statuses, states)


COLUMNS = (
    Column("name", "Name", "record", _name, sort="name"),
    field_column(FIELDS["participant_number"], _number, sort="participant_number"),
    Column("status", "Status", "participant_status", sort="status"),
    Column("plan_end_date", "Plan ends", "plan_end", sort="plan_end_date"),
    Column(
        "account_manager",
        "Account manager",
        "text",
        sort="account_manager",
        is_grouped=True,
        path="account_manager.name",
    ),
    field_column(FIELDS["phone_number"]),
    field_column(FIELDS["email"]),
    field_column(FIELDS["preferred_name"], is_default=False),
    field_column(FIELDS["date_of_birth"], is_default=False),
    Column("plan_start_date", "Plan starts", "date", is_default=False),
    field_column(FIELDS["city"], is_default=False),
    field_column(FIELDS["state"], sort="state", is_default=False),
    field_column(FIELDS["postcode"], is_default=False),
    field_column(FIELDS["approval_required"], is_default=False),
    Column("updated_at", "Updated", "datetime", sort="updated_at", is_default=False),
)
# A file has the values by which a list can be imported again, and by which spreadsheets group its rows.
FILE_COLUMNS = (
    Column("id", "ID", "text"),
    field_column(FIELDS["first_name"]),
    field_column(FIELDS["last_name"]),
    *(each for each in COLUMNS if each.name in ("participant_number", "status", "state", "account_manager")),
)
FILTERS = (
    TextFilter("q", "Name, number, phone or email", _search_values, is_search=True),
    choice_filter(queries.LIST, "status", {each: each for each in STATUSES}),
    record_filter(
        queries.LIST,
        "account_manager",
        "account_manager",
        {"none": ("No account manager", {"without_account_manager": True})},
    ),
    date_range_filter(
        queries.LIST,
        ("plan_end_date_from", "plan_end_date_to"),
        ("plan_end", "plan_end_from", "plan_end_to"),
        PLAN_END_PRESETS,
        starts_today=True,
    ),
    choice_filter(queries.LIST, "state", {each: each for each in STATE_CODES}),
)
SET_ACCOUNT_MANAGER = f"{PREFIX}/participants/selected/account-manager"
PARTICIPANTS = ListDefinition(
    kind="participants",
    title="Participants",
    one="participant",
    many="participants",
    rows=queries.LIST,
    get_rows=store.get_many,
    columns=COLUMNS,
    file_columns=FILE_COLUMNS,
    filters=FILTERS,
    sort="name",
    empty="There are no participants yet.",
    buttons=(
        ListButton("New participant", f"{PREFIX}/participants/new", "manager"),
        ListButton("Import", f"{PREFIX}/imports/new?kind=participants", "manager"),
    ),
    views=(
        BuiltInView("Active", {"status": "Active"}),
        BuiltInView("Plan ending soon", {"status": "Active", "plan_end": "30d"}, "plan_end_date"),
        BuiltInView("Plan expired, still active", {"status": "Active", "plan_end": "ended"}, "plan_end_date"),
        BuiltInView("No account manager", {"status": "Active", "account_manager": "none"}),
    ),
    actions=(
        BulkAction(SET_ACCOUNT_MANAGER, "Set account manager"),
        BulkAction(f"{PREFIX}/participants/selected.csv", "Download CSV", "viewer"),
        BulkAction(f"{PREFIX}/participants/selected.xlsx", "Download XLSX", "viewer"),
    ),
    accessed_kind="participant",
    exact_count=exact_count,
)
