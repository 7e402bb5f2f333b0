"""Invoices that people type: new ones, and changes of existing ones."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    describe_changes,
    edit_context,
    require_unchanged,
)
from plankeeper.console.components.labels import error_sentence
from plankeeper.console.components.record_picker import (
    RecordPicker,
    account_choices,
    describe_number,
    find_candidates,
    pick_changed,
    record_label,
)
from plankeeper.console.components.review_return import review_page
from plankeeper.console.components.support_items import describe_limit, place_of
from plankeeper.console.invoices.form import (
    EDITED_FIELDS,
    HEADER,
    LINE,
    LINE_LABELS,
    MAX_FORM_LINES,
    SPARE_NUMBER,
    InvoiceChange,
    LineForm,
    blank_line,
    header_form,
    open_lines,
    read_change,
    read_lines,
    sum_lines,
    take_step,
)
from plankeeper.console.invoices.list import INVOICES, active_warnings, load_names
from plankeeper.console.invoices.pages import INVOICES_URL, get_or_404, invoice_url
from plankeeper.console.lists.reading import list_position
from plankeeper.console.shell.cookies import FlashLink
from plankeeper.console.shell.forms import Form, parse_amount
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_money, to_cents
from plankeeper.core.ids import parse_uuid
from plankeeper.core.json import to_json
from plankeeper.resources.invoices import check_store, service, store
from plankeeper.resources.invoices.changes import Draft, build_draft
from plankeeper.resources.invoices.check_results import find_facts_of, levels_of
from plankeeper.resources.invoices.facts import Fact, MissingNumber, MissingRecord, WrongDate, WrongItemCode
from plankeeper.resources.invoices.reference_store import find as find_references
from plankeeper.resources.invoices.schemas import Invoice, InvoiceUpdate
from plankeeper.resources.invoices.warnings import level_of
from plankeeper.resources.support_items import store as support_items
from plankeeper.resources.support_items.rules import price_limit

pages = Pages()

NEW_URL = f"{INVOICES_URL}/new"


class Check(NamedTuple):
    """What the form says about the invoice as it is typed: what is missing, what is wrong, and its sums.

    `amounts` are those that empty fields get, by field. `support_items` describe those of lines. `notes` are facts of
    warnings that only inform.
    """

    missing: Sequence[str] = ()
    problems: Sequence[str] = ()
    sums: Sequence[tuple[str, Decimal]] = ()
    amounts: Mapping[str, str] = {}
    support_items: Sequence[tuple[int, str]] = ()
    notes: Sequence[str] = ()


@pages.get("/invoices/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    return await _new_page(request, read_lines(request.form))


@pages.post("/invoices/new", role="manager", on_error=new, constraint_errors=service.CONSTRAINT_ERRORS)
async def create(request: FormRequest) -> Redirect:
    read = await _read_form(request, None)
    if read.errors:
        raise ValidationError(*read.errors)
    try:
        saved = await service.create(request.write_context, read.change)
    except ValidationError as error:
        raise ValidationError(*read.rename_errors(error.errors)) from None
    name = f"Invoice {saved.invoice_number}" if saved.invoice_number else "An invoice without number"
    link = _warnings_link(saved, f"{INVOICES_URL}/{saved.id}")
    if request.form.text("finish"):
        return Redirect(INVOICES_URL, f"{name} added.", link=link)
    if not request.form.text("next"):
        return Redirect(f"{INVOICES_URL}/{saved.id}", f"{name} added.", link=link)
    kept = {name: request.form.text(name) for name in ("received", "assigned_to")}
    kept |= {name: request.query.text(name) for name in ("participant", "provider")}
    query = urlencode({name: text for name, text in kept.items() if text})
    return Redirect(f"{NEW_URL}?{query}", f"{name} added. Enter the next one.", link=link)


def _warnings_link(saved: Invoice, page: str) -> FlashLink | None:
    """A link to the open warnings of a saved invoice."""
    count = len(active_warnings(saved))
    return (
        FlashLink("1 open warning" if count == 1 else f"{count} open warnings", f"{page}#warnings") if count else None
    )


@pages.post("/invoices/new/step", role="manager")
async def step_new(request: PageRequest) -> HtmlPage:
    """The form after a step, such as another line, with its current sums and warnings."""
    return await _new_page(request, take_step(read_lines(request.form), request.form.text("step"), 1))


@pages.get("/invoices/{invoice_id}/edit", role="manager", access_log="invoice")
async def edit(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    invoice = await get_or_404(request, invoice_id)
    lines = read_lines(request.form) if request.form else open_lines(invoice)[: MAX_FORM_LINES + 1]
    return await _edit_page(request, invoice, lines)


@pages.post("/invoices/{invoice_id}/edit", role="manager", on_error=edit, constraint_errors=service.CONSTRAINT_ERRORS)
async def update(request: FormRequest, invoice_id: UUID) -> Redirect:
    before = or_404(await store.get_for_update(request.tx, request.plan_manager_id, invoice_id))
    await require_unchanged(request, _edited(before))
    read = await _read_form(request, before)
    if read.errors:
        raise ValidationError(*read.errors)
    try:
        saved = await service.save(request.write_context, before, read.change)
    except ValidationError as error:
        raise ValidationError(*read.rename_errors(error.errors)) from None
    place = await list_position(request, INVOICES, invoice_id)
    message = f"Changes saved{describe_changes(read.change)}."
    review = review_page(request, invoice_id)
    page = review.url if review else invoice_url(invoice_id, place)
    link = _warnings_link(saved, page)
    if request.form.text("finish"):
        page = review.next_url if review else place.back_url if place else INVOICES_URL
    elif request.form.text("next") and place and place.next_url and not review:
        path, _, query = place.next_url.partition("?")
        page = f"{path}/edit?{query}"
    return Redirect(page, message, undo=request.undo_path, link=link)


@pages.post("/invoices/{invoice_id}/edit/step", role="manager")
async def step_edit(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    invoice = await get_or_404(request, invoice_id)
    lines = take_step(read_lines(request.form), request.form.text("step"), _first_number(invoice))
    return await _edit_page(request, invoice, lines)


async def _new_page(request: PageRequest, lines: Sequence[LineForm]) -> HtmlPage:
    query, pickers = request.query, await _pickers(request, None)
    values = {"received": query.text("received") or request.today.isoformat(), "payee": "provider"}
    form = request.form or Form([*values.items(), ("assigned_to", query.text("assigned_to"))])
    suffix = urlencode({name: query.text(name) for name in ("participant", "provider") if query.text(name)})
    context = {
        "title": "New invoice",
        "action": f"{NEW_URL}?{suffix}" if suffix else NEW_URL,
        "step_action": f"{NEW_URL}/step?{suffix}" if suffix else f"{NEW_URL}/step",
        "cancel_url": INVOICES_URL,
        "form": form,
        "check": await _check(request, None, form, lines, pickers) if request.form else Check(),
        **await _form_context(request, pickers, lines or [blank_line(())]),
    }
    return HtmlPage("invoices/form.html", context)


async def _edit_page(request: PageRequest, invoice: Invoice, lines: Sequence[LineForm]) -> HtmlPage:
    place, pickers = await list_position(request, INVOICES, invoice.id), await _pickers(request, invoice)
    received = invoice.received_at.astimezone(request.settings.time_zone).date().isoformat()
    context = await edit_context(request, InvoiceUpdate, _comparable_form(invoice), _edited(invoice))
    form = request.form or Form([*header_form(invoice).multi_items(), ("received", received)])
    review = review_page(request, invoice.id)
    suffix = review.suffix if review else place.suffix if place else ""
    stored = [each for each in unset_to_none(invoice.line_items) or [] if not each.is_deleted]
    context |= {
        "title": f"Edit invoice {invoice.invoice_number or 'without number'}",
        "invoice": invoice,
        "action": f"{INVOICES_URL}/{invoice.id}/edit{suffix}",
        "step_action": f"{INVOICES_URL}/{invoice.id}/edit/step{suffix}",
        "cancel_url": review.url if review else invoice_url(invoice.id, place),
        "has_next": bool(place and place.next_url),
        "form": form,
        "locked": len(stored) - len(open_lines(invoice)),
        "check": await _check(request, invoice, form, lines, pickers),
        **await _form_context(request, pickers, lines or [blank_line((), _first_number(invoice))]),
    }
    if len(stored) > MAX_FORM_LINES:
        context["lines"] = []
    return HtmlPage("invoices/form.html", context)


async def _form_context(
    request: PageRequest, pickers: Mapping[str, RecordPicker], lines: Sequence[LineForm]
) -> dict[str, Any]:
    return {
        "pickers": pickers,
        "picked": {kind: await describe_number(request, each) for kind, each in pickers.items()},
        "lines": lines,
        "spare_line": blank_line(lines)._replace(number=SPARE_NUMBER),
        "header": HEADER,
        "header_fields": {each.name: each for each in HEADER.all_fields},
        "line": LINE,
        "line_fields_by_name": {each.name: each for each in LINE.all_fields},
        "line_labels": LINE_LABELS,
        "accounts": await account_choices(request),
    }


def _first_number(invoice: Invoice) -> int:
    """The number of the first new line."""
    return len(unset_to_none(invoice.line_items) or []) + 1


def _edited(invoice: Invoice) -> EditedRecord:
    return EditedRecord("invoice", invoice.id, invoice.updated_at, EDITED_FIELDS)


def _comparable_form(invoice: Invoice) -> Form:
    """The fields of an invoice by the names of the form, which has the provider's id under another name."""
    names = (*HEADER.fields, "participant_id")
    return Form((name, text) for name, text in header_form(invoice).multi_items() if name in names)


