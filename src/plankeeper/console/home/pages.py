"""Home: records that need attention today, for everyone or for the account's own participants."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts.schemas import LinkedAccountManager, Member
from plankeeper.access.api_keys import store as api_keys
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.api_keys.service import key_state
from plankeeper.console.components.chart_geometry import BarList, Chart
from plankeeper.console.components.events import resource_name
from plankeeper.console.components.record_picker import account_choices
from plankeeper.console.home.attention import (
    Tile,
    invoice_tiles,
    late_tile,
    on_hold_without_warning,
    participant_tiles,
    waiting_rows,
    warning_tiles,
)
from plankeeper.console.home.charts import plan_ends_chart, received_chart, spend_chart, unpaid_chart
from plankeeper.console.home.payments import payment_tiles
from plankeeper.console.home.periods import ENDING_DAYS, HomeLinks, future_weeks, limits, statistics_periods
from plankeeper.console.home.standard import PATIENCE, StandardCard, period_of, standard_card
from plankeeper.console.shell.routing import PREFIX, HtmlPage, PageRequest, Pages
from plankeeper.events import store as events
from plankeeper.events.event_types import matching_event_types
from plankeeper.events.schemas import Event, EventFilter, list_disclosed
from plankeeper.resources.bank_details import store as bank_details
from plankeeper.resources.claims import service as claims
from plankeeper.resources.claims import store as claim_store
from plankeeper.resources.invoices.statistics_cache import (
    DatedStatistics,
    InvoiceStatistics,
    StatisticsPeriods,
    compute_invoice_statistics,
)
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.participants import queries
from plankeeper.resources.participants import queries as participants
from plankeeper.resources.participants.queries import PeriodCount, PlanEndSummary
from plankeeper.resources.participants.schemas import ParticipantListQuery
from plankeeper.resources.viewer_limits import values_of
from plankeeper.webhooks import endpoint_store
from plankeeper.webhooks.schemas import FailingEndpoint

pages = Pages()

SCOPES = ("me", "all")
RECENT_CHANGES = 6
ONLY_RECORDS = EventFilter(
    hidden_types=matching_event_types(["account.*", "export.*", "invoice_view_session.*", "statement.*"])
)
EXPIRY_WARNING = timedelta(days=14)


class OwnerNotices(NamedTuple):
    """Notices for owners, besides the records."""

    failing_endpoints: Sequence[FailingEndpoint]
    expiring_keys: Sequence[ApiKey]
    without_two_factor: Sequence[Member]


class Numbers(NamedTuple):
    """The numbers of a plan manager or an account manager."""

    invoices: DatedStatistics[InvoiceStatistics]
    plan_ends: PlanEndSummary
    plan_ends_by_week: list[PeriodCount]
    recent: Sequence[Event]
    notices: OwnerNotices | None
    standard: StandardCard | None  # null for a limited viewer, and until its numbers are computed


@pages.get("", role="viewer", is_limited=True)
async def home(request: PageRequest) -> HtmlPage:
    today, account = request.today, request.account
    found, count, settings = await asyncio.gather(
        member_store.list_linked(request.db, request.plan_manager_id, [account.account_id], [account.email]),
        count_participants(request),
        office_settings.get(request.db, request.plan_manager_id),
    )
    standard, limit = settings.service_standard, request.participants_of
    manager = found[0] if found and limit is None else None
    chosen = request.query.text("for")
    scope = "all" if limit else select_scope(chosen or request.home_scope, manager)
    links = HomeLinks(limit or (manager.id if manager and scope == "me" else None))
    numbers = await load_numbers(request, links, today, standard)
    sums = numbers.invoices.sums
    if not count and sums.is_empty:
        return HtmlPage("home/home_empty.html")
    request.record_disclosed(list_disclosed(numbers.recent), {})
    context = {
        "today": today,
        "scope": scope,
        "statistics": numbers.invoices,
        "manager": manager,
        "tiles": [
            *invoice_tiles(sums.open, links),
            late_tile(sums.late, standard, today, links),
            *participant_tiles(numbers.plan_ends, links),
            *await money_tiles(request, settings),
        ],
        "warnings": warning_tiles(sums.warnings, links),
        "without_warning": on_hold_without_warning(sums.open, sums.on_hold_with_warnings, links),
        "waiting": waiting_rows(sums.waiting, await account_choices(request) if sums.waiting else {}),
        **charts(numbers, today, links),
        "plans_url": links.plans(plan_end="60d"),
        "recent": [(each, resource_name(each)) for each in numbers.recent],
        "notices": numbers.notices,
    }
    return HtmlPage("home/home.html", context, home_scope=chosen if chosen in SCOPES else None)


def charts(numbers: Numbers, today: date, links: HomeLinks) -> dict[str, Chart | BarList | StandardCard | None]:
    sums = numbers.invoices.sums
    return {
        "received": received_chart(sums.received, today, links),
        "unpaid": unpaid_chart(sums.open, today, links),
        "plan_ends": plan_ends_chart(numbers.plan_ends_by_week, today, links),
        "spend": spend_chart(sums.providers, today, links),
        "standard": numbers.standard,
    }


async def money_tiles(request: PageRequest, settings: OfficeSettings) -> list[Tile]:
    """What waits in claims, payments and bank details."""
    return [
        *await late_claim_tiles(request, settings),
        *await payment_tiles(request),
        *await bank_detail_tiles(request),
    ]


async def late_claim_tiles(request: PageRequest, settings: OfficeSettings) -> list[Tile]:
    """The claims that have waited too long for a result, if there are some, for those who make claims."""
    if not request.has_permission("make_claims"):
        return []
    before = claims.late_before(settings, request.today, request.settings.time_zone)
    late = await claim_store.summarize_late(request.db, request.plan_manager_id, before)
    tile = Tile("Late results of claims", late.count, f"{PREFIX}/claims/late", late.total, late.oldest, is_overdue=True)
    return [tile] if late.count else []


async def bank_detail_tiles(request: PageRequest) -> list[Tile]:
    """The bank details that wait for approval, if there are some, for those who can open their page."""
    if not request.has_role("manager"):
        return []
    count = await bank_details.count_waiting(request.db, request.plan_manager_id)
    return [Tile("Bank details to approve", count, f"{PREFIX}/bank-details")] if count else []


async def count_participants(request: PageRequest) -> int:
    """The participants that the account can see. The stored count is that of everyone."""
    place, limit = (request.db, request.plan_manager_id), request.participants_of
    if limit:
        return await participants.LIST.count(*place, values_of(limit))
    return await participants.count(*place, ParticipantListQuery())


def select_scope(chosen: str, manager: LinkedAccountManager | None) -> str:
    """`me` or `all`: as chosen now or before, otherwise `me` for an account with an account manager."""
    return chosen if chosen in SCOPES else "me" if manager else "all"


async def load_numbers(request: PageRequest, links: HomeLinks, today: date, standard: ServiceStandard) -> Numbers:
    db, plan_manager_id, manager_id = request.db, request.plan_manager_id, links.account_manager_id
    last, weeks = today + timedelta(days=ENDING_DAYS), limits(future_weeks(today))
    return Numbers(
        *await asyncio.gather(
            load_statistics(request, manager_id, statistics_periods(today, request.settings.time_zone, standard)),
            queries.summarize_plan_ends(db, plan_manager_id, manager_id, today, last),
            queries.count_plan_ends(db, plan_manager_id, manager_id, weeks),
            load_recent_changes(request),
            load_notices(request),
            load_standard(request, standard),
        )
    )


async def load_statistics(
    request: PageRequest, manager_id: UUID | None, periods: StatisticsPeriods
) -> DatedStatistics[InvoiceStatistics]:
    """From the cache; for a limited viewer, computed now, so that no sum contains what was another's before."""
    place = (request.db, request.plan_manager_id, manager_id, periods)
    if request.participants_of:
        return DatedStatistics(await compute_invoice_statistics(*place), datetime.now(UTC))
    return await request.statistics_cache.get(*place)


