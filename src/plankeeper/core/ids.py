"""Ids of resources: their format, and bounds of version 7 UUIDs by time."""

import re
from datetime import datetime
from typing import NewType
from uuid import UUID

import msgspec

from plankeeper.core.fields import UUID_PATTERN

# The id of a resource whose ids the contract types as plain strings: anything but a UUID is not found.
UuidOr404 = NewType("UuidOr404", UUID)
_UUID = re.compile(UUID_PATTERN)


def parse_uuid(text: str) -> UUID | None:
    """A UUID with hyphens, in either case, or None."""
    return msgspec.convert(text, UUID) if _UUID.fullmatch(text) else None  # faster than UUID(text)


UUID7_PER_SECOND = 1000 << 80  # the difference of two UUIDs of version 7 that were generated a second apart


def uuid7_lower_bound(at: datetime) -> UUID:
    """The lowest UUID of version 7 at a time: ids generated at or after it are higher."""
    milliseconds = max(0, int(at.timestamp() * 1000) - 1)
    return UUID(int=milliseconds << 80)


def uuid7_upper_bound(at: datetime) -> UUID:
    """A UUID of version 7 a second after a time: ids generated before the time are lower."""
    return UUID(int=uuid7_lower_bound(at).int + UUID7_PER_SECOND)
