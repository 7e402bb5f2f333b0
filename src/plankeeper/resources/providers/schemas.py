"""Schemas of providers: responses, request bodies, queries and stored rows."""

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.bulk import ITEMS, MATCH, ItemId
from plankeeper.core.fields import (
    EXTENSION,
    AwareDatetime,
    CreatedAt,
    Email,
    EmailText,
    ExternalId,
    ExternalIdText,
    NewId,
    Query,
    SearchText,
    StateCode,
    StateFilter,
    StateText,
    Text20,
    Text50,
    Text254,
    Text255,
    Text500,
    UpdatedAt,
    component,
)
from plankeeper.core.lists import (
    MAX_ENUM_VALUES,
    DefaultSort,
    ExternalIdFilter,
    ResourceListQuery,
)
from plankeeper.database.lists.statements import Filter, enum_filter, number_filter


class ProviderRecord(Struct, kw_only=True):
    """A provider as imports and exports have it."""

    id: Annotated[UUID, Meta(description="The provider's UUID.")]
    entity_name: Annotated[str | None, Meta(description="The name of the business or person, or null.")] = None
    abn: Annotated[
        str | None,
        Meta(
            description="The Australian Business Number (ABN): 11 digits, but any text is accepted. Null if it isn't"
            " known."
        ),
    ] = None
    email: Annotated[EmailText | None, Meta(description="A valid email address, or null.")] = None
    active: Annotated[bool, EXTENSION, Meta(description="`true` by default.")] = True
    primary_phone_number: Annotated[str | None, EXTENSION, Meta(description="Any text, or null.")] = None
    address: Annotated[str | None, EXTENSION, Meta(description="Street address, or null.")] = None
    city: Annotated[str | None, EXTENSION, Meta(description="Suburb, town or city, or null.")] = None
    state: Annotated[
        StateText | None,
        EXTENSION,
        Meta(
            description="`ACT`, `NSW`, `NT`, `QLD`, `SA`, `TAS`, `VIC`, `WA` or null. Accepted in either case,"
            " stored in upper case."
        ),
    ] = None
    postcode: Annotated[str | None, EXTENSION, Meta(description="Any text, usually 4 digits, or null.")] = None
    ndis_provider_number: Annotated[
        str | None,
        EXTENSION,
        Meta(description="The number of the provider's registration with the NDIS, as any text, or null."),
    ] = None
    remittance_email: Annotated[
        EmailText | None,
        EXTENSION,
        Meta(description="The email address for remittance advice, or null: it is listed for printing."),
    ] = None
    external_id: ExternalId = None
    created_at: Annotated[CreatedAt, EXTENSION]


class Provider(ProviderRecord, kw_only=True):
    """A business or person that provides services to participants and sends invoices."""

    abn_exempt: Annotated[
        bool, EXTENSION, Meta(description="Whether the provider needn't quote an ABN. Ignored in requests.")
    ] = False
    abn_statement_date: Annotated[
        date | None,
        EXTENSION,
        Meta(description="The day of the supplier's statement that says so, or null. Ignored in requests."),
    ] = None
    updated_at: UpdatedAt


class ProviderUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new provider, or the changes of one. Omitted fields keep their values; null clears a value."""

    entity_name: Text255 | None | UnsetType = UNSET
    abn: Text50 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    active: Annotated[bool | UnsetType, EXTENSION] = UNSET
    primary_phone_number: Annotated[Text50 | None | UnsetType, EXTENSION] = UNSET
    address: Annotated[Text500 | None | UnsetType, EXTENSION] = UNSET
    city: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    state: Annotated[StateCode | None | UnsetType, EXTENSION] = UNSET
    postcode: Annotated[Text20 | None | UnsetType, EXTENSION] = UNSET
    ndis_provider_number: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    remittance_email: Annotated[Email | None | UnsetType, EXTENSION] = UNSET
    external_id: Annotated[ExternalIdText | None | UnsetType, EXTENSION] = UNSET


class ProviderBulkItem(ProviderUpdate):
    """A provider to create or, with an id, to update."""

    id: ItemId = UNSET


class ProviderBulk(Struct, forbid_unknown_fields=True, kw_only=True):
    """The providers to create and to update."""

    items: Annotated[list[ProviderBulkItem], ITEMS]


ProviderMatch = Annotated[
    Literal["external_id", "abn"], component("ProviderMatch", "The fields by which providers can be found.")
]


class ProviderBulkQuery(Query, frozen=True):
    """How the items find their providers."""

    match: Annotated[ProviderMatch | UnsetType, EXTENSION, MATCH] = UNSET


class ProviderImport(ProviderUpdate):
    """A record of an import. Without bank details, those of the provider stay."""

    id: NewId | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET
    bank_bsb: Text50 | None | UnsetType = UNSET
    bank_account_number: Text50 | None | UnsetType = UNSET
    bank_account_name: Text255 | None | UnsetType = UNSET


class ProviderExport(ProviderRecord, kw_only=True):
    """A provider with its current bank details."""

    bank_bsb: str | None = None
    bank_account_number: str | None = None
    bank_account_name: str | None = None


class ProviderListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    q: Annotated[
        SearchText | UnsetType,
        EXTENSION,
        Meta(
            description="Returns items with this text in the name or the ABN, or at the beginning of the email,"
            " ignoring accents, case and punctuation."
        ),
    ] = UNSET
    abn: Annotated[
        Text255 | UnsetType,
        EXTENSION,
        Meta(description="Returns items with this ABN; 11 digits match with and without spaces and hyphens."),
        number_filter("abn", "11"),
    ] = UNSET
    email: Annotated[
        Text254 | UnsetType,
        EXTENSION,
        Meta(description="Returns items with this email, ignoring case."),
        Filter("lower(email) = lower({})"),
    ] = UNSET
    external_id: ExternalIdFilter = UNSET
    state: Annotated[
        Annotated[list[StateFilter], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        EXTENSION,
        Meta(
            description="Returns items in one of these states, separated by commas: `nsw`, `qld`, `vic`, `sa`, `wa`,"
            " `tas`, `act`, `nt`, in lower or upper case."
        ),
        enum_filter("state", label="State"),
    ] = UNSET
