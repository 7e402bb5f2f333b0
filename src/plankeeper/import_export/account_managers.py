"""The merge of account managers: each is a user, known by id or by email."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET

from plankeeper.account_managers import store
from plankeeper.account_managers.schemas import AccountManagerImport, AccountManagerRecord
from plankeeper.database.client import Transaction
from plankeeper.http.context import Write
from plankeeper.http.schemas import given
from plankeeper.import_export.reader import BadLine, Line
from plankeeper.import_export.upsert import BadLines, PlainMerge, Tally, created_or_updated, key, nothing
from plankeeper.users.store import by_emails
from plankeeper.users.store import put as put_users

ManagerLine = Line[AccountManagerImport]


async def _put(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await put_users(tx, plan_manager_id, records)
    await store.put(tx, plan_manager_id, records)


_merge = PlainMerge(
    AccountManagerRecord, store.records_for_update, _put, store.records_for_update,
    created_or_updated("account_manager"), nothing,
)  # fmt: skip


async def merge(call: Write, lines: Sequence[ManagerLine]) -> Tally:
    await _keep_emails(call, lines)
    emails = [line.values.email.lower() for line in lines if line.values.email]
    users = {str(user.email): str(user.id) for user in await by_emails(call.tx, call.plan_manager_id, emails)}
    for line in lines:
        email = given(line.values.email)
        if line.values.id is UNSET and email and email.lower() in users:
            line.values.id = users[email.lower()]
    return await _merge(call, lines)


async def _keep_emails(call: Write, lines: Sequence[ManagerLine]) -> None:
    """An email, once known, cannot be cleared: its user may be on a team, with permissions."""
    clearing = {key(line.values.id): line for line in lines if line.values.email is None and given(line.values.id)}
    known = await store.records_for_update(call.tx, call.plan_manager_id, [UUID(each) for each in clearing])
    faults = [BadLine(clearing[key(each.id)].number, "email", "cannot be cleared") for each in known if each.email]
    if faults:
        raise BadLines(faults)
