"""Rules of signing in: roles, passwords, how long to wait after failures, the forms of tokens and codes."""

import hashlib
import hmac
import secrets
import unicodedata
from datetime import timedelta

ROLES = ("viewer", "manager", "owner")  # each may do what those before it may

SESSION_LASTS = timedelta(hours=12)
SECOND_STEP_LASTS = timedelta(minutes=10)
INVITATION_LASTS = timedelta(days=7)

FREE_FAILURES = 2  # failures without a wait
LONGEST_WAIT = 900.0  # seconds; from then on an account counts as locked
FORGOTTEN_AFTER = timedelta(days=1)  # without a failure

SHORTEST, LONGEST = 12, 128  # characters of a password
RECOVERY_CODES = 10
_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike

# Beginnings of those that guessers try first; what follows is mostly digits.
_COMMON = (
    "password", "passw0rd", "p@ssword", "p@ssw0rd", "qwerty", "azerty", "asdfgh", "zxcvbn", "1q2w3e", "qazwsx",
    "letmein", "welcome", "iloveyou", "admin", "administrator", "changeme", "correcthorse", "sunshine", "football",
    "princess", "dragon", "monkey", "superman", "trustno", "plankeeper", "abcdef", "secret", "australia",
)  # fmt: skip
_RUNS = ("abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm")


def may(role: str | None, needed: str) -> bool:
    """Whether a role is enough where another is needed."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(needed)


def fault_of_password(password: str, email: str) -> str | None:
    """What is wrong with a new password, to stand behind its name; null where nothing is."""
    plain = unicodedata.normalize("NFKC", password)
    if not SHORTEST <= len(plain) <= LONGEST:
        return f"must be {SHORTEST} to {LONGEST} characters long"
    lower, account = plain.lower(), email.lower()
    if account in lower or lower in account:
        return "must not be the email address"
    if len(set(lower)) < 5 or _is_common(lower):
        return "is one that is guessed first"
    return None


def _is_common(lower: str) -> bool:
    rest = lower.strip("0123456789!?.,-_#$ ")
    doubled = {run for run in _RUNS if lower in run * 2 or lower[::-1] in run * 2}
    named = any(rest in (each, each * 2) or (rest.startswith(each) and len(rest) < len(each) + 3) for each in _COMMON)
    return bool(doubled) or not rest or named


def as_typed(password: str) -> bytes:
    """The same bytes for the same characters, whatever keyboard and system they come from."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def wait_after(failures: int) -> float:
    """The seconds to wait after so many failures in a row: 1 after the third, twice as long after each further one."""
    if failures <= FREE_FAILURES:
        return 0.0
    return min(2.0 ** min(failures - FREE_FAILURES - 1, 20), LONGEST_WAIT)


def is_locked(failures: int) -> bool:
    return wait_after(failures) >= LONGEST_WAIT


def new_token() -> str:
    """A secret of 256 random bits, for a session or an invitation. Only its hash is kept."""
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> bytes:
    """SHA-256: enough for a secret of that many random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def csrf_of(token: str) -> str:
    """What every form of a session carries; it tells nothing of the session's token."""
    return hmac.digest(token.encode("utf-8", "replace"), b"csrf", "sha256").hex()


def invitation_path(token: str) -> str:
    """The path of the link that an invitation is taken up with."""
    return f"/console/invitations/{token}"


def new_recovery_codes() -> list[str]:
    """Codes of 79 random bits each, such as `abcd-efgh-jkmn-pqrs`. Only their hashes are kept."""
    return ["-".join(_letters(4) for _ in range(4)) for _ in range(RECOVERY_CODES)]


def _letters(count: int) -> str:
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(count))


def recovery_code_of(text: str) -> str:
    """A recovery code as it was given out, however it was typed."""
    letters = "".join(each for each in text.lower() if each in _CODE_LETTERS)
    return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))


def line(text: str, most: int) -> str:
    """A text from outside as one line that can be kept: no control characters, no half characters, not too long."""
    return "".join(each for each in text if unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp"))[:most]
