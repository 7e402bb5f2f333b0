"""The reconciliation of the money that the office holds, for any two days, and its file."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from msgspec import UnsetType

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import invalid_parameter
from plankeeper.core.files import Download, single_chunk
from plankeeper.core.xlsx import XLSX, Cell, xlsx_chunks
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.payments.reconciliation_schemas import (
    HeldLine,
    LineMoney,
    Reconciliation,
    ReconciliationQuery,
)
from plankeeper.resources.payments.reconciliation_store import list_money

CSV = "text/csv"
_SUMS = ("opening", "received", "paid_out", "returned", "refunded", "repaid", "fees", "closing")
_HEADER = ("kind", "date", "invoice_id", "line_id", "claim_batch_id", "amount")


async def reconcile(ctx: ReadContext, query: ReconciliationQuery) -> Reconciliation:
    """By default, of the current month until today. Raises ValidationError for days in the wrong order."""
    today = datetime.now(ctx.settings.time_zone).date()
    last = today if isinstance(query.last, UnsetType) else query.last
    first = last.replace(day=1) if isinstance(query.first, UnsetType) else query.first
    if last < first:
        raise invalid_parameter("to", "must not be before `from`", "inconsistent")
    settings = await get_settings(ctx.db, ctx.plan_manager_id)
    place = (ctx.db, ctx.plan_manager_id)
    return add_up(first, last, await list_money(*place, first, last, needs_receipts=settings.needs_receipts))


def add_up(first: date, last: date, money: Sequence[LineMoney]) -> Reconciliation:
    """The figures of lines, and the lines whose money is held."""
    sums = {name: sum((getattr(each, name) for each in money), Decimal(0)) for name in _SUMS}
    held = [
        HeldLine(
            invoice_id=each.invoice_id, line_id=each.line_id, claim_batch_id=each.claim_batch_id, amount=each.closing
        )
        for each in money
        if each.closing
    ]
    return Reconciliation(first=first, last=last, lines=held, **sums)


def to_csv(found: Reconciliation) -> Download:
    """A row for each sum, and one for each line whose money is held."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_HEADER)
    writer.writerows(_rows(found))
    content = text.getvalue().encode()
    name = f"reconciliation-{found.first}-{found.last}.csv"
    return Download(name, CSV, len(content), single_chunk(content))


async def _xlsx_chunks(found: Reconciliation) -> AsyncIterator[bytes]:
    async def batches() -> AsyncIterator[list[tuple[Cell, ...]]]:
        yield [*_rows(found)]

    async for chunk in xlsx_chunks(_HEADER, "Reconciliation", batches()):
        if chunk:
            yield chunk


def to_xlsx(found: Reconciliation) -> Download:
    """The same rows as an XLSX file. Its size isn't known before it is written."""
    return Download(f"reconciliation-{found.first}-{found.last}.xlsx", XLSX, None, _xlsx_chunks(found))


def _rows(found: Reconciliation) -> Iterable[tuple[str, date, str, str, str, Decimal]]:
    for name in _SUMS:
        yield name, found.first if name == "opening" else found.last, "", "", "", _cents(getattr(found, name))
    for line in found.lines:
        invoice, line_id, batch = (str(each or "") for each in (line.invoice_id, line.line_id, line.claim_batch_id))
        yield "held", found.last, invoice, line_id, batch, _cents(line.amount)


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"))