async def _pickers(request: PageRequest, invoice: Invoice | None) -> dict[str, RecordPicker]:
    """The fields for the participant and the provider, as they were sent, or else as the invoice has them."""
    names: Mapping[Any, Any] = await load_names(request, [invoice]) if invoice else {}
    shown = dict[str, RecordPicker]()
    for kind in ("participant", "provider"):
        id_ = parse_uuid(request.query.text(kind))
        number: str | None = None
        if invoice:
            id_ = invoice.participant_id if kind == "participant" else invoice.pm_provider_id
            number = invoice.ambiguous_participant_number if kind == "participant" else invoice.ambiguous_provider_abn
            label = str(names[id_] or "No name") if id_ in names else f"A deleted {kind}"
        else:
            label = (await record_label(request, kind, id_) if id_ else None) or ""
        shown[kind] = RecordPicker(kind, kind, label, id_) if id_ and label else RecordPicker(kind, kind, "")
        if number and not id_:
            candidates = () if request.form else await find_candidates(request, kind, number)
            shown[kind] = RecordPicker(kind, kind, number, None, candidates)
    return {kind: await pick_changed(request, each) for kind, each in shown.items()}


async def _read_form(request: FormRequest, before: Invoice | None) -> InvoiceChange:
    pickers = await _pickers(request, before)
    read = _read_change(request, request.form, read_lines(request.form), before, pickers)
    kept = (before.ambiguous_participant_number, before.ambiguous_provider_abn) if before else ()
    unclear = [each for each in pickers.values() if each.is_unclear and each.text not in kept]
    return read._replace(errors=[*(FieldError(each.name, each.message) for each in unclear), *read.errors])


