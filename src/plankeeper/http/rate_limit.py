"""Quotas: so many requests in a minute."""

from math import ceil
from typing import NamedTuple, Protocol

WINDOW = 60  # seconds


class Standing(NamedTuple):
    """Where a subject stands with its quota after one request of it: so many left, for so many seconds."""

    quota: int
    left: int
    seconds: float
    refused: bool = False

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """As the IETF's draft on rate-limit header fields has them."""
        return (
            (b"ratelimit-policy", b'"default";q=%d;w=%d' % (self.quota, WINDOW)),
            (b"ratelimit", b'"default";r=%d;t=%d' % (self.left, ceil(self.seconds))),
        )

    @property
    def retry_after(self) -> str:
        """Whole seconds, never none: a client that comes back at once would be refused again."""
        return str(max(1, ceil(self.seconds)))


class Quotas(Protocol):
    """Counts requests over all servers."""

    async def take(self, subject: str, quota: int) -> Standing: ...
