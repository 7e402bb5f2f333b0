"""The section with the bank details of a provider's or a participant's page."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.bank_details import store
from plankeeper.resources.bank_details.accounts import Payee, PayeeKind
from plankeeper.resources.bank_details.schemas import Action, BankDetailChange, BankDetailsRow

BANK_DETAILS_URL = f"{PREFIX}/bank-details"
MAX_CHANGES = 10  # of the history on a page
_PATHS: Mapping[PayeeKind, str] = {"participant": "participants", "provider": "providers"}
ACTIONS: Mapping[Action, str] = {
    "proposed": "Proposed",
    "approved": "Approved",
    "confirmed": "Confirmed as they are",
    "rejected": "Rejected",
    "set": "Set by the operator",
    "closed": "Closed",
}


class BankDetailsSection(NamedTuple):
    """The details of a payee, without account numbers, and their history, the newest entry first."""

    url: str
    row: BankDetailsRow | None
    changes: Sequence[BankDetailChange]
    is_deceased: bool  # whether the payee is a participant who has died
    actions: Mapping[Action, str] = ACTIONS


def payee_url(payee: Payee) -> str:
    return f"{PREFIX}/{_PATHS[payee.kind]}/{payee.id}"


async def bank_details_section(
    request: PageRequest, kind: PayeeKind, payee_id: UUID, *, is_deceased: bool = False
) -> BankDetailsSection | None:
    """Null for a limited viewer."""
    if request.participants_of:
        return None
    payee = Payee(kind, payee_id)
    place = (request.db, request.plan_manager_id, payee)
    row, changes = await asyncio.gather(store.get(*place), store.list_changes(*place, MAX_CHANGES))
    return BankDetailsSection(f"{payee_url(payee)}/bank-details", row, changes, is_deceased)
