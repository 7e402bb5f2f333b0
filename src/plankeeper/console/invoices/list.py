"""The list of invoices."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from plankeeper.console.components.labels import humanize
from plankeeper.console.lists.columns import ACCOUNT_MANAGER, PARTICIPANT_NUMBER, participant_of
from plankeeper.console.lists.dates import PAST_PRESETS
from plankeeper.console.lists.definition import (
    BuiltInView,
    BulkAction,
    Column,
    GroupAmount,
    Grouping,
    Link,
    ListButton,
    ListDefinition,
    Names,
)
from plankeeper.console.lists.filters import (
    FilterContext,
    LinkFilter,
    LinkValue,
    amount_range_filter,
    choice_filter,
    date_range_filter,
    record_filter,
    text_filter,
    time_range_filter,
)
from plankeeper.console.lists.groups import (
    account_manager_labels,
    fixed_labels,
    month_params,
    one_param,
    provider_labels,
)
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.dates import Month
from plankeeper.core.fields import STATE_CODES
from plankeeper.core.validation import allowed_values
from plankeeper.resources.invoices import queries, store
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import ApprovalStatus, ClaimStatus, Invoice
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.providers import store as provider_store
from plankeeper.resources.providers.schemas import Provider
from plankeeper.resources.search.filters import invoice_number_pattern
from plankeeper.resources.service_standard.months import Part
from plankeeper.resources.service_standard.service import StandardPeriod, late_values

# Several statuses together, which the SQL knows by the same names.
CLAIM_STATUS_GROUPS = {
    "unpaid": "All unpaid",
    "in_progress": "All in progress",
    "unclaimed": "Not claimed yet",
    "on_hold_without_warning": "On hold without an open warning",
}
CLAIM_STATUSES = CLAIM_STATUS_GROUPS | {each: humanize(each) for each in allowed_values(ClaimStatus)}
APPROVAL_STATUSES = {each: humanize(each) for each in allowed_values(ApprovalStatus)}
WITHOUT = {
    "provider": LinkValue({"without_provider": True}, "Without: provider"),
    "account_manager": LinkValue({"without_account_manager": True}, "Without: account manager"),
    "state": LinkValue({"without_state": True}, "Without: state"),
}
HELD_STATUSES = ("on_hold", "flagged")
WARNING_CHOICES = {"any": "Any warning", **{code: each.title for code, each in WARNINGS.items()}}


def active_warnings(invoice: Invoice) -> list[str]:
    """The codes of the warnings that are not ignored."""
    state = invoice.state_management
    return [code for code in state.errors if code not in state.ignored_errors]


def warning_titles(invoice: Invoice) -> list[str]:
    """The titles of the warnings that are not ignored."""
    return [WARNINGS[code].title if code in WARNINGS else humanize(code) for code in active_warnings(invoice)]


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The names of the invoices' participants and providers by id, where they exist."""
    participants = {each.participant_id for each in rows if each.participant_id}
    providers = {each.pm_provider_id for each in rows if each.pm_provider_id}
    if not participants and not providers:
        return {}
    found = await get_display_names(request.db, request.plan_manager_id, list(participants), list(providers))
    return {each.id: each.name for each in found}


async def load_file_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The same, and the participants and providers themselves, by kind and id."""
    place = (request.db, request.plan_manager_id)
    people = await participant_store.get_many(*place, [each.participant_id for each in rows if each.participant_id])
    providers = await provider_store.get_many(*place, [each.pm_provider_id for each in rows if each.pm_provider_id])
    records = {("participant", each.id): each for each in people} | {("provider", each.id): each for each in providers}
    return {**await load_names(request, rows), **records}


def _record_link(kind: str, record_id: UUID | None, names: Names) -> Link | None:
    if record_id is None or record_id not in names:
        return None
    return Link(names[record_id] or "No name", f"{PREFIX}/{kind}/{record_id}")


def _provider(invoice: Invoice, names: Names) -> Link | None:
    return _record_link("providers", invoice.pm_provider_id, names)


def _participant(invoice: Invoice, names: Names) -> Link | None:
    return _record_link("participants", invoice.participant_id, names)


def _state(invoice: Invoice, names: Names) -> str | None:
    participant = participant_of(invoice, names)
    return participant.state if participant else None


def _abn(invoice: Invoice, names: Names) -> str | None:
    provider: Provider | None = names.get(("provider", invoice.pm_provider_id))
    return provider.abn if provider else None


def _why_held(invoice: Invoice, _names: Names) -> str | None:
    """The titles of the warnings; null for an invoice that isn't on hold."""
    if invoice.claim_status not in HELD_STATUSES:
        return None
    return " ".join(WARNINGS[code].description for code in active_warnings(invoice) if code in WARNINGS)


