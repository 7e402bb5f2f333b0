"""The changes of an invoice and its lines by a request, computed without input or output."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace
from uuid_utils.compat import uuid7

from plankeeper.core.errors import DomainError, FieldError
from plankeeper.core.fields import to_row_values, unset_to_none
from plankeeper.core.validation import MAX_DECIMAL_PLACES, amount_error, is_amount
from plankeeper.resources.invoices.check_store import CheckResult
from plankeeper.resources.invoices.checks import has_wrong_total
from plankeeper.resources.invoices.reference_store import ReferenceKind, References, sent_number
from plankeeper.resources.invoices.schemas import (
    Invoice,
    InvoiceLineRow,
    InvoiceRow,
    InvoiceUpdate,
    LineItem,
    LineItemUpdate,
    Matched,
    ReferenceMatch,
    SavedInvoice,
    StateManagement,
)
from plankeeper.resources.invoices.states import (
    CORRECTED_FIELDS,
    ClaimStatus,
    InvoiceAmounts,
    InvoiceState,
    LineAmount,
    LineState,
    approval_after_change,
    change_lines,
    find_lock,
    line_amounts,
    require_matching_totals,
    require_unlocked,
    roll_up,
    settled_status,
    waiting_line_status,
    with_imported_status,
)

_CENTS = {"subtotal", "tax", "total", "total_price"}
_ROW_FIELDS = [name for name in InvoiceRow.__struct_fields__ if name != "ignored_error_codes"]
_INVOICE_FIELDS = [name for name in InvoiceUpdate.__struct_fields__ if name in InvoiceRow.__struct_fields__]
LINE_FIELDS = [
    "description",
    "service_item_number",
    "service_date_from",
    "service_date_to",
    "quantity",
    "unit_price",
    "total_price",
    "gst_code",
    "claim_type",
    "cancellation_reason",
    "component_id",
]
# What only claims and payments change.
CLAIM_FIELDS = ("open_claim_batch", "open_payment_run", "has_payment", "is_rest_waiting")
# Fields about the work with an invoice, not about what it bills. Their change corrects nothing for flagged lines, and
# leaves a state that was imported.
_WORK_FIELDS = {"assigned_to", "due_date", "external_id", "received_at"}


class Draft(NamedTuple):
    """An invoice as a request leaves it, with the errors of the request.

    `changed_lines` are the new lines and those that differ. `matched` says how its references were found, and `lock` is
    the error of a change that a lock forbids.
    """

    before: Invoice | None
    row: InvoiceRow
    lines: Sequence[InvoiceLineRow]
    changed_lines: Sequence[InvoiceLineRow]
    matched: Matched = Matched("id", "id")
    errors: Sequence[FieldError] = ()
    lock: DomainError | None = None
    event_type: str | None = None  # None: that of a create or an update

    @property
    def is_changed(self) -> bool:
        return self.before is None or bool(self.changed_lines) or self.row != to_row(self.before)


def build_draft(
    invoice_id: UUID, before: Invoice | None, change: InvoiceUpdate, references: References, now: datetime
) -> Draft:
    """Apply the fields that are set to an invoice, or to a new one with this id."""
    base = to_row(before) if before else InvoiceRow(id=invoice_id, created_at=now, received_at=now)
    values, errors = _given_values(change, base, references)
    matches: dict[ReferenceKind, ReferenceMatch] = {}
    for kind in _REFERENCE_FIELDS:
        found, matches[kind], error = _match(kind, change, base, references)
        values |= found
        errors += [error] if error else []
    row = replace(base, **values)
    old_lines = to_line_rows(before) if before else []
    lines = old_lines
    if change.line_items is not UNSET:
        lines, line_errors = _merge_lines(change.line_items, invoice_id, old_lines, now)
        errors += line_errors
    lock = None
    fields = {name for name in _ROW_FIELDS if getattr(row, name) != getattr(base, name)}
    changed_ids = {new.id for old, new in zip(old_lines, lines, strict=False) if new != old}
    if changed_ids or len(lines) > len(old_lines):
        fields.add("line_items")
    if before and not errors:
        lock = _find_lock(base, row, old_lines, lines, fields, changed_ids)
    if lock is None and (fields or before is None):
        lines = _set_statuses(row, lines, fields, changed_ids, references)
        lines = lines if errors else with_amounts(row, lines)
    changed = [line for index, line in enumerate(lines) if index >= len(old_lines) or line != old_lines[index]]
    return Draft(before, row, lines, changed, Matched(**matches), errors, lock)


def _given_values(
    change: InvoiceUpdate, base: InvoiceRow, references: References
) -> tuple[dict[str, Any], list[FieldError]]:
    values = {name: value for name in _INVOICE_FIELDS if (value := getattr(change, name)) is not UNSET}
    to_row_values(InvoiceRow, values)
    errors = list(_amount_errors("", values, base))
    if isinstance(received_at := values.get("received_at"), datetime):
        values["received_at"] = received_at.astimezone(UTC)
    if change.payee is not UNSET:
        values["is_reimbursement"] = change.payee == "participant"
    account = values.get("assigned_to")
    if account not in (None, base.assigned_to) and account not in references.accounts:
        message = "must be the id of an account with access to this plan manager"
        errors.append(FieldError("assigned_to", message, "not_found"))
    return values, errors


# The fields of an invoice's references: their id, the number that finds them, and the number that several have.
_REFERENCE_FIELDS: Mapping[ReferenceKind, tuple[str, str, str]] = {
    "participant": ("participant_id", "participant_number", "ambiguous_participant_number"),
    "provider": ("pm_provider_id", "provider_abn", "ambiguous_provider_abn"),
}


def _match(
    kind: ReferenceKind, change: InvoiceUpdate, base: InvoiceRow, references: References
) -> tuple[dict[str, Any], ReferenceMatch, FieldError | None]:
    """The values of a reference's columns, how it was found, and the error, if any."""
    id_field, number_field, ambiguous_field = _REFERENCE_FIELDS[kind]
    sent_id, number = getattr(change, id_field), getattr(change, number_field)
    old_id: UUID | None = getattr(base, id_field)
    if sent_id is UNSET and number is UNSET:
        kept = "id" if old_id else "several" if getattr(base, ambiguous_field) else "none"
        return {}, kept, None
    if isinstance(sent_id, str):
        id_ = UUID(sent_id)
        error = None
        if isinstance(number, str):
            error = FieldError(number_field, f"can't be sent together with {id_field}", "inconsistent")
        elif id_ != old_id and id_ not in references.by_id:  # a record that was deleted stays on its invoices
            error = FieldError(id_field, f"must be the id of a {kind} of this plan manager", "not_found")
        return {id_field: id_, ambiguous_field: None}, "id", error
    number = sent_number(kind, number) if isinstance(number, str) else ""
    found = references.by_number[kind, number]
    match: ReferenceMatch = "none" if not found else "number" if len(found) == 1 else "several"
    id_ = found[0].id if match == "number" else None
    return {id_field: id_, ambiguous_field: number if match == "several" else None}, match, None


