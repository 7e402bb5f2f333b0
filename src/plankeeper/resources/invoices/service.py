"""Operations on invoices that the API and the console share: create, update, check, ignore warnings."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import asdict, replace
from uuid_utils.compat import uuid7

from plankeeper.core.bulk import existing_ids, find_id_errors, find_matches, in_item_order, item_ids
from plankeeper.core.context import Disclosure, ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import MatchField, external_id_error
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import changed_fields, record_event, record_events
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.changes import Draft, build_draft, to_row, to_saved
from plankeeper.resources.invoices.check_store import CheckResult, IgnoredWarning, InvoiceToCheck
from plankeeper.resources.invoices.reference_store import find as find_references
from plankeeper.resources.invoices.schemas import (
    Invoice,
    InvoiceBulkItem,
    InvoiceBulkQuery,
    InvoiceRow,
    InvoiceUpdate,
    SavedInvoice,
)
from plankeeper.resources.invoices.warnings import find_warnings, has_errors

BATCH_SIZE = 500
CONSTRAINT_ERRORS = {"invoices_external_id_key": external_id_error("invoice")}
MATCH_FIELDS = {"external_id": MatchField("external_id", store.list_by_external_ids)}


async def create(ctx: WriteContext, change: InvoiceUpdate) -> SavedInvoice:
    """Create an invoice. Its participant and its provider are matched by their numbers, if it has no ids."""
    references = await find_references(ctx.tx.reader, ctx.plan_manager_id, [change])
    draft = build_draft(uuid7(), None, change, references, datetime.now(UTC))
    if draft.errors:
        raise ValidationError(*draft.errors)
    [saved] = await _save(ctx, [draft])
    return saved


async def update(ctx: WriteContext, invoice_id: UUID, change: InvoiceUpdate) -> SavedInvoice:
    """Apply the fields that are set; raises NotFound, and DomainError `invoice_locked`."""
    before = or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, invoice_id))
    return await save(ctx, before, change)


async def save(ctx: WriteContext, before: Invoice, change: InvoiceUpdate) -> SavedInvoice:
    """Apply the fields that are set to an invoice that `get_for_update` has returned."""
    references = await find_references(ctx.tx.reader, ctx.plan_manager_id, [change])
    draft = build_draft(before.id, before, change, references, datetime.now(UTC))
    if draft.errors:
        raise ValidationError(*draft.errors)
    if draft.lock:
        raise draft.lock
    [saved] = await _save(ctx, [draft], before.updated_at)
    return saved


async def save_draft(ctx: WriteContext, draft: Draft) -> Invoice:
    """Write an existing invoice that an action has changed, with the event of the action."""
    [saved] = await _save(ctx, [draft], draft.before.updated_at if draft.before else None)
    return Invoice(**{name: getattr(saved, name) for name in Invoice.__struct_fields__})


async def save_many(ctx: WriteContext, query: InvoiceBulkQuery, items: Sequence[InvoiceBulkItem]) -> list[SavedInvoice]:
    """Create or update an invoice for each item, in their order.

    Raises ValidationError with all errors, or DomainError `invoice_locked` about the first locked one.
    """
    if query.match is not UNSET:  # so that two requests don't create an invoice each for the same value
        await store.lock_matches(ctx.tx, ctx.plan_manager_id)
    items, errors = await find_matches(ctx.tx, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "invoice")
    ids = existing_ids(items)
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, ids)
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    errors += find_id_errors(items, set(before), "invoice")
    references, now = await find_references(ctx.tx, ctx.plan_manager_id, items), datetime.now(UTC)
    drafts = [
        build_draft(id_, before.get(id_), item, references, now)
        for item, id_ in zip(items, item_ids(items), strict=True)
    ]
    errors += _item_errors(drafts)
    if errors:
        raise ValidationError(*in_item_order(errors))
    for index, draft in enumerate(drafts):
        if draft.lock:
            detail = f"items[{index}]: {draft.lock.detail}"
            raise DomainError("invoice_locked", detail, resource=draft.lock.resource)
    return await _save(ctx, drafts)


async def find_errors(ctx: ReadContext, query: InvoiceBulkQuery, items: Sequence[InvoiceBulkItem]) -> list[FieldError]:
    """The errors of items without a match, of unknown ids, and of ids that occur twice."""
    items, errors = await find_matches(ctx.db, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "invoice")
    before = {each.id: each for each in await store.get_many(ctx.db, ctx.plan_manager_id, existing_ids(items))}
    references, now = await find_references(ctx.db, ctx.plan_manager_id, items), datetime.now(UTC)
    pairs = zip(items, item_ids(items), strict=True)
    drafts = [build_draft(id_, before.get(id_), item, references, now) for item, id_ in pairs]
    return [*errors, *find_id_errors(items, set(before), "invoice"), *_item_errors(drafts)]


def _item_errors(drafts: Sequence[Draft]) -> list[FieldError]:
    return [
        replace(error, field=f"items[{index}].{error.field}")
        for index, draft in enumerate(drafts)
        for error in draft.errors
    ]


async def _save(ctx: WriteContext, drafts: Sequence[Draft], version: datetime | None = None) -> list[SavedInvoice]:
    """Check and write the invoices that differ, and check those with the same numbers again.

    `version` is that of a single invoice that was read without a lock.
    """
    changed = [each for each in drafts if each.is_changed]
    unchanged = [each.row.id for each in drafts if not each.is_changed]
    ctx.disclosed += [Disclosure("viewed", "invoice", each) for each in unchanged]
    concerning = [each for each in changed if _concerns_others(each)]
    if keys := sorted({key for each in concerning for key in (_number_key(each.before), _number_key(each.row)) if key}):
        await store.lock_similar(ctx.tx, ctx.plan_manager_id, keys)
    saved = await _build_saved(ctx, changed)
    existing = [each.row.id for each in concerning if each.before]
    others = await check_store.list_similar(ctx.tx, ctx.plan_manager_id, existing) if existing else []
    await _write(ctx, changed, saved, version)
    if concerning:  # also for a new invoice: the clock of another server can have given an earlier one a later time
        ids = [each.row.id for each in concerning]
        others += await check_store.list_similar(ctx.tx, ctx.plan_manager_id, ids)
    await recheck_others(ctx, {*others} - {each.row.id for each in changed})
    return [saved.get(each.row.id) or _unchanged(each) for each in drafts]


def _concerns_others(draft: Draft) -> bool:
    """Whether other invoices can get or lose a warning: this one has another number, or is cancelled or reopened."""
    before, after = draft.before, draft.row
    is_reversed = before is not None and (before.cancelled_at is None) != (after.cancelled_at is None)
    return is_reversed or _number_key(before) != _number_key(after)


def _number_key(invoice: Invoice | InvoiceRow | None) -> str | None:
    """The provider and the number that duplicates of an invoice have, or None if it has no duplicates."""
    if invoice is None or invoice.pm_provider_id is None or not (invoice.invoice_number or "").strip():
        return None
    return f"{invoice.pm_provider_id} {invoice.invoice_number}"


async def _build_saved(ctx: WriteContext, drafts: Sequence[Draft]) -> dict[UUID, SavedInvoice]:
    """The invoices with the results of their checks, by id."""
    if not drafts:
        return {}
    rows, lines = to_json([each.row for each in drafts]), to_json([line for each in drafts for line in each.lines])
    results = {each.id: each for each in await check_new(ctx, rows, lines)}
    now = datetime.now(UTC)
    return {
        each.row.id: to_saved(
            each,
            ctx.plan_manager_id,
            results[each.row.id],
            next_updated_at(each.before.updated_at) if each.before else now,
        )
        for each in drafts
    }


def _unchanged(draft: Draft) -> SavedInvoice:
    return SavedInvoice(**asdict(cast("Invoice", draft.before)), matched=draft.matched)


async def _write(
    ctx: WriteContext, drafts: Sequence[Draft], saved: Mapping[UUID, SavedInvoice], version: datetime | None
) -> None:
    records = {each.row.id: _to_record(each.row, saved[each.row.id]) for each in drafts}
    created = [records[each.row.id] for each in drafts if each.before is None]
    updated = [records[each.row.id] for each in drafts if each.before is not None]
    if created:
        await store.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
    if updated:
        await store.update(ctx.tx, ctx.plan_manager_id, to_json(updated), version)
    await store.upsert_lines(ctx.tx, ctx.plan_manager_id, [line for each in drafts for line in each.changed_lines])
    before = [to_row(each.before) for each in drafts if each.before]
    await store.write_counts(ctx.tx, ctx.plan_manager_id, before, [each.row for each in drafts])
    events = [_to_event(each, saved[each.row.id]) for each in drafts]
    if len(events) == 1:  # whose id the console needs for its undo
        await record_event(ctx, *events[0])
    else:
        await record_events(ctx, events)


def _to_record(row: InvoiceRow, saved: SavedInvoice) -> dict[str, Any]:
    return asdict(row) | {
        "errors": saved.errors,
        "error_codes": saved.state_management.errors,
        "is_duplicate": saved.is_duplicate,
        "updated_at": saved.updated_at,
    }


def _to_event(draft: Draft, saved: SavedInvoice) -> tuple[str, Invoice | None, Invoice]:
    """The event of a written invoice: `assigned` if nothing but its account has changed."""
    before, after = draft.before, Invoice(**{name: getattr(saved, name) for name in Invoice.__struct_fields__})
    if before is None:
        return "invoice.created", None, after
    if draft.event_type:
        return draft.event_type, before, after
    is_assignment = changed_fields(before, after).keys() == {"assigned_to"}
    return "invoice.assigned" if is_assignment else "invoice.updated", before, after


async def recheck_others(ctx: WriteContext, invoice_ids: Collection[UUID]) -> None:
    """Check invoices whose number or document a changed one has or had."""
    if not invoice_ids:
        return
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, sorted(invoice_ids))}
    changed = await check(ctx, [*before])
    after = await store.get_many(ctx.tx, ctx.plan_manager_id, changed)
    await record_events(ctx, [("invoice.updated", before[each.id], each) for each in after])


async def check(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Check invoices, and return the ids of those whose result has changed."""
    invoices = await check_store.get_many(ctx.tx, ctx.plan_manager_id, invoice_ids)
    results = [_check_invoice(ctx, each) for each in invoices]
    return await check_store.save_results(ctx.tx, ctx.plan_manager_id, to_json(results))


