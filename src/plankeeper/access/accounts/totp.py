"""Two-factor authentication with authenticator apps (TOTP, RFC 6238: SHA-1, six digits, 30 seconds)."""

import hmac
import re
from datetime import datetime

from pyotp import random_base32
from pyotp.totp import TOTP

PERIOD = 30
_DRIFT = 1  # codes accepted before and after the current one, for clock differences and typing time


def new_secret() -> str:
    """A secret of 160 bits, in base32."""
    return random_base32()


def is_valid_secret(text: str) -> bool:
    """Whether a text has the format of `new_secret`."""
    return bool(re.fullmatch(r"[A-Z2-7]{32}", text))


def provisioning_uri(secret: str, email: str) -> str:
    """The `otpauth:` URI for an authenticator app."""
    return TOTP(secret).provisioning_uri(name=email, issuer_name="Plankeeper")


def is_valid_code(text: str) -> bool:
    """Whether a text has the format of a code; spaces don't matter."""
    return bool(re.fullmatch(r"[0-9]{6}", text.replace(" ", "")))


def verify_code(secret: str, code: str, last_counter: int, now: datetime) -> int | None:
    """The counter of a valid code, which must be newer than the last counter used; None if the code is invalid."""
    if not is_valid_code(code):
        return None
    code = code.replace(" ", "")
    current = int(now.timestamp()) // PERIOD
    generator = TOTP(secret)
    for counter in range(max(current - _DRIFT, last_counter + 1), current + _DRIFT + 1):
        if hmac.compare_digest(generator.generate_otp(counter), code):
            return counter
    return None
