"""Bank accounts as they are stored: encrypted, and bound to their payee."""

from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.settings import Settings

PayeeKind = Literal["provider", "participant"]


class Payee(NamedTuple):
    """Who gets payments: a provider, or a participant for reimbursements."""

    kind: PayeeKind
    id: UUID


class BankAccount(NamedTuple):
    """An account: six digits, one to nine digits, and a name in the characters of banks."""

    bsb: str
    number: str
    name: str


def encrypt_account(settings: Settings, plan_manager_id: UUID, payee: Payee, account: BankAccount) -> str:
    """The text to store. Raises SecretKeyMissingError if there is no key."""
    return secret_cipher(settings).encrypt("\n".join(account), associated_data(plan_manager_id, payee))


def decrypt_account(settings: Settings, plan_manager_id: UUID, payee: Payee, stored: str) -> BankAccount:
    """The account of a stored text.

    Raises SecretKeyMissingError if its key is missing, and SecretDecryptionError for the account of another payee.
    """
    text = secret_cipher(settings).decrypt(stored, associated_data(plan_manager_id, payee))
    bsb, number, name = text.split("\n")
    return BankAccount(bsb, number, name)


def associated_data(plan_manager_id: UUID, payee: Payee) -> bytes:
    """What an account is bound to, as the SQL of the rotation of keys has it."""
    return "\n".join((str(plan_manager_id), payee.kind, str(payee.id))).encode()
