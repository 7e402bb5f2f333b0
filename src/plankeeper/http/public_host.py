"""The public URL of the server: which `Host` the pages for browsers accept, and HSTS."""

from starlette.types import ASGIApp, Receive, Scope, Send

from plankeeper.http.instrumentation import OnResponse
from plankeeper.http.requests import RequestState

HSTS = "max-age=31536000"
MISDIRECTED_REQUEST = 421


def is_public_host(host: str, public_url: str) -> bool:
    """Whether a `Host` header names the host of the public URL, which has no default port."""
    return f"https://{host.lower().removesuffix(':443')}" == public_url


class PublicHostEndpoint:
    """Wraps an application for browsers: responds with 421 to requests for other hosts, such as an internal address.

    Otherwise, a page of another site whose name leads here would have the same origin as ours.
    """

    def __init__(self, app: ASGIApp, public_url: str, on_response: OnResponse) -> None:
        self._app = app
        self._public_url = public_url
        self._on_response = on_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and is_public_host(hosts[0], self._public_url):
            await self._app(scope, receive, send)
            return
        state = RequestState.from_scope(scope)
        body = f"This server's public address is {self._public_url}.\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
            (b"x-request-id", state.request_id),
        ]
        await send({"type": "http.response.start", "status": MISDIRECTED_REQUEST, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        self._on_response(state, scope["method"], None, MISDIRECTED_REQUEST)
