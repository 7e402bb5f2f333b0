"""Sign-in policy: roles, lifetimes and delays after failed attempts."""

import unicodedata
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Literal, get_args

from plankeeper.core.formatting import single_line

ROLES = ("viewer", "manager", "owner")  # each role includes the permissions of the roles before it

# What a manager may do beyond the role. Owners may do all of it, viewers none.
Permission = Literal["make_claims", "make_payments", "approve_bank_details", "override_blocks"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
PERMISSION_LABELS: Mapping[Permission, str] = {
    "make_claims": "Make claims",
    "make_payments": "Make payments",
    "approve_bank_details": "Approve bank details",
    "override_blocks": "Ignore blocking warnings",
}
SCOPE_PERMISSIONS: Mapping[str, Permission] = {
    "claims": "make_claims",
    "payments": "make_payments",
}  # to create an API key with these scopes

SESSION_LIFETIME = timedelta(hours=12)
SESSION_IDLE_TIMEOUT = timedelta(minutes=60)
TWO_FACTOR_LIFETIME = timedelta(minutes=10)
INVITATION_LIFETIME = timedelta(days=7)
PASSWORD_RESET_LIFETIME = timedelta(minutes=30)
DEVICE_LIFETIME = timedelta(days=365)  # since the last sign-in
MAX_DEVICES = 20  # known devices of an account

FREE_FAILURES = 2  # failures without a delay: of an account on a network, a known device, or a session
MAX_DELAY = 900.0  # seconds; an account with this delay counts as locked
ACCOUNT_FREE_FAILURES = 100  # failures without a delay: of an account on all networks and unknown devices together
ACCOUNT_MAX_DELAY = 60.0  # seconds; a distributed attack slows down, and doesn't lock the account
RESET_FREE_REQUESTS = 1  # of a link to reset a password; further ones are delayed, to limit the mails to one person
RESET_FIRST_DELAY = 60.0  # seconds; it doubles up to MAX_DELAY
FREE_INVITATION_MAILS = 50  # of a plan manager, to all people together; further ones are delayed
FREE_INVITATION_MAILS_PER_PERSON = 1  # of a plan manager, to one person; further ones are delayed
INVITATION_MAIL_FIRST_DELAY = 60.0  # seconds; it doubles up to MAX_DELAY
FAILURES_EXPIRE_AFTER = timedelta(days=1)  # since the last failure

NO_PASSWORD = ""  # the hash of an account that signs in only with single sign-on; it matches no password
MAX_NAME_LENGTH = 255  # characters
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 12, 128  # characters


def is_role_at_least(role: str | None, minimum: str) -> bool:
    """Whether a role includes the permissions of another role."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(minimum)


def has_permission(role: str | None, permissions: Collection[str], permission: str) -> bool:
    """Whether a role with these permissions includes a permission."""
    return role == "owner" or (role == "manager" and permission in permissions)


def encode_password(password: str) -> bytes:
    """Encode a password so that the same characters give the same bytes on every keyboard and system."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def login_delay(failures: int, free_failures: int = FREE_FAILURES, max_delay: float = MAX_DELAY) -> float:
    """Seconds until the next attempt is allowed: 1 after the first failure that isn't free, then doubling."""
    if failures <= free_failures:
        return 0.0
    return min(2.0 ** min(failures - free_failures - 1, 20), max_delay)


def validate_name(name: str) -> str | None:
    """The error message for the name of an account; None if it is valid."""
    if name.strip() and single_line(name, MAX_NAME_LENGTH) == name:
        return None
    return f"must be one line of 1 to {MAX_NAME_LENGTH} characters, and not only spaces"
