"""The settings of plan managers in SQL. A plan manager without a row has the usual ones."""

from typing import Any, LiteralString
from uuid import UUID

from msgspec import Struct
from msgspec.structs import asdict

from plankeeper.core.json import to_json
from plankeeper.database.client import Executor, Transaction
from plankeeper.resources.invoices.warnings import CodeLevel
from plankeeper.resources.office_settings.schemas import OfficeSettings, SettingsRow

COLUMNS: LiteralString = """
    duplicates_need_participant, approval_reminder_days, approval_automatic_days, days_to_claim, days_to_pay,
    registration_number, abn, prices_include_gst, result_tolerance, days_until_claim_is_late, needs_receipts,
    bank_letters, bank_bsb, bank_account_ending, bank_account_name, direct_entry_user_id, direct_entry_user_name,
    direct_entry_description, remitter, has_balancing_record, group_payments_by, max_payments_in_file,
    needs_second_person, statement_day, statement_day_set_on, statement_email, statement_phone, statement_dispute,
    fee_item_number, fee_provider_id, updated_at
"""

GET = f"""
    select {COLUMNS}, warning_levels::json as warning_levels from office_settings where plan_manager_id = $1
"""


async def get(db: Executor, plan_manager_id: UUID) -> OfficeSettings:
    """The settings of a plan manager."""
    row = await db.one_or_none(SettingsRow, GET, plan_manager_id)
    if row is None:
        return OfficeSettings(id=plan_manager_id)
    levels = {each.code: each.level for each in row.warning_levels}
    values: dict[str, Any] = asdict(row) | {"id": plan_manager_id, "warning_levels": levels}
    return OfficeSettings(**values)


LOCK = "select pg_advisory_xact_lock(hashtextextended('office settings ' || $1::uuid::text, 0))"


async def get_for_update(tx: Transaction, plan_manager_id: UUID) -> OfficeSettings:
    """The settings, which nobody else can change until the transaction ends."""
    await tx.execute(LOCK, plan_manager_id)
    return await get(tx, plan_manager_id)


UPSERT = f"""
    insert into office_settings (plan_manager_id, {COLUMNS}, warning_levels)
    select $1, {COLUMNS}, warning_levels from json_populate_record(null::office_settings, $2)
    on conflict (plan_manager_id) do update set ({COLUMNS}, warning_levels) = (
        select {COLUMNS}, warning_levels from (select excluded.*) written
    )
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, settings: OfficeSettings) -> None:
    levels = [CodeLevel(*each) for each in settings.warning_levels.items()]
    await tx.execute(UPSERT, plan_manager_id, to_json(asdict(settings) | {"warning_levels": levels}))


class OwnAccount(Struct):
    """The number of the office's account, encrypted; null if it isn't set."""

    bank_account: str | None


GET_ACCOUNT = "select bank_account from office_settings where plan_manager_id = $1"


async def get_account(db: Executor, plan_manager_id: UUID) -> str | None:
    """The number of the office's account, encrypted: see `own_account`."""
    row = await db.one_or_none(OwnAccount, GET_ACCOUNT, plan_manager_id)
    return row.bank_account if row else None


SET_ACCOUNT = "update office_settings set bank_account = $2 where plan_manager_id = $1"


async def set_account(tx: Transaction, plan_manager_id: UUID, stored: str | None) -> None:
    """Write the encrypted number of the office's account. Its ending is written with the settings."""
    await tx.execute(SET_ACCOUNT, plan_manager_id, stored)
