"""The form of an invoice with its lines: its fields, reading what was typed, and the steps that change its lines.

The fields of the third line are named `line-3-quantity`, and so on. A line of the invoice has its id in `line-3-id`.
A removed line stays in the form, so that it can be put back: `line-3-removed`. Lines that the form doesn't have, such
as locked ones and those that somebody else has added in the meantime, stay as they are.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, date, datetime, time
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import UNSET
from msgspec.structs import replace

from plankeeper.console.components.edit_forms import find_changes, form_from
from plankeeper.console.components.fields import FormField, FormSection
from plankeeper.console.components.labels import field_label
from plankeeper.console.shell.forms import Form
from plankeeper.core.dates import DateError, add_year, normalize_date, parse_date
from plankeeper.core.errors import FieldError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import to_cents
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.changes import to_line_rows, to_row, to_state
from plankeeper.resources.invoices.schemas import Invoice, InvoiceUpdate, LineItem, LineItemUpdate
from plankeeper.resources.invoices.states import find_lock

SPARE_NUMBER = 9999  # of the line that the page copies for new ones, and that isn't sent
MAX_FORM_LINES = 100  # an invoice with more lines comes from a program, which also corrects it

PAYEES = {"provider": "Provider", "participant": "Participant (reimbursement)"}
GST_CODES = {"P2": "GST-free", "P1": "10 % GST", "P5": "Out of scope"}
CLAIM_TYPES = {
    "": "Direct service",
    "CANC": "Cancellation",
    "REPW": "Report writing",
    "TRAN": "Provider travel",
    "NF2F": "Not face to face",
    "THLT": "Telehealth",
    "IRSS": "Irregular SIL support",
}
CANCELLATION_REASONS = {
    "": "Not cancelled",
    "NSDH": "Health",
    "NSDF": "Family",
    "NSDT": "Transport",
    "NSDO": "Other",
}
HEADER = FormSection(
    InvoiceUpdate,
    "Invoice",
    (
        FormField("invoice_number"),
        FormField("invoice_date", "date"),
        FormField("due_date", "date"),
        FormField("payee", "select", options=PAYEES),
        FormField("assigned_to", "select"),
        FormField("external_id", hint="The invoice’s ID in another system"),
        FormField("subtotal", "amount"),
        FormField("tax", "amount"),
        FormField("total", "amount"),
    ),
)
LINE = FormSection(
    LineItemUpdate,
    "Line",
    (
        FormField("service_item_number"),
        FormField("description", "textarea"),
        FormField("service_date_from", "date"),
        FormField("service_date_to", "date"),
        FormField("quantity", "amount"),
        FormField("unit_price", "amount"),
        FormField("total_price", "amount"),
        FormField("gst_code", "select", options=GST_CODES),
        FormField("claim_type", "select", options=CLAIM_TYPES),
        FormField("cancellation_reason", "select", options=CANCELLATION_REASONS),
    ),
)
LINE_LABELS = {
    "service_item_number": "Support item",
    "service_date_from": "From",
    "service_date_to": "To",
    "total_price": "Total",
    "gst_code": "GST",
}
_HEADER_FIELDS = (*HEADER.fields, "participant_id", "pm_provider_id")
EDITED_FIELDS = (*_HEADER_FIELDS, "received_at", "line_items")
_LINE_NAME = re.compile(r"line-([1-9][0-9]{0,3})-([a-z_]+)")
_STEP = re.compile(r"(duplicate|swap|remove|restore)-([1-9][0-9]{0,3})")
_ITEM_ERROR = re.compile(r"line_items\[([0-9]+)\]\.(\w+)")
_NEW_HEADER = Form([("payee", "provider")])
_NEW_LINE = Form([("gst_code", "P2")])


class LineForm(NamedTuple):
    """A line of the form: its number, and its fields without the prefix of their names."""

    number: int
    fields: Form

    @property
    def id(self) -> UUID | None:
        return parse_uuid(self.fields.text("id"))

    @property
    def is_removed(self) -> bool:
        return bool(self.fields.text("removed"))

    @property
    def is_blank(self) -> bool:
        """Whether nothing was typed into a new line."""
        names = (each for each in LINE.fields if each != "gst_code")
        return self.id is None and not any(self.fields.text(each) for each in names)


class InvoiceChange(NamedTuple):
    """The valid values of a form, and the errors of the others. `numbers` are the form's numbers of `line_items`."""

    change: InvoiceUpdate
    errors: list[FieldError]
    numbers: Sequence[int | None]

    def rename_errors(self, errors: Iterable[FieldError]) -> list[FieldError]:
        """Errors of the update, with the names of the form's fields."""
        return [_rename(each, self.numbers) for each in errors]


