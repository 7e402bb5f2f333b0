"""Import of invoices with their lines. Imported invoices are checked again, and so are those with the same number."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import to_row_values, unset_to_none
from plankeeper.core.formatting import CENT, to_cents
from plankeeper.core.json import to_json
from plankeeper.core.validation import MAX_DECIMAL_PLACES, describe_amount, is_amount
from plankeeper.events.recorder import record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.changes import (
    CLAIM_FIELDS,
    line_price,
    to_line_rows,
    to_line_state,
    to_stored,
    with_amounts,
)
from plankeeper.resources.invoices.import_locks import find_claim_error
from plankeeper.resources.invoices.import_schemas import InvoiceImport, InvoiceLineImport
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.service import check, check_new
from plankeeper.resources.invoices.states import find_lock
from plankeeper.resources.plans.store import list_participants_with_budgets
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    InvalidRowsError,
    RowError,
    merge_record,
    normalize_id,
    upsert_each,
)

InvoiceImportRow = ImportRow[InvoiceImport]

_PAID = ("paid", "payment_ready")
_PARTLY_PAID = ("partially_paid", "partially_ready")
_UNPAID = ("new", "flagged", "on_hold", "rejected", "cancelled")


async def upsert(ctx: WriteContext, rows: Sequence[InvoiceImportRow]) -> ImportCounts:
    errors = [error for row in rows for error in _validate_row(row, ctx.plan_manager_id)]
    if errors:
        raise InvalidRowsError(errors)
    ids = [uuid7() if row.values.id is UNSET else UUID(row.values.id) for row in rows]
    if len({*ids}) < len(ids):
        return await upsert_each(upsert, ctx, rows)
    old = {each.id: each for each in await store.select_for_update(ctx.tx, ctx.plan_manager_id, ids)}
    affected = {*old, *await _list_similar(ctx, old)}
    before = await _get_many(ctx, affected)
    records = [_build_invoice(row, id_, old.get(id_)) for row, id_ in zip(rows, ids, strict=True)]
    replaced = [(row, record) for row, record in zip(rows, records, strict=True) if row.values.line_items is not UNSET]
    lines = _build_lines(replaced, before)
    await _require_unclaimed(ctx, rows, records, lines, before)
    await _save(ctx, records, {record.id for _, record in replaced}, lines, before)
    before |= await _get_many(ctx, {*await _list_similar(ctx, ids)} - affected - {*ids})
    await check(ctx, sorted(before))
    after = await _get_many(ctx, {*before, *ids})
    pairs = [(before.get(id_), each) for id_, each in after.items()]
    changed = [each for previous, each in pairs if each.id in old and previous != each]
    times = await store.touch(ctx.tx, ctx.plan_manager_id, [each.id for each in changed])
    for invoice, time in zip(changed, times, strict=True):
        invoice.updated_at = time
    await record_events(
        ctx, [("invoice.updated" if previous else "invoice.created", previous, each) for previous, each in pairs]
    )
    await store.write_counts(ctx.tx, ctx.plan_manager_id, list(old.values()), records)
    await _enqueue_spenders(ctx, [*old.values(), *records])
    return ImportCounts(len(rows) - len(old), len(changed), len(old) - len(changed))


async def _enqueue_spenders(ctx: WriteContext, invoices: Iterable[InvoiceRow]) -> None:
    """Queue the participants with budgets: invoices that were received later can have more or less of them."""
    ids = sorted({each.participant_id for each in invoices if each.participant_id})
    found = await list_participants_with_budgets(ctx.tx, ctx.plan_manager_id, ids) if ids else []
    await recheck_queue.enqueue(ctx, "participant", [UUID(each) for each in found])


async def _get_many(ctx: WriteContext, ids: Iterable[UUID]) -> dict[UUID, Invoice]:
    """The invoices by id, in order of id."""
    return {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, sorted(ids))}


async def _list_similar(ctx: WriteContext, ids: Iterable[UUID]) -> list[UUID]:
    return await check_store.list_similar(ctx.tx, ctx.plan_manager_id, list(ids))


def _build_invoice(row: InvoiceImportRow, id_: UUID, old: InvoiceRow | None) -> InvoiceRow:
    overrides: dict[str, Any] = {"id": id_}
    values = row.values
    state = unset_to_none(values.state_management)
    if state is not None and state.ignored_errors is not UNSET:
        overrides["ignored_error_codes"] = state.ignored_errors
    if values.payee is not UNSET:
        overrides["is_reimbursement"] = values.payee == "participant"
    record = merge_record(InvoiceRow, row, overrides, old, _default_times)
    _set_hold(record, values)
    return record


def _default_times(values: Struct) -> dict[str, Any]:
    created_at = values.created_at if isinstance(values, InvoiceImport) else UNSET
    now = datetime.now(UTC)
    return {"created_at": now, "received_at": now if created_at is UNSET else created_at.astimezone(UTC)}


def _set_hold(record: InvoiceRow, values: InvoiceImport) -> None:
    """A hold and a cancellation follow the imported status, so that the invoice can be released or reopened."""
    if values.claim_status is UNSET:
        return
    now = datetime.now(UTC)
    if record.claim_status == "on_hold":
        record.held_at = record.held_at or now
    elif values.held_at is UNSET:
        record.held_at = record.held_by = record.hold_reason = None
    if record.claim_status == "cancelled":
        record.cancelled_at = record.cancelled_at or now
    elif values.cancelled_at is UNSET:
        record.cancelled_at = None


async def _require_unclaimed(
    ctx: WriteContext,
    rows: Sequence[InvoiceImportRow],
    records: Sequence[InvoiceRow],
    lines: Sequence[InvoiceLineRow],
    before: Mapping[UUID, Invoice],
) -> None:
    """Raise InvalidRowsError for rows that change a line that was claimed, paid or adjusted here, or what it locks."""
    claimed = defaultdict[UUID, dict[UUID, store.ClaimedLine]](dict)
    known = [record.id for record in records if record.id in before]
    for each in await store.list_claimed_lines(ctx.tx, ctx.plan_manager_id, known) if known else ():
        claimed[each.invoice_id][each.line_id] = each
    if not claimed:
        return
    new_lines = defaultdict[UUID, list[InvoiceLineRow]](list)
    for line in lines:
        new_lines[line.invoice_id].append(line)
    errors = list[RowError]()
    for row, record in zip(rows, records, strict=True):
        if record.id in claimed:
            own = None if row.values.line_items is UNSET else new_lines[record.id]
            found = find_claim_error(before[record.id], record, own, claimed[record.id])
            errors += [RowError(row.line_number, *found)] if found else []
    if errors:
        raise InvalidRowsError(errors)


async def _save(
    ctx: WriteContext,
    records: Sequence[InvoiceRow],
    replaced_ids: Collection[UUID],
    line_rows: Sequence[InvoiceLineRow],
    before: Mapping[UUID, Invoice],
) -> None:
    """Write invoices, and the lines of those whose rows have `line_items`. New ones are checked before that.

    The other lines of an invoice with other totals can have other amounts.
    """
    lines_of = defaultdict[UUID, list[InvoiceLineRow]](list)
    for each in line_rows:
        lines_of[each.invoice_id].append(each)
    recounted = list[InvoiceLineRow]()
    for record in records:
        if record.id in before and record.id not in replaced_ids:
            old = to_line_rows(before[record.id])
            lines_of[record.id] = with_amounts(record, old)
            recounted += [new for was, new in zip(old, lines_of[record.id], strict=True) if new != was]
    updated = [record for record in records if record.id in before]
    created = [record for record in records if record.id not in before]
    if updated:
        stored = [to_stored(record, lines_of[record.id]) for record in updated]
        await store.update_many(ctx.tx, ctx.plan_manager_id, to_json(stored))
        await store.delete_other_lines(ctx.tx, ctx.plan_manager_id, [*replaced_ids], line_rows)
    if created:
        results = {each.id: each for each in await check_new(ctx, to_json(created), to_json(line_rows))}
        checked = [to_stored(record, lines_of[record.id]) | asdict(results[record.id]) for record in created]
        await store.insert(ctx.tx, ctx.plan_manager_id, to_json(checked))
    await store.upsert_lines(ctx.tx, ctx.plan_manager_id, [*line_rows, *recounted])


def _build_lines(
    replaced: Iterable[tuple[InvoiceImportRow, InvoiceRow]], before: Mapping[UUID, Invoice]
) -> list[InvoiceLineRow]:
    lines: list[InvoiceLineRow] = []
    for row, record in replaced:
        old = before.get(record.id)
        stored = {each.id: each for each in to_line_rows(old)} if old else {}
        items = enumerate(unset_to_none(row.values.line_items) or [])
        built = [_build_line(item, position, record, stored) for position, item in items]
        taxed_count = sum(line.gst_code == "P1" for line in built)
        for line in built:
            if not (_keeps_amount(line, stored.get(line.id)) or _is_possible_amount(line, taxed_count)):
                line.amount = None
        own = with_amounts(record, built)
        for line in own:
            if line.claim_status in _PAID and line.paid_amount is None:  # as much as the line says
                line.paid_amount = line.amount
        lines += own
    return lines


def _build_line(
    item: InvoiceLineImport, position: int, invoice: InvoiceRow, stored: Mapping[UUID, InvoiceLineRow]
) -> InvoiceLineRow:
    id_ = uuid7() if item.id is UNSET else UUID(item.id)
    old = stored.get(id_)
    created_at = old.created_at if old else datetime.now(UTC)
    kept = {name: getattr(old, name) for name in CLAIM_FIELDS} if old else {}
    line = InvoiceLineRow(id=id_, invoice_id=invoice.id, position=position, created_at=created_at, **kept)
    names = [name for name in item.__struct_fields__ if name not in ("id", "invoice", *CLAIM_FIELDS)]
    given = {name: value for name in names if (value := getattr(item, name)) is not UNSET}
    to_row_values(InvoiceLineRow, given)
    line = msgspec.structs.replace(line, **given)
    if old and _has_same_price(line, old):
        line.amount = old.amount  # a claimed line keeps it
    return line


def _has_same_price(line: InvoiceLineRow, old: InvoiceLineRow) -> bool:
    return (line_price(old), old.gst_code) == (line_price(line), line.gst_code)


def _keeps_amount(line: InvoiceLineRow, old: InvoiceLineRow | None) -> bool:
    """Whether a line was locked with its amount, which can include the difference of lines that are deleted now."""
    return old is not None and find_lock(to_line_state(old)) is not None and _has_same_price(line, old)


def _is_possible_amount(line: InvoiceLineRow, taxed_count: int) -> bool:
    """Whether a line can cost its amount in an invoice with this number of `P1` lines: see `line_amounts`."""
    price = line_price(line)
    if price is None or line.amount is None or not is_amount(line.amount, 2):
        return False
    tax, difference = (to_cents(price / 10), CENT * taxed_count) if line.gst_code == "P1" else (0, 0)
    return abs(line.amount - to_cents(price) - tax) <= difference


def _validate_row(row: InvoiceImportRow, plan_manager_id: UUID) -> Iterator[RowError]:
    """Errors that the schema cannot express."""
    values = row.values
    if values.payee is not UNSET and values.is_reimbursement not in (UNSET, values.payee == "participant"):
        yield RowError(row.line_number, "payee", "must be participant if is_reimbursement is true, otherwise provider")
    if values.plan_manager is not UNSET and normalize_id(values.plan_manager) != str(plan_manager_id):
        yield RowError(row.line_number, "plan_manager", "must be the id of the plan manager that you import into")
    yield from _validate_amounts(row.line_number, "", values)
    items = unset_to_none(values.line_items) or []
    ids = [normalize_id(each.id) for each in items if each.id is not UNSET]
    if len(set(ids)) < len(ids):
        yield RowError(row.line_number, "line_items", "must not contain two lines with the same id")
    for index, item in enumerate(items):
        prefix = f"line_items[{index}]."
        yield from _validate_amounts(row.line_number, prefix, item)
        if message := _paid_amount_error(item):
            yield RowError(row.line_number, f"{prefix}paid_amount", message)
        if (
            item.invoice is not UNSET
            and values.id is not UNSET
            and normalize_id(item.invoice) != normalize_id(values.id)
        ):
            yield RowError(row.line_number, f"{prefix}invoice", "must be the id of the invoice that contains it")


def _paid_amount_error(item: InvoiceLineImport) -> str | None:
    paid, state = unset_to_none(item.paid_amount), "new" if item.claim_status is UNSET else item.claim_status
    if state in _PARTLY_PAID and paid is None:
        return f"is required for a line that is {state}"
    if paid is not None and paid < 0:
        return "must be 0 or more"
    if state in _UNPAID and paid:
        return f"must be empty or 0 for a line that is {state}: the agency has paid nothing for it"
    return None


def _validate_amounts(line_number: int, prefix: str, struct: Struct) -> Iterator[RowError]:
    for name in struct.__struct_fields__:
        value = None if name == "amount" else getattr(struct, name)  # an impossible one is computed
        places = 2 if name == "paid_amount" else MAX_DECIMAL_PLACES  # what was paid is paid out to the cent
        if isinstance(value, Decimal) and not is_amount(value, places):
            yield RowError(line_number, prefix + name, f"must be {describe_amount(places)}")
