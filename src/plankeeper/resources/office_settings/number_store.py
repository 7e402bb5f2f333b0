"""The numbers of what an office makes: batches of claims, payment runs and takings of fees, each counted from 1."""

from typing import Literal
from uuid import UUID

from plankeeper.database.client import Transaction

NumberKind = Literal["claim_batch", "payment_run", "fee_taking"]

PREFIXES: dict[NumberKind, str] = {"claim_batch": "B", "payment_run": "P", "fee_taking": "F"}

NEXT = """
    insert into office_numbers (plan_manager_id, kind, last) values ($1, $2, 1)
    on conflict (plan_manager_id, kind) do update set last = office_numbers.last + 1
    returning last
"""
RAISE = """
    insert into office_numbers (plan_manager_id, kind, last) values ($1, $2, $3)
    on conflict (plan_manager_id, kind) do update set last = greatest(office_numbers.last, excluded.last)
"""


async def next_number(tx: Transaction, plan_manager_id: UUID, kind: NumberKind) -> str:
    """A new number, such as `B000001`. It locks the office's counter, so it is the last lock of a transaction."""
    return f"{PREFIXES[kind]}{await tx.one(int, NEXT, plan_manager_id, kind):06}"


async def raise_number(tx: Transaction, plan_manager_id: UUID, kind: NumberKind, last: int) -> None:
    """Have the next number of a kind be higher than this one."""
    await tx.execute(RAISE, plan_manager_id, kind, last)
