"""Cookies of the console: session, known device, single sign-on in progress, flash message, and CSRF token."""

import base64
import hashlib
import hmac
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

SINGLE_SIGN_ON_MAX_AGE = 600  # seconds
FLASH_MAX_AGE = 60  # seconds
FORM_COOKIE_MAX_AGE = 24 * 3600  # seconds

DEVICE_COOKIE_MAX_AGE = 365 * 24 * 3600  # seconds
PREFERENCE_COOKIE_MAX_AGE = 365 * 24 * 3600  # seconds

# `plankeeper` is the session, `plankeeper-home` the scope of the home page: own records or all.
CookieName = Literal[
    "plankeeper", "plankeeper-flash", "plankeeper-form", "plankeeper-device", "plankeeper-sso", "plankeeper-home"
]


class Cookies:
    """The cookies of a request, and how a response sets them. The names of secure cookies bind them to this host."""

    def __init__(self, request: Request, *, is_secure: bool) -> None:
        self._values = parse_cookies("; ".join(request.headers.getlist("cookie")))
        self._is_secure = is_secure

    def get(self, name: CookieName) -> str:
        """The value, or an empty string."""
        return self._values.get(self._prefixed_name(name), "")

    def set(self, response: Response, name: CookieName, value: str, max_age: int | None = None) -> None:
        """Sets a cookie for `max_age` seconds, or until the browser closes."""
        response.set_cookie(
            self._prefixed_name(name), value, max_age=max_age, secure=self._is_secure, httponly=True, samesite="lax"
        )

    def delete(self, response: Response, name: CookieName) -> None:
        response.delete_cookie(self._prefixed_name(name), secure=self._is_secure, httponly=True, samesite="lax")

    def _prefixed_name(self, name: CookieName) -> str:
        return f"__Host-{name}" if self._is_secure else name


def parse_cookies(header: str) -> dict[str, str]:
    """The cookies of a header by name; of several with the same name, the first.

    `http.cookies` takes quadratic time for quoted values in Python before 3.11.10 and 3.12.6. Our cookies are never
    quoted.
    """
    cookies: dict[str, str] = {}
    for pair in header.split(";"):
        name, separator, value = pair.partition("=")
        if separator:
            cookies.setdefault(name.strip(), value.strip())
    return cookies


def join_flash(text: str, undo: str | None) -> str:
    """A message and the path of the page that undoes the change; no form contains the character between them."""
    return f"{text}\0{undo}" if undo else text


def split_flash(value: str) -> tuple[str, str | None]:
    text, _, undo = value.partition("\0")
    return text, undo or None


def sign(token: str, text: str) -> str:
    """The text with a signature that only the holder of the session's token can create."""
    body = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return f"{body}.{_mac(token, body)}"


def unsign(token: str, value: str) -> str | None:
    """The text of a signed value; null if the signature is invalid."""
    body, _, mac = value.partition(".")
    if not token or not hmac.compare_digest(mac.encode(), _mac(token, body).encode()):
        return None
    try:
        return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    except ValueError:
        return None


def _mac(token: str, body: str) -> str:
    return hmac.new(token.encode(), b"flash:" + body.encode(), hashlib.sha256).hexdigest()
