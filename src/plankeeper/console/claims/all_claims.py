"""The list of all claims, which month ends group: what was claimed, paid, is short, waits and is late."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from plankeeper.console.claims.claim_rows import STATES
from plankeeper.console.claims.line_groups import line_url
from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.lists.dates import PAST_PRESETS
from plankeeper.console.lists.definition import (
    BuiltInView,
    Column,
    GroupAmount,
    Grouping,
    Link,
    ListDefinition,
    Names,
)
from plankeeper.console.lists.filters import (
    FlagFilter,
    TextFilter,
    choice_filter,
    record_filter,
    time_range_filter,
)
from plankeeper.console.lists.groups import fixed_labels, month_params, one_param, provider_labels
from plankeeper.console.lists.registration import add_list
from plankeeper.console.shell.routing import PREFIX, PageRequest, Pages
from plankeeper.resources.claims import queries, service
from plankeeper.resources.claims.queries import ListedClaim
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.support_items import store as support_items

pages = Pages()

_LATE_BEFORE = "late_before"  # in the names of rows


async def load_late_before(request: PageRequest) -> datetime:
    """The moment since which a claim without a result can wait and not be late."""
    settings = await office_settings.get(request.db, request.plan_manager_id)
    return service.late_before(settings, request.today, request.settings.time_zone)


async def load_group_values(request: PageRequest) -> Mapping[str, object]:
    return {"zone": request.settings.time_zone.key, "late_before": await load_late_before(request)}


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The names of participants and providers by id, and since when a claim is late."""
    participants = {each.participant_id for each in rows if each.participant_id}
    providers = {each.provider_id for each in rows if each.provider_id}
    found = await get_display_names(request.db, request.plan_manager_id, [*participants], [*providers])
    return {each.id: each.name for each in found} | {_LATE_BEFORE: await load_late_before(request)}


async def category_labels(request: PageRequest, _keys: Sequence[str]) -> Mapping[str, str]:
    """The names of support categories, by number, as the catalogue has them."""
    return {
        str(each.number): f"{each.number} {each.name}" for each in await support_items.list_category_names(request.db)
    }


async def _category_values(_request: PageRequest, text: str) -> Mapping[str, object]:
    return {"category": text.partition(" ")[0].lstrip("0")}


def _reference(claim: ListedClaim, _names: Names) -> Link:
    return Link(claim.reference, line_url(claim.invoice_id, claim.line_id))


def _invoice(claim: ListedClaim, _names: Names) -> Link:
    return Link(claim.invoice_number or "No number", f"{PREFIX}/invoices/{claim.invoice_id}")


def _participant(claim: ListedClaim, names: Names) -> Link | None:
    if claim.participant_id not in names:
        return None
    return Link(names[claim.participant_id] or "No name", f"{PREFIX}/participants/{claim.participant_id}")


def _provider(claim: ListedClaim, names: Names) -> Link | None:
    if claim.provider_id not in names:
        return None
    return Link(names[claim.provider_id] or "No name", f"{PREFIX}/providers/{claim.provider_id}")


def _state(claim: ListedClaim, names: Names) -> str:
    is_late = claim.state == "submitted" and claim.since < names[_LATE_BEFORE]
    return f"{STATES[claim.state]}, late" if is_late else STATES[claim.state]


def _batch(claim: ListedClaim, _names: Names) -> Link | None:
    return Link(claim.batch_number or "No number", f"{CLAIMS_URL}/{claim.batch_id}") if claim.batch_id else None


ALL_CLAIMS = ListDefinition(
    kind="all-claims",
    title="All claims",
    one="claim",
    many="claims",
    rows=queries.LIST,
    get_rows=queries.get_many,
    columns=(
        Column("reference", "Reference", "link", _reference),
        Column("invoice", "Invoice", "link", _invoice),
        Column("participant", "Participant", "link", _participant),
        Column("provider", "Provider", "link", _provider),
        Column("amount", "Claimed", "money"),
        Column("paid", "Paid", "money"),
        Column("state", "State", "text", _state),
        Column("batch", "Batch", "link", _batch),
        Column("made_at", "Made", "datetime"),
        Column("service_item_number", "Support item", "text", is_default=False),
        Column("result_date", "Result", "date", is_default=False),
        Column("reason", "Reason", "text", is_default=False),
    ),
    filters=(
        choice_filter(queries.LIST, "state", STATES),
        record_filter(queries.LIST, "provider_id", "provider"),
        TextFilter("category", queries.LIST.filters["category"].label, _category_values, placeholder="Number"),
        time_range_filter(queries.LIST, ("made_from", "made_before"), ("made", "made_from", "made_to"), PAST_PRESETS),
        FlagFilter("late", "Late", "late_before", load_late_before),
    ),
    sort="-id",
    empty="There are no claims yet.",
    views=(
        BuiltInView("Pending", {"state": "submitted"}),
        BuiltInView("Late", {"late": "1"}),
        BuiltInView("Rejected", {"state": "rejected"}),
    ),
    groupings=(
        Grouping(
            "month",
            "Month",
            month_params(("made_from", "made_before"), ("made_from", "made_to")),
            fixed_labels({}),
            "No date",
            is_month=True,
        ),
        Grouping("state", "State", one_param("state"), fixed_labels(STATES), "No state"),
        Grouping("provider", "Provider", one_param("provider"), provider_labels, "No provider"),
        Grouping("category", "Support category", one_param("category"), category_labels, "No category"),
    ),
    group_amounts=(
        GroupAmount("claimed", "Claimed"),
        GroupAmount("paid", "Paid", "good"),
        GroupAmount("waiting", "Waiting", "accent"),
        GroupAmount("short", "Short or rejected", "bad"),
        GroupAmount("late", "Late"),
    ),
    load_group_values=load_group_values,
    load_names=load_names,
    is_past=lambda row: row.state == "cancelled",
    past_label="cancelled",
    list_disclosed=lambda rows: {"invoice": [*dict.fromkeys(each.invoice_id for each in rows)]},
    page_path=f"{CLAIMS_URL}/all",
    section="claims",
    role="manager",
    download_role="manager",
)


add_list(pages, ALL_CLAIMS, permission="make_claims")
