"""Import of account managers. Each is a user, identified by id or by email."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.database.client import Transaction
from plankeeper.resources.account_managers import store
from plankeeper.resources.account_managers.schemas import AccountManagerImport, AccountManagerRow
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    InvalidRowsError,
    RecordUpserter,
    RowError,
    created_or_updated,
    normalize_id,
)
from plankeeper.resources.users.store import get_by_emails
from plankeeper.resources.users.store import upsert as upsert_users

AccountManagerImportRow = ImportRow[AccountManagerImport]


async def _upsert_records(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await upsert_users(tx, plan_manager_id, records)
    await store.upsert(tx, plan_manager_id, records)


_upsert_rows = RecordUpserter(
    record_type=AccountManagerRow,
    select_for_update=store.select_for_update,
    save=_upsert_records,
    get_many=store.get_rows,
    event_type=created_or_updated("account_manager"),
)


async def upsert(ctx: WriteContext, rows: Sequence[AccountManagerImportRow]) -> ImportCounts:
    await _reject_cleared_emails(ctx, rows)
    emails = [row.values.email.lower() for row in rows if row.values.email]
    users = {str(user.email): str(user.id) for user in await get_by_emails(ctx.tx, ctx.plan_manager_id, emails)}
    for row in rows:
        email = unset_to_none(row.values.email)
        if row.values.id is UNSET and email and email.lower() in users:
            row.values.id = users[email.lower()]
    return await _upsert_rows(ctx, rows)


async def _reject_cleared_emails(ctx: WriteContext, rows: Sequence[AccountManagerImportRow]) -> None:
    """Raise InvalidRowsError for rows that clear an email: the user might be a team member with permissions."""
    cleared = {
        normalize_id(row.values.id): row for row in rows if row.values.email is None and unset_to_none(row.values.id)
    }
    existing = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [UUID(each) for each in cleared])
    errors = [
        RowError(cleared[normalize_id(each.id)].line_number, "email", "cannot be cleared")
        for each in existing
        if each.email
    ]
    if errors:
        raise InvalidRowsError(errors)
