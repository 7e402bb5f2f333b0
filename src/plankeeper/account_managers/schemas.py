"""Schemas of account managers."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import DefaultSort, ResourceListQuery
from plankeeper.http.schemas import AwareDatetime, Email, NewId, Text255


class AccountManager(Struct):
    """An account manager."""

    id: UUID
    first_name: str | None
    last_name: str | None
    name: Annotated[str | None, Meta(description="First and last name joined.")]
    email: str | None
    active: bool | None


class AccountManagerDetails(AccountManager):
    """An account manager with all members."""

    updated_at: AwareDatetime


class AccountManagerRow(Struct, kw_only=True):
    """A row of the table with the email, of hidden account managers too; also the format of exports."""

    id: UUID
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    active: bool = True
    is_internal: bool = False
    deleted: bool = False


class AccountManagerCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The values of a new account manager: at least one of first name, last name and email."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET


class AccountManagerUpdate(AccountManagerCreate):
    """The changes of an update. Omitted members keep their values; null clears a value."""

    active: bool | UnsetType = UNSET


class AccountManagerImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. Omitted members keep their values."""

    id: NewId | UnsetType = UNSET
    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    is_internal: bool | UnsetType = UNSET
    deleted: bool | UnsetType = UNSET


class AccountManagerListQuery(ResourceListQuery):
    """Filters for the list."""

    sort: DefaultSort = UNSET
    active: bool | UnsetType = UNSET
    email: Annotated[Text255 | UnsetType, Meta(description="Exact match that ignores case.")] = UNSET
