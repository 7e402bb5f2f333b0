"""Schemas of invoice view sessions."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import DefaultSort, ResourceListQuery
from plankeeper.http.schemas import AwareDatetime, NewId, Text255, UuidText

Seconds = Annotated[int, Meta(ge=0, le=2**53)]


class InvoiceViewSession(Struct, kw_only=True):
    """A record of a user viewing an invoice. Durations are whole seconds."""

    id: UUID
    invoice_id: UUID
    user_id: Annotated[str, Meta(description="The id at the time of the session.")]
    user_name: str
    session_started: AwareDatetime
    session_ended: Annotated[AwareDatetime | None, Meta(description="Null while the session is open.")] = None
    last_heartbeat: AwareDatetime
    duration_seconds: int | None = None
    created_at: AwareDatetime
    active_duration_seconds: int | None = None
    engaged_duration_seconds: int | None = None
    idle_count: int | None = None


class InvoiceViewSessionDetails(InvoiceViewSession, kw_only=True):
    """A record of a user viewing an invoice, with all members."""

    updated_at: AwareDatetime


class InvoiceViewSessionImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. A new session requires invoice_id, user_id, user_name and session_started."""

    id: NewId | UnsetType = UNSET
    invoice_id: UuidText | UnsetType = UNSET
    user_id: Text255 | UnsetType = UNSET
    user_name: Text255 | UnsetType = UNSET
    session_started: AwareDatetime | UnsetType = UNSET
    session_ended: AwareDatetime | None | UnsetType = UNSET
    last_heartbeat: AwareDatetime | UnsetType = UNSET
    duration_seconds: Seconds | None | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET
    active_duration_seconds: Seconds | None | UnsetType = UNSET
    engaged_duration_seconds: Seconds | None | UnsetType = UNSET
    idle_count: Seconds | None | UnsetType = UNSET


class StaleSession(Struct):
    """An open session without recent heartbeats."""

    plan_manager_id: UUID
    id: UUID


class InvoiceViewSessionListQuery(ResourceListQuery):
    """Filters for the list. They combine with AND."""

    sort: DefaultSort = UNSET
    invoice_id: UuidText | UnsetType = UNSET
    user_id: Text255 | UnsetType = UNSET
