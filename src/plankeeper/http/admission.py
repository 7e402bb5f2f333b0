"""Admission control: concurrency limit, authentication and rate limits, before a request does any work."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network
from math import ceil
from typing import NamedTuple, Protocol
from uuid import UUID

from starlette.types import Scope as ASGIScope

from plankeeper.core.context import Principal, Scope
from plankeeper.core.errors import DomainError, RejectedKeyError
from plankeeper.core.ids import parse_uuid
from plankeeper.core.settings import Settings
from plankeeper.http.requests import MAX_FILE_BYTES, MAX_FILE_BYTES_PER_SENDER, BodyBudget, RequestState

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


# Returns the principal of an API key; raises DomainError with status 401.
Authenticate = Callable[[str], Awaitable[Principal]]


def parse_bearer_key(authorization: bytes | None) -> str:
    """The API key of an Authorization header; raises DomainError."""
    if authorization is None:
        raise DomainError("missing_api_key")
    scheme, _, key = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not key:
        raise DomainError("missing_api_key")
    if b"," in key:
        detail = "The Authorization header occurs more than once, or contains a comma. Send it once, with one key."
        raise DomainError("invalid_api_key", detail)
    if not key.isascii():
        raise DomainError("invalid_api_key")
    return key.lstrip(b" ").decode()


def resolve_plan_manager(principal: Principal, header: bytes | None) -> UUID:
    """The plan manager that the request acts for; raises DomainError."""
    if header is None:
        raise DomainError("missing_plan_manager_id")
    allowed = principal.plan_managers.get(header.lower())
    if allowed is None:
        if parse_uuid(header.decode("latin-1")) is None:
            raise DomainError("invalid_plan_manager_id")
        raise DomainError("plan_manager_not_allowed")
    return allowed


def require_scopes(principal: Principal, required: Sequence[Scope], *, one: bool = False) -> None:
    """Raises DomainError, which names the scopes that the key lacks. `one`: one of them is enough."""
    if one:
        required = () if principal.scopes.intersection(required) else required[:1]
    for each in required:
        if each not in principal.scopes:
            missing = " and ".join(f"`{scope}`" for scope in required if scope not in principal.scopes)
            noun = "scopes" if " and " in missing else "scope"
            raise DomainError(
                "insufficient_scope", f"This request requires the {noun} {missing}, which the API key does not have."
            )


REJECTION_DELAY = 1.0  # seconds
KNOWN_DEVICES_SHARE = 4  # a quarter of all sign-in attempts is reserved for known devices


class Scoped(Protocol):
    """An operation, which declares the scopes that it requires."""

    @property
    def required_scopes(self) -> Sequence[Scope]: ...
    @property
    def one_scope(self) -> bool: ...


class Admission:
    """The admission control of one worker. `with admission:` occupies a concurrency slot, or raises DomainError."""

    def __init__(self, authenticate: Authenticate, rate_limiter: RateLimiter, settings: Settings) -> None:
        self._authenticate = authenticate
        self._rate_limiter = rate_limiter
        self._settings = settings
        self.in_flight = 0
        self.bodies = BodyBudget()
        self.files = BodyBudget(MAX_FILE_BYTES, MAX_FILE_BYTES_PER_SENDER, "plan manager")

    def __enter__(self) -> None:
        """Reject requests above the limit immediately, so that requests in progress stay fast."""
        if self.in_flight >= self._settings.max_concurrent_requests:
            raise DomainError("service_unavailable", "The server is too busy.", retry_after=1)
        self.in_flight += 1

    def __exit__(self, *_error: object) -> None:
        self.in_flight -= 1

    async def admit(self, state: RequestState, scope: ASGIScope, operation: Scoped) -> tuple[Principal, UUID]:
        """The principal and the plan manager; raises DomainError. Each request with a valid key counts."""
        principal, status = await self._authenticate_and_count(state, scope)
        try:
            plan_manager_id = resolve_plan_manager(principal, state.headers.get(b"x-plan-manager-id"))
        except DomainError as error:
            state.rejected_key = UUID(principal.actor.id), error.code
            raise
        state.plan_manager_id = plan_manager_id
        require_scopes(principal, operation.required_scopes, one=operation.one_scope)
        if status and status.exceeded:
            raise _rate_limit_error(status)
        return principal, plan_manager_id

    async def admit_key(self, state: RequestState, scope: ASGIScope) -> Principal:
        """The same for a request that needs no plan manager."""
        principal, status = await self._authenticate_and_count(state, scope)
        if status and status.exceeded:
            raise _rate_limit_error(status)
        return principal

    async def _authenticate_and_count(
        self, state: RequestState, scope: ASGIScope
    ) -> tuple[Principal, RateLimitStatus | None]:
        try:
            state.principal = principal = await self._authenticate(
                parse_bearer_key(state.headers.get(b"authorization"))
            )
        except DomainError as error:
            if isinstance(error, RejectedKeyError):
                state.rejected_key = error.rejected_key
            if error.status == 401:
                await self._limit_auth_failures(scope)
            raise
        limit = self._settings.rate_limit if principal.rate_limit is None else principal.rate_limit
        status = await self._rate_limiter.hit(principal.subject, limit) if limit else None
        if status:
            state.rate_limit_headers = status.headers
        return principal, status

    async def limit_login_attempts(self, scope: ASGIScope, known_device: str | None) -> None:
        """Count an attempt at a password or a code; raises DomainError if its address or device is over the limit.

        Attempts count before they are verified, and separately from invalid API keys, so that invalid keys
        do not lock people out of the console.
        """
        await self._limit_device_or_network("guess", scope, known_device)

    async def limit_sign_in_starts(self, scope: ASGIScope, known_device: str | None) -> None:
        """Count the beginning of a sign-in with a provider, apart from attempts: other sites can cause it."""
        await self._limit_device_or_network("start", scope, known_device)

    async def limit_wrong_links(self, scope: ASGIScope) -> None:
        """Count a link by mail that doesn't work; raises DomainError if its address is over the limit."""
        await self._hit_or_reject(f"link:{client_network(scope)}", self._settings.auth_failure_rate_limit)

    async def limit_all_login_attempts(self, *, known_device: bool) -> None:
        """Count an attempt; raises DomainError if all together are over the limit. Known devices have a share."""
        total = self._settings.sign_in_rate_limit
        reserved = total // KNOWN_DEVICES_SHARE
        try:
            if known_device:
                await self._hit_or_reject("guesses:known devices", reserved)
            else:
                await self._hit_or_reject("guesses:unknown devices", total - reserved)
        except DomainError:
            await asyncio.sleep(REJECTION_DELAY)  # the next attempt would follow an immediate rejection at once
            raise

    async def _limit_device_or_network(self, counted: str, scope: ASGIScope, known_device: str | None) -> None:
        subject = f"device:{hash_subject(known_device)}" if known_device else client_network(scope)
        await self._hit_or_reject(f"{counted}:{subject}", self._settings.auth_failure_rate_limit)

    async def _limit_auth_failures(self, scope: ASGIScope) -> None:
        """Count by address only requests without a valid key: a whole office can share one address."""
        await self._hit_or_reject(f"address:{client_network(scope)}", self._settings.auth_failure_rate_limit)

    async def _hit_or_reject(self, subject: str, limit: int) -> None:
        """Count a request. With a limit of 0, there is no limit."""
        if limit:
            status = await self._rate_limiter.hit(subject, limit)
            if status.exceeded:
                raise _rate_limit_error(status) from None


def hash_subject(secret: str) -> str:
    """The hash of a secret, for the stored subject of a rate limit."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def client_network(scope: ASGIScope) -> str:
    """The client's IPv4 address, or the /64 network of its IPv6 address: a client has at least a whole /64."""
    address: str = scope["client"][0] if scope.get("client") else ""
    try:
        ipv6 = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipv6.ipv4_mapped or IPv6Network((ipv6, 64), strict=False))


def _rate_limit_error(status: RateLimitStatus) -> DomainError:
    return DomainError("rate_limit_exceeded", retry_after=status.retry_after)
