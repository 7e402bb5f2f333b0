"""Quotas: so many requests in a minute."""

from math import ceil
from typing import NamedTuple, Protocol

WINDOW_SECONDS = 60  # seconds


class RateLimitStatus(NamedTuple):
    """Where a subject stands with its quota after one request of it: so many left, for so many seconds."""

    limit: int
    remaining: int
    reset_after: float
    exceeded: bool = False

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """As the IETF's draft on rate-limit header fields has them."""
        return (
            (b"ratelimit-policy", b'"default";q=%d;w=%d' % (self.limit, WINDOW_SECONDS)),
            (b"ratelimit", b'"default";r=%d;t=%d' % (self.remaining, ceil(self.reset_after))),
        )

    @property
    def retry_after(self) -> str:
        """Whole seconds, never none: a client that comes back at once would be refused again."""
        return str(max(1, ceil(self.reset_after)))


class RateLimiter(Protocol):
    """Counts requests over all servers."""

    async def hit(self, subject: str, limit: int) -> RateLimitStatus: ...