def _read_change(
    request: PageRequest,
    form: Form,
    lines: Sequence[LineForm],
    before: Invoice | None,
    pickers: Mapping[str, RecordPicker],
) -> InvoiceChange:
    ids = {"participant_id": pickers["participant"].id, "pm_provider_id": pickers["provider"].id}
    return read_change(form, lines, before, ids, request.settings.time_zone)


async def _check(
    request: PageRequest,
    before: Invoice | None,
    form: Form,
    lines: Sequence[LineForm],
    pickers: Mapping[str, RecordPicker],
) -> Check:
    """Check the invoice of a form without storing anything."""
    read = _read_change(request, form, lines, before, pickers)
    place = (request.db, request.plan_manager_id)
    references = await find_references(*place, [read.change])
    draft = build_draft(before.id if before else uuid7(), before, read.change, references, datetime.now(UTC))
    errors = [*read.errors, *read.rename_errors(draft.errors)]
    problems = [error_sentence(each.field, each.message) for each in errors]
    missing, notes = list[str](), list[str]()
    if not draft.errors:
        found = await check_store.get_new(*place, to_json([draft.row]), to_json(draft.lines))
        facts = (await find_facts_of(*place, found, request.today))[draft.row.id]
        levels = levels_of(found[0])
        for code, fact in ((code, fact) for code, each in facts.items() for fact in each):
            shown = _renumber(fact, draft, lines)
            if label := _missing_label(shown):
                missing.append(label)
            else:
                (notes if level_of(code, levels) == "inform" else problems).append(shown.sentence)
    sums = sum_lines(read.change, before)
    rows = [("Lines", sums[0]), ("GST", sums[1]), ("Together", sum(sums, Decimal(0)))] if sums else []
    items = await _describe_items(request, form, lines, pickers["participant"].id)
    return Check(missing, problems, rows, _empty_amounts(form, lines, sums), items, notes)


