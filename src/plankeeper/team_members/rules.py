"""What a set of permissions means (specification, section 3; decisions on team members)."""

from collections.abc import Iterable, Sequence
from typing import Literal

PermissionSlug = Literal[
    "view_budget", "view_invoices", "approve_invoices", "email_statements", "view_documents", "no_access"
]

NO_ACCESS: PermissionSlug = "no_access"


def effective_permissions(slugs: Iterable[PermissionSlug]) -> list[PermissionSlug]:
    """The permissions that a list grants: a set, in which no access outweighs all others; none at all is no access."""
    unique = sorted(set(slugs))
    return [NO_ACCESS] if NO_ACCESS in unique or not unique else unique


def requires_email(slugs: Sequence[PermissionSlug]) -> bool:
    """Whether a list names a permission that only a member with an email can hold, even beside no_access."""
    return any(slug != NO_ACCESS for slug in slugs)