def _warnings(invoice: Invoice, _names: Names) -> list[str]:
    return warning_titles(invoice)


async def _number_values(request: PageRequest, text: str) -> Mapping[str, object]:
    return {"number_pattern": await invoice_number_pattern(request.db, text)}


def _claim_status_values(choice: str) -> Mapping[str, object]:
    return {choice: True} if choice in CLAIM_STATUS_GROUPS else {"claim_status": choice}


LATE_LABELS: Mapping[str, tuple[Part, str]] = {
    "claimed_late": ("claimed", "Claimed late by the service standard, received in"),
    "paid_late": ("paid", "Paid late by the service standard, with results of"),
}


async def _read_late(context: FilterContext, text: str) -> LinkValue | None:
    """The late invoices of a month, such as `claimed_late.2026-11`."""
    name, _, month_text = text.partition(".")
    if name not in LATE_LABELS:
        return None
    try:
        month = Month.parse(month_text)
    except ValueError:
        return None
    request, (part, label) = context.request, LATE_LABELS[name]
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    period = StandardPeriod(context.today, context.zone, settings.service_standard)
    return LinkValue(late_values(part, month, period), f"{label} {month.title}")


async def _read_without(_context: FilterContext, text: str) -> LinkValue | None:
    return WITHOUT.get(text)


def _warning_values(choice: str) -> Mapping[str, object]:
    return {"has_warnings": True} if choice == "any" else {"warning": choice}