def _rename(error: FieldError, numbers: Sequence[int | None]) -> FieldError:
    if found := _ITEM_ERROR.fullmatch(error.field):
        number = numbers[int(found[1])]
        return error if number is None else line_error(number, found[2], error.message)
    names = {"participant_id": "participant", "pm_provider_id": "provider"}
    return replace(error, field=names.get(error.field, error.field))


def line_error(number: int, name: str, message: str) -> FieldError:
    label = (LINE_LABELS.get(name) or field_label(name)).replace("Unit", "unit").replace("Quantity", "quantity")
    return FieldError(f"line-{number}-{name}", f"Line {number}: {label} {message}")


def header_form(invoice: Invoice) -> Form:
    """The fields of an invoice without its lines."""
    others = {"participant_number": None, "provider_abn": None, "line_items": None, "received_at": None}
    return form_from(InvoiceUpdate, invoice, **others)


def open_lines(invoice: Invoice) -> list[LineForm]:
    """The lines of an invoice that can be changed. Their numbers count deleted and locked lines, too."""
    rows = to_line_rows(invoice)
    states = to_state(to_row(invoice), rows).lines
    lines = unset_to_none(invoice.line_items) or []
    return [
        LineForm(number, Form([*_line_form(line).multi_items(), ("id", str(line.id))]))
        for number, (line, state) in enumerate(zip(lines, states, strict=True), 1)
        if not line.is_deleted and find_lock(state) is None
    ]


def _line_form(line: LineItem) -> Form:
    return Form((name, text) for name, text in form_from(LineItemUpdate, line).multi_items() if name in LINE.fields)


def read_lines(form: Form) -> list[LineForm]:
    """The lines of a form in the order of their numbers."""
    fields = defaultdict[int, list[tuple[str, str]]](list)
    for name, text in form.multi_items():
        if found := _LINE_NAME.fullmatch(name):
            fields[int(found[1])].append((found[2], text))
    return [LineForm(number, Form(each)) for number, each in sorted(fields.items()) if number < SPARE_NUMBER]


def blank_line(lines: Sequence[LineForm], first_number: int = 1) -> LineForm:
    """A new line after the others."""
    return LineForm(max((each.number + 1 for each in lines), default=first_number), _NEW_LINE)


def take_step(lines: Sequence[LineForm], step: str, first_number: int) -> list[LineForm]:
    """The lines after a step: `add`, or one of a line, such as `duplicate-2`. Any other text changes nothing."""
    if step == "add":
        return [*lines, blank_line(lines, first_number)]
    found = _STEP.fullmatch(step)
    if found and found[1] == "duplicate":
        copies = [each for each in lines if each.number == int(found[2])]
        number = blank_line(lines).number
        return [*lines, *(LineForm(number, _without(each.fields, "id")) for each in copies)]
    if found:
        return [_change_line(each, found[1]) if each.number == int(found[2]) else each for each in lines]
    return list(lines)


def _change_line(line: LineForm, step: str) -> LineForm:
    fields = line.fields
    if step == "swap":
        swapped = {"quantity": fields.text("unit_price"), "unit_price": fields.text("quantity")}
        return LineForm(line.number, Form([*_without(fields, *swapped).multi_items(), *swapped.items()]))
    removed = [("removed", "1")] if step == "remove" else []
    return LineForm(line.number, Form([*_without(fields, "removed").multi_items(), *removed]))


def _without(form: Form, *names: str) -> Form:
    return Form((name, text) for name, text in form.multi_items() if name not in names)


def read_change(
    form: Form, lines: Sequence[LineForm], before: Invoice | None, references: Mapping[str, UUID | None], zone: ZoneInfo
) -> InvoiceChange:
    """The changed values of a form. `references` are the ids of the participant and the provider, by field.

    Dates can lack the year: a due date is the next such day, any other date the latest that isn't in the future.
    """
    today = datetime.now(zone).date()
    form, lines = _with_years(form, today), [each._replace(fields=_with_years(each.fields, today)) for each in lines]
    ids = [(name, str(each or "")) for name, each in references.items()]
    typed = Form([*_without(form, *references).multi_items(), *ids])
    current = header_form(before) if before else _NEW_HEADER
    change, errors = find_changes(InvoiceUpdate, typed, current, _HEADER_FIELDS)
    errors += _read_received(form, before, change, zone)
    numbers = _read_lines(lines, before, change, errors)
    if sum(each is not None for each in numbers) > MAX_FORM_LINES:
        errors.append(FieldError("form", f"At most {MAX_FORM_LINES} lines can be entered here."))
    if before is None or change.line_items is not UNSET:
        _fill_amounts(change, before)
    return InvoiceChange(change, errors, numbers)


