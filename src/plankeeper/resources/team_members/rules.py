"""Warnings about unusual values of a team member. The console and imports show them before saving."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from plankeeper.core.fields import is_email
from plankeeper.core.soft_validation import ValueWarning, find_implausible_phone, find_implausible_postcode

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


APPROVES_UNSEEN = "Tick “View invoices” too. People can’t approve what they can’t see."


class PlausibleFields(Protocol):
    """The fields of a team member that the rules read."""

    @property
    def permissions(self) -> Sequence[PermissionSlug]: ...
    @property
    def phone_number(self) -> str | None: ...
    @property
    def secondary_phone_number(self) -> str | None: ...
    @property
    def secondary_email(self) -> str | None: ...
    @property
    def postcode(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...


def find_value_warnings(member: PlausibleFields) -> list[ValueWarning]:
    """Warnings about unusual values, in the order of the form."""
    email = (member.secondary_email or "").strip()
    has_invalid_email = email and (len(email) > 254 or not is_email(email))
    granted = effective_permissions(member.permissions)
    cannot_see = "approve_invoices" in granted and "view_invoices" not in granted
    return [
        *([ValueWarning("permissions", APPROVES_UNSEEN)] if cannot_see else []),
        *find_implausible_phone("phone_number", member.phone_number),
        *find_implausible_phone("secondary_phone_number", member.secondary_phone_number),
        *([ValueWarning("secondary_email", "isn’t an email address")] if has_invalid_email else []),
        *find_implausible_postcode(member.postcode, member.state),
    ]
