"""Checks invoices against the rules, and keeps what was found."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from plankeeper.events.recorder import record_many
from plankeeper.http.context import Write
from plankeeper.http.schemas import json_text
from plankeeper.invoices import check_store, store
from plankeeper.invoices.check_store import Finding, InvoiceFacts
from plankeeper.invoices.warnings import Facts, Line, counts_as_error, findings

BATCH = 500


async def check(call: Write, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Check invoices; answers those of which something new was found."""
    found = [_finding(call, each) for each in await check_store.fetch(call.tx, call.plan_manager_id, invoice_ids)]
    return await check_store.keep(call.tx, call.plan_manager_id, json_text(found))


async def recheck(call: Write, after: UUID) -> tuple[list[UUID], int]:
    """Check the next batch of all invoices behind `after`, with an event for each change: the ids, the changes."""
    ids = await check_store.ids_after(call.tx, call.plan_manager_id, after, BATCH)
    before = {each.id: each for each in await store.fetch(call.tx, call.plan_manager_id, ids)}
    changed = await check(call, ids)
    after_check = await store.fetch(call.tx, call.plan_manager_id, changed)
    await record_many(call, [("invoice.updated", before[each.id], each) for each in after_check])
    return ids, len(changed)


def _finding(call: Write, each: InvoiceFacts) -> Finding:
    lines = [
        Line(line.quantity, line.unit_price, line.total_price, line.service_item_number, line.is_deleted)
        for line in each.lines
    ]
    known = Facts(
        each.invoice_number, each.invoice_date, each.total, each.tax, each.subtotal, each.participant_status,
        each.plan_start_date, each.plan_end_date, each.provider_exists, each.has_earlier_twin, lines,
    )  # fmt: skip
    codes = findings(known, datetime.now(call.settings.time_zone).date())
    errors = counts_as_error(codes, each.ignored_error_codes)
    return Finding(each.id, errors, codes, "possible_duplicate" in codes)
