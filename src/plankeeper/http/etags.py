"""Conditional requests (RFC 9110): strong entity tags of single resources, If-None-Match, If-Match."""

import hashlib
import re
from collections.abc import Mapping

from plankeeper.http.responses import Response

_TAG = re.compile(r'(W/)?("[^"]*")|(\*)')


def etag(body: bytes) -> str:
    """A strong entity tag: a hash of the body."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def with_etag(response: Response, headers: Mapping[bytes, bytes]) -> Response:
    """The response with its ETag header, or 304 without a body if If-None-Match has the tag."""
    tag = etag(response.body)
    etag_header = {"etag": tag}
    if_none_match = headers.get(b"if-none-match")
    if if_none_match is not None and any(
        star or quoted == tag for _, quoted, star in _TAG.findall(if_none_match.decode("latin-1"))
    ):
        return Response(304, b"", etag_header)
    return Response(response.status, response.body, etag_header)


def if_match(header: bytes, bodies: list[bytes]) -> bool:
    """Whether an If-Match header has the tag of one of the bodies, or is `*`. A weak tag never matches."""
    tags = [etag(body) for body in bodies]
    return any(star or (quoted in tags and not weak) for weak, quoted, star in _TAG.findall(header.decode("latin-1")))
