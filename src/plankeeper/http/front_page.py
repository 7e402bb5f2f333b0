"""The path `/`, and unknown paths: a page for people, JSON for programs."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from plankeeper import __version__
from plankeeper.http.routing import PREFIX

_PAGE = (Path(__file__).with_name("static") / "front_page.html").read_text()
_LINKS = {
    "name": "Plankeeper",
    "version": __version__,
    "api": PREFIX,
    "documentation": "/docs",
    "openapi": "/openapi.json",
    "console": "/console",
}
_HEADERS = {
    "vary": "Accept",
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}


async def front_page(scope: Scope, receive: Receive, send: Send) -> None:
    """Browsers name text/html in `Accept`; programs usually accept everything."""
    response = HTMLResponse(_PAGE, headers=_HEADERS) if _accepts_html(scope) else JSONResponse(_LINKS, headers=_HEADERS)
    await response(scope, receive, send)


def for_browsers(page: ASGIApp, other: ASGIApp) -> ASGIApp:
    """An application that shows a page to browsers that read something; everything else, and the API, gets `other`."""

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")
        await (page if is_read and _accepts_html(scope) else other)(scope, receive, send)

    return respond


def _accepts_html(scope: Scope) -> bool:
    return "text/html" in Request(scope).headers.get("accept", "")
