"""Which payees can be paid, and to which account: for payment runs."""

from collections.abc import Collection, Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Transaction
from plankeeper.resources.bank_details.accounts import Payee

NotPayable = Literal["no_bank_details", "bank_details_waiting", "bank_details_need_approval"]


class PayeeAccount(Struct):
    """The account of a payee, or the reason why it can't be paid now."""

    account: str | None  # encrypted, see `decrypt_account`; null with a reason
    account_ending: str | None
    reason: NotPayable | None


async def find_payable(
    tx: Transaction, plan_manager_id: UUID, payees: Collection[Payee], *, for_update: bool
) -> Mapping[Payee, PayeeAccount]:
    """The account of each payee, or why it can't be paid. Payees without details have `no_bank_details`.

    With `for_update`, the rows are locked until the transaction ends, in order of kind and id.
    """
    raise NotImplementedError
