"""Parent records: whether they exist, and locks that prevent their deletion.

A part of a participant uses these functions instead of the participant's package, which imports its parts.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class Parent(Struct):
    """A participant, as its parts see it."""

    id: UUID
    email: str | None
    participant_number: str | None


SELECT_PARTICIPANT_FOR_SHARE = """
    select id, email, participant_number from participants where plan_manager_id = $1 and id = $2 for share
"""


async def select_participant_for_share(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> Parent | None:
    """A participant that cannot be deleted until the transaction ends."""
    return await tx.one_or_none(Parent, SELECT_PARTICIPANT_FOR_SHARE, plan_manager_id, participant_id)


PARTICIPANT_EXISTS = "select exists (select from participants where plan_manager_id = $1 and id = $2)"


async def participant_exists(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    return await db.one(bool, PARTICIPANT_EXISTS, plan_manager_id, participant_id)


LIST_PARTICIPANTS_BY_NUMBERS = """
    select id, email, participant_number
    from participants
    where plan_manager_id = $1 and participant_number = any ($2)
"""


async def list_participants_by_numbers(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[Parent]:
    """All participants with one of the numbers; several may share a number."""
    return await db.rows(Parent, LIST_PARTICIPANTS_BY_NUMBERS, plan_manager_id, numbers)
