"""The path `/`, and unknown paths: a page for people, JSON for programs."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.responses import Response as StarletteResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plankeeper import __version__
from plankeeper.http.requests import read_headers, resolve_request_id
from plankeeper.http.responses import HttpError, Response, error_response
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
    """An application that shows a page for GET and HEAD requests of browsers; `other` handles the rest, and the API."""

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")
        await (page if is_read and _accepts_html(scope) else other)(scope, receive, send)

    return respond


def _accepts_html(scope: Scope) -> bool:
    return "text/html" in Request(scope).headers.get("accept", "")


PERMANENT_REDIRECT = 308
_ALLOW = "GET, HEAD, OPTIONS"


class PublicEndpoint:
    """Wraps an ASGI application: allows GET, HEAD and OPTIONS, and adds a request id to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = resolve_request_id(read_headers(scope))
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, _with_request_id(request_id, send))
        elif scope["method"] == "OPTIONS":
            await Response(200, b"{}", {"allow": _ALLOW}).send(request_id, send)
        else:
            error = HttpError("method_not_allowed", f"The path supports {_ALLOW}.", {"allow": _ALLOW})
            await error_response(error, request_id.decode()).send(request_id, send)


class SlashRedirect:
    """Redirects a path with a slash at its end to the path without it, with the same query."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode("latin-1")
        location = self._path + (f"?{query}" if query else "")
        headers = {"location": location, "cache-control": "no-store", "x-content-type-options": "nosniff"}
        await StarletteResponse(status_code=PERMANENT_REDIRECT, headers=headers)(scope, _receive, send)


def _with_request_id(request_id: bytes, send: Send) -> Send:
    async def send_with_request_id(message: Message) -> None:
        is_response_start = message["type"] == "http.response.start"
        if is_response_start and not any(name == b"x-request-id" for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
        await send(message)

    return send_with_request_id
