"""Links from the home page to the lists of the counted records."""

from typing import NamedTuple
from uuid import UUID

from plankeeper.console.pagination import with_query
from plankeeper.console.routing import PREFIX


class HomeLinks(NamedTuple):
    """The lists of everyone, or of an account manager."""

    account_manager_id: UUID | None

    def invoices(self, **params: str) -> str:
        """The list of invoices that aren't deleted."""
        return with_query(f"{PREFIX}/invoices", {**params, "deleted": "no", **self._scope})

    def participants(self, **params: str) -> str:
        """The list of active participants."""
        return with_query(f"{PREFIX}/participants", {"status": "Active", **params, **self._scope})

    @property
    def _scope(self) -> dict[str, str]:
        return {"account_manager": str(self.account_manager_id)} if self.account_manager_id else {}
