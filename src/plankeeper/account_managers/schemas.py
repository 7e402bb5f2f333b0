"""Account managers over the wire, and as they are kept."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import Email, NewId, Text255


class AccountManager(Struct):
    """An account manager."""

    id: UUID
    first_name: str | None
    last_name: str | None
    name: Annotated[str | None, Meta(description="First and last name joined.")]
    email: str | None
    active: bool | None


class AccountManagerRow(Struct, kw_only=True):
    """An account manager as it is kept, hidden ones too. Import and export speak this shape."""

    id: UUID
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    active: bool = True
    is_internal: bool = False
    deleted: bool = False


class AccountManagerCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """What people make one with: at least one of first name, last name and email."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET


class AccountManagerUpdate(AccountManagerCreate):
    """What people change; what is absent stays as it is, null clears."""

    active: bool | UnsetType = UNSET


class AccountManagerImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """One line of an import; what is absent stays as it is."""

    id: NewId | UnsetType = UNSET
    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    is_internal: bool | UnsetType = UNSET
    deleted: bool | UnsetType = UNSET


class AccountManagerListQuery(UuidListQuery):
    """Filters of the list."""

    active: bool | UnsetType = UNSET
    email: Annotated[Text255 | UnsetType, Meta(description="Exact, but for case.")] = UNSET
