"""Cookies: the session, what is told once, and what a form carries before anybody is signed in."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

FLASH_MAX_AGE = 60  # seconds
FORM_COOKIE_MAX_AGE = 24 * 3600  # seconds


@dataclass(frozen=True, slots=True)
class Cookies:
    """The cookies of a request, and how they are set. Over TLS their names bind them to this host alone."""

    values: Mapping[str, str]
    secure: bool

    @classmethod
    def parse(cls, header: bytes, *, secure: bool) -> "Cookies":
        try:
            parsed = SimpleCookie(header.decode("latin-1"))
        except CookieError:
            parsed = SimpleCookie()
        return cls({name: morsel.value for name, morsel in parsed.items()}, secure)

    def prefixed_name(self, name: str) -> str:
        """`plankeeper` is the session; the others are `plankeeper-flash` and `plankeeper-form`."""
        return f"__Host-{name}" if self.secure else name

    def get(self, name: str) -> str:
        return self.values.get(self.prefixed_name(name), "")

    def set(self, name: str, value: str, max_age: int | None = None) -> bytes:
        """A header that sets a cookie, for as long as the browser runs where nothing else is said; 0 ends it."""
        attributes = ["Path=/", "HttpOnly", "SameSite=Lax"]
        if max_age is not None:
            attributes.append(f"Max-Age={max_age}")
        if self.secure:
            attributes.append("Secure")
        return "; ".join([f"{self.prefixed_name(name)}={value}", *attributes]).encode("latin-1")


def sign(token: str, text: str) -> str:
    """A text that only who knows the session's token can have made."""
    body = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return f"{body}.{_mac(token, body)}"


def unsign(token: str, value: str) -> str | None:
    """The text in a signed one; null where the signature is not right."""
    body, _, mac = value.partition(".")
    if not token or not constant_time_compare(mac, _mac(token, body)):
        return None
    try:
        return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    except ValueError:
        return None


def _mac(token: str, body: str) -> str:
    return hmac.new(token.encode(), b"flash:" + body.encode(), hashlib.sha256).hexdigest()


def constant_time_compare(first: str, second: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(first.encode(), second.encode())


def new_token() -> str:
    return secrets.token_urlsafe(32)
