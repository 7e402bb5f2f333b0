"""Changes of the settings of a plan manager."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec.structs import asdict, replace

from plankeeper.core.context import WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import changed_fields, is_changed, record_event
from plankeeper.resources import recheck_queue
from plankeeper.resources.bank_details.bank_text import account_ending
from plankeeper.resources.invoices.warnings import WARNINGS, Level
from plankeeper.resources.office_settings import store
from plankeeper.resources.office_settings.own_account import decrypt_number, encrypt_number
from plankeeper.resources.office_settings.parsers import ParsedSettings
from plankeeper.resources.office_settings.schemas import AccountChange, OfficeSettings

# The settings that the checks of invoices use. A change checks all open invoices again in the background.
CHECKED_SETTINGS = {"warning_levels", "duplicates_need_participant", "prices_include_gst"}
# Those that claims use. Lines can have been left out of claims because they were missing.
CLAIM_SETTINGS = {"registration_number", "prices_include_gst"}


async def set_warnings(ctx: WriteContext, levels: Mapping[str, Level], *, duplicates_need_participant: bool) -> bool:
    """Set the levels of warnings. Returns false, and does nothing, if none of them has changed."""
    different = {code: level for code, level in levels.items() if level != WARNINGS[code].level}
    return await set_values(
        ctx, {"warning_levels": different, "duplicates_need_participant": duplicates_need_participant}
    )


async def set_statements(ctx: WriteContext, values: Mapping[str, Any]) -> bool:
    """Set the day of the monthly run, and what statements say. Returns false if nothing is different."""
    before = await store.get_for_update(ctx.tx, ctx.plan_manager_id)
    set_on, day = before.statement_day_set_on, values["statement_day"]
    if day != before.statement_day:
        set_on = ctx.settings.today if day else None
    return await set_values(ctx, {**values, "statement_day_set_on": set_on})


async def set_claims_and_payments(ctx: WriteContext, parsed: ParsedSettings) -> bool:
    """Set the data for claim files and for the bank's files. Without a BSB, the account is removed.

    Returns false, and does nothing, if nothing is different.
    """
    before = await store.get_for_update(ctx.tx, ctx.plan_manager_id)
    values, number = dict(parsed.values), parsed.account_number
    is_other = number is not None and number != await get_account_number(ctx.tx, ctx.settings, ctx.plan_manager_id)
    if values["bank_bsb"] is None:
        values["bank_account_ending"] = None
    elif number:
        values["bank_account_ending"] = account_ending(number)
    is_different = await set_values(ctx, values, is_other_account=is_other)
    if is_other or (before.bank_account_ending and values["bank_bsb"] is None):
        stored = encrypt_number(ctx.settings, ctx.plan_manager_id, number) if number else None
        await store.set_account(ctx.tx, ctx.plan_manager_id, stored)
    return is_different


async def get_account_number(db: Executor, settings: Settings, plan_manager_id: UUID) -> str | None:
    """The number of the office's account, decrypted. Raises SecretKeyMissingError."""
    stored = await store.get_account(db, plan_manager_id)
    return decrypt_number(settings, plan_manager_id, stored) if stored else None


async def set_values(ctx: WriteContext, values: Mapping[str, Any], *, is_other_account: bool = False) -> bool:
    """Set some settings by name. Returns false, and does nothing, if none is different."""
    before = await store.get_for_update(ctx.tx, ctx.plan_manager_id)
    after = replace(before, **values)
    if not is_changed(before, after) and not is_other_account:
        return False
    after.updated_at = next_updated_at(before.updated_at)
    await store.upsert(ctx.tx, ctx.plan_manager_id, after)
    changed = changed_fields(before, after).keys()
    if CHECKED_SETTINGS & changed:
        await recheck_queue.enqueue_all(ctx.tx, ctx.plan_manager_id)
    if CLAIM_SETTINGS & changed:
        await recheck_queue.enqueue_flagged(ctx)
    if is_other_account:  # the last digits can be the same
        before, after = _with_account_change(before, changed=False), _with_account_change(after, changed=True)
    await record_event(ctx, "plan_manager.updated", before, after)
    return True


def _with_account_change(settings: OfficeSettings, *, changed: bool) -> AccountChange:
    fields: dict[str, Any] = asdict(settings)
    return AccountChange(**fields, bank_account_changed=changed)
