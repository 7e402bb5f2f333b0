"""Schemas of providers: responses, request bodies, queries and stored rows."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import (
    EXTENSION,
    AwareDatetime,
    Email,
    EmailText,
    NewId,
    Query,
    StateCode,
    StateText,
    Text20,
    Text50,
    Text254,
    Text255,
    Text500,
)
from plankeeper.participants.schemas import View


class ProviderSummary(Struct):
    """A provider."""

    id: UUID
    entity_name: str | None
    abn: Annotated[str | None, Meta(description="Australian Business Number.")]
    email: EmailText | None


class Provider(Struct, kw_only=True):
    """A provider in the full shape. Import and export use the same shape."""

    id: UUID
    entity_name: str | None = None
    abn: str | None = None
    email: EmailText | None = None
    active: bool = True
    primary_phone_number: str | None = None
    address: str | None = None
    city: str | None = None
    state: StateText | None = None
    postcode: str | None = None
    ndis_provider_number: str | None = None
    created_at: AwareDatetime


class ProviderUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a create or an update. Absent members keep their value; null clears."""

    entity_name: Text255 | None | UnsetType = UNSET
    abn: Annotated[Text50 | None | UnsetType, Meta(description="Australian Business Number.")] = UNSET
    email: Email | None | UnsetType = UNSET
    active: Annotated[bool | UnsetType, EXTENSION] = UNSET
    primary_phone_number: Annotated[Text50 | None | UnsetType, EXTENSION] = UNSET
    address: Annotated[Text500 | None | UnsetType, EXTENSION] = UNSET
    city: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    state: Annotated[StateCode | None | UnsetType, EXTENSION] = UNSET
    postcode: Annotated[Text20 | None | UnsetType, EXTENSION] = UNSET
    ndis_provider_number: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET


class ProviderImport(ProviderUpdate):
    """A record of an import."""

    id: NewId | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


class ProviderViewQuery(Query):
    """Selects the shape of the response."""

    view: Annotated[View | UnsetType, EXTENSION, Meta(description="`full` returns all members of a provider.")] = UNSET


class ProviderListQuery(UuidListQuery):
    """Filters of the list, combined with AND."""

    view: Annotated[View | UnsetType, EXTENSION, Meta(description="`full` returns all members of a provider.")] = UNSET
    abn: Annotated[Text255 | UnsetType, EXTENSION] = UNSET
    email: Annotated[Text254 | UnsetType, EXTENSION, Meta(description="Exact match, ignoring case.")] = UNSET
    updated_since: Annotated[
        AwareDatetime | UnsetType,
        EXTENSION,
        Meta(description="Changed at or after this time."),
    ] = UNSET
