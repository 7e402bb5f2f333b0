"""Bank accounts of payees, bound to them: the stored account of another payee can't be decrypted as theirs."""

from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.core.encryption import bank_accounts
from plankeeper.core.encryption.bank_accounts import BankAccount, EncryptedAccount
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.settings import Settings

PayeeKind = Literal["provider", "participant"]


class Payee(NamedTuple):
    """Who gets payments: a provider, or a participant for reimbursements."""

    kind: PayeeKind
    id: UUID


def encrypt_account(settings: Settings, plan_manager_id: UUID, payee: Payee, account: BankAccount) -> EncryptedAccount:
    """Raises SecretKeyMissingError if there is no key."""
    data = _associated_data(plan_manager_id, payee)
    return bank_accounts.encrypt_account(secret_cipher(settings), plan_manager_id, account, data)


def decrypt_account(settings: Settings, plan_manager_id: UUID, payee: Payee, stored: str) -> BankAccount:
    """The account in a column of `bank_details`, or of a payment, which keeps a copy.

    Raises SecretKeyMissingError if its key is missing, and SecretDecryptionError if it is that of another payee.
    """
    data = _associated_data(plan_manager_id, payee)
    return bank_accounts.decrypt_account(secret_cipher(settings), stored, data)


def account_hashes(settings: Settings, plan_manager_id: UUID, account: BankAccount) -> list[bytes]:
    """The hashes by which other payees with the same account are found."""
    return bank_accounts.account_hashes(secret_cipher(settings), plan_manager_id, account)


def _associated_data(plan_manager_id: UUID, payee: Payee) -> bytes:
    """As the SQL of the rotation of keys has it."""
    return "\n".join((str(plan_manager_id), payee.kind, str(payee.id))).encode()
