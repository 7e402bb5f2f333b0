"""Conditional requests (RFC 9110, 13): strong entity tags of single resources, If-Match and If-None-Match."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from plankeeper.http.errors import ApiError
from plankeeper.http.responses import NOT_MODIFIED, Response

_TAG = re.compile(r'(W/)?("[^"]*")|(\*)')


class Preconditions(NamedTuple):
    """The preconditions of a request."""

    if_match: bytes | None
    if_none_match: bytes | None

    @classmethod
    def from_headers(cls, headers: Mapping[bytes, bytes]) -> "Preconditions":
        return cls(headers.get(b"if-match"), headers.get(b"if-none-match"))

    def __bool__(self) -> bool:
        return self.if_match is not None or self.if_none_match is not None


def etag(body: bytes) -> str:
    """A strong entity tag: a hash of the body."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def with_etag(response: Response, preconditions: Preconditions) -> Response:
    """The response to a read with its ETag header, or 304 if If-None-Match has the tag.

    Raises ApiError `precondition_failed` if If-Match doesn't have it.
    """
    tag = etag(response.body)
    etag_header = {"etag": tag}
    if preconditions.if_match is not None and not _has_strong_tag(preconditions.if_match, [tag]):
        raise ApiError("precondition_failed")
    if preconditions.if_none_match is not None and has_tag(preconditions.if_none_match, [tag]):
        return Response(NOT_MODIFIED, response.body, etag_header)
    return Response(response.status, response.body, etag_header)


def require_preconditions(preconditions: Preconditions, bodies: Sequence[bytes]) -> None:
    """Raise ApiError `precondition_failed` unless a write may change the resource, whose views have these bodies."""
    tags = [etag(body) for body in bodies]
    matches = preconditions.if_match is None or _has_strong_tag(preconditions.if_match, tags)
    if not matches or (preconditions.if_none_match is not None and has_tag(preconditions.if_none_match, tags)):
        raise ApiError("precondition_failed")


def _has_strong_tag(header: bytes, tags: Sequence[str]) -> bool:
    """Whether an If-Match header has one of the tags, or is `*`. A weak tag never matches."""
    return any(star or (quoted in tags and not weak) for weak, quoted, star in _tags_in(header))


def has_tag(header: bytes, tags: Sequence[str]) -> bool:
    """Whether an If-None-Match header has one of the tags, weak or not, or is `*`."""
    return any(star or quoted in tags for _, quoted, star in _tags_in(header))


def _tags_in(header: bytes) -> list[tuple[str, str, str]]:
    """The tags of a header, without what distinguishes the coding: a resource is the same in all of them."""
    return _TAG.findall(header.decode("latin-1").replace('-gzip"', '"'))


class _Identified(Struct):
    id: Any


_decode_id = msgspec.json.Decoder(_Identified).decode


def with_location(response: Response, path: str, query: str, *, is_new: bool, has_secret: bool) -> Response:
    """The response to a write that returns the resource: with the path of a new one, and with the ETag of its view.

    A GET of `Content-Location` returns the same body, unless this one contains a secret.
    """
    location = f"{path}/{_decode_id(response.body).id}" if is_new else path
    headers = dict(response.headers or {})
    if is_new:
        headers["location"] = location
    if not has_secret:
        headers |= {"content-location": location + query, "etag": etag(response.body)}
    return Response(response.status, response.body, headers)