COLUMNS = (
    Column("invoice_number", "Number", "record", sort="invoice_number"),
    Column("received_at", "Received", "datetime", sort="received_at"),
    Column("invoice_date", "Invoice date", "date", sort="invoice_date"),
    Column("provider", "Provider", "link", _provider, sort="provider", is_grouped=True),
    Column("participant", "Participant", "link", _participant, sort="participant", is_grouped=True),
    Column("total", "Total", "money", sort="total"),
    Column("claim_status", "Claim", "claim_status", sort="claim_status"),
    Column("approval_status", "Approval", "approval_status", sort="approval_status"),
    Column("warnings", "Warnings", "tags", _warnings),
    Column("subtotal", "Subtotal", "money", is_default=False),
    Column("tax", "Tax", "money", is_default=False),
    Column("wont_claim", "Won’t claim", "yes_no", is_default=False),
    Column("is_reimbursement", "Reimbursement", "yes_no", is_default=False),
    Column("is_deleted", "Deleted", "yes_no", is_default=False),
)
FILE_COLUMNS = (
    Column("id", "ID", "text"),
    Column("participant_id", "Participant ID", "text"),
    PARTICIPANT_NUMBER,
    Column("state", "State", "text", _state),
    ACCOUNT_MANAGER,
    Column("pm_provider_id", "Provider ID", "text"),
    Column("abn", "ABN", "text", _abn),
    *(each for each in COLUMNS if each.name in ("claim_status", "approval_status", "warnings")),
    Column("why_held", "Why held", "text", _why_held),
)
FILTERS = (
    text_filter(queries.LIST, "invoice_number", _number_values, is_search=True),
    record_filter(queries.LIST, "provider_id", "provider"),
    record_filter(
        queries.LIST,
        "participant_id",
        "participant",
        {"none": ("No participant", {"without_participant": True})},
    ),
    date_range_filter(queries.LIST, ("invoice_date_from", "invoice_date_to"), ("date", "from", "to"), PAST_PRESETS),
    time_range_filter(
        queries.LIST, ("received_from", "received_before"), ("received", "received_from", "received_to"), PAST_PRESETS
    ),
    amount_range_filter(queries.LIST, ("total_min", "total_max"), ("min", "max")),
    choice_filter(queries.LIST, "claim_status", CLAIM_STATUSES, values_of=_claim_status_values),
    choice_filter(queries.LIST, "approval_status", APPROVAL_STATUSES),
    choice_filter(queries.LIST, "warning", WARNING_CHOICES, values_of=_warning_values),
    record_filter(queries.LIST, "account_manager", "account_manager"),
    LinkFilter("standard", "Service standard", _read_late),
    choice_filter(queries.LIST, "participant_state", {each: each for each in STATE_CODES}, name="state"),
    LinkFilter("without", "Without", _read_without),
    choice_filter(
        queries.LIST,
        "is_deleted",
        {"no": "Not deleted", "yes": "Deleted"},
        name="deleted",
        values_of=lambda choice: {"is_deleted": choice == "yes"},
    ),
)
GROUPINGS = (
    Grouping(
        "month",
        "Month",
        month_params(("invoice_date_from", "invoice_date_to"), ("from", "to")),
        fixed_labels({}),
        "No invoice date",
        is_month=True,
    ),
    Grouping("state", "State", one_param("state", {"without": "state"}), fixed_labels({}), "No state"),
    Grouping("claim_status", "Claim status", one_param("claim_status"), fixed_labels(CLAIM_STATUSES), "No status"),
    Grouping(
        "account_manager",
        "Account manager",
        one_param("account_manager", {"without": "account_manager"}),
        account_manager_labels,
        "No account manager",
    ),
    Grouping("provider", "Provider", one_param("provider", {"without": "provider"}), provider_labels, "No provider"),
)
INVOICES = ListDefinition(
    kind="invoices",
    title="Invoices",
    one="invoice",
    many="invoices",
    rows=queries.LIST,
    get_rows=store.get_many_without_lines,
    columns=COLUMNS,
    file_columns=FILE_COLUMNS,
    load_file_names=load_file_names,
    filters=FILTERS,
    sort="-received_at",  # a mistaken date, such as one in 2062, would otherwise stay first
    empty="There are no invoices yet. Enter one, upload documents, or import them.",
    buttons=(
        ListButton("New invoice", f"{PREFIX}/invoices/new", "manager"),
        ListButton("Upload", f"{PREFIX}/invoices/upload", "manager"),
        ListButton("Import", f"{PREFIX}/imports/new?kind=invoices", "manager"),
    ),
    views=(
        BuiltInView("Needs attention", {"warning": "any"}),
        BuiltInView("On hold", {"claim_status": "on_hold"}),
        BuiltInView("Waiting for approval", {"approval_status": "pending"}),
    ),
    actions=(
        BulkAction(f"{PREFIX}/invoices/selected/release", "Release"),
        BulkAction(f"{PREFIX}/invoices/selected/hold", "Hold"),
        BulkAction(f"{PREFIX}/invoices/selected/assign", "Assign"),
        BulkAction(f"{PREFIX}/invoices/selected/cancel", "Cancel invoices"),
        BulkAction(f"{PREFIX}/invoices/selected/wont-claim", "Exclude from claims"),
        BulkAction(f"{PREFIX}/invoices/selected/reopen", "Reopen"),
        BulkAction(f"{PREFIX}/invoices/selected/ignore-warning", "Ignore a warning"),
        BulkAction(f"{PREFIX}/invoices/selected.csv", "Download CSV", "viewer"),
        BulkAction(f"{PREFIX}/invoices/selected.xlsx", "Download XLSX", "viewer"),
    ),
    groupings=GROUPINGS,
    group_amounts=(GroupAmount("total", "Total"),),
    load_names=load_names,
    is_past=lambda row: row.is_deleted,
    past_label="deleted",
    accessed_kind="invoice",
)
