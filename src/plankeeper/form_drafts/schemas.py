"""Kept forms."""

from uuid import UUID

from msgspec import Struct


class Draft(Struct, array_like=True):
    """The fields of a form, and the plan manager that was selected, if the session is known."""

    fields: list[tuple[str, str]]
    plan_manager_id: UUID | None
