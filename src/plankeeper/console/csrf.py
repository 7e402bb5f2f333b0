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


def verify_csrf(request: Request, form_token: str, expected_token: str, form_origins: Sequence[str]) -> None:
    """Raises CsrfError unless the form has one of the origins and the expected token."""
    origins = request.headers.getlist("origin")
    if len(origins) != 1 or origins[0] not in form_origins:
        raise CsrfError
    if not expected_token or not hmac.compare_digest(form_token.encode(), expected_token.encode()):
        raise CsrfError
