"""The page of the review queue, and the decisions about its invoice. Each leads to the next invoice.

Whoever opens an invoice leases it for some minutes, so that no two people look at the same one.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, time
from typing import Any
from uuid import UUID

from starlette.responses import Response

from plankeeper.console.components.record_picker import account_choices
from plankeeper.console.components.support_items import list_names
from plankeeper.console.invoices.actions import ACTIONS, LINE_ACTIONS, read_text
from plankeeper.console.invoices.approval import record_decision
from plankeeper.console.invoices.approval_card import approval_card
from plankeeper.console.invoices.documents import is_hidden
from plankeeper.console.invoices.evidence import Evidence, find_evidence
from plankeeper.console.invoices.form import CLAIM_TYPES
from plankeeper.console.invoices.invoice_page import allowed_actions, allowed_line_actions
from plankeeper.console.invoices.list import active_warnings, load_names, warning_titles
from plankeeper.console.invoices.pages import get_warning, read_reason
from plankeeper.console.invoices.status import describe_standard, describe_status, is_late
from plankeeper.console.invoices.upload import DOCUMENT_LIMITS
from plankeeper.console.notes.section import review_notes
from plankeeper.console.review.budgets import find_line_budgets
from plankeeper.console.review.filters import QueuePart, queue_tabs, read_part, warning_tabs
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Upload, single_chunk
from plankeeper.core.ids import parse_uuid
from plankeeper.events import activity_store
from plankeeper.resources.documents import rendering
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.invoices import approval, check_store, documents, review_store, service, store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import WARNINGS, level_of
from plankeeper.resources.office_settings import store as office_settings

pages = Pages()

DECISIONS = ("hold", "release", "cancel", "wont-claim", "request-approval", "assign")
# The events that count as work on an invoice.
DECIDED_TYPES = (
    *(f"invoice.{each}" for each in ("held", "released", "cancelled", "wont_claim", "assigned", "updated")),
    "invoice.approved",
    "invoice.rejected",
    "invoice.line_changed",
    "invoice.warning_ignored",
)
STAYING = ("assign",)  # with these, the invoice stays if it is still in this part of the queue


@pages.get("/review", role="viewer")
async def open_next(request: PageRequest) -> HtmlPage | Redirect:
    """The next invoice after that of the parameter `after`. Viewers, who decide nothing, lease nothing."""
    part, now = _read_part(request), datetime.now(UTC)
    place = (request.db, request.plan_manager_id, request.account.account_id, part.wanted)
    after = parse_uuid(request.query.text("after"))
    if request.has_role("manager"):
        found = await review_store.take_next(*place, after, now)
    else:
        candidates = await review_store.list_candidates(*place, after, now, 1)
        found = next(iter(candidates or await review_store.list_candidates(*place, None, now, 1)), None)
    if found:
        return Redirect(part.url(found))
    midnight = datetime.combine(request.today, time(), request.settings.time_zone)
    done = await activity_store.count_records_of_actor(
        request.db, request.plan_manager_id, str(request.account.account_id), "invoice", DECIDED_TYPES, midnight
    )
    return HtmlPage(
        "review/empty.html", await _queue_context(request, part, await account_choices(request)) | {"done": done}
    )


@pages.get("/review/{invoice_id}", role="viewer", access_log="invoice")
async def get(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    """An invoice of the queue, for decisions unless a colleague looks at it."""
    part, now = _read_part(request), datetime.now(UTC)
    place = (request.db, request.plan_manager_id)
    invoice = or_404(await store.get(*place, invoice_id))
    accounts, holder = await account_choices(request), None
    can_decide = request.has_role("manager")
    if can_decide and not await review_store.renew(*place, request.account.account_id, invoice_id, now):
        can_decide, holder = False, await review_store.get_holder(*place, invoice_id, now)
    settings = await office_settings.get(*place)
    evidence = await find_evidence(request, invoice, request.today)
    following = await review_store.list_candidates(*place, request.account.account_id, part.wanted, invoice_id, now, 1)
    zone, standard = request.settings.time_zone, settings.service_standard
    context = await _queue_context(request, part, accounts) | await _invoice_context(request, invoice, evidence)
    preceding = await review_store.list_preceding(*place, part.wanted, invoice_id, 1)
    card = await approval_card(request, invoice)
    context |= {
        "approval": card,
        "can_decide": can_decide,
        "holder": accounts.get(str(holder)) or "A colleague" if not can_decide else None,
        "is_viewer": not request.has_role("manager"),
        "accounts": accounts,
        "own_account": str(request.account.account_id),
        "status": describe_status(invoice, warning_titles(invoice), request.today, zone, card.decided_by),
        "standard": describe_standard(invoice, standard, request.today, zone),
        "is_late": is_late(invoice, standard, request.today, zone),
        "allowed": allowed_actions(invoice),
        "allowed_line_actions": allowed_line_actions(invoice),
        "next_id": following[0] if following else None,
        "previous_id": preceding[0] if preceding else None,
        "max_length": MAX_REASON_LENGTH,
        "min_length": service.MIN_REASON_LENGTH,
        "form": request.form,
        "failed_code": "",
        "document_is_hidden": invoice.document is not None and await is_hidden(request, invoice_id),
    }
    return HtmlPage("review/review.html", context)


def _read_part(request: PageRequest) -> QueuePart:
    return read_part(request.query, request.account.account_id)


async def _queue_context(request: PageRequest, part: QueuePart, names: Mapping[str, str]) -> dict[str, Any]:
    """The tabs of the queue with their counts."""
    place = (request.db, request.plan_manager_id)
    counts = await review_store.count(*place, request.account.account_id)
    warnings = await review_store.count_warnings(*place)
    levels = (await office_settings.get(*place)).warning_levels
    codes = [each.code for each in warnings if level_of(each.code, levels) != "inform"]
    return {
        "part": part,
        "tabs": queue_tabs(part, counts, names),
        "warning_tabs": warning_tabs(part, warnings, codes),
    }


async def _invoice_context(request: PageRequest, invoice: Invoice, evidence: Evidence) -> dict[str, Any]:
    place, state = (request.db, request.plan_manager_id), invoice.state_management
    reasons = await check_store.list_ignored(*place, invoice.id) if state.ignored_errors else []
    lines = [each for each in unset_to_none(invoice.line_items) or [] if not each.is_deleted]
    cards = [evidence.card(code) for code in evidence.codes(invoice)]
    related = [*evidence.earlier, *evidence.same_document, *evidence.same_line]
    request.record_list("invoice", [each.id for each in related], {})
    return {
        "invoice": invoice,
        "names": await load_names(request, [invoice, *related]),
        "evidence": evidence,
        "warnings": sorted(cards, key=lambda each: each.level == "inform"),
        "related": {
            "possible_duplicate": evidence.earlier,
            "same_document": evidence.same_document,
            "line_duplicate": evidence.same_line,
        },
        "ignored": [evidence.card(code, reasons) for code in state.ignored_errors],
        "lines": lines,
        "line_numbers": {each.id: number for number, each in enumerate(unset_to_none(invoice.line_items) or [], 1)},
        "budgets": await find_line_budgets(request, invoice),
        "claim_types": CLAIM_TYPES,
        "item_names": await list_names(request, lines, invoice.invoice_date),
        "notes": await review_notes(request, invoice.id, invoice.participant_id, invoice.pm_provider_id),
    }


async def get_after_error(request: PageRequest, invoice_id: UUID, code: str) -> HtmlPage:
    """The page of the invoice with the error of an action on a warning."""
    request.record_access("viewed", "invoice", invoice_id)
    page = await get(request, invoice_id)
    return HtmlPage(page.template, {**page.context, "failed_code": code})


async def get_after_line_error(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:  # noqa: ARG001 - of the path
    """The page of the invoice with the error of an action on a line."""
    request.record_access("viewed", "invoice", invoice_id)
    return await get(request, invoice_id)


async def _act(request: FormRequest, invoice_id: UUID, name: str) -> str:
    """Carry out a decision. Returns a sentence with a place for the name of the invoice."""
    if name == "request-approval":
        await approval.request_approval(request.write_context, invoice_id)
        return "Asked for approval of {}."
    action = ACTIONS[name]
    await action.run(request.write_context, invoice_id, read_text(request, action.field))
    return f"{action.done.capitalize()}: {{}}."


def decide(name: str) -> Callable[[FormRequest, UUID], Awaitable[Redirect]]:
    """The handler of a decision. The next invoice follows, with a link that undoes the decision."""

    async def handle(request: FormRequest, invoice_id: UUID) -> Redirect:
        part = _read_part(request)
        if refused := await _refuse(request, part, invoice_id):
            return refused
        sentence = await _act(request, invoice_id, name)
        invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
        message = sentence.format(invoice.invoice_number or "the invoice without number")
        undo = None if name == "request-approval" else request.undo_path
        is_mine = request.form.text("assigned_to") in ("", str(request.account.account_id))
        if name in STAYING and is_mine:
            return await _lead_on(request, part, invoice, message, request.undo_path)
        return Redirect(part.url(after=str(invoice_id)), message, undo=undo)

    return handle


async def _lead_on(request: FormRequest, part: QueuePart, invoice: Invoice, message: str, undo: str | None) -> Redirect:
    """The same invoice as long as it belongs to the part of the queue, else the next one."""
    is_left = await review_store.matches(request.tx, request.plan_manager_id, part.wanted, invoice.id)
    url = part.url(invoice.id) if is_left else part.url(after=str(invoice.id))
    return Redirect(url, message, undo=undo)


async def _refuse(request: FormRequest, part: QueuePart, invoice_id: UUID) -> Redirect | None:
    """The page of the invoice, unchanged, if a colleague looks at it by now."""
    holder = await review_store.get_holder(request.db, request.plan_manager_id, invoice_id, datetime.now(UTC))
    if holder in (None, request.account.account_id):
        return None
    return Redirect(part.url(invoice_id), "Nothing was changed: a colleague looks at this invoice by now.")


@pages.post("/review/{invoice_id}/warnings/{code}/ignore", role="manager", on_error=get_after_error)
async def ignore(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    """Ignore a warning with a reason. The invoice stays while it has others."""
    part, title = _read_part(request), get_warning(code).title
    reason = read_reason(request.form)
    if refused := await _refuse(request, part, invoice_id):
        return refused
    is_changed = await service.ignore(
        request.write_context, invoice_id, code, reason, overrides_blocks=request.has_permission("override_blocks")
    )
    return await _after_warning(request, part, invoice_id, f"“{title}” ignored" if is_changed else "")


@pages.post("/review/{invoice_id}/warnings/{code}/warn", role="manager")
async def restore(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    """Restore a warning that was ignored. The invoice stays."""
    part = _read_part(request)
    if refused := await _refuse(request, part, invoice_id):
        return refused
    is_changed = await service.restore(request.write_context, invoice_id, code)
    title = WARNINGS[code].title if code in WARNINGS else code
    return await _after_warning(request, part, invoice_id, f"“{title}” restored" if is_changed else "")


async def _after_warning(request: FormRequest, part: QueuePart, invoice_id: UUID, done: str) -> Redirect:
    if not done:
        return Redirect(part.url(invoice_id), "Nothing was changed: the invoice no longer has this warning.")
    invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
    name = invoice.invoice_number or "the invoice without number"
    if active_warnings(invoice):
        return Redirect(part.url(invoice_id), f"{done}.", undo=request.undo_path)
    return await _lead_on(request, part, invoice, f"{done} on {name}.", request.undo_path)


@pages.post("/review/{invoice_id}/lines/{line_id}/retry", role="manager", on_error=get_after_line_error)
async def retry_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    """Put a rejected line up for the next claim."""
    return await _act_on_line(request, invoice_id, line_id, "retry")


@pages.post("/review/{invoice_id}/lines/{line_id}/cancel", role="manager", on_error=get_after_line_error)
async def cancel_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    """Cancel a line, with a reason. The lines beside it stay as they are."""
    return await _act_on_line(request, invoice_id, line_id, "cancel")


async def _act_on_line(request: FormRequest, invoice_id: UUID, line_id: UUID, name: str) -> Redirect:
    """Carry out a decision about a line. The invoice stays while it waits for something else."""
    part, action = _read_part(request), LINE_ACTIONS[name]
    if refused := await _refuse(request, part, invoice_id):
        return refused
    await action.run(request, invoice_id, line_id)
    invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
    message = f"Line {action.done}: {invoice.invoice_number or 'the invoice without number'}."
    return await _lead_on(request, part, invoice, message, request.undo_path if action.can_be_undone else None)


@pages.post("/review/{invoice_id}/approval/record", role="manager", on_error=get)
async def record_approval(request: FormRequest, invoice_id: UUID) -> Redirect:
    """Record what a person who may approve has said."""
    part = _read_part(request)
    if refused := await _refuse(request, part, invoice_id):
        return refused
    decision = await record_decision(request, invoice_id)
    invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
    done = "Approved" if decision == "approve" else "Rejected"
    message = f"{done}: {invoice.invoice_number or 'the invoice without number'}."
    return Redirect(part.url(after=str(invoice_id)), message)


@pages.post("/review/{invoice_id}/document", role="manager", on_error=get, upload=DOCUMENT_LIMITS)
async def add_document(request: PageRequest, invoice_id: UUID) -> Redirect:
    """Store the document of the invoice, which stays."""
    if len(request.form.uploads) != 1:
        raise ValidationError(files="must be a PDF, PNG or JPEG file")
    if await is_hidden(request, invoice_id):
        raise NotFound  # it would replace a document that the person can't see
    [file] = request.form.uploads
    stored = await documents.receive(request.read_context, invoice_id, Upload(file.name, single_chunk(file.content)))
    await request.db.write(lambda tx: documents.attach(request.with_transaction(tx).write_context, invoice_id, stored))
    return Redirect(_read_part(request).url(invoice_id), "Document added.")


@pages.post("/review/{invoice_id}/lease", role="manager", extends_session=False)
async def renew(request: FormRequest, invoice_id: UUID) -> Response:
    """Renew the lease while the page is open: 409 if a colleague has it."""
    now, account_id = datetime.now(UTC), request.account.account_id
    await _require_invoice(request, invoice_id)
    is_mine = await review_store.renew(request.db, request.plan_manager_id, account_id, invoice_id, now)
    return Response(status_code=204 if is_mine else 409)


@pages.post("/review/{invoice_id}/prepare", role="manager", extends_session=False)
async def prepare(request: FormRequest, invoice_id: UUID) -> Response:
    """Draw the first page of an invoice's document ahead of time. The response has no content, so nobody sees it."""
    await _require_invoice(request, invoice_id)
    if await is_hidden(request, invoice_id):
        raise NotFound
    document = await document_store.get(request.db, request.plan_manager_id, invoice_id)
    if document:
        await rendering.prepare_page(request.settings, request.plan_manager_id, document, 1)
    return Response(status_code=204)


async def _require_invoice(request: PageRequest, invoice_id: UUID) -> None:
    if not await store.exists(request.db, request.plan_manager_id, invoice_id):
        raise NotFound


for _name in DECISIONS:
    pages.post(f"/review/{{invoice_id}}/{_name}", role="manager", on_error=get)(decide(_name))
