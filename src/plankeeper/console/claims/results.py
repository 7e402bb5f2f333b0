"""The results file of a claim batch: upload, preview, apply. And the money from the agency that has arrived."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.console.claims.line_groups import MAX_SHOWN, ShownLine, describe_line, line_url, load_names
from plankeeper.console.claims.pages import batch_url, get_or_404
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.forms import Form, UploadLimits
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.formatting import format_money
from plankeeper.database.client import Transaction
from plankeeper.imports import file_store as files
from plankeeper.imports.schemas import ImportFile
from plankeeper.resources.claims import receipts, result_service, result_store, store
from plankeeper.resources.claims.result_rules import ClaimState, FileResults, Result
from plankeeper.resources.claims.result_schemas import ClaimResults, NewReceipt, ReceiptListQuery, UnmatchedRow
from plankeeper.resources.claims.result_store import ReceiptSum
from plankeeper.resources.claims.results_file import MAX_BYTES, ResultsFile, parse_results
from plankeeper.resources.invoices import store as invoice_store

pages = Pages()

UPLOAD_LIMITS = UploadLimits(1, MAX_BYTES, "The file is larger than 5 MiB. Results files of one batch are smaller.")
MAX_FILES = 4  # uploaded files of one account
MAX_RECEIPTS = 100  # that the page lists
MAX_TEXT = 255
RECORDED = (
    "Somebody has just recorded money for this batch. It now has: {amount}. Record yours only if it is another payment."
)
_RESOURCE = "claim-results"


class ResultRow(NamedTuple):
    """A row of the file that is a result, with its line."""

    result: Result
    line: ShownLine | None
    url: str


class ResultGroup(NamedTuple):
    """The results of one kind, some of which are shown."""

    name: str
    title: str
    total: int
    amount: Decimal
    rows: Sequence[ResultRow]

    @property
    def more(self) -> int:
        """The number of results that aren't shown."""
        return self.total - len(self.rows)


class UnrecordedRow(NamedTuple):
    """A row that changes nothing, and the line of the claim with its reference, if there is one."""

    row: int
    message: str
    line: ShownLine | None
    url: str


class FilePreview(NamedTuple):
    """What a file would change. `new_count` is the number of results that aren't recorded yet.

    `paid` is the amount of all results.
    """

    results: ClaimResults
    groups: Sequence[ResultGroup]
    unmatched: Sequence[UnrecordedRow]
    new_count: int
    paid: Decimal

    @property
    def more_unmatched(self) -> int:
        return len(self.results.unmatched) - len(self.unmatched)


@pages.get("/claims/{claim_batch_id}/results", role="manager", permission="make_claims")
async def new(request: PageRequest, claim_batch_id: UUID) -> HtmlPage:
    batch = await get_or_404(request, claim_batch_id)
    context = {"batch": batch, "page_url": batch_url(claim_batch_id)}
    return HtmlPage("claims/results_new.html", context)


@pages.post(
    "/claims/{claim_batch_id}/results", role="manager", permission="make_claims", on_error=new, upload=UPLOAD_LIMITS
)
async def upload(request: FormRequest, claim_batch_id: UUID) -> Redirect:
    """Keep the file as long as one of an import that isn't confirmed. Nothing is recorded."""
    await get_or_404(request, claim_batch_id)
    if len(request.form.uploads) != 1:
        raise ValidationError(file="must be the CSV file of results from the agency’s portal")
    [uploaded] = request.form.uploads
    await _parse(uploaded.content)
    account_id, now = request.account.account_id, datetime.now(UTC)
    file = ImportFile(uuid7(), _RESOURCE, uploaded.name, uploaded.content, account_id, now)
    await files.insert(request.tx, request.plan_manager_id, file)
    await files.delete_all_but_newest(request.tx, request.plan_manager_id, account_id, MAX_FILES)
    return Redirect(f"{batch_url(claim_batch_id)}/results/{file.id}")


async def _parse(content: bytes) -> ResultsFile:
    """The rows of a file. Raises ValidationError, which names the field of the file."""
    try:
        return await asyncio.to_thread(parse_results, content)
    except DomainError as error:
        raise ValidationError(file=error.detail) from error


@pages.get("/claims/{claim_batch_id}/results/{results_file_id}", role="manager", permission="make_claims")
async def get(request: PageRequest, claim_batch_id: UUID, results_file_id: UUID) -> HtmlPage:
    """What the file changes or, once it is applied, what it has changed."""
    batch = await get_or_404(request, claim_batch_id)
    file = await _read_file(request, results_file_id)

    async def preview(tx: Transaction) -> tuple[ClaimResults, FileResults]:
        ctx = request.with_transaction(tx).write_context
        found = await result_service.list_results(ctx, claim_batch_id, file)
        return await result_service.apply_results(ctx, claim_batch_id, file, dry_run=True), found

    results, found = await request.db.write(preview)
    context = {
        "batch": batch,
        "page_url": batch_url(claim_batch_id),
        "file_id": results_file_id,
        "preview": await _describe(request, file, results, found),
    }
    return HtmlPage("claims/results.html", context)


@pages.post(
    "/claims/{claim_batch_id}/results/{results_file_id}", role="manager", permission="make_claims", on_error=get
)
async def apply(request: FormRequest, claim_batch_id: UUID, results_file_id: UUID) -> Redirect:
    file = await _read_file(request, results_file_id)
    results = await result_service.apply_results(request.write_context, claim_batch_id, file, dry_run=False)
    parts = [f"{results.paid:,} paid", f"{results.partially_paid:,} paid in part", f"{results.rejected:,} rejected"]
    path = f"{batch_url(claim_batch_id)}/results/{results_file_id}"
    return Redirect(path, f"Results recorded: {', '.join(parts)}.")


