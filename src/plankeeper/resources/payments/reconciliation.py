"""The reconciliation of the money that the office holds, for any two days, and its file."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from msgspec import UnsetType

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import invalid_parameter
from plankeeper.core.files import Download, single_chunk
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
    """Raises ValidationError without both days, and if they are in the wrong order."""
    first, last = _require_day(query.first, "from"), _require_day(query.last, "to")
    if last < first:
        raise invalid_parameter("to", "must not be before `from`", "inconsistent")
    settings = await get_settings(ctx.db, ctx.plan_manager_id)
    place = (ctx.db, ctx.plan_manager_id)
    return add_up(first, last, await list_money(*place, first, last, needs_receipts=settings.needs_receipts))


def _require_day(day: date | UnsetType, name: str) -> date:
    if isinstance(day, UnsetType):
        raise invalid_parameter(name, "is required, a day such as 2026-11-01", "required")
    return day


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


def _rows(found: Reconciliation) -> Iterable[tuple[object, ...]]:
    for name in _SUMS:
        day = found.first if name == "opening" else found.last
        yield name, day, "", "", "", f"{getattr(found, name):.2f}"
    for line in found.lines:
        ids = (each or "" for each in (line.invoice_id, line.line_id, line.claim_batch_id))
        yield "held", found.last, *ids, f"{line.amount:.2f}"