async def check_new(ctx: WriteContext, invoices: str, lines: str) -> list[CheckResult]:
    """The results of new invoices, or of changed ones before they are stored: lists of InvoiceRow and InvoiceLineRow.

    Other invoices with their numbers must be up to date.
    """
    found = await check_store.get_new(ctx.tx.reader, ctx.plan_manager_id, invoices, lines)
    return [_check_invoice(ctx, each) for each in found]


async def recheck(ctx: WriteContext, after: UUID) -> tuple[list[UUID], int]:
    """Check the batch of invoices that follows the id `after`, and record an event for each change.

    Returns the ids of the batch and the number of changed invoices.
    """
    ids = await check_store.lock_ids_after(ctx.tx, ctx.plan_manager_id, after, BATCH_SIZE)
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    changed = await check(ctx, ids)
    updated = await store.get_many(ctx.tx, ctx.plan_manager_id, changed)
    await record_events(ctx, [("invoice.updated", before[each.id], each) for each in updated])
    return ids, len(changed)


def _check_invoice(ctx: WriteContext, invoice: InvoiceToCheck) -> CheckResult:
    codes = find_warnings(invoice, datetime.now(ctx.settings.time_zone).date())
    errors = has_errors(codes, invoice.ignored_error_codes)
    return CheckResult(invoice.id, errors, codes, "possible_duplicate" in codes)


