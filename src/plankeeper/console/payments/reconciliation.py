"""The reconciliation of the money that the office holds: the figures of some days, and the lines whose money it is."""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from msgspec import UNSET

from plankeeper.console.components.downloads import UTF8_BOM, csv_row
from plankeeper.console.components.pagination import with_query
from plankeeper.console.components.record_picker import load_record_names
from plankeeper.console.payments.list import PAYMENTS_URL
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.core.dates import last_months
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Download
from plankeeper.resources.claims import store as claim_store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.payments import reconciliation
from plankeeper.resources.payments.reconciliation_schemas import HeldLine, Reconciliation, ReconciliationQuery

pages = Pages()

URL = f"{PAYMENTS_URL}/reconciliation"
MAX_LINES = 200  # on the page; the file has all
FIGURES = (
    ("received", "Received from the agency", "+"),
    ("paid_out", "Paid out", "−"),
    ("returned", "Returned by the bank", "+"),
    ("refunded", "Refunded by payees", "+"),
    ("repaid", "Repaid to the agency", "−"),
    ("fees", "Own fees taken", "−"),
)


class ShownLine(NamedTuple):
    """A line whose money is held. `title` and `url` are those of its invoice, or of the batch of a receipt."""

    line: HeldLine
    title: str
    url: str | None
    provider: str
    participant: str


class Period(NamedTuple):
    """A link to the figures of some days."""

    label: str
    url: str


@pages.get("/payments/reconciliation", role="manager", permission=PERMISSION)
async def get(request: PageRequest) -> HtmlPage:
    """By default, of the current month until today."""
    found, errors = None, dict[str, str]()
    try:
        found = await _reconcile(request)
    except DomainError as error:
        errors = {each.field: each.message for each in error.errors}
    request.errors = errors
    texts = {name: request.query.text(name) for name in ("from", "to")}
    if found:
        texts = {"from": found.first.isoformat(), "to": found.last.isoformat()}
    context: dict[str, Any] = {
        "found": found,
        "form": Form(texts.items()),
        "figures": [(sign, label, getattr(found, name)) for name, label, sign in FIGURES] if found else (),
        "lines": await _shown_lines(request, found.lines[:MAX_LINES]) if found else (),
        "max_lines": MAX_LINES,
        "periods": _periods(request.today),
        "csv_url": with_query(f"{URL}.csv", texts),
        "xlsx_url": with_query(f"{URL}.xlsx", texts),
    }
    return HtmlPage("payments/reconciliation.html", context, 422 if errors else 200)


@pages.get("/payments/reconciliation.csv", role="manager", permission=PERMISSION)
async def download(request: PageRequest) -> Download:
    """The file of the API, with the names of the invoices, providers and participants."""
    found = await _reconcile(request)
    header, rows = reconciliation.file_header(has_names=True), await _file_rows(request, found)
    content = b"".join([UTF8_BOM + csv_row(header), *(csv_row([*map(str, each)]) for each in rows)])
    return _record_export(request, found, reconciliation.to_file(found, reconciliation.CSV, content))


@pages.get("/payments/reconciliation.xlsx", role="manager", permission=PERMISSION)
async def download_xlsx(request: PageRequest) -> Download:
    found = await _reconcile(request)
    rows = await _file_rows(request, found)
    return _record_export(request, found, reconciliation.to_xlsx(found, rows, has_names=True))


async def _file_rows(request: PageRequest, found: Reconciliation) -> list[reconciliation.Row]:
    names = [(each.title, each.provider, each.participant) for each in await _shown_lines(request, found.lines)]
    return [*reconciliation.file_rows(found, names)]


def _record_export(request: PageRequest, found: Reconciliation, file: Download) -> Download:
    ids = dict.fromkeys(each.invoice_id for each in found.lines if each.invoice_id)
    request.record_list("invoice", ids, {"page": "reconciliation"}, "exported")
    return file


async def _reconcile(request: PageRequest) -> Reconciliation:
    """Raises ValidationError for texts that aren't dates, and for days in the wrong order."""
    with FormReader(request.query) as fields:
        first, last = (fields.read_optional_date(name) for name in ("from", "to"))
    query = ReconciliationQuery(first=first or UNSET, last=last or UNSET)
    return await reconciliation.reconcile(request.read_context, query)


async def _shown_lines(request: PageRequest, lines: Sequence[HeldLine]) -> list[ShownLine]:
    place = (request.db, request.plan_manager_id)
    ids = list(dict.fromkeys(each.invoice_id for each in lines if each.invoice_id))
    request.record_list("invoice", ids, {"page": "reconciliation"})
    invoices = {each.id: each for each in await invoice_store.get_many_without_lines(*place, ids)}
    providers = [each.pm_provider_id for each in invoices.values() if each.pm_provider_id]
    participants = [each.participant_id for each in invoices.values() if each.participant_id]
    names: dict[Any, str] = {**await load_record_names(request, participants, providers)}
    batches = {each.claim_batch_id for each in lines if each.claim_batch_id}
    numbers = {each.id: each.number for each in await claim_store.get_many(*place, sorted(batches))} if batches else {}
    shown = list[ShownLine]()
    for each in lines:
        invoice = invoices.get(each.invoice_id) if each.invoice_id else None
        if invoice:
            title = f"Invoice {invoice.invoice_number or 'without number'}"
            people = (names.get(invoice.pm_provider_id, ""), names.get(invoice.participant_id, ""))
            shown.append(ShownLine(each, title, f"/console/invoices/{invoice.id}", *people))
        elif each.claim_batch_id:
            number = numbers.get(each.claim_batch_id) or each.claim_batch_id
            title = f"Receipts of claim batch {number}, beyond its results"
            shown.append(ShownLine(each, title, f"/console/claims/{each.claim_batch_id}", "", ""))
        else:
            shown.append(ShownLine(each, f"Invoice {each.invoice_id}", None, "", ""))
    return shown


def _periods(today: date) -> list[Period]:
    """This month, and the two before it."""
    found = [Period("This month", URL)]
    for each in last_months(today, 3)[1:]:
        days = {"from": each.first.isoformat(), "to": each.last.isoformat()}
        found.append(Period(each.title, with_query(URL, days)))
    return found