async def load_standard(request: PageRequest, standard: ServiceStandard) -> StandardCard | None:
    """How everyone keeps the service standard, if it is known soon enough; null for a limited viewer."""
    if request.participants_of:
        return None
    place, period = (request.db, request.plan_manager_id, None), period_of(request, standard)
    found = await request.standard_cache.get_within(PATIENCE, *place, period)
    return standard_card(found.sums, standard, request.today) if found else None


async def load_recent_changes(request: PageRequest) -> Sequence[Event]:
    """The latest changes, without sign-ins, exports, views and single statements; none for a limited viewer."""
    if request.participants_of:
        return []
    return await events.latest(request.db, request.plan_manager_id, None, ONLY_RECORDS, RECENT_CHANGES)


async def load_notices(request: PageRequest) -> OwnerNotices | None:
    """Null for members who aren't owners."""
    if not request.has_role("owner"):
        return None
    endpoints, keys, members = await asyncio.gather(
        endpoint_store.list_failing(request.db, request.plan_manager_id),
        api_keys.list_by_plan_manager(request.db, request.plan_manager_id),
        member_store.list_members(request.db, request.plan_manager_id),
    )
    soon = datetime.now(UTC) + EXPIRY_WARNING
    expiring = [each for each in keys if key_state(each) == "active" and each.expires_at and each.expires_at <= soon]
    return OwnerNotices(endpoints, expiring, [each for each in members if not each.totp])
