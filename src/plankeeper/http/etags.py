"""Conditional requests (RFC 9110, 13): strong entity tags of single resources, If-Match and If-None-Match."""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.database.versions import format_version
from plankeeper.http.responses import NOT_MODIFIED, Response

_TAG = re.compile(r'(W/)?("[^"]*")|(\*)')
_TAGS = re.compile(r'\*|(?:W/)?"[^"]*"(?:[ \t]*,[ \t]*(?:W/)?"[^"]*")*')
_WEAK = "A weak tag (W/) in If-Match never matches. Send the ETag of a response that no proxy has compressed."


class Preconditions(NamedTuple):
    """The preconditions of a request."""

    if_match: bytes | None
    if_none_match: bytes | None

    @classmethod
    def from_headers(cls, headers: Mapping[bytes, bytes]) -> "Preconditions":
        """Raises ValidationError for a tag that isn't quoted."""
        for name in ("If-Match", "If-None-Match"):
            value = headers.get(name.lower().encode())
            if value is not None and not _TAGS.fullmatch(value.decode("latin-1")):
                message = 'must be `*` or tags in quotes, separated by commas: "5f0c-1d2e", as in `ETag`'
                raise ValidationError(FieldError(name, message, "invalid_format", location="header"))
        return cls(headers.get(b"if-match"), headers.get(b"if-none-match"))

    def __bool__(self) -> bool:
        return self.if_match is not None or self.if_none_match is not None


class Record(Struct):
    """The fields of a response that name a record and its version. A part of a record has neither."""

    id: Any = None
    updated_at: datetime | None = None


_decode_record = msgspec.json.Decoder(Record).decode


def etag(body: bytes, updated_at: datetime | None) -> str:
    """A strong entity tag: the version of the record, if it has one, and a hash of the body.

    The version is the time of the last change in microseconds, so each change of a field increases it. A new name of a
    reference changes only the hash.
    """
    version = f"{format_version(updated_at)}-" if updated_at else ""
    return f'"{version}{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def file_etag(version: str) -> str:
    """The tag of a file, see `Download`."""
    return f'"{version}"'


def is_not_modified(preconditions: Preconditions, tag: str) -> bool:
    """Whether the response to a read is 304, because If-None-Match has the tag.

    Raises DomainError `precondition_failed` if If-Match doesn't have its version.
    """
    if preconditions.if_match is not None and not _has_version(preconditions.if_match, tag):
        raise _failed(preconditions)
    return preconditions.if_none_match is not None and has_tag(preconditions.if_none_match, tag)


def with_etag(response: Response, preconditions: Preconditions, updated_at: datetime | None) -> Response:
    """The response to a read with its ETag header, or 304: see `is_not_modified`."""
    tag = etag(response.body, updated_at)
    status = NOT_MODIFIED if is_not_modified(preconditions, tag) else response.status
    return Response(status, response.body, {"etag": tag})


def require_preconditions(preconditions: Preconditions, tag: str | None) -> None:
    """Raise DomainError `precondition_failed` unless a write may change the record with this tag.

    Without a tag, there is no record yet.
    """
    if_match, if_none_match = preconditions
    if if_match is not None and (tag is None or not _has_version(if_match, tag)):
        raise _failed(preconditions)
    if if_none_match is not None and tag is not None and has_tag(if_none_match, tag):
        raise _failed(preconditions)


def _failed(preconditions: Preconditions) -> DomainError:
    is_weak = (preconditions.if_match or b"").startswith(b"W/")
    return DomainError("precondition_failed", _WEAK if is_weak else None)


def _has_version(header: bytes, tag: str) -> bool:
    """Whether an If-Match header has a tag of the same version, or is `*`. A weak tag never matches."""
    return any(star or (not weak and _version(quoted) == _version(tag)) for weak, quoted, star in _tags_in(header))


def _version(tag: str) -> str:
    """The version of a tag, or the hash of one without a version."""
    return tag[1:-1].partition("-")[0]


def has_tag(header: bytes, tag: str) -> bool:
    """Whether an If-None-Match header has the tag, weak or not, or is `*`."""
    return any(star or quoted == tag for _, quoted, star in _tags_in(header))


def _tags_in(header: bytes) -> list[tuple[str, str, str]]:
    """The tags of a header, without the suffix of the coding: a resource is the same in all codings."""
    return _TAG.findall(header.decode("latin-1").replace('-gzip"', '"'))


def with_location(response: Response, path: str, *, is_new: bool, has_secret: bool) -> Response:
    """The response to a write that returns the resource: with the path of a new one, and with its ETag.

    A GET of `Content-Location` returns the same body, unless this one contains a secret.
    """
    record = _decode_record(response.body)
    location = f"{path}/{record.id}" if is_new else path
    headers = dict(response.headers or {})
    if is_new:
        headers["location"] = location
    if not has_secret:
        headers |= {"content-location": location, "etag": etag(response.body, record.updated_at)}
    return Response(response.status, response.body, headers)
