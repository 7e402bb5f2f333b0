"""Schemas of account managers."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import (
    AwareDatetime,
    Email,
    NewId,
    Text255,
    UpdatedAt,
)
from plankeeper.core.lists import DefaultSort, ResourceListQuery
from plankeeper.database.lists.statements import Filter


class AccountManager(Struct):
    """A person who works for the plan manager and looks after participants."""

    id: Annotated[UUID, Meta(description="The account manager's UUID, which is also the user's id.")]
    first_name: Annotated[str | None, Meta(description="Given name, or null.")]
    last_name: Annotated[str | None, Meta(description="Family name, or null.")]
    name: Annotated[str | None, Meta(description="First and last name combined; null if both are null.")]
    email: Annotated[str | None, Meta(description="The email of the user, or null.")]
    active: Annotated[bool | None, Meta(description="Whether the account manager still looks after participants.")]
    updated_at: UpdatedAt


class AccountManagerRow(Struct, kw_only=True):
    """A row of the table with the email, of hidden account managers too; also the format of exports."""

    id: UUID
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    active: bool = True
    is_internal: bool = False
    deleted: bool = False


class StoredAccountManager(AccountManagerRow, kw_only=True):
    """A row with the computed fields that the API has; events have it, also those of hidden ones."""

    name: str | None
    updated_at: AwareDatetime


class AccountManagerCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The values of a new account manager: at least one of first name, last name and email."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET


class AccountManagerUpdate(AccountManagerCreate):
    """The changes of an update. Omitted fields keep their values; null clears a value."""

    active: bool | UnsetType = UNSET


class AccountManagerImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. Omitted fields keep their values."""

    id: NewId | UnsetType = UNSET
    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    is_internal: bool | UnsetType = UNSET
    deleted: bool | UnsetType = UNSET


class AccountManagerListQuery(ResourceListQuery, frozen=True):
    """Filters for the list."""

    sort: DefaultSort = UNSET
    active: Annotated[
        bool | UnsetType,
        Meta(description="Returns items that are active (`true`) or not (`false`)."),
        Filter("active = {}"),
    ] = UNSET
    email: Annotated[
        Text255 | UnsetType,
        Meta(description="Returns items with this email, ignoring case."),
        Filter("lower(email) = lower({})"),
    ] = UNSET
