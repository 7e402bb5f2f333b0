"""Ignored warnings in SQL, with user and reason, and the names for the pages of invoices."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID, in_array


class IgnoredWarning(Struct):
    """A warning that a user has ignored. Warnings that an import marks as ignored have no such row."""

    error_code: str
    reason: str
    ignored_by: str
    ignored_at: datetime


LIST_FOR_INVOICE = """
    select error_code, reason, ignored_by, ignored_at
    from invoice_ignored_warnings
    where plan_manager_id = $1 and invoice_id = $2
    order by ignored_at, error_code
"""


async def list_for_invoice(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> list[IgnoredWarning]:
    return await db.rows(IgnoredWarning, LIST_FOR_INVOICE, plan_manager_id, invoice_id)


UPSERT = """
    insert into invoice_ignored_warnings (plan_manager_id, invoice_id, error_code, reason, ignored_by, ignored_at)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (plan_manager_id, invoice_id, error_code) do update set
        reason = excluded.reason, ignored_by = excluded.ignored_by, ignored_at = excluded.ignored_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, warning: IgnoredWarning) -> None:
    """Insert an ignored warning, or replace one that an import has restored in the meantime."""
    await tx.execute(
        UPSERT, plan_manager_id, invoice_id, warning.error_code, warning.reason, warning.ignored_by, warning.ignored_at
    )


DELETE = "delete from invoice_ignored_warnings where plan_manager_id = $1 and invoice_id = $2 and error_code = $3"


async def delete(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, error_code: str) -> None:
    await tx.execute(DELETE, plan_manager_id, invoice_id, error_code)


UPDATE_IGNORED_CODES = """
    update invoices set ignored_error_codes = $3, updated_at = statement_timestamp()
    where plan_manager_id = $1 and id = $2
"""


async def update_ignored_codes(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, codes: Sequence[str]) -> None:
    """Set the ignored codes of an invoice. The caller checks the invoice afterwards."""
    await tx.execute(UPDATE_IGNORED_CODES, plan_manager_id, invoice_id, codes)


class DisplayName(Struct):
    """A participant or a provider with its display name; null if it has none."""

    id: UUID
    name: str | None


GET_DISPLAY_NAMES = f"""
    select id, nullif(btrim(concat_ws(' ', first_name, last_name)), '') as name
    from participants where plan_manager_id = $1 and {HAS_ID}
    union all
    select id, nullif(btrim(entity_name), '') as name
    from providers where plan_manager_id = $1 and {in_array("id", "$3::uuid[]")}
"""


async def get_display_names(
    db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID], provider_ids: Sequence[UUID]
) -> list[DisplayName]:
    """The names for these ids; unknown ids are ignored."""
    return await db.rows(DisplayName, GET_DISPLAY_NAMES, plan_manager_id, participant_ids, provider_ids)