def _merge_lines(
    items: Sequence[LineItemUpdate], invoice_id: UUID, old: Sequence[InvoiceLineRow], now: datetime
) -> tuple[list[InvoiceLineRow], list[FieldError]]:
    """The lines of an invoice whose lines a request replaces: the old ones in their order, then the new ones."""
    lines, errors = {each.id: each for each in old}, list[FieldError]()
    kept = set[UUID]()
    for index, item in enumerate(items):
        if item.id is not UNSET:
            errors += _update_line(f"line_items[{index}].", UUID(item.id), item, lines, kept)
    free = _FreeLines([each for each in old if not each.is_deleted and each.id not in kept])
    added: list[InvoiceLineRow] = []
    for index, item in enumerate(items):
        if item.id is UNSET:
            values = _line_values(item)
            if (equal := free.take(values)) is not None:
                kept.add(equal)
                continue
            line = InvoiceLineRow(id=uuid7(), invoice_id=invoice_id, position=len(old) + len(added), created_at=now)
            errors += _amount_errors(f"line_items[{index}].", values, line)
            added.append(replace(line, **values))
    replaced = [
        each if each.id in kept or each.is_deleted else replace(each, is_deleted=True) for each in lines.values()
    ]
    return [*replaced, *added], errors


def _update_line(
    prefix: str, line_id: UUID, item: LineItemUpdate, lines: dict[UUID, InvoiceLineRow], kept: set[UUID]
) -> Iterator[FieldError]:
    """Replace the line with an id. A deleted line stays deleted, so that a client can send back what it received."""
    values = _line_values(item)
    old = lines.get(line_id)
    if old is None:
        yield FieldError(f"{prefix}id", "must be the id of a line of this invoice", "not_found")
    elif line_id in kept:
        yield FieldError(f"{prefix}id", "is a duplicate of an earlier line", "duplicate")
    elif old.is_deleted and replace(old, **values) != old:
        yield FieldError(f"{prefix}id", "is the id of a deleted line, which can't be changed", "inconsistent")
    else:
        yield from _amount_errors(prefix, values, old)
        lines[line_id] = replace(old, **values)
    kept.add(line_id)


