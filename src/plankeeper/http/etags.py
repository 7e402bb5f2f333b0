"""Conditional requests (RFC 9110): strong tags of single resources, If-None-Match, If-Match."""

import hashlib
import re
from collections.abc import Mapping

from plankeeper.http.requests import Answer

_TAG = re.compile(r'(W/)?("[^"]*")|(\*)')


def tag_of(body: bytes) -> str:
    """A strong tag: a hash of the bytes."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def conditional(answer: Answer, headers: Mapping[bytes, bytes]) -> Answer:
    """The answer with its tag; 304 without a body where the client says that it has it."""
    tag = tag_of(answer.body)
    tagged = {"etag": tag}
    sent = headers.get(b"if-none-match")
    if sent is not None and any(star or quoted == tag for _, quoted, star in _TAG.findall(sent.decode("latin-1"))):
        return Answer(304, b"", tagged)
    return Answer(answer.status, answer.body, tagged)


def matches(sent: bytes, bodies: list[bytes]) -> bool:
    """Whether an If-Match header names the tag of one of the bodies, or any. A weak tag never matches."""
    tags = [tag_of(body) for body in bodies]
    return any(star or (quoted in tags and not weak) for weak, quoted, star in _TAG.findall(sent.decode("latin-1")))
