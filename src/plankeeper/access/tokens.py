"""Random secrets and their hashes: tokens of sessions, invitations and forms, and recovery codes."""

import hashlib
import hmac
import secrets

RECOVERY_CODE_COUNT = 10
_CODE_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without letters and digits that look alike


def new_token() -> str:
    """A secret of 256 random bits. The database stores only its hash."""
    return secrets.token_urlsafe(32)


def hash_token(secret: str) -> bytes:
    """SHA-256, which is sufficient for a long random secret; a password needs a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def csrf_token(session_token: str) -> str:
    """The CSRF token of a session's forms. The session's token can't be derived from it."""
    return hmac.digest(session_token.encode("utf-8", "replace"), b"csrf", "sha256").hex()


def new_recovery_codes() -> list[str]:
    """Codes of 79 random bits each, such as `abcd-efgh-jkmn-pqrs`. The database stores only their hashes."""
    return ["-".join(_random_letters(4) for _ in range(4)) for _ in range(RECOVERY_CODE_COUNT)]


def parse_recovery_code(text: str) -> str:
    """Normalise a typed recovery code: case, spaces and hyphens don't matter."""
    letters = "".join(letter for letter in text.lower() if letter in _CODE_ALPHABET)
    return "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(_CODE_ALPHABET) for _ in range(count))
