"""The report on the service standard: by month, and by account manager in a month."""

from collections.abc import AsyncIterator
from typing import NamedTuple, TypeVar
from uuid import UUID

from plankeeper.console.components.downloads import FileFormat, csv_chunks, csv_row, xlsx_chunks
from plankeeper.console.components.pagination import with_query
from plankeeper.console.components.record_picker import manager_choices
from plankeeper.console.home.standard import (
    REPORT_URL,
    MonthNumbers,
    describe_month,
    late_url,
    month_numbers,
    period_of,
    standard_chart,
)
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.core.context import or_404
from plankeeper.core.dates import Month
from plankeeper.core.files import Download
from plankeeper.core.xlsx import XLSX, Cell
from plankeeper.resources.invoices.statistics_cache import DatedStatistics
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.service_standard.months import Numbers, Part
from plankeeper.resources.service_standard.service import StandardNumbers

T = TypeVar("T")
pages = Pages()

FILE_COLUMNS = (
    "Month",
    "Account manager",
    "Account manager ID",
    *(f"{part}: {what}" for part in ("Claimed", "Paid") for what in ("in time", "late", "not due", "percent")),
)


class ReportRow(NamedTuple):
    """A month or an account manager, with the lists of what is late."""

    name: str
    claimed: Numbers
    paid: Numbers
    claimed_url: str | None
    paid_url: str | None
    url: str | None = None


class Report(NamedTuple):
    """The numbers with the office's standard and the names of account managers by id."""

    numbers: DatedStatistics[StandardNumbers]
    standard: ServiceStandard
    names: dict[str, str]

    def managers_of(self, month: Month) -> list[tuple[UUID | None, str, MonthNumbers]]:
        """The account managers that a month has numbers of, by name; those without one last."""
        sums = self.numbers.sums
        parts: list[dict[UUID | None, Numbers]] = [
            {each.account_manager_id: each.numbers for each in rows if each.month == month.first}
            for rows in (sums.claimed, sums.paid)
        ]
        found = [
            (id_, self._name(id_), MonthNumbers(month, *(each.get(id_, Numbers()) for each in parts)))
            for id_ in {*parts[0], *parts[1]}
        ]
        return sorted(found, key=lambda each: (each[0] is None, each[1].casefold(), str(each[0])))

    def _name(self, id_: UUID | None) -> str:
        return self.names.get(str(id_), "Someone who left") if id_ else "No account manager"


async def _load(request: PageRequest) -> Report:
    settings = await office_settings.get(request.db, request.plan_manager_id)
    standard = settings.service_standard
    period = period_of(request, standard)
    numbers = await request.standard_cache.get(request.db, request.plan_manager_id, None, period)
    return Report(numbers, standard, await manager_choices(request))


@pages.get("/reports/service-standard", role="viewer")
async def service_standard(request: PageRequest) -> HtmlPage:
    report = await _load(request)
    months = month_numbers(report.numbers.sums, request.today)
    text = request.query.text("month")
    chosen = or_404(next((each for each in months if each.month.text == text), None)) if text else months[-1]
    context = {
        "statistics": report.numbers,
        "standard": report.standard,
        "sentence": describe_month(chosen, report.standard),
        "chart": standard_chart(months, describe_month(months[-1], report.standard), request.today),
        "months": [
            _row(each.name, each, None, month_url(each.month))
            for each in reversed(months)
            if any(each.claimed) or any(each.paid) or each == chosen
        ],
        "chosen": chosen,
        "managers": [_row(name, each, id_) for id_, name, each in report.managers_of(chosen.month)],
        "files_url": REPORT_URL if request.role_details.can_download else None,
    }
    return HtmlPage("reports/service_standard.html", context)


def month_url(month: Month) -> str:
    return with_query(REPORT_URL, {"month": month.text})


def _row(name: str, month: MonthNumbers, account_manager_id: UUID | None, url: str | None = None) -> ReportRow:
    """Invoices of participants without an account manager have no list of their own."""
    has_list = url is not None or account_manager_id is not None
    parts: tuple[Part, Part] = ("claimed", "paid")
    claimed_url, paid_url = (
        late_url(part, month.month, account_manager_id) if has_list and month.of(part).late else None for part in parts
    )
    return ReportRow(name, month.claimed, month.paid, claimed_url, paid_url, url)


@pages.get("/reports/service-standard.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    """A row for each month and account manager."""
    return await _download(request, "csv")


@pages.get("/reports/service-standard.xlsx", role="viewer")
async def download_xlsx(request: PageRequest) -> Download:
    """The same rows. A month is its first day."""
    return await _download(request, "xlsx")


async def _download(request: PageRequest, file_format: FileFormat) -> Download:
    report = await _load(request)
    rows = [
        (each.month, _cells(id_, name, each))
        for each in month_numbers(report.numbers.sums, request.today)
        for id_, name, each in report.managers_of(each.month)
    ]
    name = f"service-standard-{request.today}.{file_format}"
    if file_format == "csv":
        lines = [csv_row([month.text, *("" if cell is None else str(cell) for cell in cells)]) for month, cells in rows]
        chunks = csv_chunks(request, "service_standard", "", FILE_COLUMNS, _once(lines))
        return Download(name, "text/csv; charset=utf-8", chunks)
    values = [(month.first, *cells) for month, cells in rows]
    return Download(name, XLSX, xlsx_chunks(request, "service_standard", "", FILE_COLUMNS, _once(values)))


async def _once(rows: list[T]) -> AsyncIterator[list[T]]:
    yield rows


def _cells(id_: UUID | None, name: str, numbers: MonthNumbers) -> list[Cell]:
    cells: list[Cell] = [name, str(id_ or "")]
    for each in (numbers.claimed, numbers.paid):
        cells += [each.in_time, each.late, each.waiting, each.percent]
    return cells
