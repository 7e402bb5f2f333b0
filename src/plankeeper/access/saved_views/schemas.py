"""Schemas of saved views and of the settings of lists."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.core.fields import AwareDatetime

Density = Literal["compact", "comfortable"]


class SavedView(Struct):
    """The filters and the order of a list under a name, for its owner or for everyone of the plan manager."""

    id: UUID
    owner_id: UUID  # an account
    list_kind: str  # such as `participants`
    name: str
    query: str  # of the list's page, without a question mark
    is_shared: bool
    created_at: AwareDatetime


class ListSettings(Struct):
    """An account's settings for a list. `columns` are the names of those that are shown; null for the default ones."""

    columns: list[str] | None = None
    density: Density = "compact"


class SavedList(ListSettings):
    """An account's settings for a list, and the views of it that the account can use, by name."""

    views: list[SavedView] = []
