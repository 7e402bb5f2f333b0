"""The reconciliation of the money that the office holds, for any two days, and its file."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date, datetime
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
CSV_HEADER = ("kind", "date", "invoice_id", "line_id", "claim_batch_id", "amount")


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
    writer.writerow(CSV_HEADER)
    writer.writerows(csv_sums(found))
    writer.writerows(csv_line(found, each) for each in found.lines)
    content = text.getvalue().encode()
    return Download(csv_name(found), CSV, len(content), single_chunk(content))


def csv_name(found: Reconciliation) -> str:
    return f"reconciliation-{found.first}-{found.last}.csv"


def csv_sums(found: Reconciliation) -> Iterable[tuple[object, ...]]:
    """The rows of the sums."""
    for name in _SUMS:
        day = found.first if name == "opening" else found.last
        yield name, day, "", "", "", f"{getattr(found, name):.2f}"


def csv_line(found: Reconciliation, line: HeldLine) -> tuple[object, ...]:
    """The row of a line whose money is held."""
    ids = (each or "" for each in (line.invoice_id, line.line_id, line.claim_batch_id))
    return "held", found.last, *ids, f"{line.amount:.2f}"
