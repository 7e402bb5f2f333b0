"""Authentication and authorisation: the Authorization and X-Plan-Manager-Id headers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from plankeeper.http.context import Actor, Scope
from plankeeper.http.errors import ApiError, ErrorCode
from plankeeper.http.parsing import parse_uuid


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated API key. `plan_managers` maps the lower-case text of each allowed id to the id."""

    actor: Actor
    plan_managers: Mapping[bytes, UUID]
    scopes: frozenset[str]
    original_key_id: UUID  # the first of the key and its rotations
    rate_limit: int | None  # requests per minute; None: the server's default; 0: unlimited
    subject: str  # the subject of its rate limit


# Returns the principal of an API key; raises ApiError with status 401.
Authenticate = Callable[[str], Awaitable[Principal]]

# Why a request with a known key was rejected before it belonged to a plan manager. The response about a revoked key has
# the code `invalid_api_key`: it doesn't say that the key ever existed.
RejectionReason = ErrorCode | Literal["revoked_api_key"]


class RejectedKeyError(ApiError):
    """A known key that isn't valid any more. Only the console shows the reason."""

    def __init__(self, code: ErrorCode, key_id: UUID, reason: RejectionReason) -> None:
        super().__init__(code)
        self.rejected_key = key_id, reason


def parse_bearer_key(authorization: bytes | None) -> str:
    """The API key of an Authorization header; raises ApiError."""
    if authorization is None:
        raise ApiError("missing_api_key")
    scheme, _, key = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not key:
        raise ApiError("missing_api_key")
    if b"," in key:
        detail = "The Authorization header occurs more than once, or contains a comma. Send it once, with one key."
        raise ApiError("invalid_api_key", detail)
    if not key.isascii():
        raise ApiError("invalid_api_key")
    return key.lstrip(b" ").decode()


def resolve_plan_manager(principal: Principal, header: bytes | None) -> UUID:
    """The plan manager that the request acts for; raises ApiError."""
    if header is None:
        raise ApiError("missing_plan_manager_id")
    allowed = principal.plan_managers.get(header.lower())
    if allowed is None:
        if parse_uuid(header.decode("latin-1")) is None:
            raise ApiError("invalid_plan_manager_id")
        raise ApiError("plan_manager_not_allowed")
    return allowed


def require_scopes(principal: Principal, required: Sequence[Scope]) -> None:
    """Raises ApiError, which names the scopes that the key lacks."""
    for each in required:
        if each not in principal.scopes:
            missing = " and ".join(f"`{scope}`" for scope in required if scope not in principal.scopes)
            noun = "scopes" if " and " in missing else "scope"
            raise ApiError(
                "insufficient_scope", f"This request requires the {noun} {missing}, which the API key does not have."
            )
