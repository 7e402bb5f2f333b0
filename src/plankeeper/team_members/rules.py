"""The meaning of a set of permissions, and of contact priorities."""

from collections.abc import Iterable, Sequence
from typing import Literal

PermissionSlug = Literal[
    "view_budget", "view_invoices", "approve_invoices", "email_statements", "view_documents", "no_access"
]

NO_ACCESS: PermissionSlug = "no_access"


def effective_permissions(slugs: Iterable[PermissionSlug]) -> list[PermissionSlug]:
    """The permissions that a list grants, sorted. `no_access` overrides all others; an empty list means no access."""
    unique = sorted(set(slugs))
    return [NO_ACCESS] if NO_ACCESS in unique or not unique else unique


def requires_email(slugs: Sequence[PermissionSlug]) -> bool:
    """Whether a list contains a permission that requires an email, even together with `no_access`."""
    return any(slug != NO_ACCESS for slug in slugs)


def other_priority(priority: int) -> int:
    """The secondary contact for the primary one, and the reverse."""
    return 3 - priority
