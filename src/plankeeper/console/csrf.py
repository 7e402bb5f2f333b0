"""Protection against cross-site request forgery (CSRF): forms come from pages of this server and carry a token.

The token belongs to the session. Before sign-in it is the value of a cookie, which other sites can neither read nor
set. Pages contain only masks of it, another one in each response: the size of a compressed page doesn't reveal
the token.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence

from starlette.requests import Request

_NONCE_DIGITS = 32


class CsrfError(Exception):
    """A form that was not sent from a page of this server, or without the right token."""


def new_csrf_token() -> str:
    return secrets.token_urlsafe(32)


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
