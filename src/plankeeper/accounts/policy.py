"""Rules of signing in: roles, passwords, how long to wait after failures, the forms of tokens and codes."""

import hashlib
import hmac
import secrets
import unicodedata
from datetime import timedelta

ROLES = ("viewer", "manager", "owner")  # each may do what those before it may

SESSION_LIFETIME = timedelta(hours=12)
TWO_FACTOR_LIFETIME = timedelta(minutes=10)
INVITATION_LIFETIME = timedelta(days=7)

FREE_FAILURES = 2  # failures without a wait
MAX_WAIT = 900.0  # seconds; from then on an account counts as locked
FAILURES_EXPIRE_AFTER = timedelta(days=1)  # without a failure

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 12, 128  # characters of a password
RECOVERY_CODE_COUNT = 10
_CODE_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike

# Beginnings of those that guessers try first; what follows is mostly digits.
_COMMON_PREFIXES = (
    "password",
    "passw0rd",
    "p@ssword",
    "p@ssw0rd",
    "qwerty",
    "azerty",
    "asdfgh",
    "zxcvbn",
    "1q2w3e",
    "qazwsx",
    "letmein",
    "welcome",
    "iloveyou",
    "admin",
    "administrator",
    "changeme",
    "correcthorse",
    "sunshine",
    "football",
    "princess",
    "dragon",
    "monkey",
    "superman",
    "trustno",
    "plankeeper",
    "abcdef",
    "secret",
    "australia",
)
_COMMON_SEQUENCES = ("abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm")


def is_role_at_least(role: str | None, minimum: str) -> bool:
    """Whether a role is enough where another is needed."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(minimum)


def validate_password(password: str, email: str) -> str | None:
    """What is wrong with a new password, to stand behind its name; null where nothing is."""
    normalized = unicodedata.normalize("NFKC", password)
    if not MIN_PASSWORD_LENGTH <= len(normalized) <= MAX_PASSWORD_LENGTH:
        return f"must be {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters long"
    lower_password, lower_email = normalized.lower(), email.lower()
    if lower_email in lower_password or lower_password in lower_email:
        return "must not be the email address"
    if len(set(lower_password)) < 5 or _is_common(lower_password):
        return "is one that is guessed first"
    return None


def _is_common(lower: str) -> bool:
    stem = lower.strip("0123456789!?.,-_#$ ")
    sequences = {run for run in _COMMON_SEQUENCES if lower in run * 2 or lower[::-1] in run * 2}
    has_common_prefix = any(
        stem in (each, each * 2) or (stem.startswith(each) and len(stem) < len(each) + 3) for each in _COMMON_PREFIXES
    )
    return bool(sequences) or not stem or has_common_prefix


def encode_password(password: str) -> bytes:
    """The same bytes for the same characters, whatever keyboard and system they come from."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def login_delay(failures: int) -> float:
    """The seconds to wait after so many failures in a row: 1 after the third, twice as long after each further one."""
    if failures <= FREE_FAILURES:
        return 0.0
    return min(2.0 ** min(failures - FREE_FAILURES - 1, 20), MAX_WAIT)


def is_locked(failures: int) -> bool:
    return login_delay(failures) >= MAX_WAIT


def new_token() -> str:
    """A secret of 256 random bits, for a session or an invitation. Only its hash is kept."""
    return secrets.token_urlsafe(32)


def hash_token(secret: str) -> bytes:
    """SHA-256: enough for a secret of that many random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def csrf_token(token: str) -> str:
    """What every form of a session carries; it tells nothing of the session's token."""
    return hmac.digest(token.encode("utf-8", "replace"), b"csrf", "sha256").hex()


def invitation_path(token: str) -> str:
    """The path of the link that an invitation is taken up with."""
    return f"/console/invitations/{token}"


def new_recovery_codes() -> list[str]:
    """Codes of 79 random bits each, such as `abcd-efgh-jkmn-pqrs`. Only their hashes are kept."""
    return ["-".join(_random_letters(4) for _ in range(4)) for _ in range(RECOVERY_CODE_COUNT)]


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(_CODE_ALPHABET) for _ in range(count))


def parse_recovery_code(text: str) -> str:
    """A recovery code as it was given out, however it was typed."""
    letters = "".join(each for each in text.lower() if each in _CODE_ALPHABET)
    return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))


def single_line(text: str, max_length: int) -> str:
    """A text from outside as one line that can be kept: no control characters, no half characters, not too long."""
    return "".join(each for each in text if unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp"))[:max_length]
