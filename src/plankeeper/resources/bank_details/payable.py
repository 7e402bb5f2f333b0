"""Which payees can be paid, and to which account: for payment runs."""

from collections.abc import Collection, Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Transaction
from plankeeper.resources.bank_details import store
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.schemas import BankDetailsRow

NotPayable = Literal["no_bank_details", "bank_details_waiting", "bank_details_need_approval"]


class PayeeAccount(Struct):
    """The account of a payee, or the reason why it can't be paid now."""

    account: str | None  # encrypted, see `decrypt_account`; null with a reason
    account_ending: str | None
    reason: NotPayable | None
    estate_payee: str | None = None  # whom an owner has approved for the estate of a participant who has died


async def find_payable(
    tx: Transaction, plan_manager_id: UUID, payees: Collection[Payee], *, for_update: bool
) -> Mapping[Payee, PayeeAccount]:
    """The account of each payee, or why it can't be paid. Payees without details have `no_bank_details`.

    With `for_update`, the rows are locked until the transaction ends, in order of kind and id. Nobody else can then
    propose details for payees that have some.
    """
    ordered = sorted(set(payees))
    if for_update:
        rows: list[BankDetailsRow] = []
        for kind in ("participant", "provider"):
            ids = [each.id for each in ordered if each.kind == kind]
            rows += await store.select_many_for_update(tx, plan_manager_id, kind, ids) if ids else []
    else:
        rows = await store.list_of_payees(tx, plan_manager_id, ordered)
    found = {each.payee: _account(each) for each in rows}
    none = PayeeAccount(None, None, "no_bank_details")
    return {each: found.get(each, none) for each in ordered}


def _account(row: BankDetailsRow) -> PayeeAccount:
    reason = _reason(row)
    account, ending = (None, None) if reason else (row.current_account, row.current_ending)
    return PayeeAccount(account, ending, reason, row.current_estate_payee)


def _reason(row: BankDetailsRow) -> NotPayable | None:
    if row.needs_approval:
        return "bank_details_need_approval"
    if row.proposal_id is not None:
        return "bank_details_waiting"
    return "no_bank_details" if row.current_account is None else None
