"""Protection against cross-site request forgery (CSRF): forms come from pages of this server and carry a token.

The token belongs to the session. Before sign-in it is the value of a cookie, which other sites can neither read nor
set.
"""

import hmac
import secrets
from collections.abc import Sequence

from starlette.requests import Request


class CsrfError(Exception):
    """A form that was not sent from a page of this server, or without the right token."""


def new_csrf_token() -> str:
    return secrets.token_urlsafe(32)


def verify_origin(request: Request, form_origins: Sequence[str]) -> None:
    """Raises CsrfError unless the form has one of the origins."""
    origins = request.headers.getlist("origin")
    if len(origins) != 1 or origins[0] not in form_origins:
        raise CsrfError


def is_current_token(form_token: str, expected_token: str) -> bool:
    """Whether the form is of the session. A form of an earlier session of the browser isn't."""
    return bool(expected_token) and hmac.compare_digest(form_token.encode(), expected_token.encode())
