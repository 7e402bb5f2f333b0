"""API keys as stored in the database."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.core.context import Scope
from plankeeper.core.fields import AwareDatetime

ApiKeyState = Literal["active", "expired", "revoked"]


class ApiKey(Struct, kw_only=True):
    """An API key, without its secret. Also the data of its events."""

    id: UUID
    name: str
    last_four: str
    plan_managers: list[UUID]
    scopes: list[str]
    created_by: str
    created_by_account_id: UUID | None  # None: created on the command line
    created_at: AwareDatetime
    expires_at: AwareDatetime | None
    revoked_at: AwareDatetime | None
    rate_limit: int | None  # requests a minute; None: the server's default; 0: no limit
    original_id: UUID  # the first of a key and its rotations
    last_used_at: AwareDatetime | None  # accurate to the minute


class PlanManagerRef(Struct):
    """A plan manager that a key can act for."""

    id: Annotated[UUID, Meta(description="The value for `X-Plan-Manager-Id`.")]
    name: Annotated[str, Meta(description="The name to display.")]


class CurrentApiKey(Struct):
    """The API key of a request."""

    id: Annotated[UUID, Meta(description="The key's UUID, which isn't secret.")]
    name: Annotated[str, Meta(description="The name that was given to the key.")]
    scopes: Annotated[list[Scope], Meta(description="One or more.")]
    expires_at: Annotated[AwareDatetime | None, Meta(description="When the key expires; null if it never does.")]
    rate_limit: Annotated[int | None, Meta(description="Requests a minute; null if there is no limit.")]
    plan_managers: Annotated[list[PlanManagerRef], Meta(description="The plan managers that the key can act for.")]
