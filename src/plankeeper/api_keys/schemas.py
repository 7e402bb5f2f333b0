"""API keys as stored in the database."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.http.schemas import AwareDatetime

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