class _FreeLines:
    """The lines that a line without an id can be, the first ones first."""

    def __init__(self, lines: Sequence[InvoiceLineRow]) -> None:
        self._lines = lines
        self._taken = set[UUID]()
        self._by_values: dict[tuple[str, ...], defaultdict[tuple[Any, ...], deque[UUID]]] = {}

    def take(self, values: Mapping[str, Any]) -> UUID | None:
        """The id of the first line with these values that hasn't been taken, or None."""
        names = tuple(sorted(values))
        if names not in self._by_values:
            index = self._by_values[names] = defaultdict(deque)
            for line in self._lines:
                index[tuple(getattr(line, name) for name in names)].append(line.id)
        equal = self._by_values[names][tuple(values[name] for name in names)]
        while equal:
            line_id = equal.popleft()
            if line_id not in self._taken:
                self._taken.add(line_id)
                return line_id
        return None


def _line_values(item: LineItemUpdate) -> dict[str, Any]:
    given = {name: value for name in LINE_FIELDS if (value := getattr(item, name)) is not UNSET}
    return to_row_values(InvoiceLineRow, given)


def _amount_errors(prefix: str, values: Mapping[str, Any], old: Struct) -> Iterator[FieldError]:
    """The errors of changed amounts: what an import has stored can be sent back."""
    for name, value in values.items():
        places = 2 if name in _CENTS else MAX_DECIMAL_PLACES
        if isinstance(value, Decimal) and value != getattr(old, name) and not is_amount(value, places):
            yield amount_error(value, places, prefix + name)


def _find_lock(
    old: InvoiceRow,
    new: InvoiceRow,
    old_lines: Sequence[InvoiceLineRow],
    lines: Sequence[InvoiceLineRow],
    fields: Collection[str],
    changed_ids: Collection[UUID],
) -> DomainError | None:
    """The error of a change that a lock forbids, or None."""
    state = to_state(old, old_lines)
    try:
        require_unlocked(state, fields, changed_ids)
        require_matching_totals(state, to_amounts(old, old_lines), to_amounts(new, lines))
    except DomainError as error:
        return error
    return None


def _set_statuses(
    row: InvoiceRow,
    lines: Sequence[InvoiceLineRow],
    fields: Collection[str],
    changed_ids: Collection[UUID],
    references: References,
) -> list[InvoiceLineRow]:
    """Set the statuses of a changed invoice, and return its lines with theirs."""
    participant = references.by_id.get(row.participant_id) if row.participant_id else None
    provider = references.by_id.get(row.pm_provider_id) if row.pm_provider_id else None
    is_own_fee = provider is not None and provider.is_own and not row.is_reimbursement
    is_required = participant is not None and participant.approval_required and not is_own_fee
    update_approval(row, fields, is_required=is_required)
    state = to_state(row, lines)
    if not _WORK_FIELDS.issuperset(fields):
        rejected = {each.id for each in state.active_lines if each.status == "rejected"}
        is_corrected = not CORRECTED_FIELDS.isdisjoint(fields)
        state = change_lines(state, rejected.union(changed_ids) if is_corrected else changed_ids)
        row.claim_status = roll_up(state)
    if not state.is_cancelled:
        row.cancelled_at = None
    return [
        line if line.claim_status == each.claim_status else replace(line, claim_status=each.claim_status)
        for line, each in zip(lines, state.lines, strict=True)
    ]


def update_approval(row: InvoiceRow, fields: Collection[str], *, is_required: bool = False) -> None:
    """Set the approval of an invoice after a change of these fields. See `approval_after_change`."""
    approval = approval_after_change(row.approval_status, fields, is_required=is_required)
    if approval != row.approval_status:  # a decision about something else
        row.approval_status, row.approval_decided_at, row.approval_decided_by = approval, None, None
        row.approval_team_member_id = row.approval_reason = None


