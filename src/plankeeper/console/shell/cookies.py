"""Cookies of the console: session, known device, single sign-on in progress, flash message, and CSRF token."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from plankeeper.access import policy
from plankeeper.access.accounts import sessions
from plankeeper.access.accounts.schemas import NO_DETAILS, RoleDetails, Session
from plankeeper.access.policy import Permission
from plankeeper.access.tokens import new_token
from plankeeper.database.client import Database

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


class FlashLink(NamedTuple):
    """A link after a message, such as `2 open warnings`."""

    text: str
    path: str


class Flash(NamedTuple):
    """A message that a page shows once, the path of the page that undoes the change, and another link."""

    text: str
    undo: str | None = None
    link: FlashLink | None = None


def join_flash(flash: Flash) -> str:
    """The message as text; no form contains the character between its parts."""
    return "\0".join([flash.text, flash.undo or "", *(flash.link or ())])


def split_flash(value: str) -> Flash:
    text, undo, *link = f"{value}\0".split("\0")
    return Flash(text, undo or None, FlashLink(link[0], link[1]) if len(link) > 1 else None)


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


_NONCE_DIGITS = 32


class CsrfError(Exception):
    """A form that was not sent from a page of this server, or without the right token."""


def verify_origin(request: Request, form_origins: Sequence[str]) -> None:
    """Raises CsrfError unless the form has one of the origins."""
    origins = request.headers.getlist("origin")
    if len(origins) != 1 or origins[0] not in form_origins:
        raise CsrfError


def mask_token(token: str) -> str:
    """A mask of a session's token for the forms of one response: a random nonce, and its HMAC with the token."""
    return _mask(token, secrets.token_hex(_NONCE_DIGITS // 2))


def is_current_token(form_token: str, expected_token: str) -> bool:
    """Whether a form has a mask of the session's token. A form of an earlier session of the browser doesn't."""
    mask = _mask(expected_token, form_token[:_NONCE_DIGITS])
    return bool(expected_token) and hmac.compare_digest(form_token.encode(), mask.encode())


def _mask(token: str, nonce: str) -> str:
    return nonce + hmac.digest(token.encode(), nonce.encode(), "sha256").hex()


def require_navigation(headers: Mapping[str, str]) -> None:
    """Raises CsrfError for a request that a page of another site sends by itself, such as for an image."""
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        raise CsrfError


@dataclass(slots=True)
class CurrentAccount:
    """The account that a browser is signed in to. Until `load_session` is called, `session` is null."""

    cookies: Cookies
    session: Session | None = None
    flash: Flash | None = None
    csrf_token: str = ""

    async def load_session(self, db: Database, *, is_use: bool = True) -> None:
        token = self.cookies.get("plankeeper")
        self.session = await sessions.verify_session(db, token, is_use=is_use) if token else None
        if self.session:
            self.csrf_token = self.session.csrf
            flash = unsign(token, self.cookies.get("plankeeper-flash"))
            self.flash = split_flash(flash) if flash else None
        else:
            self.csrf_token = self.cookies.get("plankeeper-form") or new_token()

    def has_role(self, role: str) -> bool:
        """Whether the account has at least this role with the selected plan manager."""
        session = self.session
        if session is None or session.two_factor_pending or session.plan_manager_id is None:
            return False
        return policy.is_role_at_least(session.roles.get(session.plan_manager_id), role)

    @property
    def details(self) -> RoleDetails:
        """What the account's role with the selected plan manager allows beyond its name."""
        has_role = self.has_role("viewer") and self.session and self.session.plan_manager_id
        return self.session.role_details[has_role] if self.session and has_role else NO_DETAILS

    def has_permission(self, permission: Permission) -> bool:
        """Whether the account has a permission with the selected plan manager."""
        return self.has_role("owner") or (
            self.has_role("manager") and policy.has_permission("manager", self.details.permissions, permission)
        )

    def set_page_cookies(self, response: Response) -> None:
        """Sets the cookies that belong to every page: the CSRF token before sign-in, and no flash message any more."""
        if self.csrf_token and self.session is None and not self.cookies.get("plankeeper-form"):
            self.cookies.set(response, "plankeeper-form", self.csrf_token, FORM_COOKIE_MAX_AGE)
        if self.cookies.get("plankeeper-flash"):
            self.cookies.delete(response, "plankeeper-flash")
