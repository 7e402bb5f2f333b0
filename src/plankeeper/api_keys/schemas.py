"""API keys as they are kept."""

from uuid import UUID

from msgspec import Struct

from plankeeper.http.schemas import AwareDatetime


class ApiKey(Struct, kw_only=True):
    """An API key; the key itself is not kept. This is what its events tell."""

    id: UUID
    name: str
    last_four: str
    plan_managers: list[UUID]
    scopes: list[str]
    created_by: str
    created_at: AwareDatetime
    expires_at: AwareDatetime | None
    revoked_at: AwareDatetime | None
    rate_limit: int | None  # requests a minute; null: the server's default; 0: no limit
    original_id: UUID  # the first of a key and its rotations
    last_used_at: AwareDatetime | None  # to the minute
