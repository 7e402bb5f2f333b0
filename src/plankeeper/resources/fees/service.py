"""The office's own fees: an invoice for each participant whose plan the office managed in a month."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from plankeeper.core.context import Disclosure, WriteContext
from plankeeper.core.dates import Month
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.resources.fees import store
from plankeeper.resources.fees.monthly import FeePlan, invoice_number, last_managed_day, plan_fees
from plankeeper.resources.fees.schemas import MAX_FEES, MAX_LEFT_OUT, MonthFees, NewFee
from plankeeper.resources.invoices import service as invoices
from plankeeper.resources.invoices.schemas import InvoiceBulkItem, InvoiceBulkQuery, LineItemUpdate
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.support_items import store as support_items
from plankeeper.resources.support_items.schemas import SupportItem

SETTINGS_PAGE = "/console/settings/fees"
_MISSING = f"isn't set: an owner can set it in Settings, Fees ({SETTINGS_PAGE})"
_CLAIMS_PAGE = "/console/settings/claims-and-payments"


class OfficeFee(Struct, frozen=True):
    """The support item of the office's fee, and the office's record among the providers."""

    item_number: str
    provider_id: UUID


class StoredFee(Struct):
    """A row of the fees."""

    participant_id: UUID
    month: str
    id: UUID
    created_at: datetime


async def create(ctx: WriteContext, month_text: str, *, is_dry_run: bool = False, limit: int = MAX_FEES) -> MonthFees:
    """Make the fees of a month that don't exist, up to `limit`, or say what would be made.

    The others are left out with the reason `batch_full`: the same request makes them. Raises ValidationError for
    missing settings, and for a month that hasn't ended.
    """
    month = Month.parse(month_text)
    if month.last > ctx.settings.today:
        raise ValidationError(FieldError("month", "must be a month that has ended", "too_large"))
    office = await find_office(ctx)
    if not is_dry_run:
        await store.lock_fees(ctx.tx, ctx.plan_manager_id)
    plan, items = await _make_plan(ctx, office, month, limit)
    if not is_dry_run and plan.fees:
        plan = plan._replace(fees=await _save(ctx, office, month, plan.fees, items))
    shown = [each.participant_id for each in (*plan.fees, *plan.left_out[:MAX_LEFT_OUT])]
    if shown:
        ctx.disclosed.append(Disclosure("listed", "participant", None, f"fees {month.text}", shown))
    return MonthFees(
        month=month.text,
        count=len(plan.fees),
        total=plan.total,
        fees=[*plan.fees],
        left_out=[*plan.left_out[:MAX_LEFT_OUT]],
        left_out_count=len(plan.left_out),
    )


async def find_office(ctx: WriteContext) -> OfficeFee:
    """Raises ValidationError that names the settings that are missing, or the provider that isn't the office."""
    settings = await get_settings(ctx.tx, ctx.plan_manager_id)
    item, provider, abn = settings.fee_item_number, settings.fee_provider_id, settings.abn
    needed = {"fee_item_number": item, "fee_provider_id": provider}
    errors = [FieldError(name, _MISSING, "required") for name, value in needed.items() if not value]
    if not abn:
        message = f"isn't set: an owner can set it in Settings, Claims and payments ({_CLAIMS_PAGE})"
        errors.append(FieldError("abn", message, "required"))
    if item is None or provider is None or abn is None or errors:
        raise ValidationError(*errors)
    if not await store.is_own_provider(ctx.tx, ctx.plan_manager_id, provider, abn):
        message = f"must have the office's ABN: an owner can choose another in Settings, Fees ({SETTINGS_PAGE})"
        raise ValidationError(FieldError("fee_provider_id", message, "inconsistent"))
    return OfficeFee(item, provider)


async def _make_plan(
    ctx: WriteContext, office: OfficeFee, month: Month, limit: int
) -> tuple[FeePlan, dict[date, SupportItem]]:
    """The plan, with the fee's item by day."""
    values = (month.text, month.first, month.last)
    participants = await store.list_candidates(ctx.tx, ctx.plan_manager_id, *values)
    found = (last_managed_day(each, month) for each in participants)
    days = {each for each in found if not isinstance(each, str)}
    in_force = await support_items.get_in_force(ctx.tx, {(office.item_number, each) for each in days})
    items = {day: item for (_, day), item in in_force.items()}
    return plan_fees(participants, month, items, limit), items


async def _save(
    ctx: WriteContext, office: OfficeFee, month: Month, fees: Sequence[NewFee], items: dict[date, SupportItem]
) -> list[NewFee]:
    """Write the invoices, and the rows that make each fee unique."""
    drafts = [_to_invoice(office, month, each, items[each.service_date].name) for each in fees]
    saved = await invoices.save_many(ctx, InvoiceBulkQuery(), drafts)
    now = datetime.now(UTC)
    made = [replace(fee, id=invoice.id) for fee, invoice in zip(fees, saved, strict=True)]
    rows = [
        StoredFee(fee.participant_id, month.text, invoice.id, now) for fee, invoice in zip(fees, saved, strict=True)
    ]
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json(rows))
    return made


def _to_invoice(office: OfficeFee, month: Month, fee: NewFee, item_name: str) -> InvoiceBulkItem:
    line = LineItemUpdate(
        description=f"{item_name}, {month.title}"[:500],
        service_item_number=office.item_number,
        service_date_from=fee.service_date,
        service_date_to=fee.service_date,
        quantity=Decimal(1),
        unit_price=fee.amount,
        total_price=fee.amount,
    )
    return InvoiceBulkItem(
        invoice_number=invoice_number(month, fee.participant_id),
        invoice_date=fee.service_date,
        participant_id=str(fee.participant_id),
        pm_provider_id=str(office.provider_id),
        subtotal=fee.amount,
        tax=Decimal(0),
        total=fee.amount,
        line_items=[line],
    )
