"""Authentication and authorisation: the Authorization and X-Plan-Manager-Id headers."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from plankeeper.core.context import Principal, Scope
from plankeeper.core.errors import DomainError
from plankeeper.core.ids import parse_uuid

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


def require_scopes(principal: Principal, required: Sequence[Scope]) -> None:
    """Raises DomainError, which names the scopes that the key lacks."""
    for each in required:
        if each not in principal.scopes:
            missing = " and ".join(f"`{scope}`" for scope in required if scope not in principal.scopes)
            noun = "scopes" if " and " in missing else "scope"
            raise DomainError(
                "insufficient_scope", f"This request requires the {noun} {missing}, which the API key does not have."
            )
