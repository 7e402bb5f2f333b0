"""The settings of plan managers in SQL. A plan manager without a row has the usual ones."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.core.json import to_json
from plankeeper.database.client import Executor, Transaction
from plankeeper.resources.invoices.warnings import CodeLevel
from plankeeper.resources.office_settings.schemas import OfficeSettings


class SettingsRow(Struct):
    """The stored settings."""

    warning_levels: list[CodeLevel]
    duplicates_need_participant: bool
    approval_reminder_days: int | None
    approval_automatic_days: int | None
    days_to_claim: int
    days_to_pay: int
    updated_at: datetime


GET = """
    select warning_levels::json as warning_levels, duplicates_need_participant, approval_reminder_days,
        approval_automatic_days, days_to_claim, days_to_pay, updated_at
    from office_settings
    where plan_manager_id = $1
"""


async def get(db: Executor, plan_manager_id: UUID) -> OfficeSettings:
    """The settings of a plan manager."""
    row = await db.one_or_none(SettingsRow, GET, plan_manager_id)
    if row is None:
        return OfficeSettings(id=plan_manager_id)
    return OfficeSettings(
        id=plan_manager_id,
        warning_levels={each.code: each.level for each in row.warning_levels},
        duplicates_need_participant=row.duplicates_need_participant,
        approval_reminder_days=row.approval_reminder_days,
        approval_automatic_days=row.approval_automatic_days,
        days_to_claim=row.days_to_claim,
        days_to_pay=row.days_to_pay,
        updated_at=row.updated_at,
    )


LOCK = "select pg_advisory_xact_lock(hashtextextended('office settings ' || $1::uuid::text, 0))"


async def get_for_update(tx: Transaction, plan_manager_id: UUID) -> OfficeSettings:
    """The settings, which nobody else can change until the transaction ends."""
    await tx.execute(LOCK, plan_manager_id)
    return await get(tx, plan_manager_id)


UPSERT = """
    insert into office_settings (
        plan_manager_id, warning_levels, duplicates_need_participant, approval_reminder_days, approval_automatic_days,
        days_to_claim, days_to_pay, updated_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (plan_manager_id) do update set
        warning_levels = excluded.warning_levels, updated_at = excluded.updated_at,
        duplicates_need_participant = excluded.duplicates_need_participant,
        approval_reminder_days = excluded.approval_reminder_days,
        approval_automatic_days = excluded.approval_automatic_days,
        days_to_claim = excluded.days_to_claim, days_to_pay = excluded.days_to_pay
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, settings: OfficeSettings) -> None:
    levels = to_json([CodeLevel(*each) for each in settings.warning_levels.items()])
    days = (settings.approval_reminder_days, settings.approval_automatic_days)
    standard = (settings.days_to_claim, settings.days_to_pay)
    values = (levels, settings.duplicates_need_participant, *days, *standard, settings.updated_at)
    await tx.execute(UPSERT, plan_manager_id, *values)
