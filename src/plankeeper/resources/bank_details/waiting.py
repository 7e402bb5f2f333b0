"""What an approver sees of the proposals that wait: names, telephone numbers, and payees with the same account."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.encryption.cipher import SecretDecryptionError
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.resources.bank_details import store
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.schemas import BankDetails, BankDetailsRow, PayeeContact
from plankeeper.resources.bank_details.service import same_account_hashes, summarize
from plankeeper.resources.bank_details.store import PhoneChange

PAGE_SIZE = 50
PHONE_CHANGES_SINCE = timedelta(days=90)
_NIL = UUID(int=0)


class SamePayee(NamedTuple):
    """Another payee with the proposed account."""

    payee: Payee
    name: str
    is_proposed: bool  # whether the account is only proposed for that one, too

    @property
    def text(self) -> str:
        return f"{self.name} ({self.payee.kind}{', proposed' if self.is_proposed else ''})"


class WaitingProposal(NamedTuple):
    """A proposal. `details` are null if the secret key is missing, so that nobody can see what would be approved."""

    row: BankDetailsRow
    name: str
    is_deleted: bool  # whether the payee is in the trash, or deleted
    details: BankDetails | None
    same: Sequence[SamePayee]
    phone_changes: Sequence[PhoneChange]  # before the proposal and since, the oldest first


async def list_waiting(
    db: Executor, settings: Settings, plan_manager_id: UUID, after: UUID = _NIL, limit: int = PAGE_SIZE
) -> list[WaitingProposal]:
    """The proposals that wait for approval, those that have waited longest first."""
    rows = await store.list_waiting(db, plan_manager_id, after, limit)
    return await _describe(db, settings, plan_manager_id, rows) if rows else []


async def get_waiting(
    db: Executor, settings: Settings, plan_manager_id: UUID, proposal_id: UUID
) -> WaitingProposal | None:
    """A proposal that waits for approval; null if it doesn't."""
    row = await store.get_proposal(db, plan_manager_id, proposal_id)
    return (await _describe(db, settings, plan_manager_id, [row]))[0] if row else None


async def _describe(
    db: Executor, settings: Settings, plan_manager_id: UUID, rows: Sequence[BankDetailsRow]
) -> list[WaitingProposal]:
    hashes = {each.payee: _hashes(settings, plan_manager_id, each) for each in rows}
    wanted = [hash_ for each in hashes.values() for hash_ in each]
    same = await store.list_by_hashes(db, plan_manager_id, wanted) if wanted else []
    payees = list({*(each.payee for each in rows), *(Payee(each.kind, each.id) for each in same)})
    contacts = await store.list_contacts(db, plan_manager_id, payees)
    since = datetime.now(UTC) - PHONE_CHANGES_SINCE
    changes = await store.list_phone_changes(db, plan_manager_id, rows, since)
    return [
        WaitingProposal(
            row=row,
            name=_name(contacts, row.payee),
            is_deleted=row.payee not in contacts,
            details=_details(settings, plan_manager_id, row),
            same=[
                SamePayee(payee, _name(contacts, payee), each.is_proposed)
                for each in same
                for payee in [Payee(each.kind, each.id)]
                if each.hash in hashes[row.payee] and payee != row.payee
            ],
            phone_changes=[each for each in changes if each.payee_id == row.payee_id],
        )
        for row in rows
    ]


def _name(contacts: Mapping[Payee, PayeeContact], payee: Payee) -> str:
    if payee not in contacts:
        return f"Deleted {payee.kind}"
    return contacts[payee].name or "No name"


def _hashes(settings: Settings, plan_manager_id: UUID, row: BankDetailsRow) -> list[bytes]:
    try:
        return same_account_hashes(settings, plan_manager_id, row)
    except (SecretKeyMissingError, SecretDecryptionError):
        return []


def _details(settings: Settings, plan_manager_id: UUID, row: BankDetailsRow) -> BankDetails | None:
    try:
        return summarize(settings, plan_manager_id, row)
    except (SecretKeyMissingError, SecretDecryptionError):
        return None
