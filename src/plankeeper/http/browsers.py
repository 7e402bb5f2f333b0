"""Cross-origin requests: the responses to a browser's preflight requests."""

import asyncio
import re
import zlib

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response as StarletteResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from plankeeper.http.instrumentation import OnResponse
from plankeeper.http.requests import RequestState, read_headers, resolve_request_id
from plankeeper.http.responses import NOT_MODIFIED, Response


class JsonCORSMiddleware(CORSMiddleware):
    """Starlette's CORS middleware, with preflight responses like all others: JSON with a request id.

    The response to a rejected preflight request lacks the header that would allow its origin.
    """

    def preflight_response(self, request_headers: Headers) -> StarletteResponse:
        cors_headers = super().preflight_response(request_headers).headers
        headers = {name: value for name, value in cors_headers.items() if not name.startswith("content-")}
        request_id = resolve_request_id(read_headers({"headers": request_headers.raw})).decode()
        return StarletteResponse("{}", 200, headers | {"x-request-id": request_id}, "application/json")


MIN_BYTES = 1024  # of a body: compressing a smaller one saves no packet
# Level 1 takes a third of the time of the default, and its result is a fifth larger.
FAST, SMALL = 1, 6
THREAD_BYTES = 64 * 1024  # a larger body is compressed beside the event loop, because it takes milliseconds
VARY = "accept-encoding"

_CODING = re.compile(r"\s*([^\s;,]+)\s*(?:;\s*q\s*=\s*([0-9.]+)\s*)?(?:,|$)", re.IGNORECASE)


def accepts_gzip(accept_encoding: bytes | None) -> bool:
    """Whether an Accept-Encoding header allows gzip. Without the header, the body stays as it is."""
    if not accept_encoding:
        return False
    weights: dict[str, bool] = {}
    for coding, weight in _CODING.findall(accept_encoding.decode("latin-1")):
        weights[coding.lower()] = weight.strip("0.") != "" if weight else True
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


def gzip(body: bytes, level: int = FAST) -> bytes:
    return zlib.compress(body, level, wbits=31)  # 31: with the header of gzip, without a time


async def compress(response: Response, accept_encoding: bytes | None) -> Response:
    """The response with its body compressed, if the client accepts it and the body is large enough."""
    if len(response.body) < MIN_BYTES:
        return response
    headers = dict(response.headers or {}) | {"vary": VARY}
    body = response.body
    if accepts_gzip(accept_encoding):
        if tag := headers.get("etag"):
            headers["etag"] = gzip_etag(tag)
        if response.status != NOT_MODIFIED:
            headers["content-encoding"] = "gzip"
            body = gzip(body) if len(body) < THREAD_BYTES else await asyncio.to_thread(gzip, body)
    return Response(response.status, body, headers)


def gzip_etag(tag: str) -> str:
    """The entity tag of a compressed body: each coding has its own."""
    return f'{tag[:-1]}-gzip"'


HSTS = "max-age=31536000"
MISDIRECTED_REQUEST = 421


def is_public_host(host: str, public_url: str) -> bool:
    """Whether a `Host` header names the host of the public URL, which has no default port."""
    return f"https://{host.lower().removesuffix(':443')}" == public_url


class PublicHostEndpoint:
    """Wraps an application for browsers: responds with 421 to requests for other hosts, such as an internal address.

    Otherwise, a page of another site whose host name resolves to this server would have the same origin.
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
