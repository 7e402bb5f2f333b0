"""Who asks, and for whom: the Authorization and X-Plan-Manager-Id headers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from plankeeper.http.context import Actor, Need
from plankeeper.http.errors import Refusal
from plankeeper.http.parsing import uuid_of


@dataclass(frozen=True, slots=True)
class Grant:
    """What an API key may do. `plan_managers` holds each id under its lower-case text."""

    actor: Actor
    plan_managers: Mapping[bytes, UUID]
    scopes: frozenset[str]
    original_key_id: UUID  # the first of the key and its rotations
    rate_limit: int | None  # requests a minute; null: the server's default; 0: no limit
    subject: str  # what its requests are counted under


# Finds the grant of a key's text; raises a Refusal with status 401.
Authenticate = Callable[[str], Awaitable[Grant]]

_CHALLENGE = {"www-authenticate": "Bearer"}


def unauthorised(code: str) -> Refusal:
    return Refusal(code, headers=_CHALLENGE)


def bearer_key(authorization: bytes | None) -> str:
    """The API key of an Authorization header; raises Refusal."""
    if authorization is None:
        raise unauthorised("missing_api_key")
    scheme, _, key = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not key.isascii():
        raise unauthorised("invalid_api_key")
    return key.decode()


def plan_manager_of(grant: Grant, header: bytes | None) -> UUID:
    """The plan manager that the request is scoped to; raises Refusal."""
    if header is None:
        raise Refusal("missing_plan_manager_id")
    allowed = grant.plan_managers.get(header.lower())
    if allowed is None:
        if uuid_of(header.decode("latin-1")) is None:
            raise Refusal("invalid_plan_manager_id")
        raise Refusal("plan_manager_not_allowed")
    return allowed


def require(grant: Grant, need: Need) -> None:
    if need not in grant.scopes:
        raise Refusal("insufficient_scope", f"The API key lacks the scope `{need}`, which this request needs.")
