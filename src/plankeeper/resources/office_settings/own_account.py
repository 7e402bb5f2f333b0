"""The number of the office's own account: encrypted, and bound to the plan manager."""

from uuid import UUID

from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.settings import Settings


def encrypt_number(settings: Settings, plan_manager_id: UUID, number: str) -> str:
    """The text to store. Raises SecretKeyMissingError if there is no key."""
    return secret_cipher(settings).encrypt(number, _associated_data(plan_manager_id))


def decrypt_number(settings: Settings, plan_manager_id: UUID, stored: str) -> str:
    """The number in a column of the settings, or of a payment run, which keeps a copy.

    Raises SecretKeyMissingError if its key is missing, and SecretDecryptionError for the number of another office.
    """
    return secret_cipher(settings).decrypt(stored, _associated_data(plan_manager_id))


def _associated_data(plan_manager_id: UUID) -> bytes:
    """As the SQL of the rotation of keys has it."""
    return f"{plan_manager_id}\noffice_settings".encode()