_DATE_FIELDS = ("invoice_date", "received", "due_date", "service_date_from", "service_date_to")


def _with_years(form: Form, today: date) -> Form:
    return Form(
        (name, add_year(text, today, is_past=name != "due_date") if name in _DATE_FIELDS else text)
        for name, text in form.multi_items()
    )


def _read_received(form: Form, before: Invoice | None, change: InvoiceUpdate, zone: ZoneInfo) -> list[FieldError]:
    """Set `received_at` if its day differs: for a new invoice from today."""
    text = form.text("received")
    shown = before.received_at.astimezone(zone).date() if before else datetime.now(zone).date()
    if not text or normalize_date(text) == shown.isoformat():
        return []
    try:
        day = parse_date(text)
    except DateError as error:
        return [FieldError("received", str(error))]
    if not MINYEAR < day.year < MAXYEAR:  # as for programs
        return [FieldError("received", "must be in the years 2 to 9998")]
    change.received_at = datetime.combine(day, time(), zone)
    return []


def _read_lines(
    lines: Sequence[LineForm], before: Invoice | None, change: InvoiceUpdate, errors: list[FieldError]
) -> list[int | None]:
    """Set `line_items` if a line differs, and return the form's numbers of the items."""
    stored = {each.id: each for each in (unset_to_none(before.line_items) if before else None) or []}
    sent = {each.id for each in lines}
    kept = [LineItemUpdate(id=str(each.id)) for each in stored.values() if not each.is_deleted and each.id not in sent]
    items, numbers = kept, list[int | None]([None] * len(kept))
    is_changed = False
    for line in lines:
        if line.is_blank or line.is_removed or (line.id and line.id not in stored):
            is_changed |= line.id in stored
            continue
        item, line_errors = _read_line(line, stored.get(line.id) if line.id else None)
        is_changed |= item != LineItemUpdate(id=item.id)
        errors += [line_error(line.number, each.field, each.message) for each in line_errors]
        items.append(item)
        numbers.append(line.number)
    if is_changed:
        change.line_items = items
    return numbers


def _read_line(line: LineForm, before: LineItem | None) -> tuple[LineItemUpdate, list[FieldError]]:
    """The changed values of a line. Without a total, it is the quantity times the unit price."""
    item, errors = find_changes(LineItemUpdate, line.fields, _line_form(before) if before else _NEW_LINE, LINE.fields)
    if before:
        item.id = str(before.id)
    quantity, price, total = (_value(item, before, each) for each in ("quantity", "unit_price", "total_price"))
    if item != LineItemUpdate(id=item.id) and total is None and quantity is not None and price is not None:
        item.total_price = to_cents(quantity * price)
    if not before and item == LineItemUpdate():  # it has nothing but errors
        item.gst_code = "P2"
    return item, errors


def _value(change: InvoiceUpdate | LineItemUpdate, before: Invoice | LineItem | None, name: str) -> Decimal | None:
    value = getattr(change, name)
    return (getattr(before, name) if before else None) if value is UNSET else value


def _fill_amounts(change: InvoiceUpdate, before: Invoice | None) -> None:
    """Fill amounts that the form leaves empty: the sum of the lines, a tenth of those with GST, and both together."""
    sums = sum_lines(change, before)
    if sums is None:
        return
    amounts = {"subtotal": sums[0], "tax": sums[1]}
    for name, amount in amounts.items():
        if _value(change, before, name) is None:
            setattr(change, name, amount)
    subtotal, tax = (_value(change, before, name) for name in amounts)
    if _value(change, before, "total") is None and subtotal is not None and tax is not None:
        change.total = subtotal + tax


def sum_lines(change: InvoiceUpdate, before: Invoice | None) -> tuple[Decimal, Decimal] | None:
    """The prices of the lines, and the tax of those with GST, in dollars; null without a line with a price."""
    stored = {str(each.id): each for each in (unset_to_none(before.line_items) if before else None) or []}
    items = change.line_items
    if items is UNSET:
        items = [LineItemUpdate(id=id_) for id_, each in stored.items() if not each.is_deleted]
    prices, taxed = list[Decimal](), list[Decimal]()
    for item in items:
        line = stored.get(str(item.id))
        price = _value(item, line, "total_price")
        if price is None:
            continue
        prices.append(price)
        code = item.gst_code if item.gst_code is not UNSET else line.gst_code if line else "P2"
        if code == "P1":
            taxed.append(price)
    return (sum(prices, Decimal(0)), to_cents(sum(taxed, Decimal(0)) / 10)) if prices else None
