"""The tiles "needs attention": counts with amounts, each linked to the list of the counted records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from plankeeper.console.components.labels import humanize
from plankeeper.console.components.pagination import with_query
from plankeeper.console.home.periods import ENDING_DAYS, HomeLinks
from plankeeper.console.shell.routing import PREFIX
from plankeeper.resources.invoices.review_store import AssigneeCount
from plankeeper.resources.invoices.statistics_store import InvoiceSummary, OpenInvoices, WarningSummary
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.participants.queries import PlanEndSummary


@dataclass(frozen=True, slots=True)
class Tile:
    """A count and the list of its records. `total` and `oldest` are null for records without amounts."""

    label: str
    count: int
    url: str
    total: Decimal | None = None
    oldest: datetime | None = None
    is_overdue: bool = False  # shown in red


def invoice_tiles(open_invoices: Sequence[OpenInvoices], links: HomeLinks) -> list[Tile]:
    """The invoices on hold and those that wait for approval."""
    on_hold = _add([each.on_hold for each in open_invoices])
    awaiting = _add([each.awaiting_approval for each in open_invoices])
    return [
        Tile("Invoices on hold", on_hold.count, links.invoices(claim_status="on_hold"), on_hold.total, on_hold.oldest),
        Tile(
            "Waiting for approval",
            awaiting.count,
            links.invoices(claim_status="unpaid", approval_status="pending"),
            awaiting.total,
            awaiting.oldest,
        ),
    ]


def late_tile(late: InvoiceSummary, standard: ServiceStandard, today: date, links: HomeLinks) -> Tile:
    """The invoices that aren't claimed in time."""
    last = standard.first_in_time(today) - timedelta(days=1)
    url = links.invoices(claim_status="unclaimed", received_to=last.isoformat())
    return Tile("Late to claim", late.count, url, late.total, late.oldest, is_overdue=True)


class WaitingRow(NamedTuple):
    """The invoices of the review queue that wait for somebody, and their part of the queue."""

    name: str
    url: str
    number: int
    oldest: datetime


def waiting_rows(waiting: Sequence[AssigneeCount], names: Mapping[str, str]) -> list[WaitingRow]:
    """What waits for whom. `names` are those of accounts by id."""
    return [
        WaitingRow(
            names.get(str(each.assigned_to)) or "Someone who left" if each.assigned_to else "Unassigned",
            with_query(f"{PREFIX}/review", {"assigned": str(each.assigned_to or "nobody")}),
            each.count,
            each.oldest,
        )
        for each in waiting
    ]


def on_hold_without_warning(
    open_invoices: Sequence[OpenInvoices], with_warnings: InvoiceSummary, links: HomeLinks
) -> Tile | None:
    """The other invoices on hold; null if all have a warning."""
    on_hold = _add([each.on_hold for each in open_invoices])
    total = (on_hold.total or Decimal(0)) - (with_warnings.total or Decimal(0))
    url = links.invoices(claim_status="on_hold_without_warning")
    # An invoice can have changed between the two sums.
    return (
        Tile("All checked, waiting for release", count, url, total)
        if (count := on_hold.count - with_warnings.count) > 0
        else None
    )


def _add(summaries: Sequence[InvoiceSummary]) -> InvoiceSummary:
    return InvoiceSummary(
        sum(each.count for each in summaries),
        sum((each.total for each in summaries if each.total is not None), Decimal(0)),
        min((each.oldest for each in summaries if each.oldest), default=None),
    )


def participant_tiles(summary: PlanEndSummary, links: HomeLinks) -> list[Tile]:
    """The ends of plans and, for everyone, the participants without an account manager."""
    tiles = [
        Tile(
            f"Plans ending in {ENDING_DAYS} days",
            summary.ending,
            links.participants(plan_end=f"{ENDING_DAYS}d", sort="plan_end_date"),
        ),
        Tile(
            "Plans expired, still active",
            summary.ended,
            links.participants(plan_end="ended", sort="plan_end_date"),
            is_overdue=True,
        ),
    ]
    if links.account_manager_id is None:
        unassigned = links.participants(account_manager="none")
        tiles.append(Tile("No account manager", summary.without_account_manager, unassigned))
    return tiles


def warning_tiles(warnings: Sequence[WarningSummary], links: HomeLinks) -> list[Tile]:
    """The invoices on hold by warning. An invoice with several warnings counts for each of them."""
    return [
        Tile(
            WARNINGS[each.code].title if each.code in WARNINGS else humanize(each.code),
            each.count,
            links.invoices(warning=each.code, claim_status="on_hold"),
            each.total or Decimal(0),
            each.oldest,
        )
        for each in warnings
    ]
