"""Rate limits: the interface of the limiter, and the headers of a response."""

from math import ceil
from typing import NamedTuple, Protocol

WINDOW_SECONDS = 60


class RateLimitStatus(NamedTuple):
    """The state of a subject's rate limit after a request; `reset_after` is in seconds."""

    limit: int
    remaining: int
    reset_after: float
    exceeded: bool = False

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The header fields of the IETF draft on rate limits."""
        return (
            (b"ratelimit-policy", b'"default";q=%d;w=%d' % (self.limit, WINDOW_SECONDS)),
            (b"ratelimit", b'"default";r=%d;t=%d' % (self.remaining, ceil(self.reset_after))),
        )

    @property
    def retry_after(self) -> int:
        """Whole seconds, at least one: a client that retries immediately would be rejected again."""
        return max(1, ceil(self.reset_after))


class RateLimiter(Protocol):
    """Counts requests across all servers."""

    async def hit(self, subject: str, limit: int) -> RateLimitStatus: ...