async def _read_file(request: PageRequest, file_id: UUID) -> ResultsFile:
    hours, account_id = request.settings.import_file_retention, request.account.account_id
    content = await files.get_content(request.executor, request.plan_manager_id, file_id, account_id, hours)
    return await _parse(or_404(content))


async def _describe(request: PageRequest, file: ResultsFile, results: ClaimResults, found: FileResults) -> FilePreview:
    unmatched = {each.row for each in results.unmatched}
    matched = [each for each in (*found.new, *found.applied) if each.row not in unmatched]
    kinds = {
        "rejected": "Rejected",
        "partially_paid": "Paid in part",
        "paid": "Paid in full",
    }
    groups = list[ResultGroup]()
    for name, title in kinds.items():
        some = [each for each in matched if each.outcome == name]
        if some:
            amount = sum((each.claim.amount if name == "rejected" else each.paid for each in some), Decimal(0))
            groups.append(ResultGroup(name, title, len(some), amount, await _load_rows(request, some[:MAX_SHOWN])))
    new_count = sum(each.row not in unmatched for each in found.new)
    # A late result of a cancelled claim is noted, too: its invoice is put on hold.
    new_count += sum(not each.claim.has_late_result for each in found.late)
    shown = await _load_unrecorded(request, file, results.unmatched[: 5 * MAX_SHOWN])
    return FilePreview(results, groups, shown, new_count, sum((each.paid for each in matched), Decimal(0)))


async def _load_unrecorded(
    request: PageRequest, file: ResultsFile, rows: Sequence[UnmatchedRow]
) -> list[UnrecordedRow]:
    place = (request.executor, request.plan_manager_id)
    references = {each.row: each.reference for each in file.rows}
    wanted = sorted({references.get(each.row, "") for each in rows} - {""})
    claims = {each.reference: each for each in await result_store.list_by_references(*place, wanted)}
    ids = list(dict.fromkeys(each.invoice_id for each in claims.values()))
    lines = await _load_lines(request, ids)
    shown = list[UnrecordedRow]()
    for each in rows:
        claim = claims.get(references.get(each.row, ""))
        line, url = lines(claim) if claim else (None, "")
        shown.append(UnrecordedRow(each.row, each.message, line, url))
    return shown


async def _load_rows(request: PageRequest, results: Sequence[Result]) -> list[ResultRow]:
    lines = await _load_lines(request, list(dict.fromkeys(each.claim.invoice_id for each in results)))
    return [ResultRow(each, *lines(each.claim)) for each in results]


async def _load_lines(
    request: PageRequest, ids: Sequence[UUID]
) -> Callable[[ClaimState], tuple[ShownLine | None, str]]:
    """What returns the line of a claim of these invoices, null if it no longer exists, and the page of the line."""
    request.record_list("invoice", ids, {})
    found = await invoice_store.get_many(request.executor, request.plan_manager_id, ids)
    invoices, names = {each.id: each for each in found}, await load_names(request, found)

    def describe(claim: ClaimState) -> tuple[ShownLine | None, str]:
        invoice = invoices.get(claim.invoice_id)
        line = describe_line(invoice, claim.line_id, names) if invoice else None
        return line, line_url(claim.invoice_id, claim.line_id)

    return describe


@pages.get("/claims/{claim_batch_id}/receipts", role="manager", permission="make_claims")
async def receipts_page(request: PageRequest, claim_batch_id: UUID) -> HtmlPage:
    batch = await get_or_404(request, claim_batch_id)
    place = (request.executor, request.plan_manager_id, claim_batch_id)
    received = await result_store.sum_receipts(*place)
    context = {
        "batch": batch,
        "page_url": batch_url(claim_batch_id),
        "form": request.form or Form([("date", request.today.isoformat())]),
        "receipts": await result_store.list_receipts_page(*place, ReceiptListQuery(limit=MAX_RECEIPTS)),
        "received": received.amount,
        "seen": seen_text(received),
        "max_text": MAX_TEXT,
    }
    return HtmlPage("claims/receipts.html", context)


def seen_text(received: ReceiptSum) -> str:
    """What a person has seen before recording money: the number of receipts and their sum."""
    return f"{received.count} {received.amount:.2f}"


@pages.post("/claims/{claim_batch_id}/receipts", role="manager", permission="make_claims", on_error=receipts_page)
async def record_receipt(request: FormRequest, claim_batch_id: UUID) -> Redirect:
    """Record money, unless other money has been recorded since the person opened the page, as by a double click."""
    with FormReader(request.form) as fields:
        new = NewReceipt(
            date=fields.read_date("date"),
            amount=fields.read_amount("amount"),
            reference=fields.read_text("reference", MAX_TEXT) or None,
        )
    place = (request.tx, request.plan_manager_id, claim_batch_id)
    or_404(await store.select_for_update(*place))
    received = await result_store.sum_receipts(*place)
    if request.form.text("seen") != seen_text(received):
        raise DomainError("invalid_transition", RECORDED.format(amount=format_money(received.amount)))
    await receipts.record(request.write_context, claim_batch_id, new)
    return Redirect(f"{batch_url(claim_batch_id)}/receipts", f"Recorded: {format_money(new.amount)} received.")