async def _describe_items(
    request: PageRequest, form: Form, lines: Sequence[LineForm], participant_id: UUID | None
) -> list[tuple[int, str]]:
    """The name, unit and price limit of the items of lines that the catalogue has on the day of the service."""
    wanted = dict[int, tuple[str, date]]()
    for line in lines:
        with suppress(DateError):
            day = parse_date(line.fields.text("service_date_from") or form.text("invoice_date"))
            wanted[line.number] = (line.fields.text("service_item_number").strip(), day)
    items = await support_items.get_in_force(request.db, wanted.values()) if wanted else {}
    if not items:
        return []
    place = await place_of(request, participant_id)
    shown = [(number, items[pair]) for number, pair in wanted.items() if pair in items]
    limits = [(number, item, describe_limit(item, price_limit(item, *place))) for number, item in shown]
    return [(number, f"{item.name}{f' ({limit})' if limit else ''}") for number, item, limit in limits]


def _missing_label(fact: Fact) -> str | None:
    """The name of a value that isn't typed yet."""
    match fact:
        case MissingNumber():
            return "number"
        case MissingRecord(kind=kind, id=None):
            return kind
        case WrongDate(problem="missing"):
            return "date"
        case WrongItemCode(line=line, number=None):
            return f"support item of line {line}"
        case _:
            return None


def _renumber(fact: Fact, draft: Draft, lines: Sequence[LineForm]) -> Fact:
    """A fact about a line with the number that the form shows: new lines can follow lines that were removed."""
    if fact.line is None:
        return fact
    stored = len(unset_to_none(draft.before.line_items) or []) if draft.before else 0
    new = [each.number for each in lines if each.id is None and not each.is_blank and not each.is_removed]
    index = fact.line - stored - 1
    return replace(fact, line=new[index]) if 0 <= index < len(new) else fact


def _empty_amounts(form: Form, lines: Sequence[LineForm], sums: tuple[Decimal, Decimal] | None) -> dict[str, str]:
    """The amounts that fields without one get."""
    amounts = dict[str, str]()
    for line in lines:
        quantity, price = (parse_amount(line.fields.text(name)) for name in ("quantity", "unit_price"))
        if quantity is not None and price is not None and not line.fields.text("total_price"):
            amounts[f"line-{line.number}-total_price"] = format_money(to_cents(quantity * price))
    if sums:
        shown = {"subtotal": sums[0], "tax": sums[1]}
        amounts |= {name: format_money(amount) for name, amount in shown.items() if not form.text(name)}
        subtotal, tax = (parse_amount(form.text(name)) or amount for name, amount in shown.items())
        if not form.text("total"):
            amounts["total"] = format_money(subtotal + tax)
    return amounts
