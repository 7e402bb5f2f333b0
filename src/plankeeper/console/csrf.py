"""Protection against cross-site request forgery (CSRF): forms come from pages of this server and carry a token.

The token belongs to the session. Before sign-in it is the value of a cookie, which other sites can neither read nor
set.
"""

import hmac
import secrets

from starlette.requests import Request


class CsrfError(Exception):
    """A form that was not sent from a page of this server, or without the right token."""


def new_csrf_token() -> str:
    return secrets.token_urlsafe(32)


def verify_csrf(request: Request, form_token: str, expected_token: str) -> None:
    """Raises CsrfError unless the form has the origin of this server and the expected token."""
    # A proxy that terminates TLS does not always pass on the scheme.
    schemes = ("https",) if request.scope["scheme"] == "https" else ("http", "https")
    host, origins = request.headers.get("host", ""), request.headers.getlist("origin")
    if len(origins) != 1 or origins[0] not in [f"{scheme}://{host}" for scheme in schemes]:
        raise CsrfError
    if not expected_token or not hmac.compare_digest(form_token.encode(), expected_token.encode()):
        raise CsrfError
