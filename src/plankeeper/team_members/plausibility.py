"""Values of a team member that are accepted but probably wrong. The console and imports show them before saving."""

from collections.abc import Sequence
from typing import Protocol

from plankeeper.core.fields import is_email
from plankeeper.core.soft_validation import Implausible, find_implausible_phone, find_implausible_postcode
from plankeeper.team_members.rules import PermissionSlug, effective_permissions

APPROVES_UNSEEN = "Tick “View invoices” too. People can’t approve what they can’t see."


class PlausibleFields(Protocol):
    """The fields of a team member that the rules look at."""

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


def find_implausible(member: PlausibleFields) -> list[Implausible]:
    """The values that are probably wrong, in the order of the form."""
    email = (member.secondary_email or "").strip()
    has_invalid_email = email and (len(email) > 254 or not is_email(email))
    granted = effective_permissions(member.permissions)
    cannot_see = "approve_invoices" in granted and "view_invoices" not in granted
    return [
        *([Implausible("permissions", APPROVES_UNSEEN)] if cannot_see else []),
        *find_implausible_phone("phone_number", member.phone_number),
        *find_implausible_phone("secondary_phone_number", member.secondary_phone_number),
        *([Implausible("secondary_email", "isn’t an email address")] if has_invalid_email else []),
        *find_implausible_postcode("postcode", member.postcode, member.state),
    ]
