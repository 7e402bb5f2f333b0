"""Encrypts all stored secrets with the first key."""

from collections import Counter

from plankeeper.database.client import Executor
from plankeeper.encryption import store
from plankeeper.encryption.cipher import SecretCipher, SecretDecryptionError, encrypting_key_id
from plankeeper.encryption.schemas import KeyUsage, StoredSecret
from plankeeper.http.errors import SecretKeyMissingError

_MAX_PASSES = 10


async def encrypt_with_first_key(db: Executor, cipher: SecretCipher) -> int:
    """Encrypt secrets in plain text and secrets of other keys with the first key, and return their number.

    Servers can keep running. Secrets whose key is missing and damaged secrets stay as they are. Raises
    SecretKeyMissingError if there is no key at all.
    """
    key_id, encrypted = cipher.require_key(), 0
    for _ in range(_MAX_PASSES):  # again, because a secret can move from one column to another in the meantime
        secrets = await store.list_with_other_keys(db, key_id)
        results = [await _encrypt(db, cipher, secret) for secret in secrets]
        encrypted += sum(results)
        if not any(results):
            break
    return encrypted


async def count_undecryptable(db: Executor, cipher: SecretCipher) -> list[KeyUsage]:
    """The secrets that stay as they are: their keys are missing, or they are damaged.

    Secrets that servers have stored with an older key of the file in the meantime are not among them.
    """
    secrets = await store.list_with_other_keys(db, cipher.require_key())
    counts = Counter(encrypting_key_id(each.stored) for each in secrets if _decrypt(cipher, each) is None)
    return [KeyUsage(key_id, number) for key_id, number in counts.items()]


async def _encrypt(db: Executor, cipher: SecretCipher, secret: StoredSecret) -> bool:
    """Encrypt a secret with the first key; False if it cannot be decrypted."""
    plaintext = _decrypt(cipher, secret)
    if plaintext is None:
        return False
    await store.replace(db, secret, cipher.encrypt(plaintext, secret.associated_data))
    return True


def _decrypt(cipher: SecretCipher, secret: StoredSecret) -> str | None:
    try:
        return cipher.decrypt(secret.stored, secret.associated_data)
    except (SecretKeyMissingError, SecretDecryptionError):
        return None