async def ignore(ctx: WriteContext, invoice_id: UUID, code: str, reason: str) -> bool:
    """Ignore a warning. Returns false if the invoice doesn't have it or it is already ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code in ignored_codes or code not in before.state_management.errors:
        return False
    warning = IgnoredWarning(code, reason, ctx.actor.name or ctx.actor.kind, datetime.now(UTC))
    await check_store.upsert_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, warning)
    await _save_ignored_codes(ctx, "invoice.warning_ignored", before, [*ignored_codes, code])
    return True


async def restore(ctx: WriteContext, invoice_id: UUID, code: str) -> bool:
    """Restore a warning. Returns false if it isn't ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code not in ignored_codes:
        return False
    await check_store.delete_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, code)
    codes = [each for each in ignored_codes if each != code]
    await _save_ignored_codes(ctx, "invoice.warning_restored", before, codes)
    return True


async def select_for_update(ctx: WriteContext, invoice_id: UUID) -> InvoiceRow | None:
    """Lock an invoice until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return rows[0] if rows else None


async def _select_for_update(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """The invoice, locked until the transaction ends; raises NotFound."""
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


async def _save_ignored_codes(ctx: WriteContext, event_type: str, before: Invoice, codes: list[str]) -> None:
    """Store the ignored codes and check the invoice again, because they determine its errors."""
    await check_store.update_ignored_codes(ctx.tx, ctx.plan_manager_id, before.id, codes)
    await check(ctx, [before.id])
    after = await store.get(ctx.tx, ctx.plan_manager_id, before.id)
    await record_event(ctx, event_type, before, after)
