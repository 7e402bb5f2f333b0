"""Conditional requests (RFC 9110): strong tags of single resources, If-None-Match, If-Match."""

import hashlib
import re
from collections.abc import Mapping

from plankeeper.edge.request import Answer

_TAG = re.compile(rb'(W/)?("[^"]*")|(\*)')


def tag_of(body: bytes) -> bytes:
    """A strong tag: a hash of the bytes."""
    return b'"%b"' % hashlib.blake2b(body, digest_size=16).hexdigest().encode()


def conditional(answer: Answer, headers: Mapping[bytes, bytes]) -> Answer:
    """The answer with its tag; 304 without a body where the client says that it has it."""
    tag = tag_of(answer.body)
    answer.headers = {"etag": tag.decode()}
    sent = headers.get(b"if-none-match")
    if sent is not None and any(star or quoted == tag for _, quoted, star in _TAG.findall(sent)):
        return Answer(304, b"", answer.headers)
    return answer


def matches(sent: bytes, bodies: list[bytes]) -> bool:
    """Whether an If-Match header names the tag of one of the bodies, or any. A weak tag never matches."""
    tags = [tag_of(body) for body in bodies]
    return any(star or (quoted in tags and not weak) for weak, quoted, star in _TAG.findall(sent))