def to_state(row: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> InvoiceState:
    """What decides the state of an invoice."""
    return InvoiceState(
        id=row.id,
        is_held=row.held_at is not None,
        is_cancelled=row.cancelled_at is not None,
        is_deleted=row.is_deleted,
        wont_claim=row.wont_claim,
        approval_status=row.approval_status,
        lines=tuple(map(to_line_state, lines)),
    )


def to_stored_state(invoice: Invoice) -> InvoiceState:
    """What decides the state of an invoice that was read with its lines, with a state that was imported."""
    return with_imported_status(to_state(to_row(invoice), to_line_rows(invoice)), invoice.claim_status)


def find_settled_status(invoice: Invoice) -> ClaimStatus | None:
    """The state of an invoice none of whose lines waits for somebody: see `settled_status`."""
    return settled_status(invoice.claim_status, map(to_line_state, to_line_rows(invoice)))


def to_line_state(line: InvoiceLineRow) -> LineState:
    """What decides the state of a line."""
    return LineState(
        invoice_id=line.invoice_id,
        id=line.id,
        number=line.position + 1,
        claim_status=line.claim_status,
        is_deleted=line.is_deleted,
        paid_amount=line.paid_amount,
        claim_batch=line.open_claim_batch,
        payment_run=line.open_payment_run,
        has_payment=line.has_payment,
        is_rest_waiting=line.is_rest_waiting,
    )


def line_price(line: InvoiceLineRow | LineItem) -> Decimal | None:
    """The price of a line without tax, in dollars: as stated, else quantity times unit price, else null."""
    if line.total_price is None and line.quantity is not None and line.unit_price is not None:
        return line.quantity * line.unit_price
    return line.total_price


def to_amounts(invoice: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> InvoiceAmounts:
    """The amounts of an invoice with these lines."""
    amounts = tuple(
        LineAmount(
            id=each.id,
            total_price=line_price(each),
            gst_code=each.gst_code,
            locked_amount=each.amount if find_lock(to_line_state(each)) else None,
            is_deleted=each.is_deleted,
        )
        for each in lines
    )
    return InvoiceAmounts(
        total=invoice.total,
        tax=invoice.tax,
        subtotal=invoice.subtotal,
        lines=amounts,
        has_wrong_total=has_wrong_total(invoice, lines),
    )


def with_amounts(invoice: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> list[InvoiceLineRow]:
    """The lines of an invoice with their amounts, which are stored with each change of its values or lines."""
    amounts = line_amounts(to_amounts(invoice, lines))
    return [
        line if line.amount == amounts.get(line.id) else replace(line, amount=amounts.get(line.id)) for line in lines
    ]


def to_row(invoice: Invoice) -> InvoiceRow:
    """The stored values of an invoice."""
    values: dict[str, Any] = {name: getattr(invoice, name) for name in _ROW_FIELDS}
    return InvoiceRow(**values, ignored_error_codes=invoice.state_management.ignored_errors)


def to_stored(row: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> dict[str, Any]:
    """The values of an invoice to write, with that which follows from all of its lines."""
    waiting = waiting_line_status(row.claim_status, map(to_line_state, lines))
    return asdict(row) | {"waiting_line_status": waiting}


def to_line_rows(invoice: Invoice) -> list[InvoiceLineRow]:
    """The stored lines of an invoice that was read with its lines."""
    names = [name for name in InvoiceLineRow.__struct_fields__ if name not in ("invoice_id", "position")]
    lines = enumerate(unset_to_none(invoice.line_items) or [])
    return [
        InvoiceLineRow(invoice_id=invoice.id, position=position, **{name: getattr(line, name) for name in names})
        for position, line in lines
    ]


def to_saved(draft: Draft, plan_manager_id: UUID, result: CheckResult, updated_at: datetime) -> SavedInvoice:
    """The invoice of a draft as a response has it."""
    row = draft.row
    values: dict[str, Any] = {name: getattr(row, name) for name in _ROW_FIELDS}
    line_names = [name for name in LineItem.__struct_fields__ if name != "invoice"]
    return SavedInvoice(
        **values,
        plan_manager=plan_manager_id,
        errors=result.errors,
        state_management=StateManagement(result.error_codes, result.ignored_error_codes),
        is_duplicate=result.is_duplicate,
        payee="participant" if row.is_reimbursement else "provider",
        document=draft.before.document if draft.before else None,
        updated_at=updated_at,
        line_items=[
            LineItem(invoice=row.id, **{name: getattr(line, name) for name in line_names}) for line in draft.lines
        ],
        matched=draft.matched,
    )
