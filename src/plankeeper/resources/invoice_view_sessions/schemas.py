"""Schemas of invoice view sessions."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import (
    AwareDatetime,
    CreatedAt,
    NewId,
    Text255,
    UpdatedAt,
    UuidText,
)
from plankeeper.core.lists import DefaultSort, ResourceListQuery
from plankeeper.database.lists.statements import Filter

Seconds = Annotated[int, Meta(ge=0, le=2**53)]


class InvoiceViewSessionRecord(Struct, kw_only=True):
    """A session as imports and exports have it."""

    id: Annotated[UUID, Meta(description="The session's UUID.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    user_id: Annotated[str, Meta(description="The user's id at the time of the session. It can be any text.")]
    user_name: Annotated[str, Meta(description="The user's name at the time of the session.")]
    session_started: Annotated[AwareDatetime, Meta(description="When the user opened the invoice.")]
    session_ended: Annotated[AwareDatetime | None, Meta(description="Null while the session is open.")] = None
    last_heartbeat: Annotated[
        AwareDatetime, Meta(description="When the user's browser last reported that the invoice was open.")
    ]
    duration_seconds: Annotated[int | None, Meta(description="Seconds from the start to the end, or null.")] = None
    created_at: CreatedAt
    active_duration_seconds: Annotated[
        int | None, Meta(description="Seconds for which the page was visible, or null.")
    ] = None
    engaged_duration_seconds: Annotated[
        int | None, Meta(description="Seconds for which the user was active on the page, or null.")
    ] = None
    idle_count: Annotated[int | None, Meta(description="How often the user paused for a minute, or null.")] = None


class InvoiceViewSession(InvoiceViewSessionRecord, kw_only=True):
    """A record of a user viewing an invoice. Durations are whole seconds."""

    updated_at: UpdatedAt


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


class InvoiceViewSessionListQuery(ResourceListQuery, frozen=True):
    """Filters for the list. They combine with AND."""

    sort: DefaultSort = UNSET
    invoice_id: Annotated[
        UuidText | UnsetType, Meta(description="Returns items of this invoice."), Filter("invoice_id = {}")
    ] = UNSET
    user_id: Annotated[
        Text255 | UnsetType, Meta(description="Returns items of this user, as recorded."), Filter("user_id = {}")
    ] = UNSET
