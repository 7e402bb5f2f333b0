"""Claim batches: the list, make one, its page, its file, submit, cancel."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace

from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.claims.claim_rows import load_claims
from plankeeper.console.claims.list import CLAIM_BATCHES, CLAIMS_URL, STATES
from plankeeper.console.claims.paging import key_links, parse_key
from plankeeper.console.claims.preview import (
    NEW_URL,
    included_url,
    load_content,
    load_preview,
    show_included,
    show_left_out,
    words_of,
)
from plankeeper.console.components.pagination import PAGE_SIZE
from plankeeper.console.lists.reading import list_position
from plankeeper.console.lists.registration import add_list
from plankeeper.console.shell.cookies import FlashLink
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import ValidationError
from plankeeper.core.files import Download
from plankeeper.database.client import Transaction
from plankeeper.resources.claims import preview, result_store, service, store
from plankeeper.resources.claims.eligibility import REASONS, WARNED_CODES, Candidate, Reason, WarnedCode
from plankeeper.resources.claims.preview import LeftOutCandidate, LinesPage
from plankeeper.resources.claims.schemas import MAX_LINES, ClaimBatch, ClaimBatchCancel, NewClaimBatch
from plankeeper.resources.claims.service import BatchPreview
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH

pages = Pages()

LATEST_EVENTS = 8
_ALL = NewClaimBatch(all=True)
_WARNINGS: Mapping[str, WarnedCode] = {each: each for each in WARNED_CODES}
_REASONS: Mapping[str, Reason] = {each: each for each in REASONS}


def batch_url(batch_id: UUID) -> str:
    return f"{CLAIMS_URL}/{batch_id}"


async def get_or_404(request: PageRequest, batch_id: UUID) -> ClaimBatch:
    return or_404(await store.get(request.executor, request.plan_manager_id, batch_id))


add_list(pages, CLAIM_BATCHES, "claims/list.html", "make_claims")


@pages.get("/claims/new", role="manager", permission="make_claims")
async def new(request: PageRequest) -> HtmlPage:
    """What a batch of all invoices would contain. Nothing is stored."""

    async def find(tx: Transaction) -> BatchPreview:
        return await service.preview(request.with_transaction(tx).write_context, _ALL)

    found = await request.db.write(find)
    context = {
        "batch": found.batch,
        "content": await load_preview(request, found),
        "all_url": included_url(),
        "max_lines": MAX_LINES,
    }
    return HtmlPage("claims/new.html", context)


@pages.get("/claims/new/lines", role="manager", permission="make_claims")
async def list_new_lines(request: PageRequest) -> HtmlPage:
    """The lines of a batch of all invoices in the order of its file, or those with a warning."""
    warning, after = _WARNINGS.get(request.query.text("warning")), parse_key(request.query.text("after"))

    async def list_page(tx: Transaction) -> LinesPage[Candidate]:
        ctx = request.with_transaction(tx).write_context
        return await preview.list_included(ctx, _ALL, warning, after, PAGE_SIZE)

    found = await request.db.write(list_page)
    context = {
        "title": f"Lines with the warning “{words_of(warning).title}”" if warning else "Lines of a new claim batch",
        "words": None,
        "lines": await show_included(request, found.lines),
        "pages": key_links(included_url(), {"warning": warning or ""}, found.next, after),
    }
    return HtmlPage("claims/new_lines.html", context)


@pages.get("/claims/new/left-out", role="manager", permission="make_claims")
async def list_left_out(request: PageRequest) -> HtmlPage | Redirect:
    """The lines that a batch of all invoices leaves out for a reason."""
    found_reason, after = _REASONS.get(request.query.text("reason")), parse_key(request.query.text("after"))
    if found_reason is None:
        return Redirect(NEW_URL)
    reason: Reason = found_reason

    async def list_page(tx: Transaction) -> LinesPage[LeftOutCandidate]:
        ctx = request.with_transaction(tx).write_context
        return await preview.list_left_out(ctx, _ALL, reason, after, PAGE_SIZE)

    found, words = await request.db.write(list_page), words_of(reason)
    context = {
        "title": f"Left out: {words.title[0].lower()}{words.title[1:]}",
        "words": words,
        "lines": await show_left_out(request, found.lines, words.text),
        "pages": key_links(f"{NEW_URL}/left-out", {"reason": reason}, found.next, after),
    }
    return HtmlPage("claims/new_lines.html", context)


@pages.post("/claims/new", role="manager", permission="make_claims", on_error=new)
async def create(request: FormRequest) -> Redirect:
    batch = await service.create(request.write_context, _ALL)
    assert batch.id is not None  # noqa: S101 - only that of a dry run has none
    link = None
    if any(each.reason == "batch_full" for each in batch.left_out or ()):
        link = FlashLink("Make the next batch", f"{CLAIMS_URL}/new")
    lines = "1 line" if batch.lines == 1 else f"{batch.lines:,} lines"
    return Redirect(batch_url(batch.id), f"Claim batch {batch.number} made with {lines}.", link=link)


@pages.get("/claims/{claim_batch_id}", role="manager", permission="make_claims")
async def get(request: PageRequest, claim_batch_id: UUID) -> HtmlPage:
    batch = await get_or_404(request, claim_batch_id)
    place = (request.executor, request.plan_manager_id, claim_batch_id)
    context: dict[str, Any] = {
        "batch": batch,
        "states": STATES,
        "page_url": batch_url(claim_batch_id),
        "claims": await load_claims(request, batch),
        "content": await load_content(request, replace(batch, left_out=UNSET), batch_url(claim_batch_id)),
        "next_count": sum(each.reason == "batch_full" for each in batch.left_out or ()),
        "received": (await result_store.sum_receipts(*place)).amount,
        "events": await latest_events(request, "claim_batch", claim_batch_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "place": await list_position(request, CLAIM_BATCHES, claim_batch_id),
    }
    return HtmlPage("claims/batch.html", context)


@pages.get("/claims/{claim_batch_id}/left-out", role="manager", permission="make_claims")
async def left_out(request: PageRequest, claim_batch_id: UUID) -> HtmlPage:
    """The lines that were left out when the batch was made."""
    batch = await get_or_404(request, claim_batch_id)
    page_url = batch_url(claim_batch_id)
    content = await load_content(request, replace(batch, warned=UNSET), f"{page_url}/left-out")
    return HtmlPage("claims/left_out.html", {"batch": batch, "content": content, "page_url": page_url})


@pages.post("/claims/{claim_batch_id}/file", role="manager", permission="make_claims", on_error=get)
async def download_file(request: FormRequest, claim_batch_id: UUID) -> Download:
    """The file for the agency's portal. The first download is recorded."""
    return await service.download(request.write_context, claim_batch_id)


