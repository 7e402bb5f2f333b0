"""A document or file that doesn't change while the server runs: compressed once, with an entity tag."""

from collections.abc import Mapping

from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from plankeeper.http.browsers import (
    MIN_BYTES,
    SMALL,
    VARY,
    accepts_gzip,
    gzip,
    gzip_etag,
)
from plankeeper.http.etags import etag, has_tag
from plankeeper.http.requests import read_headers
from plankeeper.http.responses import NOT_MODIFIED


class StaticContent:
    """Serves one body. Browsers and caches may keep it, and ask whether it has changed."""

    def __init__(self, body: bytes, media_type: str, headers: Mapping[str, str], *, status: int = 200) -> None:
        self._body = body
        self._status = status
        self._gzip: bytes | None = None  # compressed when it is first asked for
        self._media_type = media_type
        self._is_compressible = len(body) >= MIN_BYTES and not media_type.startswith("image/p")  # PNG is compressed
        self._headers = dict(headers) | {"cache-control": "no-cache", "vary": VARY}
        self._tag = etag(body, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_headers = read_headers(scope)
        is_compressed = self._is_compressible and accepts_gzip(request_headers.get(b"accept-encoding"))
        headers = self._headers | {"etag": gzip_etag(self._tag) if is_compressed else self._tag}
        if self._status == 200 and has_tag(request_headers.get(b"if-none-match", b""), self._tag):
            response = StarletteResponse(status_code=NOT_MODIFIED, headers=headers)
        else:
            headers |= {"content-encoding": "gzip"} if is_compressed else {}
            body = self._compressed() if is_compressed else self._body
            response = StarletteResponse(body, self._status, headers, self._media_type)
        await response(scope, receive, send)

    def _compressed(self) -> bytes:
        self._gzip = self._gzip or gzip(self._body, SMALL)
        return self._gzip
