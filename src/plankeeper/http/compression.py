"""Compression of responses with gzip for clients that accept it (RFC 9110, 12.5.3)."""

import asyncio
import re
import zlib

from plankeeper.http.responses import NOT_MODIFIED, Response

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
