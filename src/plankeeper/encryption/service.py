"""Encrypts all stored secrets with the first key."""

from plankeeper.database.client import Executor
from plankeeper.encryption import store
from plankeeper.encryption.cipher import SecretCipher, SecretDecryptionError
from plankeeper.encryption.schemas import StoredSecret
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


async def _encrypt(db: Executor, cipher: SecretCipher, secret: StoredSecret) -> bool:
    """Encrypt a secret with the first key; False if it cannot be decrypted."""
    try:
        plaintext = cipher.decrypt(secret.stored, secret.associated_data)
    except (SecretKeyMissingError, SecretDecryptionError):
        return False
    await store.replace(db, secret, cipher.encrypt(plaintext, secret.associated_data))
    return True
