"""The reconciliation of the money that the office holds, for any two days, and its file."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import date
from decimal import Decimal

from msgspec import UnsetType

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import invalid_parameter
from plankeeper.core.files import Download
from plankeeper.core.formatting import CENT
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
_NAMES = ("name", "provider", "participant")  # of a line, in files for people
Row = tuple[Cell, ...]


async def reconcile(ctx: ReadContext, query: ReconciliationQuery) -> Reconciliation:
    """By default, of the current month until today. Raises ValidationError for days in the wrong order."""
    today = ctx.settings.today
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
    writer.writerow(file_header())
    writer.writerows(file_rows(found))
    return to_file(found, CSV, text.getvalue().encode())


def to_file(found: Reconciliation, media_type: str, content: bytes) -> Download:
    return Download.of_bytes(_file_name(found, "csv"), media_type, content)


def to_xlsx(found: Reconciliation, rows: Iterable[Row], *, has_names: bool = False) -> Download:
    """Rows of `file_rows` as an XLSX file. Its size isn't known before it is written."""

    async def batches() -> AsyncIterator[list[Row]]:
        yield [*rows]

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in xlsx_chunks(file_header(has_names=has_names), "Reconciliation", batches()):
            if chunk:
                yield chunk

    return Download(_file_name(found, "xlsx"), XLSX, chunks())


def _file_name(found: Reconciliation, ending: str) -> str:
    return f"reconciliation-{found.first}-{found.last}.{ending}"


def file_header(*, has_names: bool = False) -> Sequence[str]:
    return _HEADER + _NAMES if has_names else _HEADER


def file_rows(found: Reconciliation, names: Sequence[tuple[str, str, str]] | None = None) -> Iterable[Row]:
    """A row for each sum, and one for each line whose money is held, which has its `names` if they are given."""
    rest = ("", "", "") if names is not None else ()
    for name in _SUMS:
        day = found.first if name == "opening" else found.last
        yield name, day, "", "", "", _cents(getattr(found, name)), *rest
    for number, line in enumerate(found.lines):
        ids = (str(each or "") for each in (line.invoice_id, line.line_id, line.claim_batch_id))
        yield "held", found.last, *ids, _cents(line.amount), *(names[number] if names is not None else ())


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT)
