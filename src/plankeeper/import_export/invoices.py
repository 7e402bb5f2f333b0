"""The merge of invoices: their lines come with them, and each is checked, with those that have its number."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct
from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_many
from plankeeper.http.context import Write
from plankeeper.http.schemas import given, json_text
from plankeeper.import_export.reader import BadLine, Line
from plankeeper.import_export.upsert import BadLines, Tally, by_id, key, merged, now_created
from plankeeper.invoices import check_store, store
from plankeeper.invoices.checks import check
from plankeeper.invoices.schemas import InvoiceImport, InvoiceRecord, InvoiceWithLines, LineImport, LineRecord

InvoiceLine = Line[InvoiceImport]

_MOST = Decimal(10) ** 12
_FINEST = -10  # decimal places


async def merge(call: Write, lines: Sequence[InvoiceLine]) -> Tally:
    faults = [fault for line in lines for fault in _faults(line, call.plan_manager_id)]
    if faults:
        raise BadLines(faults)
    ids = [str(uuid7()) if line.values.id is UNSET else key(line.values.id) for line in lines]
    old = by_id(await store.records_for_update(call.tx, call.plan_manager_id, ids))
    numbered = [UUID(each) for each in ids]
    touched = {*numbered, *await check_store.twins(call.tx, call.plan_manager_id, numbered)}
    before = by_id(await store.fetch(call.tx, call.plan_manager_id, sorted(touched)))
    records = [_record(line, id_, old.get(id_)) for line, id_ in zip(lines, ids, strict=True)]
    await store.put(call.tx, call.plan_manager_id, json_text(records))
    await _put_lines(call, lines, records, before)
    new = {*await check_store.twins(call.tx, call.plan_manager_id, numbered)} - touched
    before |= by_id(await store.fetch(call.tx, call.plan_manager_id, sorted(new)))
    touched |= new
    await check(call, sorted(touched))
    after = await store.fetch(call.tx, call.plan_manager_id, sorted(touched))
    known = {id_: each for id_, each in before.items() if id_ in old or id_ not in ids}
    pairs = [(known.get(key(each.id)), each) for each in after]
    await record_many(call, [("invoice.updated" if was else "invoice.created", was, each) for was, each in pairs])
    changed = [each.id for was, each in pairs if key(each.id) in old and was != each]
    await store.touch(call.tx, call.plan_manager_id, changed)
    return Tally(len(lines) - len(old), len(changed), len(old) - len(changed))


def _record(line: InvoiceLine, id_: str, old: InvoiceRecord | None) -> InvoiceRecord:
    known: dict[str, Any] = {"id": id_}
    state = given(line.values.state_management)
    if state is not None and state.ignored_errors is not UNSET:
        known["ignored_error_codes"] = state.ignored_errors
    return merged(InvoiceRecord, line, known, old, now_created)


async def _put_lines(
    call: Write, lines: Sequence[InvoiceLine], records: Sequence[InvoiceRecord], before: Mapping[str, InvoiceWithLines]
) -> None:
    """The lines of an invoice are replaced as a whole, where the file has any word of them."""
    made = {key(item.id): item.created_at for invoice in before.values() for item in invoice.line_items}
    told = [(line, record) for line, record in zip(lines, records, strict=True) if line.values.line_items is not UNSET]
    await store.remove_lines(call.tx, call.plan_manager_id, [record.id for _, record in told])
    items = [
        _line(item, position, record, made)
        for line, record in told
        for position, item in enumerate(given(line.values.line_items) or [])
    ]
    await store.insert_lines(call.tx, call.plan_manager_id, json_text(items))


def _line(item: LineImport, position: int, invoice: InvoiceRecord, made: Mapping[str, datetime]) -> LineRecord:
    sent: dict[str, Any] = {
        name: value for name in item.__struct_fields__ if (value := getattr(item, name)) is not UNSET
    }
    sent.pop("invoice", None)
    defaults: dict[str, Any] = {"id": uuid7(), "created_at": made.get(key(item.id)) or datetime.now(UTC)}
    return LineRecord(**(defaults | sent), invoice_id=invoice.id, position=position)


def _faults(line: InvoiceLine, plan_manager_id: UUID) -> Iterator[BadLine]:
    """What the shape alone cannot tell."""
    values = line.values
    if values.plan_manager is not UNSET and key(values.plan_manager) != str(plan_manager_id):
        yield BadLine(line.number, "plan_manager", "must be the plan manager of --plan-manager")
    yield from _amount_faults(line.number, "", values)
    for index, item in enumerate(given(values.line_items) or []):
        place = f"line_items[{index}]."
        yield from _amount_faults(line.number, place, item)
        if item.invoice is not UNSET and values.id is not UNSET and key(item.invoice) != key(values.id):
            yield BadLine(line.number, f"{place}invoice", "must be the id of the invoice that it stands in")


def _amount_faults(number: int, place: str, shape: Struct) -> Iterator[BadLine]:
    for name in shape.__struct_fields__:
        value = getattr(shape, name)
        if isinstance(value, Decimal) and not _is_amount(value):
            yield BadLine(number, place + name, "must be a number below 10^12 with at most 10 decimal places")


def _is_amount(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= _FINEST and value.copy_abs() < _MOST
