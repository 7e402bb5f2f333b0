"""Bank accounts as encrypted texts, with a keyed hash to find equal ones. The rotation of keys renews both."""

from typing import NamedTuple
from uuid import UUID

from plankeeper.core.encryption.cipher import SecretCipher, encrypting_key_id


class BankAccount(NamedTuple):
    """An account: a BSB of six digits, a number of one to nine digits, and a name in the characters of banks."""

    bsb: str
    number: str
    name: str


class EncryptedAccount(NamedTuple):
    """An account as it is stored: encrypted, and the keyed hash of its BSB and number under the same key."""

    stored: str
    hash: bytes


def encrypt_account(
    cipher: SecretCipher, plan_manager_id: UUID, account: BankAccount, associated_data: bytes
) -> EncryptedAccount:
    """Raises SecretKeyMissingError if there is no key."""
    return encrypt_plaintext(cipher, str(plan_manager_id), "\n".join(account), associated_data)


def encrypt_plaintext(
    cipher: SecretCipher, plan_manager_id: str, plaintext: str, associated_data: bytes
) -> EncryptedAccount:
    """As `encrypt_account`, from the text that `decrypt_account` has decrypted."""
    stored = cipher.encrypt(plaintext, associated_data)
    hashes = _hashes(cipher, plan_manager_id, plaintext)
    return EncryptedAccount(stored, hashes[encrypting_key_id(stored)])


def decrypt_account(cipher: SecretCipher, stored: str, associated_data: bytes) -> BankAccount:
    """Raises SecretKeyMissingError if the key is missing, and SecretDecryptionError for another payee's account."""
    bsb, number, name = cipher.decrypt(stored, associated_data).split("\n")
    return BankAccount(bsb, number, name)


def account_hashes(cipher: SecretCipher, plan_manager_id: UUID, account: BankAccount) -> list[bytes]:
    """The hashes of the account under all keys: during a rotation, stored ones are under either key."""
    return list(_hashes(cipher, str(plan_manager_id), "\n".join(account)).values())


def _hashes(cipher: SecretCipher, plan_manager_id: str, plaintext: str) -> dict[str, bytes]:
    """Those of the BSB and the number, in this plan manager: equal accounts of two offices have different hashes."""
    return cipher.fingerprints("\n".join(("bank account", plan_manager_id.lower(), *plaintext.split("\n")[:2])))