@pages.post("/claims/{claim_batch_id}/submit", role="manager", permission="make_claims", on_error=get)
async def submit(request: FormRequest, claim_batch_id: UUID) -> Redirect:
    batch = await service.submit(request.write_context, claim_batch_id)
    return Redirect(batch_url(claim_batch_id), f"Claim batch {batch.number} is submitted. Its lines are pending.")


@pages.get("/claims/{claim_batch_id}/cancel", role="manager", permission="make_claims")
async def cancel_form(request: PageRequest, claim_batch_id: UUID) -> HtmlPage:
    batch = await get_or_404(request, claim_batch_id)
    context = {
        "batch": batch,
        "needs_confirmation": service.needs_confirmation(batch),
        "page_url": batch_url(claim_batch_id),
        "max_length": MAX_REASON_LENGTH,
    }
    return HtmlPage("claims/cancel.html", context)


@pages.post("/claims/{claim_batch_id}/cancel", role="manager", permission="make_claims", on_error=cancel_form)
async def cancel(request: FormRequest, claim_batch_id: UUID) -> Redirect:
    """Cancel a draft, or a submitted batch whose file hasn't been uploaded."""
    batch = await service.cancel(request.write_context, claim_batch_id, await _read_cancel(request, claim_batch_id))
    return Redirect(batch_url(claim_batch_id), f"Claim batch {batch.number} is cancelled.")


async def _read_cancel(request: FormRequest, batch_id: UUID) -> ClaimBatchCancel:
    batch = await get_or_404(request, batch_id)
    body, errors = ClaimBatchCancel(), dict[str, str]()
    reason = request.form.multiline_text("reason")
    if reason:
        body.reason = reason
    if len(reason) > MAX_REASON_LENGTH:
        errors["reason"] = f"must have at most {MAX_REASON_LENGTH} characters"
    if service.needs_confirmation(batch):
        if not reason:
            errors["reason"] = "is required"
        if request.form.text("not_uploaded"):
            body.uploaded = False
        else:
            errors["not_uploaded"] = "Confirm that the file hasn’t been uploaded to the agency’s portal"
    if errors:
        raise ValidationError(**errors)
    return body
